//! A worker's login can do a worker's work and nothing else, and nothing that it sends is read as SQL.

use leasehold::answer::{BatchRenewal, CloseAnswer, Ending, ReadAnswer, ReleaseAnswer, RenewAnswer};
use leasehold::conformance::Database;
use leasehold::store::postgres::PostgresStore;
use leasehold::store::{AdvanceRequest, Budget, CloseRequest, FencedTransaction, ListRequest, Store};
use leasehold::{Epoch, Holder, Owner, ReportId, SourceRevision, StoreErrorKind};
use std::time::Duration;

use crate::scene::{Scene, TTL, acquires, acquiring, budget, fails, publishes, publishing};
use crate::support::{as_login, connect, create_login};

const WORKER: &str = "leasehold_test_worker";

async fn worker(scene: &Scene) -> PostgresStore {
    create_login(&scene.db.client, WORKER, "leasehold_worker").await;
    let config = scene.db.store_config(WORKER);
    PostgresStore::from_config(config).schema(&scene.db.schema).connect().await.expect("a worker")
}

#[tokio::test]
async fn a_workers_login_can_do_everything_that_a_worker_does() {
    let scene = Scene::new().await;
    let store = worker(&scene).await;
    let report = ReportId::from_name("another");
    store.provision(report, budget()).await.unwrap();
    let fence = acquires(&store, report).await;
    assert!(matches!(store.renew(fence, TTL, budget()).await.unwrap(), RenewAnswer::Renewed { .. }));
    let many = store.renew_many(vec![fence], TTL, budget()).await.unwrap();
    assert!(matches!(many[0], BatchRenewal::Answered(RenewAnswer::Renewed { .. })));
    let advance = AdvanceRequest { publish: publishing(fence, "one"), next_owner: Owner::random(), ttl: TTL };
    store.publish_and_advance(advance.clone(), budget()).await.unwrap();
    let owner = advance.next_owner;
    let closed = store.close(CloseRequest { report, owner, learned: None }, budget()).await.unwrap();
    assert_eq!(closed, CloseAnswer::Ended(Ending::Closed));
    let fence = acquires(&store, report).await;
    assert_eq!(store.release(fence, budget()).await.unwrap(), ReleaseAnswer::Released);
    let fence = acquires(&store, report).await;
    let transaction = store.begin(budget()).await.unwrap();
    transaction.publish(publishing(fence, "two"), budget()).await.unwrap();
    let found = store.read(report, None, budget()).await.unwrap();
    assert!(matches!(found, ReadAnswer::Found { payload, .. } if payload == "two"));
    assert!(store.metadata(report, budget()).await.unwrap().is_some());
    assert!(store.inspect(report, budget()).await.unwrap().is_some());
    let list = ListRequest { after: None, limit: 10, leased_only: false };
    assert_eq!(store.list(list, budget()).await.unwrap().len(), 2);
    let check = store.check(budget()).await.unwrap();
    assert_eq!(check.problems, Vec::<String>::new());
    assert!(check.engine.contains("a worker's rights"), "{}", check.engine);
}

#[tokio::test]
async fn a_workers_login_is_refused_what_operators_do() {
    let scene = Scene::new().await;
    let store = worker(&scene).await;
    let (report, by) = (scene.report, Holder::new("me").unwrap());
    let rejected = StoreErrorKind::Rejected;
    fails(store.force_release(report, by, budget()).await, rejected, "grant it");
    fails(store.require_source_revision(report, SourceRevision::new(1), budget()).await, rejected, "grant it");
    fails(store.reset_source_revision(report, None, budget()).await, rejected, "grant it");
    fails(store.advance_recovery_epoch(Epoch::new(9), budget()).await, rejected, "grant it");
    fails(store.prune_ledger(Duration::ZERO, budget()).await, rejected, "grant it");
    fails(store.install(budget()).await, rejected, "grant it");
    assert_eq!(scene.db.row(report).await.unwrap().epoch, Epoch::new(0));
}

#[tokio::test]
async fn a_workers_login_can_touch_no_table_and_no_inner_function() {
    let scene = Scene::new().await;
    worker(&scene).await;
    let client = connect(&as_login(&scene.harness.config, WORKER)).await;
    let s = &scene.db.schema;
    for sql in [
        format!("SELECT * FROM {s}.report_publication"),
        format!("SELECT * FROM {s}.report_payload"),
        format!("SELECT * FROM {s}.report_ledger"),
        format!("SELECT * FROM {s}.leasehold_store"),
        format!("UPDATE {s}.report_publication SET generation = 0"),
        format!("DELETE FROM {s}.report_ledger"),
        format!("INSERT INTO {s}.leasehold_store VALUES (2, 1, 0)"),
        format!("TRUNCATE {s}.report_ledger"),
        format!("SELECT {s}.lock_row('{}')", scene.report),
        format!("SELECT {s}.lock_row_of('{0}', '{0}')", scene.report),
        format!("CREATE TABLE {s}.mine (x int)"),
        format!("CREATE FUNCTION {s}.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
        format!("CREATE OR REPLACE FUNCTION {s}.store_state() RETURNS record LANGUAGE sql AS 'SELECT 1, 2, now()'"),
        format!("DROP FUNCTION {s}.provision(uuid)"),
        "CREATE FUNCTION pg_catalog.clock_timestamp(int) RETURNS int LANGUAGE sql AS 'SELECT 1'".to_owned(),
    ] {
        let error = client.batch_execute(&sql).await.expect_err(&sql);
        assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{sql}");
    }
}

#[tokio::test]
async fn nothing_in_a_callers_own_schemas_is_used_by_the_functions() {
    let scene = Scene::new().await;
    worker(&scene).await;
    // As the superuser opens `public` for everybody, as it was before PostgreSQL 15.
    scene.db.client.batch_execute("GRANT CREATE ON SCHEMA public TO PUBLIC").await.unwrap();
    let client = connect(&as_login(&scene.harness.config, WORKER)).await;
    let s = &scene.db.schema;
    client
        .batch_execute(
            "SET search_path = public, pg_temp, pg_catalog; \
             CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT 'infinity'::timestamptz$$; \
             CREATE FUNCTION public.current_setting(text) RETURNS text LANGUAGE sql AS $$SELECT 'mine'$$; \
             CREATE FUNCTION public.uuid_eq_all(uuid, uuid) RETURNS boolean LANGUAGE sql AS 'SELECT true'; \
             CREATE OPERATOR public.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = public.uuid_eq_all); \
             CREATE TEMP TABLE report_publication (report_id uuid); \
             CREATE TEMP TABLE report_ledger (lease_owner uuid)",
        )
        .await
        .unwrap();
    let fence = scene.acquires().await;
    let other = ReportId::from_name("another");
    let sql = format!("SELECT applied FROM {s}.release('{other}', '{}', 1, 0)", fence.owner);
    let rows = client.query_typed(&sql, &[]).await.unwrap();
    assert!(!rows[0].get::<_, bool>(0), "the caller's own operator was used");
    let sql = format!("SELECT found_at < 'infinity' FROM {s}.renew('{}', '{}', 1, 0, 1000)", fence.report, fence.owner);
    assert!(client.query_typed(&sql, &[]).await.unwrap()[0].get::<_, bool>(0), "the caller's own clock was used");
}

#[tokio::test]
async fn nothing_that_is_sent_is_read_as_sql() {
    let scene = Scene::new().await;
    let (store, s) = (&scene.store, &scene.db.schema);
    let hostile = [
        format!("'); DROP SCHEMA {s} CASCADE; --"),
        format!("\"; DROP SCHEMA {s} CASCADE; --"),
        "$$; ROLLBACK; $$".to_owned(),
        "\\'; SELECT 1; \\".to_owned(),
        "$1 %s {schema} leasehold. ${1}".to_owned(),
    ];
    for text in &hostile {
        let request =
            leasehold::store::AcquireRequest { holder: Holder::new(text).unwrap(), ..acquiring(scene.report) };
        store.acquire(request, budget()).await.unwrap();
        let lease = store.inspect(scene.report, budget()).await.unwrap().unwrap().lease.unwrap();
        assert_eq!(lease.holder.as_str(), text);
        store.force_release(scene.report, Holder::new(text).unwrap(), budget()).await.unwrap();
        let forced = store.inspect(scene.report, budget()).await.unwrap().unwrap().forced.unwrap();
        assert_eq!(forced.by.as_str(), text);
        let fence = scene.acquires().await;
        publishes(store, fence, text).await;
        let read = store.read(scene.report, None, budget()).await.unwrap();
        assert!(matches!(read, ReadAnswer::Found { payload, .. } if payload == *text));
        let name = PostgresStore::from_config(scene.harness.config.clone()).schema(text).build();
        fails(name, StoreErrorKind::Invalid, "letters");
        let name = PostgresStore::from_config(scene.harness.config.clone()).roles(text, "b").build();
        fails(name, StoreErrorKind::Invalid, "letters");
    }
}

#[tokio::test]
async fn names_that_need_quotation_marks_can_be_used() {
    let scene = Scene::new().await;
    for schema in ["SELECT", "Reports_of_2026", "leasehold"] {
        let builder = || PostgresStore::from_config(scene.harness.config.clone()).schema(schema);
        builder().build().unwrap().install(budget()).await.unwrap();
        let store = builder().connect().await.unwrap();
        store.provision(scene.report, budget()).await.unwrap();
        let fence = acquires(&store, scene.report).await;
        publishes(&store, fence, "a report").await;
        assert_eq!(store.check(Budget::within(Duration::from_secs(20))).await.unwrap().problems, Vec::<String>::new());
    }
}
