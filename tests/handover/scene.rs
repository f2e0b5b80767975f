//! One database file in a folder of its own, looked at from the outside.

use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::answer::ReadAnswer;
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::{Budget, Store};
use leasehold::{BootClock, Clock, Moment, ReportId};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::worker::{LIMIT, Worker};

/// Long enough that a machine under load renews in time.
pub(crate) const TTL: Duration = Duration::from_secs(3);

pub(crate) struct Scene {
    folder: TempDir,
    pub(crate) store: SqliteStore,
}

/// What the database has in the end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) generation: i64,
    pub(crate) payload: String,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(folder.path().join("reports.db")).await.expect("a new database");
        Self { folder, store }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("reports.db")
    }

    /// Starts a worker whose build takes no time: it goes straight to its gate.
    pub(crate) fn worker(&self, task: &str, who: &str) -> Worker {
        Worker::start(self, task, who, Duration::ZERO, &[])
    }

    /// When the lease ends that is held now, at the earliest: what remains is rounded down.
    pub(crate) async fn expiry(&self) -> Duration {
        let asked = since_boot();
        let status = self.store.inspect(report(), Budget::within(LIMIT)).await.expect("it answers");
        asked + status.and_then(|status| status.lease).expect("the lease is held").remaining
    }

    /// What a reader sees.
    pub(crate) async fn row(&self) -> Option<Row> {
        match self.store.read(report(), None, Budget::within(LIMIT)).await.expect("it answers") {
            ReadAnswer::Found { visible, payload } => {
                Some(Row { generation: visible.version.generation.get(), payload })
            }
            _ => None,
        }
    }

    /// Which generations published, by the ledger.
    pub(crate) fn published_generations(&self) -> Vec<i64> {
        let sql = "SELECT Generation FROM ReportLedger WHERE OperationId IS NOT NULL ORDER BY Generation";
        let connection = self.raw();
        let mut statement = connection.prepare(sql).expect("the ledger is there");
        let generations = statement.query_map([], |row| row.get(0)).expect("it is read");
        generations.collect::<Result<_, _>>().expect("generations are numbers")
    }

    pub(crate) fn raw(&self) -> Connection {
        let connection = Connection::open(self.database()).expect("the database opens");
        connection.busy_timeout(LIMIT).expect("a busy timeout");
        connection
    }
}

/// The report that the example's workers work on.
pub(crate) fn report() -> ReportId {
    ReportId::from_name("the report")
}

/// By the clock that events are stamped with.
pub(crate) fn since_boot() -> Duration {
    BootClock.now().since(Moment::after_origin(Duration::ZERO))
}
