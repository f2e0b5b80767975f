//! Sessions that end under a lease: killed by an operator, by a restart, by a crash.

use std::time::{Duration, Instant};

use leasehold::conformance::Database;
use leasehold::store::Store;
use leasehold::store::postgres::{PostgresStore, Type};
use leasehold::{LeaseGuard, LeasePolicy, LeaseStatus, LeaseSupervisor, ReportId, StoreErrorKind};

use crate::cluster::Cluster;
use crate::scene::{Scene, TTL, budget, publishing};
use crate::support::{PostgresDatabase, PostgresHarness};

/// A lease that is renewed often, with so much time left that a few failed renewals do not end it.
async fn leased(scene: &Scene) -> (LeaseSupervisor, LeaseGuard) {
    let policy = LeasePolicy::builder(Duration::from_secs(60))
        .cadence(Duration::from_millis(50))
        .attempt_timeout(Duration::from_secs(2))
        .build()
        .unwrap();
    let supervisor = LeaseSupervisor::new(scene.store.clone(), policy).unwrap();
    let guard = supervisor.acquire(scene.report, None).await.unwrap().acquired().expect("a lease");
    (supervisor, guard)
}

async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn renewed_thrice_more(guard: &LeaseGuard) {
    let so_far = guard.lease().renewals();
    until("three more renewals", async || guard.lease().renewals() >= so_far + 3).await;
    assert!(matches!(guard.status(), LeaseStatus::Held { .. }), "{:?}", guard.status());
}

async fn kill_all_sessions(db: &PostgresDatabase) -> i64 {
    let sql =
        "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
    db.client.query_typed(sql, &[(&db.schema, Type::TEXT)]).await.unwrap()[0].get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_with_time_left_survives_the_end_of_every_session() {
    let scene = Scene::new().await;
    let (_supervisor, guard) = leased(&scene).await;
    for _ in 0..10 {
        assert!(kill_all_sessions(&scene.db).await > 0, "nobody was connected");
        renewed_thrice_more(&guard).await;
    }
    // And then publishes, at most re-sent.
    let mut publication = guard.publication("a report");
    publication.send().await.unwrap();
    assert_eq!(scene.db.row(scene.report).await.unwrap().payload.as_deref(), Some("a report"));
}

#[tokio::test]
async fn a_write_whose_session_is_killed_is_unknown_and_its_connection_is_not_used_again() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let blocker = scene.db.block(scene.report, leasehold::conformance::BlockerEnd::RollBack).await;
    let (store, request) = (scene.store.clone(), publishing(fence, "a report"));
    let sent = request.clone();
    let call = tokio::spawn(async move { store.publish(sent, budget()).await });
    leasehold::conformance::Blocker::wait_for_waiters(&blocker, 1).await;
    assert!(kill_all_sessions(&scene.db).await > 0);
    let error = call.await.unwrap().expect_err("its session was killed");
    assert_eq!(error.kind(), StoreErrorKind::Unknown, "{error}");
    leasehold::conformance::Blocker::release(blocker).await;
    // The same publication, sent again, is accepted once.
    for accepted in [true, false] {
        let answer = scene.store.publish(request.clone(), budget()).await.unwrap();
        assert_eq!(matches!(answer, leasehold::answer::PublishAnswer::Published(_)), accepted, "{answer:?}");
    }
}

#[tokio::test]
async fn a_read_whose_session_is_killed_is_unavailable() {
    let scene = Scene::new().await;
    let lock = crate::support::connect(&scene.db.config).await;
    let sql = format!("BEGIN; LOCK TABLE {}.report_publication IN ACCESS EXCLUSIVE MODE", scene.db.schema);
    lock.batch_execute(&sql).await.unwrap();
    let (store, report) = (scene.store.clone(), scene.report);
    let call = tokio::spawn(async move { store.metadata(report, budget()).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    until("the read waits", async || {
        scene.db.client.query_typed(waiting, &[(&scene.db.schema, Type::TEXT)]).await.unwrap()[0].get::<_, i64>(0) > 0
    })
    .await;
    kill_all_sessions(&scene.db).await;
    assert_eq!(call.await.unwrap().expect_err("its session was killed").kind(), StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn a_dropped_call_leaves_no_answer_for_the_next() {
    let scene = Scene::new().await;
    let config = scene.db.store_config("leasehold_test_operator");
    let store =
        PostgresStore::from_config(config).schema(&scene.db.schema).pool_size(1).renewal_pool_size(1).build().unwrap();
    let fence = crate::scene::acquires(&store, scene.report).await;
    let other = ReportId::from_name("another");
    for _ in 0..20 {
        let blocker = scene.db.block(scene.report, leasehold::conformance::BlockerEnd::RollBack).await;
        {
            let mut call = std::pin::pin!(store.renew(fence, TTL, budget()));
            tokio::select! {
                biased;
                answer = &mut call => panic!("answered behind a lock: {answer:?}"),
                () = leasehold::conformance::Blocker::wait_for_waiters(&blocker, 1) => {}
            }
        } // Dropped here, while its statement waits.
        leasehold::conformance::Blocker::release(blocker).await;
        let elsewhere = leasehold::Fence { report: other, ..fence };
        let answer = store.renew(elsewhere, TTL, budget()).await.unwrap();
        assert_eq!(answer, leasehold::answer::RenewAnswer::Refused(leasehold::answer::Refusal::Missing));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_with_time_left_survives_a_restart_and_a_crash_of_the_server() {
    let cluster = Cluster::start(&[]);
    let scene = Scene::on(PostgresHarness::on(cluster.config(), &[]).await).await;
    let (_supervisor, guard) = leased(&scene).await;
    for mode in ["fast", "immediate"] {
        renewed_thrice_more(&guard).await;
        cluster.stop(mode);
        cluster.start_again();
        renewed_thrice_more(&guard).await;
    }
    let receipt = guard.publication("a report").send().await.unwrap();
    assert_eq!(receipt.generation.get(), 1);
}

#[tokio::test]
async fn a_store_outlives_the_caller_that_made_it_in_another_runtime() {
    let scene = Scene::new().await;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let elsewhere = scene.store.for_runtime(runtime.handle());
    let fence = crate::scene::acquires(&elsewhere, scene.report).await;
    runtime.shutdown_background();
    let error = elsewhere.renew(fence, TTL, budget()).await.expect_err("its runtime is gone");
    assert_eq!(error.kind(), StoreErrorKind::Unknown);
    scene.store.renew(fence, TTL, budget()).await.unwrap();
}

#[tokio::test]
async fn a_store_works_on_pools_of_the_callers_own() {
    use deadpool_postgres::{Manager, Pool};
    let scene = Scene::new().await;
    let config = scene.db.store_config("leasehold_test_operator");
    let make = move || Pool::builder(Manager::new(config.clone(), tokio_postgres::NoTls)).max_size(2).build().unwrap();
    let store = PostgresStore::with_pools(make).schema(&scene.db.schema).connect().await.unwrap();
    let fence = crate::scene::acquires(&store, scene.report).await;
    let elsewhere = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    store.for_runtime(elsewhere.handle()).renew(fence, TTL, budget()).await.unwrap();
    crate::scene::publishes(&store, fence, "a report").await;
    elsewhere.shutdown_background();
}
