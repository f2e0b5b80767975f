//! The operations, each a call of its procedure.

use std::time::Duration;

use tokio::runtime::Handle;

use super::reading::certain;
use super::{Isolation, SqlServerStore, SqlServerTransaction};
use crate::answer::{
    AcquireAnswer, BatchRenewal, CheckReport, CloseAnswer, EpochAnswer, ForceAnswer, Metadata, ProvisionAnswer,
    PublishAnswer, ReadAnswer, ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer, Version,
};
use crate::error::StoreError;
use crate::fence::{Epoch, Fence, Holder, ReportId, SourceRevision};
use crate::store::{
    AcquireRequest, AdvanceRequest, Budget, CloseRequest, ListRequest, PublishRequest, Store, validate,
};

impl Store for SqlServerStore {
    type Transaction = SqlServerTransaction;

    fn for_runtime(&self, runtime: &Handle) -> Self {
        self.on(runtime)
    }

    async fn provision(&self, report: ReportId, budget: Budget) -> Result<ProvisionAnswer, StoreError> {
        self.provision_row(report, budget).await
    }

    async fn acquire(&self, request: AcquireRequest, budget: Budget) -> Result<AcquireAnswer, StoreError> {
        request.validate()?;
        self.acquire_lease(request, budget).await
    }

    async fn renew(&self, fence: Fence, ttl: Duration, budget: Budget) -> Result<RenewAnswer, StoreError> {
        validate::ttl(ttl)?;
        self.renew_lease(fence, ttl, budget).await
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
        self.renew_leases(fences, ttl, budget).await
    }

    async fn publish(&self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        self.publish_report(request, budget).await
    }

    async fn publish_and_advance(&self, request: AdvanceRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        request.validate()?;
        self.publish_report_and_advance(request, budget).await
    }

    async fn close(&self, request: CloseRequest, budget: Budget) -> Result<CloseAnswer, StoreError> {
        self.close_lease(request, budget).await
    }

    async fn release(&self, fence: Fence, budget: Budget) -> Result<ReleaseAnswer, StoreError> {
        self.release_lease(fence, budget).await
    }

    async fn read(
        &self,
        report: ReportId,
        newer_than: Option<Version>,
        budget: Budget,
    ) -> Result<ReadAnswer, StoreError> {
        self.read_report(report, newer_than, budget).await.map_err(certain)
    }

    async fn metadata(&self, report: ReportId, budget: Budget) -> Result<Option<Metadata>, StoreError> {
        self.metadata_of(report, budget).await.map_err(certain)
    }

    async fn inspect(&self, report: ReportId, budget: Budget) -> Result<Option<ReportStatus>, StoreError> {
        self.status_of(report, budget).await.map_err(certain)
    }

    async fn list(&self, request: ListRequest, budget: Budget) -> Result<Vec<ReportStatus>, StoreError> {
        request.validate()?;
        self.list_reports(request, budget).await.map_err(certain)
    }

    async fn check(&self, budget: Budget) -> Result<CheckReport, StoreError> {
        self.check_store(budget).await.map_err(certain)
    }

    async fn force_release(&self, report: ReportId, by: Holder, budget: Budget) -> Result<ForceAnswer, StoreError> {
        self.force_lease(report, by, budget).await
    }

    async fn require_source_revision(
        &self,
        report: ReportId,
        revision: SourceRevision,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.require_revision(report, revision, budget).await
    }

    async fn reset_source_revision(
        &self,
        report: ReportId,
        revision: Option<SourceRevision>,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.reset_revision(report, revision, budget).await
    }

    async fn advance_recovery_epoch(&self, to: Epoch, budget: Budget) -> Result<EpochAnswer, StoreError> {
        self.advance_epoch(to, budget).await
    }

    async fn prune_ledger(&self, older_than: Duration, budget: Budget) -> Result<u64, StoreError> {
        self.prune(older_than, budget).await
    }

    async fn begin(&self, budget: Budget) -> Result<SqlServerTransaction, StoreError> {
        SqlServerTransaction::begin(self, Isolation::ReadCommitted, budget).await
    }
}
