//! Where a case plays: a fresh database with one provisioned report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::harness::{Database, RawRow};
use super::worker::{Worker, budget};
use crate::answer::{EpochAnswer, ProvisionAnswer};
use crate::fence::{Epoch, ReportId};
use crate::store::Store;

/// How long a condition may take to come about before the case fails.
const CONDITION_LIMIT: Duration = Duration::from_secs(30);

/// A fresh database with one provisioned report.
pub(super) struct Scene<D> {
    pub(super) db: Arc<D>,
    pub(super) report: ReportId,
}

impl<D: Database> Scene<D> {
    pub(super) async fn new(db: D) -> Self {
        let mut scene = Self { db: Arc::new(db), report: unknown_report() };
        scene.report = scene.another_report().await;
        scene
    }

    /// Provisions one more report.
    pub(super) async fn another_report(&self) -> ReportId {
        let report = unknown_report();
        let answer = self.db.connect().await.provision(report, budget()).await.expect("provision");
        assert_eq!(answer, ProvisionAnswer::Created);
        report
    }

    /// A worker with connections of its own, already connected.
    pub(super) async fn worker(&self) -> Worker<D::Store> {
        let store = self.db.connect().await;
        store.metadata(self.report, budget()).await.expect("a first call to connect");
        Worker { store }
    }

    /// Two workers with connections of their own.
    pub(super) async fn two_workers(&self) -> (Worker<D::Store>, Worker<D::Store>) {
        (self.worker().await, self.worker().await)
    }

    /// The raw row of the scene's report.
    pub(super) async fn row(&self) -> RawRow {
        self.row_of(self.report).await
    }

    pub(super) async fn row_of(&self, report: ReportId) -> RawRow {
        self.db.row(report).await.expect("the report's row")
    }

    /// Sets the expiry of the scene's report just into the past. Nobody has seen it expired yet.
    pub(super) async fn expire(&self) {
        self.db.set_expiry(self.report, -1).await;
    }

    /// Plays a clock that steps back: what had expired lies in the future again.
    pub(super) async fn step_the_clock_back(&self) {
        self.db.set_expiry(self.report, 60_000).await;
    }

    /// Waits until the database's clock has passed the row's expiry, and for some milliseconds more.
    pub(super) async fn until_expired(&self, report: ReportId) {
        let started = Instant::now();
        while self.row_of(report).await.expires_in_millis.is_some_and(|millis| millis > -10) {
            assert!(started.elapsed() < CONDITION_LIMIT, "the lease does not expire by the database's clock");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Raises the recovery epoch by one, as an operator does after a restore.
    pub(super) async fn raise_epoch(&self) -> Epoch {
        let to = Epoch::new(self.row().await.epoch.get() + 1);
        let answer = self.worker().await.advance_epoch(to).await;
        assert!(matches!(answer, EpochAnswer::Advanced { .. }), "{answer:?}");
        to
    }

    /// Makes the whole ledger a day older and prunes what is older than an hour.
    pub(super) async fn prune_everything_old(&self) -> u64 {
        self.db.age_ledger(Duration::from_secs(86_400)).await;
        self.worker().await.prune(Duration::from_secs(3_600)).await
    }
}

/// The id of a report that was never provisioned.
pub(super) fn unknown_report() -> ReportId {
    ReportId::from_uuid(Uuid::new_v4())
}
