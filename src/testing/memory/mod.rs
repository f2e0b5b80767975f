//! A store in the memory of one process.

mod clock;
#[cfg(feature = "conformance")]
mod harness;
mod lock;
mod mutant;
mod protocol;
mod rows;
mod transaction;

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;

pub use clock::MemoryClock;
#[cfg(feature = "conformance")]
pub use harness::{MemoryBlocker, MemoryDatabase, MemoryHarness};
pub use mutant::Mutant;
pub use transaction::MemoryTransaction;

use crate::answer::{
    AcquireAnswer, BatchRenewal, CheckReport, CloseAnswer, EpochAnswer, ForceAnswer, Metadata, ProvisionAnswer,
    PublishAnswer, ReadAnswer, ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer, Version,
};
use crate::error::StoreError;
use crate::fence::{Epoch, Fence, Generation, Holder, ReportId, SourceRevision};
use crate::store::{
    AcquireRequest, AdvanceRequest, Budget, CloseRequest, ListRequest, MAX_BATCH, MAX_TAKEOVER_DELAY, MAX_TTL, MIN_TTL,
    PublishRequest, Store,
};
use clock::Time;
use lock::{RowGuard, RowLocks, unpoisoned};
use mutant::Mutants;
use protocol::Locked;
use rows::{Ledger, Row, Tables};

/// A store that lives in one process and loses everything when its last clone is dropped: for tests only.
///
/// It keeps the whole [contract](crate::store), and the conformance suite proves it: calls really wait for a report's row
/// lock, in the order in which they came and within their budgets, and time is that of a [clock](Self::clock) which a test
/// can step. What it cannot show is how a database of yours isolates transactions, or what a broken connection does.
///
/// ```
/// use std::time::Duration;
/// use leasehold::ReportId;
/// use leasehold::store::{Budget, Store};
/// use leasehold::testing::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leasehold::StoreError> {
/// let store = MemoryStore::new();
/// let report = ReportId::from_name("customer 42 / monthly");
/// store.provision(report, Budget::within(Duration::from_secs(1))).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    tables: Mutex<Tables>,
    locks: RowLocks,
    clock: MemoryClock,
    mutants: Mutants,
    /// Whether `renew_many` skips locked rows, as most engines can, or waits for them.
    skips_locked_rows: bool,
}

/// The epoch of a database that was never restored.
const FIRST_EPOCH: Epoch = Epoch::new(1);

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty database of its own. Clones share it.
    #[must_use]
    pub fn new() -> Self {
        Self::of_kind(&[], true)
    }

    /// The database's clock.
    #[must_use]
    pub fn clock(&self) -> MemoryClock {
        self.shared.clock.clone()
    }

    fn of_kind(mutants: &[Mutant], skips_locked_rows: bool) -> Self {
        let tables = Tables { epoch: FIRST_EPOCH, rows: Default::default(), ledger: Ledger::default() };
        let shared = Shared {
            tables: Mutex::new(tables),
            locks: RowLocks::default(),
            clock: MemoryClock::start(),
            mutants: Mutants::new(mutants),
            skips_locked_rows,
        };
        Self { shared: Arc::new(shared) }
    }

    /// One operation on one report: lock, then clock, then everything else, in one transaction.
    async fn locked<T>(
        &self,
        report: ReportId,
        budget: Budget,
        early: Early,
        operation: impl FnOnce(&mut Locked<'_>) -> T,
    ) -> Result<T, StoreError> {
        not_spent(budget)?;
        let before = self.before_the_lock(early);
        let _guard = self.shared.locks.of(report).lock(budget).await?;
        Ok(self.with_row(report, before, operation))
    }

    fn with_row<T>(&self, report: ReportId, before: Before, operation: impl FnOnce(&mut Locked<'_>) -> T) -> T {
        let Shared { tables, clock, mutants, .. } = &*self.shared;
        let mut tables = unpoisoned(tables);
        let now = before.clock.unwrap_or_else(|| clock.now());
        let ledger_before_lock = before.ledger;
        operation(&mut Locked { report, now, tables: &mut tables, clock, mutants, ledger_before_lock })
    }

    /// What a mutant reads too early; nothing otherwise.
    fn before_the_lock(&self, Early { clock, ledger }: Early) -> Before {
        let has = |mutant: Option<Mutant>| mutant.is_some_and(|mutant| self.shared.mutants.has(mutant));
        Before {
            clock: has(clock).then(|| self.shared.clock.now()),
            ledger: has(ledger).then(|| unpoisoned(&self.shared.tables).ledger.clone()),
        }
    }

    /// Every row's lock, in the order of ids so that two of these cannot wait for each other.
    async fn lock_all(&self, budget: Budget) -> Result<Vec<RowGuard>, StoreError> {
        not_spent(budget)?;
        let reports: Vec<ReportId> = unpoisoned(&self.shared.tables).rows.keys().copied().collect();
        let mut guards = Vec::with_capacity(reports.len());
        for report in reports {
            guards.push(self.shared.locks.of(report).lock(budget).await?);
        }
        Ok(guards)
    }

    /// Reads without a lock.
    fn snapshot<T>(
        &self,
        budget: Budget,
        read: impl FnOnce(&Tables, Time, &MemoryClock) -> T,
    ) -> Result<T, StoreError> {
        not_spent(budget)?;
        let tables = unpoisoned(&self.shared.tables);
        Ok(read(&tables, self.shared.clock.now(), &self.shared.clock))
    }

    /// Renews one of a batch. A row that is locked is skipped or waited for, as engines do.
    async fn renew_one_of_many(&self, fence: Fence, ttl: Duration, budget: Budget) -> Result<BatchRenewal, StoreError> {
        let lock = self.shared.locks.of(fence.report);
        let before = self.before_the_lock(Early::clock(Mutant::RenewReadsClockBeforeLock));
        let _guard = match lock.try_lock() {
            Some(guard) => guard,
            None if self.shared.skips_locked_rows => return Ok(BatchRenewal::Skipped),
            None => lock.lock(budget).await?,
        };
        let renew = |row: &mut Locked<'_>| BatchRenewal::Answered(row.renew(fence, ttl));
        Ok(self.with_row(fence.report, before, renew))
    }
}

/// The mutants that make an operation read something before it has the lock.
#[derive(Clone, Copy, Default)]
struct Early {
    clock: Option<Mutant>,
    ledger: Option<Mutant>,
}

impl Early {
    const fn clock(mutant: Mutant) -> Self {
        Self { clock: Some(mutant), ledger: None }
    }
}

/// What a mutant did read before it had the lock.
struct Before {
    clock: Option<Time>,
    ledger: Option<Ledger>,
}

const EARLY_PUBLISH: Early =
    Early { clock: Some(Mutant::PublishReadsClockBeforeLock), ledger: Some(Mutant::PublishReadsLedgerBeforeLock) };
const EARLY_CLOSE: Early = Early { clock: None, ledger: Some(Mutant::CloseReadsLedgerBeforeLock) };

impl Store for MemoryStore {
    type Transaction = MemoryTransaction;

    fn for_runtime(&self, _: &Handle) -> Self {
        self.clone()
    }

    async fn provision(&self, report: ReportId, budget: Budget) -> Result<ProvisionAnswer, StoreError> {
        not_spent(budget)?;
        let mut tables = unpoisoned(&self.shared.tables);
        if tables.rows.contains_key(&report) {
            return Ok(ProvisionAnswer::Existed);
        }
        let first = self.shared.mutants.has(Mutant::ProvisionInFirstEpoch);
        let epoch = if first { FIRST_EPOCH } else { tables.epoch };
        tables.rows.insert(report, Row::new(epoch, self.shared.clock.now()));
        Ok(ProvisionAnswer::Created)
    }

    async fn acquire(&self, request: AcquireRequest, budget: Budget) -> Result<AcquireAnswer, StoreError> {
        valid_ttl(request.ttl)?;
        if request.takeover_delay > MAX_TAKEOVER_DELAY {
            return Err(out_of_range("takeover delay", request.takeover_delay, &(Duration::ZERO..=MAX_TAKEOVER_DELAY)));
        }
        let early = Early::clock(Mutant::AcquireReadsClockBeforeLock);
        self.locked(request.report, budget, early, |row| row.acquire(request)).await?
    }

    async fn renew(&self, fence: Fence, ttl: Duration, budget: Budget) -> Result<RenewAnswer, StoreError> {
        valid_ttl(ttl)?;
        let early = Early::clock(Mutant::RenewReadsClockBeforeLock);
        self.locked(fence.report, budget, early, |row| row.renew(fence, ttl)).await
    }

    async fn renew_many(
        &self,
        fences: Vec<Fence>,
        ttl: Duration,
        budget: Budget,
    ) -> Result<Vec<BatchRenewal>, StoreError> {
        valid_ttl(ttl)?;
        if fences.len() > MAX_BATCH {
            let message = format!("{} leases were to be renewed at once and the limit is {MAX_BATCH}", fences.len());
            return Err(StoreError::invalid(message));
        }
        not_spent(budget)?;
        let mut answers = Vec::with_capacity(fences.len());
        for fence in fences {
            answers.push(self.renew_one_of_many(fence, ttl, budget).await?);
        }
        Ok(answers)
    }

    async fn publish(&self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        self.locked(request.fence.report, budget, EARLY_PUBLISH, |row| row.publish(&request, None)).await
    }

    async fn publish_and_advance(&self, request: AdvanceRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        valid_ttl(request.ttl)?;
        let AdvanceRequest { publish, next_owner, ttl } = request;
        if next_owner == publish.fence.owner {
            return Err(StoreError::invalid("the next owner of an advance is the publishing one: mint a fresh owner"));
        }
        let next = Some((next_owner, ttl));
        self.locked(publish.fence.report, budget, EARLY_PUBLISH, |row| row.publish(&publish, next)).await
    }

    async fn close(&self, request: CloseRequest, budget: Budget) -> Result<CloseAnswer, StoreError> {
        self.locked(request.report, budget, EARLY_CLOSE, |row| row.close(request)).await
    }

    async fn release(&self, fence: Fence, budget: Budget) -> Result<ReleaseAnswer, StoreError> {
        let early = Early::clock(Mutant::ReleaseReadsClockBeforeLock);
        self.locked(fence.report, budget, early, |row| row.release(fence)).await
    }

    async fn read(
        &self,
        report: ReportId,
        newer_than: Option<Version>,
        budget: Budget,
    ) -> Result<ReadAnswer, StoreError> {
        self.snapshot(budget, |tables, _, clock| {
            let Some(row) = tables.rows.get(&report) else { return ReadAnswer::Missing };
            match (row.visible(clock), &row.payload) {
                (Some(visible), _) if newer_than.is_some_and(|known| visible.version <= known) => {
                    ReadAnswer::NotNewer(visible)
                }
                (Some(visible), Some(payload)) => ReadAnswer::Found { visible, payload: payload.as_str().to_owned() },
                _ => ReadAnswer::Unpublished,
            }
        })
    }

    async fn metadata(&self, report: ReportId, budget: Budget) -> Result<Option<Metadata>, StoreError> {
        self.snapshot(budget, |tables, _, clock| tables.rows.get(&report).map(|row| row.metadata(clock)))
    }

    async fn inspect(&self, report: ReportId, budget: Budget) -> Result<Option<ReportStatus>, StoreError> {
        self.snapshot(budget, |tables, now, clock| tables.rows.get(&report).map(|row| row.status(report, now, clock)))
    }

    async fn list(&self, request: ListRequest, budget: Budget) -> Result<Vec<ReportStatus>, StoreError> {
        if request.limit > MAX_BATCH {
            let message = format!("{} rows were asked for at once and the limit is {MAX_BATCH}", request.limit);
            return Err(StoreError::invalid(message));
        }
        self.snapshot(budget, |tables, now, clock| {
            let after = |report: &ReportId| request.after.is_none_or(|after| *report > after);
            let wanted = |row: &Row| !request.leased_only || row.is_kept(now);
            let rows = tables.rows.iter().filter(|(report, row)| after(report) && wanted(row));
            rows.take(request.limit).map(|(report, row)| row.status(*report, now, clock)).collect()
        })
    }

    async fn check(&self, budget: Budget) -> Result<CheckReport, StoreError> {
        self.snapshot(budget, |tables, _, clock| CheckReport {
            engine: format!("memory {}", env!("CARGO_PKG_VERSION")),
            schema_version: 1,
            epoch: tables.epoch,
            isolation: "serial; nothing is durable".to_owned(),
            problems: Vec::new(),
            clock_offset_millis: clock.offset_millis(),
        })
    }

    async fn force_release(&self, report: ReportId, by: Holder, budget: Budget) -> Result<ForceAnswer, StoreError> {
        self.locked(report, budget, Early::default(), |row| row.force_release(by)).await?
    }

    async fn require_source_revision(
        &self,
        report: ReportId,
        revision: SourceRevision,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.locked(report, budget, Early::default(), |row| row.require_revision(revision)).await
    }

    async fn reset_source_revision(
        &self,
        report: ReportId,
        revision: Option<SourceRevision>,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.locked(report, budget, Early::default(), |row| row.reset_revision(revision)).await?
    }

    async fn advance_recovery_epoch(&self, to: Epoch, budget: Budget) -> Result<EpochAnswer, StoreError> {
        let _guards = self.lock_all(budget).await?;
        let keeps_leases = self.shared.mutants.has(Mutant::EpochKeepsLeases);
        let mut tables = unpoisoned(&self.shared.tables);
        let from = tables.epoch;
        if to <= from {
            return Ok(EpochAnswer::NotAbove { current: from });
        }
        tables.epoch = to;
        let (now, mut ended_leases) = (self.shared.clock.now(), 0);
        for row in tables.rows.values_mut() {
            ended_leases += u64::from(row.owner.is_some() && !row.is_expired(now));
            row.epoch = to;
            if !keeps_leases {
                row.free();
            }
        }
        Ok(EpochAnswer::Advanced { from, ended_leases })
    }

    async fn prune_ledger(&self, older_than: Duration, budget: Budget) -> Result<u64, StoreError> {
        let _guards = self.lock_all(budget).await?;
        let has = |mutant| self.shared.mutants.has(mutant);
        let horizon = self.shared.clock.now().minus(older_than);
        let mut tables = unpoisoned(&self.shared.tables);
        let Tables { rows, ledger, .. } = &mut *tables;
        let pruned = ledger.prune(|ended| {
            let is_old = ended.written_at < horizon || has(Mutant::PruneIgnoresAge);
            let current = rows.get(&ended.report).map_or(Generation::new(0), |row| row.generation);
            is_old && (ended.generation < current || has(Mutant::PruneTakesCurrentGeneration))
        });
        for ended in &pruned {
            if let Some(row) = rows.get_mut(&ended.report).filter(|_| !has(Mutant::PruneForgetsHowFar)) {
                row.pruned_up_to = row.pruned_up_to.max(ended.generation);
            }
        }
        Ok(pruned.len() as u64)
    }

    async fn begin(&self, budget: Budget) -> Result<MemoryTransaction, StoreError> {
        not_spent(budget)?;
        Ok(MemoryTransaction::new(self.clone()))
    }
}

fn not_spent(budget: Budget) -> Result<(), StoreError> {
    if budget.is_spent() {
        return Err(StoreError::unavailable("the call's budget was spent before it began"));
    }
    Ok(())
}

fn valid_ttl(ttl: Duration) -> Result<(), StoreError> {
    let range = MIN_TTL..=MAX_TTL;
    if range.contains(&ttl) { Ok(()) } else { Err(out_of_range("TTL", ttl, &range)) }
}

fn out_of_range(what: &str, found: Duration, range: &RangeInclusive<Duration>) -> StoreError {
    StoreError::invalid(format!("the {what} is {found:?}; it must be from {:?} to {:?}", range.start(), range.end()))
}
