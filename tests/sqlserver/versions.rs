//! A schema that is older, newer, half there or not there at all.

use leasehold::store::Store;
use leasehold::{StoreError, StoreErrorKind};

use crate::support::{Schema, config};
use crate::words::{TTL, budget, every_worker_operation, publication, says, take, unknown_report};

const RUN_INSTALL: &str = "run install()";

async fn a_call(schema: &Schema) -> Result<(), StoreError> {
    schema.store().metadata(unknown_report(), budget()).await.map(drop)
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn an_older_version_says_run_install_which_then_mends_it() {
    let schema = Schema::installed().await;
    let fence = take(&schema.store()).await;
    schema.change(&format!("UPDATE {}.LeaseholdStore SET SchemaVersion = 0 WHERE Id = 1", schema.quoted())).await;
    says(a_call(&schema).await, StoreErrorKind::Rejected, &["older version", RUN_INSTALL]);
    says(schema.store().check(budget()).await, StoreErrorKind::Rejected, &["older version", RUN_INSTALL]);
    schema.store().install(budget()).await.unwrap();
    schema.store().renew(fence, TTL, budget()).await.unwrap();
    every_worker_operation(&schema.store()).await;
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_missing_procedure_says_run_install_which_then_mends_it() {
    let schema = Schema::installed().await;
    let store = schema.store();
    let fence = take(&store).await;
    schema.change(&format!("DROP PROCEDURE {}.LeaseholdPublish", schema.quoted())).await;
    let request = publication(fence, "a report");
    says(store.publish(request.clone(), budget()).await, StoreErrorKind::Rejected, &[RUN_INSTALL]);
    store.install(budget()).await.unwrap();
    store.publish(request, budget()).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_newer_version_is_refused_by_calls_and_by_install_and_left_alone() {
    let schema = Schema::installed().await;
    let quoted = schema.quoted();
    schema.change(&format!("UPDATE {quoted}.LeaseholdStore SET SchemaVersion = 2 WHERE Id = 1")).await;
    schema.change(&format!("DROP PROCEDURE {quoted}.LeaseholdRenew")).await;
    says(a_call(&schema).await, StoreErrorKind::Rejected, &["version 2", "use a build that is as new"]);
    says(schema.store().install(budget()).await, StoreErrorKind::Rejected, &["newer version", "as new"]);
    let version = format!("SELECT CAST(SchemaVersion AS bigint) FROM {quoted}.LeaseholdStore");
    assert_eq!(schema.number(&version).await, 2);
    let procedures = format!(
        "SELECT CAST(COUNT(*) AS bigint) FROM sys.objects WHERE schema_id = SCHEMA_ID(N'{}') AND name = N'LeaseholdRenew'",
        schema.name
    );
    assert_eq!(schema.number(&procedures).await, 0, "nothing was put back");
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_schema_that_is_missing_says_run_install() {
    says(a_call(&Schema::missing().await).await, StoreErrorKind::Rejected, &[RUN_INSTALL]);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn tables_without_procedures_say_run_install() {
    let schema = Schema::missing().await;
    schema.change(&format!("CREATE SCHEMA {}", schema.quoted())).await;
    crate::article::create_table(&schema).await;
    says(a_call(&schema).await, StoreErrorKind::Rejected, &[RUN_INSTALL]);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_database_that_is_missing_is_named_as_the_trouble() {
    let mut config = config("leasehold tests");
    config.database("leasehold_no_such_database");
    let store = leasehold::store::sqlserver::SqlServerStore::builder().config(config).build().unwrap();
    says(
        store.metadata(unknown_report(), budget()).await,
        StoreErrorKind::Rejected,
        &["the database does not exist", "look at its name"],
    );
    says(store.install(budget()).await, StoreErrorKind::Rejected, &["the database does not exist"]);
}
