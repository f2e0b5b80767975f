//! Why a publication did not succeed (yet).

use super::Ticket;
use crate::answer::{Forgotten, Refusal};
use crate::error::StoreError;
use crate::loss::Loss;

/// Why a publication did not succeed (yet).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The lease is over, and the payload was surely not published: discard it, and build again under a new lease.
    #[error("not published: {0}")]
    Lost(#[source] Loss),
    /// The database refused it: surely not published.
    #[error("the database refused the publication: {0}")]
    Refused(#[source] Refusal),
    /// Not known yet. Send it again, resolve it, or keep the ticket.
    #[error("{0}")]
    Unresolved(#[source] UnresolvedPublication),
    /// The evidence is gone: whether it was published can no longer be known.
    #[error("whether it was published is no longer known: {0}")]
    NoLongerKnown(#[source] Forgotten),
    /// The database could not be reached: surely not published yet.
    #[error("not published, the database is unavailable: {0}")]
    Unavailable(#[source] StoreError),
    /// The store refuses to serve until something is mended: surely not published.
    #[error("not published: {0}")]
    Rejected(#[source] StoreError),
    /// This payload cannot be published: nothing was sent.
    #[error("this cannot be published: {0}")]
    Invalid(#[source] StoreError),
}

impl PublishError {
    /// Whether this worker's lease is over, as the client or the database found: the build is to be discarded, and surely was
    /// not published.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused(refusal) => !matches!(refusal, Refusal::StaleSource { .. }),
            _ => false,
        }
    }
}

/// A publication whose outcome is not known yet, with what is needed to learn it.
#[derive(Debug, thiserror::Error)]
#[error("whether generation {} of report {} was published is not known yet: {source}", .ticket.fence.generation, .ticket.fence.report)]
pub struct UnresolvedPublication {
    ticket: Ticket,
    source: Box<StoreError>,
}

impl UnresolvedPublication {
    pub(super) fn new(ticket: Ticket, source: StoreError) -> Self {
        Self { ticket, source: Box::new(source) }
    }

    /// For [`LeaseSupervisor::resolve`](crate::LeaseSupervisor::resolve).
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }
}
