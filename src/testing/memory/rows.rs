//! The tables of a memory store.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::clock::{MemoryClock, Time};
use crate::answer::{Busy, Ending, Forced, LeaseView, Metadata, Receipt, ReportStatus, Version, Visible};
use crate::fence::{Epoch, Generation, Holder, OperationId, Owner, ReportId, SourceRevision};
use crate::store::Payload;

/// Everything that the store keeps.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    pub(super) epoch: Epoch,
    pub(super) rows: BTreeMap<ReportId, Row>,
    pub(super) ledger: Ledger,
}

/// One report.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) generation: Generation,
    pub(super) owner: Option<Owner>,
    pub(super) expires_at: Option<Time>,
    /// The latest acquisition's, also after it ended.
    pub(super) holder: Option<Holder>,
    pub(super) acquired_at: Time,
    pub(super) takeover_delay: Duration,
    pub(super) epoch: Epoch,
    pub(super) published_generation: Generation,
    pub(super) published_at: Time,
    pub(super) payload: Option<Payload>,
    pub(super) revision: Option<SourceRevision>,
    pub(super) floor: Option<SourceRevision>,
    pub(super) pruned_up_to: Generation,
    pub(super) forced: Option<ForcedOut>,
}

#[derive(Debug, Clone)]
pub(super) struct ForcedOut {
    pub(super) generation: Generation,
    pub(super) by: Holder,
    pub(super) at: Time,
}

impl Row {
    pub(super) fn new(epoch: Epoch, now: Time) -> Self {
        Self {
            generation: Generation::new(0),
            owner: None,
            expires_at: None,
            holder: None,
            acquired_at: now,
            takeover_delay: Duration::ZERO,
            epoch,
            published_generation: Generation::new(0),
            published_at: now,
            payload: None,
            revision: None,
            floor: None,
            pruned_up_to: Generation::new(0),
            forced: None,
        }
    }

    /// Whether the expiry, if there is one, has passed.
    pub(super) fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|expiry| expiry <= now)
    }

    /// From when on somebody else may take it; `None` if it is free.
    pub(super) fn kept_until(&self) -> Option<Time> {
        Some(self.expires_at?.plus(self.takeover_delay))
    }

    pub(super) fn is_kept(&self, now: Time) -> bool {
        self.kept_until().is_some_and(|until| until > now)
    }

    /// Ends the lease so that the row is free at once.
    pub(super) fn free(&mut self) {
        self.owner = None;
        self.expires_at = None;
    }

    /// The least revision that a publication must have.
    pub(super) fn required_revision(&self) -> Option<SourceRevision> {
        self.floor.max(self.revision)
    }

    pub(super) fn forced_out(&self) -> Option<Generation> {
        self.forced.as_ref().map(|forced| forced.generation)
    }

    pub(super) fn busy(&self, now: Time, clock: &MemoryClock) -> Busy {
        Busy {
            holder: self.label(),
            since: clock.for_people(self.acquired_at),
            remaining: self.kept_until().map_or(Duration::ZERO, |until| until.remaining_after(now)),
        }
    }

    /// The visible version's epoch is the row's, so that a copy cached in a lost history is never current.
    pub(super) fn visible(&self, clock: &MemoryClock) -> Option<Visible> {
        self.payload.as_ref().map(|_| Visible {
            version: Version { epoch: self.epoch, generation: self.published_generation },
            revision: self.revision,
            published_at: clock.for_people(self.published_at),
        })
    }

    pub(super) fn metadata(&self, clock: &MemoryClock) -> Metadata {
        Metadata {
            generation: self.generation,
            epoch: self.epoch,
            visible: self.visible(clock),
            revision_floor: self.floor,
            pruned_up_to: self.pruned_up_to,
        }
    }

    pub(super) fn status(&self, report: ReportId, now: Time, clock: &MemoryClock) -> ReportStatus {
        let lease = self.is_kept(now).then(|| LeaseView {
            owner: self.owner,
            holder: self.label(),
            since: clock.for_people(self.acquired_at),
            remaining: match (self.owner, self.expires_at) {
                (Some(_), Some(expiry)) => expiry.remaining_after(now),
                _ => Duration::ZERO,
            },
            takeover_delay: self.takeover_delay,
        });
        let forced = self.forced.as_ref().map(|forced| Forced {
            generation: forced.generation,
            by: forced.by.clone(),
            at: clock.for_people(forced.at),
        });
        ReportStatus { report, metadata: self.metadata(clock), lease, forced }
    }

    /// Only a row that was never acquired has none, and such a row is never busy.
    fn label(&self) -> Holder {
        self.holder.clone().unwrap_or_else(Holder::of_this_process)
    }
}

/// One row for every ended acquisition.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    endings: HashMap<Owner, LedgerRow>,
    operations: HashMap<OperationId, Owner>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LedgerRow {
    pub(super) report: ReportId,
    pub(super) generation: Generation,
    pub(super) written_at: Time,
    pub(super) ending: Ending,
}

impl Ledger {
    pub(super) fn of(&self, owner: Owner) -> Option<Ending> {
        self.endings.get(&owner).map(|row| row.ending)
    }

    /// The publication that used this operation id.
    pub(super) fn publication(&self, operation: OperationId) -> Option<Receipt> {
        match self.of(*self.operations.get(&operation)?)? {
            Ending::Published(receipt) => Some(receipt),
            Ending::Closed => None,
        }
    }

    pub(super) fn write(&mut self, owner: Owner, row: LedgerRow) {
        if let Ending::Published(receipt) = row.ending {
            self.operations.insert(receipt.operation, owner);
        }
        self.endings.insert(owner, row);
    }

    /// Deletes rows that this says may go; what was deleted.
    pub(super) fn prune(&mut self, mut may_go: impl FnMut(&LedgerRow) -> bool) -> Vec<LedgerRow> {
        let pruned: Vec<LedgerRow> = self.endings.extract_if(|_, row| may_go(row)).map(|(_, row)| row).collect();
        self.operations.retain(|_, owner| self.endings.contains_key(owner));
        pruned
    }

    #[cfg(feature = "conformance")]
    pub(super) fn age(&mut self, by: Duration) {
        for row in self.endings.values_mut() {
            row.written_at = row.written_at.minus(by);
        }
    }
}
