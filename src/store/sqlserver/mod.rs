//! The SQL Server store: the article's table, with a stored procedure for each operation.
//!
//! For SQL Server 2019 and later and Azure SQL, through tiberius.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use leasehold::store::{Budget, sqlserver::SqlServerStore};
//!
//! let store = SqlServerStore::connect("Server=tcp:db.example.com,1433;Database=reports;User Id=worker;Password=…").await?;
//! store.install(Budget::within(Duration::from_secs(60))).await?; // Once, with a login that may create tables.
//! # Ok(())
//! # }
//! ```
//!
//! # How it keeps the protocol
//!
//! Every operation is one call of a procedure and one transaction in it: lock the row, read the clock, end what has expired,
//! look at row and ledger, then the conditional UPDATE with the exact fence. The procedure answers what it found under the
//! lock and whether it wrote; this library finds the answer's words in the same [contract](crate::store) as every other store, and
//! refuses to go on if the two disagree. Waiting for a lock is bounded by the call's budget on the server, so that a call that could
//! not have the lock is surely not applied.
//!
//! Transactions are READ COMMITTED, whatever the session was set to. With `READ_COMMITTED_SNAPSHOT` on (Azure SQL's default)
//! readers do not wait for a publication under way; without it they do, for as long as their budget lasts.
//!
//! # The tables
//!
//! `ReportPublication`, `ReportLedger` and `LeaseholdStore`, in schema `dbo` or another one. A table made exactly as in the article
//! is upgraded with its rows. See `sql/tables.sql`.
//!
//! # Permissions
//!
//! Workers need the role `leasehold_worker`, which may execute the workers' procedures and nothing else; operators need
//! `leasehold_operator` as well. Neither may touch the tables. [`install`](SqlServerStore::install) needs a login that may create
//! tables, procedures and roles and write to them (`db_owner`, or `db_ddladmin`, `db_securityadmin`, `db_datareader` and
//! `db_datawriter` together); where only a DBA has one, hand over [`install_script`](SqlServerStore::install_script).
//!
//! # Connections
//!
//! TLS is required unless the configuration says otherwise, and a certificate must be trusted: by this machine, or through
//! `TrustServerCertificateCA=file`, or, for a test server, `TrustServerCertificate=true`. Redirects are followed (Azure SQL). A
//! connection goes back to its pool only after its call ended well; any other is thrown away.

mod builder;
mod call;
mod config;
mod connection;
mod failure;
mod found;
mod leases;
mod operators;
#[doc = include_str!("permissions.md")]
pub mod permissions {}
mod pool;
mod publications;
mod reading;
mod schema;
mod store;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

pub use builder::SqlServerBuilder;
pub use connection::Client;
pub use pool::ConnectionPool;
pub use tiberius;
use tokio::runtime::Handle;
pub use transaction::{Isolation, SqlServerTransaction};

use self::pool::AnyPool;
use self::schema::SchemaName;
use crate::error::StoreError;
use crate::store::Budget;

/// How long [`SqlServerStore::connect`] may take.
const CONNECTING: Duration = Duration::from_secs(15);

/// Which connections a call uses: a renewal never waits for a connection behind a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Renewals,
    Others,
}

/// Reports, leases and the ledger in SQL Server.
///
/// Clones share the connections, which belong to the runtime in which the store was made; calls may be made from anywhere.
#[derive(Debug, Clone)]
pub struct SqlServerStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    runtime: Handle,
    schema: SchemaName,
    /// The schema's name as it stands in statements.
    quoted: Arc<str>,
    renewals: Arc<dyn AnyPool>,
    others: Arc<dyn AnyPool>,
}

impl SqlServerStore {
    /// Connects with an ADO.NET string or a JDBC one (`jdbc:sqlserver://…`), to the schema `dbo`; looks whether the server lets this
    /// login in, within 15 seconds. For more, see [`builder`](Self::builder).
    ///
    /// # Errors
    /// [`Invalid`](crate::StoreErrorKind::Invalid): the string can not be read. [`Rejected`](crate::StoreErrorKind::Rejected): a wrong
    /// password, no such database, no TLS or a certificate that is not trusted. [`Unavailable`](crate::StoreErrorKind::Unavailable):
    /// the server can not be reached.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection that was being made, and nothing else.
    pub async fn connect(connection_string: &str) -> Result<Self, StoreError> {
        let store = Self::builder().connection_string(connection_string).build()?;
        store.log_in(Budget::within(CONNECTING)).await?;
        Ok(store)
    }

    /// A store with another schema, a [`Config`](tiberius::Config), an access token for each connection, or a pool of your own.
    pub fn builder() -> SqlServerBuilder {
        SqlServerBuilder::default()
    }

    /// Creates the schema, or brings an older one up to date, in one transaction; idempotent. Rows are kept.
    ///
    /// A table made as in the article is upgraded. Stop its old workers first: what they write goes past the ledger. Which of their
    /// publications were accepted was never recorded, so their outcomes are "no longer known".
    ///
    /// Needs a login that may create tables, procedures and roles. Two installations at once wait for each other.
    ///
    /// # Errors
    /// [`Rejected`](crate::StoreErrorKind::Rejected): the login may not, or a newer version of leasehold installed this schema.
    /// [`Unknown`](crate::StoreErrorKind::Unknown): the answer did not arrive; run it again.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the schema as it was, or complete.
    pub async fn install(&self, budget: Budget) -> Result<(), StoreError> {
        let (pool, schema) = (Arc::clone(&self.inner.others), self.inner.schema.clone());
        let installing = async move {
            let mut connected = pool.get_unchecked().await?;
            schema::install(&mut connected, &schema).await.map_err(failure::Failure::into_error)?;
            connected.keep();
            Ok(())
        };
        self.bounded(budget, failure::Effect::Writes, installing).await
    }

    /// The script that [`install`](Self::install) runs, for a DBA to read and run: batches separated by `GO`, in one transaction.
    ///
    /// # Errors
    /// [`Invalid`](crate::StoreErrorKind::Invalid): no schema can have that name.
    pub fn install_script(schema: &str) -> Result<String, StoreError> {
        Ok(schema::script(&SchemaName::new(schema)?))
    }

    /// Whether a connection can be had.
    async fn log_in(&self, budget: Budget) -> Result<(), StoreError> {
        let pool = Arc::clone(&self.inner.others);
        let logging_in = async move { pool.get_unchecked().await.map(pool::Connected::keep) };
        self.bounded(budget, failure::Effect::Reads, logging_in).await
    }

    /// Runs it in a task of its own, which ends with the budget.
    async fn bounded<T: Send + 'static>(
        &self,
        budget: Budget,
        effect: failure::Effect,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let limit = budget.remaining();
        let task = self.inner.runtime.spawn(async move { tokio::time::timeout(limit, work).await });
        match task.await {
            Ok(Ok(result)) => result,
            Err(ended) if effect == failure::Effect::Reads && ended.is_cancelled() => Err(call::shut_down()),
            _ => Err(failure::unanswered(effect)),
        }
    }

    fn pool(&self, lane: Lane) -> &Arc<dyn AnyPool> {
        match lane {
            Lane::Renewals => &self.inner.renewals,
            Lane::Others => &self.inner.others,
        }
    }

    /// The same store with connections of its own in another runtime.
    fn on(&self, runtime: &Handle) -> Self {
        let Inner { schema, quoted, renewals, others, .. } = &*self.inner;
        Self {
            inner: Arc::new(Inner {
                runtime: runtime.clone(),
                schema: schema.clone(),
                quoted: Arc::clone(quoted),
                renewals: renewals.another(runtime),
                others: others.another(runtime),
            }),
        }
    }
}
