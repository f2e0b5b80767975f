//! The builder of a store: where it connects, with which TLS, to which schema.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use rustls::ClientConfig;
use tokio::runtime::Handle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connections::{MakePool, Settings};
use super::schema::Name;
use super::{CONNECTING, PostgresStore, reading, tls};
use crate::error::StoreError;
use crate::store::Budget;

/// Where connections come from.
pub(super) enum Source {
    Config(Box<Config>),
    Pools(Arc<dyn Fn() -> Pool + Send + Sync>),
    Unreadable(StoreError),
}

impl Source {
    pub(super) fn parse(url: &str) -> Self {
        match url.parse() {
            Ok(config) => Self::Config(Box::new(config)),
            // The driver's own error may repeat a piece of the string, of a password without its quotes say.
            Err(_) => Self::Unreadable(StoreError::invalid(
                "the connection string cannot be read: give a URL (postgresql://user:password@host:5432/database, with special \
                 characters percent-encoded) or key=value pairs that tokio-postgres knows (host, port, user, password, dbname, \
                 sslmode=require or disable)",
            )),
        }
    }
}

/// How TLS is done.
enum Tls {
    /// By the connection string: required unless it says `sslmode=disable`.
    Asked,
    Never,
    CaFile(PathBuf),
    Config(Arc<ClientConfig>),
}

/// Builds a [`PostgresStore`].
#[must_use = "a builder connects to nothing until build or connect"]
pub struct PostgresBuilder {
    source: Source,
    tls: Tls,
    schema: String,
    worker: String,
    operator: String,
    pool_size: usize,
    renewal_pool_size: usize,
    idle_limit: Duration,
}

impl fmt::Debug for PostgresBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBuilder")
            .field("schema", &self.schema)
            .field("pool_size", &self.pool_size)
            .field("renewal_pool_size", &self.renewal_pool_size)
            .field("idle_limit", &self.idle_limit)
            .finish_non_exhaustive()
    }
}

impl PostgresBuilder {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            tls: Tls::Asked,
            schema: "leasehold".to_owned(),
            worker: "leasehold_worker".to_owned(),
            operator: "leasehold_operator".to_owned(),
            pool_size: 8,
            renewal_pool_size: 4,
            idle_limit: Duration::from_secs(60),
        }
    }

    /// The schema that has the tables and functions; `leasehold` by default. Letters, digits and underscores.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// The roles to which [`install`](PostgresStore::install) grants what a worker and what an operator needs; by default
    /// `leasehold_worker` and `leasehold_operator`. Roles belong to the whole cluster. Letters, digits and underscores.
    pub fn roles(mut self, worker: impl Into<String>, operator: impl Into<String>) -> Self {
        self.worker = worker.into();
        self.operator = operator.into();
        self
    }

    /// Connects without TLS, for a network that nobody else is on: passwords and payloads go over it as they are.
    pub fn without_tls(mut self) -> Self {
        self.tls = Tls::Never;
        self
    }

    /// Verifies the server's certificate by the authorities in this PEM file, instead of those that the system trusts.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls = Tls::CaFile(path.into());
        self
    }

    /// Does TLS by a configuration of the caller's: for client certificates, say.
    pub fn tls_config(mut self, config: Arc<ClientConfig>) -> Self {
        self.tls = Tls::Config(config);
        self
    }

    /// At most how many connections the store opens in one runtime, beside those for renewals; 8 by default. A supervisor uses
    /// the store in two runtimes: its caller's and its own.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections.max(1);
        self
    }

    /// At most how many connections the store opens for renewals, in one runtime; 4 by default.
    pub fn renewal_pool_size(mut self, connections: usize) -> Self {
        self.renewal_pool_size = connections.max(1);
        self
    }

    /// After how long between two statements the server ends a fenced transaction, so that a client which was stopped does not
    /// keep its locks; a minute by default, at least a millisecond.
    pub fn idle_limit(mut self, limit: Duration) -> Self {
        self.idle_limit = limit;
        self
    }

    /// The store, without connecting yet. Its calls run on the tokio runtime in which this is called.
    ///
    /// # Errors
    /// [`Invalid`](crate::StoreErrorKind::Invalid): a connection string or name that cannot be used, or no runtime.
    /// [`Rejected`](crate::StoreErrorKind::Rejected): the authorities' certificates cannot be read.
    pub fn build(self) -> Result<PostgresStore, StoreError> {
        let runtime = Handle::try_current().map_err(|error| {
            StoreError::invalid("a PostgreSQL store is made inside a tokio runtime, which then runs its calls")
                .with_source(error)
        })?;
        let settings = Settings {
            schema: Name::new("schema", self.schema)?,
            worker: Name::new("role", self.worker)?,
            operator: Name::new("role", self.operator)?,
            idle_limit: self.idle_limit,
            make_pool: pools(self.source, self.tls)?,
            pool_size: self.pool_size,
            renewal_pool_size: self.renewal_pool_size,
        };
        Ok(PostgresStore::on(Arc::new(settings), runtime))
    }

    /// [`build`](Self::build), and then looks whether the database can be reached and has the schema; see
    /// [`PostgresStore::connect`].
    ///
    /// # Errors
    /// As [`PostgresStore::connect`].
    ///
    /// # Cancel safety
    /// As [`PostgresStore::connect`].
    pub async fn connect(self) -> Result<PostgresStore, StoreError> {
        let store = self.build()?;
        reading::require_schema(&store, Budget::within(CONNECTING)).await?;
        Ok(store)
    }
}

fn pools(source: Source, tls: Tls) -> Result<MakePool, StoreError> {
    let mut config = match source {
        Source::Unreadable(error) => return Err(error),
        Source::Pools(make) => return Ok(Box::new(move |_| Ok(make()))),
        Source::Config(config) => *config,
    };
    if config.get_application_name().is_none() {
        config.application_name("leasehold");
    }
    let encrypted = match tls {
        Tls::Asked if config.get_ssl_mode() == SslMode::Disable || only_unix_sockets(&config) => None,
        Tls::Never => None,
        Tls::Asked => Some(tls::of_the_system()?),
        Tls::CaFile(path) => Some(tls::of_a_file(&path)?),
        Tls::Config(config) => Some(config),
    };
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    Ok(Box::new(move |size| {
        let mut config = config.clone();
        let manager = match &encrypted {
            None => Manager::from_config(config.ssl_mode(SslMode::Disable).clone(), NoTls, recycling.clone()),
            Some(tls) => {
                let tls = MakeRustlsConnect::new(ClientConfig::clone(tls));
                Manager::from_config(config.ssl_mode(SslMode::Require).clone(), tls, recycling.clone())
            }
        };
        Pool::builder(manager).max_size(size).build().map_err(|error| {
            StoreError::invalid("the pool of connections cannot be made with these sizes").with_source(error)
        })
    }))
}

/// A socket of the file system is on no network, and PostgreSQL offers no TLS there.
fn only_unix_sockets(config: &Config) -> bool {
    #[cfg(unix)]
    let is_unix = |host: &Host| matches!(host, Host::Unix(_));
    #[cfg(not(unix))]
    let is_unix = |_: &Host| false;
    config.get_hostaddrs().is_empty() && !config.get_hosts().is_empty() && config.get_hosts().iter().all(is_unix)
}
