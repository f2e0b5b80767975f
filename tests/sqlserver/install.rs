//! `install()`: on nothing, twice, at once, and failing in the middle.

use futures::future::join_all;
use leasehold::StoreErrorKind;
use leasehold::store::Store;

use crate::support::Schema;
use crate::words::{budget, every_operator_operation, every_worker_operation, payload, publish, says, take};

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn an_empty_database_is_installed_and_every_operation_works() {
    let schema = Schema::installed().await;
    let store = schema.store();
    let report = every_worker_operation(&store).await;
    every_operator_operation(&store, report).await;
    let check = store.check(budget()).await.unwrap();
    assert_eq!((check.schema_version, check.problems), (1, Vec::<String>::new()));
    assert!(check.isolation.starts_with("READ COMMITTED"), "{}", check.isolation);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn installed_again_it_keeps_rows_and_leases() {
    let schema = Schema::installed().await;
    let store = schema.store();
    let report = every_worker_operation(&store).await;
    let fence = take(&store).await;
    store.install(budget()).await.unwrap();
    assert_eq!(payload(&store, report).await.as_deref(), Some("third"));
    assert!(matches!(publish(&schema.store(), fence, "after").await, leasehold::answer::PublishAnswer::Published(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn installations_at_once_wait_for_each_other() {
    let schema = Schema::missing().await;
    let stores: Vec<_> = (0..4).map(|_| schema.store()).collect();
    for installed in join_all(stores.iter().map(|store| store.install(budget()))).await {
        installed.unwrap();
    }
    every_worker_operation(&stores[3]).await;
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn an_installation_that_fails_in_the_middle_changes_nothing() {
    let schema = Schema::missing().await;
    let quoted = schema.quoted();
    schema.change(&format!("CREATE SCHEMA {quoted}")).await;
    crate::article::create_table(&schema).await;
    // The tables come before it, the procedures after it.
    schema.change(&format!("CREATE TABLE {quoted}.LeaseholdRow (Mine int)")).await;
    let before = columns(&schema).await;
    let store = schema.store();
    says(store.install(budget()).await, StoreErrorKind::Rejected, &["error"]);
    assert_eq!(columns(&schema).await, before);
    assert_eq!(before, 7, "the article's table as it was, and nothing beside it");
    schema.change(&format!("DROP TABLE {quoted}.LeaseholdRow")).await;
    store.install(budget()).await.unwrap();
    every_worker_operation(&store).await;
}

/// How many columns leasehold's tables have.
async fn columns(schema: &Schema) -> i64 {
    let sql = format!(
        "SELECT CAST(COUNT(*) AS bigint) FROM sys.columns AS c INNER JOIN sys.objects AS o ON o.object_id = c.object_id \
         INNER JOIN sys.schemas AS s ON s.schema_id = o.schema_id WHERE s.name = N'{}' AND o.type = 'U' \
         AND o.name <> N'LeaseholdRow'",
        schema.name
    );
    schema.number(&sql).await
}
