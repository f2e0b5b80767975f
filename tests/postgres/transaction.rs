//! The fenced transaction's own affairs: what its statements may do, and what becomes of it when they do worse.

use std::time::{Duration, Instant};

use leasehold::StoreErrorKind;
use leasehold::answer::PublishAnswer;
use leasehold::conformance::Database;
use leasehold::store::postgres::{PostgresStore, PostgresTransaction, Type};
use leasehold::store::{Budget, FencedTransaction, Store};

use crate::scene::{Scene, budget, everything, fails, publishes, publishing};

async fn note(scene: &Scene, transaction: &mut PostgresTransaction, note: i64) {
    scene.db.write_note(transaction, note).await;
}

#[tokio::test]
async fn statements_see_each_others_changes_and_answer_rows() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let mut transaction = scene.store.begin(budget()).await.unwrap();
    note(&scene, &mut transaction, 7).await;
    let sql = format!("SELECT note FROM {}.notes WHERE note = $1", scene.db.schema);
    let rows = transaction.query(&sql, &[(&7_i64, Type::INT8)], budget()).await.unwrap();
    assert_eq!(rows[0].get::<_, i64>(0), 7);
    assert_eq!(scene.db.notes().await, [], "it was committed before its publication");
    transaction.publish(publishing(fence, "a report"), budget()).await.unwrap();
    assert_eq!(scene.db.notes().await, [7]);
}

#[tokio::test]
async fn a_publication_after_a_commit_of_the_users_own_is_refused() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    for then in ["", "BEGIN"] {
        let mut transaction = scene.store.begin(budget()).await.unwrap();
        transaction.execute("COMMIT", &[], budget()).await.unwrap();
        if !then.is_empty() {
            transaction.execute(then, &[], budget()).await.unwrap();
        }
        let answer = transaction.publish(publishing(fence, "a report"), budget()).await;
        fails(answer, StoreErrorKind::Rejected, "ended it");
    }
    assert_eq!(scene.db.row(scene.report).await.unwrap().payload, None);
    publishes(&scene.store, fence, "a report").await;
}

#[tokio::test]
async fn a_statement_that_fails_fails_the_whole_transaction_and_shows_no_value() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let sql = format!("CREATE UNIQUE INDEX one_of_each ON {}.notes (note)", scene.db.schema);
    scene.db.client.batch_execute(&sql).await.unwrap();
    let mut transaction = scene.store.begin(budget()).await.unwrap();
    note(&scene, &mut transaction, 4711).await;
    let sql = format!("INSERT INTO {}.notes (note) VALUES ($1)", scene.db.schema);
    let error = fails(
        transaction.execute(&sql, &[(&4711_i64, Type::INT8)], budget()).await,
        StoreErrorKind::Rejected,
        "one_of_each",
    );
    assert!(!everything(&error).contains("4711"), "{error:?}");
    fails(
        transaction.execute(&sql, &[(&1_i64, Type::INT8)], budget()).await,
        StoreErrorKind::Rejected,
        "begin another",
    );
    fails(
        transaction.publish(publishing(fence, "a report"), budget()).await,
        StoreErrorKind::Rejected,
        "begin another",
    );
    assert_eq!(scene.db.notes().await, []);
    publishes(&scene.store, fence, "a report").await;
}

#[tokio::test]
async fn a_statement_cannot_touch_the_protocols_tables() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let mut transaction = scene.store.begin(budget()).await.unwrap();
    let sql = format!("UPDATE {}.report_publication SET generation = 0", scene.db.schema);
    fails(transaction.execute(&sql, &[], budget()).await, StoreErrorKind::Rejected, "42501");
    publishes(&scene.store, fence, "a report").await;
}

#[tokio::test]
async fn a_statement_that_waits_beyond_its_budget_gives_the_transaction_up() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let lock = crate::support::connect(&scene.db.config).await;
    lock.batch_execute(&format!("BEGIN; LOCK TABLE {}.notes", scene.db.schema)).await.unwrap();
    let mut transaction = scene.store.begin(budget()).await.unwrap();
    let sql = format!("INSERT INTO {}.notes (note) VALUES (1)", scene.db.schema);
    let began = Instant::now();
    let answer = transaction.execute(&sql, &[], Budget::within(Duration::from_millis(200))).await;
    fails(answer, StoreErrorKind::Unavailable, "");
    assert!(began.elapsed() < Duration::from_secs(10));
    fails(
        transaction.publish(publishing(fence, "a report"), budget()).await,
        StoreErrorKind::Rejected,
        "begin another",
    );
    lock.batch_execute("ROLLBACK").await.unwrap();
    publishes(&scene.store, fence, "a report").await;
    assert_eq!(scene.db.notes().await, []);
}

#[tokio::test]
async fn a_client_that_is_stopped_keeps_no_lock_beyond_the_idle_limit() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let config = scene.db.store_config("leasehold_test_operator");
    let store = PostgresStore::from_config(config)
        .schema(&scene.db.schema)
        .idle_limit(Duration::from_millis(100))
        .build()
        .unwrap();
    let mut stopped = store.begin(budget()).await.unwrap();
    stopped.execute("SELECT pg_advisory_xact_lock(5)", &[], budget()).await.unwrap();
    // Waits until the server lets it go, because the client does nothing more.
    let other = crate::support::connect(&scene.db.config).await;
    other.batch_execute("SELECT pg_advisory_xact_lock(5)").await.unwrap();
    let answer = stopped.publish(publishing(fence, "late"), budget()).await;
    fails(answer, StoreErrorKind::Unavailable, "idle_limit");
    publishes(&store, fence, "a report").await;
}

#[tokio::test]
async fn what_a_transaction_sets_for_its_session_reaches_nobody_else() {
    let scene = Scene::new().await;
    let config = scene.db.store_config("leasehold_test_operator");
    let store = PostgresStore::from_config(config).schema(&scene.db.schema).pool_size(1).build().unwrap();
    let fence = crate::scene::acquires(&store, scene.report).await;
    let mut transaction = store.begin(budget()).await.unwrap();
    transaction.execute("SET statement_timeout = 1", &[], budget()).await.unwrap();
    transaction.execute("SET statement_timeout = 0", &[], budget()).await.unwrap();
    transaction.execute("SET application_name = 'mine'", &[], budget()).await.unwrap();
    assert!(matches!(
        transaction.publish(publishing(fence, "a report"), budget()).await.unwrap(),
        PublishAnswer::Published(_)
    ));
    let mut next = store.begin(budget()).await.unwrap();
    let rows = next.query("SELECT current_setting('application_name')", &[], budget()).await.unwrap();
    assert_eq!(rows[0].get::<_, String>(0), scene.db.schema);
    next.rollback(budget()).await.unwrap();
}

#[tokio::test]
async fn a_constraint_of_the_users_that_is_checked_at_the_commit_rejects_the_publication() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let sql = format!(
        "ALTER TABLE {}.notes ADD CONSTRAINT once UNIQUE (note) DEFERRABLE INITIALLY DEFERRED",
        scene.db.schema
    );
    scene.db.client.batch_execute(&sql).await.unwrap();
    let mut transaction = scene.store.begin(budget()).await.unwrap();
    note(&scene, &mut transaction, 1).await;
    note(&scene, &mut transaction, 1).await;
    let answer = transaction.publish(publishing(fence, "a report"), budget()).await;
    fails(answer, StoreErrorKind::Rejected, "constraint once");
    assert_eq!((scene.db.notes().await, scene.db.row(scene.report).await.unwrap().payload), (vec![], None));
    publishes(&scene.store, fence, "a report").await;
}

#[tokio::test]
async fn a_budget_of_years_is_no_error() {
    let scene = Scene::new().await;
    let years = || Budget::within(Duration::from_secs(100 * 365 * 86_400));
    let fence = scene.acquires().await;
    scene.store.renew(fence, crate::scene::TTL, years()).await.unwrap();
    let transaction = scene.store.begin(years()).await.unwrap();
    transaction.publish(publishing(fence, "a report"), years()).await.unwrap();
}
