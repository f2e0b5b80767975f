//! A worker: a store with connections of its own, and short words for what it asks.

use std::time::Duration;

use super::answers::{acquired, published};
use crate::answer::{
    AcquireAnswer, Acquired, BatchRenewal, CloseAnswer, EpochAnswer, ForceAnswer, PublishAnswer, ReadAnswer, Receipt,
    ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer,
};
use crate::fence::{Epoch, Fence, Holder, OperationId, Owner, ReportId, SourceRevision};
use crate::store::{AcquireRequest, AdvanceRequest, Budget, CloseRequest, Payload, PublishRequest, Store};

/// The TTL of a lease that is not to expire by itself during a case.
pub(super) const TTL: Duration = Duration::from_secs(600);

/// The budget of a call that is to be answered.
pub(super) fn budget() -> Budget {
    Budget::within(Duration::from_secs(20))
}

pub(super) fn holder(label: &str) -> Holder {
    Holder::new(label).expect("a good label")
}

/// A request by a fresh owner for a long lease without a takeover delay.
pub(super) fn acquiring(report: ReportId) -> AcquireRequest {
    AcquireRequest {
        report,
        owner: Owner::random(),
        ttl: TTL,
        holder: holder("conformance/worker"),
        min_epoch: Epoch::new(0),
        takeover_delay: Duration::ZERO,
        wanted: None,
    }
}

/// A fresh publication without a source revision.
pub(super) fn publishing(fence: Fence, text: &str) -> PublishRequest {
    PublishRequest { fence, operation: OperationId::random(), payload: payload(text), revision: None }
}

/// A fresh publication of a source revision.
pub(super) fn publishing_revision(fence: Fence, text: &str, revision: i64) -> PublishRequest {
    PublishRequest { revision: Some(SourceRevision::new(revision)), ..publishing(fence, text) }
}

/// A fresh publication after which a fresh owner goes on.
pub(super) fn advancing(fence: Fence, text: &str) -> AdvanceRequest {
    AdvanceRequest { publish: publishing(fence, text), next_owner: Owner::random(), ttl: TTL }
}

pub(super) fn payload(text: &str) -> Payload {
    Payload::new(text, usize::MAX).expect("a good payload")
}

/// A store with connections of its own. Its methods panic on a store error: where an error is expected, ask the `store`.
pub(super) struct Worker<S> {
    pub(super) store: S,
}

impl<S: Store> Worker<S> {
    pub(super) async fn acquire(&self, request: AcquireRequest) -> AcquireAnswer {
        self.store.acquire(request, budget()).await.expect("acquire")
    }

    /// Acquires as a fresh owner.
    pub(super) async fn acquires(&self, report: ReportId) -> Fence {
        self.acquires_as(acquiring(report)).await.fence
    }

    pub(super) async fn acquires_as(&self, request: AcquireRequest) -> Acquired {
        acquired(self.acquire(request).await)
    }

    /// Acquires a lease that keeps others out for this long after it expired.
    pub(super) async fn acquires_with_delay(&self, report: ReportId, takeover_delay: Duration) -> Fence {
        self.acquires_as(AcquireRequest { takeover_delay, ..acquiring(report) }).await.fence
    }

    pub(super) async fn renew(&self, fence: Fence) -> RenewAnswer {
        self.renew_for(fence, TTL).await
    }

    pub(super) async fn renew_for(&self, fence: Fence, ttl: Duration) -> RenewAnswer {
        self.store.renew(fence, ttl, budget()).await.expect("renew")
    }

    pub(super) async fn renew_many(&self, fences: Vec<Fence>) -> Vec<BatchRenewal> {
        self.store.renew_many(fences, TTL, budget()).await.expect("renew_many")
    }

    /// Sends a publication.
    pub(super) async fn send(&self, request: &PublishRequest) -> PublishAnswer {
        self.store.publish(request.clone(), budget()).await.expect("publish")
    }

    /// Sends a fresh publication without a source revision.
    pub(super) async fn publish(&self, fence: Fence, text: &str) -> PublishAnswer {
        self.send(&publishing(fence, text)).await
    }

    /// Sends a fresh publication, which is accepted.
    pub(super) async fn publishes(&self, fence: Fence, text: &str) -> Receipt {
        published(self.publish(fence, text).await).receipt
    }

    /// Acquires as a fresh owner and publishes this revision.
    pub(super) async fn acquires_and_publishes(&self, report: ReportId, text: &str, revision: Option<i64>) -> Receipt {
        let fence = self.acquires(report).await;
        let revision = revision.map(SourceRevision::new);
        published(self.send(&PublishRequest { revision, ..publishing(fence, text) }).await).receipt
    }

    pub(super) async fn advance(&self, request: &AdvanceRequest) -> PublishAnswer {
        self.store.publish_and_advance(request.clone(), budget()).await.expect("publish_and_advance")
    }

    /// Closes an acquisition whose generation and epoch were learned.
    pub(super) async fn close(&self, fence: Fence) -> CloseAnswer {
        let Fence { report, owner, generation, epoch } = fence;
        self.send_close(CloseRequest { report, owner, learned: Some((generation, epoch)) }).await
    }

    /// Closes an acquisition whose answer never arrived.
    pub(super) async fn close_unlearned(&self, report: ReportId, owner: Owner) -> CloseAnswer {
        self.send_close(CloseRequest { report, owner, learned: None }).await
    }

    async fn send_close(&self, request: CloseRequest) -> CloseAnswer {
        self.store.close(request, budget()).await.expect("close")
    }

    pub(super) async fn release(&self, fence: Fence) -> ReleaseAnswer {
        self.store.release(fence, budget()).await.expect("release")
    }

    pub(super) async fn read(&self, report: ReportId) -> ReadAnswer {
        self.store.read(report, None, budget()).await.expect("read")
    }

    pub(super) async fn inspect(&self, report: ReportId) -> ReportStatus {
        self.store.inspect(report, budget()).await.expect("inspect").expect("the report's row")
    }

    pub(super) async fn force_release(&self, report: ReportId) -> ForceAnswer {
        self.store.force_release(report, holder("an operator"), budget()).await.expect("force_release")
    }

    pub(super) async fn require_revision(&self, report: ReportId, revision: i64) -> RevisionAnswer {
        let revision = SourceRevision::new(revision);
        self.store.require_source_revision(report, revision, budget()).await.expect("require_source_revision")
    }

    pub(super) async fn reset_revision(&self, report: ReportId, revision: Option<i64>) -> RevisionAnswer {
        let revision = revision.map(SourceRevision::new);
        self.store.reset_source_revision(report, revision, budget()).await.expect("reset_source_revision")
    }

    pub(super) async fn advance_epoch(&self, to: Epoch) -> EpochAnswer {
        self.store.advance_recovery_epoch(to, budget()).await.expect("advance_recovery_epoch")
    }

    pub(super) async fn prune(&self, older_than: Duration) -> u64 {
        self.store.prune_ledger(older_than, budget()).await.expect("prune_ledger")
    }
}
