//! What the functions answer, from columns to the words of the protocol.

use std::time::{Duration, SystemTime};

use tokio_postgres::Row as Columns;
use tokio_postgres::types::FromSqlOwned;
use uuid::Uuid;

use super::failure;
use crate::answer::{Forced, Version, Visible};
use crate::error::StoreError;
use crate::fence::{Epoch, Generation, Holder, OperationId, Owner, ReportId, SourceRevision};
use crate::store::decide::{Entry, Expiry, Row};

/// The type `answer` of `sql/tables.sql`.
#[derive(Debug)]
pub(super) struct Answer {
    /// The clock, read under the lock.
    pub(super) now: SystemTime,
    /// Whether the function did its conditional write.
    pub(super) applied: bool,
    /// The row after rule 3, before that write.
    pub(super) row: Option<Row>,
    /// What the ledger has under the request's owner.
    pub(super) ended: Option<Entry>,
    /// What the ledger has under the request's operation.
    pub(super) used: Option<Entry>,
    /// Whether the ledger has the next owner of an advance.
    pub(super) next_ended: bool,
}

impl Answer {
    /// The answer of an operation: one row, for this owner and operation.
    pub(super) fn one(
        rows: &[Columns],
        owner: Option<Owner>,
        operation: Option<OperationId>,
    ) -> Result<Self, StoreError> {
        match rows {
            [row] => Self::from(row, owner, operation),
            _ => Err(failure::disagreement(true)),
        }
    }

    pub(super) fn from(
        columns: &Columns,
        owner: Option<Owner>,
        operation: Option<OperationId>,
    ) -> Result<Self, StoreError> {
        let now = get(columns, "found_at")?;
        Ok(Self {
            now,
            applied: get(columns, "applied")?,
            row: row(columns, now)?,
            ended: owner.map(|owner| ended(columns, owner)).transpose()?.flatten(),
            used: operation.map(|operation| used(columns, operation)).transpose()?.flatten(),
            next_ended: get::<Option<bool>>(columns, "next_ended")?.unwrap_or(false),
        })
    }

    /// Checks that the function wrote exactly if this library would have.
    pub(super) fn agrees<T>(&self, writes: bool, answer: T) -> Result<T, StoreError> {
        if self.applied == writes { Ok(answer) } else { Err(failure::disagreement(self.applied)) }
    }
}

/// Reads a column.
pub(super) fn get<T: FromSqlOwned>(columns: &Columns, name: &str) -> Result<T, StoreError> {
    // The driver's error names the column and its type, not its value.
    columns.try_get(name).map_err(|error| failure::disagreement(false).with_source(error))
}

fn row(columns: &Columns, now: SystemTime) -> Result<Option<Row>, StoreError> {
    let Some(report) = get::<Option<Uuid>>(columns, "report_id")?.map(ReportId::from_uuid) else { return Ok(None) };
    let epoch = Epoch::new(get(columns, "recovery_epoch")?);
    let published: i64 = get(columns, "published_generation")?;
    let visible = if published > 0 {
        Some(Visible {
            version: Version { epoch, generation: Generation::new(published) },
            revision: get::<Option<i64>>(columns, "source_revision")?.map(SourceRevision::new),
            published_at: get(columns, "published_at")?,
        })
    } else {
        None
    };
    let forced = match get::<Option<i64>>(columns, "forced_generation")? {
        None => None,
        Some(generation) => Some(Forced {
            generation: Generation::new(generation),
            by: holder(report, get(columns, "forced_by")?)?,
            at: get(columns, "forced_at")?,
        }),
    };
    Ok(Some(Row {
        report,
        generation: Generation::new(get(columns, "generation")?),
        epoch,
        owner: get::<Option<Uuid>>(columns, "lease_owner")?.map(Owner::from_uuid),
        expiry: get::<Option<SystemTime>>(columns, "lease_until")?.map(|until| expiry(until, now)),
        holder: get::<Option<String>>(columns, "lease_holder")?.map(|label| holder(report, label)).transpose()?,
        since: get::<Option<SystemTime>>(columns, "lease_acquired_at")?.unwrap_or(SystemTime::UNIX_EPOCH),
        takeover_delay: Duration::from_millis(get::<i64>(columns, "takeover_delay_millis")?.max(0).unsigned_abs()),
        visible,
        floor: get::<Option<i64>>(columns, "source_revision_floor")?.map(SourceRevision::new),
        pruned_up_to: Generation::new(get(columns, "pruned_up_to")?),
        forced,
    }))
}

/// The same comparison as in the functions: an expiry that equals the clock has passed.
fn expiry(until: SystemTime, now: SystemTime) -> Expiry {
    match until.duration_since(now) {
        Ok(left) if !left.is_zero() => Expiry::In(left),
        Ok(_) => Expiry::Passed(Duration::ZERO),
        Err(passed) => Expiry::Passed(passed.duration()),
    }
}

fn ended(columns: &Columns, owner: Owner) -> Result<Option<Entry>, StoreError> {
    let Some(report) = get::<Option<Uuid>>(columns, "ended_report")? else { return Ok(None) };
    Ok(Some(Entry {
        owner,
        report: ReportId::from_uuid(report),
        generation: Generation::new(get(columns, "ended_generation")?),
        epoch: Epoch::new(get(columns, "ended_epoch")?),
        operation: get::<Option<Uuid>>(columns, "ended_operation")?.map(OperationId::from_uuid),
        revision: get::<Option<i64>>(columns, "ended_revision")?.map(SourceRevision::new),
        ended_at: get(columns, "ended_at")?,
    }))
}

fn used(columns: &Columns, operation: OperationId) -> Result<Option<Entry>, StoreError> {
    let Some(owner) = get::<Option<Uuid>>(columns, "used_by")? else { return Ok(None) };
    Ok(Some(Entry {
        owner: Owner::from_uuid(owner),
        report: ReportId::from_uuid(get(columns, "used_report")?),
        generation: Generation::new(get(columns, "used_generation")?),
        epoch: Epoch::new(get(columns, "used_epoch")?),
        operation: Some(operation),
        revision: get::<Option<i64>>(columns, "used_revision")?.map(SourceRevision::new),
        ended_at: get(columns, "used_at")?,
    }))
}

fn holder(report: ReportId, label: String) -> Result<Holder, StoreError> {
    Holder::new(label).map_err(|error| {
        StoreError::rejected(format!(
            "a label of report {report} is one that leasehold never writes: look who edited report_publication, and mend it"
        ))
        .with_source(error)
    })
}
