//! A server that is away for a while: leases whose margin is longer go on, others are over by their deadline, and nobody who lost
//! one publishes.

use std::time::{Duration, Instant};

use leasehold::conformance::Database;
use leasehold::{LeaseGuard, LeasePolicy, LeaseStatus, LeaseSupervisor, LossReason, ReportId};

use crate::cluster::Cluster;
use crate::scene::{Scene, acquires, budget, publishes};
use crate::support::PostgresHarness;
use leasehold::store::Store;

async fn leased(scene: &Scene, name: &str, ttl: Duration) -> (LeaseSupervisor, LeaseGuard) {
    let policy = LeasePolicy::builder(ttl).cadence(Duration::from_millis(100)).build().unwrap();
    let supervisor = LeaseSupervisor::new(scene.store.clone(), policy).unwrap();
    let report = ReportId::from_name(name);
    scene.store.provision(report, budget()).await.unwrap();
    let guard = supervisor.acquire(report, None).await.unwrap().acquired().expect("a lease");
    (supervisor, guard)
}

async fn away_longer_than_the_short_lease(mode: &str) {
    let cluster = Cluster::start(&[]);
    let scene = Scene::on(PostgresHarness::on(cluster.config(), &[]).await).await;
    let (_one, long) = leased(&scene, "long", Duration::from_secs(120)).await;
    let (_other, short) = leased(&scene, "short", Duration::from_secs(2)).await;
    let (fence, lost) = (short.lease().fence(), short.lost());

    cluster.stop(mode);
    let deadline = Instant::now() + short.lease().remaining();
    let loss = tokio::time::timeout(Duration::from_secs(30), lost).await.expect("it is told while the server is away");
    assert_eq!(loss.reason(), LossReason::DeadlinePassed);
    assert!(Instant::now() + Duration::from_millis(50) >= deadline, "no lease is given up before its deadline");
    cluster.start_again();

    // The connection behind the scene's back died with the server.
    let scene = Scene { db: scene.db.connected_anew().await, ..scene };
    let so_far = long.lease().renewals();
    let began = Instant::now();
    while long.lease().renewals() < so_far + 3 {
        assert!(matches!(long.status(), LeaseStatus::Held { .. }), "{:?}", long.status());
        assert!(began.elapsed() < Duration::from_secs(60), "not renewed again within a minute");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Whoever lost the lease publishes nothing, also past its guard; its successor and the other do.
    short.publication("of a lost lease").send().await.expect_err("it is lost");
    let successor = loop {
        if scene.db.row(fence.report).await.is_some_and(|row| row.expires_in_millis.is_none_or(|left| left < 0)) {
            break acquires(&scene.store, fence.report).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    publishes(&scene.store, successor, "the successor's").await;
    assert_eq!(scene.db.row(fence.report).await.unwrap().payload.as_deref(), Some("the successor's"));
    let receipt = long.publication("a report").send().await.unwrap();
    assert_eq!(receipt.generation.get(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_that_takes_longer_than_a_lease_ends_that_lease_and_no_longer_one() {
    away_longer_than_the_short_lease("fast").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_that_takes_longer_than_a_lease_ends_that_lease_and_no_longer_one() {
    away_longer_than_the_short_lease("immediate").await;
}
