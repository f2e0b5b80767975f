//! An open store of whichever kind, with what the examples ask of one.

use std::io;
use std::time::Duration;

use leasehold::answer::{CheckReport, PublishAnswer, ReadAnswer, ReportStatus};
use leasehold::store::{Budget, PublishRequest, Store};
use leasehold::{Epoch, Fence, Generation, LeasePolicy, LeaseSupervisor, Owner, ReportId, StoreError};

/// The store. Clones share its connections.
#[derive(Debug, Clone)]
pub(crate) enum OpenStore {
    #[cfg(feature = "sqlite")]
    Sqlite(leasehold::store::sqlite::SqliteStore),
    #[cfg(feature = "sqlserver")]
    SqlServer(leasehold::store::sqlserver::SqlServerStore),
    #[cfg(feature = "postgres")]
    Postgres(leasehold::store::postgres::PostgresStore),
}

/// The same for every kind of store.
macro_rules! with_store {
    ($this:expr, $store:ident => $what:expr) => {
        match $this {
            #[cfg(feature = "sqlite")]
            OpenStore::Sqlite($store) => $what,
            #[cfg(feature = "sqlserver")]
            OpenStore::SqlServer($store) => $what,
            #[cfg(feature = "postgres")]
            OpenStore::Postgres($store) => $what,
            _ => unreachable!("without a store none was opened"),
        }
    };
}

impl OpenStore {
    /// A supervisor of leases in it.
    pub(crate) fn supervisor(&self, policy: LeasePolicy) -> io::Result<LeaseSupervisor> {
        with_store!(self, store => LeaseSupervisor::new(store.clone(), policy))
    }

    pub(crate) async fn read(&self, report: ReportId, budget: Budget) -> Result<ReadAnswer, StoreError> {
        with_store!(self, store => store.read(report, None, budget).await)
    }

    pub(crate) async fn inspect(&self, report: ReportId, budget: Budget) -> Result<Option<ReportStatus>, StoreError> {
        with_store!(self, store => store.inspect(report, budget).await)
    }

    pub(crate) async fn publish(&self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        with_store!(self, store => store.publish(request, budget).await)
    }

    pub(crate) async fn check(&self, budget: Budget) -> Result<CheckReport, StoreError> {
        with_store!(self, store => store.check(budget).await)
    }

    /// Takes the lock that a write of this report needs, and changes nothing: it releases a lease that nobody holds.
    pub(crate) async fn take_lock(&self, report: ReportId, within: Duration) -> Result<(), StoreError> {
        let fence = Fence { report, owner: Owner::random(), generation: Generation::new(0), epoch: Epoch::new(0) };
        with_store!(self, store => store.release(fence, Budget::within(within)).await.map(drop))
    }

    /// What a worker locks that writes.
    pub(crate) fn lock_name(&self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => "the file's write lock",
            _ => "the row's lock",
        }
    }
}
