//! Short words for what these tests ask.

use std::time::Duration;

use leasehold::answer::{AcquireAnswer, PublishAnswer, Receipt};
use leasehold::conformance::Harness;
use leasehold::store::postgres::PostgresStore;
use leasehold::store::{AcquireRequest, Budget, Payload, PublishRequest, Store};
use leasehold::{Epoch, Fence, Holder, OperationId, Owner, ReportId, StoreError, StoreErrorKind};

use crate::support::{Defaults, PostgresDatabase, PostgresHarness};

pub(crate) const TTL: Duration = Duration::from_secs(600);

pub(crate) fn budget() -> Budget {
    Budget::within(Duration::from_secs(20))
}

/// A database of its own, a schema in it, a store with an operator's rights, and a report.
pub(crate) struct Scene {
    pub(crate) db: PostgresDatabase,
    pub(crate) store: PostgresStore,
    pub(crate) report: ReportId,
    pub(crate) harness: PostgresHarness,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::on(PostgresHarness::new(Defaults::ReadCommitted).await).await
    }

    pub(crate) async fn on(harness: PostgresHarness) -> Self {
        let db = harness.fresh().await;
        let store = db.store();
        let report = ReportId::from_name("report");
        store.provision(report, budget()).await.expect("provision");
        Self { db, store, report, harness }
    }

    pub(crate) async fn acquires(&self) -> Fence {
        acquires(&self.store, self.report).await
    }
}

pub(crate) fn acquiring(report: ReportId) -> AcquireRequest {
    AcquireRequest {
        report,
        owner: Owner::random(),
        ttl: TTL,
        holder: Holder::new("tests/postgres").expect("a label"),
        min_epoch: Epoch::new(0),
        takeover_delay: Duration::ZERO,
        wanted: None,
    }
}

pub(crate) async fn acquires(store: &PostgresStore, report: ReportId) -> Fence {
    match store.acquire(acquiring(report), budget()).await.expect("acquire") {
        AcquireAnswer::Acquired(lease) => lease.fence,
        other => panic!("not acquired: {other:?}"),
    }
}

pub(crate) fn publishing(fence: Fence, text: &str) -> PublishRequest {
    let payload = Payload::new(text, usize::MAX).expect("a payload");
    PublishRequest { fence, operation: OperationId::random(), payload, revision: None }
}

pub(crate) async fn publishes(store: &PostgresStore, fence: Fence, text: &str) -> Receipt {
    match store.publish(publishing(fence, text), budget()).await.expect("publish") {
        PublishAnswer::Published(published) => published.receipt,
        other => panic!("not published: {other:?}"),
    }
}

/// The error, of this kind, with words that say what to do.
#[track_caller]
pub(crate) fn fails<T: std::fmt::Debug>(
    answer: Result<T, StoreError>,
    kind: StoreErrorKind,
    words: &str,
) -> StoreError {
    let error = answer.expect_err("an error");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
    error
}

/// An error and all its sources, as logs would show them.
pub(crate) fn everything(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    text
}
