//! What a renewal costs the server: bytes of the write-ahead log, and updates that touch no index.

use std::time::Instant;

use leasehold::answer::{BatchRenewal, RenewAnswer};
use leasehold::store::{MAX_BATCH, Store};
use leasehold::{Fence, ReportId};

use crate::cluster::Cluster;
use crate::scene::{Scene, TTL, acquires, budget, publishes};
use crate::support::PostgresHarness;

/// A cluster where nobody else writes, without the images of whole pages that follow a checkpoint.
async fn quiet() -> (Cluster, Scene) {
    let cluster =
        Cluster::start(&["full_page_writes=off", "autovacuum=off", "checkpoint_timeout=1h", "bgwriter_lru_maxpages=0"]);
    let scene = Scene::on(PostgresHarness::on(cluster.config(), &[]).await).await;
    (cluster, scene)
}

async fn wal_position(scene: &Scene) -> i64 {
    let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    scene.db.client.query_typed(sql, &[]).await.unwrap()[0].get(0)
}

async fn leases(scene: &Scene, count: usize) -> Vec<Fence> {
    let mut fences = Vec::new();
    for index in 0..count {
        let report = ReportId::from_name(&format!("report {index}"));
        scene.store.provision(report, budget()).await.unwrap();
        fences.push(acquires(&scene.store, report).await);
    }
    fences
}

async fn renew_all(scene: &Scene, fences: &[Fence]) {
    for answer in scene.store.renew_many(fences.to_vec(), TTL, budget()).await.unwrap() {
        assert!(matches!(answer, BatchRenewal::Answered(RenewAnswer::Renewed { .. })), "{answer:?}");
    }
}

#[tokio::test]
async fn a_renewal_writes_as_much_log_whatever_the_size_of_the_payload() {
    const RENEWALS: i64 = 50;
    let (_cluster, scene) = quiet().await;
    let mut costs = Vec::new();
    // Nothing; what PostgreSQL keeps within a row; what it moves out of it.
    for size in [0, 1_500, 16 * 1024 * 1024] {
        publishes(&scene.store, scene.acquires().await, &"x".repeat(size)).await;
        let fence = scene.acquires().await;
        let before = wal_position(&scene).await;
        for _ in 0..RENEWALS {
            let answer = scene.store.renew(fence, TTL, budget()).await.unwrap();
            assert!(matches!(answer, RenewAnswer::Renewed { .. }));
        }
        costs.push((wal_position(&scene).await - before) / RENEWALS);
        scene.store.release(fence, budget()).await.unwrap();
    }
    println!("figure: postgres.renew.wal_bytes_alone = {} bytes", costs[0]);
    let (least, most) = (costs.iter().min().unwrap(), costs.iter().max().unwrap());
    assert!(*most <= 400 && most - least <= least / 5, "bytes of log for each renewal: {costs:?}");
}

#[tokio::test]
async fn a_thousand_renewals_are_one_cheap_statement_that_touches_no_index() {
    const ROUNDS: usize = 20;
    let (_cluster, scene) = quiet().await;
    let fences = leases(&scene, MAX_BATCH).await;
    renew_all(&scene, &fences).await;
    let (before, began) = (wal_position(&scene).await, Instant::now());
    for _ in 0..ROUNDS {
        renew_all(&scene, &fences).await;
    }
    let (took, renewals) = (began.elapsed(), (ROUNDS * MAX_BATCH) as i64);
    let bytes = (wal_position(&scene).await - before) / renewals;
    println!("figure: postgres.renew.wal_bytes = {bytes} bytes");
    println!("figure: postgres.renew_many.1000.per_second = {:.0} 1/s", renewals as f64 / took.as_secs_f64());
    assert!(bytes <= 160, "{bytes} bytes of log for each renewal");
    // The sessions tell the server's statistics when they end.
    let sql = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'report_publication'";
    let Scene { store, db, .. } = scene;
    drop(store);
    let values =
        [(&db.schema as &(dyn leasehold::store::postgres::ToSql + Sync), leasehold::store::postgres::Type::TEXT)];
    let waited = Instant::now();
    let (updates, hot) = loop {
        let rows = db.client.query_typed(sql, &values).await.unwrap();
        let (updates, hot): (i64, i64) = (rows[0].get(0), rows[0].get(1));
        if updates >= renewals || waited.elapsed().as_secs() > 20 {
            break (updates, hot);
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    println!("figure: postgres.renew.hot_share = {:.1} %", 100.0 * hot as f64 / updates as f64);
    assert!(updates >= renewals && hot * 100 >= updates * 99, "{hot} of {updates} updates touched no index");
}
