//! What Babelfish cannot show: ownership chaining, READ_COMMITTED_SNAPSHOT, READPAST, lock hints, NOEXEC, SQL Server's error numbers.
//!
//! Each test makes a database of its own, with a login that may (sysadmin), and fails on any other engine.

use std::time::Duration;

use leasehold::StoreErrorKind;
use leasehold::answer::{BatchRenewal, RenewAnswer};
use leasehold::store::sqlserver::tiberius::{AuthMethod, Config, error::Error};
use leasehold::store::sqlserver::{Client, SqlServerStore};
use leasehold::store::{Budget, Store};
use uuid::Uuid;

use crate::support::{batch, config, connect, is_babelfish, raw};
use crate::words::{
    TTL, budget, every_operator_operation, every_worker_operation, holder, payload, publish, request, says, take,
};

const PASSWORD: &str = "Hush-hush-8!";

/// A database with leasehold in `dbo`, and a login for it; both gone in the end.
struct OwnDatabase {
    name: String,
    admin: Client,
}

impl OwnDatabase {
    async fn new() -> Self {
        let mut admin = raw("leasehold tests").await;
        assert!(!is_babelfish(&mut admin).await, "this test needs Microsoft SQL Server");
        let name = format!("leasehold_{}", Uuid::new_v4().simple());
        batch(&mut admin, &format!("CREATE DATABASE {name}")).await;
        let database = Self { name, admin };
        database.store().install(budget()).await.expect("an installation");
        database
    }

    fn config(&self) -> Config {
        let mut config = config("leasehold tests");
        config.database(&self.name);
        config
    }

    fn store(&self) -> SqlServerStore {
        SqlServerStore::builder().config(self.config()).build().expect("a store")
    }

    async fn change(&mut self, sql: &str) {
        batch(&mut self.admin, &format!("USE {}; {sql}", self.name)).await;
    }

    async fn alter(&mut self, how: &str) {
        batch(&mut self.admin, &format!("USE master; ALTER DATABASE {} SET {how} WITH ROLLBACK IMMEDIATE", self.name))
            .await;
    }

    /// A configuration of a fresh login in this role only.
    async fn login(&mut self, role: &str) -> Config {
        let name = format!("{}_{role}", self.name);
        self.change(&format!("CREATE LOGIN {name} WITH PASSWORD = '{PASSWORD}'; CREATE USER {name} FOR LOGIN {name}"))
            .await;
        self.change(&format!("ALTER ROLE {role} ADD MEMBER {name}")).await;
        let mut config = self.config();
        config.authentication(AuthMethod::sql_server(&name, PASSWORD));
        config
    }
}

impl Drop for OwnDatabase {
    /// On a thread of its own, because a drop cannot wait for a future.
    fn drop(&mut self) {
        let name = self.name.clone();
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut raw = raw("leasehold tests").await;
                let alter =
                    format!("ALTER DATABASE {name} SET SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE {name}");
                batch(&mut raw, &alter).await;
                for role in ["leasehold_worker", "leasehold_operator"] {
                    let login = format!("{name}_{role}");
                    batch(&mut raw, &format!("IF SUSER_ID(N'{login}') IS NOT NULL DROP LOGIN {login}")).await;
                }
            });
        });
        let dropped = dropping.join();
        if !std::thread::panicking() {
            dropped.expect("the database is dropped");
        }
    }
}

fn store(config: Config) -> SqlServerStore {
    SqlServerStore::builder().config(config).build().expect("a store")
}

async fn number_of(client: &mut Client, sql: &str) -> Option<u32> {
    match async { client.simple_query(sql).await?.into_results().await }.await {
        Ok(_) => None,
        Err(Error::Server(error)) => Some(error.code()),
        Err(other) => panic!("{sql}: {other}"),
    }
}

const TABLES: [&str; 3] = ["dbo.ReportPublication", "dbo.ReportLedger", "dbo.LeaseholdStore"];
const OPERATORS: [&str; 5] = ["ForceRelease", "RequireRevision", "ResetRevision", "AdvanceEpoch", "Prune"];

#[tokio::test]
#[ignore = "needs Microsoft SQL Server: ownership chaining"]
async fn a_worker_does_all_of_a_workers_operations_and_touches_no_table() {
    let mut database = OwnDatabase::new().await;
    let login = database.login("leasehold_worker").await;
    let report = every_worker_operation(&store(login.clone())).await;
    let mut raw = connect(login.clone()).await;
    for table in TABLES {
        for sql in [
            format!("SELECT * FROM {table}"),
            format!("DELETE FROM {table}"),
            format!("INSERT INTO {table} DEFAULT VALUES"),
            format!("UPDATE {table} SET RecoveryEpoch = 9"),
        ] {
            assert_eq!(number_of(&mut raw, &sql).await, Some(229), "{sql}");
        }
    }
    for procedure in OPERATORS {
        assert_eq!(number_of(&mut raw, &format!("EXEC dbo.Leasehold{procedure}")).await, Some(229), "{procedure}");
    }
    // What procedures call is nobody's to call.
    for procedure in ["Lock", "Found"] {
        assert_eq!(number_of(&mut raw, &format!("EXEC dbo.Leasehold{procedure}")).await, Some(229), "{procedure}");
    }
    let forced = store(login).force_release(report, holder("a worker"), budget()).await;
    says(forced, StoreErrorKind::Rejected, &["leasehold_operator", "error 229"]);
}

#[tokio::test]
#[ignore = "needs Microsoft SQL Server: ownership chaining"]
async fn an_operator_does_all_of_an_operators_operations_and_takes_no_lease() {
    let mut database = OwnDatabase::new().await;
    let fence = take(&database.store()).await;
    let login = database.login("leasehold_operator").await;
    let operator = store(login.clone());
    every_operator_operation(&operator, fence.report).await;
    operator.inspect(fence.report, budget()).await.unwrap();
    says(operator.acquire(request(fence.report), budget()).await, StoreErrorKind::Rejected, &["error 229"]);
    let mut raw = connect(login).await;
    for table in TABLES {
        assert_eq!(number_of(&mut raw, &format!("UPDATE {table} SET RecoveryEpoch = 9")).await, Some(229), "{table}");
    }
}

#[tokio::test]
#[ignore = "needs Microsoft SQL Server: READ_COMMITTED_SNAPSHOT"]
async fn readers_wait_for_a_publication_under_way_unless_rows_have_versions() {
    let mut database = OwnDatabase::new().await;
    for (versions, waits) in [("OFF", true), ("ON", false)] {
        database.alter(&format!("READ_COMMITTED_SNAPSHOT {versions}")).await;
        let store = database.store();
        let fence = take(&store).await;
        publish(&store, fence, "a report").await;
        let mut blocker = connect(database.config()).await;
        let lock = format!(
            "BEGIN TRANSACTION; UPDATE dbo.ReportPublication SET LeaseHolder = N'b' WHERE ReportId = '{}'",
            fence.report
        );
        batch(&mut blocker, &lock).await;
        let isolation = store.check(budget()).await.unwrap().isolation;
        assert_eq!(isolation.contains("readers wait for writers"), waits, "{isolation}");
        let read = store.read(fence.report, None, Budget::within(Duration::from_millis(500))).await;
        assert_eq!(read.is_err(), waits, "{versions}: {read:?}");
        batch(&mut blocker, "ROLLBACK TRANSACTION").await;
        assert_eq!(payload(&store, fence.report).await.as_deref(), Some("a report"));
    }
}

#[tokio::test]
#[ignore = "needs Microsoft SQL Server: READPAST and lock hints"]
async fn a_locked_row_is_skipped_by_a_batch_and_unavailable_to_a_renewal() {
    let database = OwnDatabase::new().await;
    let store = database.store();
    let (locked, free) = (take(&store).await, take(&store).await);
    for hints in ["XLOCK, ROWLOCK", "UPDLOCK, ROWLOCK"] {
        let mut blocker = connect(database.config()).await;
        let table = "dbo.ReportPublication";
        let lock = format!("SELECT Generation FROM {table} WITH ({hints}) WHERE ReportId = '{}'", locked.report);
        batch(&mut blocker, &format!("BEGIN TRANSACTION; {lock}")).await;
        let renewed = store.renew_many(vec![locked, free], TTL, budget()).await.unwrap();
        assert_eq!(renewed[0], BatchRenewal::Skipped, "{hints}");
        assert!(matches!(renewed[1], BatchRenewal::Answered(RenewAnswer::Renewed { .. })), "{hints}: {renewed:?}");
        let short = Budget::within(Duration::from_millis(300));
        says(store.renew(locked, TTL, short).await, StoreErrorKind::Unavailable, &["locked by somebody else", "1222"]);
        batch(&mut blocker, "COMMIT TRANSACTION").await;
        store.renew(locked, TTL, budget()).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs Microsoft SQL Server: ALTER DATABASE"]
async fn a_read_only_database_is_read_and_says_so_when_written() {
    let mut database = OwnDatabase::new().await;
    let fence = take(&database.store()).await;
    publish(&database.store(), fence, "a report").await;
    database.alter("READ_ONLY").await;
    let store = database.store();
    assert_eq!(payload(&store, fence.report).await.as_deref(), Some("a report"));
    says(store.acquire(request(fence.report), budget()).await, StoreErrorKind::Rejected, &["read-only", "3906"]);
    database.alter("READ_WRITE").await;
}

#[tokio::test]
#[ignore = "needs Microsoft SQL Server: error 2812"]
async fn a_missing_procedure_is_error_2812_and_says_run_install() {
    let mut database = OwnDatabase::new().await;
    let store = database.store();
    let fence = take(&store).await;
    database.change("DROP PROCEDURE dbo.LeaseholdRenew").await;
    says(store.renew(fence, TTL, budget()).await, StoreErrorKind::Rejected, &["run install()", "2812"]);
}

#[tokio::test]
#[ignore = "needs Microsoft SQL Server: Babelfish takes no ] in a name"]
async fn a_name_with_a_closing_bracket_works_from_end_to_end() {
    crate::names::works_from_end_to_end(&crate::names::unique("a]]b]; DROP TABLE x; --")).await;
}

#[tokio::test]
#[ignore = "needs Microsoft SQL Server: SET NOEXEC"]
async fn after_an_error_the_script_keeps_the_server_from_running_the_rest() {
    let mut database = OwnDatabase::new().await;
    database.change("UPDATE dbo.LeaseholdStore SET SchemaVersion = 2; DROP PROCEDURE dbo.LeaseholdRenew").await;
    let mut client = connect(database.config()).await;
    let script = SqlServerStore::install_script("dbo").unwrap();
    let mut errors = Vec::new();
    for batch in script.split("\nGO\n").filter(|batch| !batch.trim().is_empty()) {
        errors.extend(number_of(&mut client, batch).await);
    }
    assert_eq!(errors, [51_802]);
    let gone = "IF OBJECT_ID(N'dbo.LeaseholdRenew') IS NOT NULL THROW 50001, N'it was put back', 1";
    assert_eq!(number_of(&mut client, gone).await, None);
}
