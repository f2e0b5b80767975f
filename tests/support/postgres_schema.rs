//! A schema on the PostgreSQL server of the tests, under a name of its own.

use std::time::Duration;

use leasehold::store::Budget;
use leasehold::store::postgres::PostgresStore;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::postgres::{connect, superuser};

/// The URL of the server, for the process of an example.
pub(crate) fn url() -> String {
    // Fails in words if there is none.
    superuser();
    std::env::var("LEASEHOLD_TEST_POSTGRES").expect("it was read a moment ago")
}

/// Dropped when dropped, if it was made.
pub(crate) struct PostgresSchema {
    pub(crate) name: String,
    /// A connection past the store.
    pub(crate) raw: Client,
}

impl PostgresSchema {
    pub(crate) async fn installed() -> Self {
        let schema = Self::missing().await;
        let store = PostgresStore::from_config(superuser()).schema(&schema.name).without_tls().build();
        let installed = store.expect("a store").install(Budget::within(Duration::from_secs(60))).await;
        installed.expect("an installation");
        schema
    }

    /// A name for a schema that does not exist yet.
    pub(crate) async fn missing() -> Self {
        let name = format!("leasehold_{}", Uuid::new_v4().simple());
        Self { name, raw: connect(&superuser()).await }
    }
}

impl Drop for PostgresSchema {
    /// On a thread of its own, because a drop cannot wait for a future.
    fn drop(&mut self) {
        let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { connect(&superuser()).await.batch_execute(&sql).await })
        });
        let dropped = dropping.join();
        if !std::thread::panicking() {
            dropped.expect("the server answers").expect("the schema is dropped");
        }
    }
}

impl std::fmt::Debug for PostgresSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresSchema").field("name", &self.name).finish_non_exhaustive()
    }
}
