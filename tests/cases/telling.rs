//! What callers are told, and that asking costs them nothing.

use std::time::Duration;

use leasehold::store::Store;
use leasehold::store::sqlite::SqliteStore;
use leasehold::testing::{Fault, FaultyStore, Gate, Operation};
use leasehold::{AcquireError, Holder, LeasePolicy, LeaseStatus, LeaseSupervisor, LossReason, StoreErrorKind};
use tokio::time::sleep;

use crate::place::{Place, budget, report};
use crate::support::{TTL, acquire, policy, scene, secs};

/// ShedLock#1254: a job that did not run because the database was down looked like one that another node ran.
#[tokio::test(start_paused = true)]
async fn case_14_busy_unavailable_and_unknown_are_told_apart() {
    let scene = scene().await;
    let holder = Holder::new("host-a/17/reports").unwrap();
    let delay = secs(20);
    let theirs = acquire(&scene.rival_with(policy().holder(holder.clone()).takeover_delay(delay)), scene.report).await;
    sleep(secs(4)).await;
    let error = scene.supervisor.acquire(scene.report, None).await.unwrap_err();
    let AcquireError::Busy(busy) = &error else { panic!("busy, not {error:?}") };
    assert_eq!((&busy.holder, busy.remaining), (&holder, TTL - secs(4) + delay), "who, and how long at least");
    assert!(error.is_transient());

    type IsIt = fn(&AcquireError) -> bool;
    let failures: [(StoreErrorKind, IsIt, bool); 4] = [
        (StoreErrorKind::Unavailable, |error| matches!(error, AcquireError::Unavailable(_)), true),
        (StoreErrorKind::Unknown, |error| matches!(error, AcquireError::Unknown(_)), true),
        (StoreErrorKind::Rejected, |error| matches!(error, AcquireError::Rejected(_)), false),
        (StoreErrorKind::Invalid, |error| matches!(error, AcquireError::Invalid(_)), false),
    ];
    for (kind, is_it, transient) in failures {
        // While it is busy and while it is free: what the database would have said makes no difference.
        scene.store.plan_always(Operation::Acquire, Fault::Fail(kind));
        let error = scene.supervisor.acquire(scene.report, None).await.unwrap_err();
        assert!(is_it(&error) && error.is_transient() == transient, "{kind:?}: {error:?}");
        assert!(!error.to_string().contains("holds it"), "{error}");
    }
    scene.store.plan_always(Operation::Acquire, None);
    theirs.release().await;
    assert!(scene.supervisor.acquire(scene.report, None).await.is_ok());
}

/// The same on a file: locked by somebody, not a database, or held by another worker.
#[tokio::test]
async fn case_14_a_locked_file_is_unavailable_and_a_held_report_is_busy() {
    let place = Place::new();
    let store = place.open().await;
    store.provision(report(), budget()).await.unwrap();
    let policy = || LeasePolicy::builder(secs(30)).operation_timeout(Duration::from_millis(300)).build().unwrap();
    let supervisor = LeaseSupervisor::new(store.clone(), policy()).unwrap();
    let blocker = place.raw();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = supervisor.acquire(report(), None).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error:?}");
    blocker.execute_batch("ROLLBACK").unwrap();

    let patient = LeaseSupervisor::new(place.open().await, LeasePolicy::builder(secs(30)).build().unwrap()).unwrap();
    let _guard = acquire(&patient, report()).await;
    let error = patient.acquire(report(), None).await.unwrap_err();
    assert!(matches!(error, AcquireError::Busy(_)), "{error:?}");

    let no_database = place.folder().join("notes.txt");
    std::fs::write(&no_database, "not a database, whatever its name says: ".repeat(100)).unwrap();
    let error = SqliteStore::open(&no_database).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
}

/// DistributedLock#85: the first look at the handle-lost token connected to the database and waited.
#[tokio::test]
async fn case_15_asking_for_the_loss_never_blocks_and_needs_no_runtime() {
    let place = Place::new();
    let store = FaultyStore::new(place.open().await);
    store.provision(report(), budget()).await.unwrap();
    let ttl = secs(4);
    let supervisor = LeaseSupervisor::new(store.clone(), LeasePolicy::builder(ttl).build().unwrap()).unwrap();
    let guard = acquire(&supervisor, report()).await;
    // A renewal is under way and never comes back, and the file is locked.
    let gate = Gate::new();
    store.plan_always(Operation::Renew, Fault::Hold(gate.clone()));
    gate.arrival().await;
    let blocker = place.raw();
    blocker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // Every way to ask, on a thread without a runtime, while the only thread of this runtime waits for it.
    let lease = guard.lease();
    let (guard, was_held) = std::thread::spawn(move || {
        let held = matches!(guard.status(), LeaseStatus::Held { .. })
            && matches!(guard.watch().current(), LeaseStatus::Held { .. })
            && matches!(lease.status(), LeaseStatus::Held { .. })
            && lease.checkpoint().is_ok()
            && !lease.child_token().is_cancelled()
            && lease.remaining() > Duration::ZERO
            && futures::FutureExt::now_or_never(guard.lost()).is_none();
        (guard, held)
    })
    .join()
    .unwrap();
    assert!(was_held);
    let asked = (store.calls(Operation::Inspect), store.calls(Operation::Read), store.calls(Operation::Metadata));
    assert_eq!(asked, (0, 0, 0), "nobody was asked");

    let token = guard.lease().child_token();
    let loss = std::thread::spawn(move || futures::executor::block_on(guard.lost())).join().unwrap();
    assert_eq!(loss.reason(), LossReason::DeadlinePassed);
    assert!(token.is_cancelled());
    blocker.execute_batch("ROLLBACK").unwrap();
}
