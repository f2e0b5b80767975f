//! [`SqlServerBuilder`]: which server, which schema, how many connections.

use std::future::Future;
use std::sync::Arc;

use tiberius::Config;
use tokio::runtime::Handle;

use super::config::Source;
use super::pool::{AnyPool, ConnectionPool, OwnPool, UserPool};
use super::schema::SchemaName;
use super::{Inner, SqlServerStore};
use crate::error::StoreError;

/// How many connections at most, unless said otherwise, for everything but renewals.
const MAX_CONNECTIONS: usize = 8;

/// How many connections at most for renewals: they leave together, a few statements at a time.
const RENEWAL_CONNECTIONS: usize = 4;

/// Builds a [`SqlServerStore`].
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until it is built"]
pub struct SqlServerBuilder {
    connections: Option<Result<Connections, StoreError>>,
    schema: Option<String>,
    max_connections: Option<usize>,
}

enum Connections {
    From(Source),
    /// Makes the user's pool out of the schema's name.
    User(Box<dyn FnOnce(SchemaName) -> Arc<dyn AnyPool> + Send + Sync>),
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::From(source) => source.fmt(f),
            Self::User(_) => f.write_str("Pool(..)"),
        }
    }
}

impl SqlServerBuilder {
    /// Connects as an ADO.NET string says, or a JDBC one if it begins with `jdbc:`.
    pub fn connection_string(mut self, connection_string: &str) -> Self {
        self.connections = Some(Source::from_string(connection_string).map(Connections::From));
        self
    }

    /// Connects as a driver's configuration says. Its time-outs are replaced by the budget of each call.
    pub fn config(mut self, config: Config) -> Self {
        self.connections = Some(Ok(Connections::From(Source::Fixed(Box::new(config)))));
        self
    }

    /// Asks for the configuration anew for each connection, because access tokens do not last.
    ///
    /// ```no_run
    /// use leasehold::store::sqlserver::{SqlServerStore, tiberius::{AuthMethod, Config}};
    ///
    /// # async fn fresh_token() -> std::io::Result<String> { Ok(String::new()) }
    /// # fn example() -> Result<(), leasehold::StoreError> {
    /// let store = SqlServerStore::builder()
    ///     .config_per_connection(|| async {
    ///         let mut config = Config::new();
    ///         config.host("example.database.windows.net");
    ///         config.database("reports");
    ///         config.authentication(AuthMethod::aad_token(fresh_token().await?));
    ///         Ok::<_, std::io::Error>(config)
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn config_per_connection<F, Fut, E>(mut self, config: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Config, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        self.connections = Some(Ok(Connections::From(Source::from_closure(config))));
        self
    }

    /// Uses a pool of your own; renewals use another one, which it makes.
    pub fn pool(mut self, pool: impl ConnectionPool) -> Self {
        self.connections = Some(Ok(Connections::User(Box::new(|schema| Arc::new(UserPool::new(pool, schema))))));
        self
    }

    /// The schema that holds the tables and procedures; `dbo` if it is not set. Any name that SQL Server takes is quoted.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// How many connections there may be at once, besides the few of renewals; 8 if it is not set. The renewal engine has as many of
    /// its own. They are made when needed. Of no effect with a pool of your own.
    pub fn max_connections(mut self, max_connections: usize) -> Self {
        self.max_connections = Some(max_connections);
        self
    }

    /// The store. It connects when it is first used, in this runtime.
    ///
    /// # Errors
    /// [`Invalid`](crate::StoreErrorKind::Invalid): no server was named, the connection string can not be read, no schema can have
    /// that name, or this is not called inside a tokio runtime.
    pub fn build(self) -> Result<SqlServerStore, StoreError> {
        let connections = self.connections.unwrap_or_else(|| {
            Err(StoreError::invalid("no server was named: give a connection string, a configuration or a pool"))
        })?;
        let schema = SchemaName::new(self.schema.as_deref().unwrap_or("dbo"))?;
        let runtime = Handle::try_current().map_err(|_| {
            StoreError::invalid("a store of SQL Server is made inside a tokio runtime, to which its connections belong")
        })?;
        let (renewals, others): (Arc<dyn AnyPool>, Arc<dyn AnyPool>) = match connections {
            Connections::From(source) => {
                let pool = |size| Arc::new(OwnPool::new(source.clone(), schema.clone(), size));
                (pool(RENEWAL_CONNECTIONS), pool(self.max_connections.unwrap_or(MAX_CONNECTIONS)))
            }
            Connections::User(pool) => {
                let others = pool(schema.clone());
                (others.another(&runtime), others)
            }
        };
        let quoted = schema.quoted().into();
        Ok(SqlServerStore { inner: Arc::new(Inner { runtime, schema, quoted, renewals, others }) })
    }
}
