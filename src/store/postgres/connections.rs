//! Connections: two pools of one runtime, and a connection that is lent to one call.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::runtime::Handle;
use tokio_postgres::Client;

use super::failure;
use super::schema::Name;
use crate::error::StoreError;
use crate::store::Budget;

/// Makes a pool of at most so many connections.
pub(super) type MakePool = Box<dyn Fn(usize) -> Result<Pool, StoreError> + Send + Sync>;

/// What all stores that were made from one builder have in common.
pub(super) struct Settings {
    pub(super) schema: Name,
    pub(super) worker: Name,
    pub(super) operator: Name,
    pub(super) idle_limit: Duration,
    pub(super) make_pool: MakePool,
    pub(super) pool_size: usize,
    pub(super) renewal_pool_size: usize,
}

/// Which pool a call takes its connection from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// A renewal: never behind a publication or a clean-up.
    Renewals,
    /// Everything else.
    Ordinary,
}

/// The pools of one runtime, made when first needed.
pub(super) struct Connections {
    settings: Arc<Settings>,
    runtime: Handle,
    renewals: OnceLock<Pool>,
    ordinary: OnceLock<Pool>,
}

impl Connections {
    pub(super) fn new(settings: Arc<Settings>, runtime: Handle) -> Self {
        Self { settings, runtime, renewals: OnceLock::new(), ordinary: OnceLock::new() }
    }

    pub(super) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The runtime on which every call runs.
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The pool of a lane.
    pub(super) fn pool(&self, lane: Lane) -> Result<Pool, StoreError> {
        let (pool, size) = match lane {
            Lane::Renewals => (&self.renewals, self.settings.renewal_pool_size),
            Lane::Ordinary => (&self.ordinary, self.settings.pool_size),
        };
        if let Some(pool) = pool.get() {
            return Ok(pool.clone());
        }
        // Of two that make one at once, one is used and the other was never connected.
        let made = (self.settings.make_pool)(size)?;
        Ok(pool.get_or_init(|| made).clone())
    }
}

/// A connection that is lent to one call. Unless it is given back it is thrown away: then nobody reads another's answer.
pub(super) struct Lent(Option<Object>);

impl Lent {
    /// Takes a connection from the pool, or makes one, by the end of the budget. Nothing was sent if this fails.
    pub(super) async fn from(pool: &Pool, budget: Budget) -> Result<Self, StoreError> {
        if budget.is_spent() {
            return Err(StoreError::unavailable("the budget was spent before anything was sent: give a longer one"));
        }
        match tokio::time::timeout(budget.remaining(), pool.get()).await {
            Ok(Ok(connection)) => Ok(Self(Some(connection))),
            Ok(Err(error)) => Err(failure::not_connected(error)),
            Err(_) if pool.status().available == 0 && pool.status().size >= pool.status().max_size => {
                Err(StoreError::unavailable(format!(
                    "all {} connections of the pool were in use until the budget ended: try again, or raise pool_size",
                    pool.status().max_size
                )))
            }
            Err(_) => Err(StoreError::unavailable(
                "the server did not accept a connection until the budget ended: look whether it runs and can be reached",
            )),
        }
    }

    /// The connection; `None` once it is known to be closed.
    pub(super) fn client(&self) -> Option<&Client> {
        self.0.as_ref().map(|object| &***object).filter(|client| !client.is_closed())
    }

    /// Back to the pool: all that was asked on it was answered.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lent")
    }
}
