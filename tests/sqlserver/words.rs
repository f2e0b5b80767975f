//! Short words for requests, and for errors that must say something.

use std::error::Error;
use std::time::Duration;

use leasehold::answer::{AcquireAnswer, PublishAnswer, ReadAnswer};
use leasehold::store::sqlserver::SqlServerStore;
use leasehold::store::{
    AcquireRequest, AdvanceRequest, Budget, CloseRequest, FencedTransaction, ListRequest, Payload, PublishRequest,
    Store,
};
use leasehold::{Epoch, Fence, Holder, OperationId, Owner, ReportId, SourceRevision, StoreError, StoreErrorKind};
use uuid::Uuid;

pub(crate) const TTL: Duration = Duration::from_secs(60);

/// Long enough for a busy machine, and never waited for.
pub(crate) fn budget() -> Budget {
    Budget::within(Duration::from_secs(60))
}

pub(crate) fn unknown_report() -> ReportId {
    ReportId::from_uuid(Uuid::new_v4())
}

pub(crate) fn holder(label: &str) -> Holder {
    Holder::new(label).expect("a label")
}

pub(crate) fn request(report: ReportId) -> AcquireRequest {
    AcquireRequest {
        report,
        owner: Owner::random(),
        ttl: TTL,
        holder: holder("test"),
        min_epoch: Epoch::new(0),
        takeover_delay: Duration::ZERO,
        wanted: None,
    }
}

pub(crate) async fn acquire(store: &SqlServerStore, report: ReportId) -> Fence {
    match store.acquire(request(report), budget()).await.expect("acquire") {
        AcquireAnswer::Acquired(acquired) => acquired.fence,
        other => panic!("expected the lease, got {other:?}"),
    }
}

/// Provisions a report and takes its lease.
pub(crate) async fn take(store: &SqlServerStore) -> Fence {
    let report = unknown_report();
    store.provision(report, budget()).await.expect("provision");
    acquire(store, report).await
}

pub(crate) fn publication(fence: Fence, payload: &str) -> PublishRequest {
    PublishRequest {
        fence,
        operation: OperationId::random(),
        payload: Payload::new(payload, usize::MAX).expect("a payload"),
        revision: None,
    }
}

pub(crate) async fn publish(store: &SqlServerStore, fence: Fence, payload: &str) -> PublishAnswer {
    store.publish(publication(fence, payload), budget()).await.expect("publish answers")
}

pub(crate) async fn payload(store: &SqlServerStore, report: ReportId) -> Option<String> {
    match store.read(report, None, budget()).await.expect("read") {
        ReadAnswer::Found { payload, .. } => Some(payload),
        _ => None,
    }
}

pub(crate) fn closing(fence: Fence) -> CloseRequest {
    CloseRequest { report: fence.report, owner: fence.owner, learned: Some((fence.generation, fence.epoch)) }
}

/// The lease is held by exactly this fence.
pub(crate) async fn holds(store: &SqlServerStore, fence: Fence) -> bool {
    let status = store.inspect(fence.report, budget()).await.expect("inspect").expect("a row");
    status.lease.and_then(|lease| lease.owner) == Some(fence.owner) && status.metadata.generation == fence.generation
}

/// Whether this kind of error says all of this, and keeps the secrets to itself, down to its last source.
#[track_caller]
pub(crate) fn says<T: std::fmt::Debug>(answer: Result<T, StoreError>, kind: StoreErrorKind, words: &[&str]) {
    let error = answer.expect_err("an error");
    assert_eq!(error.kind(), kind, "{error:?}");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {error:?}");
    }
    let mut told = format!("{text} {error:?}");
    let mut source = error.source();
    while let Some(inner) = source {
        told.push_str(&format!(" {inner} {inner:?}"));
        source = inner.source();
    }
    assert!(!told.contains(SECRET), "a secret is told: {told}");
    assert!(!told.contains(&super::bad_input::password()), "the password is told: {told}");
}

/// A password, payload or the like that must not be told.
pub(crate) const SECRET: &str = "hush-hush";

/// What a worker does, each operation once.
pub(crate) async fn every_worker_operation(store: &SqlServerStore) -> ReportId {
    store.check(budget()).await.expect("check");
    let fence = take(store).await;
    let report = fence.report;
    store.renew(fence, TTL, budget()).await.expect("renew");
    let renewed = store.renew_many(vec![fence], TTL, budget()).await.expect("renew_many");
    assert_eq!(renewed.len(), 1);
    let next_owner = Owner::random();
    let advance = AdvanceRequest { publish: publication(fence, "first"), next_owner, ttl: TTL };
    let answer = store.publish_and_advance(advance, budget()).await.expect("publish_and_advance");
    assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
    let generation = fence.generation.next().expect("a next generation");
    let next = Fence { owner: next_owner, generation, ..fence };
    let transaction = store.begin(budget()).await.expect("begin");
    let answer = transaction.publish(publication(next, "second"), budget()).await.expect("publish in a transaction");
    assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
    assert_eq!(payload(store, report).await.as_deref(), Some("second"));
    store.release(acquire(store, report).await, budget()).await.expect("release");
    store.close(closing(acquire(store, report).await), budget()).await.expect("close");
    let fence = acquire(store, report).await;
    assert!(matches!(publish(store, fence, "third").await, PublishAnswer::Published(_)));
    store.metadata(report, budget()).await.expect("metadata").expect("a row");
    store.inspect(report, budget()).await.expect("inspect").expect("a row");
    let list = ListRequest { after: None, limit: 1_000, leased_only: false };
    let listed = store.list(list, budget()).await.expect("list");
    assert!(listed.iter().any(|status| status.report == report));
    report
}

/// What an operator does, each operation once.
pub(crate) async fn every_operator_operation(store: &SqlServerStore, report: ReportId) {
    store.force_release(report, holder("an operator"), budget()).await.expect("force_release");
    store.require_source_revision(report, SourceRevision::new(1), budget()).await.expect("require_source_revision");
    store.reset_source_revision(report, None, budget()).await.expect("reset_source_revision");
    store.advance_recovery_epoch(Epoch::new(1), budget()).await.expect("advance_recovery_epoch");
    store.prune_ledger(Duration::ZERO, budget()).await.expect("prune_ledger");
}
