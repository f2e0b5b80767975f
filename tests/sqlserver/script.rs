//! `install_script()`, run as a DBA's client runs it: batch by batch, and on after an error.

use leasehold::StoreErrorKind;
use leasehold::store::Store;
use leasehold::store::sqlserver::{Client, SqlServerStore};

use crate::support::{Schema, raw, rows};
use crate::words::{every_worker_operation, says};

/// Runs a script as sqlcmd does without `-b`: an error stops nothing, and `SET NOEXEC ON` keeps the server from running what follows.
///
/// Babelfish knows no NOEXEC and ignores the setting; there this client stands for it, by the script's own condition.
async fn run_as_a_dba(client: &mut Client, script: &str, stands_for_noexec: bool) -> Vec<u32> {
    let (mut errors, mut skipping) = (Vec::new(), false);
    for batch in script.split("\nGO\n").filter(|batch| !batch.trim().is_empty()) {
        if batch.contains("SET NOEXEC OFF") {
            skipping = false;
        }
        if skipping {
            continue;
        }
        let answer = async { client.simple_query(batch).await?.into_results().await };
        match answer.await {
            Ok(_) => {}
            Err(leasehold::store::sqlserver::tiberius::error::Error::Server(error)) => errors.push(error.code()),
            Err(other) => panic!("{batch}: {other}"),
        }
        if stands_for_noexec && batch == "IF @@TRANCOUNT = 0 SET NOEXEC ON;" {
            let open = rows(client, "SELECT CAST(@@TRANCOUNT AS bigint)", &[]).await;
            skipping = open[0].get::<i64, _>(0) == Some(0);
        }
    }
    errors
}

async fn run(schema: &Schema) -> Vec<u32> {
    let script = SqlServerStore::install_script(&schema.name).expect("a script");
    let mut client = raw("a DBA").await;
    run_as_a_dba(&mut client, &script, schema.babelfish).await
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_dba_runs_the_script_and_runs_it_again() {
    let schema = Schema::missing().await;
    assert_eq!(run(&schema).await, []);
    let report = every_worker_operation(&schema.store()).await;
    assert_eq!(run(&schema).await, []);
    assert_eq!(crate::words::payload(&schema.store(), report).await.as_deref(), Some("third"));
    every_worker_operation(&schema.store()).await;
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn the_script_goes_on_where_install_ended_and_install_where_the_script_did() {
    let schema = Schema::installed().await;
    assert_eq!(run(&schema).await, []);
    schema.store().install(crate::words::budget()).await.unwrap();
    every_worker_operation(&schema.store()).await;
}

/// On Babelfish the client stands for NOEXEC; see `only_sql_server` for the server's own.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn the_script_changes_nothing_of_a_newer_version_though_the_client_goes_on_after_its_error() {
    let schema = Schema::installed().await;
    let quoted = schema.quoted();
    schema.change(&format!("UPDATE {quoted}.LeaseholdStore SET SchemaVersion = 2 WHERE Id = 1")).await;
    schema.change(&format!("DROP PROCEDURE {quoted}.LeaseholdRenew")).await;
    let errors = run(&schema).await;
    assert_eq!(errors, [51_802], "one error, in words, and silence after it");
    let version = format!("SELECT CAST(SchemaVersion AS bigint) FROM {quoted}.LeaseholdStore");
    assert_eq!(schema.number(&version).await, 2);
    says(
        schema.store().check(crate::words::budget()).await,
        StoreErrorKind::Rejected,
        &["version 2", "use a build that is as new"],
    );
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_script_that_fails_in_the_middle_changes_nothing() {
    let schema = Schema::missing().await;
    let quoted = schema.quoted();
    schema.change(&format!("CREATE SCHEMA {quoted}")).await;
    schema.change(&format!("CREATE TABLE {quoted}.LeaseholdRow (Mine int)")).await;
    assert_eq!(run(&schema).await.len(), 1);
    let tables = format!(
        "SELECT CAST(COUNT(*) AS bigint) FROM sys.objects WHERE schema_id = SCHEMA_ID(N'{}') AND type = 'U'",
        schema.name
    );
    assert_eq!(schema.number(&tables).await, 1, "only what was there");
}

#[test]
fn the_script_is_for_people_and_names_the_schema() {
    let script = SqlServerStore::install_script("o'brien's ]").unwrap();
    assert!(script.starts_with("-- leasehold, schema version 1, for the schema [o'brien's ]]]."), "{}", &script[..120]);
    assert!(script.contains("leasehold_worker") && script.contains("stop its old workers first"));
    says(SqlServerStore::install_script(""), StoreErrorKind::Invalid, &["choose another"]);
}
