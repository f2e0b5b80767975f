//! A tracing subscriber that panics, which is the only foreign code that runs inside. In a binary of its own: which tracing
//! events reach a thread's own subscriber is decided for the whole process, by whichever test comes first.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::store::Store;
use leasehold::testing::{Fault, Operation};
use leasehold::{LeaseStatus, LossReason, ReportId};
use support::*;
use tokio::time::{sleep, timeout};

#[tokio::test(start_paused = true)]
async fn a_renewal_task_that_panics_trips_its_own_token_at_once_and_harms_nobody_else() {
    let armed = Arc::new(AtomicBool::new(false));
    let _subscribed = tracing::subscriber::set_default(Panics {
        armed: Arc::clone(&armed),
        at: "leasehold::renewal::task",
        once: true,
    });
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

#[tokio::test(start_paused = true)]
async fn a_panic_at_the_report_of_a_loss_does_not_keep_the_token_from_tripping() {
    let armed = Arc::new(AtomicBool::new(true));
    let _subscribed =
        tracing::subscriber::set_default(Panics { armed: Arc::clone(&armed), at: "leasehold::state", once: true });
    let scene = scene().await;
    scene.store.plan_always(Operation::Renew, Fault::Hang);
    let token = {
        let guard = scene.acquire().await;
        let token = guard.lease().child_token();
        timeout(secs(60), token.cancelled()).await.expect("the token trips");
        token
    };
    assert!(token.is_cancelled() && !armed.load(Ordering::SeqCst));
    scene.free_within(secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_at_everything_does_not_abort_the_process() {
    let armed = Arc::new(AtomicBool::new(false));
    let _subscribed = tracing::subscriber::set_default(Panics { armed: Arc::clone(&armed), at: "", once: false });
    let scene = scene().await;
    let guard = scene.acquire().await;
    armed.store(true, Ordering::SeqCst);
    let loss = timeout(secs(60), guard.lost()).await.expect("the panic is noticed");
    assert_eq!(
        loss.reason(),
        LossReason::RenewalDied,
        "the death of the task is not reported: that would be a second panic"
    );
    armed.store(false, Ordering::SeqCst);
    drop(guard);
    scene.free_within(secs(1)).await;
}

/// A tracing subscriber that panics, while armed, at events whose target begins so.
struct Panics {
    armed: Arc<AtomicBool>,
    at: &'static str,
    once: bool,
}

impl tracing::Subscriber for Panics {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("leasehold::")
    }
    fn event(&self, event: &tracing::Event<'_>) {
        let meant = event.metadata().target().starts_with(self.at);
        let planned = meant && self.armed.load(Ordering::SeqCst);
        if planned && self.once {
            self.armed.store(false, Ordering::SeqCst);
        }
        assert!(!planned, "planned: the subscriber panics");
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
