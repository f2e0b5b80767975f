//! Acquire, supervise, publish, clean up: in one call.

use std::future::Future;

use super::{Acquisition, LeaseSupervisor, RunError};
use crate::answer::{Receipt, Visible};
use crate::fence::{ReportId, SourceRevision};
use crate::guard::{Lease, LeaseGuard};
use crate::loss::Loss;
use crate::publication::{Outcome, PublishError};

/// What a build gives to be published: a payload (text without U+0000; encode bytes, or publish a pointer to them), and the source revision it was built from if that is not the wanted one.
#[derive(Clone, PartialEq, Eq)]
pub struct Built {
    payload: String,
    revision: Option<SourceRevision>,
}

impl Built {
    /// A payload that was built from this source revision.
    #[must_use]
    pub fn from_revision(payload: impl Into<String>, revision: SourceRevision) -> Self {
        Self { payload: payload.into(), revision: Some(revision) }
    }
}

impl From<String> for Built {
    fn from(payload: String) -> Self {
        Self { payload, revision: None }
    }
}

impl From<&str> for Built {
    fn from(payload: &str) -> Self {
        Self::from(payload.to_owned())
    }
}

impl std::fmt::Debug for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Built").field("payload_bytes", &self.payload.len()).field("revision", &self.revision).finish()
    }
}

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Completed {
    /// The build's payload is published.
    Published(Receipt),
    /// What is visible was new enough, and nothing was built.
    AlreadyFresh(Visible),
}

impl LeaseSupervisor {
    /// Acquires the lease of a provisioned report, builds under it, publishes what was built, and cleans up. To wait for a lease
    /// that somebody else holds, use [`acquire_wait`](Self::acquire_wait), `supervise` and `publish`; to know after a crash what
    /// became of a publication, use [`acquire`](Self::acquire) and a [`Publication`](crate::Publication)'s ticket.
    ///
    /// The build is dropped the moment the lease is lost. Its own error comes back as it was; if the lease was lost
    /// meanwhile the answer is [`RunError::Lost`], with that error as its source. `wanted` is the source revision to build:
    /// if what is visible is at least as new, nothing is built; otherwise it is published with that revision, unless the
    /// build says another ([`Built`]). The build need be neither `Send` nor `'static`.
    ///
    /// ```no_run
    /// # async fn example(supervisor: leasehold::LeaseSupervisor) -> Result<(), Box<dyn std::error::Error>> {
    /// use leasehold::{ReportId, SourceRevision};
    ///
    /// let report = ReportId::from_name("monthly");
    /// supervisor
    ///     .run(report, SourceRevision::new(7), |lease| async move {
    ///         let mut text = String::new();
    ///         for part in 0..3 {
    ///             text += &format!("part {part}\n"); // something long, with awaits
    ///             lease.progress();
    ///         }
    ///         Ok::<_, std::io::Error>(text)
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError`].
    ///
    /// # Cancel safety
    /// Dropping the future drops the build and releases the lease in the background, which does not outlive the process: await
    /// [`shutdown`](Self::shutdown) before `main` returns. Dropped while it publishes, the payload may or may not be
    /// published.
    pub async fn run<F, Fut, P, E>(
        &self,
        report: ReportId,
        wanted: impl Into<Option<SourceRevision>>,
        build: F,
    ) -> Result<Completed, RunError<E>>
    where
        F: FnOnce(Lease) -> Fut,
        Fut: Future<Output = Result<P, E>>,
        P: Into<Built>,
    {
        let wanted = wanted.into();
        let guard = match self.acquire(report, wanted).await? {
            Acquisition::Acquired(guard) => guard,
            Acquisition::AlreadyFresh(visible) => return Ok(Completed::AlreadyFresh(visible)),
        };
        let built = guard.supervise(build(guard.lease())).await;
        conclude(guard, wanted, built).await
    }

    /// The same for a build that blocks: it runs on a blocking thread of the caller's runtime.
    ///
    /// Nothing can stop such a build from outside: see [`LeaseGuard::supervise_blocking`]. After
    /// a loss it returns within the policy's `cleanup_timeout`, whether or not the build noticed.
    ///
    /// # Errors
    /// [`RunError`].
    ///
    /// # Panics
    /// With the build's panic, if it panics.
    ///
    /// # Cancel safety
    /// Dropping the future stops the renewal and cancels the build's tokens; the build goes on until it looks.
    pub async fn run_blocking<F, P, E>(
        &self,
        report: ReportId,
        wanted: impl Into<Option<SourceRevision>>,
        build: F,
    ) -> Result<Completed, RunError<E>>
    where
        F: FnOnce(Lease) -> Result<P, E> + Send + 'static,
        P: Into<Built> + Send + 'static,
        E: Send + 'static,
    {
        let wanted = wanted.into();
        let guard = match self.acquire(report, wanted).await? {
            Acquisition::Acquired(guard) => guard,
            Acquisition::AlreadyFresh(visible) => return Ok(Completed::AlreadyFresh(visible)),
        };
        let built = guard.supervise_blocking(build).await;
        conclude(guard, wanted, built).await
    }
}

/// Publishes what was built, or puts the lease away.
async fn conclude<P: Into<Built>, E>(
    guard: LeaseGuard,
    wanted: Option<SourceRevision>,
    built: Result<Result<P, E>, Loss>,
) -> Result<Completed, RunError<E>> {
    let built = match built {
        Ok(Ok(built)) => built.into(),
        Ok(Err(source)) => {
            if let Err(loss) = guard.lease().checkpoint() {
                guard.put_away().await;
                return Err(RunError::Lost { loss, source: Some(source) });
            }
            guard.release().await;
            return Err(RunError::Build(source));
        }
        Err(loss) => {
            guard.put_away().await;
            return Err(RunError::Lost { loss, source: None });
        }
    };
    let mut publication = guard.publication(built.payload);
    if let Some(revision) = built.revision.or(wanted) {
        publication = publication.with_revision(revision);
    }
    let error = match publication.send().await {
        Ok(receipt) => return Ok(Completed::Published(receipt)),
        Err(error) => error,
    };
    if matches!(error, PublishError::Unresolved(_)) {
        match publication.resolve().await {
            Ok(Outcome::Published(receipt)) => return Ok(Completed::Published(receipt)),
            // Settled: `send` says what it is to a caller.
            Ok(_) => return publication.send().await.map(Completed::Published).map_err(RunError::Publish),
            Err(_) => {}
        }
    } else if let Ok(guard) = publication.into_guard() {
        guard.put_away().await;
    }
    Err(match error {
        PublishError::Lost(loss) => RunError::Lost { loss, source: None },
        error => RunError::Publish(error),
    })
}
