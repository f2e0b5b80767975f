//! Renewals that fail, hang, or whose answers are lost.

use std::time::Duration;

use leasehold::testing::{Fault, Gate, Operation};
use leasehold::{LeaseGuard, LeaseStatus, LossReason, StoreErrorKind};
use rusqlite::Connection;
use tokio::time::{Instant, sleep};

use crate::place::{Place, budget, report};
use crate::support::{DEADLINE, Scene, TTL, acquire, no_tasks_left, policy, scene, scene_with, secs};

const RENEWALS: [Operation; 2] = [Operation::Renew, Operation::RenewMany];

/// Guards whose renewals are due within the same second.
async fn guards(scene: &Scene, count: usize) -> Vec<LeaseGuard> {
    use leasehold::store::Store;
    let mut guards = Vec::new();
    for index in 0..count {
        let report = leasehold::ReportId::from_name(&format!("report {index}"));
        scene.store.provision(report, crate::support::budget()).await.unwrap();
        guards.push(acquire(&scene.supervisor, report).await);
    }
    guards
}

fn is_held(guard: &LeaseGuard) -> bool {
    matches!(guard.status(), LeaseStatus::Held { .. })
}

/// pglock#175, dynamolock#280: the holder thought it had lost a lease that its own renewal had just extended.
#[tokio::test(start_paused = true)]
async fn case_02_a_renewal_whose_acknowledgement_is_lost_is_still_held() {
    let late = Gate::new();
    for lost in [Fault::LoseAnswer, Fault::HangAfterwards, Fault::HoldAnswer(late.clone())] {
        // Alone, and in a batch with others.
        for count in [1, 8] {
            let scene = scene().await;
            let guards = guards(&scene, count).await;
            let fences: Vec<_> = guards.iter().map(|guard| guard.lease().fence()).collect();
            for renewal in RENEWALS {
                scene.store.plan_always(renewal, lost.clone());
            }
            sleep(secs(11)).await;
            assert!(scene.store.renewals() > 0 && guards.iter().all(|guard| guard.lease().renewals() == 0), "{lost:?}");
            assert!(guards.iter().all(is_held), "{lost:?}: of {count}");
            for renewal in RENEWALS {
                scene.store.plan_always(renewal, None);
            }
            sleep(secs(10)).await;
            assert!(guards.iter().all(|guard| guard.lease().renewals() >= 1), "{lost:?}: the next renewal succeeds");
            sleep(3 * TTL).await;
            assert!(guards.iter().all(is_held), "{lost:?}: of {count}");
            assert!(guards.iter().map(|guard| guard.lease().fence()).eq(fences), "{lost:?}: the same generation");
        }
    }
}

/// The other side of it: what was never acknowledged extends nothing here, though the database still counts the lease held.
#[tokio::test(start_paused = true)]
async fn case_02_acknowledgements_that_are_all_lost_keep_no_lease_beyond_its_deadline() {
    for lost in [Fault::LoseAnswer, Fault::HangAfterwards] {
        let scene = scene().await;
        for renewal in RENEWALS {
            scene.store.plan_always(renewal, lost.clone());
        }
        let asked_at = Instant::now();
        let guard = scene.acquire().await;
        assert_eq!(guard.lost().await.reason(), LossReason::DeadlinePassed);
        assert_eq!(asked_at.elapsed(), DEADLINE, "{lost:?}");
        assert!(!scene.is_free().await, "the database extended it");
        drop(guard);
        scene.free_within(TTL).await;
    }
}

/// codex-lb#1253, etcd#5571, DistributedLock#133: the loss was noticed when the driver gave up.
#[tokio::test(start_paused = true)]
async fn case_04_a_renewal_that_hangs_trips_by_the_local_deadline_whatever_the_socket_does() {
    for hang in [Fault::Hang, Fault::HangAfterwards, Fault::Hold(Gate::new()), Fault::HoldAnswer(Gate::new())] {
        // Whether one attempt or five are under way by then, and whether everything else hangs too.
        for (attempt, all_hang) in [(secs(1), false), (secs(5), true), (secs(17), true)] {
            let scene = scene_with(policy().attempt_timeout(attempt)).await;
            let asked_at = Instant::now();
            let guard = scene.acquire().await;
            let token = guard.lease().child_token();
            for renewal in RENEWALS {
                scene.store.plan_always(renewal, hang.clone());
            }
            if all_hang {
                for operation in [Operation::Release, Operation::Close, Operation::Publish, Operation::Inspect] {
                    scene.store.plan_always(operation, hang.clone());
                }
            }
            token.cancelled().await;
            assert_eq!(asked_at.elapsed(), DEADLINE, "{hang:?}, attempts of {attempt:?}");
            assert_eq!(guard.lost().await.reason(), LossReason::DeadlinePassed);
            assert!(guard.publish("late").await.is_err());
            assert_eq!(scene.store.calls(Operation::Publish), 0);
            no_tasks_left(&scene.supervisor).await;
        }
    }
}

/// The same in real time, on a file whose write lock somebody keeps: no call of the driver returns.
#[tokio::test]
async fn case_04_a_locked_database_file_trips_by_the_local_deadline() {
    use leasehold::store::Store;
    let (ttl, margin) = (secs(2), Duration::from_millis(800));
    let place = Place::new();
    let store = place.open().await;
    store.provision(report(), budget()).await.unwrap();
    let policy = leasehold::LeasePolicy::builder(ttl).margin(margin).cadence(ttl / 4).build().unwrap();
    let supervisor = leasehold::LeaseSupervisor::new(store.clone(), policy).unwrap();
    let guard = acquire(&supervisor, report()).await;
    let blocker: Connection = place.raw();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let loss = guard.lost().await;
    assert_eq!(loss.reason(), LossReason::DeadlinePassed);
    assert!(loss.past_deadline() < margin, "before the database could give it to others: {:?}", loss.past_deadline());
    blocker.execute_batch("ROLLBACK").unwrap();
}

/// pglock#40: one transient error dropped the lease. redisson#4698: errors were only logged, for ever.
#[tokio::test(start_paused = true)]
async fn case_05_two_failed_renewals_lose_nothing_and_errors_past_the_deadline_lose_it_with_the_reason() {
    // Errors that may pass. One that will not is case 12.
    let failures = [
        Fault::Fail(StoreErrorKind::Unavailable),
        Fault::Fail(StoreErrorKind::Unknown),
        Fault::LoseAnswer,
        Fault::Hang,
        Fault::Panic,
    ];
    for first in &failures {
        for second in &failures {
            let what = format!("{first:?}, then {second:?}");
            let scene = scene().await;
            scene.store.plan(Operation::Renew, first.clone());
            scene.store.plan(Operation::Renew, second.clone());
            let guard = scene.acquire().await;
            sleep(DEADLINE).await;
            assert!(is_held(&guard) && guard.lease().renewals() >= 1, "{what}");
            assert!(scene.store.renewals() >= 3, "{what}");
            sleep(10 * TTL).await;
            assert!(is_held(&guard), "{what}");
        }
    }
    for (always, kind) in [
        (failures[0].clone(), StoreErrorKind::Unavailable),
        (failures[1].clone(), StoreErrorKind::Unknown),
        (failures[3].clone(), StoreErrorKind::Unknown),
        (failures[4].clone(), StoreErrorKind::Unknown),
    ] {
        let scene = scene().await;
        scene.store.plan_always(Operation::Renew, always.clone());
        let asked_at = Instant::now();
        let guard = scene.acquire().await;
        let loss = guard.lost().await;
        assert_eq!((loss.reason(), asked_at.elapsed()), (LossReason::DeadlinePassed, DEADLINE), "{always:?}");
        assert_eq!(loss.last_error().map(leasehold::StoreError::kind), Some(kind), "{always:?}");
        assert!(scene.store.renewals() >= 3, "{always:?}: it was tried to the end");
    }
}
