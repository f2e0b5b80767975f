//! Rows and ledger entries, from result columns to the words of the protocol.

use std::time::{Duration, SystemTime};

use tiberius::{FromSql, Row as Columns};
use uuid::Uuid;

use crate::answer::{Forced, Version, Visible};
use crate::error::StoreError;
use crate::fence::{Epoch, Generation, Holder, OperationId, Owner, ReportId, SourceRevision};
use crate::store::decide::{Entry, Expiry, Row};

/// What `LeaseholdFound` answers: everything a decision needs, as it was under the lock.
#[derive(Debug)]
pub(super) struct Found {
    /// The database's clock.
    pub(super) now: SystemTime,
    pub(super) row: Option<Row>,
    /// The ledger's entry of the request's owner.
    pub(super) ended: Option<Entry>,
    /// The ledger's entry of the request's operation.
    pub(super) used: Option<Entry>,
}

impl Found {
    pub(super) fn read(columns: &Columns) -> Result<Self, StoreError> {
        Ok(Self {
            now: time(required::<i64>(columns, "NowMicros")?),
            row: row(columns)?,
            ended: entry(columns, &ENDED)?,
            used: entry(columns, &USED)?,
        })
    }
}

/// A report's row; `None` if there is none.
pub(super) fn row(columns: &Columns) -> Result<Option<Row>, StoreError> {
    let Some(report) = optional::<Uuid>(columns, "ReportId")? else { return Ok(None) };
    let now: i64 = required(columns, "NowMicros")?;
    let epoch = Epoch::new(required(columns, "RecoveryEpoch")?);
    Ok(Some(Row {
        report: ReportId::from_uuid(report),
        generation: Generation::new(required(columns, "Generation")?),
        epoch,
        owner: optional(columns, "LeaseOwner")?.map(Owner::from_uuid),
        expiry: optional::<i64>(columns, "LeaseUntilMicros")?.map(|until| expiry(until, now)),
        holder: optional::<&str>(columns, "LeaseHolder")?.map(|label| holder(label, "LeaseHolder")).transpose()?,
        since: optional::<i64>(columns, "LeaseAcquiredAtMicros")?.map_or(SystemTime::UNIX_EPOCH, time),
        takeover_delay: Duration::from_millis(
            u64::try_from(required::<i32>(columns, "TakeoverDelayMillis")?).unwrap_or(0),
        ),
        visible: visible(columns, epoch)?,
        floor: optional(columns, "SourceRevisionFloor")?.map(SourceRevision::new),
        pruned_up_to: Generation::new(required(columns, "PrunedUpTo")?),
        forced: forced(columns)?,
    }))
}

/// What is published; `None` if nothing ever was.
pub(super) fn visible(columns: &Columns, epoch: Epoch) -> Result<Option<Visible>, StoreError> {
    let generation: i64 = required(columns, "PublishedGeneration")?;
    if generation <= 0 {
        return Ok(None);
    }
    Ok(Some(Visible {
        version: Version { epoch, generation: Generation::new(generation) },
        revision: optional(columns, "SourceRevision")?.map(SourceRevision::new),
        published_at: time(required(columns, "PublishedAtMicros")?),
    }))
}

fn forced(columns: &Columns) -> Result<Option<Forced>, StoreError> {
    let Some(generation) = optional::<i64>(columns, "ForcedGeneration")? else { return Ok(None) };
    Ok(Some(Forced {
        generation: Generation::new(generation),
        by: holder(required(columns, "ForcedBy")?, "ForcedBy")?,
        at: time(required(columns, "ForcedAtMicros")?),
    }))
}

/// The columns of a ledger entry: report, owner, generation, epoch, operation, revision, when.
type EntryColumns = [&'static str; 7];

const ENDED: EntryColumns = [
    "EndedReportId",
    "EndedOwner",
    "EndedGeneration",
    "EndedEpoch",
    "EndedOperationId",
    "EndedRevision",
    "EndedAtMicros",
];

const USED: EntryColumns =
    ["UsedReportId", "UsedOwner", "UsedGeneration", "UsedEpoch", "UsedOperationId", "UsedRevision", "UsedAtMicros"];

/// The ledger's entry of a fence's owner, from a row of `LeaseholdRenewMany`.
pub(super) fn ended(columns: &Columns) -> Result<Option<Entry>, StoreError> {
    entry(columns, &ENDED)
}

fn entry(columns: &Columns, names: &EntryColumns) -> Result<Option<Entry>, StoreError> {
    let [report, owner, generation, epoch, operation, revision, at] = names;
    let Some(report) = optional::<Uuid>(columns, report)? else { return Ok(None) };
    Ok(Some(Entry {
        owner: Owner::from_uuid(required(columns, owner)?),
        report: ReportId::from_uuid(report),
        generation: Generation::new(required(columns, generation)?),
        epoch: Epoch::new(required(columns, epoch)?),
        operation: optional(columns, operation)?.map(OperationId::from_uuid),
        revision: optional(columns, revision)?.map(SourceRevision::new),
        ended_at: time(required(columns, at)?),
    }))
}

/// Exact: every time that decides is a whole microsecond.
fn expiry(until: i64, now: i64) -> Expiry {
    let apart = Duration::from_micros(until.abs_diff(now));
    if until > now { Expiry::In(apart) } else { Expiry::Passed(apart) }
}

/// A time from microseconds since 1970. What lies before is nothing that leasehold wrote.
pub(super) fn time(micros: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// A column that is never NULL.
pub(super) fn required<'c, T: FromSql<'c>>(columns: &'c Columns, name: &str) -> Result<T, StoreError> {
    optional(columns, name)?.ok_or_else(|| unreadable(name))
}

/// A column that may be NULL.
pub(super) fn optional<'c, T: FromSql<'c>>(columns: &'c Columns, name: &str) -> Result<Option<T>, StoreError> {
    columns.try_get(name).map_err(|error| unreadable(name).with_source(error))
}

fn holder(label: &str, column: &str) -> Result<Holder, StoreError> {
    Holder::new(label).map_err(|error| unreadable(column).with_source(error))
}

/// Unknown: a procedure that answers what is not understood may have written. Only after a read it is [certain](super::reading::certain).
fn unreadable(column: &str) -> StoreError {
    StoreError::unknown(format!(
        "the column {column} of an answer holds what leasehold never writes: look who edited the table or the procedures, and run \
         install() for the latter"
    ))
}
