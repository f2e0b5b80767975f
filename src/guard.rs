//! [`LeaseGuard`] owns a lease and its renewal; [`Lease`] is the handle for inside the build.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::Stream;
use pin_project::pin_project;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::answer::{Acquired, NextLease, Receipt, ReleaseAnswer, Visible};
use crate::clock::Moment;
use crate::engine::{Engine, Works};
use crate::error::StoreError;
use crate::fence::{Fence, Owner, SourceRevision};
use crate::loss::{Loss, LossReason};
use crate::publication::{Publication, PublishError};
use crate::renewal::{Renewal, machine_of};
use crate::state::LeaseState;
use crate::supervise::{Supervised, SupervisedStream};

/// A lease that is held, and the background task that renews it.
///
/// The guard publishes once, or releases. Dropping it stops the renewal, cancels the build's tokens and starts a
/// best-effort release in the background, from whatever thread, in or outside a runtime; if that does not succeed, the
/// lease ends with its TTL. While a build on a blocking thread still runs, nothing is released: the lease is left to expire.
///
/// What happens in the background does not outlive the process: before `main` returns, await
/// [`LeaseSupervisor::shutdown`](crate::LeaseSupervisor::shutdown) or [`release`](Self::release), or the report stays busy for
/// up to one TTL.
#[must_use = "dropping a guard releases its lease at once"]
#[derive(Debug)]
pub struct LeaseGuard {
    engine: Arc<Engine>,
    state: Arc<LeaseState>,
    renewal: Renewal,
    /// Its name in the registry: the owner of the acquisition, also after the lease advanced.
    key: Owner,
    visible: Option<Visible>,
    /// The source revision that was asked for: what a publication claims unless it says another.
    wanted: Option<SourceRevision>,
    /// Nothing is left to tell the database.
    handed_back: bool,
}

/// A handle to a lease for inside the build: cheap to clone, and it cannot publish.
#[derive(Debug, Clone)]
pub struct Lease {
    state: Arc<LeaseState>,
}

/// Whether a lease is held.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LeaseStatus {
    /// As far as this client can know.
    Held {
        /// Until the client counts it lost, unless it is renewed.
        remaining: Duration,
    },
    /// It is over, and stays so.
    Lost(Loss),
}

/// What [`LeaseGuard::release`] came to. Each leaves the lease to others, now or at the end of its TTL.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// The lease was held, and is free now.
    Released,
    /// It was over already: lost, expired, taken. Never an error.
    AlreadyOver,
    /// A build on a blocking thread still runs, which nothing can stop: the lease ends with its TTL.
    LeftToExpire,
    /// The database did not confirm it in time; the lease ends with its TTL at the latest.
    Unconfirmed(StoreError),
}

impl LeaseGuard {
    /// Takes charge of a lease that was asked for at `sent_at`. `None` if the supervisor is shut down: then it is released.
    pub(crate) fn start(
        engine: Arc<Engine>,
        sent_at: Moment,
        acquired: Acquired,
        wanted: Option<SourceRevision>,
    ) -> Option<Self> {
        let Acquired { fence, remaining, visible } = acquired;
        let works = engine.works();
        let machine = machine_of(works, sent_at, remaining);
        let state = LeaseState::new(Arc::clone(&works.clock), fence, machine.confirmed_at(), machine.deadline());
        let state = Arc::new(state);
        if !works.registry.enter(works, fence.owner, &state) {
            drop(works.release(fence));
            return None;
        }
        let renewal = Renewal::start(works, &state, machine);
        Some(Self { engine, state, renewal, key: fence.owner, visible, wanted, handed_back: false })
    }

    /// A handle for inside the build.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease { state: Arc::clone(&self.state) }
    }

    /// What was published when the lease was acquired, if anything ever was.
    #[must_use]
    pub fn visible(&self) -> Option<Visible> {
        self.visible
    }

    /// Whether the lease is held, by a look at the clock.
    #[must_use]
    pub fn status(&self) -> LeaseStatus {
        status_of(&self.state)
    }

    /// A watch of the status: changes with every renewal, and at the end.
    #[must_use]
    pub fn watch(&self) -> StatusWatch {
        StatusWatch { changes: self.state.changes(), state: Arc::clone(&self.state) }
    }

    /// Resolves when the lease is lost, to why. Makes no call and never blocks; may be asked for anywhere, any number of times.
    ///
    /// # Cancel safety
    /// It can be dropped and asked for again at will.
    pub fn lost(&self) -> Lost {
        let cancelled = self.state.token().clone().cancelled_owned();
        Lost { state: Arc::clone(&self.state), cancelled }
    }

    /// Runs a build under this lease: it is dropped the moment the lease is lost.
    ///
    /// ```no_run
    /// # async fn rebuild() -> String { String::new() }
    /// # async fn example(guard: leasehold::LeaseGuard) -> Result<(), Box<dyn std::error::Error>> {
    /// let payload = guard.supervise(rebuild()).await?;
    /// guard.publish(payload).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn supervise<F: Future>(&self, build: F) -> Supervised<F> {
        Supervised::new(build, Arc::clone(&self.state))
    }

    /// Passes a stream on while this lease is held: it is dropped the moment the lease is lost.
    pub fn supervise_stream<S: Stream>(&self, stream: S) -> SupervisedStream<S> {
        SupervisedStream::new(stream, Arc::clone(&self.state))
    }

    /// Runs a build that blocks on a blocking thread, under this lease, and answers what it answers.
    ///
    /// Nothing can stop such a build from outside: it should look at [`Lease::checkpoint`] now and then. When the lease is
    /// lost, this waits for the build to notice, at most for the policy's `cleanup_timeout`. As long as the build runs, the
    /// lease is never released, only left to expire.
    ///
    /// # Errors
    /// The [`Loss`] if the lease was lost and the build did not end in time. A build that ended is answered, whether or not
    /// its lease was lost meanwhile; its publication will tell.
    ///
    /// # Panics
    /// With the build's panic, if it panics.
    ///
    /// # Cancel safety
    /// When the future is dropped, the build goes on until it looks.
    pub async fn supervise_blocking<F, T>(&self, build: F) -> Result<T, Loss>
    where
        F: FnOnce(Lease) -> T + Send + 'static,
        T: Send + 'static,
    {
        let works = self.works();
        let running = self.state.blocking_build();
        let lease = self.lease();
        let mut task = works.spawn_blocking(move || {
            let built = build(lease);
            drop(running);
            built
        });
        let joined = match self.supervise(&mut task).await {
            Ok(joined) => joined,
            Err(loss) => tokio::select! {
                joined = &mut task => joined,
                () = works.sleep(works.policy.cleanup_timeout) => return Err(loss),
            },
        };
        match joined {
            Ok(built) => Ok(built),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime of the build was shut down before it began.
            Err(_) => Err(self.state.trip(LossReason::Shutdown)),
        }
    }

    /// The one publication of this lease, not sent yet, of the source revision that was asked for at the acquisition (or
    /// see [`Publication::with_revision`]). It can be sent again with the same operation id, resolved, and
    /// remembered across a crash by its [`Ticket`](crate::Ticket).
    pub fn publication(self, payload: impl Into<String>) -> Publication {
        Publication::new(self, payload.into().into())
    }

    /// Publishes text, and ends the lease by it. Short for [`publication`](Self::publication) and
    /// [`send`](Publication::send), without the means to try again: on any error the lease is released.
    ///
    /// # Errors
    /// [`PublishError`].
    ///
    /// # Cancel safety
    /// When the future is dropped after it was first polled, the payload may or may not have been published. Use a
    /// [`Publication`] and keep its ticket to find out.
    pub async fn publish(self, payload: impl Into<String>) -> Result<Receipt, PublishError> {
        self.publication(payload).send().await
    }

    /// Ends the lease and frees the report, within the policy's `cleanup_timeout`.
    ///
    /// # Cancel safety
    /// The release is sent when the future is first polled, and then runs to its end even if the future is dropped; a future
    /// dropped before that drops the guard, which releases in the background.
    pub async fn release(mut self) -> ReleaseOutcome {
        self.end(LossReason::Released);
        if self.state.has_blocking_build() {
            return ReleaseOutcome::LeftToExpire;
        }
        let release = self.works().release(self.state.fence());
        match release.await {
            Ok(ReleaseAnswer::Released) => ReleaseOutcome::Released,
            Ok(ReleaseAnswer::AlreadyOver) => ReleaseOutcome::AlreadyOver,
            Err(error) => ReleaseOutcome::Unconfirmed(error),
        }
    }

    /// Ends the lease; the database knows, or is told by the caller.
    pub(crate) fn end(&mut self, reason: LossReason) {
        self.handed_back = true;
        self.state.set_next_owner(None);
        self.state.trip(reason);
        self.engine.works().registry.leave(self.key);
    }

    /// Goes on under the lease that a publication advanced to, unless this one was lost while the answer was on its way: then
    /// nobody here goes on, and that lease is released.
    pub(crate) fn advance(&mut self, sent_at: Moment, next: NextLease) {
        let works = Arc::clone(self.engine.works());
        let machine = machine_of(&works, sent_at, next.remaining);
        if !self.state.advanced(next.fence, machine.confirmed_at(), machine.deadline()) {
            drop(works.release(next.fence));
            return self.end(LossReason::Published);
        }
        self.renewal.retire();
        self.renewal = Renewal::start(&works, &self.state, machine);
    }

    pub(crate) fn wanted(&self) -> Option<SourceRevision> {
        self.wanted
    }

    /// Puts away a guard that is of no more use, and waits for its release unless the database needs none.
    pub(crate) async fn put_away(self) {
        let needs_release = !self.state.loss().is_some_and(|loss| loss.reason().is_known_to_database());
        if needs_release && !self.handed_back && !self.state.has_blocking_build() {
            self.release().await;
        }
    }

    pub(crate) fn state(&self) -> &Arc<LeaseState> {
        &self.state
    }

    pub(crate) fn works(&self) -> &Arc<Works> {
        self.engine.works()
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let reason = self.state.trip(LossReason::Released).reason();
        let works = self.engine.works();
        works.registry.leave(self.key);
        let fence = self.state.fence();
        if let Some(next_owner) = self.state.next_owner() {
            works.close_unlearned(fence.report, next_owner);
        }
        // A shutdown releases by itself what it ended, and tells what it could not.
        let by_shutdown = reason == LossReason::Shutdown && works.registry.is_closed();
        let nothing_to_tell = self.handed_back || reason.is_known_to_database() || by_shutdown;
        if !nothing_to_tell && !self.state.has_blocking_build() {
            // Also after the local deadline: the database may still count the lease held.
            drop(works.release(fence));
        }
    }
}

impl Lease {
    /// What every request of this lease carries.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.state.fence()
    }

    /// A token that is cancelled when the lease is over. Cancelling it has no effect on the lease.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        self.state.token().child_token()
    }

    /// Whether to go on, by a look at the clock: for code that cannot be dropped at an `await`.
    ///
    /// # Errors
    /// The [`Loss`] once the lease is over.
    pub fn checkpoint(&self) -> Result<(), Loss> {
        self.state.check().map(drop)
    }

    /// Says that the build is alive; with a policy that has `stall_after`, a build that says nothing for so long is given up.
    pub fn progress(&self) {
        self.state.progress();
    }

    /// Until the client counts the lease lost, unless it is renewed, by a look at the clock; zero once it is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.state.check().unwrap_or(Duration::ZERO)
    }

    /// Whether the lease is held, by a look at the clock.
    #[must_use]
    pub fn status(&self) -> LeaseStatus {
        status_of(&self.state)
    }

    /// How many renewals were confirmed so far.
    #[must_use]
    pub fn renewals(&self) -> u64 {
        self.state.renewals()
    }
}

fn status_of(state: &LeaseState) -> LeaseStatus {
    match state.check() {
        Ok(remaining) => LeaseStatus::Held { remaining },
        Err(loss) => LeaseStatus::Lost(loss),
    }
}

/// Resolves when a lease is lost: made by [`LeaseGuard::lost`].
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Lost {
    state: Arc<LeaseState>,
    #[pin]
    cancelled: WaitForCancellationFutureOwned,
}

impl Future for Lost {
    type Output = Loss;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Loss> {
        let this = self.project();
        match this.state.check() {
            Err(loss) => Poll::Ready(loss),
            // Whoever cancels the token has set the loss before.
            Ok(_) => this.cancelled.poll(context).map(|()| this.state.trip(LossReason::Released)),
        }
    }
}

/// A watch of a lease's status: made by [`LeaseGuard::watch`].
#[derive(Debug, Clone)]
pub struct StatusWatch {
    state: Arc<LeaseState>,
    changes: watch::Receiver<()>,
}

impl StatusWatch {
    /// The status now, by a look at the clock.
    #[must_use]
    pub fn current(&self) -> LeaseStatus {
        status_of(&self.state)
    }

    /// Waits for the next renewal or the end, and answers the status then. Once the lease is over it answers at once.
    ///
    /// # Cancel safety
    /// It can be dropped and called again; no change is missed.
    pub async fn changed(&mut self) -> LeaseStatus {
        if !self.state.is_over() {
            // The sender is in `state`, which is held here.
            let _ = self.changes.changed().await;
        }
        self.current()
    }
}
