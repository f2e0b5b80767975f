//! What a store provides so that the suite can put it into every state: the [`Harness`].
//!
//! A harness is test code. It may panic when the database does not do as told; the suite names the case.

use std::future::Future;
use std::time::Duration;

use crate::fence::{Epoch, Generation, Owner, ReportId, SourceRevision};
use crate::store::Store;

/// Makes databases for the cases of the suite.
pub trait Harness: Send + Sync {
    /// A database of this store.
    type Database: Database;

    /// A database (or schema, or file) that nobody else uses, installed and empty. Dropping it leaves nothing behind.
    fn fresh(&self) -> impl Future<Output = Self::Database> + Send;
}

/// One database, with the means to set and see its rows behind the store's back.
pub trait Database: Send + Sync + 'static {
    /// The store under test.
    type Store: Store;
    /// A held row lock.
    type Blocker: Blocker;

    /// A store with connections of its own: two stores stand for two workers.
    fn connect(&self) -> impl Future<Output = Self::Store> + Send;

    /// Sets the row's expiry column, and only that, to this many milliseconds from the database's now; negative is the past.
    ///
    /// It is also how the suite plays a clock that steps: to put every expiry later is to put the clock back.
    fn set_expiry(&self, report: ReportId, millis_from_now: i64) -> impl Future<Output = ()> + Send;

    /// Sets the row's generation, and only that: for the end of the range, and for a history that was replaced.
    fn set_generation(&self, report: ReportId, generation: Generation) -> impl Future<Output = ()> + Send;

    /// Deletes the report's row (and payload), and leaves the ledger.
    fn delete_row(&self, report: ReportId) -> impl Future<Output = ()> + Send;

    /// Makes every ledger row this much older.
    fn age_ledger(&self, by: Duration) -> impl Future<Output = ()> + Send;

    /// The row as it is in the table, read without the store and without a lock; `None` if there is none.
    fn row(&self, report: ReportId) -> impl Future<Output = Option<RawRow>> + Send;

    /// Takes the row's lock as somebody else, on a connection of its own, and holds it.
    fn block(&self, report: ReportId, then: BlockerEnd) -> impl Future<Output = Self::Blocker> + Send;

    /// Whether [`renew_many`](Store::renew_many) can tell a locked row and skip it. Where the engine has only one lock for the
    /// whole database, or cannot skip, it waits instead.
    fn skips_locked_rows(&self) -> bool;

    /// Whether a read of a row that somebody else is writing waits for the writer. An engine without row versions does; so does SQL
    /// Server while `READ_COMMITTED_SNAPSHOT` is off. It may then wait for as long as its budget, and no longer.
    fn readers_wait_for_writers(&self) -> bool {
        false
    }

    /// Adds a statement to a user's transaction that writes this note into a table of the user's.
    fn write_note(
        &self,
        transaction: &mut <Self::Store as Store>::Transaction,
        note: i64,
    ) -> impl Future<Output = ()> + Send;

    /// The notes that were committed.
    fn notes(&self) -> impl Future<Output = Vec<i64>> + Send;
}

/// A row lock held by somebody else.
pub trait Blocker: Send {
    /// Returns once at least this many store calls wait for the lock.
    fn wait_for_waiters(&self, waiters: usize) -> impl Future<Output = ()> + Send;

    /// Lets go, as was said when the lock was taken.
    fn release(self) -> impl Future<Output = ()> + Send;
}

/// How a blocker lets go of its lock: engines re-evaluate a waiting statement's predicate after some of these only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockerEnd {
    /// It had changed the row, and rolls back.
    RollBack,
    /// It had only locked the row (`SELECT … FOR UPDATE`, `BEGIN IMMEDIATE`), and commits.
    OnlyLock,
    /// It had changed a column that the protocol does not look at (the holder's label), and commits.
    CommitUpdate,
}

impl BlockerEnd {
    /// Every way to let go.
    pub const ALL: [Self; 3] = [Self::RollBack, Self::OnlyLock, Self::CommitUpdate];
}

/// A report's row as it is in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // The columns' own names; their meaning is in the store module.
pub struct RawRow {
    pub generation: Generation,
    pub owner: Option<Owner>,
    /// Milliseconds from the database's now; negative once passed.
    pub expires_in_millis: Option<i64>,
    pub epoch: Epoch,
    /// 0 before the first publication.
    pub published_generation: Generation,
    pub payload: Option<String>,
    pub revision: Option<SourceRevision>,
    pub revision_floor: Option<SourceRevision>,
    pub pruned_up_to: Generation,
    pub forced_generation: Option<Generation>,
}
