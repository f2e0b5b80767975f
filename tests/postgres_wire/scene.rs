//! A store that reaches its server through the proxy, and a database of its own.

use std::sync::Arc;
use std::time::Duration;

use leasehold::conformance::Harness;
use leasehold::store::Budget;
use leasehold::store::postgres::Config;
pub(crate) use leasehold::store::postgres::PostgresStore as TestStore;
use tokio_postgres::config::{Host, SslMode};

use crate::postgres::{Defaults, LOGIN, PostgresDatabase, PostgresHarness};
use crate::proxy::{Connection, Proxy, Traffic};

/// Far more than any call takes: what a test waits for is a condition, and this is only the end of its patience.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn budget() -> Budget {
    Budget::within(Duration::from_secs(20))
}

/// For what is expected not to answer.
pub(crate) fn short_budget() -> Budget {
    Budget::within(Duration::from_millis(300))
}

/// A database of its own with a schema in it. What is first is dropped first.
pub(crate) struct Schema {
    pub(crate) database: PostgresDatabase,
    _harness: PostgresHarness,
}

impl Schema {
    pub(crate) async fn installed() -> Self {
        let harness = PostgresHarness::new(Defaults::ReadCommitted).await;
        Self { database: harness.fresh().await, _harness: harness }
    }
}

/// One store, whose every byte goes through a proxy of its own.
pub(crate) struct Wire {
    pub(crate) proxy: Proxy,
    pub(crate) store: TestStore,
}

impl Wire {
    pub(crate) async fn to(schema: &Arc<Schema>) -> Self {
        let direct = schema.database.store_config(LOGIN);
        let [Host::Tcp(host)] = direct.get_hosts() else { panic!("the server of the tests has one TCP address") };
        let server =
            tokio::net::lookup_host((host.as_str(), direct.get_ports()[0])).await.expect("its name is known").next();
        let proxy = Proxy::start(server.expect("an address")).await;
        let mut config = Config::new();
        config.host("127.0.0.1").port(proxy.addr().port()).ssl_mode(SslMode::Disable);
        config.user(LOGIN).password(LOGIN).dbname(direct.get_dbname().expect("a database"));
        let store = TestStore::from_config(config).schema(&schema.database.schema).build().expect("a store");
        Self { proxy, store }
    }

    /// The connection that was opened last, and what it has moved. A test that uses one of the store's lanes alone, one call after
    /// another, finds here the one that its next call will use.
    pub(crate) fn in_use(&self) -> (Connection, Traffic) {
        let connection = self.proxy.latest();
        let traffic = connection.traffic();
        (connection, traffic)
    }
}
