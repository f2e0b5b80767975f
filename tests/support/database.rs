//! A database of a test's own, as the examples name theirs: an SQLite file in a folder of its own, or a schema on a server.
#![allow(dead_code, unused_variables)] // Shared by test binaries and features that each use a part of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use leasehold::store::Budget;
use leasehold::{ReportId, StoreError};
use tempfile::TempDir;

use crate::example_database::{Database, OpenStore};

/// Gone when dropped.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    folder: TempDir,
    place: Place,
}

#[derive(Debug)]
enum Place {
    File,
    #[cfg(all(feature = "sqlserver", feature = "conformance"))]
    Schema(Box<crate::sqlserver::Schema>),
    #[cfg(all(feature = "postgres", feature = "conformance"))]
    Postgres(crate::postgres_schema::PostgresSchema),
}

impl TestDatabase {
    pub(crate) fn on_sqlite() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), place: Place::File }
    }

    #[cfg(all(feature = "sqlserver", feature = "conformance"))]
    pub(crate) async fn on_sqlserver() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, place: Place::Schema(Box::new(crate::sqlserver::Schema::installed().await)) }
    }

    #[cfg(all(feature = "postgres", feature = "conformance"))]
    pub(crate) async fn on_postgres() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, place: Place::Postgres(crate::postgres_schema::PostgresSchema::installed().await) }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The SQLite file, which is not there on a server.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("reports.db")
    }

    /// As the examples know it.
    fn named(&self) -> Database {
        match &self.place {
            Place::File => Database::File(self.file()),
            #[cfg(all(feature = "sqlserver", feature = "conformance"))]
            Place::Schema(schema) => {
                let string = crate::sqlserver::connection_string().parse().expect("any text is one");
                Database::SqlServer(crate::example_database::Server::new(string, Some(&schema.name)))
            }
            #[cfg(all(feature = "postgres", feature = "conformance"))]
            Place::Postgres(schema) => {
                let url = crate::postgres_schema::url().parse().expect("any text is one");
                Database::Postgres(crate::example_database::PostgresServer::new(url, Some(&schema.name)))
            }
        }
    }

    /// Names it to a process of an example.
    pub(crate) fn hand_to(&self, command: &mut Command) {
        self.named().hand_to(command);
    }

    /// A connection of the test's own.
    pub(crate) async fn open(&self) -> OpenStore {
        self.named().open().await.expect("the database opens")
    }

    /// Which generations of a report published, by the ledger, looked at past the store.
    pub(crate) async fn published_generations(&self, report: ReportId) -> Vec<i64> {
        match &self.place {
            Place::File => {
                let sql = "SELECT Generation FROM ReportLedger WHERE ReportId = ?1 AND OperationId IS NOT NULL ORDER BY Generation";
                let connection = self.raw();
                let mut statement = connection.prepare(sql).expect("the ledger is there");
                let generations = statement.query_map([report.to_string()], |row| row.get(0)).expect("it is read");
                generations.collect::<Result<_, _>>().expect("generations are numbers")
            }
            #[cfg(all(feature = "sqlserver", feature = "conformance"))]
            Place::Schema(schema) => {
                let sql = format!(
                    "SELECT Generation AS Generation FROM {}.ReportLedger WHERE ReportId = @P1 AND OperationId IS NOT NULL \
                     ORDER BY Generation",
                    schema.name
                );
                let mut raw = schema.raw.lock().await;
                let rows = crate::sqlserver::rows(&mut raw, &sql, &[report.as_uuid()]).await;
                rows.iter().map(|row| row.get("Generation").expect("a number")).collect()
            }
            #[cfg(all(feature = "postgres", feature = "conformance"))]
            Place::Postgres(schema) => {
                let sql = format!(
                    "SELECT generation FROM {}.report_ledger WHERE report_id = $1 AND operation_id IS NOT NULL \
                     ORDER BY generation",
                    schema.name
                );
                let rows = schema.raw.query(&sql, &[report.as_uuid()]).await.expect("the ledger is read");
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }

    /// The payload that the plain lease of `examples/handover` keeps for a report.
    pub(crate) async fn plain_payload(&self, report: ReportId) -> Option<String> {
        match &self.place {
            Place::File => {
                self.raw().query_row("SELECT Payload FROM PlainReport", [], |row| row.get(0)).expect("a report")
            }
            #[cfg(all(feature = "sqlserver", feature = "conformance"))]
            Place::Schema(schema) => {
                let table = format!("PlainReport_{}", report.as_uuid().simple());
                let sql = format!("SELECT Payload AS Payload FROM {}.{table}", schema.name);
                let mut raw = schema.raw.lock().await;
                let rows = crate::sqlserver::rows(&mut raw, &sql, &[]).await;
                rows[0].get::<&str, _>("Payload").map(str::to_owned)
            }
            #[cfg(all(feature = "postgres", feature = "conformance"))]
            Place::Postgres(schema) => {
                let sql = format!("SELECT payload FROM {}.plain_report_{}", schema.name, report.as_uuid().simple());
                schema.raw.query_one(&sql, &[]).await.expect("a report").get(0)
            }
        }
    }

    /// What is in it, by names and rows: nothing but what an installation makes, if an example cleared away what it made.
    pub(crate) async fn remains(&self) -> Vec<String> {
        match &self.place {
            Place::File => Vec::new(),
            #[cfg(all(feature = "sqlserver", feature = "conformance"))]
            Place::Schema(schema) => {
                let name = &schema.name;
                let sql = format!(
                    "SELECT CAST(o.name AS nvarchar(200)) AS Name FROM sys.objects AS o INNER JOIN sys.schemas AS s ON s.schema_id = o.schema_id \
                     WHERE s.name = '{name}' AND o.type = 'U' \
                     AND o.name NOT IN ('ReportPublication', 'ReportLedger', 'LeaseholdStore', 'Notes') \
                     UNION ALL SELECT CAST('a report' AS nvarchar(200)) FROM {name}.ReportPublication \
                     UNION ALL SELECT CAST('an ended lease' AS nvarchar(200)) FROM {name}.ReportLedger"
                );
                let mut raw = schema.raw.lock().await;
                let rows = crate::sqlserver::rows(&mut raw, &sql, &[]).await;
                rows.iter().map(|row| row.get::<&str, _>("Name").expect("a name").to_owned()).collect()
            }
            #[cfg(all(feature = "postgres", feature = "conformance"))]
            Place::Postgres(schema) => {
                let name = &schema.name;
                let sql = format!(
                    "SELECT tablename::text FROM pg_tables WHERE schemaname = '{name}' AND tablename NOT IN \
                     ('report_publication', 'report_payload', 'report_ledger', 'leasehold_store') \
                     UNION ALL SELECT 'a report' FROM {name}.report_publication \
                     UNION ALL SELECT 'a payload' FROM {name}.report_payload \
                     UNION ALL SELECT 'an ended lease' FROM {name}.report_ledger"
                );
                let rows = schema.raw.query(&sql, &[]).await.expect("what is left");
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }

    fn raw(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.file()).expect("the database opens");
        connection.busy_timeout(std::time::Duration::from_secs(60)).expect("a busy timeout");
        connection
    }
}

/// What remains of the lease that somebody holds.
pub(crate) async fn remaining(store: &OpenStore, report: ReportId, budget: Budget) -> Option<std::time::Duration> {
    let status: Result<_, StoreError> = store.inspect(report, budget).await;
    status.expect("it answers").and_then(|status| status.lease).map(|lease| lease.remaining)
}
