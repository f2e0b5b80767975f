//! The task that renews one lease: it drives the [`Machine`] by the clock and the store's answers.

use std::future::pending;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::batch::Reply;
use super::machine::{Machine, Pace, Step};
use crate::answer::RenewAnswer;
use crate::clock::Moment;
use crate::engine::Works;
use crate::error::StoreErrorKind;
use crate::fence::Fence;
use crate::loss::LossReason;
use crate::state::LeaseState;

/// A running renewal. It ends by itself when its lease is over.
#[derive(Debug)]
pub(crate) struct Renewal(AbortHandle);

impl Renewal {
    /// Starts to renew a lease whose latest confirmed request was sent at `sent_at` and left this much remaining.
    pub(crate) fn start(works: &Arc<Works>, state: &Arc<LeaseState>, machine: Machine) -> Self {
        // Made here and not in the task: a runtime that is shut down drops tasks that it never polled.
        let death = DeathWatch { state: Arc::clone(state), fence: state.fence(), armed: true };
        Self(works.detach(renew(Arc::clone(works), machine, death)))
    }

    /// Ends it without ending the lease, which goes on under another fence.
    pub(crate) fn retire(&self) {
        self.0.abort();
    }
}

/// The machine of a lease that was granted just now.
pub(crate) fn machine_of(works: &Works, sent_at: Moment, remaining: std::time::Duration) -> Machine {
    Machine::new(Pace::from(&works.policy), sent_at, sent_at, remaining, fastrand::f64())
}

async fn renew(works: Arc<Works>, mut machine: Machine, mut death: DeathWatch) {
    let (state, fence) = (Arc::clone(&death.state), death.fence);
    let mut in_flight: Option<oneshot::Receiver<Reply>> = None;
    while !state.is_over() {
        // Before the clock is read: a suspension in between must not go unnoticed.
        let jumped = works.registry.jumped.notified();
        let now = state.now();
        let until = match machine.step(now, state.last_progress(), fastrand::f64()) {
            Step::Trip(reason) => {
                state.trip_under(fence, reason);
                break;
            }
            Step::Send { timeout } => {
                in_flight = Some(works.batcher.renew(&works, &state, fence, timeout));
                continue;
            }
            Step::Wait(until) => until,
        };
        if !machine.is_waiting() {
            // Given up: a late answer would count as a renewal that was confirmed, and extend nothing.
            in_flight = None;
        }
        tokio::select! {
            biased;
            () = state.token().cancelled() => break,
            reply = answer(&mut in_flight) => {
                in_flight = None;
                apply(&state, fence, &mut machine, reply);
            }
            () = jumped => {}
            () = tokio::time::sleep(until.since(now)) => {}
        }
    }
    death.armed = false;
}

/// The answer of the attempt in flight; pending for ever if there is none.
async fn answer(in_flight: &mut Option<oneshot::Receiver<Reply>>) -> Option<Reply> {
    match in_flight {
        Some(reply) => reply.await.ok(),
        None => pending().await,
    }
}

/// Tells the machine and the lease what was answered. `None`: the statement died without an answer.
fn apply(state: &LeaseState, fence: Fence, machine: &mut Machine, reply: Option<Reply>) {
    let chance = fastrand::f64();
    match reply {
        Some(Ok(answer)) => {
            machine.answered(answer, chance);
            match answer {
                RenewAnswer::Renewed { remaining } => {
                    tracing::trace!(%fence, ?remaining, "lease renewed");
                    state.confirmed(fence, machine.confirmed_at(), machine.deadline());
                }
                // Somebody who has the ticket finished the publication; this guard's own would say how it goes on.
                RenewAnswer::Published(_) if !state.is_publishing() => {
                    state.trip_under(fence, LossReason::Published);
                }
                RenewAnswer::Published(_) | RenewAnswer::Refused(_) => {}
            }
        }
        Some(Err(error)) => {
            tracing::debug!(%fence, %error, "renewal attempt failed");
            machine.failed(state.now(), error.kind(), chance);
            state.failed(error);
        }
        None => machine.failed(state.now(), StoreErrorKind::Unknown, chance),
    }
}

/// Ends the lease when the renewal task does without having ended it: by a panic, or with its runtime.
struct DeathWatch {
    state: Arc<LeaseState>,
    fence: Fence,
    armed: bool,
}

impl Drop for DeathWatch {
    fn drop(&mut self) {
        // A lease that advanced is renewed by another task, under another fence.
        if self.armed {
            self.state.trip_under(self.fence, LossReason::RenewalDied);
        }
    }
}
