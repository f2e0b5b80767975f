//! The protocol on one locked row: what each operation answers, in the order of the contract.
//!
//! Each `is(Mutant::…)` is a mistake that the conformance suite must notice; a store without mutants makes none of them.

mod acquire;
mod ending;
mod operators;
mod publish;
mod renew;

use std::time::Duration;

use super::clock::{MemoryClock, Time};
use super::mutant::{Mutant, Mutants};
use super::rows::{Ledger, Row, Tables};
use crate::answer::Ending;
use crate::fence::{Fence, OperationId, Owner, ReportId};

/// One report, whose row lock is held, at the time read after that.
pub(super) struct Locked<'a> {
    pub(super) report: ReportId,
    pub(super) now: Time,
    pub(super) tables: &'a mut Tables,
    pub(super) clock: &'a MemoryClock,
    pub(super) mutants: &'a Mutants,
    /// The ledger as it was before the lock, which only a mutant looks at.
    pub(super) ledger_before_lock: Option<Ledger>,
}

impl Locked<'_> {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutants.has(mutant)
    }

    fn row(&mut self) -> Option<&mut Row> {
        self.tables.rows.get_mut(&self.report)
    }

    /// Rule 3: an expiry that was seen ends the lease in the row, whatever the answer is.
    fn record_expiry(&mut self, unless: &[Mutant]) {
        if unless.iter().any(|mutant| self.is(*mutant)) {
            return;
        }
        let (now, forgets_delay) = (self.now, self.is(Mutant::RecordingForgetsTakeoverDelay));
        if let Some(row) = self.row().filter(|row| row.owner.is_some() && row.is_expired(now)) {
            row.owner = None;
            if forgets_delay {
                row.expires_at = None;
            }
        }
    }

    /// How an owner ended.
    fn ending_of(&self, owner: Owner) -> Option<Ending> {
        self.ledger().of(owner)
    }

    /// Who published this operation, if it is another than this owner.
    fn reused(&self, operation: OperationId) -> Option<crate::answer::Receipt> {
        self.ledger().publication(operation)
    }

    fn ledger(&self) -> &Ledger {
        self.ledger_before_lock.as_ref().unwrap_or(&self.tables.ledger)
    }

    /// The fence as it is compared with the row: without the clauses that a mutant leaves out.
    fn compared(&self, fence: Fence, [generation, owner, epoch]: [Mutant; 3]) -> Fence {
        let Some(row) = self.tables.rows.get(&self.report) else { return fence };
        Fence {
            generation: if self.is(generation) { row.generation } else { fence.generation },
            owner: if self.is(owner) { row.owner.unwrap_or(fence.owner) } else { fence.owner },
            epoch: if self.is(epoch) { row.epoch } else { fence.epoch },
            ..fence
        }
    }

    /// What remains until a time, as it is answered.
    fn remaining(&self, until: Time) -> Duration {
        let up = if self.is(Mutant::RemainingRoundedUp) { Duration::from_millis(1) } else { Duration::ZERO };
        until.remaining_after(self.now) + up
    }
}

/// Whether exactly this fence holds the row, expired or not.
fn holds(fence: Fence, row: &Row) -> bool {
    row.generation == fence.generation && row.owner == Some(fence.owner) && row.epoch == fence.epoch
}
