//! What can go wrong with an acquisition, and with a run.

use crate::answer::Busy;
use crate::error::{StoreError, StoreErrorKind};
use crate::fence::{Epoch, ReportId};
use crate::loss::Loss;
use crate::publication::PublishError;

/// Why a lease was not acquired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Somebody else holds it. Not a failure of the database.
    #[error("busy: {} holds it, for {:?} more unless it renews: wait, or try again then", .0.holder, .0.remaining)]
    Busy(Busy),
    /// The report was never provisioned.
    #[error("report {report} was never provisioned: call provision, or acquire_or_provision")]
    Missing {
        /// The report.
        report: ReportId,
    },
    /// The database is an older history than one that was seen before: a restored copy, or a stale replica.
    #[error(
        "the database is in recovery epoch {epoch} and epoch {expected} was seen before: this is an older history; let an operator \
         advance the recovery epoch before workers connect"
    )]
    StaleHistory {
        /// The row's epoch.
        epoch: Epoch,
        /// The least that was acceptable.
        expected: Epoch,
    },
    /// The supervisor was shut down.
    #[error("the supervisor was shut down")]
    ShutDown,
    /// The database could not be asked: nothing was acquired. Try again.
    #[error("the database is unavailable: {0}")]
    Unavailable(#[source] StoreError),
    /// The answer did not arrive. The acquisition is being closed in the background; if that fails too, the lease is free
    /// within one TTL. Try again.
    #[error("the acquisition's answer did not arrive: {0}")]
    Unknown(#[source] StoreError),
    /// The store refuses to serve until something is mended.
    #[error("{0}")]
    Rejected(#[source] StoreError),
    /// The store does not take this request.
    #[error("{0}")]
    Invalid(#[source] StoreError),
}

impl AcquireError {
    pub(super) fn of(error: StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::Unavailable => Self::Unavailable(error),
            StoreErrorKind::Unknown => Self::Unknown(error),
            StoreErrorKind::Rejected => Self::Rejected(error),
            StoreErrorKind::Invalid => Self::Invalid(error),
        }
    }

    /// Whether the same request can succeed later without anybody mending anything: busy, unavailable, unknown.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Unavailable(_) | Self::Unknown(_))
    }
}

/// Why a run did not publish. It is an [`Error`](std::error::Error) if the build's own `E` is one; see
/// [`map_build`](Self::map_build) for those that are not, such as a boxed error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError<E> {
    /// The lease was not acquired; the build did not start.
    #[error("the lease was not acquired: {0}")]
    Acquire(#[from] AcquireError),
    /// The build failed, with this error of its own. The lease was released.
    #[error("the build failed: {0}")]
    Build(E),
    /// The lease was lost while the build ran, so it was cancelled and its result discarded.
    #[error("{loss}")]
    Lost {
        /// Why.
        loss: Loss,
        /// What the build answered when it was cancelled, if it answered an error.
        #[source]
        source: Option<E>,
    },
    /// The build succeeded and its publication did not.
    #[error("the build succeeded, but: {0}")]
    Publish(#[from] PublishError),
}

impl<E> RunError<E> {
    /// The same with another type for the build's own error.
    pub fn map_build<F>(self, map: impl FnOnce(E) -> F) -> RunError<F> {
        match self {
            Self::Acquire(error) => RunError::Acquire(error),
            Self::Build(error) => RunError::Build(map(error)),
            Self::Lost { loss, source } => RunError::Lost { loss, source: source.map(map) },
            Self::Publish(error) => RunError::Publish(error),
        }
    }
}
