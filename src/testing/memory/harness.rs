//! How the conformance suite sets and sees the rows of a memory store; also an example of a harness.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lock::{RowGuard, RowLock, unpoisoned};
use super::rows::Row;
use super::{MemoryStore, MemoryTransaction, Mutant};
use crate::conformance::{Blocker, BlockerEnd, Database, Harness, RawRow};
use crate::fence::{Generation, ReportId};
use crate::store::Budget;

/// Makes a [`MemoryStore`] for every case of the suite.
#[derive(Debug, Clone)]
pub struct MemoryHarness {
    mutants: Vec<Mutant>,
    skips_locked_rows: bool,
}

impl Default for MemoryHarness {
    fn default() -> Self {
        Self { mutants: Vec::new(), skips_locked_rows: true }
    }
}

impl MemoryHarness {
    /// Stores whose `renew_many` waits for locked rows, as on an engine with one lock for the whole database.
    #[must_use]
    pub fn waiting_for_locked_rows(self) -> Self {
        Self { skips_locked_rows: false, ..self }
    }

    /// Stores that make these mistakes.
    #[doc(hidden)]
    #[must_use]
    pub fn mutated(self, mutants: &[Mutant]) -> Self {
        Self { mutants: mutants.to_vec(), ..self }
    }
}

impl Harness for MemoryHarness {
    type Database = MemoryDatabase;

    async fn fresh(&self) -> MemoryDatabase {
        let store = MemoryStore::of_kind(&self.mutants, self.skips_locked_rows);
        MemoryDatabase { store, notes: Arc::default() }
    }
}

/// The database of one case.
#[derive(Debug)]
pub struct MemoryDatabase {
    store: MemoryStore,
    notes: Arc<Mutex<Vec<i64>>>,
}

impl MemoryDatabase {
    fn change(&self, report: ReportId, change: impl FnOnce(&mut Row)) {
        change(unpoisoned(&self.store.shared.tables).rows.get_mut(&report).expect("the report's row"));
    }
}

impl Database for MemoryDatabase {
    type Store = MemoryStore;
    type Blocker = MemoryBlocker;

    async fn connect(&self) -> MemoryStore {
        self.store.clone()
    }

    async fn set_expiry(&self, report: ReportId, millis_from_now: i64) {
        let (now, distance) = (self.store.shared.clock.now(), Duration::from_millis(millis_from_now.unsigned_abs()));
        let expiry = if millis_from_now < 0 { now.minus(distance) } else { now.plus(distance) };
        self.change(report, |row| row.expires_at = Some(expiry));
    }

    async fn set_generation(&self, report: ReportId, generation: Generation) {
        self.change(report, |row| row.generation = generation);
    }

    async fn delete_row(&self, report: ReportId) {
        unpoisoned(&self.store.shared.tables).rows.remove(&report);
    }

    async fn age_ledger(&self, by: Duration) {
        unpoisoned(&self.store.shared.tables).ledger.age(by);
    }

    async fn row(&self, report: ReportId) -> Option<RawRow> {
        let now = self.store.shared.clock.now();
        unpoisoned(&self.store.shared.tables).rows.get(&report).map(|row| RawRow {
            generation: row.generation,
            owner: row.owner,
            expires_in_millis: row.expires_at.map(|expiry| expiry.millis_after(now)),
            epoch: row.epoch,
            published_generation: row.published_generation,
            payload: row.payload.as_ref().map(|payload| payload.as_str().to_owned()),
            revision: row.revision,
            revision_floor: row.floor,
            pruned_up_to: row.pruned_up_to,
            forced_generation: row.forced_out(),
        })
    }

    async fn block(&self, report: ReportId, then: BlockerEnd) -> MemoryBlocker {
        let lock = self.store.shared.locks.of(report);
        let guard = lock.lock(Budget::within(Duration::from_secs(10))).await.expect("the row's lock");
        if then == BlockerEnd::CommitUpdate {
            self.change(report, |row| row.holder = crate::fence::Holder::new("somebody else").ok());
        }
        MemoryBlocker { lock, guard }
    }

    fn skips_locked_rows(&self) -> bool {
        self.store.shared.skips_locked_rows
    }

    async fn write_note(&self, transaction: &mut MemoryTransaction, note: i64) {
        let notes = Arc::clone(&self.notes);
        transaction.on_commit(move || unpoisoned(&notes).push(note));
    }

    async fn notes(&self) -> Vec<i64> {
        unpoisoned(&self.notes).clone()
    }
}

/// A held row lock of a memory store. How it lets go makes no difference here: there is no snapshot to re-evaluate.
#[derive(Debug)]
pub struct MemoryBlocker {
    lock: Arc<RowLock>,
    guard: RowGuard,
}

impl Blocker for MemoryBlocker {
    async fn wait_for_waiters(&self, waiters: usize) {
        self.lock.wait_for_waiters(waiters).await;
    }

    async fn release(self) {
        drop(self.guard);
    }
}
