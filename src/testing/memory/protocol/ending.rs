//! `close` and `release`.

use super::{Locked, holds};
use crate::answer::{CloseAnswer, Ending, Forgotten, ReleaseAnswer};
use crate::fence::{Fence, Generation, Owner};
use crate::store::CloseRequest;
use crate::testing::memory::mutant::Mutant;
use crate::testing::memory::rows::LedgerRow;

impl Locked<'_> {
    pub(in crate::testing::memory) fn close(&mut self, request: CloseRequest) -> CloseAnswer {
        self.record_expiry(&[Mutant::ExpiryNotRecordedByClose]);
        if self.row().is_none() && self.is(Mutant::CloseMissingBeforeLedger) {
            return CloseAnswer::NoLongerKnown(Forgotten::Missing);
        }
        if let Some(ending) = self.ending_of(request.owner) {
            return CloseAnswer::Ended(ending);
        }
        if let Some(why) = self.why_not_closed(request) {
            return CloseAnswer::NoLongerKnown(why);
        }
        if !self.is(Mutant::CloseOnlyReads) {
            self.write_closed(request);
        }
        CloseAnswer::Ended(Ending::Closed)
    }

    fn why_not_closed(&mut self, CloseRequest { learned, .. }: CloseRequest) -> Option<Forgotten> {
        let Some((generation, epoch)) = learned else {
            return self.row().is_none().then_some(Forgotten::Missing);
        };
        let epoch = Some(epoch).filter(|_| !self.is(Mutant::CloseWithoutEpoch));
        let why = self.forgotten(generation, epoch)?;
        let writes_anyway = self.is(Mutant::ClosePrunedWritesClosed) && matches!(why, Forgotten::Pruned { .. });
        Some(why).filter(|_| !writes_anyway)
    }

    fn write_closed(&mut self, CloseRequest { owner, learned, .. }: CloseRequest) {
        let forgets_lease = self.is(Mutant::CloseForgetsLease);
        let row = self.row().expect("a row that was found");
        let generation = learned.map_or(row.generation, |(generation, _)| generation);
        if row.owner == Some(owner) && !forgets_lease {
            row.free();
        }
        self.write_ending(owner, generation);
    }

    pub(super) fn write_ending(&mut self, owner: Owner, generation: Generation) {
        let (report, written_at) = (self.report, self.now);
        let ended = LedgerRow { report, generation, written_at, ending: Ending::Closed };
        self.tables.ledger.write(owner, ended);
    }

    pub(in crate::testing::memory) fn release(&mut self, fence: Fence) -> ReleaseAnswer {
        self.record_expiry(&[Mutant::ExpiryNotRecordedByRelease]);
        let compared = self.compared(
            fence,
            [Mutant::ReleaseWithoutGeneration, Mutant::ReleaseWithoutOwner, Mutant::ReleaseWithoutEpoch],
        );
        let (now, ignores_fence) = (self.now, self.is(Mutant::ReleaseIgnoresFence));
        let resets = self.is(Mutant::ReleaseResetsGeneration);
        let keeps_expiry = self.is(Mutant::ReleaseKeepsExpiry);
        let exact = |row: &&mut super::Row| holds(compared, row) && !row.is_expired(now);
        let Some(row) = self.row().filter(|row| ignores_fence || exact(row)) else {
            return ReleaseAnswer::AlreadyOver;
        };
        let kept = row.expires_at.filter(|_| keeps_expiry);
        row.free();
        row.expires_at = kept;
        if resets {
            row.generation = Generation::new(0);
        }
        if !self.is(Mutant::ReleaseWithoutLedger) {
            self.write_ending(fence.owner, fence.generation);
        }
        ReleaseAnswer::Released
    }
}
