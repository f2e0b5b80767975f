//! How often a store is asked for each step of a lease's life.

use std::time::Duration;

use leasehold::store::Store;
use leasehold::{Acquisition, LeaseGuard, LeasePolicy, LeaseSupervisor, ReportId};

use super::figure::Figures;

/// Counts with this closure, which answers how many round trips there were since it was last asked.
pub(crate) async fn measure<S: Store + Clone>(figures: &Figures, store: S, mut round_trips: impl FnMut() -> f64) {
    // Renewals are frequent in the last part, and none is due before.
    let policy = |cadence| LeasePolicy::builder(Duration::from_secs(60)).cadence(cadence).build().expect("a policy");
    let calm = LeaseSupervisor::new(store.clone(), policy(Duration::from_secs(20))).expect("a thread");
    let report = ReportId::from_name("round trips");
    calm.provision(report).await.expect("a row");
    // A server's connections are made when they are first needed.
    acquire(&calm, report).await.publish("payload").await.expect("published");
    acquire(&calm, report).await.release().await;
    round_trips();

    let guard = acquire(&calm, report).await;
    figures.print("acquire.round_trips", round_trips(), "count");
    guard.publish("payload").await.expect("published");
    figures.print("publish.round_trips", round_trips(), "count");

    let guard = acquire(&calm, report).await;
    guard.publish("payload").await.expect("published");
    figures.print("cycle.round_trips", round_trips(), "count");

    let guard = acquire(&calm, report).await;
    round_trips();
    guard.release().await;
    figures.print("release.round_trips", round_trips(), "count");

    let busy = LeaseSupervisor::new(store, policy(Duration::from_millis(200))).expect("a thread");
    let guard = acquire(&busy, report).await;
    renewed(&guard, 2).await;
    let before = guard.lease().renewals();
    round_trips();
    renewed(&guard, before + 5).await;
    let trips = round_trips();
    figures.print("renew.round_trips", trips / (guard.lease().renewals() - before) as f64, "count");
    guard.release().await;
}

/// Waits until it was renewed so often.
async fn renewed(guard: &LeaseGuard, times: u64) {
    while guard.lease().renewals() < times {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn acquire(supervisor: &LeaseSupervisor, report: ReportId) -> LeaseGuard {
    match supervisor.acquire(report, None).await.expect("acquire") {
        Acquisition::Acquired(guard) => guard,
        other => panic!("acquired, not {other:?}"),
    }
}
