//! A PostgreSQL server: its store, and a connection past the store for who does not take the store's word.

use std::sync::Arc;
use std::time::Duration;

use leasehold::StoreError;
use leasehold::store::postgres::{Config, PostgresBuilder, PostgresStore};
use leasehold::store::{Budget, Store};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Secret;

/// The schema unless another is named.
const SCHEMA: &str = "leasehold";

/// How long an installation may take. It waits for another one under way.
const INSTALLING: Duration = Duration::from_secs(120);

/// Where it is, and the schema there.
#[derive(Debug, Clone)]
pub(crate) struct PostgresServer {
    url: Secret,
    schema: String,
}

impl PostgresServer {
    pub(crate) fn new(url: Secret, schema: Option<&str>) -> Self {
        Self { url, schema: schema.unwrap_or(SCHEMA).to_owned() }
    }

    pub(super) fn url(&self) -> &Secret {
        &self.url
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// A table's name as statements have it.
    pub(crate) fn table(&self, name: &str) -> String {
        format!("\"{}\".\"{name}\"", self.schema.replace('"', "\"\""))
    }

    /// The store, once the server has answered that leasehold is installed there.
    pub(super) async fn open(&self, within: Duration) -> Result<PostgresStore, StoreError> {
        let store = self.store().build()?;
        store.check(Budget::within(within)).await?;
        Ok(store)
    }

    pub(super) async fn install(&self) -> Result<(), StoreError> {
        self.store().build()?.install(Budget::within(INSTALLING)).await
    }

    /// What an installation runs; the server is not asked.
    pub(super) fn install_script(schema: Option<&str>) -> Result<String, StoreError> {
        let nowhere = PostgresStore::from_config(Config::new()).without_tls();
        Ok(nowhere.schema(schema.unwrap_or(SCHEMA)).build()?.install_script())
    }

    fn store(&self) -> PostgresBuilder {
        PostgresStore::builder(&self.url.0).schema(&self.schema)
    }

    /// A connection of the driver's own, with TLS wherever the store has it.
    pub(crate) async fn client(&self) -> Result<Client, StoreError> {
        // What the parser says might quote the string.
        let parsed = self.url.0.parse::<Config>();
        let mut config = parsed.map_err(|_| StoreError::invalid("the connection string cannot be read"))?;
        let failed = |error| StoreError::unavailable("no connection past the store").with_source(error);
        if config.get_ssl_mode() == SslMode::Disable || only_unix_sockets(&config) {
            let (client, connection) = config.ssl_mode(SslMode::Disable).connect(NoTls).await.map_err(failed)?;
            tokio::spawn(connection);
            return Ok(client);
        }
        let tls = MakeRustlsConnect::new(verifying()?);
        let (client, connection) = config.ssl_mode(SslMode::Require).connect(tls).await.map_err(failed)?;
        tokio::spawn(connection);
        Ok(client)
    }
}

/// By the authorities that the system trusts.
fn verifying() -> Result<ClientConfig, StoreError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|error| StoreError::rejected("TLS cannot be set up").with_source(error))?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}

/// PostgreSQL offers no TLS there.
fn only_unix_sockets(config: &Config) -> bool {
    let is_unix = |host: &Host| !matches!(host, Host::Tcp(_));
    config.get_hostaddrs().is_empty() && !config.get_hosts().is_empty() && config.get_hosts().iter().all(is_unix)
}
