//! Publish, with and without an advance.

use super::lease::forgotten;
use super::row::{Entry, Row};
use crate::answer::{Forgotten, NextLease, PublishAnswer, Published, Refusal};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use crate::fence::Generation;
use crate::fence::{Fence, Owner};
use crate::store::PublishRequest;

/// What [`Store::publish`](crate::store::Store::publish) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Publish {
    /// Nothing but answer.
    Answer(PublishAnswer),
    /// Accept the publication.
    Accept,
}

/// `by_owner` and `by_operation` are what the ledger has under the request's owner and operation; `next_owner` is an
/// advance's.
pub(crate) fn publish(
    row: Option<&Row>,
    by_owner: Option<&Entry>,
    by_operation: Option<&Entry>,
    request: &PublishRequest,
    next_owner: Option<Owner>,
) -> Publish {
    if let Some(entry) = by_owner {
        return Publish::Answer(already_ended(entry, row, request, next_owner));
    }
    if let Some(entry) = by_operation {
        return Publish::Answer(PublishAnswer::Refused(Refusal::OperationReused { generation: entry.generation }));
    }
    let fence = &request.fence;
    let Some(row) = row else {
        return Publish::Answer(PublishAnswer::NoLongerKnown(Forgotten::Missing));
    };
    if let Some(forgotten) = forgotten(row, fence.generation, fence.epoch) {
        return Publish::Answer(PublishAnswer::NoLongerKnown(forgotten));
    }
    if let Some(refusal) = refusal(row, request) {
        return Publish::Answer(PublishAnswer::Refused(refusal));
    }
    if row.visible.is_some_and(|visible| visible.version.generation >= fence.generation) {
        return Publish::Answer(PublishAnswer::NoLongerKnown(Forgotten::HistoryReplaced { epoch: row.epoch }));
    }
    Publish::Accept
}

/// The answer to an owner that the ledger knows.
fn already_ended(entry: &Entry, row: Option<&Row>, request: &PublishRequest, next: Option<Owner>) -> PublishAnswer {
    match entry.receipt() {
        Some(receipt) if receipt.operation == request.operation => {
            let next = next.zip(row).and_then(|(owner, row)| going_on(row, owner));
            PublishAnswer::AlreadyPublished(Published { receipt, next })
        }
        Some(receipt) => PublishAnswer::Refused(Refusal::GenerationPublished { operation: receipt.operation }),
        None => PublishAnswer::Refused(Refusal::Closed),
    }
}

/// What remains of the next owner's lease, if that one holds the row.
fn going_on(row: &Row, owner: Owner) -> Option<NextLease> {
    let fence = Fence { report: row.report, owner, generation: row.generation, epoch: row.epoch };
    row.is_held_by(&fence).then(|| NextLease { fence, remaining: row.remaining() })
}

/// Why the row does not accept this publication.
fn refusal(row: &Row, request: &PublishRequest) -> Option<Refusal> {
    let fence = &request.fence;
    if row.forced.as_ref().is_some_and(|forced| forced.generation == fence.generation) {
        return Some(Refusal::Forced);
    }
    if row.generation > fence.generation || row.owner.is_some_and(|owner| owner != fence.owner) {
        return Some(Refusal::Superseded { by: row.generation });
    }
    if row.is_free() {
        return Some(Refusal::Released);
    }
    if !row.is_held_by(fence) {
        return Some(Refusal::Expired);
    }
    if let Some(required) = row.required_revision().filter(|&required| request.revision < Some(required)) {
        return Some(Refusal::StaleSource { required });
    }
    None
}

/// The generation under which an advance goes on; `None` if the lease ends with the publication.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn next_generation(generation: Generation, next_owner_ended: bool) -> Option<Generation> {
    if next_owner_ended { None } else { generation.next() }
}
