//! `renew`, which is also each part of `renew_many`.

use std::time::Duration;

use super::{Locked, holds};
use crate::answer::{Ending, Refusal, RenewAnswer};
use crate::fence::Fence;
use crate::testing::memory::mutant::Mutant;

impl Locked<'_> {
    pub(in crate::testing::memory) fn renew(&mut self, fence: Fence, ttl: Duration) -> RenewAnswer {
        self.record_expiry(&[Mutant::ExpiryNotRecordedByRenew, Mutant::RenewWithoutExpiry]);
        let compared = self
            .compared(fence, [Mutant::RenewWithoutGeneration, Mutant::RenewWithoutOwner, Mutant::RenewWithoutEpoch]);
        let (now, expiry_matters) = (self.now, !self.is(Mutant::RenewWithoutExpiry));
        let shortens = self.is(Mutant::RenewalShortens);
        let Some(row) = self.row() else { return RenewAnswer::Refused(Refusal::Missing) };

        if holds(compared, row) && !(expiry_matters && row.is_expired(now)) {
            let later = Some(now.plus(ttl));
            row.expires_at = if shortens { later } else { row.expires_at.max(later) };
            let expiry = row.expires_at.unwrap_or(now);
            return RenewAnswer::Renewed { remaining: self.remaining(expiry) };
        }
        match self.ending_of(fence.owner) {
            Some(Ending::Published(receipt)) => RenewAnswer::Published(receipt),
            ending => RenewAnswer::Refused(self.why_not_renewed(compared, ending.is_some())),
        }
    }

    fn why_not_renewed(&mut self, fence: Fence, closed: bool) -> Refusal {
        let row = self.row().expect("a row that was found");
        let forced = row.forced_out() == Some(fence.generation) && Some(row.generation) == fence.generation.next();
        let same_acquisition = row.generation == fence.generation && row.epoch == fence.epoch;
        if row.generation > fence.generation && !forced {
            Refusal::Superseded { by: row.generation }
        } else if closed || (same_acquisition && row.owner.is_none() && row.expires_at.is_none()) {
            Refusal::Released
        } else if forced {
            Refusal::Forced
        } else if row.epoch != fence.epoch || row.generation < fence.generation {
            Refusal::StaleEpoch { epoch: row.epoch }
        } else {
            Refusal::Expired
        }
    }
}
