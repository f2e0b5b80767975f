//! Publications whose answer is lost, and second ones.

use std::time::Duration;

use leasehold::answer::{CloseAnswer, Ending, PublishAnswer, Refusal};
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::{AdvanceRequest, CloseRequest, Store};
use leasehold::testing::{Fault, FaultyStore, Operation};
use leasehold::{LeasePolicy, LeaseSupervisor, Outcome, Owner, PublishError, StoreErrorKind};

use crate::place::{Place, TTL, budget, publication, report, request, take};
use crate::support::acquire;

/// Counts, in the database, every write of a payload and of a ledger row that says published.
fn count_writes(place: &Place) {
    let counter = "CREATE TABLE Writes (What TEXT NOT NULL);
        CREATE TRIGGER CountInserts AFTER INSERT ON ReportPayload BEGIN INSERT INTO Writes VALUES ('payload'); END;
        CREATE TRIGGER CountUpdates AFTER UPDATE ON ReportPayload BEGIN INSERT INTO Writes VALUES ('payload'); END;
        CREATE TRIGGER CountPublished AFTER INSERT ON ReportLedger WHEN NEW.OperationId IS NOT NULL
        BEGIN INSERT INTO Writes VALUES ('ledger'); END;";
    place.raw().execute_batch(counter).unwrap();
}

fn writes(place: &Place) -> (i64, i64) {
    let writes = "SELECT count(*) FILTER (WHERE What = 'payload'), count(*) FILTER (WHERE What = 'ledger') FROM Writes";
    place.raw().query_row(writes, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

/// ef6#218: a commit whose acknowledgement was lost was retried as a new one, or told as failed.
#[tokio::test]
async fn case_03_a_publication_whose_acknowledgement_is_lost_is_published_once() {
    let faults = [Fault::LoseAnswer, Fault::HangAfterwards];
    // The retry repeats, is lost again, or fails for as long as anybody tries.
    let retries = [None, Some(Fault::LoseAnswer), Some(Fault::Fail(StoreErrorKind::Unavailable))];
    for (lost, retry) in faults.iter().flat_map(|lost| retries.iter().map(move |retry| (lost, retry))) {
        for advances in [false, true] {
            let what = format!("{lost:?}, then {retry:?}, advances: {advances}");
            let place = Place::new();
            let store = FaultyStore::new(place.open().await);
            store.provision(report(), budget()).await.unwrap();
            count_writes(&place);
            let operation = if advances { Operation::PublishAndAdvance } else { Operation::Publish };
            store.plan(operation, lost.clone());
            store.plan_always(operation, retry.clone());
            let policy = LeasePolicy::builder(TTL).operation_timeout(Duration::from_millis(500)).build().unwrap();
            let supervisor = LeaseSupervisor::new(store.clone(), policy).unwrap();
            let mut publication = acquire(&supervisor, report()).await.publication("once");
            if advances {
                publication = publication.and_advance();
            }
            let ticket = publication.ticket();
            let receipt = match publication.send().await {
                Ok(receipt) => receipt,
                Err(PublishError::Unresolved(unresolved)) => {
                    assert!(retry.is_some(), "{what}");
                    assert_eq!(unresolved.ticket(), ticket);
                    let Outcome::Published(receipt) = publication.resolve().await.unwrap() else { panic!("{what}") };
                    receipt
                }
                Err(error) => panic!("{what}: {error}"),
            };
            assert_eq!((receipt.operation, receipt.generation.get()), (ticket.operation, 1), "{what}");
            assert_eq!(publication.send().await.unwrap(), receipt, "{what}: and again");
            drop(publication);
            assert_eq!(supervisor.resolve(ticket).await.unwrap(), Outcome::Published(receipt), "{what}: and later");
            assert_eq!(writes(&place), (1, 1), "{what}");
        }
    }
}

/// The same below the client: the database knows the operation, also when another lease has gone on meanwhile.
#[tokio::test]
async fn case_03_the_same_operation_again_is_already_published() {
    let place = Place::new();
    let store = place.open().await;
    store.provision(report(), budget()).await.unwrap();
    count_writes(&place);
    let request_sent = publication(take(&store, request(TTL)).await, "once");
    let PublishAnswer::Published(first) = store.publish(request_sent.clone(), budget()).await.unwrap() else {
        panic!()
    };
    for _ in 0..3 {
        let again = store.publish(request_sent.clone(), budget()).await.unwrap();
        assert_eq!(again, PublishAnswer::AlreadyPublished(first));
        take(&store, request(TTL)).await;
        let lease = "UPDATE ReportPublication SET LeaseUntilNanos = 0";
        place.raw().execute(lease, []).unwrap();
    }
    assert_eq!(writes(&place), (1, 1));
}

/// A second result of the same holder overwrote the first.
#[tokio::test]
async fn case_09_a_second_publication_of_a_generation_is_refused_by_the_database() {
    for first_advances in [false, true] {
        for second_advances in [false, true] {
            let place = Place::new();
            let store = place.open().await;
            let fence = take(&store, request(TTL)).await;
            let (first, second) = (publication(fence, "first"), publication(fence, "second"));
            let operation = first.operation;
            let answer = send(&store, first, first_advances).await;
            assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
            for _ in 0..2 {
                let answer = send(&store, second.clone(), second_advances).await;
                assert_eq!(answer, PublishAnswer::Refused(Refusal::GenerationPublished { operation }));
            }
            let payload: String =
                place.raw().query_row("SELECT Payload FROM ReportPayload", [], |row| row.get(0)).unwrap();
            assert_eq!(payload, "first");
        }
    }
}

async fn send(store: &SqliteStore, publish: leasehold::store::PublishRequest, advances: bool) -> PublishAnswer {
    if advances {
        let request = AdvanceRequest { publish, next_owner: Owner::random(), ttl: TTL };
        store.publish_and_advance(request, budget()).await.unwrap()
    } else {
        store.publish(publish, budget()).await.unwrap()
    }
}

/// Many at once, from connections of their own: one of them, whichever comes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_09_of_many_publications_of_a_generation_at_once_one_is_accepted() {
    let place = Place::new();
    let store = place.open().await;
    for _ in 0..5 {
        let fence = take(&store, request(TTL)).await;
        let mut sending = Vec::new();
        for index in 0..6 {
            let (other, request) = (place.open().await, publication(fence, &format!("result {index}")));
            sending.push(tokio::spawn(async move { (index, other.publish(request, budget()).await.unwrap()) }));
        }
        let mut accepted = Vec::new();
        for sent in sending {
            match sent.await.unwrap() {
                (index, PublishAnswer::Published(_)) => accepted.push(index),
                (_, answer) => assert!(matches!(answer, PublishAnswer::Refused(Refusal::GenerationPublished { .. }))),
            }
        }
        let [accepted] = accepted[..] else { panic!("one, not {accepted:?}") };
        let payload: String = place.raw().query_row("SELECT Payload FROM ReportPayload", [], |row| row.get(0)).unwrap();
        assert_eq!(payload, format!("result {accepted}"));
    }
}

/// Neither after the acquisition was closed, nor under another lease with an operation that was used.
#[tokio::test]
async fn case_09_no_detour_leads_to_a_second_publication() {
    let place = Place::new();
    let store = place.open().await;
    let closed = take(&store, request(TTL)).await;
    let learned = Some((closed.generation, closed.epoch));
    let close = CloseRequest { report: report(), owner: closed.owner, learned };
    assert_eq!(store.close(close, budget()).await.unwrap(), CloseAnswer::Ended(Ending::Closed));
    let answer = store.publish(publication(closed, "after the close"), budget()).await.unwrap();
    assert!(matches!(answer, PublishAnswer::Refused(_)), "{answer:?}");

    let first = take(&store, request(TTL)).await;
    let used = publication(first, "first");
    assert!(matches!(store.publish(used.clone(), budget()).await.unwrap(), PublishAnswer::Published(_)));
    let mut reused = publication(take(&store, request(TTL)).await, "second");
    reused.operation = used.operation;
    let answer = store.publish(reused, budget()).await.unwrap();
    let generation = first.generation;
    assert_eq!(answer, PublishAnswer::Refused(Refusal::OperationReused { generation }));
}
