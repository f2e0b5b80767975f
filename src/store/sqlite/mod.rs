//! The SQLite store: one file, many processes of one machine, nothing to install.
//!
//! Safe among processes on one machine and a local disk; not on a network file system, whose locks and shared memory SQLite
//! cannot rely on. The file is in WAL mode with `synchronous = FULL`: what was acknowledged survives a power cut.
//!
//! # How it keeps the protocol
//!
//! Every operation that may write is one `BEGIN IMMEDIATE … COMMIT` on a connection thread: lock, row, clock, expiry, ledger,
//! answer. The lock is that of the whole file, held for a fraction of a millisecond and an fsync; a process that is *stopped*
//! inside it stops every writer until it goes on or ends. Reads take no lock.
//!
//! Leases are decided by the time since boot and the boot's id, which no step of the wall clock touches; a reboot ends
//! every lease. The columns that end in `Utc` are for people. Where the system names no boot (anything but Linux and
//! Android) the wall clock decides.
//!
//! # The file
//!
//! `ReportPublication`, `ReportPayload`, `ReportLedger` and `LeaseholdStore`, with ids as text, readable with the `sqlite3`
//! shell; tables of your own may live beside them. See `sql/schema.sql`.

#[cfg(test)]
mod clauses;
mod clock;
mod connection;
mod failure;
mod leases;
mod operators;
mod publications;
mod reading;
mod rows;
mod schema;
mod store;
#[cfg(feature = "test-util")]
pub mod testing;
mod thread;
mod transaction;
mod user;
mod utc;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use transaction::{SqliteTransaction, Value};

use self::clock::Clock;
use self::thread::{ConnectionThread, Needs};
use crate::error::StoreError;
use crate::store::Budget;

/// How long [`SqliteStore::open`] may take.
const OPENING: Duration = Duration::from_secs(10);

/// Reports, leases and the ledger in an SQLite file.
///
/// Clones share one connection on a thread of its own; the thread ends when the last of them is dropped.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    thread: Arc<ConnectionThread>,
}

impl SqliteStore {
    /// Opens the database at this path, creates the file if there is none, and brings its schema up to date.
    ///
    /// Waits up to ten seconds for other processes that hold the file's lock; see [`open_within`](Self::open_within).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use leasehold::ReportId;
    /// use leasehold::store::{Budget, Store, sqlite::SqliteStore};
    ///
    /// # let path = std::env::temp_dir().join(format!("leasehold-{}.db", std::process::id()));
    /// let store = SqliteStore::open(&path).await?;
    /// store.provision(ReportId::from_name("monthly"), Budget::within(Duration::from_secs(1))).await?;
    /// # drop(store);
    /// # std::fs::remove_file(path)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Rejected`](crate::StoreErrorKind::Rejected): the path is a folder, its folder does not exist, the file is read-only, is
    /// no database or is damaged, has a newer schema than this build knows, or lies where memory cannot be shared between
    /// processes. [`Unavailable`](crate::StoreErrorKind::Unavailable): another process holds the lock for too long.
    /// [`Invalid`](crate::StoreErrorKind::Invalid): no path, or `:memory:`, which connections could not share.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the file as it was, or opened and set up.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_within(path, Budget::within(OPENING)).await
    }

    /// [`open`](Self::open) with a budget of the caller's.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Cancel safety
    /// As [`open`](Self::open).
    pub async fn open_within(path: impl AsRef<Path>, budget: Budget) -> Result<Self, StoreError> {
        Self::open_on(path.as_ref(), Clock::of_this_machine()?, budget).await
    }

    async fn open_on(path: &Path, clock: Clock, budget: Budget) -> Result<Self, StoreError> {
        if path.as_os_str().is_empty() || path == Path::new(":memory:") {
            return Err(StoreError::invalid(
                "an SQLite store needs a file that its connections can share: give the path of one (on /dev/shm, say, if it \
                 need not last)",
            ));
        }
        // A later change of the working directory must not lead a reopened connection to another file.
        let path = std::path::absolute(path).map_err(|error| {
            StoreError::rejected("the current folder cannot be found: give an absolute path").with_source(error)
        })?;
        let thread = ConnectionThread::creating(path, clock);
        thread.call(Needs::WriteLock, budget, connection::Session::open).await?;
        thread.set_created();
        Ok(Self { thread: Arc::new(thread) })
    }

    fn thread(&self) -> &ConnectionThread {
        &self.thread
    }
}
