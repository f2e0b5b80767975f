//! Workers that are paused, exit, or are killed: real processes on one database file.

use std::time::{Duration, Instant};

use leasehold::answer::{PublishAnswer, Refusal, ReleaseAnswer, RenewAnswer};
use leasehold::store::Store;
use leasehold::{LossReason, PublishError};

use crate::child;
use crate::place::{Place, budget, publish, report};
use crate::process::{Worker, hear, say, supervisor};
use crate::support::acquire;

const TTL: Duration = Duration::from_millis(1_200);

/// For machines that are busy.
const SLACK: Duration = Duration::from_secs(8);

/// Everything of the row and its payload, as text.
#[cfg(unix)]
fn row(place: &Place) -> String {
    let row = "SELECT concat_ws('|', Generation, LeaseOwner, LeaseUntilNanos, PublishedGeneration, PublishedAtUtc, Payload) \
               FROM ReportPublication LEFT JOIN ReportPayload USING (ReportId)";
    place.raw().query_row(row, [], |row| row.get(0)).unwrap()
}

/// Stops a worker at a moment at which it does not hold the file's write lock: it would stop everybody.
#[cfg(unix)]
fn suspend_outside_the_lock(worker: &Worker, place: &Place) {
    let raw = place.raw();
    raw.busy_timeout(Duration::from_millis(50)).unwrap();
    worker.suspend();
    while raw.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err() {
        worker.resume();
        worker.suspend();
    }
}

/// Kleppmann, "How to do distributed locking"; curator#1211; Jepsen's etcd 3.4.3.
#[cfg(unix)]
#[tokio::test]
async fn case_01_an_owner_paused_past_its_expiry_comes_back_and_changes_nothing() {
    if let Some(file) = child::file() {
        return paused_owner(&file).await;
    }
    for the_other in ["holds", "has published", "has released"] {
        let place = Place::new();
        let store = place.open().await;
        store.provision(report(), budget()).await.unwrap();
        let mut owner = Worker::start(
            "processes::case_01_an_owner_paused_past_its_expiry_comes_back_and_changes_nothing",
            &place.file(),
        );
        assert_eq!(owner.hear(), "holds generation 1 and renews it");
        suspend_outside_the_lock(&owner, &place);

        let other = supervisor(&store, Duration::from_secs(60));
        let theirs = other.acquire_wait(report(), None).await.unwrap().acquired().unwrap();
        assert_eq!(theirs.lease().fence().generation.get(), 2);
        let held = match the_other {
            "has published" => theirs.publish("theirs").await.map(|_| None).unwrap(),
            "has released" => {
                theirs.release().await;
                None
            }
            _ => Some(theirs),
        };
        // A renewal of theirs would change the row too, but not within this minute.
        let before = row(&place);

        owner.resume();
        assert_eq!(owner.hear(), "lost, and the build is gone", "{the_other}");
        assert_eq!(owner.hear(), "its publication is lost", "{the_other}");
        assert_eq!(owner.hear(), "the database refuses it all", "{the_other}");
        assert_eq!(row(&place), before, "{the_other}");
        assert!(owner.ended().success());
        drop(held);
    }
}

#[cfg(unix)]
async fn paused_owner(file: &std::path::Path) {
    use std::sync::Arc;

    let store = leasehold::store::sqlite::SqliteStore::open(file).await.unwrap();
    let guard = acquire(&supervisor(&store, TTL), report()).await;
    let (fence, token) = (guard.lease().fence(), guard.lease().child_token());
    guard.watch().changed().await;
    say(format_args!("holds generation {} and renews it", fence.generation));

    let alive = Arc::new(());
    let build = {
        let alive = Arc::clone(&alive);
        async move {
            std::future::pending::<()>().await;
            drop(alive);
        }
    };
    let loss = guard.supervise(build).await.unwrap_err();
    let expected =
        matches!(loss.reason(), LossReason::DeadlinePassed | LossReason::Expired | LossReason::Superseded { .. });
    assert!(expected && token.is_cancelled() && Arc::strong_count(&alive) == 1, "{loss}");
    say("lost, and the build is gone");

    let error = guard.publish("mine, too late").await.unwrap_err();
    assert!(matches!(error, PublishError::Lost(_)), "{error}");
    say("its publication is lost");

    // Also without the client's own look at the clock, and the same however often it comes.
    for _ in 0..2 {
        let superseded = |refusal| matches!(refusal, Refusal::Superseded { by } if by.get() == 2);
        let answer = publish(&store, fence, "mine, too late").await;
        assert!(matches!(answer, PublishAnswer::Refused(refusal) if superseded(refusal)), "{answer:?}");
        let answer = store.renew(fence, TTL, budget()).await.unwrap();
        assert!(matches!(answer, RenewAnswer::Refused(refusal) if superseded(refusal)), "{answer:?}");
        assert_eq!(store.release(fence, budget()).await.unwrap(), ReleaseAnswer::AlreadyOver);
    }
    say("the database refuses it all");
}

/// ShedLock#2047 and #1932; rslock releases only in an async Drop.
#[tokio::test]
async fn case_11_a_process_that_ends_leaves_its_lease_for_one_ttl_at_most() {
    if let Some(file) = child::file() {
        return ending_owner(&file).await;
    }
    let place = Place::new();
    let store = place.open().await;
    store.provision(report(), budget()).await.unwrap();
    let supervisor = supervisor(&store, TTL);
    let mut generation = 0;
    for end in ["exit", "abort", "panic", "return", "shutdown", "killed"] {
        let test = "processes::case_11_a_process_that_ends_leaves_its_lease_for_one_ttl_at_most";
        let mut owner = Worker::start(test, &place.file());
        owner.say(end);
        assert_eq!(owner.hear(), "holds");
        let ended_at = Instant::now();
        match end {
            "killed" => owner.kill(),
            _ => assert_eq!(owner.ended().success(), matches!(end, "exit" | "return" | "shutdown"), "{end}"),
        }
        if matches!(end, "return" | "shutdown") {
            let lease = store.inspect(report(), budget()).await.unwrap().unwrap().lease;
            assert_eq!(lease, None, "{end}: it was released before the process was gone");
        }
        let guard = supervisor.acquire_wait(report(), None).await.unwrap().acquired().unwrap();
        assert!(ended_at.elapsed() < TTL + SLACK, "{end}: {:?}", ended_at.elapsed());
        generation += 2;
        assert_eq!(guard.lease().fence().generation.get(), generation, "{end}");
        guard.release().await;
    }
}

async fn ending_owner(file: &std::path::Path) {
    let end = hear();
    let store = leasehold::store::sqlite::SqliteStore::open(file).await.unwrap();
    let supervisor = supervisor(&store, TTL);
    let guard = acquire(&supervisor, report()).await;
    say("holds");
    match &*end {
        "exit" => std::process::exit(0),
        "abort" => std::process::abort(),
        "panic" => panic!("planned: the worker panics"),
        "return" => {
            drop(guard);
            // What a `main` that returns should do, so that the release is not cut off.
            assert!(supervisor.shutdown(SLACK).await.not_released.is_empty());
        }
        "shutdown" => assert!(supervisor.shutdown(SLACK).await.not_released.is_empty()),
        _ => std::future::pending().await,
    }
}
