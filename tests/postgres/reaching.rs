//! A server that cannot be reached, or refuses: which kind of error, and what its words give away.

use std::time::{Duration, Instant};

use leasehold::store::postgres::{Config, PostgresStore};
use leasehold::store::{Budget, Store};
use leasehold::{ReportId, StoreErrorKind};

use crate::cluster::Cluster;
use crate::scene::{Scene, acquires, acquiring, budget, everything, fails, publishes};
use crate::support::{Defaults, PostgresHarness, connect};

const SECRET: &str = "s3cr3t-Pa55word";

fn short() -> Budget {
    Budget::within(Duration::from_millis(1500))
}

fn store(config: &Config) -> PostgresStore {
    PostgresStore::from_config(config.clone()).build().unwrap()
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_unavailable() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let url = format!("postgresql://me:{SECRET}@127.0.0.1:{port}/reports?sslmode=disable");
    let store = PostgresStore::builder(&url).build().unwrap();
    let error = fails(
        store.acquire(acquiring(ReportId::from_name("r")), short()).await,
        StoreErrorKind::Unavailable,
        "cannot be reached",
    );
    assert!(!everything(&error).contains(SECRET));
}

#[tokio::test]
async fn a_server_that_never_answers_is_unavailable_by_the_budget() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let url = format!("postgresql://me:{SECRET}@127.0.0.1:{port}/reports?sslmode=disable");
    let store = PostgresStore::builder(&url).build().unwrap();
    let began = Instant::now();
    let answer = store.acquire(acquiring(ReportId::from_name("r")), Budget::within(Duration::from_millis(200))).await;
    fails(answer, StoreErrorKind::Unavailable, "until the budget ended");
    assert!(began.elapsed() < Duration::from_secs(10));
    drop(socket);
}

#[tokio::test]
async fn a_wrong_password_is_rejected_and_not_repeated() {
    let hba = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    let cluster = Cluster::start_with(&[], hba, |_| {});
    let admin = connect(&cluster.config()).await;
    admin.batch_execute("CREATE ROLE me LOGIN PASSWORD 'right'").await.unwrap();
    let mut config = cluster.config();
    config.user("me").password(SECRET);
    let error = fails(store(&config).check(short()).await, StoreErrorKind::Rejected, "refused the login");
    assert!(!everything(&error).contains(SECRET));
    let mut config = cluster.config();
    config.user("me");
    fails(store(&config).check(short()).await, StoreErrorKind::Rejected, "password");
    config.password("right");
    fails(store(&config).check(short()).await, StoreErrorKind::Rejected, "run install()");
}

#[tokio::test]
async fn a_wrong_database_is_rejected() {
    let harness = PostgresHarness::new(Defaults::ReadCommitted).await;
    let mut config = harness.config.clone();
    config.dbname("no_such_database");
    fails(store(&config).check(short()).await, StoreErrorKind::Rejected, "no database of that name");
}

#[tokio::test]
async fn a_read_only_database_is_rejected_for_writes_and_can_be_read() {
    let scene = Scene::new().await;
    publishes(&scene.store, scene.acquires().await, "a report").await;
    let sql =
        format!("ALTER DATABASE {} SET default_transaction_read_only = on", scene.harness.config.get_dbname().unwrap());
    scene.db.client.batch_execute(&sql).await.unwrap();
    let store = scene.db.store();
    fails(store.acquire(acquiring(scene.report), budget()).await, StoreErrorKind::Rejected, "read-only");
    assert!(store.metadata(scene.report, budget()).await.unwrap().is_some());
    assert!(store.check(budget()).await.unwrap().problems.iter().any(|problem| problem.contains("read-only")));
    scene.db.client.batch_execute(&sql.replace("= on", "= off")).await.unwrap();
}

#[tokio::test]
async fn a_string_that_cannot_be_read_is_invalid_and_not_repeated() {
    for text in [
        format!("postgresql://me:{SECRET}@host:not-a-port/db"),
        format!("host=x password={SECRET} 'and more"),
        format!("host=x pass{SECRET}=y"),
        format!("postgresql://me:{SECRET}@host/db?sslmode={SECRET}"),
        SECRET.to_owned(),
    ] {
        let error = fails(PostgresStore::builder(&text).build(), StoreErrorKind::Invalid, "postgresql://user");
        assert!(!everything(&error).contains(SECRET), "{text}");
    }
}

#[tokio::test]
async fn nothing_that_can_be_printed_shows_where_it_connects() {
    let url = format!("postgresql://me:{SECRET}@db.example.com/reports?sslmode=disable");
    let builder = PostgresStore::builder(&url);
    let shown = format!("{builder:?}");
    let store = builder.build().unwrap();
    let shown = format!("{shown} {store:?}");
    for word in [SECRET, "db.example.com"] {
        assert!(!shown.contains(word), "{shown}");
    }
}

#[tokio::test]
async fn a_server_without_a_connection_left_is_unavailable_until_there_is_one() {
    let cluster = Cluster::start(&["max_connections=6", "superuser_reserved_connections=2"]);
    let scene = Scene::on(PostgresHarness::on(cluster.config(), &[]).await).await;
    // As the stores' own login, which has no reserved connection.
    let login = scene.db.store_config("leasehold_test_operator");
    let mut taken = Vec::new();
    while let Ok((client, connection)) = login.connect(tokio_postgres::NoTls).await {
        tokio::spawn(connection);
        taken.push(client);
    }
    let store = scene.db.store();
    fails(store.acquire(acquiring(scene.report), budget()).await, StoreErrorKind::Unavailable, "max_connections");
    taken.clear();
    let began = Instant::now();
    loop {
        match store.acquire(acquiring(scene.report), budget()).await {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}"),
        }
        assert!(began.elapsed() < Duration::from_secs(30), "the connections that were let go cannot be had");
    }
}

#[tokio::test]
async fn a_pool_whose_connections_are_all_in_use_is_unavailable_and_renewals_have_their_own() {
    let scene = Scene::new().await;
    let config = scene.db.store_config("leasehold_test_operator");
    let store = PostgresStore::from_config(config).schema(&scene.db.schema).pool_size(1).build().unwrap();
    let fence = acquires(&store, scene.report).await;
    let open = store.begin(budget()).await.unwrap();
    fails(
        store.metadata(scene.report, Budget::within(Duration::from_millis(200))).await,
        StoreErrorKind::Unavailable,
        "pool_size",
    );
    store.renew(fence, crate::scene::TTL, budget()).await.unwrap();
    drop(open);
    store.metadata(scene.report, budget()).await.unwrap();
}
