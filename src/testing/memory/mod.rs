//! A store in the memory of one process.

mod clock;
#[cfg(feature = "conformance")]
mod harness;
mod lock;
mod mutant;
mod operations;
mod protocol;
mod rows;
mod transaction;

use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use clock::MemoryClock;
#[cfg(feature = "conformance")]
pub use harness::{MemoryBlocker, MemoryDatabase, MemoryHarness};
pub use mutant::Mutant;
pub use transaction::MemoryTransaction;

use crate::answer::{BatchRenewal, RenewAnswer};
use crate::error::StoreError;
use crate::fence::{Epoch, Fence, ReportId};
use crate::store::Budget;
use clock::Time;
use lock::{RowGuard, RowLocks, unpoisoned};
use mutant::Mutants;
use protocol::Locked;
use rows::{Ledger, Tables};

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
const FIRST_EPOCH: Epoch = Epoch::new(0);

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

    /// A mutant: what a driver does whose timed-out statement goes on in the server.
    async fn renew_now_or_later(&self, fence: Fence, ttl: Duration, budget: Budget) -> Result<RenewAnswer, StoreError> {
        not_spent(budget)?;
        let store = self.clone();
        let mut renewal = Box::pin(async move {
            store.locked(fence.report, without_end(), Early::default(), |row| row.renew(fence, ttl)).await
        });
        match tokio::time::timeout(budget.remaining(), &mut renewal).await {
            Ok(answer) => answer,
            Err(_) => {
                tokio::spawn(renewal);
                Err(StoreError::unavailable("the row's lock was not had within the budget"))
            }
        }
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

/// The budget of a mutant that minds none.
fn without_end() -> Budget {
    Budget::within(Duration::from_secs(3_600))
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

fn not_spent(budget: Budget) -> Result<(), StoreError> {
    if budget.is_spent() {
        return Err(StoreError::unavailable("the call's budget was spent before it began"));
    }
    Ok(())
}
