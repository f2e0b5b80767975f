//! Shutdowns that must be over in time.

use std::time::Duration;

use leasehold::store::Store;
use leasehold::testing::{Fault, Operation};
use leasehold::{LeaseGuard, LossReason, ReportId, StoreErrorKind};
use tokio::time::{Instant, sleep};

use crate::process::wait_until;
use crate::support::{acquire, budget, scene, secs};

const COUNT: usize = 5;

/// cilium#42920: a stop hook outran its deadline, and the process was killed with everything held.
#[tokio::test(start_paused = true)]
async fn case_18_a_shutdown_returns_by_its_limit_with_what_it_could_not_release() {
    let releases = [
        None,
        Some(Fault::LoseAnswer),
        Some(Fault::Fail(StoreErrorKind::Unavailable)),
        Some(Fault::Fail(StoreErrorKind::Rejected)),
        Some(Fault::Hang),
        Some(Fault::HangAfterwards),
        Some(Fault::Panic),
    ];
    for release in &releases {
        for limit in [Duration::ZERO, Duration::from_millis(100), secs(4), secs(60)] {
            for notices in ["at once", "late", "never"] {
                let what = format!("{release:?}, limit {limit:?}, builds notice {notices}");
                let scene = scene().await;
                let mut fences = Vec::new();
                let mut builds = Vec::new();
                for index in 0..COUNT {
                    let report = ReportId::from_name(&format!("report {index}"));
                    scene.store.provision(report, budget()).await.unwrap();
                    let guard = acquire(&scene.supervisor, report).await;
                    fences.push(guard.lease().fence());
                    builds.push(tokio::spawn(build(guard, notices)));
                }
                tokio::task::yield_now().await;
                scene.store.plan_always(Operation::Release, release.clone());
                let started = Instant::now();
                let told = scene.supervisor.shutdown(limit).await;
                assert!(started.elapsed() <= limit + Duration::from_millis(1), "{what}: {:?}", started.elapsed());
                assert_eq!(told.released + told.not_released.len(), COUNT, "{what}");
                for fence in fences {
                    let lease = scene.store.inner().inspect(fence.report, budget()).await.unwrap().unwrap().lease;
                    let is_reported = told.not_released.contains(&fence);
                    assert!(is_reported || lease.is_none(), "{what}: it is held, and nobody was told");
                }
                let all = release.is_none() && limit >= secs(4);
                assert!(!all || told.not_released.is_empty(), "{what}: {told:?}");
                let none = matches!(release, Some(Fault::Fail(_) | Fault::Hang | Fault::Panic));
                assert!(!none || told.not_released.len() == COUNT, "{what}: {told:?}");
                builds.iter().for_each(tokio::task::JoinHandle::abort);
            }
        }
    }
}

async fn build(guard: LeaseGuard, notices: &str) {
    let loss = guard.lost().await;
    assert_eq!(loss.reason(), LossReason::Shutdown);
    match notices {
        "at once" => {}
        "late" => sleep(secs(3)).await,
        _ => std::future::pending().await,
    }
}

/// A build on a blocking thread cannot be stopped: the shutdown does not wait for it, and says so.
#[test]
fn case_18_a_shutdown_does_not_wait_for_a_build_that_blocks() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = leasehold::testing::MemoryStore::new();
    let report = ReportId::from_name("report");
    runtime.block_on(store.provision(report, budget())).unwrap();
    let supervisor = {
        let _entered = runtime.enter();
        leasehold::LeaseSupervisor::new(store, leasehold::LeasePolicy::builder(secs(30)).build().unwrap()).unwrap()
    };
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let (began, begin) = std::sync::mpsc::channel();
    let running = {
        let supervisor = supervisor.clone();
        runtime.spawn(async move {
            let build = move |lease: leasehold::Lease| {
                began.send(lease.fence()).unwrap();
                let _ = ended.recv();
                Ok::<_, ()>("never published")
            };
            supervisor.run_blocking(report, None, build).await
        })
    };
    let fence = begin.recv().unwrap();
    let (started, limit) = (std::time::Instant::now(), Duration::from_millis(400));
    let told = runtime.block_on(supervisor.shutdown(limit));
    assert!(started.elapsed() < limit + secs(4), "for busy machines: {:?}", started.elapsed());
    assert_eq!(told.not_released, [fence]);
    drop(end);
    wait_until("the build's end", || running.is_finished());
}
