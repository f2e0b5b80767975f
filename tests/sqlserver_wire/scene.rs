//! A store that reaches its server through the proxy, and a look at the tables past both.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use leasehold::store::Budget;
use leasehold::store::sqlserver::{SqlServerBuilder, SqlServerStore};

use crate::proxy::{Connection, Proxy, Traffic};
pub(crate) use leasehold::store::sqlserver::SqlServerStore as TestStore;

pub(crate) use crate::sqlserver::Schema;
use crate::sqlserver::config;

/// Far more than any call takes: what a test waits for is a condition, and this is only the end of its patience.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn budget() -> Budget {
    Budget::within(Duration::from_secs(20))
}

/// For what is expected not to answer.
pub(crate) fn short_budget() -> Budget {
    Budget::within(Duration::from_millis(300))
}

/// One store, whose every byte goes through a proxy of its own.
pub(crate) struct Wire {
    pub(crate) schema: Arc<Schema>,
    pub(crate) proxy: Proxy,
    pub(crate) store: SqlServerStore,
}

impl Wire {
    pub(crate) async fn to(schema: &Arc<Schema>) -> Self {
        Self::with(schema, |builder| builder).await
    }

    pub(crate) async fn with(
        schema: &Arc<Schema>,
        settings: impl FnOnce(SqlServerBuilder) -> SqlServerBuilder,
    ) -> Self {
        let proxy = Proxy::start(server().await).await;
        let mut config = config(&schema.name);
        config.host("127.0.0.1");
        config.port(proxy.addr().port());
        let builder = SqlServerStore::builder().config(config).schema(&schema.name);
        let store = settings(builder).build().expect("a store");
        Self { schema: Arc::clone(schema), proxy, store }
    }

    /// The connection that was opened last, and what it has moved. A test that uses one of the store's lanes alone, one call after
    /// another, finds here the one that its next call will use.
    pub(crate) fn in_use(&self) -> (Connection, Traffic) {
        let connection = self.proxy.latest();
        let traffic = connection.traffic();
        (connection, traffic)
    }
}

/// Where the server of the tests listens.
pub(crate) async fn server() -> SocketAddr {
    let address = config("leasehold tests").get_addr();
    tokio::net::lookup_host(address).await.expect("the server's name is known").next().expect("an address")
}

/// Waits until this is true.
///
/// # Panics
/// If that takes half a minute.
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "this never came: {what}");
}
