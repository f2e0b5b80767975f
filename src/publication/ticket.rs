//! Learning the outcome of a publication later, in another process if need be.

use std::sync::Arc;

use crate::answer::{CloseAnswer, Ending, Forgotten, Receipt};
use crate::engine::Works;
use crate::error::StoreError;
use crate::fence::{Fence, OperationId, Owner};
use crate::store::CloseRequest;

/// What a crashed process needs to learn the outcome of its publication later: serialisable with the feature `serde`.
///
/// Keep it somewhere durable *before* [`Publication::send`](crate::Publication::send), and hand it to
/// [`LeaseSupervisor::resolve`](crate::LeaseSupervisor::resolve) after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ticket {
    /// The lease.
    pub fence: Fence,
    /// The publication.
    pub operation: OperationId,
    /// The owner of the lease after it, if the publication advances.
    #[cfg_attr(feature = "serde", serde(default))]
    pub next_owner: Option<Owner>,
}

/// The certain outcome of a publication. It never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was accepted.
    Published(Receipt),
    /// It was not accepted, and never will be.
    NotPublished,
    /// The evidence was pruned, or the database's history was replaced.
    NoLongerKnown(Forgotten),
}

/// Asks the database for the outcome of a publication, and makes it certain.
pub(crate) async fn resolve(works: &Arc<Works>, ticket: Ticket) -> Result<Outcome, StoreError> {
    let Ticket { fence, operation, next_owner } = ticket;
    if let Some(owner) = next_owner {
        // First, so that a late publication finds it closed and does not hand the lease to nobody.
        let request = CloseRequest { report: fence.report, owner, learned: None };
        works.close(request).await?;
    }
    let learned = Some((fence.generation, fence.epoch));
    let request = CloseRequest { report: fence.report, owner: fence.owner, learned };
    let answer = works.close(request).await?;
    Ok(match answer {
        CloseAnswer::Ended(Ending::Published(receipt)) if receipt.operation == operation => Outcome::Published(receipt),
        CloseAnswer::Ended(_) => Outcome::NotPublished,
        CloseAnswer::NoLongerKnown(why) => Outcome::NoLongerKnown(why),
    })
}
