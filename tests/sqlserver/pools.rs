//! Configurations for each connection, and pools that fail.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold::StoreErrorKind;
use leasehold::store::Store;
use leasehold::store::sqlserver::{Client, ConnectionPool, SqlServerStore};
use tokio::runtime::Handle;

use crate::support::{Schema, config};
use crate::words::{budget, says, take, unknown_report};

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn the_configuration_is_asked_for_once_for_each_connection() {
    let schema = Schema::installed().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let (counter, name) = (Arc::clone(&asked), schema.name.clone());
    let store = SqlServerStore::builder()
        .config_per_connection(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            let config = config(&name);
            async move { Ok::<_, io::Error>(config) }
        })
        .schema(&schema.name)
        .max_connections(1)
        .build()
        .unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nothing is connected before it is needed");
    let fence = take(&store).await;
    store.inspect(fence.report, budget()).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    store.renew(fence, crate::words::TTL, budget()).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2, "renewals have a connection of their own");
    // A connection that is thrown away is made anew, with a token that is fresh.
    drop(store.begin(budget()).await.unwrap());
    store.inspect(fence.report, budget()).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn an_error_of_the_closure_is_passed_on_as_the_source() {
    let store = SqlServerStore::builder()
        .config_per_connection(|| async { Err(io::Error::other("the vault is sealed")) })
        .build()
        .unwrap();
    let error = store.metadata(unknown_report(), budget()).await.unwrap_err();
    assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("the vault is sealed"));
    says(
        Err::<(), _>(error),
        StoreErrorKind::Unavailable,
        &["the closure that configures a connection failed", "source"],
    );
    says(store.begin(budget()).await.map(drop), StoreErrorKind::Unavailable, &["the closure"]);
    says(store.install(budget()).await, StoreErrorKind::Unavailable, &["the closure"]);
}

/// A pool that is shut.
struct Shut;

impl ConnectionPool for Shut {
    type Connection = std::convert::Infallible;

    async fn get(&self) -> Result<Self::Connection, Box<dyn Error + Send + Sync>> {
        Err("the pool is shut".into())
    }

    fn client(connection: &mut Self::Connection) -> &mut Client {
        match *connection {}
    }

    fn discard(connection: Self::Connection) {
        match connection {}
    }

    fn for_runtime(&self, _: &Handle) -> Self {
        Self
    }
}

#[tokio::test]
async fn an_error_of_a_users_pool_is_passed_on_as_the_source() {
    let store = SqlServerStore::builder().pool(Shut).build().unwrap();
    let error = store.provision(unknown_report(), budget()).await.unwrap_err();
    assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("the pool is shut"));
    says(Err::<(), _>(error), StoreErrorKind::Unavailable, &["the pool gave no connection", "source"]);
}
