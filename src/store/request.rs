//! What stores are asked: requests with more than a field or two, the [`Payload`] and the [`Budget`].

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::StoreError;
use crate::fence::{Epoch, Fence, Generation, Holder, OperationId, Owner, ReportId, SourceRevision};

/// By when a store call must have answered.
///
/// A store bounds *all* its waiting by it: for a connection, a lock, an answer. When it is spent before the statement
/// was sent, the answer is [`Unavailable`](crate::StoreErrorKind::Unavailable); after, it is
/// [`Unknown`](crate::StoreErrorKind::Unknown).
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    deadline: Instant,
}

impl Budget {
    /// A budget that ends this long from now.
    #[must_use]
    pub fn within(limit: Duration) -> Self {
        let now = Instant::now();
        // Far enough for any operation, near enough for the arithmetic of every platform's clock.
        let deadline = now.checked_add(limit).unwrap_or_else(|| now + Duration::from_secs(86_400));
        Self { deadline }
    }

    /// What is left; zero once it is spent.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.remaining().is_zero()
    }
}

/// What is published: text, cheap to clone, because a publication whose answer was lost is sent again.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Arc<str>);

impl Payload {
    /// Checks a payload: at most `limit` bytes, and no U+0000, which PostgreSQL's text refuses; so it is refused on every
    /// store.
    ///
    /// # Errors
    /// [`Invalid`](crate::StoreErrorKind::Invalid), which names the size or the position, not the payload.
    pub fn new(text: impl Into<Arc<str>>, limit: usize) -> Result<Self, StoreError> {
        let text = text.into();
        if text.len() > limit {
            return Err(StoreError::invalid(format!(
                "the payload has {} bytes and the limit is {limit}: raise the policy's max_payload, or publish a pointer to \
                 an immutable artefact instead",
                text.len()
            )));
        }
        if let Some(position) = text.bytes().position(|byte| byte == 0) {
            return Err(StoreError::invalid(format!(
                "the payload has U+0000 at byte {position}, which not every database can keep: encode binary payloads as text"
            )));
        }
        Ok(Self(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Payload {
    /// Shows the size only: payloads belong in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Payload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Payload {
    /// Refuses U+0000, like [`Payload::new`]; of any length, because the limit is a policy and whoever reads from a wire has
    /// to bound what it reads anyway.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?, usize::MAX).map_err(serde::de::Error::custom)
    }
}

/// The request of [`Store::acquire`](super::Store::acquire).
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AcquireRequest {
    /// The report.
    pub report: ReportId,
    /// A fresh owner; the same one again only to repeat this same request.
    pub owner: Owner,
    /// How long the lease lasts unless renewed: [`MIN_TTL`](super::MIN_TTL) to [`MAX_TTL`](super::MAX_TTL), whole milliseconds.
    pub ttl: Duration,
    /// The label for people.
    pub holder: Holder,
    /// The least recovery epoch that is acceptable: the highest the caller has seen.
    pub min_epoch: Epoch,
    /// For how long after an expiry nobody may take the lease over: at most [`MAX_TAKEOVER_DELAY`](super::MAX_TAKEOVER_DELAY).
    /// It is the holder's, stored with its lease.
    pub takeover_delay: Duration,
    /// The source revision that the caller would build; `None` to build in any case.
    pub wanted: Option<SourceRevision>,
}

/// The request of [`Store::publish`](super::Store::publish).
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PublishRequest {
    /// The lease under which it is published.
    pub fence: Fence,
    /// The publication's id: the same, sent again, is the same publication.
    pub operation: OperationId,
    /// What is published.
    pub payload: Payload,
    /// The source revision it was built from.
    pub revision: Option<SourceRevision>,
}

/// The request of [`Store::publish_and_advance`](super::Store::publish_and_advance).
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AdvanceRequest {
    /// The publication.
    pub publish: PublishRequest,
    /// Who holds the lease after it: fresh, minted before the first attempt, and not the publishing owner.
    pub next_owner: Owner,
    /// The fresh TTL of that lease.
    pub ttl: Duration,
}

/// The request of [`Store::close`](super::Store::close).
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CloseRequest {
    /// The report.
    pub report: ReportId,
    /// The acquisition to close.
    pub owner: Owner,
    /// Its generation and epoch, if the caller ever learned them. Without them the acquisition cannot have published, so
    /// nothing that was pruned can matter.
    pub learned: Option<(Generation, Epoch)>,
}

/// The request of [`Store::list`](super::Store::list).
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ListRequest {
    /// Go on after this report, in the store's own order of ids; `None` to begin.
    pub after: Option<ReportId>,
    /// How many at most, up to [`MAX_BATCH`](super::MAX_BATCH).
    pub limit: usize,
    /// Only reports that somebody holds, or that a takeover delay still keeps.
    pub leased_only: bool,
}
