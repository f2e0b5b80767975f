//! The schema: installed once, by many at once, over an older one, never over a newer one.

use std::process::Command;

use futures::future::join_all;
use leasehold::StoreErrorKind;
use leasehold::conformance::Database;
use leasehold::store::Store;
use leasehold::store::postgres::PostgresStore;

use crate::scene::{Scene, acquires, budget, fails, publishes};
use crate::support::{Defaults, PostgresHarness};

fn of(harness: &PostgresHarness) -> PostgresStore {
    PostgresStore::from_config(harness.config.clone()).build().unwrap()
}

#[tokio::test]
async fn of_many_installations_at_once_all_succeed() {
    let harness = PostgresHarness::new(Defaults::ReadCommitted).await;
    let stores: Vec<_> = (0..8).map(|_| of(&harness)).collect();
    for installed in join_all(stores.iter().map(|store| store.install(budget()))).await {
        installed.unwrap();
    }
    assert_eq!(stores[0].check(budget()).await.unwrap().schema_version, 1);
}

#[tokio::test]
async fn an_installation_over_another_text_keeps_every_row() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let receipt = publishes(&scene.store, fence, "a report").await;
    let held = scene.acquires().await;
    let row = scene.db.row(scene.report).await;
    let owner = PostgresStore::from_config(scene.db.config.clone()).schema(&scene.db.schema).build().unwrap();
    // As if an earlier build had installed it, with other functions.
    scene.db.change("UPDATE {s}.leasehold_store SET script = NULL, recovery_epoch = 0", &[]).await;
    scene.db.change("DROP FUNCTION {s}.store_state()", &[]).await;
    let of_before = scene.store.check(budget()).await;
    fails(of_before, StoreErrorKind::Rejected, "install()");
    owner.install(budget()).await.unwrap();
    scene.store.check(budget()).await.unwrap();
    let now = scene.db.row(scene.report).await.unwrap();
    assert_eq!((now.owner, now.payload), (row.as_ref().unwrap().owner, row.unwrap().payload));
    publishes(&scene.store, held, "the next").await;
    assert_eq!(receipt.generation.get() + 1, held.generation.get());
}

#[tokio::test]
async fn an_installation_of_the_same_text_changes_nothing() {
    let scene = Scene::new().await;
    let sql = format!("SELECT max(oid::bigint) FROM pg_proc WHERE pronamespace = '{}'::regnamespace", scene.db.schema);
    let newest = async || scene.db.client.query_typed(&sql, &[]).await.unwrap()[0].get::<_, i64>(0);
    let before = newest().await;
    let owner = PostgresStore::from_config(scene.db.config.clone()).schema(&scene.db.schema).build().unwrap();
    owner.install(budget()).await.unwrap();
    assert_eq!(newest().await, before, "functions were made anew");
}

#[tokio::test]
async fn a_newer_schema_is_left_alone_and_refused() {
    let scene = Scene::new().await;
    scene.db.change("UPDATE {s}.leasehold_store SET schema_version = 2, script = NULL", &[]).await;
    let builder = || PostgresStore::from_config(scene.db.config.clone()).schema(&scene.db.schema);
    fails(builder().build().unwrap().install(budget()).await, StoreErrorKind::Rejected, "newer version");
    fails(builder().connect().await, StoreErrorKind::Rejected, "update leasehold");
    let check = builder().build().unwrap().check(budget()).await.unwrap();
    assert_eq!((check.schema_version, check.problems.len()), (2, 1));
}

#[tokio::test]
async fn a_database_without_the_schema_is_refused_with_what_to_do() {
    let harness = PostgresHarness::new(Defaults::ReadCommitted).await;
    let connected = PostgresStore::from_config(harness.config.clone()).connect().await;
    fails(connected, StoreErrorKind::Rejected, "run install()");
    let provisioned = of(&harness).provision(leasehold::ReportId::from_name("report"), budget()).await;
    fails(provisioned, StoreErrorKind::Rejected, "run install()");
}

#[tokio::test]
async fn the_script_for_a_dba_installs_the_same_by_psql() {
    let harness = PostgresHarness::new(Defaults::Serializable).await;
    let store = of(&harness);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), store.install_script()).unwrap();
    let config = &harness.config;
    let [tokio_postgres::config::Host::Tcp(host)] = config.get_hosts() else { panic!("a TCP host") };
    for _ in 0..2 {
        let output = Command::new("psql")
            .args(["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--host", host])
            .args(["--port", &config.get_ports()[0].to_string(), "--username", config.get_user().unwrap()])
            .args(["--dbname", config.get_dbname().unwrap(), "--file"])
            .arg(file.path())
            .env("PGPASSWORD", config.get_password().unwrap_or_default().escape_ascii().to_string())
            .output()
            .expect("psql is installed beside the server");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    store.install(budget()).await.unwrap();
    let report = leasehold::ReportId::from_name("report");
    store.provision(report, budget()).await.unwrap();
    publishes(&store, acquires(&store, report).await, "a report").await;
}
