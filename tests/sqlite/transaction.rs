//! A user's own statements: with the publication or not at all, and never out of their transaction.

use std::time::Duration;

use leasehold::answer::{CloseAnswer, Ending, PublishAnswer, Refusal, RenewAnswer};
use leasehold::store::sqlite::testing::ManualClock;
use leasehold::store::sqlite::{SqliteStore, Value};
use leasehold::store::{Budget, CloseRequest, FencedTransaction, Store};
use leasehold::{Fence, StoreError, StoreErrorKind};

use crate::place::{Place, TTL, budget, publication, publish, report, request, take};

async fn with_notes(place: &Place) -> (SqliteStore, Fence) {
    let store = place.open().await;
    place.raw().execute_batch("CREATE TABLE Notes (Note PRIMARY KEY)").unwrap();
    let fence = take(&store, request(TTL)).await;
    (store, fence)
}

fn notes(place: &Place) -> i64 {
    place.raw().query_row("SELECT count(*) FROM Notes", [], |row| row.get(0)).unwrap()
}

async fn run(store: &SqliteStore, fence: Fence, statements: &[&str]) -> Result<PublishAnswer, StoreError> {
    let mut transaction = store.begin(budget()).await?;
    transaction.execute("INSERT INTO Notes VALUES (?1)", [1.into()]);
    for statement in statements {
        transaction.execute(*statement, []);
    }
    transaction.publish(publication(fence, "payload"), budget()).await
}

#[tokio::test]
async fn every_kind_of_value_arrives() {
    let place = Place::new();
    let (store, fence) = with_notes(&place).await;
    let values: [Value; 5] = [None::<i64>.into(), 7.into(), 0.5.into(), "text".into(), vec![0_u8, 255].into()];
    let mut transaction = store.begin(budget()).await.unwrap();
    for value in values {
        transaction.execute("INSERT INTO Notes VALUES (?1)", [value]);
    }
    let answer = transaction.publish(publication(fence, "payload"), budget()).await.unwrap();
    assert!(matches!(answer, PublishAnswer::Published(_)));
    let kinds = "SELECT group_concat(typeof(Note)) FROM (SELECT Note FROM Notes ORDER BY rowid)";
    let kinds: String = place.raw().query_row(kinds, [], |row| row.get(0)).unwrap();
    assert_eq!(kinds, "null,integer,real,text,blob");
}

#[tokio::test]
async fn a_failing_statement_rolls_everything_back_and_is_named_without_its_text() {
    let place = Place::new();
    let (store, fence) = with_notes(&place).await;
    let failing = [
        "INSERT INTO Notes VALUES (1)",
        "INSERT INTO Nowhere VALUES ('secret')",
        "SELECT 'secret' FROM",
        "INSERT INTO Notes VALUES ('a' 'secret')",
        "INSERT INTO Notes VALUES ('secret)",
        "SELECT secret FROM Notes",
        "",
    ];
    for statement in failing {
        let error = run(&store, fence, &[statement]).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert!(error.to_string().contains("statement 2 of the transaction failed"), "{error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
    assert_eq!(notes(&place), 0);
    assert!(matches!(run(&store, fence, &[]).await.unwrap(), PublishAnswer::Published(_)));
    assert_eq!(notes(&place), 1);
}

#[tokio::test]
async fn no_statement_can_leave_its_transaction_or_write_the_protocols_tables() {
    let place = Place::new();
    let (store, fence) = with_notes(&place).await;
    let sly = format!(
        "CREATE TRIGGER Sly AFTER INSERT ON Notes BEGIN UPDATE {} SET Generation = 0; END",
        "ReportPublication"
    );
    let forbidden = [
        "COMMIT",
        "END",
        "ROLLBACK",
        "BEGIN",
        "SAVEPOINT Mine",
        "RELEASE Statements",
        "ROLLBACK TO Statements",
        "ATTACH ':memory:' AS Other",
        "DETACH main",
        "PRAGMA synchronous = OFF",
        "PRAGMA user_version",
        "VACUUM",
        "INSERT OR ROLLBACK INTO Notes VALUES (1)",
        "INSERT INTO Notes VALUES (2); COMMIT",
        "UPDATE ReportPublication SET LeaseOwner = NULL",
        "UPDATE reportpublication SET LeaseOwner = NULL",
        "UPDATE main.ReportPublication SET LeaseOwner = NULL",
        "INSERT INTO ReportLedger SELECT * FROM ReportLedger",
        "REPLACE INTO ReportPayload VALUES ('a', 'b')",
        "DELETE FROM LeaseholdStore",
        "DROP TABLE ReportLedger",
        "DROP INDEX ReportLedger_OperationId",
        "ALTER TABLE ReportLedger RENAME TO Mine",
        "ALTER TABLE Notes RENAME TO ReportOther; UPDATE ReportPublication SET Generation = 0",
        "CREATE TEMP TABLE ReportLedger (LeaseOwner)",
        "CREATE TEMP VIEW ReportPublication AS SELECT 1",
        "CREATE TABLE temp.ReportLedger (LeaseOwner)",
        "CREATE VIEW temp.ReportLedger AS SELECT 1",
        "CREATE VIRTUAL TABLE temp.ReportLedger USING fts5(LeaseOwner)",
        "CREATE TRIGGER Mine AFTER UPDATE ON ReportPublication BEGIN SELECT 1; END",
        "CREATE TEMP TRIGGER Mine AFTER UPDATE ON ReportPublication BEGIN SELECT 1; END",
        "CREATE UNIQUE INDEX Mine ON ReportPublication (LeaseHolder)",
        "UPDATE sqlite_schema SET sql = ''",
    ];
    for statement in forbidden {
        let error = run(&store, fence, &[statement]).await.expect_err(statement);
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{statement}: {error}");
        assert_eq!(notes(&place), 0, "{statement}");
        let renewed = store.renew(fence, TTL, budget()).await.unwrap();
        assert!(matches!(renewed, RenewAnswer::Renewed { .. }), "{statement}: {renewed:?}");
    }
    // A trigger of the user's own table that writes one of ours is found when it is used.
    let error = run(&store, fence, &[&sly, "INSERT INTO Notes VALUES (2)"]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    assert!(matches!(
        run(&store, fence, &["SELECT * FROM ReportPublication"]).await.unwrap(),
        PublishAnswer::Published(_)
    ));
}

#[tokio::test]
async fn a_temporary_table_that_is_renamed_to_one_of_ours_does_not_take_the_evidence() {
    let place = Place::new();
    let (store, fence) = with_notes(&place).await;
    let hiding = [
        "CREATE TEMP TABLE Mine (LeaseOwner, ReportId, Generation, RecoveryEpoch, OperationId, SourceRevision, EndedAtUtc)",
        "ALTER TABLE Mine RENAME TO ReportLedger",
    ];
    let error = run(&store, fence, &hiding).await.expect_err("it would hide the ledger");
    assert!(error.to_string().contains("statement 3 of the transaction failed"), "{error}");
    assert!(matches!(run(&store, fence, &[]).await.unwrap(), PublishAnswer::Published(_)));
    let close = CloseRequest { report: report(), owner: fence.owner, learned: Some((fence.generation, fence.epoch)) };
    let answer = place.open().await.close(close, budget()).await.unwrap();
    assert!(matches!(answer, CloseAnswer::Ended(Ending::Published(_))), "{answer:?}");
}

#[tokio::test]
async fn sent_again_it_was_published_and_its_statements_do_not_run_again() {
    let place = Place::new();
    let (store, fence) = with_notes(&place).await;
    let request = publication(fence, "payload");
    for sending in 0..2 {
        let mut transaction = store.begin(budget()).await.unwrap();
        transaction.execute("INSERT INTO Notes VALUES (?1)", [1.into()]);
        match (sending, transaction.publish(request.clone(), budget()).await.unwrap()) {
            (0, PublishAnswer::Published(_)) | (1, PublishAnswer::AlreadyPublished(_)) => {}
            (_, other) => panic!("{other:?}"),
        }
    }
    assert_eq!(notes(&place), 1);
}

#[tokio::test]
async fn a_lease_that_expires_while_the_statements_run_takes_them_back_and_is_over() {
    let (place, clock) = (Place::new(), ManualClock::new("boot", TTL));
    let store = place.open_at(&clock).await;
    place.raw().execute_batch("CREATE TABLE Notes (Note PRIMARY KEY)").unwrap();
    let fence = take(&store, request(TTL)).await;
    // Held when the transaction begins, over when the statements have run.
    clock.tick(TTL);
    assert_eq!(run(&store, fence, &[]).await.unwrap(), PublishAnswer::Refused(Refusal::Expired));
    clock.tick(Duration::ZERO);
    assert_eq!(notes(&place), 0);
    clock.step_back(2 * TTL);
    assert_eq!(publish(&store, fence, "late").await, PublishAnswer::Refused(Refusal::Expired), "it was recorded");
}

#[tokio::test]
async fn a_statement_without_end_is_stopped_by_the_budget() {
    let place = Place::new();
    let (store, fence) = with_notes(&place).await;
    let mut transaction = store.begin(budget()).await.unwrap();
    transaction.execute(
        "INSERT INTO Notes WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT max(i) FROM n",
        [],
    );
    let limit = Budget::within(Duration::from_millis(100));
    let error = transaction.publish(publication(fence, "payload"), limit).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert_eq!(notes(&place), 0);
    assert!(matches!(run(&store, fence, &[]).await.unwrap(), PublishAnswer::Published(_)));
}

#[tokio::test]
async fn a_deferred_foreign_key_is_checked_at_the_commit_and_rolls_back() {
    let place = Place::new();
    let (store, fence) = with_notes(&place).await;
    let table = "CREATE TABLE Child (Note REFERENCES Notes DEFERRABLE INITIALLY DEFERRED)";
    place.raw().execute_batch(table).unwrap();
    let error = run(&store, fence, &["INSERT INTO Child VALUES ('no parent')"]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    assert_eq!(notes(&place), 0);
    assert!(store.inspect(report(), budget()).await.unwrap().unwrap().lease.is_some(), "the lease goes on");
    assert!(matches!(run(&store, fence, &[]).await.unwrap(), PublishAnswer::Published(_)));
}

#[tokio::test]
async fn dropped_or_rolled_back_nothing_of_it_is_applied() {
    let place = Place::new();
    let (store, fence) = with_notes(&place).await;
    let mut transaction = store.begin(budget()).await.unwrap();
    transaction.execute("INSERT INTO Notes VALUES (1)", []);
    transaction.rollback(budget()).await.unwrap();
    let mut transaction = store.begin(budget()).await.unwrap();
    transaction.execute("INSERT INTO Notes VALUES (1)", []);
    drop(transaction);
    assert!(matches!(publish(&store, fence, "payload").await, PublishAnswer::Published(_)));
    assert_eq!(notes(&place), 0);
}
