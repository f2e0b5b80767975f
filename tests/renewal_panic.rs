//! A renewal task that panics. In a binary of its own: which tracing events reach a thread's own subscriber is decided for
//! the whole process, by whichever test comes first.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::store::Store;
use leasehold::{LeaseStatus, LossReason, ReportId};
use support::*;
use tokio::time::{sleep, timeout};

#[tokio::test(start_paused = true)]
async fn a_renewal_task_that_panics_trips_its_own_token_at_once_and_harms_nobody_else() {
    let armed = Arc::new(AtomicBool::new(false));
    let _subscribed = tracing::subscriber::set_default(PanicsOnce(Arc::clone(&armed)));
    let scene = scene().await;
    let first = scene.acquire().await;
    sleep(secs(2)).await;
    let second = {
        let report = ReportId::from_name("second");
        scene.store.provision(report, budget()).await.unwrap();
        acquire(&scene.supervisor, report).await
    };
    armed.store(true, Ordering::SeqCst);
    let loss = timeout(secs(60), first.lost()).await.expect("the panic is noticed");
    assert_eq!(loss.reason(), LossReason::RenewalDied);
    assert!(!armed.load(Ordering::SeqCst));
    assert_eq!(scene.store.renewals(), 1, "at the answer of its first renewal");
    drop(first);
    scene.free_within(secs(1)).await;
    sleep(secs(100)).await;
    assert!(matches!(second.status(), LeaseStatus::Held { .. }));
}

/// A tracing subscriber that panics once in the renewal task: the only foreign code that runs in there.
struct PanicsOnce(Arc<AtomicBool>);

impl tracing::Subscriber for PanicsOnce {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "leasehold::renewal::task"
    }
    fn event(&self, _: &tracing::Event<'_>) {
        assert!(!self.0.swap(false, Ordering::SeqCst), "planned: the subscriber panics");
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
