//! What stores answer. Every answer is a fact about the row at the moment its lock was held, by the database's clock.
//!
//! A store's *errors* are in [`StoreError`](crate::StoreError); a refusal is an answer, not an error.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::fence::{Epoch, Fence, Generation, Holder, OperationId, ReportId, SourceRevision};

mod operators;

pub use operators::{CheckReport, EpochAnswer, ForceAnswer, Forced, LeaseView, ReportStatus, RevisionAnswer};

/// Which publication is visible: readers compare it to learn whether something new is there.
///
/// Ordered by epoch, then generation. The epoch is the *row's*, not that of the publication: when a history is replaced,
/// every copy that a reader has may be of the lost one, so all of them count as older once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Version {
    /// The history in which it is visible: the row's recovery epoch.
    pub epoch: Epoch,
    /// The generation that supplied it.
    pub generation: Generation,
}

/// What is published now, without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Visible {
    /// Which publication it is.
    pub version: Version,
    /// The source revision that its publisher claimed; `None` if it claimed none, or after a reset.
    pub revision: Option<SourceRevision>,
    /// When, by the database's clock; for people.
    pub published_at: SystemTime,
}

/// The durable outcome of one accepted publication, as the ledger has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Receipt {
    /// The report.
    pub report: ReportId,
    /// The publication's id.
    pub operation: OperationId,
    /// The generation it was published under.
    pub generation: Generation,
    /// The history it belongs to.
    pub epoch: Epoch,
    /// The source revision it carried.
    pub revision: Option<SourceRevision>,
    /// When, by the database's clock; for people.
    pub published_at: SystemTime,
}

/// How an acquisition ended, as the ledger has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Ending {
    /// Its one publication was accepted.
    Published(Receipt),
    /// It was closed or released without a publication, and can publish no more.
    Closed,
}

/// The answer of `provision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ProvisionAnswer {
    /// The row is new.
    Created,
    /// The row was there and was not touched.
    Existed,
}

/// The answer of `acquire`, in the order in which a store looks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum AcquireAnswer {
    /// The report was never provisioned.
    Missing,
    /// The row's epoch is below the caller's minimum: this database is an older history than one the caller has seen.
    StaleHistory {
        /// The row's epoch.
        epoch: Epoch,
    },
    /// This owner's acquisition is over: the request is a late duplicate.
    Ended(Ending),
    /// What is visible is at least as new as what was wanted and what is required: there is nothing to build.
    AlreadyFresh(Visible),
    /// Somebody else holds the lease, or held it until it expired within its takeover delay.
    Busy(Busy),
    /// The lease is this owner's. Also the answer to a repeated request of an owner that still holds it: then with the
    /// same generation and what remains, and no new TTL.
    Acquired(Acquired),
}

/// Who holds a lease, for people and for back-off.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Busy {
    /// The label that the holder gave.
    pub holder: Holder,
    /// When it acquired, by the database's clock.
    pub since: SystemTime,
    /// How long until the lease can be taken at the earliest, its takeover delay included, rounded down to whole
    /// milliseconds: zero means less than a millisecond.
    pub remaining: Duration,
}

/// A lease that was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Acquired {
    /// What every later request carries.
    pub fence: Fence,
    /// How long it still lasts by the database's clock, rounded down to whole milliseconds.
    pub remaining: Duration,
    /// What is published now, if anything ever was.
    pub visible: Option<Visible>,
}

/// The answer of `renew`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RenewAnswer {
    /// Extended: the expiry is the later of the old one and now + TTL.
    Renewed {
        /// How long the lease lasts now, rounded down to whole milliseconds.
        remaining: Duration,
    },
    /// The lease was ended by this acquisition's own publication.
    Published(Receipt),
    /// Not extended, and never again.
    Refused(Refusal),
}

/// One answer of `renew_many`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum BatchRenewal {
    /// The same as `renew` would have said.
    Answered(RenewAnswer),
    /// The row was locked by somebody else: nothing is known and nothing is lost; renew it alone.
    Skipped,
}

/// Why a store refused a renewal or a publication.
///
/// A refusal is final for its fence, except [`StaleSource`](Self::StaleSource), which leaves the lease as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Refusal {
    /// The report's row does not exist.
    #[error("the report's row does not exist (any more)")]
    Missing,
    /// A later acquisition has the report.
    #[error("superseded by generation {by}")]
    Superseded {
        /// The row's generation.
        by: Generation,
    },
    /// This acquisition was released or closed.
    #[error("this lease was released")]
    Released,
    /// An operator took the lease away.
    #[error("an operator released this lease by force")]
    Forced,
    /// The row belongs to another database history than the fence.
    #[error("the row is in recovery epoch {epoch}, another database history than this lease")]
    StaleEpoch {
        /// The row's epoch.
        epoch: Epoch,
    },
    /// The lease had expired by the database's clock.
    #[error("the lease had expired by the database's clock")]
    Expired,
    /// This generation's one publication was another one.
    #[error("this generation was already published, by operation {operation}")]
    GenerationPublished {
        /// The publication that was accepted.
        operation: OperationId,
    },
    /// This operation id was already used by another acquisition.
    #[error("this operation id was already used, by generation {generation}")]
    OperationReused {
        /// The generation that it was published under.
        generation: Generation,
    },
    /// This acquisition was closed, so that no publication of it can be accepted any more.
    #[error("this acquisition was closed before the publication arrived")]
    Closed,
    /// The payload was built from older source data than what is required or visible.
    #[error("its source revision is missing or below {required}, which is required or already visible")]
    StaleSource {
        /// The least revision that would be accepted.
        required: SourceRevision,
    },
}

/// Why an outcome is no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Forgotten {
    /// The ledger was pruned up to this generation.
    #[error("the ledger was pruned up to generation {up_to}")]
    Pruned {
        /// The highest generation of which evidence was pruned.
        up_to: Generation,
    },
    /// The row belongs to another database history.
    #[error("the database's history was replaced (it is in recovery epoch {epoch})")]
    HistoryReplaced {
        /// The row's epoch.
        epoch: Epoch,
    },
    /// The row itself is gone.
    #[error("the report's row does not exist (any more)")]
    Missing,
}

/// The answer of `publish` and `publish_and_advance`, in the order in which a store looks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum PublishAnswer {
    /// This same operation was accepted before: the payload was not written again.
    AlreadyPublished(Published),
    /// Not accepted.
    Refused(Refusal),
    /// Whether it was accepted is no longer known; it was not accepted now.
    NoLongerKnown(Forgotten),
    /// Accepted now.
    Published(Published),
}

/// An accepted publication, and the lease that goes on after it, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Published {
    /// The durable outcome.
    pub receipt: Receipt,
    /// After `publish_and_advance`: the lease under its next owner and generation, if that one is held now.
    pub next: Option<NextLease>,
}

/// The lease that goes on after [`publish_and_advance`](crate::store::Store::publish_and_advance).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NextLease {
    /// The fence of the new generation.
    pub fence: Fence,
    /// How long it lasts, rounded down to whole milliseconds.
    pub remaining: Duration,
}

/// The answer of `close`: certain, and the same for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CloseAnswer {
    /// How the acquisition ended. If it was still open, it is [`Ending::Closed`] from now on.
    Ended(Ending),
    /// The evidence is gone.
    NoLongerKnown(Forgotten),
}

/// The answer of `release`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ReleaseAnswer {
    /// The lease was held by exactly this fence and is free now.
    Released,
    /// It was over before: published, released, expired, superseded, forced. Never an error.
    AlreadyOver,
}

/// The answer of `read`.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ReadAnswer {
    /// The report was never provisioned.
    Missing,
    /// Nothing was ever published.
    Unpublished,
    /// What is visible is not newer than what the caller has.
    NotNewer(Visible),
    /// The visible payload, read in one snapshot with its version.
    Found {
        /// What it is.
        visible: Visible,
        /// The payload.
        payload: String,
    },
}

impl fmt::Debug for ReadAnswer {
    /// Shows the payload's size only: payloads belong in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("Missing"),
            Self::Unpublished => f.write_str("Unpublished"),
            Self::NotNewer(visible) => f.debug_tuple("NotNewer").field(visible).finish(),
            Self::Found { visible, payload } => {
                f.debug_struct("Found").field("visible", visible).field("payload_bytes", &payload.len()).finish()
            }
        }
    }
}

/// What a report's row says without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Metadata {
    /// The generation of the latest acquisition (or force release); 0 before the first.
    pub generation: Generation,
    /// The row's recovery epoch.
    pub epoch: Epoch,
    /// What is published now.
    pub visible: Option<Visible>,
    /// The least source revision that a publication must have.
    pub revision_floor: Option<SourceRevision>,
    /// The highest generation of which evidence was pruned; 0 if none was.
    pub pruned_up_to: Generation,
}
