//! Connections for calls: pools of our own, or the user's.
//!
//! The one rule: a connection goes back to its pool only after its call ended well. A call that was dropped, timed out or
//! answered with an error leaves it in an unknown state: the driver sends nothing to stop the statement, and the next call
//! would first have to read the old one's answer. So a connection that is not explicitly [kept](Connected::keep) is discarded.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool::managed::{Manager, Metrics, Object, Pool, PoolError, RecycleResult};
use futures::future::BoxFuture;
use tokio::runtime::Handle;

use super::config::Source;
use super::connection::{Client, check_version, connect};
use super::failure::Failure;
use super::schema::SchemaName;
use crate::error::StoreError;

/// A pool of the user's own.
///
/// Connections must be handed out without an open transaction. Each call holds one for as long as it runs.
///
/// It is made for one runtime, as sockets are; renewals get connections of their own, so that they never wait behind a slow
/// publication: [`for_runtime`](Self::for_runtime).
pub trait ConnectionPool: Send + Sync + 'static {
    /// A connection that goes back to the pool when it is dropped.
    type Connection: Send + 'static;

    /// Gives a connection; the caller bounds how long that takes, and then drops the future.
    fn get(&self) -> impl Future<Output = Result<Self::Connection, Box<dyn Error + Send + Sync>>> + Send;

    /// The driver's client in it.
    fn client(connection: &mut Self::Connection) -> &mut Client;

    /// Takes the connection out of the pool for good: something is still under way on it.
    fn discard(connection: Self::Connection);

    /// The same pool anew, with connections of its own, for calls in this runtime. It does no I/O.
    #[must_use]
    fn for_runtime(&self, runtime: &Handle) -> Self;
}

/// A pool without its types.
pub(super) trait AnyPool: Send + Sync {
    /// A connection to procedures of this build's version.
    fn get(&self) -> BoxFuture<'_, Result<Connected, StoreError>>;
    /// A connection, whatever is installed.
    fn get_unchecked(&self) -> BoxFuture<'_, Result<Connected, StoreError>>;
    /// The same pool with connections of its own for another runtime.
    fn another(&self, runtime: &Handle) -> Arc<dyn AnyPool>;
}

trait AnyConnection: Send {
    fn client(&mut self) -> &mut Client;
    fn discard(self: Box<Self>);
}

/// A connection in use. Dropping it discards it.
pub(super) struct Connected(Option<Box<dyn AnyConnection>>);

impl Connected {
    /// A connection that is closed when it is kept, too.
    pub(super) fn outside_a_pool(client: Client) -> Self {
        Self(Some(Box::new(Lone(client))))
    }

    pub(super) fn client(&mut self) -> &mut Client {
        self.0.as_mut().expect("a connection is held until it is kept").client()
    }

    /// Gives it back to its pool: its call ended well, and nothing is under way on it.
    pub(super) fn keep(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.discard();
        }
    }
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connected(..)")
    }
}

struct Lone(Client);

impl AnyConnection for Lone {
    fn client(&mut self) -> &mut Client {
        &mut self.0
    }

    fn discard(self: Box<Self>) {}
}

/// A pool of our own.
pub(super) struct OwnPool {
    pool: Pool<Maker>,
}

impl OwnPool {
    pub(super) fn new(source: Source, schema: SchemaName, max_connections: usize) -> Self {
        let maker = Maker { source, schema };
        // Without time-outs, which need a runtime: the budget of each call bounds it from outside.
        let pool = Pool::builder(maker).max_size(max_connections.max(1)).build();
        Self { pool: pool.expect("a pool without time-outs needs no runtime") }
    }
}

impl AnyPool for OwnPool {
    fn get(&self) -> BoxFuture<'_, Result<Connected, StoreError>> {
        Box::pin(async {
            match self.pool.get().await {
                Ok(object) => Ok(Connected(Some(Box::new(object)))),
                Err(PoolError::Backend(error)) => Err(error),
                Err(_) => Err(StoreError::unavailable("the pool of connections is closed")),
            }
        })
    }

    fn get_unchecked(&self) -> BoxFuture<'_, Result<Connected, StoreError>> {
        Box::pin(async { Ok(Connected::outside_a_pool(connect(self.pool.manager().source.next().await?).await?)) })
    }

    fn another(&self, _: &Handle) -> Arc<dyn AnyPool> {
        let Maker { source, schema } = self.pool.manager();
        Arc::new(Self::new(source.clone(), schema.clone(), self.pool.status().max_size))
    }
}

impl AnyConnection for Object<Maker> {
    fn client(&mut self) -> &mut Client {
        self
    }

    fn discard(self: Box<Self>) {
        drop(Self::take(*self));
    }
}

/// After so long without use a connection is asked whether it still works: firewalls forget idle ones.
const TRUSTED_FOR: Duration = Duration::from_secs(30);

struct Maker {
    source: Source,
    schema: SchemaName,
}

impl Manager for Maker {
    type Type = Client;
    type Error = StoreError;

    async fn create(&self) -> Result<Client, StoreError> {
        let mut client = connect(self.source.next().await?).await?;
        check_version(&mut client, &self.schema).await.map_err(Failure::into_error)?;
        Ok(client)
    }

    async fn recycle(&self, client: &mut Client, metrics: &Metrics) -> RecycleResult<StoreError> {
        if metrics.last_used() > TRUSTED_FOR {
            check_version(client, &self.schema).await.map_err(Failure::into_error)?;
        }
        Ok(())
    }
}

/// A pool of the user's.
pub(super) struct UserPool<P> {
    pool: P,
    schema: SchemaName,
    /// Whether the schema's version was looked at, once for the pool.
    checked: AtomicBool,
}

impl<P: ConnectionPool> UserPool<P> {
    pub(super) fn new(pool: P, schema: SchemaName) -> Self {
        Self { pool, schema, checked: AtomicBool::new(false) }
    }
}

impl<P: ConnectionPool> AnyPool for UserPool<P> {
    fn get(&self) -> BoxFuture<'_, Result<Connected, StoreError>> {
        Box::pin(async {
            let mut connected = self.get_unchecked().await?;
            if !self.checked.load(Ordering::Relaxed) {
                check_version(connected.client(), &self.schema).await.map_err(Failure::into_error)?;
                self.checked.store(true, Ordering::Relaxed);
            }
            Ok(connected)
        })
    }

    fn get_unchecked(&self) -> BoxFuture<'_, Result<Connected, StoreError>> {
        Box::pin(async {
            let connection = self.pool.get().await.map_err(|error| {
                StoreError::unavailable("the pool gave no connection: look at the source of this error")
                    .with_source(error)
            })?;
            Ok(Connected(Some(Box::new(UserConnection::<P>(connection)))))
        })
    }

    fn another(&self, runtime: &Handle) -> Arc<dyn AnyPool> {
        Arc::new(Self::new(self.pool.for_runtime(runtime), self.schema.clone()))
    }
}

struct UserConnection<P: ConnectionPool>(P::Connection);

impl<P: ConnectionPool> AnyConnection for UserConnection<P> {
    fn client(&mut self) -> &mut Client {
        P::client(&mut self.0)
    }

    fn discard(self: Box<Self>) {
        P::discard(self.0);
    }
}

impl fmt::Debug for dyn AnyPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool(..)")
    }
}
