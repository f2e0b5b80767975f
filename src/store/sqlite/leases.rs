//! Provision, acquire, renew, release and close.

use std::time::Duration;

use rusqlite::named_params;

use super::failure::Failure;
use super::rows::Tx;
use super::utc;
use crate::answer::{
    AcquireAnswer, Acquired, BatchRenewal, CloseAnswer, Ending, ProvisionAnswer, ReleaseAnswer, RenewAnswer,
};
use crate::fence::{Epoch, Fence, Generation, Owner, ReportId};
use crate::store::decide::{self, Acquire, Close, Entry, Renew, Row, exhausted, whole_millis};
use crate::store::{AcquireRequest, CloseRequest};

pub(super) fn provision(tx: &Tx<'_>, report: ReportId) -> Result<ProvisionAnswer, Failure> {
    let created = tx.change(include_str!("sql/provision.sql"), named_params! { ":report": report.to_string() })?;
    Ok(if created == 1 { ProvisionAnswer::Created } else { ProvisionAnswer::Existed })
}

pub(super) fn acquire(tx: &Tx<'_>, request: &AcquireRequest) -> Result<AcquireAnswer, Failure> {
    let row = tx.locked_row(request.report)?;
    let ledger = tx.ended(request.owner)?;
    match (decide::acquire(row.as_ref(), ledger.as_ref(), request), row) {
        (Acquire::Answer(answer), _) => Ok(answer),
        (Acquire::Take(generation), Some(row)) => take(tx, &row, generation, request),
        _ => Err(exhausted(request.report).into()),
    }
}

fn take(tx: &Tx<'_>, row: &Row, generation: Generation, request: &AcquireRequest) -> Result<AcquireAnswer, Failure> {
    let ttl = whole_millis(request.ttl);
    tx.change_one(
        include_str!("sql/acquire.sql"),
        named_params! {
            ":report": request.report.to_string(),
            ":generation": generation.get(),
            ":owner": request.owner.to_string(),
            ":boot": &*tx.now.boot,
            ":now": tx.now.nanos,
            ":now_utc": utc::to_text(tx.now.utc),
            ":until": tx.now.after(ttl),
            ":until_utc": utc::to_text(tx.now.utc + ttl),
            ":holder": request.holder.as_str(),
            ":takeover_delay": millis(request.takeover_delay),
        },
    )?;
    let fence = Fence { report: row.report, owner: request.owner, generation, epoch: row.epoch };
    Ok(AcquireAnswer::Acquired(Acquired { fence, remaining: ttl, visible: row.visible }))
}

pub(super) fn renew(tx: &Tx<'_>, fence: &Fence, ttl: Duration) -> Result<RenewAnswer, Failure> {
    let row = tx.locked_row(fence.report)?;
    match decide::renew(row.as_ref(), fence, || tx.ended(fence.owner))? {
        Renew::Answer(answer) => Ok(answer),
        Renew::Extend => {
            let left = row.map_or(Duration::ZERO, |row| row.remaining());
            extend(tx, fence, ttl)?;
            Ok(RenewAnswer::Renewed { remaining: left.max(whole_millis(ttl)) })
        }
    }
}

fn extend(tx: &Tx<'_>, fence: &Fence, ttl: Duration) -> Result<(), Failure> {
    let ttl = whole_millis(ttl);
    tx.change_one(
        include_str!("sql/renew.sql"),
        named_params! {
            ":report": fence.report.to_string(),
            ":generation": fence.generation.get(),
            ":owner": fence.owner.to_string(),
            ":epoch": fence.epoch.get(),
            ":boot": &*tx.now.boot,
            ":now": tx.now.nanos,
            ":until": tx.now.after(ttl),
            ":until_utc": utc::to_text(tx.now.utc + ttl),
        },
    )
}

/// One transaction for all: one fsync, and every answer by the same clock reading. There is one lock for the whole file, so no
/// row is ever skipped.
pub(super) fn renew_many(tx: &Tx<'_>, fences: &[Fence], ttl: Duration) -> Result<Vec<BatchRenewal>, Failure> {
    fences.iter().map(|fence| renew(tx, fence, ttl).map(BatchRenewal::Answered)).collect()
}

pub(super) fn release(tx: &Tx<'_>, fence: &Fence) -> Result<ReleaseAnswer, Failure> {
    let row = tx.locked_row(fence.report)?;
    let ledger = tx.ended(fence.owner)?;
    if !decide::release(row.as_ref(), ledger.as_ref(), fence) {
        return Ok(ReleaseAnswer::AlreadyOver);
    }
    free(tx, fence.report, fence.owner)?;
    write_closed(tx, fence.report, fence.owner, fence.generation, fence.epoch)?;
    Ok(ReleaseAnswer::Released)
}

pub(super) fn close(tx: &Tx<'_>, request: &CloseRequest) -> Result<CloseAnswer, Failure> {
    let row = tx.locked_row(request.report)?;
    let ledger = tx.ended(request.owner)?;
    match decide::close(row.as_ref(), ledger.as_ref(), request) {
        Close::Answer(answer) => Ok(answer),
        Close::Write { generation, epoch, frees } => {
            if frees {
                free(tx, request.report, request.owner)?;
            }
            write_closed(tx, request.report, request.owner, generation, epoch)?;
            Ok(CloseAnswer::Ended(Ending::Closed))
        }
    }
}

fn free(tx: &Tx<'_>, report: ReportId, owner: Owner) -> Result<(), Failure> {
    tx.change_one(
        include_str!("sql/free.sql"),
        named_params! { ":report": report.to_string(), ":owner": owner.to_string() },
    )
}

fn write_closed(
    tx: &Tx<'_>,
    report: ReportId,
    owner: Owner,
    generation: Generation,
    epoch: Epoch,
) -> Result<(), Failure> {
    let ended_at = tx.now_utc();
    tx.end(&Entry { owner, report, generation, epoch, operation: None, revision: None, ended_at })
}

/// Whole milliseconds of a time that was checked to be short.
fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
