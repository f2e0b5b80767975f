//! The protocol: what every store promises, operation by operation.
//!
//! Only the database's clock and the database's row decide. A store is the small amount of code that asks them; all the
//! judgement about *when* to ask is in the client above.
//!
//! # Three rules
//!
//! Every operation that may wait for a report's row lock works in this order, inside one transaction:
//!
//! 1. **Lock** the row.
//! 2. **Clock.** Read the clock in a statement that *starts* after the lock is held. A single `UPDATE … WHERE expires_at >
//!    now` that waits for the lock is wrong: it renews after the expiry (PostgreSQL fixes `now()` at the transaction's
//!    start and does not re-evaluate the predicate when the blocker rolled back; T-SQL fixes `SYSUTCDATETIME()` when the
//!    statement starts).
//! 3. **Expiry.** If the row has an owner and its expiry has passed, *end that lease in the row*: clear the owner, keep the
//!    expiry (the takeover delay counts from it), and commit this whatever the answer is. A clock that steps back can then not
//!    revive a lease that somebody saw expired. That holds for every operation below that locks the row.
//! 4. **Ledger.** Read it only now, for the same reason as the clock.
//! 5. **Answer**, found in the order written at the operation; write; commit.
//!
//! Transactions are READ COMMITTED unless the user's own demand more. A duplicate key in the ledger or a serialisation
//! failure means: roll back and run the operation again inside its budget. It never means "do nothing".
//!
//! # The row
//!
//! | owner | expiry | state |
//! |---|---|---|
//! | set | set | held, until the expiry has passed |
//! | none | set | expired, and seen so; free for others once the holder's takeover delay has passed since the expiry |
//! | none | none | free: released, published, closed, forced, never taken, or ended by an epoch |
//!
//! `Generation` grows by one at every acquisition (also at a force release and at a reset of the source revision) and is
//! never reset. `PublishedGeneration` says which generation supplied the visible payload. The holder's label, the time of
//! acquisition and the takeover delay stay in the row until the next acquisition.
//!
//! # The ledger
//!
//! One row for every *ended* acquisition, keyed by its owner: either published (operation, generation, epoch, revision,
//! when) or closed. Its existence is what makes an answer certain. Operation ids are unique in it.
//!
//! # Budgets and dropped futures
//!
//! Every call carries a [`Budget`] and answers by its end. A caller that wants to stop waiting keeps the call running
//! elsewhere: it drops a call's future only after the budget (and a grace) has passed. A store whose future is dropped must
//! never use that call's connection again: dropping a future stops no statement, and the next user would read the old
//! one's answer. A write whose answer did not arrive is [`StoreErrorKind::Unknown`], never a guess.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::answer::{
    AcquireAnswer, BatchRenewal, CheckReport, CloseAnswer, EpochAnswer, ForceAnswer, Metadata, ProvisionAnswer,
    PublishAnswer, ReadAnswer, ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer, Version,
};
pub use crate::error::{StoreError, StoreErrorKind};
use crate::fence::{Epoch, Fence, Holder, ReportId, SourceRevision};

#[cfg(any(feature = "sqlite", feature = "sqlserver", feature = "postgres"))]
mod decide;
#[cfg(any(feature = "sqlserver", feature = "postgres"))]
mod limit;
#[cfg(feature = "postgres")]
pub mod postgres;
mod request;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "sqlserver")]
pub mod sqlserver;
#[cfg(any(feature = "sqlite", feature = "sqlserver", feature = "postgres"))]
mod validate;

pub use request::{AcquireRequest, AdvanceRequest, Budget, CloseRequest, ListRequest, Payload, PublishRequest};

/// The shortest TTL of a lease.
pub const MIN_TTL: Duration = Duration::from_millis(10);

/// The longest TTL of a lease: what fits a 32-bit count of milliseconds, which is what T-SQL's `DATEADD` takes.
pub const MAX_TTL: Duration = Duration::from_secs(7 * 24 * 3600);

/// The longest takeover delay.
pub const MAX_TAKEOVER_DELAY: Duration = Duration::from_secs(24 * 3600);

/// How many leases one [`Store::renew_many`] takes, and how many rows one [`Store::list`] gives.
pub const MAX_BATCH: usize = 1_000;

/// A database that keeps reports, leases and the ledger.
///
/// Cloning is cheap and shares the connections. Each method is one operation of the protocol; in every one the answers are
/// found *in the order written*, the same on every store, so that a caller can be moved from one database to another. The
/// module's page has the rules that hold for all of them, and [`conformance`](crate::conformance) proves them.
///
/// # Errors
/// Of every method: [`Unavailable`](StoreErrorKind::Unavailable) and [`Rejected`](StoreErrorKind::Rejected) when nothing
/// was applied; [`Unknown`](StoreErrorKind::Unknown) when a write's answer did not arrive; [`Invalid`](StoreErrorKind::Invalid)
/// for a TTL or delay out of range, a batch over [`MAX_BATCH`], or an advance whose next owner is the publishing one. Reads
/// change nothing, so they never answer `Unknown`.
///
/// # Cancel safety
/// Of every method: dropping its future leaves the operation's outcome unknown and costs its connection. The client never
/// does it before the budget is spent.
pub trait Store: Clone + Send + Sync + 'static {
    /// A transaction of the user's own that ends in a publication; see [`begin`](Self::begin).
    type Transaction: FencedTransaction;

    /// The same store with connections of its own, for use in another runtime.
    ///
    /// Sockets belong to the reactor of the runtime that made them, and renewals must never wait for a connection behind a
    /// slow publication. So the renewal engine calls this once, and uses what it gets only in `runtime`. It does no I/O:
    /// connections are made when first needed.
    #[must_use]
    fn for_runtime(&self, runtime: &Handle) -> Self;

    /// Creates the report's row, with the store-wide recovery epoch (0 in a new store), generation 0 and nothing published.
    /// Idempotent.
    ///
    /// Reads the store-wide epoch in the same transaction, under a lock that [`advance_recovery_epoch`] waits for, so that
    /// no row is left in an old epoch.
    ///
    /// [`advance_recovery_epoch`]: Self::advance_recovery_epoch
    fn provision(
        &self,
        report: ReportId,
        budget: Budget,
    ) -> impl Future<Output = Result<ProvisionAnswer, StoreError>> + Send;

    /// Takes the lease, by one conditional UPDATE that increments the generation.
    ///
    /// In this order:
    /// 1. [`Missing`](AcquireAnswer::Missing): no row.
    /// 2. [`StaleHistory`](AcquireAnswer::StaleHistory): the row's epoch is below `min_epoch`.
    /// 3. [`Ended`](AcquireAnswer::Ended): the ledger knows this owner. The request is a late duplicate.
    /// 4. [`Acquired`](AcquireAnswer::Acquired), repeated: this owner still holds the row. Same generation, and what
    ///    *remains*: no new TTL. (An owner whose lease expired, or was forced out, simply goes on to the next points.)
    /// 5. [`AlreadyFresh`](AcquireAnswer::AlreadyFresh): `wanted` is given, something is visible, and its revision is at
    ///    least the greater of `wanted` and the floor.
    /// 6. [`Busy`](AcquireAnswer::Busy): somebody holds the row, or its expiry plus its takeover delay has not passed.
    /// 7. [`Acquired`](AcquireAnswer::Acquired): generation + 1, this owner, now + TTL, holder, now as the time of
    ///    acquisition, this request's takeover delay.
    ///
    /// # Errors
    /// Also [`Rejected`](StoreErrorKind::Rejected) if the generation is `i64::MAX`: nothing is changed then.
    fn acquire(
        &self,
        request: AcquireRequest,
        budget: Budget,
    ) -> impl Future<Output = Result<AcquireAnswer, StoreError>> + Send;

    /// Extends the lease of exactly this fence, if it has not expired. A renewal never revives.
    ///
    /// In this order:
    /// 1. [`Refused(Missing)`](crate::answer::Refusal::Missing): no row.
    /// 2. [`Renewed`](RenewAnswer::Renewed): generation, owner and epoch match and the expiry has not passed. The expiry
    ///    becomes the later of the old one and now + TTL; nothing else changes.
    /// 3. [`Published`](RenewAnswer::Published): the ledger has this owner's publication.
    /// 4. `Refused`: [`Superseded`](crate::answer::Refusal::Superseded) if the row's generation is above the fence's, unless
    ///    all that happened since is the force release of this very lease ·
    ///    [`Released`](crate::answer::Refusal::Released) if the ledger has this owner closed, or the row is free under this
    ///    generation and epoch · [`Forced`](crate::answer::Refusal::Forced) ·
    ///    [`StaleEpoch`](crate::answer::Refusal::StaleEpoch) if the epochs differ, or the row's generation is *below* the
    ///    fence's (a history that was replaced without raising the epoch) ·
    ///    [`Expired`](crate::answer::Refusal::Expired), which is also the answer to whatever else does not match.
    fn renew(
        &self,
        fence: Fence,
        ttl: Duration,
        budget: Budget,
    ) -> impl Future<Output = Result<RenewAnswer, StoreError>> + Send;

    /// [`renew`](Self::renew) for up to [`MAX_BATCH`] fences in one statement and one round trip, with an answer each, in
    /// the order asked.
    ///
    /// Duplicates and several fences of one report are allowed. A row that somebody else has locked is
    /// [`Skipped`](BatchRenewal::Skipped), not waited for, where the engine can tell. One bad fence harms no other.
    fn renew_many(
        &self,
        fences: Vec<Fence>,
        ttl: Duration,
        budget: Budget,
    ) -> impl Future<Output = Result<Vec<BatchRenewal>, StoreError>> + Send;

    /// Publishes and ends the lease, in one transaction and one round trip.
    ///
    /// In this order:
    /// 1. By the ledger: [`AlreadyPublished`](PublishAnswer::AlreadyPublished) if this owner published this operation;
    ///    `Refused` as [`GenerationPublished`](crate::answer::Refusal::GenerationPublished) if it published another, as
    ///    [`Closed`](crate::answer::Refusal::Closed) if it was closed, as
    ///    [`OperationReused`](crate::answer::Refusal::OperationReused) if another owner published this operation.
    /// 2. [`NoLongerKnown`](PublishAnswer::NoLongerKnown): no row · pruned up to this generation or beyond · another epoch,
    ///    or the row's generation is below the fence's.
    /// 3. `Refused`: [`Forced`](crate::answer::Refusal::Forced) if this generation was forced out ·
    ///    [`Superseded`](crate::answer::Refusal::Superseded) by a later generation (or by a foreign owner) ·
    ///    [`Released`](crate::answer::Refusal::Released) if the row is free ·
    ///    [`Expired`](crate::answer::Refusal::Expired) ·
    ///    [`StaleSource`](crate::answer::Refusal::StaleSource): the revision is below the floor or below what is visible,
    ///    or there is none while one of those is set. The lease goes on.
    /// 4. [`NoLongerKnown`](PublishAnswer::NoLongerKnown): the published generation is not below the fence's, and the ledger
    ///    knows nothing of it (a history that was replaced in part).
    /// 5. [`Published`](PublishAnswer::Published): the conditional UPDATE with the exact fence, the expiry and
    ///    `PublishedGeneration < generation`; beside it the ledger's row; and the lease is free.
    fn publish(
        &self,
        request: PublishRequest,
        budget: Budget,
    ) -> impl Future<Output = Result<PublishAnswer, StoreError>> + Send;

    /// The same as [`publish`](Self::publish), but the lease goes on under generation + 1, the next owner, the same holder and
    /// takeover delay, and a fresh TTL.
    ///
    /// Sent again after it was accepted, it answers [`AlreadyPublished`](PublishAnswer::AlreadyPublished) with what *remains*
    /// of the next owner's lease, if that one holds the row, and no new TTL. If the next owner is already in the ledger
    /// (closed by a recovery), or the generation is `i64::MAX`, it publishes and ends the lease.
    fn publish_and_advance(
        &self,
        request: AdvanceRequest,
        budget: Budget,
    ) -> impl Future<Output = Result<PublishAnswer, StoreError>> + Send;

    /// Makes the outcome of an acquisition certain, and ends it: acknowledgement recovery, and the clean-up of a cancelled
    /// acquisition, in one.
    ///
    /// In this order:
    /// 1. [`Ended`](CloseAnswer::Ended) as the ledger has it.
    /// 2. [`NoLongerKnown`](CloseAnswer::NoLongerKnown): no row; or, if the caller ever learned a generation: pruned up to
    ///    it · another epoch, or the row's generation is below it.
    /// 3. [`Ended(Closed)`](crate::answer::Ending::Closed): *written* to the ledger, and if this owner holds the row, the row
    ///    is freed. A request still on its way can be accepted no more. Reading alone would be wrong: a late statement may
    ///    commit after the read.
    ///
    /// The ledger row of a close without a generation is filed under the row's current one.
    fn close(
        &self,
        request: CloseRequest,
        budget: Budget,
    ) -> impl Future<Output = Result<CloseAnswer, StoreError>> + Send;

    /// Frees the lease if exactly this fence holds it unexpired, and writes the owner's closing to the ledger. Anything else
    /// is [`AlreadyOver`](ReleaseAnswer::AlreadyOver), never an error. The row and its generation stay for ever.
    fn release(&self, fence: Fence, budget: Budget) -> impl Future<Output = Result<ReleaseAnswer, StoreError>> + Send;

    /// The visible payload with its version, in one snapshot, without the row's lock. With `newer_than`, the payload is sent
    /// only if the visible version is above it.
    fn read(
        &self,
        report: ReportId,
        newer_than: Option<Version>,
        budget: Budget,
    ) -> impl Future<Output = Result<ReadAnswer, StoreError>> + Send;

    /// What the row says, without its payload and without its lock; `None` if there is no row.
    fn metadata(
        &self,
        report: ReportId,
        budget: Budget,
    ) -> impl Future<Output = Result<Option<Metadata>, StoreError>> + Send;

    /// Who holds the report, since when, for how long, and its last publication; `None` if there is no row. Takes no lock.
    fn inspect(
        &self,
        report: ReportId,
        budget: Budget,
    ) -> impl Future<Output = Result<Option<ReportStatus>, StoreError>> + Send;

    /// [`inspect`](Self::inspect) for many, a page at a time.
    fn list(
        &self,
        request: ListRequest,
        budget: Budget,
    ) -> impl Future<Output = Result<Vec<ReportStatus>, StoreError>> + Send;

    /// Whether this store can do its work: schema version, permissions, isolation, clock offset.
    fn check(&self, budget: Budget) -> impl Future<Output = Result<CheckReport, StoreError>> + Send;

    /// Operators: takes the lease away. The generation is raised, whether or not anybody holds the row, so that the old
    /// holder is fenced out and not only ended; who, when and which generation is recorded in the row. No takeover delay
    /// remains. The ledger is not written.
    ///
    /// # Errors
    /// Also [`Rejected`](StoreErrorKind::Rejected) if the generation is `i64::MAX`.
    fn force_release(
        &self,
        report: ReportId,
        by: Holder,
        budget: Budget,
    ) -> impl Future<Output = Result<ForceAnswer, StoreError>> + Send;

    /// Operators: raises the floor of source revisions to at least this. Never lowers it, and leaves a lease alone.
    fn require_source_revision(
        &self,
        report: ReportId,
        revision: SourceRevision,
        budget: Budget,
    ) -> impl Future<Output = Result<RevisionAnswer, StoreError>> + Send;

    /// Operators: the only way down. Sets the floor, forgets the visible revision (the payload stays), ends the lease and
    /// raises the generation, so that a late duplicate of a publication once refused as stale stays refused.
    ///
    /// # Errors
    /// Also [`Rejected`](StoreErrorKind::Rejected) if the generation is `i64::MAX`.
    fn reset_source_revision(
        &self,
        report: ReportId,
        revision: Option<SourceRevision>,
        budget: Budget,
    ) -> impl Future<Output = Result<RevisionAnswer, StoreError>> + Send;

    /// Operators, after a restore or a lossy failover, before any worker connects: puts the store and every row into a new
    /// epoch and ends all leases, in one transaction. The value must be above every epoch ever used; keep it outside the
    /// database, because a restore would throw it away.
    fn advance_recovery_epoch(
        &self,
        to: Epoch,
        budget: Budget,
    ) -> impl Future<Output = Result<EpochAnswer, StoreError>> + Send;

    /// Operators: deletes ledger rows older than this age whose generation is below their row's current one; each row
    /// remembers up to where. Answers how many. The age must exceed the lifetime of any request.
    fn prune_ledger(
        &self,
        older_than: Duration,
        budget: Budget,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Begins a transaction in which the caller's own statements, on the same database, succeed or fail together with the
    /// publication.
    ///
    /// How statements are added is the store's own affair (see its `Transaction`). The report's row lock is taken only in the
    /// final trip, so that a stopped client never holds it.
    fn begin(&self, budget: Budget) -> impl Future<Output = Result<Self::Transaction, StoreError>> + Send;
}

/// A transaction with the user's own statements that ends in a fenced publication.
///
/// Dropping it rolls back, at the latest when the connection is thrown away.
pub trait FencedTransaction: Send + 'static {
    /// Runs [`Store::publish`] inside this transaction and commits, in one final trip. The user's statements are committed
    /// if and only if the answer is [`Published`](PublishAnswer::Published); every other answer rolls them back.
    ///
    /// # Errors
    /// As [`Store::publish`]; after [`Unknown`](StoreErrorKind::Unknown), [`Store::close`] tells whether it was committed.
    fn publish(
        self,
        request: PublishRequest,
        budget: Budget,
    ) -> impl Future<Output = Result<PublishAnswer, StoreError>> + Send;

    /// Gives up: nothing of it is applied.
    fn rollback(self, budget: Budget) -> impl Future<Output = Result<(), StoreError>> + Send;
}
