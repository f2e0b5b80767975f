//! [`LeaseSupervisor`]: acquires leases, runs builds under them, and puts its house in order at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::runtime::Handle;

use crate::answer::{AcquireAnswer, Acquired, Metadata, ProvisionAnswer, ReadAnswer, ReportStatus, Version, Visible};
use crate::clock::{BootClock, Clock};
use crate::engine::{Engine, ErasedStore, Lane, Works};
use crate::error::{StoreError, StoreErrorKind};
use crate::fence::{Epoch, Owner, ReportId, SourceRevision};
use crate::guard::LeaseGuard;
use crate::policy::LeasePolicy;
use crate::publication::{Outcome, Ticket, resolve};
use crate::store::{AcquireRequest, Store};

mod error;
mod run;
mod shutdown;
mod wait;

pub use error::{AcquireError, RunError};
pub use run::{Built, Completed};
pub use shutdown::ShutdownReport;

/// Acquires and supervises leases of one store under one policy. One per service; cloning shares it.
///
/// It owns a thread that renews all its leases, whatever the caller's runtime does. The thread ends when the supervisor,
/// its clones and all their guards are gone, or with [`shutdown`](Self::shutdown).
///
/// ```no_run
/// use std::time::Duration;
/// use leasehold::{LeasePolicy, LeaseSupervisor, ReportId};
/// # async fn build_report() -> Result<String, std::io::Error> { Ok(String::new()) }
///
/// # async fn example(store: impl leasehold::store::Store) -> Result<(), Box<dyn std::error::Error>> {
/// let policy = LeasePolicy::builder(Duration::from_secs(30)).build()?;
/// let supervisor = LeaseSupervisor::new(store, policy)?;
/// let report = ReportId::from_name("monthly");
/// supervisor.provision(report).await?;
/// supervisor.run(report, None, |_lease| build_report()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LeaseSupervisor {
    engine: Arc<Engine>,
    /// The highest recovery epoch that was seen: a database in a lower one is an older history.
    min_epoch: Arc<AtomicI64>,
}

/// A supervisor with other than the default clock or renewal runtime.
#[must_use = "a builder does nothing before `start`"]
pub struct SupervisorBuilder {
    store: Arc<dyn ErasedStore>,
    policy: LeasePolicy,
    clock: Arc<dyn Clock>,
    renew_on: Option<Handle>,
}

/// What an acquisition came to, other than an error.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "dropping an acquired guard releases its lease at once"]
pub enum Acquisition {
    /// The lease is held.
    Acquired(LeaseGuard),
    /// What is visible is new enough: there is nothing to build.
    AlreadyFresh(Visible),
}

impl Acquisition {
    /// The guard, unless there was nothing to build.
    #[must_use]
    pub fn acquired(self) -> Option<LeaseGuard> {
        match self {
            Self::Acquired(guard) => Some(guard),
            Self::AlreadyFresh(_) => None,
        }
    }
}

impl LeaseSupervisor {
    /// A supervisor of a store, with a renewal thread of its own.
    ///
    /// Acquisitions, publications and reads run on the runtime in which this is called (outside a runtime: on the renewal
    /// thread), so call it where the store's own connections belong.
    ///
    /// # Errors
    /// If the operating system gives no thread.
    pub fn new(store: impl Store, policy: LeasePolicy) -> std::io::Result<Self> {
        Self::builder(store, policy).start()
    }

    /// For a supervisor with another clock, or that renews on a runtime of the caller.
    pub fn builder(store: impl Store, policy: LeasePolicy) -> SupervisorBuilder {
        SupervisorBuilder { store: Arc::new(store), policy, clock: Arc::new(BootClock), renew_on: None }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &LeasePolicy {
        &self.works().policy
    }

    /// Creates the report's row if there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Idempotent; it runs to its end even if the future is dropped.
    pub async fn provision(&self, report: ReportId) -> Result<ProvisionAnswer, StoreError> {
        self.call(move |store, budget| store.provision(report, budget)).await
    }

    /// Takes the lease of a report, which must have been provisioned, unless somebody else has it. `wanted` is the source
    /// revision that would be built: if what is visible is at least as new, the answer is [`Acquisition::AlreadyFresh`];
    /// otherwise the guard's publication claims it. Once a report has a revision, every publication of it needs one.
    ///
    /// # Errors
    /// [`AcquireError`]: busy (who holds it, and for how long), missing, unavailable, …
    ///
    /// # Cancel safety
    /// When the future is dropped, the acquisition is closed in the background: it can hold the lease no more, however late
    /// its request arrives. If that does not succeed either, the lease is free within one TTL.
    pub async fn acquire(
        &self,
        report: ReportId,
        wanted: impl Into<Option<SourceRevision>>,
    ) -> Result<Acquisition, AcquireError> {
        let wanted = wanted.into();
        if self.works().registry.is_closed() {
            return Err(AcquireError::ShutDown);
        }
        let mut attempt =
            AcquireAttempt { works: Arc::clone(self.works()), report, owner: Owner::random(), open: true };
        let mut repeated = false;
        loop {
            let sent_at = self.works().clock.now();
            match self.request(report, attempt.owner, wanted).await {
                Ok(answer) => {
                    // Of a repeated one, the first request may still be on its way, and find the report free some day.
                    attempt.open = repeated && !matches!(answer, AcquireAnswer::Acquired(_));
                    return self.acquired(report, wanted, sent_at, answer);
                }
                // The same owner again is the same acquisition: the lost answer is asked for once more.
                Err(error) if error.kind() == StoreErrorKind::Unknown && !repeated => {
                    tracing::debug!(%report, %error, "an acquisition's answer was lost");
                    repeated = true;
                }
                Err(error) => {
                    attempt.open = repeated || error.kind() == StoreErrorKind::Unknown;
                    return Err(AcquireError::of(error));
                }
            }
        }
    }

    /// [`acquire`](Self::acquire), and creates the report's row first if there is none.
    ///
    /// # Errors
    /// [`AcquireError`].
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_or_provision(
        &self,
        report: ReportId,
        wanted: impl Into<Option<SourceRevision>>,
    ) -> Result<Acquisition, AcquireError> {
        let wanted = wanted.into();
        match self.acquire(report, wanted).await {
            Err(AcquireError::Missing { .. }) => {
                self.provision(report).await.map_err(AcquireError::of)?;
                self.acquire(report, wanted).await
            }
            answer => answer,
        }
    }

    /// The certain outcome of a publication, after a crash or when nobody holds it any more. If it was not accepted yet, it
    /// never will be: should the worker be alive after all, this ends its lease. Asks for at most the policy's `cleanup_timeout`.
    ///
    /// # Errors
    /// [`StoreError`] if the database could not be asked; ask again.
    ///
    /// # Cancel safety
    /// It may be dropped and called again, with the same answer.
    pub async fn resolve(&self, ticket: Ticket) -> Result<Outcome, StoreError> {
        resolve(self.works(), ticket).await
    }

    /// The visible payload with its version.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Changes nothing; it runs to its end even if the future is dropped.
    pub async fn read(&self, report: ReportId) -> Result<ReadAnswer, StoreError> {
        self.call(move |store, budget| store.read(report, None, budget)).await
    }

    /// The visible payload if it is newer than what the caller has.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// As [`read`](Self::read).
    pub async fn read_if_newer(&self, report: ReportId, than: Version) -> Result<ReadAnswer, StoreError> {
        self.call(move |store, budget| store.read(report, Some(than), budget)).await
    }

    /// What the report's row says without its payload; `None` if there is no row.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// As [`read`](Self::read).
    pub async fn metadata(&self, report: ReportId) -> Result<Option<Metadata>, StoreError> {
        self.call(move |store, budget| store.metadata(report, budget)).await
    }

    /// Who holds the report, since when and for how long; `None` if there is no row.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// As [`read`](Self::read).
    pub async fn inspect(&self, report: ReportId) -> Result<Option<ReportStatus>, StoreError> {
        self.call(move |store, budget| store.inspect(report, budget)).await
    }

    /// How many tasks the engine has now: for tests that prove that none is left behind.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.works().tasks()
    }

    fn works(&self) -> &Arc<Works> {
        self.engine.works()
    }

    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn ErasedStore, crate::store::Budget) -> crate::engine::StoreCall<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.works().call(Lane::Caller, self.policy().operation_timeout, call).await
    }

    async fn request(
        &self,
        report: ReportId,
        owner: Owner,
        wanted: Option<SourceRevision>,
    ) -> Result<AcquireAnswer, StoreError> {
        let policy = self.policy();
        let request = AcquireRequest {
            report,
            owner,
            ttl: policy.ttl,
            holder: policy.holder.clone(),
            min_epoch: Epoch::new(self.min_epoch.load(Ordering::Relaxed)),
            takeover_delay: policy.takeover_delay,
            wanted,
        };
        self.call(move |store, budget| store.acquire(request, budget)).await
    }

    fn acquired(
        &self,
        report: ReportId,
        wanted: Option<SourceRevision>,
        sent_at: crate::clock::Moment,
        answer: AcquireAnswer,
    ) -> Result<Acquisition, AcquireError> {
        match answer {
            AcquireAnswer::Acquired(acquired) => self.guard(sent_at, acquired, wanted).map(Acquisition::Acquired),
            AcquireAnswer::AlreadyFresh(visible) => Ok(Acquisition::AlreadyFresh(visible)),
            AcquireAnswer::Busy(busy) => Err(AcquireError::Busy(busy)),
            AcquireAnswer::Missing => Err(AcquireError::Missing { report }),
            AcquireAnswer::StaleHistory { epoch } => {
                let expected = Epoch::new(self.min_epoch.load(Ordering::Relaxed));
                Err(AcquireError::StaleHistory { epoch, expected })
            }
            // An owner is minted for one acquisition, and closed only by it.
            AcquireAnswer::Ended(_) => {
                let message = "the store says that a fresh acquisition has already ended: owners must not be reused";
                Err(AcquireError::Rejected(StoreError::rejected(message)))
            }
        }
    }

    fn guard(
        &self,
        sent_at: crate::clock::Moment,
        acquired: Acquired,
        wanted: Option<SourceRevision>,
    ) -> Result<LeaseGuard, AcquireError> {
        self.min_epoch.fetch_max(acquired.fence.epoch.get(), Ordering::Relaxed);
        tracing::debug!(fence = %acquired.fence, remaining = ?acquired.remaining, "lease acquired");
        LeaseGuard::start(Arc::clone(&self.engine), sent_at, acquired, wanted).ok_or(AcquireError::ShutDown)
    }
}

impl SupervisorBuilder {
    /// Another clock for the client's deadlines: for tests, and for platforms that have a better one.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Renews on this runtime instead of a thread of its own. A caller that blocks the runtime then stops its renewals too;
    /// the first look at a lease still sees that its deadline has passed. For tests with paused time.
    pub fn renew_on(mut self, runtime: Handle) -> Self {
        self.renew_on = Some(runtime);
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// If the operating system gives no thread.
    pub fn start(self) -> std::io::Result<LeaseSupervisor> {
        let min_epoch = Arc::new(AtomicI64::new(self.policy.min_epoch.get()));
        let engine = Engine::start(self.store, self.policy, self.clock, self.renew_on)?;
        Ok(LeaseSupervisor { engine: Arc::new(engine), min_epoch })
    }
}

impl std::fmt::Debug for SupervisorBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SupervisorBuilder").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// An acquisition whose answer has not arrived. If it is given up, it is closed, so that it holds the lease for nobody.
struct AcquireAttempt {
    works: Arc<Works>,
    report: ReportId,
    owner: Owner,
    open: bool,
}

impl Drop for AcquireAttempt {
    fn drop(&mut self) {
        if self.open {
            self.works.close_unlearned(self.report, self.owner);
        }
    }
}
