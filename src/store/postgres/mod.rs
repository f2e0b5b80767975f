//! The PostgreSQL store: tables and functions in a schema of their own, on a server of version 13 or later.
//!
//! # How it keeps the protocol
//!
//! Every operation is one call of a database function: it locks the report's row, reads the clock, ends an expired lease, reads
//! the ledger, writes if its condition holds, and answers what it *found*. The library finds the answer in that by the same
//! code as for every other store, and checks that the function came to the same conclusion. The functions are in `sql/`.
//!
//! A call is `BEGIN ISOLATION LEVEL READ COMMITTED`, the statement and `COMMIT`, sent together and answered together: one round
//! trip. The transaction names its isolation because the contract needs READ COMMITTED (a snapshot that was taken before a lock
//! was waited for shows an old ledger), whatever default the database's owner has set; the functions refuse any other. It also
//! carries the budget: the server gives up waiting for a lock before the client does, so that a call which ran out of time is
//! surely not applied. No setting and no prepared statement outlives the transaction, so a pooler that hands out connections
//! by the transaction may stand between.
//!
//! # Connections
//!
//! A call runs to its end in a task of its own, on the runtime in which the store was made, and its connection goes back to the
//! pool only after a success; otherwise it is thrown away. So a dropped future never leaves an answer for the next caller.
//! Renewals have a pool of their own, and never wait for a connection behind a slow publication.
//!
//! TLS is required, with the server's name and certificate verified, unless the connection string says `sslmode=disable`, or
//! only Unix sockets are named.
//!
//! # Roles
//!
//! [`install`](PostgresStore::install) makes two roles without a login: a worker's login needs membership in
//! `leasehold_worker` and nothing else, an operator's in `leasehold_operator`. Neither can touch a table.
//!
//! ```no_run
//! # async fn example() -> Result<(), leasehold::StoreError> {
//! use std::time::Duration;
//! use leasehold::store::Budget;
//! use leasehold::store::postgres::PostgresStore;
//!
//! let url = "postgresql://reports@db.example.com/reports";
//! // Once, with the login that is to own the tables; or hand `install_script()` to whoever may.
//! PostgresStore::builder(url).build()?.install(Budget::within(Duration::from_secs(30))).await?;
//! let store = PostgresStore::connect(url).await?;
//! # Ok(())
//! # }
//! ```

mod builder;
mod call;
mod connections;
mod failure;
mod leases;
mod operators;
mod publications;
mod reading;
mod rows;
mod schema;
mod store;
mod tls;
mod transaction;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

pub use builder::PostgresBuilder;
/// The pool of connections that [`PostgresStore::with_pools`] takes.
pub use deadpool_postgres::Pool;
/// The driver's configuration, which [`PostgresBuilder`] takes instead of a string.
pub use tokio_postgres::Config;
/// A row of a user's own query in a [`PostgresTransaction`].
pub use tokio_postgres::Row;
/// A value of a user's own statement in a [`PostgresTransaction`], and its type.
pub use tokio_postgres::types::{ToSql, Type};
pub use transaction::PostgresTransaction;

use self::connections::{Connections, Settings};
use crate::error::StoreError;
use crate::store::Budget;

/// How long [`PostgresStore::connect`] may take.
const CONNECTING: Duration = Duration::from_secs(10);

/// Reports, leases and the ledger in a PostgreSQL database.
///
/// Clones share their connections.
#[derive(Clone)]
pub struct PostgresStore {
    connections: Arc<Connections>,
}

impl PostgresStore {
    /// Connects to the database that this URL (`postgresql://…`) or string of `key=value` pairs names, and looks whether the
    /// schema `leasehold` is installed in the version that this build knows. Within ten seconds.
    ///
    /// # Errors
    /// [`Invalid`](crate::StoreErrorKind::Invalid): the string cannot be read, or no tokio runtime is here.
    /// [`Unavailable`](crate::StoreErrorKind::Unavailable): no server answers in time.
    /// [`Rejected`](crate::StoreErrorKind::Rejected): wrong password or database, no TLS at the server or a certificate that
    /// cannot be verified, no schema or one of another version, no right to use it.
    ///
    /// # Cancel safety
    /// Dropping the future gives up connecting.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder(url).connect().await
    }

    /// Says more than a connection string can: schema, TLS, sizes of pools.
    pub fn builder(url: &str) -> PostgresBuilder {
        PostgresBuilder::new(builder::Source::parse(url))
    }

    /// The same for the driver's own configuration.
    ///
    /// Its TLS mode is followed only where it is `Disable`: `Prefer`, the driver's default, would let anybody between here and
    /// the server turn TLS off.
    pub fn from_config(config: Config) -> PostgresBuilder {
        PostgresBuilder::new(builder::Source::Config(Box::new(config)))
    }

    /// The same for pools that the caller makes, with TLS, logins and sizes of the caller's.
    ///
    /// `make` is called for each pool that is needed: two for this store, and two more for each
    /// [`for_runtime`](crate::store::Store::for_runtime), because a socket belongs to the runtime that opened it. It must not
    /// hand out the same pool twice. The recycling method `Fast` is enough: a connection comes back only after a success.
    pub fn with_pools(make: impl Fn() -> Pool + Send + Sync + 'static) -> PostgresBuilder {
        PostgresBuilder::new(builder::Source::Pools(Arc::new(make)))
    }

    /// Installs the schema, or brings an older one up to date with its rows kept; does nothing if this build's is there. Needs a
    /// login that may create a schema in this database and, unless they exist, the two roles. Of several at once, one does it.
    ///
    /// # Errors
    /// [`Rejected`](crate::StoreErrorKind::Rejected): no right to do so, or a newer schema is installed, which is left alone.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the schema as it was, or installed.
    pub async fn install(&self, budget: Budget) -> Result<(), StoreError> {
        schema::install(self, budget).await
    }

    /// What [`install`](Self::install) runs, for whoever runs such things by hand: `psql -v ON_ERROR_STOP=1 -f script.sql`.
    #[must_use]
    pub fn install_script(&self) -> String {
        schema::script(self.settings())
    }

    fn on(settings: Arc<Settings>, runtime: Handle) -> Self {
        Self { connections: Arc::new(Connections::new(settings, runtime)) }
    }

    fn connections(&self) -> &Connections {
        &self.connections
    }

    fn settings(&self) -> &Arc<Settings> {
        self.connections.settings()
    }
}

impl fmt::Debug for PostgresStore {
    /// Shows the schema only: where and as whom it connects belongs in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("schema", &self.settings().schema).finish_non_exhaustive()
    }
}
