//! Why a scene could not be played, or a worker not work.

use std::io;
use std::time::Duration;

use leasehold::{AcquireError, Loss, PolicyError, StoreError};

use crate::database::Unnamed;
use crate::event::Who;

/// What went wrong. That the evidence does not hold is no failure of this kind: it is an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("a process, pipe or file: {0}")]
    Io(#[from] io::Error),
    #[error("the database: {0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Unnamed(#[from] Unnamed),
    #[error("past the store: {0}")]
    #[cfg(feature = "sqlite")]
    Sqlite(#[from] rusqlite::Error),
    #[error("past the store: {0}")]
    #[cfg(feature = "sqlserver")]
    SqlServer(#[from] leasehold::store::sqlserver::tiberius::error::Error),
    #[error("past the store: {}", said(.0))]
    #[cfg(feature = "postgres")]
    Postgres(#[from] tokio_postgres::Error),
    #[error("the policy: {0}")]
    Policy(#[from] PolicyError),
    #[error("the lease was not acquired: {0}")]
    Acquire(#[from] AcquireError),
    #[error("the build was cancelled: {0}")]
    Lost(#[from] Loss),
    #[error("what a worker said is no event: {0}")]
    Line(#[from] serde_json::Error),
    #[error("{waited_for} did not happen within {limit:?}")]
    Silent { waited_for: String, limit: Duration },
    #[error("worker {0} ended too early; its own words are above")]
    Ended(Who),
    #[error("{0}")]
    Unexpected(String),
}

/// What the server said, which the driver's error keeps to itself.
#[cfg(feature = "postgres")]
fn said(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}
