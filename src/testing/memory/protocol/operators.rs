//! What operators ask of one row.

use super::Locked;
use super::acquire::raised;
use crate::answer::{ForceAnswer, RevisionAnswer};
use crate::error::StoreError;
use crate::fence::{Holder, SourceRevision};
use crate::testing::memory::mutant::Mutant;
use crate::testing::memory::rows::ForcedOut;

impl Locked<'_> {
    pub(in crate::testing::memory) fn force_release(&mut self, by: Holder) -> Result<ForceAnswer, StoreError> {
        self.record_expiry(&[Mutant::ExpiryNotRecordedByOperators]);
        let (now, clock) = (self.now, self.clock);
        let (raises, records) = (!self.is(Mutant::ForceWithoutRaising), !self.is(Mutant::ForceNotRecorded));
        let keeps_delay = self.is(Mutant::ForceKeepsTakeoverDelay);
        let Some(row) = self.row() else { return Ok(ForceAnswer::Missing) };
        let generation = raised(row)?;
        let was = row.owner.is_some().then(|| row.busy(now, clock));
        let (forced_out, owner) = (row.generation, row.owner);
        if records {
            row.forced = Some(ForcedOut { generation: forced_out, by, at: now });
        }
        let delayed = row.expires_at.filter(|_| keeps_delay).map(|_| now);
        row.free();
        row.expires_at = delayed;
        if raises {
            row.generation = generation;
        }
        let generation = row.generation;
        if let Some(owner) = owner.filter(|_| self.is(Mutant::ForceClosesOwner)) {
            self.write_ending(owner, forced_out);
        }
        Ok(ForceAnswer::Forced { generation, was })
    }

    pub(in crate::testing::memory) fn require_revision(&mut self, revision: SourceRevision) -> RevisionAnswer {
        self.record_expiry(&[Mutant::ExpiryNotRecordedByOperators]);
        let lowers = self.is(Mutant::RequirementLowersFloor);
        let Some(row) = self.row() else { return RevisionAnswer::Missing };
        row.floor = if lowers { Some(revision) } else { row.floor.max(Some(revision)) };
        RevisionAnswer::Floor(row.floor)
    }

    pub(in crate::testing::memory) fn reset_revision(
        &mut self,
        revision: Option<SourceRevision>,
    ) -> Result<RevisionAnswer, StoreError> {
        let raises = !self.is(Mutant::ResetWithoutRaising);
        let keeps_visible = self.is(Mutant::ResetKeepsVisibleRevision);
        let Some(row) = self.row() else { return Ok(RevisionAnswer::Missing) };
        let generation = raised(row)?;
        row.floor = revision;
        if !keeps_visible {
            row.revision = None;
        }
        row.free();
        if raises {
            row.generation = generation;
        }
        Ok(RevisionAnswer::Floor(revision))
    }
}
