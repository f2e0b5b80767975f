//! Acquire, renew, release and close.

use super::row::{Entry, Row};
use crate::answer::{AcquireAnswer, Acquired, CloseAnswer, Forgotten, Refusal, RenewAnswer};
use crate::error::StoreError;
use crate::fence::{Epoch, Fence, Generation, ReportId};
use crate::store::{AcquireRequest, CloseRequest};

/// What [`Store::acquire`](crate::store::Store::acquire) does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Acquire {
    /// Nothing but answer.
    Answer(AcquireAnswer),
    /// Take the lease under this generation.
    Take(Generation),
    /// Take nothing: the generation is at the end of its range.
    Exhausted,
}

/// `ledger` is the request's owner in the ledger.
pub(crate) fn acquire(row: Option<&Row>, ledger: Option<&Entry>, request: &AcquireRequest) -> Acquire {
    let Some(row) = row else {
        return Acquire::Answer(AcquireAnswer::Missing);
    };
    if row.epoch < request.min_epoch {
        return Acquire::Answer(AcquireAnswer::StaleHistory { epoch: row.epoch });
    }
    if let Some(entry) = ledger {
        return Acquire::Answer(AcquireAnswer::Ended(entry.ending()));
    }
    if row.is_held() && row.owner == Some(request.owner) {
        return Acquire::Answer(AcquireAnswer::Acquired(Acquired {
            fence: Fence { report: row.report, owner: request.owner, generation: row.generation, epoch: row.epoch },
            remaining: row.remaining(),
            visible: row.visible,
        }));
    }
    if let (Some(wanted), Some(visible)) = (request.wanted, row.visible)
        && visible.revision >= Some(wanted).max(row.floor)
    {
        return Acquire::Answer(AcquireAnswer::AlreadyFresh(visible));
    }
    if let Some(busy) = row.busy() {
        return Acquire::Answer(AcquireAnswer::Busy(busy));
    }
    row.generation.next().map_or(Acquire::Exhausted, Acquire::Take)
}

/// The generation is at the end of its range. It is never wrapped: some databases would do that silently.
pub(crate) fn exhausted(report: ReportId) -> StoreError {
    StoreError::rejected(format!(
        "the generation of report {report} is {}, the last there is, and nothing was changed: provision a new report id and move \
         to it",
        i64::MAX
    ))
}

/// What [`Store::renew`](crate::store::Store::renew) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renew {
    /// Nothing but answer.
    Answer(RenewAnswer),
    /// Extend the lease.
    Extend,
}

/// `ledger` looks the fence's owner up; it is asked only if the lease is not extended.
pub(crate) fn renew<E>(
    row: Option<&Row>,
    fence: &Fence,
    ledger: impl FnOnce() -> Result<Option<Entry>, E>,
) -> Result<Renew, E> {
    let Some(row) = row else {
        return Ok(Renew::Answer(RenewAnswer::Refused(Refusal::Missing)));
    };
    if row.is_held_by(fence) {
        return Ok(Renew::Extend);
    }
    let ending = ledger()?;
    if let Some(receipt) = ending.and_then(|entry| entry.receipt()) {
        return Ok(Renew::Answer(RenewAnswer::Published(receipt)));
    }
    Ok(Renew::Answer(RenewAnswer::Refused(refusal(row, fence, ending.is_some()))))
}

/// Why a lease that is not held by this fence can not be renewed.
fn refusal(row: &Row, fence: &Fence, closed: bool) -> Refusal {
    let forced = row.forced.as_ref().is_some_and(|forced| forced.generation == fence.generation);
    let only_forced_since = forced && Some(row.generation) == fence.generation.next();
    if row.generation > fence.generation && !only_forced_since {
        return Refusal::Superseded { by: row.generation };
    }
    if closed || (row.is_free() && row.generation == fence.generation && row.epoch == fence.epoch) {
        return Refusal::Released;
    }
    if forced {
        return Refusal::Forced;
    }
    if row.epoch != fence.epoch || row.generation < fence.generation {
        return Refusal::StaleEpoch { epoch: row.epoch };
    }
    Refusal::Expired
}

/// Whether [`Store::release`](crate::store::Store::release) frees the row.
pub(crate) fn release(row: Option<&Row>, ledger: Option<&Entry>, fence: &Fence) -> bool {
    ledger.is_none() && row.is_some_and(|row| row.is_held_by(fence))
}

/// What [`Store::close`](crate::store::Store::close) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Close {
    /// Nothing but answer.
    Answer(CloseAnswer),
    /// Write the closing to the ledger, filed under these.
    Write {
        generation: Generation,
        epoch: Epoch,
        /// Free the row too: this owner holds it.
        frees: bool,
    },
}

/// `ledger` is the request's owner in the ledger.
pub(crate) fn close(row: Option<&Row>, ledger: Option<&Entry>, request: &CloseRequest) -> Close {
    if let Some(entry) = ledger {
        return Close::Answer(CloseAnswer::Ended(entry.ending()));
    }
    let Some(row) = row else {
        return Close::Answer(CloseAnswer::NoLongerKnown(Forgotten::Missing));
    };
    if let Some((generation, epoch)) = request.learned
        && let Some(forgotten) = forgotten(row, generation, epoch)
    {
        return Close::Answer(CloseAnswer::NoLongerKnown(forgotten));
    }
    let (generation, epoch) = request.learned.unwrap_or((row.generation, row.epoch));
    Close::Write { generation, epoch, frees: row.owner == Some(request.owner) }
}

/// Whether evidence of this generation may be gone, so that its absence from the ledger proves nothing.
pub(super) fn forgotten(row: &Row, generation: Generation, epoch: Epoch) -> Option<Forgotten> {
    if row.pruned_up_to >= generation {
        return Some(Forgotten::Pruned { up_to: row.pruned_up_to });
    }
    if row.epoch != epoch || row.generation < generation {
        return Some(Forgotten::HistoryReplaced { epoch: row.epoch });
    }
    None
}
