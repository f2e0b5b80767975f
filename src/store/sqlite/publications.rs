//! Publish, with and without an advance, and with a user's own statements before it.

use std::time::Duration;

use rusqlite::named_params;

use super::failure::Failure;
use super::rows::Tx;
use super::utc;
use crate::answer::{NextLease, PublishAnswer, Published};
use crate::fence::{Fence, Owner, SourceRevision};
use crate::store::decide::{self, Entry, Publish, next_generation, whole_millis};
use crate::store::{AdvanceRequest, PublishRequest};

pub(super) fn publish(tx: &Tx<'_>, request: &PublishRequest) -> Result<PublishAnswer, Failure> {
    match decision(tx, request, None)? {
        Publish::Answer(answer) => Ok(answer),
        Publish::Accept => Ok(PublishAnswer::Published(Published { receipt: accept(tx, request)?, next: None })),
    }
}

pub(super) fn publish_and_advance(tx: &Tx<'_>, request: &AdvanceRequest) -> Result<PublishAnswer, Failure> {
    match decision(tx, &request.publish, Some(request.next_owner))? {
        Publish::Answer(answer) => Ok(answer),
        Publish::Accept => {
            let receipt = accept(tx, &request.publish)?;
            let next = advance(tx, request)?;
            Ok(PublishAnswer::Published(Published { receipt, next }))
        }
    }
}

/// What the row and the ledger say, both read under the lock.
pub(super) fn decision(tx: &Tx<'_>, request: &PublishRequest, next_owner: Option<Owner>) -> Result<Publish, Failure> {
    let row = tx.locked_row(request.fence.report)?;
    let by_owner = tx.ended(request.fence.owner)?;
    let by_operation = tx.published(request.operation)?;
    Ok(decide::publish(row.as_ref(), by_owner.as_ref(), by_operation.as_ref(), request, next_owner))
}

/// Writes the publication, its payload and its ledger row, and frees the lease.
pub(super) fn accept(tx: &Tx<'_>, request: &PublishRequest) -> Result<crate::answer::Receipt, Failure> {
    let fence = &request.fence;
    let entry = Entry {
        owner: fence.owner,
        report: fence.report,
        generation: fence.generation,
        epoch: fence.epoch,
        operation: Some(request.operation),
        revision: request.revision,
        ended_at: tx.now_utc(),
    };
    tx.change_one(
        include_str!("sql/publish.sql"),
        named_params! {
            ":report": fence.report.to_string(),
            ":generation": fence.generation.get(),
            ":owner": fence.owner.to_string(),
            ":epoch": fence.epoch.get(),
            ":revision": request.revision.map(SourceRevision::get),
            ":boot": &*tx.now.boot,
            ":now": tx.now.nanos,
            ":now_utc": utc::to_text(entry.ended_at),
        },
    )?;
    tx.change_one(
        include_str!("sql/payload.sql"),
        named_params! { ":report": fence.report.to_string(), ":payload": request.payload.as_str() },
    )?;
    tx.end(&entry)?;
    Ok(crate::answer::Receipt {
        report: entry.report,
        operation: request.operation,
        generation: entry.generation,
        epoch: entry.epoch,
        revision: entry.revision,
        published_at: entry.ended_at,
    })
}

/// Goes on under the next owner, unless that one is over already or there is no further generation.
fn advance(tx: &Tx<'_>, request: &AdvanceRequest) -> Result<Option<NextLease>, Failure> {
    let published = &request.publish.fence;
    let ended = tx.ended(request.next_owner)?.is_some();
    let Some(generation) = next_generation(published.generation, ended) else { return Ok(None) };
    let ttl: Duration = whole_millis(request.ttl);
    tx.change_one(
        include_str!("sql/advance.sql"),
        named_params! {
            ":report": published.report.to_string(),
            ":generation": generation.get(),
            ":owner": request.next_owner.to_string(),
            ":boot": &*tx.now.boot,
            ":until": tx.now.after(ttl),
            ":until_utc": utc::to_text(tx.now.utc + ttl),
            ":now_utc": utc::to_text(tx.now.utc),
        },
    )?;
    let fence = Fence { owner: request.next_owner, generation, ..*published };
    Ok(Some(NextLease { fence, remaining: ttl }))
}
