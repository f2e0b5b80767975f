//! Making one connection: TCP, redirects, TLS, login, and a look at what is installed.

use tiberius::error::Error;
use tiberius::{Config, SqlBrowser};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

use super::failure::{Effect, Failure, connecting};
use super::schema::{SchemaName, VERSION};
use crate::error::StoreError;

/// The driver's client, on tokio's sockets.
pub type Client = tiberius::Client<Compat<TcpStream>>;

/// How often a server may send a connection on to another one: Azure SQL does it once.
const MAX_REDIRECTS: usize = 4;

/// Connects and logs in, wherever the server sends the connection. Bounded by the caller.
pub(super) async fn connect(mut config: Config) -> Result<Client, StoreError> {
    // Asks the SQL Server Browser for the port if an instance is named, and all addresses at once for MultiSubnetFailover.
    let mut stream = TcpStream::connect_named(&config).await.map_err(connecting)?;
    for _ in 0..MAX_REDIRECTS {
        stream.set_nodelay(true).map_err(|error| connecting(error.into()))?;
        match Client::connect(config.clone(), stream.compat_write()).await {
            Ok(client) => return Ok(client),
            Err(Error::Routing { host, port }) => {
                tracing::debug!(%host, port, "the server sends the connection on");
                config.host(host);
                config.port(port);
                stream = TcpStream::connect(config.get_addr()).await.map_err(|error| connecting(error.into()))?;
            }
            Err(error) => return Err(connecting(error)),
        }
    }
    Err(StoreError::unavailable("the server sent the connection on too often: look at its routing"))
}

/// Whether the procedures are there and of this build's version; asked once for each connection.
pub(super) async fn check_version(client: &mut Client, schema: &SchemaName) -> Result<(), Failure> {
    let command = tiberius::Command::new(format!("{}.LeaseholdVersion", schema.quoted()));
    let answered = async { command.exec(client).await?.into_command_result().await };
    let answer = answered.await.map_err(|error| Failure::of(error, Effect::Reads))?;
    let version = answer
        .to_query_result(0)
        .and_then(|rows| rows.first())
        .and_then(|row| row.try_get::<i32, _>("SchemaVersion").ok().flatten());
    match version {
        Some(VERSION) => Ok(()),
        Some(newer) if newer > VERSION => Err(Failure::Refused(StoreError::rejected(format!(
            "the schema {} has version {newer} and this build knows {VERSION}: use a build that is as new as the newest that \
             installed it",
            schema.quoted()
        )))),
        _ => Err(Failure::Refused(StoreError::rejected(format!(
            "the schema {} has an older version than this build's {VERSION}, or its installation did not end: run install()",
            schema.quoted()
        )))),
    }
}
