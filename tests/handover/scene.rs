//! One database of the test's own, looked at from the outside.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use leasehold::answer::ReadAnswer;
use leasehold::store::Budget;
use leasehold::{BootClock, Clock, Moment, ReportId};

use crate::database::{TestDatabase, remaining};
use crate::example_database::OpenStore;
use crate::worker::{LIMIT, Worker};

/// One database, and how long a lease lasts in it: long enough that a machine under load renews in time.
pub(crate) struct Scene {
    pub(crate) ttl: Duration,
    database: TestDatabase,
    pub(crate) store: OpenStore,
}

/// What the database has in the end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) generation: i64,
    pub(crate) payload: String,
}

impl Scene {
    pub(crate) async fn on_sqlite() -> Self {
        Self::on(TestDatabase::on_sqlite(), Duration::from_secs(3)).await
    }

    #[cfg(all(feature = "sqlserver", feature = "conformance"))]
    pub(crate) async fn on_sqlserver() -> Self {
        // Each process connects anew, and some servers take long for the first calls of a connection.
        Self::on(TestDatabase::on_sqlserver().await, Duration::from_secs(6)).await
    }

    #[cfg(all(feature = "postgres", feature = "conformance"))]
    pub(crate) async fn on_postgres() -> Self {
        Self::on(TestDatabase::on_postgres().await, Duration::from_secs(3)).await
    }

    async fn on(database: TestDatabase, ttl: Duration) -> Self {
        let store = database.open().await;
        // Some servers take long for the first call of each kind: it must not be taken for a lock that somebody holds.
        store.take_lock(report(), LIMIT).await.expect("it answers");
        Self { ttl, database, store }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.database.folder()
    }

    /// Names the database to a process of the example.
    pub(crate) fn hand_to(&self, command: &mut Command) {
        self.database.hand_to(command);
    }

    /// Starts a worker whose build takes no time: it goes straight to its gate.
    pub(crate) fn worker(&self, task: &str, who: &str) -> Worker {
        Worker::start(self, task, who, Duration::ZERO, &[])
    }

    /// When the lease ends that is held now, at the earliest: what remains is rounded down.
    pub(crate) async fn expiry(&self) -> Duration {
        let asked = since_boot();
        asked + remaining(&self.store, report(), Budget::within(LIMIT)).await.expect("the lease is held")
    }

    /// What a reader sees.
    pub(crate) async fn row(&self) -> Option<Row> {
        match self.store.read(report(), Budget::within(LIMIT)).await.expect("it answers") {
            ReadAnswer::Found { visible, payload } => {
                Some(Row { generation: visible.version.generation.get(), payload })
            }
            _ => None,
        }
    }

    /// Which generations published, by the ledger.
    pub(crate) async fn published_generations(&self) -> Vec<i64> {
        self.database.published_generations(report()).await
    }

    /// The report that a plain lease protects, or not.
    pub(crate) async fn plain_payload(&self) -> Option<String> {
        self.database.plain_payload(report()).await
    }
}

/// The name of the report that the workers work on.
pub(crate) const REPORT: &str = "the report";

pub(crate) fn report() -> ReportId {
    ReportId::from_name(REPORT)
}

/// By the clock that events are stamped with.
pub(crate) fn since_boot() -> Duration {
    BootClock.now().since(Moment::after_origin(Duration::ZERO))
}
