//! The operations, each a call of a function.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::{PostgresStore, PostgresTransaction, transaction};
use crate::answer::{
    AcquireAnswer, BatchRenewal, CheckReport, CloseAnswer, EpochAnswer, ForceAnswer, Metadata, ProvisionAnswer,
    PublishAnswer, ReadAnswer, ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer, Version,
};
use crate::error::StoreError;
use crate::fence::{Epoch, Fence, Holder, ReportId, SourceRevision};
use crate::store::{
    AcquireRequest, AdvanceRequest, Budget, CloseRequest, ListRequest, PublishRequest, Store, validate,
};

impl Store for PostgresStore {
    type Transaction = PostgresTransaction;

    /// Two more pools, whose connections are opened and whose calls run in `runtime`.
    fn for_runtime(&self, runtime: &Handle) -> Self {
        Self::on(Arc::clone(self.settings()), runtime.clone())
    }

    async fn provision(&self, report: ReportId, budget: Budget) -> Result<ProvisionAnswer, StoreError> {
        self.do_provision(report, budget).await
    }

    async fn acquire(&self, request: AcquireRequest, budget: Budget) -> Result<AcquireAnswer, StoreError> {
        request.validate()?;
        self.do_acquire(request, budget).await
    }

    async fn renew(&self, fence: Fence, ttl: Duration, budget: Budget) -> Result<RenewAnswer, StoreError> {
        validate::ttl(ttl)?;
        self.do_renew(fence, ttl, budget).await
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
        self.do_renew_many(fences, ttl, budget).await
    }

    async fn publish(&self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        self.do_publish(request, None, budget).await
    }

    async fn publish_and_advance(&self, request: AdvanceRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        request.validate()?;
        self.do_advance(request, budget).await
    }

    async fn close(&self, request: CloseRequest, budget: Budget) -> Result<CloseAnswer, StoreError> {
        self.do_close(request, budget).await
    }

    async fn release(&self, fence: Fence, budget: Budget) -> Result<ReleaseAnswer, StoreError> {
        self.do_release(fence, budget).await
    }

    async fn read(
        &self,
        report: ReportId,
        newer_than: Option<Version>,
        budget: Budget,
    ) -> Result<ReadAnswer, StoreError> {
        self.do_read(report, newer_than, budget).await
    }

    async fn metadata(&self, report: ReportId, budget: Budget) -> Result<Option<Metadata>, StoreError> {
        Ok(self.look(report, budget).await?.map(|row| row.metadata()))
    }

    async fn inspect(&self, report: ReportId, budget: Budget) -> Result<Option<ReportStatus>, StoreError> {
        Ok(self.look(report, budget).await?.map(|row| row.status()))
    }

    async fn list(&self, request: ListRequest, budget: Budget) -> Result<Vec<ReportStatus>, StoreError> {
        request.validate()?;
        self.do_list(request, budget).await
    }

    async fn check(&self, budget: Budget) -> Result<CheckReport, StoreError> {
        self.do_check(budget).await
    }

    async fn force_release(&self, report: ReportId, by: Holder, budget: Budget) -> Result<ForceAnswer, StoreError> {
        self.do_force_release(report, by, budget).await
    }

    async fn require_source_revision(
        &self,
        report: ReportId,
        revision: SourceRevision,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.do_require_revision(report, revision, budget).await
    }

    async fn reset_source_revision(
        &self,
        report: ReportId,
        revision: Option<SourceRevision>,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.do_reset_revision(report, revision, budget).await
    }

    async fn advance_recovery_epoch(&self, to: Epoch, budget: Budget) -> Result<EpochAnswer, StoreError> {
        self.do_advance_epoch(to, budget).await
    }

    async fn prune_ledger(&self, older_than: Duration, budget: Budget) -> Result<u64, StoreError> {
        self.do_prune(older_than, budget).await
    }

    async fn begin(&self, budget: Budget) -> Result<PostgresTransaction, StoreError> {
        transaction::begin(self, budget).await
    }
}
