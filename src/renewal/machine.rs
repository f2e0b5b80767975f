//! When to renew, when to try again and when to give up: a pure state machine.
//!
//! Time, answers and chance go in; steps come out. No I/O, no tokio, no clock of its own: every schedule can be tested.

use std::sync::Arc;
use std::time::Duration;

use crate::answer::RenewAnswer;
use crate::clock::Moment;
use crate::error::StoreErrorKind;
use crate::loss::LossReason;
use crate::policy::LeasePolicy;

/// The shortest wait before a failed attempt is followed by another.
const MIN_RETRY: Duration = Duration::from_millis(10);

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing before this moment.
    Wait(Moment),
    /// Send a renewal, and answer [`Machine::answered`] or [`Machine::failed`] unless it takes longer than this.
    Send { timeout: Duration },
    /// The lease is over. The machine says so for ever after.
    Trip(LossReason),
}

/// What the policy says about renewing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) cadence: Duration,
    pub(crate) margin: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) stall_after: Option<Duration>,
}

impl From<&LeasePolicy> for Pace {
    fn from(policy: &LeasePolicy) -> Self {
        let &LeasePolicy { cadence, margin, attempt_timeout, max_hold, stall_after, .. } = policy;
        Self { cadence, margin, attempt_timeout, max_hold, stall_after }
    }
}

/// The attempt that is on its way.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    sent_at: Moment,
    ends_at: Moment,
}

/// The renewal of one lease.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The same for all leases of a policy.
    pace: Arc<Pace>,
    held_since: Moment,
    confirmed_at: Moment,
    deadline: Moment,
    next_attempt: Moment,
    attempt: Option<Attempt>,
    failures: u32,
    /// The database said that this acquisition has published: whoever published will say how it goes on.
    published: bool,
    over: Option<LossReason>,
}

impl Machine {
    /// The machine of a lease that was asked for at `sent_at` and granted with this much remaining. `chance` is in 0..1.
    pub(crate) fn new(
        pace: impl Into<Arc<Pace>>,
        held_since: Moment,
        sent_at: Moment,
        remaining: Duration,
        chance: f64,
    ) -> Self {
        let mut machine = Self {
            pace: pace.into(),
            held_since,
            confirmed_at: sent_at,
            deadline: sent_at,
            next_attempt: sent_at,
            attempt: None,
            failures: 0,
            published: false,
            over: None,
        };
        machine.confirm(sent_at, remaining, chance);
        machine
    }

    /// When the client counts the lease lost: the time before the last confirmed request was sent, plus what remained,
    /// less the margin.
    pub(crate) fn deadline(&self) -> Moment {
        self.deadline
    }

    /// When the last confirmed request was sent.
    pub(crate) fn confirmed_at(&self) -> Moment {
        self.confirmed_at
    }

    /// Whether the answer of an attempt is waited for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.attempt.is_some()
    }

    /// What to do now. A late call sees the deadline first, and never renews after it.
    pub(crate) fn step(&mut self, now: Moment, last_progress: Moment, chance: f64) -> Step {
        if let Some(reason) = self.over {
            return Step::Trip(reason);
        }
        let (horizon, reason) = self.horizon(last_progress);
        if now >= horizon {
            return self.trip(reason);
        }
        if let Some(attempt) = self.attempt {
            if now < attempt.ends_at {
                return Step::Wait(attempt.ends_at.min(horizon));
            }
            self.fail(now, chance);
        }
        if self.published {
            return Step::Wait(horizon);
        }
        if now < self.next_attempt {
            return Step::Wait(self.next_attempt.min(horizon));
        }
        let timeout = self.pace.attempt_timeout.min(self.deadline.since(now));
        self.attempt = Some(Attempt { sent_at: now, ends_at: now.plus(timeout) });
        Step::Send { timeout }
    }

    /// The database answered the attempt that is on its way. An answer to an attempt that was given up is not for here.
    pub(crate) fn answered(&mut self, answer: RenewAnswer, chance: f64) {
        let Some(attempt) = self.attempt.take() else { return };
        match answer {
            RenewAnswer::Renewed { remaining } => self.confirm(attempt.sent_at, remaining, chance),
            RenewAnswer::Published(_) => self.published = true,
            RenewAnswer::Refused(refusal) => {
                self.trip(LossReason::of(refusal));
            }
        }
    }

    /// The attempt that is on its way failed.
    pub(crate) fn failed(&mut self, now: Moment, kind: StoreErrorKind, chance: f64) {
        if self.attempt.is_none() {
            return;
        }
        match kind {
            StoreErrorKind::Rejected | StoreErrorKind::Invalid => {
                self.trip(LossReason::StoreRejected);
            }
            StoreErrorKind::Unavailable | StoreErrorKind::Unknown => self.fail(now, chance),
        }
    }

    /// The first moment at which the lease is over whatever happens until then, and why.
    fn horizon(&self, last_progress: Moment) -> (Moment, LossReason) {
        let mut horizon = (self.deadline, LossReason::DeadlinePassed);
        let limits = [
            (self.pace.max_hold.map(|limit| self.held_since.plus(limit)), LossReason::HeldTooLong),
            (self.pace.stall_after.map(|limit| last_progress.plus(limit)), LossReason::Stalled),
        ];
        for (limit, reason) in limits {
            if let Some(limit) = limit
                && limit < horizon.0
            {
                horizon = (limit, reason);
            }
        }
        horizon
    }

    fn confirm(&mut self, sent_at: Moment, remaining: Duration, chance: f64) {
        self.confirmed_at = sent_at;
        self.deadline = sent_at.plus(remaining).minus(self.pace.margin);
        self.failures = 0;
        let due = sent_at.plus(self.pace.cadence.mul_f64(1.0 - 0.1 * chance));
        // A repeated acquisition gets no new TTL: what remains may be less than the cadence counts on.
        let fits = due.plus(self.pace.attempt_timeout) <= self.deadline;
        self.next_attempt = if fits { due } else { sent_at.plus(self.deadline.since(sent_at) / 2) };
    }

    /// Tries again after a wait that doubles, and shrinks towards the deadline so that there is always one more attempt.
    fn fail(&mut self, now: Moment, chance: f64) {
        self.attempt = None;
        let doubled = (self.pace.cadence / 16).saturating_mul(1 << self.failures.min(4));
        let towards_deadline = self.deadline.since(now) / 4;
        let wait = doubled.min(towards_deadline).mul_f64(0.5 + 0.5 * chance).max(MIN_RETRY);
        self.failures = self.failures.saturating_add(1);
        self.next_attempt = now.plus(wait);
    }

    fn trip(&mut self, reason: LossReason) -> Step {
        self.attempt = None;
        Step::Trip(*self.over.get_or_insert(reason))
    }
}
