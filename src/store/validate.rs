//! What no store accepts: the same limits, said in the same words, whatever the database.
//!
//! They are checked before anything is sent, so an [`Invalid`](super::StoreErrorKind::Invalid) request costs no round trip.

use std::time::Duration;

use super::{AcquireRequest, AdvanceRequest, ListRequest, MAX_BATCH, MAX_TAKEOVER_DELAY, MAX_TTL, MIN_TTL, StoreError};
use crate::fence::Fence;

impl AcquireRequest {
    /// Whether TTL and takeover delay are in range.
    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        ttl(self.ttl)?;
        if self.takeover_delay > MAX_TAKEOVER_DELAY {
            return Err(StoreError::invalid(format!(
                "a takeover delay of {:?} is over the limit of {MAX_TAKEOVER_DELAY:?}: choose a shorter one",
                self.takeover_delay
            )));
        }
        Ok(())
    }
}

impl AdvanceRequest {
    /// Whether the TTL is in range and the next owner is another one.
    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        ttl(self.ttl)?;
        if self.next_owner == self.publish.fence.owner {
            return Err(StoreError::invalid(
                "the next owner of an advance is the publishing one: an owner names one acquisition, so mint a fresh one",
            ));
        }
        Ok(())
    }
}

impl ListRequest {
    /// Whether the page is not too long.
    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        if self.limit > MAX_BATCH {
            return Err(StoreError::invalid(format!(
                "a page of {} reports is over the limit of {MAX_BATCH}: ask for less and go on after the last one",
                self.limit
            )));
        }
        Ok(())
    }
}

/// Whether a TTL is in range.
pub(crate) fn ttl(ttl: Duration) -> Result<(), StoreError> {
    if (MIN_TTL..=MAX_TTL).contains(&ttl) {
        return Ok(());
    }
    Err(StoreError::invalid(format!("a TTL of {ttl:?} is out of range: choose one from {MIN_TTL:?} to {MAX_TTL:?}")))
}

/// Whether a batch of renewals is not too long, and its TTL in range.
pub(crate) fn batch(fences: &[Fence], ttl: Duration) -> Result<(), StoreError> {
    self::ttl(ttl)?;
    if fences.len() > MAX_BATCH {
        return Err(StoreError::invalid(format!(
            "a batch of {} renewals is over the limit of {MAX_BATCH}: send it in parts",
            fences.len()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_accepted_from_the_shortest_to_the_longest_and_not_beyond() {
        let tick = Duration::from_nanos(1);
        assert!(ttl(MIN_TTL).is_ok() && ttl(MAX_TTL).is_ok());
        for bad in [Duration::ZERO, MIN_TTL - tick, MAX_TTL + tick, Duration::MAX] {
            assert_eq!(ttl(bad).unwrap_err().kind(), crate::StoreErrorKind::Invalid, "{bad:?}");
        }
    }
}
