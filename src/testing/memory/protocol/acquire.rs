//! `acquire`.

use super::Locked;
use crate::answer::{AcquireAnswer, Acquired};
use crate::error::StoreError;
use crate::fence::Fence;
use crate::store::AcquireRequest;
use crate::testing::memory::mutant::Mutant;
use crate::testing::memory::rows::Row;

impl Locked<'_> {
    pub(in crate::testing::memory) fn acquire(&mut self, request: AcquireRequest) -> Result<AcquireAnswer, StoreError> {
        self.record_expiry(&[Mutant::ExpiryNotRecordedByAcquire]);
        let (now, clock) = (self.now, self.clock);
        let ending = self.ending_of(request.owner).filter(|_| !self.is(Mutant::AcquireIgnoresLedger));
        let takers_delay = self.is(Mutant::AcquireUsesTakersDelay);
        let (busy_first, delay_counts) = (self.is(Mutant::AcquireBusyBeforeFresh), !self.is(Mutant::BusyWithoutDelay));
        let floor_counts = !self.is(Mutant::AcquireFreshIgnoresFloor);
        let Some(row) = self.row() else { return Ok(AcquireAnswer::Missing) };

        if row.epoch < request.min_epoch {
            return Ok(AcquireAnswer::StaleHistory { epoch: row.epoch });
        }
        if let Some(ending) = ending {
            return Ok(AcquireAnswer::Ended(ending));
        }
        if row.owner == Some(request.owner) && !row.is_expired(now) {
            return Ok(self.repeated(request));
        }
        if busy_first && row.is_kept(now) {
            return Ok(AcquireAnswer::Busy(row.busy(now, clock)));
        }
        if let Some(visible) = row.visible(clock).filter(|visible| {
            request
                .wanted
                .is_some_and(|wanted| visible.revision >= row.floor.filter(|_| floor_counts).max(Some(wanted)))
        }) {
            return Ok(AcquireAnswer::AlreadyFresh(visible));
        }
        if takers_delay {
            row.takeover_delay = request.takeover_delay;
        }
        if row.is_kept(now) {
            let mut busy = row.busy(now, clock);
            if !delay_counts {
                busy.remaining = busy.remaining.saturating_sub(row.takeover_delay);
            }
            return Ok(AcquireAnswer::Busy(busy));
        }
        self.take(request).map(AcquireAnswer::Acquired)
    }

    /// The same owner asks again: its answer was lost.
    fn repeated(&mut self, request: AcquireRequest) -> AcquireAnswer {
        let (now, renews) = (self.now, self.is(Mutant::RepeatedAcquireRenews));
        let row = self.row().expect("a row that was found");
        if renews {
            row.expires_at = Some(now.plus(request.ttl));
        }
        AcquireAnswer::Acquired(self.lease(request))
    }

    fn take(&mut self, request: AcquireRequest) -> Result<Acquired, StoreError> {
        let (now, keeps_generation) = (self.now, self.is(Mutant::AcquireWithoutIncrement));
        let clears_payload = self.is(Mutant::AcquireClearsPayload);
        let row = self.row().expect("a row that was found");
        let next = raised(row)?;
        if !keeps_generation {
            row.generation = next;
        }
        if clears_payload {
            row.payload = None;
        }
        row.owner = Some(request.owner);
        row.expires_at = Some(now.plus(request.ttl));
        row.holder = Some(request.holder.clone());
        row.acquired_at = now;
        row.takeover_delay = request.takeover_delay;
        Ok(self.lease(request))
    }

    /// The lease that this owner holds now.
    fn lease(&mut self, AcquireRequest { report, owner, .. }: AcquireRequest) -> Acquired {
        let (now, clock) = (self.now, self.clock);
        let row = self.row().expect("a row that was found");
        let fence = Fence { report, owner, generation: row.generation, epoch: row.epoch };
        let (expiry, visible) = (row.expires_at.unwrap_or(now), row.visible(clock));
        Acquired { fence, remaining: self.remaining(expiry), visible }
    }
}

/// The generation after the row's.
pub(super) fn raised(row: &Row) -> Result<crate::fence::Generation, StoreError> {
    row.generation.next().ok_or_else(|| {
        StoreError::rejected(
            "the report's generation is at the end of its 64-bit range: provision a report under another id",
        )
    })
}
