//! A store whose every call is done by a [`WorkerProcess`], to whom it belongs.

use std::sync::Arc;
use std::time::Duration;

use leasehold::answer::{
    AcquireAnswer, BatchRenewal, CheckReport, CloseAnswer, EpochAnswer, ForceAnswer, Metadata, ProvisionAnswer,
    PublishAnswer, ReadAnswer, ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer, Version,
};
use leasehold::store::{
    AcquireRequest, AdvanceRequest, Budget, CloseRequest, FencedTransaction, ListRequest, PublishRequest, Store,
    StoreError,
};
use leasehold::{Epoch, Fence, Holder, ReportId, SourceRevision};
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;

use crate::process_wire::Ask;
use crate::worker_process::WorkerProcess;

/// Clones share one process; it ends with the last of them and of their transactions.
#[derive(Clone)]
pub(crate) struct ProcessStore {
    process: Arc<WorkerProcess>,
    /// Which set of connections of the process.
    connections: u64,
}

impl ProcessStore {
    /// A store that has this process to itself.
    pub(crate) fn new(process: Arc<WorkerProcess>) -> Self {
        Self { process, connections: 0 }
    }

    async fn ask<T: DeserializeOwned>(&self, ask: Ask, budget: Budget) -> Result<T, StoreError> {
        self.process.call(self.connections, ask, budget).await
    }
}

impl Store for ProcessStore {
    type Transaction = ProcessTransaction;

    /// Other connections, in the same process: a worker is one process, however many runtimes it has.
    fn for_runtime(&self, _: &Handle) -> Self {
        Self { process: self.process.clone(), connections: self.process.more_connections() }
    }

    async fn provision(&self, report: ReportId, budget: Budget) -> Result<ProvisionAnswer, StoreError> {
        self.ask(Ask::Provision(report), budget).await
    }

    async fn acquire(&self, request: AcquireRequest, budget: Budget) -> Result<AcquireAnswer, StoreError> {
        self.ask(Ask::Acquire(request), budget).await
    }

    async fn renew(&self, fence: Fence, ttl: Duration, budget: Budget) -> Result<RenewAnswer, StoreError> {
        self.ask(Ask::Renew(fence, ttl), budget).await
    }

    async fn renew_many(
        &self,
        fences: Vec<Fence>,
        ttl: Duration,
        budget: Budget,
    ) -> Result<Vec<BatchRenewal>, StoreError> {
        self.ask(Ask::RenewMany(fences, ttl), budget).await
    }

    async fn publish(&self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        self.ask(Ask::Publish(request), budget).await
    }

    async fn publish_and_advance(&self, request: AdvanceRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        self.ask(Ask::PublishAndAdvance(request), budget).await
    }

    async fn close(&self, request: CloseRequest, budget: Budget) -> Result<CloseAnswer, StoreError> {
        self.ask(Ask::Close(request), budget).await
    }

    async fn release(&self, fence: Fence, budget: Budget) -> Result<ReleaseAnswer, StoreError> {
        self.ask(Ask::Release(fence), budget).await
    }

    async fn read(
        &self,
        report: ReportId,
        newer_than: Option<Version>,
        budget: Budget,
    ) -> Result<ReadAnswer, StoreError> {
        self.ask(Ask::Read(report, newer_than), budget).await
    }

    async fn metadata(&self, report: ReportId, budget: Budget) -> Result<Option<Metadata>, StoreError> {
        self.ask(Ask::Metadata(report), budget).await
    }

    async fn inspect(&self, report: ReportId, budget: Budget) -> Result<Option<ReportStatus>, StoreError> {
        self.ask(Ask::Inspect(report), budget).await
    }

    async fn list(&self, request: ListRequest, budget: Budget) -> Result<Vec<ReportStatus>, StoreError> {
        self.ask(Ask::List(request), budget).await
    }

    async fn check(&self, budget: Budget) -> Result<CheckReport, StoreError> {
        self.ask(Ask::Check, budget).await
    }

    async fn force_release(&self, report: ReportId, by: Holder, budget: Budget) -> Result<ForceAnswer, StoreError> {
        self.ask(Ask::ForceRelease(report, by), budget).await
    }

    async fn require_source_revision(
        &self,
        report: ReportId,
        revision: SourceRevision,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.ask(Ask::RequireSourceRevision(report, revision), budget).await
    }

    async fn reset_source_revision(
        &self,
        report: ReportId,
        revision: Option<SourceRevision>,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.ask(Ask::ResetSourceRevision(report, revision), budget).await
    }

    async fn advance_recovery_epoch(&self, to: Epoch, budget: Budget) -> Result<EpochAnswer, StoreError> {
        self.ask(Ask::AdvanceRecoveryEpoch(to), budget).await
    }

    async fn prune_ledger(&self, older_than: Duration, budget: Budget) -> Result<u64, StoreError> {
        self.ask(Ask::PruneLedger(older_than), budget).await
    }

    async fn begin(&self, budget: Budget) -> Result<ProcessTransaction, StoreError> {
        let id = self.process.next_id();
        self.process.call_as::<()>(id, self.connections, Ask::Begin, budget).await?;
        Ok(ProcessTransaction { store: self.clone(), id, open: true })
    }
}

/// A transaction in the worker's process. Dropping it drops that one.
pub(crate) struct ProcessTransaction {
    store: ProcessStore,
    id: u64,
    /// Whether the process still has it.
    open: bool,
}

impl ProcessTransaction {
    /// Adds a statement with one value.
    pub(crate) async fn execute(&mut self, sql: &str, value: i64) {
        let budget = Budget::within(Duration::from_secs(10));
        let ask = Ask::Execute(self.id, sql.to_owned(), value);
        self.store.ask::<()>(ask, budget).await.expect("the process collects statements");
    }
}

impl FencedTransaction for ProcessTransaction {
    async fn publish(mut self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        self.open = false;
        self.store.ask(Ask::PublishIn(self.id, request), budget).await
    }

    async fn rollback(mut self, budget: Budget) -> Result<(), StoreError> {
        self.open = false;
        self.store.ask(Ask::Rollback(self.id), budget).await
    }
}

impl Drop for ProcessTransaction {
    fn drop(&mut self) {
        if self.open {
            self.store.process.give_up(self.id);
        }
    }
}
