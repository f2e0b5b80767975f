//! The laws of the renewal machine, over random schedules of time, answers, errors and chance.

use std::time::Duration;

use proptest::prelude::*;

use super::machine::{Machine, Pace, Step};
use crate::answer::{Refusal, RenewAnswer};
use crate::clock::Moment;
use crate::error::StoreErrorKind;
use crate::fence::Generation;
use crate::loss::LossReason;

const START: Moment = Moment::from_nanos(1_000_000_000_000);

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A pace that a policy would accept, and its TTL.
fn paces() -> impl Strategy<Value = (Pace, Duration)> {
    let limit = || prop_oneof![3 => Just(None), 1 => (50_u64..200_000).prop_map(|ms| Some(millis(ms)))];
    (1_u64..20_000, 1_u64..10_000, 1_u64..10_000, 0_u64..10_000, limit(), limit()).prop_map(
        |(cadence, margin, attempt_timeout, spare, max_hold, stall_after)| {
            let ttl = millis(cadence + margin + attempt_timeout + spare);
            let (cadence, margin) = (millis(cadence), millis(margin));
            let attempt_timeout = millis(attempt_timeout);
            (Pace { cadence, margin, attempt_timeout, max_hold, stall_after }, ttl)
        },
    )
}

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    /// Nothing but time, in microseconds: the driver wakes this much after it was told to, or before.
    Sleep {
        late_by: i64,
    },
    /// The attempt in flight is answered after this long.
    Answer {
        after: u64,
        answer: Answer,
    },
    Progress,
}

#[derive(Debug, Clone)]
enum Answer {
    Renewed { share_of_ttl: f64 },
    Error(StoreErrorKind),
    Refused(Refusal),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let answer = prop_oneof![
        8 => prop_oneof![Just(1.0), 0.0..1.0].prop_map(|share_of_ttl| Answer::Renewed { share_of_ttl }),
        4 => prop_oneof![Just(StoreErrorKind::Unavailable), Just(StoreErrorKind::Unknown)].prop_map(Answer::Error),
        1 => Just(Answer::Error(StoreErrorKind::Rejected)),
        1 => prop_oneof![Just(Refusal::Expired), Just(Refusal::Superseded { by: Generation::new(9) })]
            .prop_map(Answer::Refused),
    ];
    let event = prop_oneof![
        4 => prop_oneof![Just(0_i64), -20_000_000_i64..0, 0_i64..20_000_000].prop_map(|late_by| Event::Sleep { late_by }),
        4 => (0_u64..5_000_000, answer).prop_map(|(after, answer)| Event::Answer { after, answer }),
        1 => Just(Event::Progress),
    ];
    proptest::collection::vec(event, 1..60)
}

/// The driver of a machine, and what it knows of it.
struct Driver {
    machine: Machine,
    pace: Pace,
    ttl: Duration,
    now: Moment,
    last_progress: Moment,
    /// When the attempt in flight was sent, and when it ends.
    attempt: Option<(Moment, Moment)>,
    tripped: Option<LossReason>,
    wait_until: Moment,
}

impl Driver {
    fn step(&mut self, chance: f64) -> Result<(), TestCaseError> {
        let deadline = self.machine.deadline();
        let step = self.machine.step(self.now, self.last_progress, chance);
        if let Some(reason) = self.tripped {
            prop_assert_eq!(step, Step::Trip(reason), "a tripped machine stays tripped, for the same reason");
            return Ok(());
        }
        match step {
            Step::Send { timeout } => {
                prop_assert!(self.now < deadline, "a renewal is never sent after the deadline");
                prop_assert!(timeout <= self.pace.attempt_timeout);
                prop_assert!(timeout <= deadline.since(self.now), "an attempt fits in what remains");
                prop_assert!(!timeout.is_zero());
                if let Some((_, ends_at)) = self.attempt {
                    prop_assert!(self.now >= ends_at, "no attempt is sent while another is on its way");
                }
                self.attempt = Some((self.now, self.now.plus(timeout)));
                self.wait_until = self.now;
            }
            Step::Wait(until) => {
                prop_assert!(until > self.now, "a wait is never over before it began");
                prop_assert!(until <= deadline, "the driver is never told to sleep past the deadline");
                prop_assert!(self.now < deadline, "a late wake-up sees the deadline first");
                if let Some(limit) = self.pace.max_hold {
                    prop_assert!(until <= START.plus(limit));
                }
                if let Some(limit) = self.pace.stall_after {
                    prop_assert!(until <= self.last_progress.plus(limit));
                }
                self.wait_until = until;
            }
            Step::Trip(reason) => {
                match reason {
                    LossReason::DeadlinePassed => prop_assert!(self.now >= deadline),
                    LossReason::HeldTooLong => prop_assert!(self.now >= START.plus(self.pace.max_hold.unwrap())),
                    LossReason::Stalled => {
                        prop_assert!(self.now >= self.last_progress.plus(self.pace.stall_after.unwrap()));
                    }
                    _ => {}
                }
                self.tripped = Some(reason);
            }
        }
        Ok(())
    }

    fn answer(&mut self, answer: &Answer, chance: f64) -> Result<(), TestCaseError> {
        let Some((sent_at, ends_at)) = self.attempt else { return Ok(()) };
        // An attempt that took too long was given up: `step` sees that first, as the driver's loop does.
        if self.now >= ends_at || self.tripped.is_some() {
            return Ok(());
        }
        self.attempt = None;
        match *answer {
            Answer::Renewed { share_of_ttl } => {
                let remaining = self.ttl.mul_f64(share_of_ttl);
                self.machine.answered(RenewAnswer::Renewed { remaining }, chance);
                let expected = sent_at.plus(remaining).minus(self.pace.margin);
                prop_assert_eq!(self.machine.deadline(), expected, "counted from when the request was sent");
                prop_assert_eq!(self.machine.confirmed_at(), sent_at);
                if share_of_ttl == 1.0 && self.now < sent_at.plus(self.pace.cadence.mul_f64(0.9)) {
                    let until = match self.machine.step(self.now, self.now, chance) {
                        Step::Wait(until) => until,
                        Step::Trip(LossReason::HeldTooLong) => return self.step(chance),
                        other => return Err(TestCaseError::fail(format!("a fresh lease is waited on, not {other:?}"))),
                    };
                    let (soonest, latest) = (self.pace.cadence.mul_f64(0.9), self.pace.cadence);
                    let held_until = self.pace.max_hold.map_or(latest, |limit| START.plus(limit).since(sent_at));
                    let stalls = self.pace.stall_after.map_or(latest, |limit| self.now.plus(limit).since(sent_at));
                    let wait = until.since(sent_at);
                    prop_assert!(wait <= latest, "the cadence is the longest wait");
                    prop_assert!(wait >= soonest.min(held_until).min(stalls), "and jitter takes at most a tenth off");
                }
            }
            Answer::Error(kind) => {
                self.machine.failed(self.now, kind, chance);
                if kind == StoreErrorKind::Rejected {
                    self.tripped = Some(LossReason::StoreRejected);
                }
            }
            Answer::Refused(refusal) => {
                self.machine.answered(RenewAnswer::Refused(refusal), chance);
                self.tripped = Some(LossReason::of(refusal));
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_keeps_its_laws_on_every_schedule(
        (pace, ttl) in paces(),
        events in events(),
        chances in proptest::collection::vec(0.0_f64..1.0, 1..8),
    ) {
        let mut chances = chances.into_iter().cycle();
        let mut chance = move || chances.next().unwrap();
        let machine = Machine::new(pace, START, START, ttl, chance());
        let mut driver = Driver {
            machine, pace, ttl, now: START, last_progress: START, attempt: None, tripped: None, wait_until: START,
        };
        driver.step(chance())?;
        for event in events {
            match event {
                Event::Sleep { late_by } => {
                    let due = driver.wait_until.since(driver.now).as_micros() as i64;
                    let slept = (due + late_by).max(0) as u64;
                    driver.now = driver.now.plus(Duration::from_micros(slept));
                }
                Event::Answer { after, answer } => {
                    driver.now = driver.now.plus(Duration::from_micros(after));
                    driver.answer(&answer, chance())?;
                }
                Event::Progress => driver.last_progress = driver.now,
            }
            driver.step(chance())?;
        }
    }
}

fn lease(ttl: u64, cadence: u64, margin: u64, attempt_timeout: u64) -> Machine {
    let pace = Pace {
        cadence: millis(cadence),
        margin: millis(margin),
        attempt_timeout: millis(attempt_timeout),
        max_hold: None,
        stall_after: None,
    };
    Machine::new(pace, START, START, millis(ttl), 0.0)
}

fn at(ms: u64) -> Moment {
    START.plus(millis(ms))
}

#[test]
fn two_failed_attempts_and_a_success_keep_the_lease() {
    let mut machine = lease(30_000, 10_000, 3_000, 5_000);
    assert_eq!(machine.step(at(0), START, 0.0), Step::Wait(at(10_000)));
    assert_eq!(machine.step(at(10_000), START, 0.0), Step::Send { timeout: millis(5_000) });
    machine.failed(at(11_000), StoreErrorKind::Unavailable, 0.0);
    let Step::Wait(retry) = machine.step(at(11_000), START, 0.0) else { panic!("a wait") };
    assert!(matches!(machine.step(retry, START, 0.0), Step::Send { .. }));
    machine.failed(retry, StoreErrorKind::Unknown, 0.0);
    let Step::Wait(retry) = machine.step(retry, START, 0.0) else { panic!("a wait") };
    assert!(matches!(machine.step(retry, START, 0.0), Step::Send { .. }));
    machine.answered(RenewAnswer::Renewed { remaining: millis(30_000) }, 0.0);
    assert_eq!(machine.deadline(), retry.plus(millis(27_000)));
}

#[test]
fn errors_past_the_deadline_trip_with_the_deadline_as_the_reason() {
    let mut machine = lease(3_000, 1_000, 300, 500);
    let mut now = at(0);
    let mut attempts = 0;
    let reason = loop {
        match machine.step(now, START, 0.5) {
            Step::Wait(until) => now = until,
            Step::Send { .. } => {
                attempts += 1;
                machine.failed(now, StoreErrorKind::Unavailable, 0.5);
            }
            Step::Trip(reason) => break reason,
        }
    };
    assert_eq!((reason, now), (LossReason::DeadlinePassed, at(2_700)));
    assert!(attempts >= 5, "it kept trying to the end: {attempts}");
}

#[test]
fn a_wake_up_after_the_deadline_never_renews() {
    let mut machine = lease(30_000, 10_000, 3_000, 5_000);
    assert_eq!(machine.step(at(27_000), START, 0.0), Step::Trip(LossReason::DeadlinePassed));
    machine.answered(RenewAnswer::Renewed { remaining: millis(30_000) }, 0.0);
    assert_eq!(machine.step(at(0), START, 0.0), Step::Trip(LossReason::DeadlinePassed));
}

#[test]
fn what_remains_counts_and_not_the_ttl() {
    // A repeated acquisition was answered with what remained of the first one's TTL.
    let pace = Pace::from(&crate::LeasePolicy::builder(millis(30_000)).build().unwrap());
    let mut machine = Machine::new(pace, START, START, millis(8_000), 0.0);
    assert_eq!(machine.deadline(), at(5_000));
    assert_eq!(machine.step(at(0), START, 0.0), Step::Wait(at(2_500)));
}

#[test]
fn its_own_publication_stops_the_renewals_but_not_the_deadline() {
    let mut machine = lease(30_000, 10_000, 3_000, 5_000);
    assert!(matches!(machine.step(at(10_000), START, 0.0), Step::Send { .. }));
    let receipt = crate::answer::Receipt {
        report: crate::ReportId::from_name("r"),
        operation: crate::OperationId::random(),
        generation: Generation::new(1),
        epoch: crate::Epoch::new(0),
        revision: None,
        published_at: std::time::SystemTime::UNIX_EPOCH,
    };
    machine.answered(RenewAnswer::Published(receipt), 0.0);
    assert_eq!(machine.step(at(11_000), START, 0.0), Step::Wait(at(27_000)));
    assert_eq!(machine.step(at(27_000), START, 0.0), Step::Trip(LossReason::DeadlinePassed));
}
