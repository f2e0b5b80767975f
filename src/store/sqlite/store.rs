//! The operations, each a call to the connection thread.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::thread::Needs;
use super::{SqliteStore, SqliteTransaction, leases, operators, publications, reading};
use crate::answer::{
    AcquireAnswer, BatchRenewal, CheckReport, CloseAnswer, EpochAnswer, ForceAnswer, Metadata, ProvisionAnswer,
    PublishAnswer, ReadAnswer, ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer, Version,
};
use crate::error::StoreError;
use crate::fence::{Epoch, Fence, Holder, ReportId, SourceRevision};
use crate::store::{
    AcquireRequest, AdvanceRequest, Budget, CloseRequest, ListRequest, PublishRequest, Store, validate,
};

/// Runs an operation under the write lock.
macro_rules! write {
    ($store:expr, $budget:expr, $operation:expr) => {
        $store.thread().call(Needs::WriteLock, $budget, move |session| session.write($operation)).await
    };
}

/// Runs an operation on a snapshot.
macro_rules! read {
    ($store:expr, $budget:expr, $operation:expr) => {
        $store.thread().call(Needs::Snapshot, $budget, move |session| session.read($operation)).await
    };
}

impl Store for SqliteStore {
    type Transaction = SqliteTransaction;

    /// A second connection to the same file, on a thread of its own that starts with the first call. It belongs to no runtime.
    fn for_runtime(&self, _: &Handle) -> Self {
        Self { thread: Arc::new(self.thread().another()) }
    }

    async fn provision(&self, report: ReportId, budget: Budget) -> Result<ProvisionAnswer, StoreError> {
        write!(self, budget, |tx| leases::provision(tx, report))
    }

    async fn acquire(&self, request: AcquireRequest, budget: Budget) -> Result<AcquireAnswer, StoreError> {
        request.validate()?;
        write!(self, budget, |tx| leases::acquire(tx, &request))
    }

    async fn renew(&self, fence: Fence, ttl: Duration, budget: Budget) -> Result<RenewAnswer, StoreError> {
        validate::ttl(ttl)?;
        write!(self, budget, |tx| leases::renew(tx, &fence, ttl))
    }

    async fn renew_many(
        &self,
        fences: Vec<Fence>,
        ttl: Duration,
        budget: Budget,
    ) -> Result<Vec<BatchRenewal>, StoreError> {
        validate::batch(&fences, ttl)?;
        if fences.is_empty() {
            return Ok(Vec::new());
        }
        write!(self, budget, |tx| leases::renew_many(tx, &fences, ttl))
    }

    async fn publish(&self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        write!(self, budget, |tx| publications::publish(tx, &request))
    }

    async fn publish_and_advance(&self, request: AdvanceRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        request.validate()?;
        write!(self, budget, |tx| publications::publish_and_advance(tx, &request))
    }

    async fn close(&self, request: CloseRequest, budget: Budget) -> Result<CloseAnswer, StoreError> {
        write!(self, budget, |tx| leases::close(tx, &request))
    }

    async fn release(&self, fence: Fence, budget: Budget) -> Result<ReleaseAnswer, StoreError> {
        write!(self, budget, |tx| leases::release(tx, &fence))
    }

    async fn read(
        &self,
        report: ReportId,
        newer_than: Option<Version>,
        budget: Budget,
    ) -> Result<ReadAnswer, StoreError> {
        read!(self, budget, |tx| reading::read(tx, report, newer_than))
    }

    async fn metadata(&self, report: ReportId, budget: Budget) -> Result<Option<Metadata>, StoreError> {
        read!(self, budget, |tx| reading::metadata(tx, report))
    }

    async fn inspect(&self, report: ReportId, budget: Budget) -> Result<Option<ReportStatus>, StoreError> {
        read!(self, budget, |tx| reading::inspect(tx, report))
    }

    async fn list(&self, request: ListRequest, budget: Budget) -> Result<Vec<ReportStatus>, StoreError> {
        request.validate()?;
        read!(self, budget, |tx| reading::list(tx, request))
    }

    async fn check(&self, budget: Budget) -> Result<CheckReport, StoreError> {
        let check = move |session: &mut super::connection::Session| {
            let clock = session.clock().clone();
            session.read(|tx| reading::check(tx, &clock))
        };
        self.thread().call(Needs::Snapshot, budget, check).await
    }

    async fn force_release(&self, report: ReportId, by: Holder, budget: Budget) -> Result<ForceAnswer, StoreError> {
        write!(self, budget, |tx| operators::force_release(tx, report, &by))
    }

    async fn require_source_revision(
        &self,
        report: ReportId,
        revision: SourceRevision,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        write!(self, budget, |tx| operators::require_revision(tx, report, revision))
    }

    async fn reset_source_revision(
        &self,
        report: ReportId,
        revision: Option<SourceRevision>,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        write!(self, budget, |tx| operators::reset_revision(tx, report, revision))
    }

    async fn advance_recovery_epoch(&self, to: Epoch, budget: Budget) -> Result<EpochAnswer, StoreError> {
        write!(self, budget, |tx| operators::advance_epoch(tx, to))
    }

    async fn prune_ledger(&self, older_than: Duration, budget: Budget) -> Result<u64, StoreError> {
        write!(self, budget, |tx| operators::prune(tx, older_than))
    }

    async fn begin(&self, _: Budget) -> Result<SqliteTransaction, StoreError> {
        Ok(SqliteTransaction::new(self.clone()))
    }
}
