//! Force release, source revisions, the recovery epoch and pruning.

use std::time::{Duration, SystemTime};

use rusqlite::named_params;

use super::failure::Failure;
use super::rows::Tx;
use super::utc;
use crate::answer::{EpochAnswer, ForceAnswer, RevisionAnswer};
use crate::fence::{Epoch, Holder, ReportId, SourceRevision};
use crate::store::decide::exhausted;

pub(super) fn force_release(tx: &Tx<'_>, report: ReportId, by: &Holder) -> Result<ForceAnswer, Failure> {
    let Some(row) = tx.locked_row(report)? else { return Ok(ForceAnswer::Missing) };
    let generation = row.generation.next().ok_or_else(|| exhausted(report))?;
    tx.change_one(
        include_str!("sql/force_release.sql"),
        named_params! {
            ":report": report.to_string(),
            ":generation": generation.get(),
            ":by": by.as_str(),
            ":now_utc": utc::to_text(tx.now.utc),
        },
    )?;
    Ok(ForceAnswer::Forced { generation, was: row.is_held().then(|| row.busy()).flatten() })
}

pub(super) fn require_revision(
    tx: &Tx<'_>,
    report: ReportId,
    revision: SourceRevision,
) -> Result<RevisionAnswer, Failure> {
    let Some(row) = tx.locked_row(report)? else { return Ok(RevisionAnswer::Missing) };
    tx.change_one(
        include_str!("sql/require_revision.sql"),
        named_params! { ":report": report.to_string(), ":revision": revision.get() },
    )?;
    Ok(RevisionAnswer::Floor(row.floor.max(Some(revision))))
}

pub(super) fn reset_revision(
    tx: &Tx<'_>,
    report: ReportId,
    revision: Option<SourceRevision>,
) -> Result<RevisionAnswer, Failure> {
    let Some(row) = tx.locked_row(report)? else { return Ok(RevisionAnswer::Missing) };
    let generation = row.generation.next().ok_or_else(|| exhausted(report))?;
    tx.change_one(
        include_str!("sql/reset_revision.sql"),
        named_params! {
            ":report": report.to_string(),
            ":generation": generation.get(),
            ":revision": revision.map(SourceRevision::get),
        },
    )?;
    Ok(RevisionAnswer::Floor(revision))
}

pub(super) fn advance_epoch(tx: &Tx<'_>, to: Epoch) -> Result<EpochAnswer, Failure> {
    let from = tx.store_epoch()?;
    if to <= from {
        return Ok(EpochAnswer::NotAbove { current: from });
    }
    let ended: i64 = tx.connection.query_row(
        "SELECT count(*) FROM ReportPublication \
         WHERE LeaseOwner IS NOT NULL AND LeaseBootId = :boot AND LeaseUntilNanos > :now",
        named_params! { ":boot": &*tx.now.boot, ":now": tx.now.nanos },
        |columns| columns.get(0),
    )?;
    tx.change(include_str!("sql/advance_epoch.sql"), named_params! { ":epoch": to.get() })?;
    tx.change_one("UPDATE LeaseholdStore SET RecoveryEpoch = ?1", [to.get()])?;
    Ok(EpochAnswer::Advanced { from, ended_leases: ended.unsigned_abs() })
}

/// By the wall clock: an age outlives boots.
pub(super) fn prune(tx: &Tx<'_>, older_than: Duration) -> Result<u64, Failure> {
    let cutoff = tx.now.utc.checked_sub(older_than).unwrap_or(SystemTime::UNIX_EPOCH);
    let cutoff = utc::to_text(cutoff);
    tx.change(include_str!("sql/prune_mark.sql"), named_params! { ":cutoff": cutoff })?;
    let pruned = tx.change(include_str!("sql/prune_delete.sql"), named_params! { ":cutoff": cutoff })?;
    Ok(u64::try_from(pruned).unwrap_or(u64::MAX))
}
