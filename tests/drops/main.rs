//! Every public `async fn` dropped at every await, with the store answering, failing, losing answers and hanging.
//!
//! A drop point is the n-th time that a future was pending: it is dropped there at once, with its request still on its way, or
//! a little later, with the request applied and its answer not read. See tests/README.md.

#[path = "../support/mod.rs"]
mod support;

mod drop_at;
mod subjects;
mod verdict;

use leasehold::StoreErrorKind;
use leasehold::testing::{Fault, Gate, Operation};
use std::time::Duration;

use drop_at::drop_at;
use subjects::{After, SUBJECTS, Subject};
use support::{policy, scene_with, secs};

/// What befalls a call. The last one is held, and let go when everything is decided.
fn faults(late: &Gate) -> [Option<Fault>; 7] {
    [
        None,
        Some(Fault::Fail(StoreErrorKind::Unavailable)),
        Some(Fault::Fail(StoreErrorKind::Unknown)),
        Some(Fault::LoseAnswer),
        Some(Fault::Hang),
        Some(Fault::HangAfterwards),
        Some(Fault::Hold(late.clone())),
    ]
}

/// Beyond this many awaits only one that tries for ever is still pending.
const MANY: usize = 14;

/// Drops a subject at every point, under every pair of faults of its calls. How many drops that were.
async fn drop_everywhere(subject: &Subject) -> usize {
    let mut drops = 0;
    for plan in Plan::all() {
        for after in subject.afters() {
            for linger in [Duration::ZERO, Duration::from_millis(5)] {
                for point in 1..=MANY {
                    let Some(calls) = drop_once(subject, plan.fresh(), *after, linger, point).await else { break };
                    // What would have befallen calls that were not made makes no drop point another one.
                    drops += usize::from(calls > 1 || plan.others.is_none());
                }
            }
        }
    }
    drops
}

#[derive(Debug, Clone)]
struct Plan {
    /// What befalls the subject's first call, and all others of that kind.
    first: Option<Fault>,
    others: Option<Fault>,
    /// What befalls the calls that clean up.
    cleanup: Option<Fault>,
    /// Where calls are held.
    late: Gate,
}

impl Plan {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for cleanup in [None, Some(Fault::Hang)] {
            for first in faults(&Gate::new()) {
                for others in faults(&Gate::new()) {
                    all.push(Self { first: first.clone(), others, cleanup: cleanup.clone(), late: Gate::new() });
                }
            }
        }
        all
    }

    /// The same plan with a gate that nobody has opened.
    fn fresh(&self) -> Self {
        let late = Gate::new();
        let held = |fault: &Option<Fault>| match fault {
            Some(Fault::Hold(_)) => Some(Fault::Hold(late.clone())),
            other => other.clone(),
        };
        Self { first: held(&self.first), others: held(&self.others), cleanup: self.cleanup.clone(), late: late.clone() }
    }
}

/// Drops a subject at one point, after so many calls. `None` if it was ready before.
async fn drop_once(subject: &Subject, plan: Plan, after: After, linger: Duration, point: usize) -> Option<usize> {
    let what = format!("{}, dropped at {point} after {linger:?}, {plan:?}, then {after:?}", subject.name);
    // Time-outs that leave room for a few attempts inside a TTL.
    let scene = scene_with(policy().operation_timeout(secs(4)).cleanup_timeout(secs(2))).await;
    let subjects::Prepared { future, verdict } = (subject.prepare)(&scene).await;
    let unharmed = Gate::new();
    unharmed.open();
    scene.store.plan(subject.operation, plan.first.clone().unwrap_or(Fault::HoldAnswer(unharmed)));
    scene.store.plan_always(subject.operation, plan.others.clone());
    for cleanup in [Operation::Close, Operation::Release] {
        if cleanup != subject.operation {
            scene.store.plan_always(cleanup, plan.cleanup.clone());
        }
    }
    let before = scene.store.calls(subject.operation);
    if !drop_at(point, linger, future).await {
        return None;
    }
    let calls = scene.store.calls(subject.operation) - before;
    verdict.check(&scene, subject, &plan, after, &what).await;
    Some(calls)
}

/// One test a subject, so that a failure names it and they run side by side.
macro_rules! dropped_everywhere {
    ($($test:ident: $index:expr;)*) => {
        $(#[tokio::test(start_paused = true)]
        async fn $test() {
            let subject = &SUBJECTS[$index];
            let drops = drop_everywhere(subject).await;
            assert!(drops > 0, "{} was never pending", subject.name);
            println!("figure: drops.points.{} = {drops} count", subject.name);
        })*

        #[test]
        fn no_subject_is_left_out() {
            let mut tested = [$($index),*];
            tested.sort_unstable();
            assert!(tested.iter().copied().eq(0..SUBJECTS.len()));
        }
    };
}

dropped_everywhere! {
    a_dropped_provision: 0;
    a_dropped_acquire: 1;
    a_dropped_acquire_or_provision_while_it_acquires: 2;
    a_dropped_acquire_or_provision_while_it_provisions: 3;
    a_dropped_acquire_wait: 4;
    a_dropped_run_while_it_acquires: 5;
    a_dropped_run_while_it_publishes: 6;
    a_dropped_run_whose_build_failed: 7;
    a_dropped_run_blocking: 8;
    a_dropped_supervise_blocking: 9;
    a_dropped_supervisors_resolve: 10;
    a_dropped_read: 11;
    a_dropped_read_if_newer: 12;
    a_dropped_metadata: 13;
    a_dropped_inspect: 14;
    a_dropped_shutdown: 15;
    a_dropped_release: 16;
    a_dropped_publish: 17;
    a_dropped_wait_for_the_loss: 18;
    a_dropped_watch: 19;
    a_dropped_send: 20;
    a_dropped_send_that_advances: 21;
    a_dropped_send_within: 22;
    a_dropped_send_within_that_was_applied: 23;
    a_dropped_publications_resolve: 24;
}
