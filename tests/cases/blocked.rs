//! Schedulers that are starved: in real time, because it is the runtime's own behaviour that is tested.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use leasehold::store::Store;
use leasehold::testing::{FaultyStore, MemoryStore, Operation};
use leasehold::{LeasePolicy, LeaseStatus, LeaseSupervisor, LossReason, PublishError, ReportId};
use tokio::runtime::{Builder, Runtime};

use crate::support::{acquire, budget};

const TTL: Duration = Duration::from_millis(900);

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn workers(count: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(count).enable_all().build().unwrap()
}

/// Blocks every worker of the runtime at once, for that long; none of them runs anything else meanwhile.
fn block_all(runtime: &Runtime, workers: usize, long: Duration) {
    // All are past it only when each has a worker of its own. They are spawned from outside, where idle workers find them.
    let barrier = Arc::new(Barrier::new(workers));
    let block = |barrier: Arc<Barrier>| async move {
        barrier.wait();
        std::thread::sleep(long);
    };
    let blocking: Vec<_> = (0..workers).map(|_| runtime.spawn(block(Arc::clone(&barrier)))).collect();
    runtime.block_on(futures::future::join_all(blocking));
}

/// redisson#2665 and #5698: the watchdog shared its threads with the work, and its renewals came too late.
#[test]
fn case_06_a_blocked_runtime_keeps_its_lease_by_the_engines_thread_and_without_it_sees_the_loss() {
    for count in [1, 2, 4] {
        for renews_itself in [false, true] {
            let runtime = if count == 1 { current_thread() } else { workers(count) };
            let what = format!("{count} workers blocked, renews itself: {renews_itself}");
            let report = ReportId::from_name("report");
            let store = FaultyStore::new(MemoryStore::new());
            runtime.block_on(store.provision(report, budget())).unwrap();
            let supervisor = {
                let _entered = runtime.enter();
                let builder = LeaseSupervisor::builder(store.clone(), LeasePolicy::builder(TTL).build().unwrap());
                let builder = if renews_itself { builder.renew_on(runtime.handle().clone()) } else { builder };
                builder.start().unwrap()
            };
            let guard = runtime.block_on(acquire(&supervisor, report));
            let renewals = store.renewals();
            block_all(&runtime, count, 3 * TTL);
            if renews_itself {
                // The first look, before any task of the runtime had its turn.
                let LeaseStatus::Lost(loss) = guard.status() else { panic!("{what}: it is lost") };
                assert_eq!(loss.reason(), LossReason::DeadlinePassed, "{what}");
                let error = runtime.block_on(guard.publish("late")).unwrap_err();
                assert!(matches!(error, PublishError::Lost(_)), "{what}: {error}");
                assert_eq!(store.calls(Operation::Publish), 0, "{what}");
            } else {
                assert!(matches!(guard.status(), LeaseStatus::Held { .. }), "{what}");
                assert!(store.renewals() >= renewals + 3, "{what}");
                runtime.block_on(guard.publish("in time")).unwrap();
            }
        }
    }
}
