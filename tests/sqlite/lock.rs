//! Who waits for the file's one write lock, for how long, and what the others do meanwhile.

use std::time::Duration;

use leasehold::answer::{AcquireAnswer, RenewAnswer};
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::{Budget, Store};
use leasehold::{Generation, StoreErrorKind};
use rusqlite::Connection;

use crate::place::{Place, TTL, budget, report, request, take};

/// Somebody else with the write lock.
fn lock(place: &Place) -> Connection {
    let raw = place.raw();
    raw.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    raw
}

async fn until_waiting(store: &SqliteStore, calls: usize) {
    while store.calls_waiting_for_lock() != calls {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn short() -> Budget {
    Budget::within(Duration::from_millis(50))
}

#[tokio::test]
async fn a_lock_that_is_not_had_in_time_is_unavailable_and_nothing_was_done() {
    let place = Place::new();
    let store = place.open().await;
    let fence = take(&store, request(TTL)).await;
    let other = lock(&place);
    let error = store.release(fence, short()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("holds the write lock"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(store.renew(fence, TTL, budget()).await.unwrap(), RenewAnswer::Renewed { .. }));
}

#[tokio::test]
async fn opening_a_new_file_that_somebody_else_has_locked_is_bounded_too() {
    let place = Place::new();
    let raw = place.raw();
    raw.execute_batch("BEGIN EXCLUSIVE; CREATE TABLE Mine (Id INTEGER)").unwrap();
    let error = SqliteStore::open_within(place.file(), short()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    raw.execute_batch("COMMIT").unwrap();
    place.open().await;
}

#[tokio::test]
async fn a_spent_budget_is_unavailable_before_anything_begins() {
    let place = Place::new();
    let store = place.open().await;
    take(&store, request(TTL)).await;
    let spent = Budget::within(Duration::ZERO);
    let error = store.acquire(request(TTL), spent).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert_eq!(store.metadata(report(), spent).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn each_waiting_call_is_answered_by_its_own_budget_and_reads_go_past_them() {
    let place = Place::new();
    let store = place.open().await;
    let fence = take(&store, request(TTL)).await;
    let other = lock(&place);
    let patient = tokio::spawn({
        let store = store.clone();
        async move { store.renew(fence, TTL, budget()).await }
    });
    until_waiting(&store, 1).await;
    // Behind the patient one in the same queue.
    assert_eq!(store.renew(fence, TTL, short()).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert_eq!(store.inspect(report(), budget()).await.unwrap().unwrap().metadata.generation, fence.generation);
    assert!(!patient.is_finished());
    other.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(patient.await.unwrap().unwrap(), RenewAnswer::Renewed { .. }));
    until_waiting(&store, 0).await;
}

#[tokio::test]
async fn a_call_whose_caller_has_gone_is_not_begun() {
    let place = Place::new();
    let store = place.open().await;
    store.provision(report(), budget()).await.unwrap();
    let other = lock(&place);
    let caller = tokio::spawn({
        let store = store.clone();
        async move { store.acquire(request(TTL), budget()).await }
    });
    until_waiting(&store, 1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    // Before the lock is free: what has begun when its caller goes is not taken back.
    until_waiting(&store, 0).await;
    other.execute_batch("ROLLBACK").unwrap();
    let answer = store.acquire(request(TTL), budget()).await.unwrap();
    let AcquireAnswer::Acquired(acquired) = answer else { panic!("taken by nobody: {answer:?}") };
    assert_eq!(acquired.fence.generation, Generation::new(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_that_open_a_new_file_at_once_all_succeed() {
    for _ in 0..10 {
        let place = Place::new();
        let openings = (0..6).map(|_| {
            let file = place.file();
            tokio::spawn(async move { SqliteStore::open(file).await })
        });
        for opening in openings.collect::<Vec<_>>() {
            let store = opening.await.unwrap().expect("opened beside the others");
            assert!(store.check(budget()).await.unwrap().problems.is_empty());
        }
    }
}

/// How many connections of this process have the file open. The log beside it is no sign: two connections that close at the
/// same time each leave it to the other. And while one is open, SQLite keeps the files of the closed ones too, because
/// closing any of them would drop the locks of all.
#[cfg(target_os = "linux")]
fn connections(place: &Place) -> usize {
    let files = std::fs::read_dir("/proc/self/fd").expect("the open files").flatten();
    files.filter(|file| std::fs::read_link(file.path()).is_ok_and(|path| path == place.file())).count()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_thread_ends_and_closes_the_file_when_the_last_handle_is_dropped() {
    let place = Place::new();
    let store = place.open().await;
    let (twin, other) = (store.clone(), store.for_runtime(&tokio::runtime::Handle::current()));
    take(&other, request(TTL)).await;
    drop(store);
    twin.check(budget()).await.expect("a clone keeps the thread");
    drop(twin);
    drop(other);
    while connections(&place) != 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_handle_for_another_runtime_connects_at_its_first_call() {
    let place = Place::new();
    let store = place.open().await;
    assert_eq!(connections(&place), 1);
    let other = store.for_runtime(&tokio::runtime::Handle::current());
    assert_eq!(connections(&place), 1);
    other.provision(report(), budget()).await.unwrap();
    assert_eq!(connections(&place), 2);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_whose_time_is_paused_ends_no_call_early() {
    let place = Place::new();
    let store = place.open().await;
    take(&store, request(TTL)).await;
}
