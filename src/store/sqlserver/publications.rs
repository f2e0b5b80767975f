//! Publish, with and without an advance.

use super::call::{Answer, Argument, Call};
use super::found::required;
use super::leases::{agree, fenced, found, millis};
use super::{Lane, SqlServerStore};
use crate::answer::{NextLease, PublishAnswer, Published, Receipt};
use crate::error::StoreError;
use crate::fence::{Fence, Owner};
use crate::store::decide::{self, Publish, whole_millis};
use crate::store::{AdvanceRequest, Budget, PublishRequest};

impl SqlServerStore {
    pub(super) async fn publish_report(
        &self,
        request: PublishRequest,
        budget: Budget,
    ) -> Result<PublishAnswer, StoreError> {
        let answer = self.call(Lane::Others, budget, call(&request)).await?;
        answered(&answer, &request, None)
    }

    pub(super) async fn publish_report_and_advance(
        &self,
        request: AdvanceRequest,
        budget: Budget,
    ) -> Result<PublishAnswer, StoreError> {
        let call = call(&request.publish)
            .with("@NextOwner", Argument::Id(*request.next_owner.as_uuid()))
            .with("@TtlMillis", millis(whole_millis(request.ttl)));
        let answer = self.call(Lane::Others, budget, call).await?;
        answered(&answer, &request.publish, Some(&request))
    }
}

/// The call of a publication.
pub(super) fn call(request: &PublishRequest) -> Call {
    fenced(Call::writing("LeaseholdPublish"), &request.fence)
        .with("@OperationId", Argument::Id(*request.operation.as_uuid()))
        .with("@Payload", Argument::Payload(request.payload.clone()))
        .with_some("@Revision", request.revision.map(|revision| Argument::Long(revision.get())))
}

/// What the publication answers, given what was found before it.
pub(super) fn answered(
    answer: &Answer,
    request: &PublishRequest,
    advance: Option<&AdvanceRequest>,
) -> Result<PublishAnswer, StoreError> {
    let found = found(answer, request.fence.report)?;
    let next_owner: Option<Owner> = advance.map(|advance| advance.next_owner);
    let decided = decide::publish(found.row.as_ref(), found.ended.as_ref(), found.used.as_ref(), request, next_owner);
    agree(answer, decided == Publish::Accept)?;
    if let Publish::Answer(answer) = decided {
        return Ok(answer);
    }
    let receipt = Receipt {
        report: request.fence.report,
        operation: request.operation,
        generation: request.fence.generation,
        epoch: request.fence.epoch,
        revision: request.revision,
        published_at: found.now,
    };
    Ok(PublishAnswer::Published(Published { receipt, next: next(answer, request, advance)? }))
}

/// The lease that goes on, if the procedure says so: whether the next owner was closed already is known there only.
fn next(
    answer: &Answer,
    request: &PublishRequest,
    advance: Option<&AdvanceRequest>,
) -> Result<Option<NextLease>, StoreError> {
    let advanced = answer.outcome().map(|columns| required::<i32>(columns, "Advanced")).transpose()?;
    Ok(match (advance, request.fence.generation.next()) {
        (Some(advance), Some(generation)) if advanced == Some(1) => Some(NextLease {
            fence: Fence { owner: advance.next_owner, generation, ..request.fence },
            remaining: whole_millis(advance.ttl),
        }),
        _ => None,
    })
}
