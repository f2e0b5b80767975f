//! `publish` and `publish_and_advance`.

use std::time::Duration;

use super::Locked;
use crate::answer::{Ending, Forgotten, NextLease, PublishAnswer, Published, Receipt, Refusal};
use crate::fence::{Fence, Generation, Owner, SourceRevision};
use crate::store::PublishRequest;
use crate::testing::memory::mutant::Mutant;
use crate::testing::memory::rows::LedgerRow;

/// Who goes on after the publication, and for how long.
pub(in crate::testing::memory) type Next = Option<(Owner, Duration)>;

impl Locked<'_> {
    pub(in crate::testing::memory) fn publish(&mut self, request: &PublishRequest, next: Next) -> PublishAnswer {
        self.record_expiry(&[Mutant::ExpiryNotRecordedByPublish, Mutant::PublishWithoutExpiry]);
        if self.row().is_none() && self.is(Mutant::PublishMissingBeforeLedger) {
            return PublishAnswer::NoLongerKnown(Forgotten::Missing);
        }
        if let Some(answer) = self.known(request, next).filter(|_| !self.is(Mutant::PublishWithoutLedger)) {
            return answer;
        }
        let fence = self.compared(
            request.fence,
            [Mutant::PublishWithoutGeneration, Mutant::PublishWithoutOwner, Mutant::PublishWithoutEpoch],
        );
        if let Some(why) = self.forgotten(fence.generation, Some(fence.epoch)) {
            return match why {
                Forgotten::Pruned { up_to } if self.is(Mutant::PrunedAnsweredAsRefused) => {
                    PublishAnswer::Refused(Refusal::Superseded { by: up_to })
                }
                why => PublishAnswer::NoLongerKnown(why),
            };
        }
        if let Some(refusal) = self.why_not_published(fence, request.revision) {
            if matches!(refusal, Refusal::StaleSource { .. }) && self.is(Mutant::StaleSourceEndsLease) {
                self.row().expect("a row that was found").free();
            }
            return PublishAnswer::Refused(refusal);
        }
        let (epoch, clause) = (fence.epoch, !self.is(Mutant::PublishWithoutPublishedGeneration));
        let row = self.row().expect("a row that was found");
        if clause && row.published_generation >= fence.generation {
            // Only a history that was replaced without raising the epoch has published a generation before it was acquired.
            return PublishAnswer::NoLongerKnown(Forgotten::HistoryReplaced { epoch });
        }
        PublishAnswer::Published(self.accept(request, next))
    }

    /// The answer that the ledger has.
    fn known(&mut self, PublishRequest { fence, operation, .. }: &PublishRequest, next: Next) -> Option<PublishAnswer> {
        match (self.ending_of(fence.owner), self.reused(*operation)) {
            (Some(Ending::Published(receipt)), _) if receipt.operation == *operation => {
                let next = next.and_then(|next| self.still_held(next));
                Some(PublishAnswer::AlreadyPublished(Published { receipt, next }))
            }
            (Some(Ending::Published(Receipt { operation, .. })), _) => {
                Some(PublishAnswer::Refused(Refusal::GenerationPublished { operation }))
            }
            (Some(Ending::Closed), _) => Some(PublishAnswer::Refused(Refusal::Closed)),
            (None, Some(Receipt { generation, .. })) => {
                Some(PublishAnswer::Refused(Refusal::OperationReused { generation }))
            }
            (None, None) => None,
        }
    }

    /// What remains of the next owner's lease, if it holds the row.
    fn still_held(&mut self, (owner, ttl): (Owner, Duration)) -> Option<NextLease> {
        let (now, report, renews) = (self.now, self.report, self.is(Mutant::ResentAdvanceRenews));
        let row = self.row().filter(|row| row.owner == Some(owner) && !row.is_expired(now))?;
        if renews {
            row.expires_at = Some(now.plus(ttl));
        }
        let fence = Fence { report, owner, generation: row.generation, epoch: row.epoch };
        let expiry = row.expires_at?;
        Some(NextLease { fence, remaining: self.remaining(expiry) })
    }

    /// Why the evidence of a generation may be gone.
    pub(super) fn forgotten(
        &mut self,
        generation: Generation,
        epoch: Option<crate::fence::Epoch>,
    ) -> Option<Forgotten> {
        let epoch_first = self.is(Mutant::EpochBeforePruned);
        let Some(row) = self.row() else { return Some(Forgotten::Missing) };
        if epoch_first && epoch.is_some_and(|epoch| row.epoch != epoch) {
            return Some(Forgotten::HistoryReplaced { epoch: row.epoch });
        }
        if row.pruned_up_to >= generation {
            return Some(Forgotten::Pruned { up_to: row.pruned_up_to });
        }
        let replaced = epoch.is_some_and(|epoch| row.epoch != epoch) || row.generation < generation;
        replaced.then_some(Forgotten::HistoryReplaced { epoch: row.epoch })
    }

    fn why_not_published(&mut self, fence: Fence, revision: Option<SourceRevision>) -> Option<Refusal> {
        let (now, expiry_matters) = (self.now, !self.is(Mutant::PublishWithoutExpiry));
        let accepts_missing = self.is(Mutant::PublishAcceptsMissingRevision) && revision.is_none();
        let revision_matters = !self.is(Mutant::PublishWithoutRevision) && !accepts_missing;
        let superseded_first = self.is(Mutant::PublishSupersededBeforeForced);
        let row = self.row().expect("a row that was found");
        if !superseded_first && row.forced_out() == Some(fence.generation) && row.generation > fence.generation {
            return Some(Refusal::Forced);
        }
        if row.generation > fence.generation || row.owner.is_some_and(|owner| owner != fence.owner) {
            return Some(Refusal::Superseded { by: row.generation });
        }
        if row.owner.is_none() && row.expires_at.is_none() {
            return Some(Refusal::Released);
        }
        if row.owner.is_none() || (expiry_matters && row.is_expired(now)) {
            return Some(Refusal::Expired);
        }
        let required = row.required_revision().filter(|_| revision_matters)?;
        (revision < Some(required)).then_some(Refusal::StaleSource { required })
    }

    fn accept(
        &mut self,
        PublishRequest { fence, operation, payload, revision }: &PublishRequest,
        next: Next,
    ) -> Published {
        let (now, report) = (self.now, self.report);
        let published_at = self.clock.for_people(now);
        let row = self.row().expect("a row that was found");
        row.payload = Some(payload.clone());
        row.published_generation = fence.generation;
        row.published_at = now;
        row.revision = *revision;
        let receipt = Receipt {
            report,
            operation: *operation,
            generation: fence.generation,
            epoch: row.epoch,
            revision: *revision,
            published_at,
        };
        let ending = Ending::Published(receipt);
        let ended = LedgerRow { report, generation: fence.generation, written_at: now, ending };
        self.tables.ledger.write(fence.owner, ended);
        let next = next.and_then(|next| self.go_on(*fence, next));
        if next.is_none() && !self.is(Mutant::LeaseKeptAfterPublish) {
            self.row().expect("a row that was found").free();
        }
        Published { receipt, next }
    }

    /// Gives the lease to the next owner, unless that one was closed meanwhile or there is no next generation.
    fn go_on(&mut self, fence: Fence, (owner, ttl): (Owner, Duration)) -> Option<NextLease> {
        let now = self.now;
        if self.tables.ledger.of(owner).is_some() && !self.is(Mutant::AdvanceOntoClosedOwner) {
            return None;
        }
        let owner = if self.is(Mutant::AdvanceKeepsOwner) { fence.owner } else { owner };
        let keeps_generation = self.is(Mutant::AdvanceKeepsGeneration);
        let row = self.row().expect("a row that was found");
        let generation = if keeps_generation { row.generation } else { row.generation.next()? };
        row.generation = generation;
        row.owner = Some(owner);
        row.expires_at = Some(now.plus(ttl));
        let fence = Fence { owner, generation, epoch: row.epoch, ..fence };
        Some(NextLease { fence, remaining: self.remaining(now.plus(ttl)) })
    }
}
