//! [`Loss`]: that a lease is over, why, and on what evidence. One-way: what was lost once stays lost.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::answer::Refusal;
use crate::error::StoreError;
use crate::fence::{Epoch, Fence, Generation};

/// Why a lease is over for this client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// The database: a later acquisition has the report.
    #[error("superseded by generation {by}")]
    Superseded {
        /// The later generation.
        by: Generation,
    },
    /// The database: the lease had expired before a renewal arrived.
    #[error("expired by the database's clock")]
    Expired,
    /// The database: an operator released it by force.
    #[error("released by force by an operator")]
    Forced,
    /// The database: the report's row does not exist any more.
    #[error("the report's row does not exist any more")]
    Missing,
    /// The database: its history was replaced.
    #[error("the database is in recovery epoch {epoch}, another history than this lease")]
    StaleEpoch {
        /// The row's epoch.
        epoch: Epoch,
    },
    /// The local deadline passed without a confirmed renewal. The database may not have noticed yet.
    #[error("the local deadline passed without a confirmed renewal")]
    DeadlinePassed,
    /// The build made no progress for longer than the policy's `stall_after`.
    #[error("the build made no progress for longer than stall_after")]
    Stalled,
    /// The lease was held for longer than the policy's `max_hold`.
    #[error("held for longer than max_hold")]
    HeldTooLong,
    /// The store refused to serve renewals for a reason that will not mend itself.
    #[error("the store rejected the renewal for good")]
    StoreRejected,
    /// The renewal task panicked, or the runtime it ran on was shut down.
    #[error("the renewal task died")]
    RenewalDied,
    /// The supervisor was shut down.
    #[error("the supervisor was shut down")]
    Shutdown,
    /// Its own publication ended it: a success, not a failure.
    #[error("ended by its own publication")]
    Published,
    /// Its holder released or dropped it.
    #[error("released by its holder")]
    Released,
    /// The database: somebody else closed it, by resolving its ticket while it was held, or by releasing its fence.
    #[error("closed from outside, by a recovery that resolved its ticket or by a release of its fence")]
    Closed,
}

impl LossReason {
    /// The reason that a refusal of the database gives.
    pub(crate) fn of(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Superseded { by } => Self::Superseded { by },
            Refusal::Expired => Self::Expired,
            Refusal::Forced => Self::Forced,
            Refusal::Missing => Self::Missing,
            Refusal::StaleEpoch { epoch } => Self::StaleEpoch { epoch },
            Refusal::GenerationPublished { .. } | Refusal::OperationReused { .. } => Self::Published,
            Refusal::Released | Refusal::Closed => Self::Closed,
            // Leaves the lease as it is; whoever asks anyway has no lease to go on with.
            Refusal::StaleSource { .. } => Self::Released,
        }
    }

    /// Whether the database itself said so: then it needs no release.
    pub(crate) fn is_known_to_database(self) -> bool {
        matches!(
            self,
            Self::Superseded { .. }
                | Self::Closed
                | Self::Expired
                | Self::Forced
                | Self::Missing
                | Self::StaleEpoch { .. }
                | Self::Published
        )
    }

    /// Whether the holder itself ended the lease, by publishing or releasing it.
    #[must_use]
    pub fn is_own_doing(self) -> bool {
        matches!(self, Self::Published | Self::Released)
    }
}

/// A lease that is over, with the evidence. Cheap to clone.
#[derive(Clone)]
pub struct Loss(Arc<Evidence>);

/// What is known about a loss.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) fence: Fence,
    pub(crate) reason: LossReason,
    /// From when the last confirmed request was *sent* to the loss.
    pub(crate) since_confirmed: Duration,
    /// From the local deadline to the loss; zero if the deadline was still to come.
    pub(crate) past_deadline: Duration,
    pub(crate) last_error: Option<Arc<StoreError>>,
}

impl Loss {
    pub(crate) fn new(evidence: Evidence) -> Self {
        Self(Arc::new(evidence))
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> LossReason {
        self.0.reason
    }

    /// Which lease.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.0.fence
    }

    /// How old the last confirmed renewal (or the acquisition) was, counted from when it was sent.
    #[must_use]
    pub fn since_confirmed(&self) -> Duration {
        self.0.since_confirmed
    }

    /// By how much the local deadline had passed; zero if the loss was known before it.
    #[must_use]
    pub fn past_deadline(&self) -> Duration {
        self.0.past_deadline
    }

    /// The error of the latest renewal attempt since the last confirmed one, if there was one.
    #[must_use]
    pub fn last_error(&self) -> Option<&StoreError> {
        self.0.last_error.as_deref()
    }
}

impl fmt::Debug for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Evidence { fence, reason, since_confirmed, past_deadline, last_error } = &*self.0;
        f.debug_struct("Loss")
            .field("fence", fence)
            .field("reason", reason)
            .field("since_confirmed", since_confirmed)
            .field("past_deadline", past_deadline)
            .field("last_error", last_error)
            .finish()
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Evidence { fence, reason, since_confirmed, .. } = &*self.0;
        write!(
            f,
            "the lease on report {} (generation {}) is over: {reason} ({since_confirmed:.1?} after it was last confirmed); discard \
             what was built under it",
            fence.report, fence.generation
        )
    }
}

impl Error for Loss {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.last_error.as_deref().map(|error| error as _)
    }
}
