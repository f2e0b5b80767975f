//! A place for a database file, and short words for requests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::answer::{AcquireAnswer, PublishAnswer};
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::sqlite::testing::ManualClock;
use leasehold::store::{AcquireRequest, Budget, Payload, PublishRequest, Store};
use leasehold::{Epoch, Fence, Holder, OperationId, Owner, ReportId};
use rusqlite::Connection;
use tempfile::TempDir;

pub(crate) const TTL: Duration = Duration::from_secs(30);

/// Long enough for a busy machine, and never waited for.
pub(crate) fn budget() -> Budget {
    Budget::within(Duration::from_secs(60))
}

/// A folder with a database file in it, gone when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::with_prefix_in("leasehold-", env!("CARGO_TARGET_TMPDIR")).expect("a folder") }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder().join("reports.db")
    }

    pub(crate) async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.file()).await.expect("the store opens")
    }

    pub(crate) async fn open_at(&self, clock: &ManualClock) -> SqliteStore {
        SqliteStore::open_with_clock(self.file(), clock).await.expect("the store opens")
    }

    pub(crate) fn raw(&self) -> Connection {
        let raw = Connection::open(self.file()).expect("the file opens");
        raw.busy_timeout(Duration::from_secs(10)).expect("a busy timeout");
        raw
    }

    pub(crate) fn wal_bytes(&self) -> u64 {
        std::fs::metadata(self.folder().join("reports.db-wal")).map_or(0, |file| file.len())
    }
}

pub(crate) fn report() -> ReportId {
    ReportId::from_name("report")
}

pub(crate) fn request(ttl: Duration) -> AcquireRequest {
    AcquireRequest {
        report: report(),
        owner: Owner::random(),
        ttl,
        holder: Holder::new("test").expect("a label"),
        min_epoch: Epoch::new(0),
        takeover_delay: Duration::ZERO,
        wanted: None,
    }
}

/// Provisions the report and takes its lease.
pub(crate) async fn take(store: &SqliteStore, request: AcquireRequest) -> Fence {
    store.provision(request.report, budget()).await.expect("provision");
    match store.acquire(request, budget()).await.expect("acquire") {
        AcquireAnswer::Acquired(acquired) => acquired.fence,
        other => panic!("expected the lease, got {other:?}"),
    }
}

pub(crate) fn publication(fence: Fence, payload: &str) -> PublishRequest {
    PublishRequest {
        fence,
        operation: OperationId::random(),
        payload: Payload::new(payload, usize::MAX).expect("a payload"),
        revision: None,
    }
}

pub(crate) async fn publish(store: &SqliteStore, fence: Fence, payload: &str) -> PublishAnswer {
    store.publish(publication(fence, payload), budget()).await.expect("publish answers")
}
