//! The task that renews one lease: it drives the [`Machine`] by the clock and the store's answers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Sleep;

use super::batch::Reply;
use super::machine::{Machine, Step};
use crate::answer::RenewAnswer;
use crate::clock::Moment;
use crate::engine::Works;
use crate::error::{StoreError, StoreErrorKind};
use crate::fence::{Fence, Generation};
use crate::loss::LossReason;
use crate::state::LeaseState;

/// A running renewal. It ends by itself when its lease is over.
#[derive(Debug)]
pub(crate) struct Renewal(AbortHandle);

impl Renewal {
    /// Starts to renew a lease whose latest confirmed request was sent at `sent_at` and left this much remaining.
    pub(crate) fn start(works: &Arc<Works>, state: &Arc<LeaseState>, machine: Machine) -> Self {
        // Made here and not in the task: a runtime that is shut down drops tasks that it never polled.
        let death = DeathWatch { state: Arc::clone(state), generation: state.fence().generation };
        let works_of_task = Arc::clone(works);
        Self(works.detach(Renewing { works: works_of_task, machine, death, in_flight: None, timer: None }))
    }

    /// Ends it without ending the lease, which goes on under another fence.
    pub(crate) fn retire(&self) {
        self.0.abort();
    }
}

/// The machine of a lease that was granted just now.
pub(crate) fn machine_of(works: &Works, sent_at: Moment, remaining: std::time::Duration) -> Machine {
    Machine::new(Arc::clone(&works.pace), sent_at, sent_at, remaining, fastrand::f64())
}

/// The task. Written by hand, because an `async fn` would keep its arguments twice, and a service holds thousands of these.
#[pin_project]
struct Renewing {
    works: Arc<Works>,
    machine: Machine,
    death: DeathWatch,
    in_flight: Option<oneshot::Receiver<Reply>>,
    #[pin]
    timer: Option<Sleep>,
}

impl Future for Renewing {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let state = Arc::clone(&this.death.state);
        // Entered before every look at the lease and the clock, so that no end and no suspension in between is missed.
        while let Some(fence) = state.renewed_by(context.waker(), this.death.generation) {
            let now = state.now();
            let until = match this.machine.step(now, state.last_progress(), fastrand::f64()) {
                Step::Trip(reason) => {
                    if this.in_flight.is_some() && reason == LossReason::DeadlinePassed {
                        state.failed(unanswered());
                    }
                    state.trip_under(fence.generation, reason);
                    break;
                }
                Step::Send { timeout } => {
                    *this.in_flight = Some(this.works.batcher.renew(this.works, &state, fence, timeout));
                    continue;
                }
                Step::Wait(until) => until,
            };
            // Given up: a late answer would count as a renewal that was confirmed, and extend nothing.
            if !this.machine.is_waiting() && this.in_flight.take().is_some() {
                state.failed(unanswered());
            }
            if let Some(reply) = this.in_flight
                && let Poll::Ready(reply) = Pin::new(reply).poll(context)
            {
                *this.in_flight = None;
                apply(&state, fence, this.machine, reply.ok());
                continue;
            }
            this.timer.set(Some(tokio::time::sleep(until.since(now))));
            let timer = this.timer.as_mut().as_pin_mut().expect("it was set just now");
            ready!(timer.poll(context));
        }
        Poll::Ready(())
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
                    state.trip_under(fence.generation, LossReason::Published);
                }
                RenewAnswer::Published(_) | RenewAnswer::Refused(_) => {}
            }
        }
        Some(Err(error)) => {
            tracing::debug!(%fence, %error, "renewal attempt failed");
            machine.failed(state.now(), error.kind(), chance);
            state.failed(error);
        }
        None => {
            machine.failed(state.now(), StoreErrorKind::Unknown, chance);
            state.failed(Arc::new(StoreError::unknown(
                "the statement of a renewal died without an answer: the store panicked",
            )));
        }
    }
}

/// The evidence that a silent store leaves.
fn unanswered() -> Arc<StoreError> {
    Arc::new(StoreError::unknown("a renewal was not answered within its time-out"))
}

/// Ends the lease when the renewal task does without having ended it: by a panic, or with its runtime.
struct DeathWatch {
    state: Arc<LeaseState>,
    /// Says which of the lease's fences, and is a sixth of its size.
    generation: Generation,
}

impl Drop for DeathWatch {
    fn drop(&mut self) {
        // Changes nothing if the lease is over already, or advanced: then another task renews it, under another fence.
        self.state.trip_under(self.generation, LossReason::RenewalDied);
    }
}
