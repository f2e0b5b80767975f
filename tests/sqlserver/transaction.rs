//! The fenced transaction: two tables of the user's with the publication or not at all, at every isolation level.

use std::time::Duration;

use leasehold::answer::{CloseAnswer, Ending, PublishAnswer, Refusal};
use leasehold::conformance::{Database, Harness};
use leasehold::store::sqlserver::{Isolation, SqlServerStore, SqlServerTransaction};
use leasehold::store::{Budget, FencedTransaction, Store};
use leasehold::{Fence, StoreError, StoreErrorKind};

use crate::support::{Schema, SqlServerHarness, batch, raw};
use crate::words::{TTL, acquire, budget, closing, holds, payload, publication, publish, says, take};

/// Leasehold's tables and two of the user's: `Notes`, and `Totals` with one row.
async fn with_two_tables() -> (Schema, SqlServerStore, Fence) {
    let schema = Schema::installed().await;
    let quoted = schema.quoted();
    schema.change(&format!("CREATE TABLE {quoted}.Totals (Id int NOT NULL PRIMARY KEY, Total bigint NOT NULL)")).await;
    schema.change(&format!("INSERT INTO {quoted}.Totals (Id, Total) VALUES (1, 0)")).await;
    let store = schema.store();
    let fence = take(&store).await;
    (schema, store, fence)
}

/// A note and its total, which belong together.
async fn note(schema: &Schema, transaction: &mut SqlServerTransaction, note: i64) -> Result<(), StoreError> {
    let quoted = schema.quoted();
    transaction.execute(&format!("INSERT INTO {quoted}.Notes (Note) VALUES (@P1)"), &[&note], budget()).await?;
    let sql = format!("UPDATE {quoted}.Totals SET Total = Total + @P1 WHERE Id = 1");
    assert_eq!(transaction.execute(&sql, &[&note], budget()).await?, 1);
    Ok(())
}

async fn notes_and_total(schema: &Schema) -> (i64, i64) {
    let quoted = schema.quoted();
    let notes = schema.number(&format!("SELECT CAST(COUNT(*) AS bigint) FROM {quoted}.Notes")).await;
    (notes, schema.number(&format!("SELECT Total FROM {quoted}.Totals")).await)
}

/// The levels that this engine has: Babelfish refuses two of them unless a setting of its own says otherwise.
fn levels(schema: &Schema) -> Vec<Isolation> {
    let all = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::RepeatableRead, Isolation::Serializable];
    if schema.babelfish { all[..2].to_vec() } else { vec![all[0], all[2], all[3]] }
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn two_tables_and_the_publication_are_committed_together_at_every_level() {
    let (schema, store, mut fence) = with_two_tables().await;
    let levels = levels(&schema);
    for (round, level) in levels.iter().enumerate() {
        let mut transaction = store.begin_with(*level, budget()).await.unwrap();
        note(&schema, &mut transaction, 10).await.unwrap();
        let answer = transaction.publish(publication(fence, "a report"), budget()).await.unwrap();
        assert!(matches!(answer, PublishAnswer::Published(_)), "{level:?}: {answer:?}");
        let rounds = i64::try_from(round).unwrap() + 1;
        assert_eq!(notes_and_total(&schema).await, (rounds, 10 * rounds), "{level:?}");
        fence = acquire(&store, fence.report).await;
    }
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_lost_fence_takes_both_tables_back_at_every_level() {
    let (schema, store, fence) = with_two_tables().await;
    store.release(fence, budget()).await.unwrap();
    let by = acquire(&store, fence.report).await;
    for level in levels(&schema) {
        let mut transaction = store.begin_with(level, budget()).await.unwrap();
        note(&schema, &mut transaction, 10).await.unwrap();
        let answer = transaction.publish(publication(fence, "late"), budget()).await.unwrap();
        assert!(matches!(answer, PublishAnswer::Refused(Refusal::Closed)), "{level:?}: {answer:?}");
        assert_eq!(notes_and_total(&schema).await, (0, 0), "{level:?}");
    }
    assert!(holds(&store, by).await);
    assert_eq!(payload(&store, fence.report).await, None);
}

/// Under a level that keeps what it read, a row that changed meanwhile cannot be judged by what the transaction sees: it is run again.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_row_that_changed_since_a_snapshot_makes_the_transaction_unavailable_and_applies_nothing() {
    let (schema, store, fence) = with_two_tables().await;
    if !levels(&schema).contains(&Isolation::Snapshot) {
        return println!("skipped: the database does not allow snapshots");
    }
    let mut transaction = store.begin_with(Isolation::Snapshot, budget()).await.unwrap();
    note(&schema, &mut transaction, 10).await.unwrap();
    store.renew(fence, 2 * TTL, budget()).await.unwrap();
    let answer = transaction.publish(publication(fence, "a report"), budget()).await;
    says(answer, StoreErrorKind::Unavailable, &["another transaction changed what this one had seen"]);
    assert_eq!(notes_and_total(&schema).await, (0, 0));
    let mut transaction = store.begin_with(Isolation::Snapshot, budget()).await.unwrap();
    note(&schema, &mut transaction, 10).await.unwrap();
    let answer = transaction.publish(publication(fence, "a report"), budget()).await.unwrap();
    assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
    assert_eq!(notes_and_total(&schema).await, (1, 10));
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_failing_statement_ends_the_transaction_and_its_error_is_the_source() {
    let (schema, store, fence) = with_two_tables().await;
    let quoted = schema.quoted();
    let failing = [
        format!("INSERT INTO {quoted}.Totals (Id, Total) VALUES (1, 0)"), // A duplicate key of the user's own.
        format!("INSERT INTO {quoted}.Totals (Id) VALUES (2)"),           // No total.
        format!("INSERT INTO {quoted}.Nowhere (Id) VALUES (2)"),
        "SELECT FROM WHERE".to_owned(),
        "THROW 50001, N'no', 1".to_owned(),
    ];
    for sql in failing {
        let mut transaction = store.begin(budget()).await.unwrap();
        note(&schema, &mut transaction, 10).await.unwrap();
        let error = transaction.execute(&sql, &[], budget()).await.expect_err(&sql);
        assert!(std::error::Error::source(&error).is_some(), "{error:?}");
        says(Err::<(), _>(error), StoreErrorKind::Rejected, &["a statement of the transaction failed", "(error "]);
        says(
            transaction.execute("SELECT 1", &[], budget()).await,
            StoreErrorKind::Rejected,
            &["the transaction is over", "begin another"],
        );
        let answer = transaction.publish(publication(fence, "a report"), budget()).await;
        says(answer, StoreErrorKind::Rejected, &["the transaction is over"]);
        assert_eq!(notes_and_total(&schema).await, (0, 0), "{sql}");
    }
    assert!(holds(&store, fence).await);
}

/// What such a statement commits is committed, and nothing else: the publication is refused, and what follows never runs.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_statement_that_ends_the_transaction_itself_publishes_nothing() {
    let (schema, store, fence) = with_two_tables().await;
    for (sql, committed) in [("ROLLBACK TRANSACTION", (0, 0)), ("COMMIT TRANSACTION", (1, 10))] {
        let mut transaction = store.begin(budget()).await.unwrap();
        note(&schema, &mut transaction, 10).await.unwrap();
        // Some engines refuse the statement at once (error 266), some at the publication.
        let ended = match transaction.execute(sql, &[], budget()).await {
            Ok(_) => transaction.publish(publication(fence, "a report"), budget()).await.map(drop),
            Err(error) => Err(error),
        };
        says(ended, StoreErrorKind::Rejected, &["transaction"]);
        assert_eq!(payload(&store, fence.report).await, None, "{sql}");
        assert_eq!(notes_and_total(&schema).await, committed, "{sql}");
    }
    assert!(holds(&store, fence).await);
    assert!(matches!(publish(&store, fence, "a report").await, PublishAnswer::Published(_)));
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_second_transaction_begun_by_a_statement_publishes_nothing() {
    let (schema, store, fence) = with_two_tables().await;
    let mut transaction = store.begin(budget()).await.unwrap();
    note(&schema, &mut transaction, 10).await.unwrap();
    let ended = match transaction.execute("BEGIN TRANSACTION", &[], budget()).await {
        Ok(_) => transaction.publish(publication(fence, "a report"), budget()).await.map(drop),
        Err(error) => Err(error),
    };
    says(ended, StoreErrorKind::Rejected, &["transaction"]);
    assert_eq!(notes_and_total(&schema).await, (0, 0));
    assert!(holds(&store, fence).await);
}

/// Dropped while it waits for a lock, a statement still waits on the server; nothing of it is committed, and no call after it reads its
/// answer.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_dropped_statement_takes_its_connection_and_everything_with_it() {
    let (schema, store, fence) = with_two_tables().await;
    let mut blocker = raw("leasehold blocker").await;
    batch(&mut blocker, &format!("BEGIN TRANSACTION; UPDATE {}.Totals SET Total = 0 WHERE Id = 1", schema.quoted()))
        .await;
    let mut transaction = store.begin(budget()).await.unwrap();
    let sql = format!("INSERT INTO {}.Notes (Note) VALUES (@P1)", schema.quoted());
    transaction.execute(&sql, &[&1_i64], budget()).await.unwrap();
    let sql = format!("UPDATE {}.Totals SET Total = 5 WHERE Id = 1", schema.quoted());
    let blocked = Budget::within(Duration::from_millis(100));
    says(
        transaction.execute(&sql, &[], blocked).await,
        StoreErrorKind::Unavailable,
        &["within its budget", "begin another"],
    );
    says(transaction.execute("SELECT 1", &[], budget()).await, StoreErrorKind::Rejected, &["the transaction is over"]);
    says(
        transaction.publish(publication(fence, "a report"), budget()).await,
        StoreErrorKind::Rejected,
        &["the transaction is over"],
    );
    batch(&mut blocker, "ROLLBACK TRANSACTION").await;
    // It waits for the row's lock, if the server still had it, and finds the old total.
    let mut next = store.begin(budget()).await.unwrap();
    note(&schema, &mut next, 10).await.unwrap();
    let answer = next.publish(publication(fence, "a report"), budget()).await.unwrap();
    assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
    assert_eq!(notes_and_total(&schema).await, (1, 10));
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn an_expiry_seen_in_the_last_trip_is_recorded_although_the_statements_are_rolled_back() {
    let database = SqlServerHarness::default().fresh().await;
    let store = database.connect().await;
    let fence = take(&store).await;
    let mut transaction = store.begin(budget()).await.unwrap();
    database.write_note(&mut transaction, 1).await;
    database.set_expiry(fence.report, -1).await;
    let answer = transaction.publish(publication(fence, "late"), budget()).await.unwrap();
    assert_eq!(answer, PublishAnswer::Refused(Refusal::Expired));
    assert_eq!(database.notes().await, []);
    assert_eq!(database.row(fence.report).await.unwrap().owner, None, "seen expired, it is over");
    // A clock that steps back revives nothing.
    database.set_expiry(fence.report, 60_000).await;
    assert_eq!(publish(&store, fence, "late").await, PublishAnswer::Refused(Refusal::Expired));
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn sent_again_it_was_published_and_its_statements_are_not_committed_again() {
    let (schema, store, fence) = with_two_tables().await;
    let request = publication(fence, "a report");
    for sending in 0..2 {
        let mut transaction = store.begin(budget()).await.unwrap();
        note(&schema, &mut transaction, 10).await.unwrap();
        let answer = transaction.publish(request.clone(), budget()).await.unwrap();
        match (sending, &answer) {
            (0, PublishAnswer::Published(_)) | (1, PublishAnswer::AlreadyPublished(_)) => {}
            _ => panic!("{sending}: {answer:?}"),
        }
    }
    assert_eq!(notes_and_total(&schema).await, (1, 10));
    let closed = store.close(closing(fence), budget()).await.unwrap();
    assert!(matches!(closed, CloseAnswer::Ended(Ending::Published(_))), "{closed:?}");
}

/// While the user's statements run, others renew, publish and take: only the last trip locks the report.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn before_the_last_trip_the_report_is_not_locked() {
    let (schema, store, fence) = with_two_tables().await;
    let mut transaction = store.begin(budget()).await.unwrap();
    note(&schema, &mut transaction, 10).await.unwrap();
    // A lock would be waited for, and cost the budget.
    store.renew(fence, TTL, budget()).await.unwrap();
    assert!(matches!(publish(&store, fence, "sooner").await, PublishAnswer::Published(_)));
    let answer = transaction.publish(publication(fence, "later"), budget()).await.unwrap();
    assert!(matches!(answer, PublishAnswer::Refused(Refusal::GenerationPublished { .. })), "{answer:?}");
    assert_eq!(notes_and_total(&schema).await, (0, 0));
}

/// A pool of one connection: the last trip leaves it usable, whatever its answer was.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn after_the_last_trip_its_connection_is_in_no_transaction_and_used_again() {
    let (schema, _, fence) = with_two_tables().await;
    let config = crate::support::config(&schema.name);
    let builder = SqlServerStore::builder().config(config).schema(&schema.name);
    let store = builder.max_connections(1).build().unwrap();
    for payload in ["a report", "again"] {
        let transaction = store.begin(budget()).await.unwrap();
        transaction.publish(publication(fence, payload), budget()).await.unwrap();
        let mut transaction = store.begin(budget()).await.unwrap();
        let open = transaction.query("SELECT @@TRANCOUNT AS [Open]", &[], budget()).await.unwrap();
        assert_eq!(open[0].get::<i32, _>("Open"), Some(1));
        transaction.rollback(budget()).await.unwrap();
    }
}
