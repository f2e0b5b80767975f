//! Where connections come from: a string, a configuration, a closure for each connection.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use tiberius::Config;

use crate::error::StoreError;

/// Gives the configuration of the next connection.
#[derive(Clone)]
pub(super) enum Source {
    /// The same for every connection. Boxed: it is large.
    Fixed(Box<Config>),
    /// Asked anew for each: access tokens do not last.
    Closure(Arc<dyn Fn() -> BoxFuture<'static, Result<Config, StoreError>> + Send + Sync>),
}

impl Source {
    /// From an ADO.NET string, or from a JDBC one if it begins with `jdbc:`.
    ///
    /// What the parser says is not passed on: it quotes the string, and the string holds a password.
    pub(super) fn from_string(text: &str) -> Result<Self, StoreError> {
        let jdbc = text.trim_start().to_ascii_lowercase().starts_with("jdbc:");
        let parsed = if jdbc { Config::from_jdbc_string(text.trim_start()) } else { Config::from_ado_string(text) };
        let config = parsed.map_err(|_| {
            StoreError::invalid(
                "the connection string can not be read: write it like \
                 'Server=tcp:host,1433;Database=…;User Id=…;Password=…' or 'jdbc:sqlserver://host:1433;databaseName=…;user=…;\
                 password=…', quote a password that has ';', quotes or braces in it, write true or false for switches, and give \
                 either TrustServerCertificate or TrustServerCertificateCA",
            )
        })?;
        Ok(Self::Fixed(Box::new(config)))
    }

    pub(super) fn from_closure<F, Fut, E>(closure: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Config, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self::Closure(Arc::new(move || {
            let config = closure();
            Box::pin(async move {
                config.await.map_err(|error| {
                    StoreError::unavailable(
                        "the closure that configures a connection failed: look at the source of this error",
                    )
                    .with_source(error)
                })
            })
        }))
    }

    /// The configuration of the next connection, without limits of the driver's own: the budget limits everything.
    pub(super) async fn next(&self) -> Result<Config, StoreError> {
        let mut config = match self {
            Self::Fixed(config) => Config::clone(config),
            Self::Closure(closure) => closure().await?,
        };
        config.handshake_timeout(None);
        config.command_timeout(None);
        Ok(config)
    }
}

impl fmt::Debug for Source {
    /// Shows the kind only: a configuration holds credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Fixed(..)",
            Self::Closure(_) => "Closure(..)",
        })
    }
}
