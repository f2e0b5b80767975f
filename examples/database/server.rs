//! A SQL Server: its store, and a connection past the store for who does not take the store's word.

use std::time::Duration;

use leasehold::StoreError;
use leasehold::store::sqlserver::tiberius::error::Error;
use leasehold::store::sqlserver::tiberius::{Config, SqlBrowser};
use leasehold::store::sqlserver::{Client, SqlServerStore};
use leasehold::store::{Budget, Store};
use tokio::net::TcpStream;
use tokio_util::compat::TokioAsyncWriteCompatExt;

use super::Secret;

/// The schema unless another is named.
const SCHEMA: &str = "dbo";

/// How long an installation may take. It waits for another one under way.
const INSTALLING: Duration = Duration::from_secs(120);

/// Where it is, and the schema there.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    string: Secret,
    schema: String,
}

impl Server {
    pub(crate) fn new(string: Secret, schema: Option<&str>) -> Self {
        Self { string, schema: schema.unwrap_or(SCHEMA).to_owned() }
    }

    pub(super) fn string(&self) -> &Secret {
        &self.string
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// A table's name as statements have it.
    pub(crate) fn table(&self, name: &str) -> String {
        format!("[{}].[{name}]", self.schema.replace(']', "]]"))
    }

    /// The store, once the server has answered that leasehold is installed there.
    pub(super) async fn open(&self, within: Duration) -> Result<SqlServerStore, StoreError> {
        let store = self.store()?;
        store.check(Budget::within(within)).await?;
        Ok(store)
    }

    pub(super) async fn install(&self) -> Result<(), StoreError> {
        self.store()?.install(Budget::within(INSTALLING)).await
    }

    /// What an installation runs; the server is not asked.
    pub(super) fn install_script(schema: Option<&str>) -> Result<String, StoreError> {
        SqlServerStore::install_script(schema.unwrap_or(SCHEMA))
    }

    fn store(&self) -> Result<SqlServerStore, StoreError> {
        SqlServerStore::builder().connection_string(&self.string.0).schema(&self.schema).build()
    }

    /// A connection of the driver's own.
    pub(crate) async fn client(&self) -> Result<Client, Error> {
        let string = self.string.0.trim_start();
        let jdbc = string.to_ascii_lowercase().starts_with("jdbc:");
        let parsed = if jdbc { Config::from_jdbc_string(string) } else { Config::from_ado_string(string) };
        // What the parser says would quote the string.
        let unreadable = |_| Error::Conversion("the connection string can not be read".into());
        let mut config = parsed.map_err(unreadable)?;
        let stream = TcpStream::connect_named(&config).await?;
        match Client::connect(config.clone(), stream.compat_write()).await {
            // Azure SQL sends each connection on once.
            Err(Error::Routing { host, port }) => {
                config.host(host);
                config.port(port);
                let stream = TcpStream::connect(config.get_addr()).await?;
                Client::connect(config, stream.compat_write()).await
            }
            connected => connected,
        }
    }
}
