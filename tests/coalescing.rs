//! Renewals of many guards leave together, and no guard pays for another's trouble.

mod support;

use std::time::Duration;

use leasehold::store::Store;
use leasehold::testing::{Fault, Gate, Operation};
use leasehold::{Holder, LeaseGuard, LeasePolicy, LeaseStatus, LossReason, ReportId, StoreErrorKind};
use support::*;
use tokio::time::sleep;

async fn guards(scene: &Scene, count: usize) -> Vec<LeaseGuard> {
    guards_named(scene, 0..count).await
}

async fn guards_named(scene: &Scene, indices: std::ops::Range<usize>) -> Vec<LeaseGuard> {
    let mut guards = Vec::new();
    for index in indices {
        let report = ReportId::from_name(&format!("report {index}"));
        scene.store.provision(report, budget()).await.unwrap();
        guards.push(acquire(&scene.supervisor, report).await);
    }
    guards
}

/// Makes the next renewals of all leave in one batch, behind the first, which is held until all are due.
async fn next_renewals_in_one_batch(scene: &Scene) {
    let gate = Gate::new();
    scene.store.plan(Operation::Renew, Fault::HoldAnswer(gate.clone()));
    let batches = scene.store.calls(Operation::RenewMany);
    gate.arrival().await;
    sleep(Duration::from_millis(1_100)).await;
    gate.open();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(scene.store.calls(Operation::RenewMany), batches + 1);
}

fn all_held(guards: &[LeaseGuard]) -> bool {
    guards.iter().all(|guard| matches!(guard.status(), LeaseStatus::Held { .. }))
}

#[tokio::test(start_paused = true)]
async fn what_arrives_while_a_statement_is_in_flight_leaves_together_in_the_next() {
    let scene = scene().await;
    let gate = Gate::new();
    scene.store.plan(Operation::Renew, Fault::HoldAnswer(gate.clone()));
    let guards = guards(&scene, 200).await;
    gate.arrival().await;
    // All others become due within the jitter of a second, while the first is in flight.
    sleep(Duration::from_millis(1_100)).await;
    assert_eq!(scene.store.renewals(), 1);
    gate.open();
    sleep(Duration::from_millis(1)).await;
    assert_eq!((scene.store.calls(Operation::Renew), scene.store.calls(Operation::RenewMany)), (1, 1));
    assert!(all_held(&guards));
}

#[tokio::test(start_paused = true)]
async fn a_statement_past_half_its_time_out_no_longer_holds_back_the_next() {
    let scene = scene().await;
    scene.store.plan(Operation::Renew, Fault::Hang);
    let guards = guards(&scene, 20).await;
    while scene.store.renewals() == 0 {
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_millis(2_300)).await;
    assert_eq!(scene.store.renewals(), 1, "the next is held back for half of the time-out of 5 s");
    sleep(Duration::from_millis(300)).await;
    assert_eq!(scene.store.calls(Operation::RenewMany), 1, "and no longer");
    sleep(secs(300)).await;
    assert!(all_held(&guards), "a slow statement costs nobody's lease");
}

#[tokio::test(start_paused = true)]
async fn a_failing_batch_trips_no_lease_that_still_has_time() {
    let scene = scene().await;
    let guards = guards(&scene, 50).await;
    sleep(secs(5)).await;
    for operation in [Operation::Renew, Operation::RenewMany] {
        scene.store.plan_always(operation, Fault::Fail(StoreErrorKind::Unavailable));
    }
    sleep(secs(20)).await;
    for operation in [Operation::Renew, Operation::RenewMany] {
        scene.store.plan_always(operation, None);
    }
    sleep(secs(100)).await;
    assert!(all_held(&guards));
}

#[tokio::test(start_paused = true)]
async fn as_many_silent_statements_as_may_be_in_flight_cost_no_short_lease() {
    let scene = scene_with(LeasePolicy::builder(Duration::from_millis(300))).await;
    let mut guards = Vec::new();
    for index in 0..12 {
        guards.extend(guards_named(&scene, index..index + 1).await);
        sleep(Duration::from_millis(8)).await;
    }
    for operation in [Operation::Renew, Operation::RenewMany] {
        scene.store.plan_always(operation, Fault::Hang);
    }
    let before = scene.store.renewals();
    while scene.store.renewals() < before + 4 {
        sleep(Duration::from_millis(1)).await;
    }
    for operation in [Operation::Renew, Operation::RenewMany] {
        scene.store.plan_always(operation, None);
    }
    sleep(secs(3)).await;
    assert!(all_held(&guards), "the database was silent for a third of their TTL");
}

#[tokio::test(start_paused = true)]
async fn one_lost_lease_of_a_batch_is_lost_alone() {
    let scene = scene().await;
    let guards = guards(&scene, 50).await;
    let victim = guards[17].lease().fence().report;
    scene.store.inner().force_release(victim, Holder::new("operator").unwrap(), budget()).await.unwrap();
    next_renewals_in_one_batch(&scene).await;
    sleep(secs(100)).await;
    for (index, guard) in guards.iter().enumerate() {
        match guard.status() {
            LeaseStatus::Lost(loss) => assert_eq!((index, loss.reason()), (17, LossReason::Forced)),
            _ => assert_ne!(index, 17),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_rejected_as_a_whole_is_renewed_one_by_one() {
    let scene = scene().await;
    scene.store.plan_always(Operation::RenewMany, Fault::Fail(StoreErrorKind::Invalid));
    let guards = guards(&scene, 50).await;
    next_renewals_in_one_batch(&scene).await;
    assert_eq!(scene.store.calls(Operation::Renew), 50, "the one that was held, and 49 of the batch");
    sleep(secs(100)).await;
    assert!(all_held(&guards));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_while_its_renewal_waits_is_not_renewed() {
    let scene = scene().await;
    let gate = Gate::new();
    scene.store.plan(Operation::Renew, Fault::HoldAnswer(gate.clone()));
    let _first = guards_named(&scene, 0..1).await;
    sleep(Duration::from_millis(1_100)).await;
    let second = guards_named(&scene, 1..2).await;
    gate.arrival().await;
    sleep(Duration::from_millis(2_200)).await;
    drop(second);
    sleep(Duration::from_millis(1)).await;
    gate.open();
    sleep(secs(1)).await;
    assert_eq!(scene.store.renewals(), 1, "the second waited behind the first, and was over when its turn came");
}

#[tokio::test(start_paused = true)]
async fn a_lone_lease_never_waits() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    sleep(secs(100)).await;
    assert_eq!(scene.store.calls(Operation::RenewMany), 0);
    assert!(matches!(guard.status(), LeaseStatus::Held { .. }));
}
