//! What users of the memory store rely on: its clock can be stepped, and stands still in a paused runtime.
#![cfg(feature = "test-util")]

use std::time::Duration;

use leasehold::answer::{AcquireAnswer, Refusal, RenewAnswer};
use leasehold::store::{AcquireRequest, Budget, Store};
use leasehold::testing::MemoryStore;
use leasehold::{Epoch, Fence, Holder, Owner, ReportId};

const TTL: Duration = Duration::from_secs(30);

fn budget() -> Budget {
    Budget::within(Duration::from_secs(5))
}

async fn acquire(store: &MemoryStore, report: ReportId) -> AcquireAnswer {
    let request = AcquireRequest {
        report,
        owner: Owner::random(),
        ttl: TTL,
        holder: Holder::of_this_process(),
        min_epoch: Epoch::new(0),
        takeover_delay: Duration::ZERO,
        wanted: None,
    };
    store.acquire(request, budget()).await.expect("acquire")
}

async fn held(store: &MemoryStore) -> Fence {
    let report = ReportId::from_name("a report");
    store.provision(report, budget()).await.expect("provision");
    match acquire(store, report).await {
        AcquireAnswer::Acquired(lease) => lease.fence,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_stepped_clock_expires_leases() {
    let store = MemoryStore::new();
    let fence = held(&store).await;
    store.clock().step(TTL - Duration::from_secs(10));
    assert!(matches!(acquire(&store, fence.report).await, AcquireAnswer::Busy(_)));
    store.clock().step(Duration::from_secs(10));
    assert!(matches!(acquire(&store, fence.report).await, AcquireAnswer::Acquired(_)));
}

#[tokio::test]
async fn a_clock_that_steps_back_revives_nothing_that_was_seen_expired() {
    let store = MemoryStore::new();
    let fence = held(&store).await;
    store.clock().step(TTL);
    let expired = RenewAnswer::Refused(Refusal::Expired);
    assert_eq!(store.renew(fence, TTL, budget()).await.expect("renew"), expired);
    store.clock().step_back(TTL);
    assert_eq!(store.renew(fence, TTL, budget()).await.expect("renew"), expired);
}

#[tokio::test(start_paused = true)]
async fn a_paused_runtime_pauses_the_store() {
    let store = MemoryStore::new();
    let fence = held(&store).await;
    tokio::time::sleep(TTL - Duration::from_millis(1)).await; // No time passes outside.
    let renewed = RenewAnswer::Renewed { remaining: TTL };
    assert_eq!(store.renew(fence, TTL, budget()).await.expect("renew"), renewed);
    tokio::time::sleep(TTL).await;
    let expired = RenewAnswer::Refused(Refusal::Expired);
    assert_eq!(store.renew(fence, TTL, budget()).await.expect("renew"), expired);
}

#[test]
fn clones_are_one_database_in_any_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let (here, there) = (runtime(), runtime());
    let store = MemoryStore::new();
    let fence = here.block_on(held(&store));
    let engine = store.for_runtime(there.handle());
    let answer = there.block_on(engine.renew(fence, TTL, budget())).expect("renew");
    assert!(matches!(answer, RenewAnswer::Renewed { .. }), "{answer:?}");
}
