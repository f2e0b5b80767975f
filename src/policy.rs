//! [`LeasePolicy`]: how long leases last, how often they are renewed, and when the client gives one up.

use std::time::Duration;

use crate::fence::{Epoch, Holder};
use crate::store::{MAX_TAKEOVER_DELAY, MAX_TTL};

/// The shortest TTL of a policy: below it a scheduler's ordinary delays would lose leases.
const MIN_POLICY_TTL: Duration = Duration::from_millis(100);

/// What a [`LeaseSupervisor`](crate::LeaseSupervisor) does with its leases. Made and checked by [`builder`](Self::builder).
///
/// ```
/// use std::time::Duration;
/// use leasehold::LeasePolicy;
///
/// let policy = LeasePolicy::builder(Duration::from_secs(30))
///     .cadence(Duration::from_secs(5))
///     .max_hold(Duration::from_secs(3600))
///     .build()?;
/// assert_eq!(policy.margin(), Duration::from_secs(3));
///
/// let refused = LeasePolicy::builder(Duration::from_secs(30)).cadence(Duration::from_secs(29)).build();
/// println!("{}", refused.unwrap_err()); // says which numbers cannot work together, and why
/// # Ok::<(), leasehold::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct LeasePolicy {
    pub(crate) ttl: Duration,
    pub(crate) cadence: Duration,
    pub(crate) margin: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) operation_timeout: Duration,
    pub(crate) cleanup_timeout: Duration,
    pub(crate) takeover_delay: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) stall_after: Option<Duration>,
    pub(crate) max_payload: usize,
    pub(crate) min_epoch: Epoch,
    pub(crate) holder: Holder,
}

impl LeasePolicy {
    /// A policy for leases that last this long unless renewed. All else has a default that goes with it.
    pub fn builder(ttl: Duration) -> LeasePolicyBuilder {
        LeasePolicyBuilder {
            policy: Self {
                ttl,
                cadence: ttl / 3,
                margin: ttl / 10,
                attempt_timeout: ttl / 6,
                operation_timeout: Duration::from_secs(15),
                cleanup_timeout: Duration::from_secs(5),
                takeover_delay: Duration::ZERO,
                max_hold: None,
                stall_after: None,
                max_payload: 64 << 20,
                min_epoch: Epoch::new(0),
                holder: Holder::of_this_process(),
            },
        }
    }

    /// How long a lease lasts unless it is renewed.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How often a lease is renewed, at the longest.
    #[must_use]
    pub fn cadence(&self) -> Duration {
        self.cadence
    }

    /// How long before the lease's end the client counts it lost.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.margin
    }

    /// How long one attempt at a renewal may take.
    #[must_use]
    pub fn attempt_timeout(&self) -> Duration {
        self.attempt_timeout
    }

    /// How long one acquisition, one attempt at a publication or one read may take.
    #[must_use]
    pub fn operation_timeout(&self) -> Duration {
        self.operation_timeout
    }

    /// How long a best-effort release or close in the background may take.
    #[must_use]
    pub fn cleanup_timeout(&self) -> Duration {
        self.cleanup_timeout
    }

    /// For how long after an expiry the database keeps an unreleased lease from others.
    #[must_use]
    pub fn takeover_delay(&self) -> Duration {
        self.takeover_delay
    }

    /// After how long the lease is given up, renewed or not.
    #[must_use]
    pub fn max_hold(&self) -> Option<Duration> {
        self.max_hold
    }

    /// After how long without progress the lease is given up.
    #[must_use]
    pub fn stall_after(&self) -> Option<Duration> {
        self.stall_after
    }

    /// The least recovery epoch that a database may be in.
    #[must_use]
    pub fn min_epoch(&self) -> Epoch {
        self.min_epoch
    }

    /// The largest payload, in bytes.
    #[must_use]
    pub fn max_payload(&self) -> usize {
        self.max_payload
    }

    /// The label for people who find the lease busy.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.holder
    }
}

/// Builds a [`LeasePolicy`]; nothing is checked before [`build`](Self::build).
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing before `build()`"]
pub struct LeasePolicyBuilder {
    policy: LeasePolicy,
}

impl LeasePolicyBuilder {
    /// How often to renew, at the longest: each wait is 90 to 100 % of it, so that many workers do not renew in step.
    /// Default: a third of the TTL.
    pub fn cadence(mut self, cadence: Duration) -> Self {
        self.policy.cadence = cadence;
        self
    }

    /// How long before the lease's end the client counts it lost: room for clocks that run at different speeds and for the
    /// build to stop. Default: a tenth of the TTL.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.policy.margin = margin;
        self
    }

    /// How long one attempt at a renewal may take before the next is made. Default: a sixth of the TTL.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.policy.attempt_timeout = timeout;
        self
    }

    /// How long one acquisition, one attempt at a publication or one read may take, connecting included. Default: 15 s.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.policy.operation_timeout = timeout;
        self
    }

    /// How long a best-effort release or close in the background may take. Default: 5 s.
    pub fn cleanup_timeout(mut self, timeout: Duration) -> Self {
        self.policy.cleanup_timeout = timeout;
        self
    }

    /// For how long after an expiry the database keeps an unreleased lease from others: for builds with side effects that no
    /// fence protects. It makes recovery after a crash that much slower. Default: none.
    pub fn takeover_delay(mut self, delay: Duration) -> Self {
        self.policy.takeover_delay = delay;
        self
    }

    /// After this long the lease is given up, renewed or not: no build may hold a report for ever. Default: no limit.
    pub fn max_hold(mut self, limit: Duration) -> Self {
        self.policy.max_hold = Some(limit);
        self
    }

    /// After this long without [`Lease::progress`](crate::Lease::progress), counted from the acquisition, the lease is given up,
    /// because the build hangs.
    /// Default: no limit, and `progress` need not be called.
    pub fn stall_after(mut self, limit: Duration) -> Self {
        self.policy.stall_after = Some(limit);
        self
    }

    /// The largest payload, in bytes. Default: 64 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.policy.max_payload = bytes;
        self
    }

    /// The least recovery epoch that a database may be in. A supervisor raises it by itself when it sees a higher one.
    /// Default: 0.
    pub fn min_epoch(mut self, epoch: Epoch) -> Self {
        self.policy.min_epoch = epoch;
        self
    }

    /// The label for people who find the lease busy. Default: `host/pid/program`.
    pub fn holder(mut self, holder: Holder) -> Self {
        self.policy.holder = holder;
        self
    }

    /// Checks that the numbers can work together.
    ///
    /// # Errors
    /// [`PolicyError`] with a sentence that says which cannot, and why.
    pub fn build(self) -> Result<LeasePolicy, PolicyError> {
        let policy = self.policy;
        let LeasePolicy { ttl, cadence, margin, attempt_timeout, .. } = policy;
        if !(MIN_POLICY_TTL..=MAX_TTL).contains(&ttl) {
            return Err(PolicyError::Ttl { ttl });
        }
        let at_least_a_millisecond = [
            ("cadence", cadence),
            ("margin", margin),
            ("attempt_timeout", attempt_timeout),
            ("operation_timeout", policy.operation_timeout),
            ("cleanup_timeout", policy.cleanup_timeout),
            ("max_hold", policy.max_hold.unwrap_or(Duration::MAX)),
            ("stall_after", policy.stall_after.unwrap_or(Duration::MAX)),
        ];
        for (name, value) in at_least_a_millisecond {
            if value < Duration::from_millis(1) {
                return Err(PolicyError::TooShort { name, value });
            }
        }
        let needed = cadence.saturating_add(attempt_timeout).saturating_add(margin);
        if needed > ttl {
            return Err(PolicyError::NoRoomForRenewal { ttl, cadence, attempt_timeout, margin, needed });
        }
        if policy.takeover_delay > MAX_TAKEOVER_DELAY {
            return Err(PolicyError::TakeoverDelay { delay: policy.takeover_delay });
        }
        Ok(policy)
    }
}

/// Why a policy cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The TTL is out of range.
    #[error(
        "a TTL of {ttl:?} cannot work: it must be from {MIN_POLICY_TTL:?} (below, ordinary scheduling delays lose leases) to {MAX_TTL:?}"
    )]
    Ttl {
        /// The TTL.
        ttl: Duration,
    },
    /// A duration is zero or nearly so.
    #[error("{name} is {value:?}: it must be at least 1 ms")]
    TooShort {
        /// Which.
        name: &'static str,
        /// Its value.
        value: Duration,
    },
    /// A renewal could not be over before the client counts the lease lost.
    #[error(
        "cadence {cadence:?} + attempt_timeout {attempt_timeout:?} + margin {margin:?} is {needed:?}, more than the TTL of {ttl:?}: \
         the lease would be counted lost before its first renewal could be answered; lower one of the three or raise the TTL"
    )]
    NoRoomForRenewal {
        /// The TTL.
        ttl: Duration,
        /// The cadence.
        cadence: Duration,
        /// The attempt's time-out.
        attempt_timeout: Duration,
        /// The margin.
        margin: Duration,
        /// Their sum.
        needed: Duration,
    },
    /// The takeover delay is out of range.
    #[error(
        "a takeover delay of {delay:?} is over the limit of {MAX_TAKEOVER_DELAY:?}: no crash would be recovered from sooner"
    )]
    TakeoverDelay {
        /// The delay.
        delay: Duration,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_defaults_work_for_every_ttl_in_range() {
        for ttl in [MIN_POLICY_TTL, SECOND, 30 * SECOND, MAX_TTL] {
            LeasePolicy::builder(ttl).build().unwrap_or_else(|error| panic!("{ttl:?}: {error}"));
        }
    }

    #[test]
    fn an_absurd_ttl_is_refused_with_the_range() {
        for ttl in [Duration::ZERO, Duration::from_millis(99), MAX_TTL + SECOND, Duration::MAX] {
            let error = LeasePolicy::builder(ttl).build().unwrap_err();
            assert_eq!(error, PolicyError::Ttl { ttl });
            assert!(error.to_string().contains("100ms"), "{error}");
        }
    }

    #[test]
    fn numbers_that_leave_no_room_for_a_renewal_are_refused_with_the_sum() {
        let error = LeasePolicy::builder(10 * SECOND).cadence(8 * SECOND).build().unwrap_err();
        assert!(matches!(error, PolicyError::NoRoomForRenewal { .. }));
        assert!(error.to_string().contains("more than the TTL of 10s"), "{error}");
        assert!(LeasePolicy::builder(10 * SECOND).margin(Duration::MAX).build().is_err());
    }

    #[test]
    fn zero_durations_are_refused_by_name() {
        let base = || LeasePolicy::builder(10 * SECOND);
        let zero = Duration::ZERO;
        for (name, refused) in [
            ("cadence", base().cadence(zero)),
            ("margin", base().margin(zero)),
            ("attempt_timeout", base().attempt_timeout(zero)),
            ("operation_timeout", base().operation_timeout(zero)),
            ("cleanup_timeout", base().cleanup_timeout(zero)),
            ("max_hold", base().max_hold(zero)),
            ("stall_after", base().stall_after(zero)),
        ] {
            assert_eq!(refused.build().unwrap_err(), PolicyError::TooShort { name, value: zero });
        }
    }

    #[test]
    fn an_endless_takeover_delay_is_refused() {
        let delay = MAX_TAKEOVER_DELAY + SECOND;
        let error = LeasePolicy::builder(SECOND).takeover_delay(delay).build().unwrap_err();
        assert_eq!(error, PolicyError::TakeoverDelay { delay });
    }
}
