//! Rows and ledger entries, from columns to the words of the protocol and back.

use std::fmt::Display;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension, Params, Row as Columns, named_params};

use super::clock::Now;
use super::failure::Failure;
use super::user::UserGuard;
use super::utc;
use crate::answer::{Forced, Version, Visible};
use crate::error::StoreError;
use crate::fence::{Epoch, Generation, Holder, OperationId, Owner, ReportId, SourceRevision};
use crate::store::decide::{Entry, Row};

/// A transaction, with the clock as it was when the lock was had.
pub(super) struct Tx<'c> {
    pub(super) connection: &'c Connection,
    pub(super) guard: &'c UserGuard,
    pub(super) now: Now,
}

impl Tx<'_> {
    /// The report's row as it is.
    pub(super) fn row(&self, report: ReportId) -> Result<Option<Row>, Failure> {
        let mut statement = self.connection.prepare_cached(include_str!("sql/row.sql"))?;
        let mut rows = statement.query(named_params! { ":report": report.to_string() })?;
        rows.next()?.map(|columns| row(columns, &self.now)).transpose()
    }

    /// The report's row after rule 3: a lease whose expiry has passed is ended in it. To be called under the write lock, and
    /// committed whatever the answer is.
    pub(super) fn locked_row(&self, report: ReportId) -> Result<Option<Row>, Failure> {
        let mut row = self.row(report)?;
        if row.as_mut().is_some_and(Row::end_if_expired) {
            self.change_one(
                include_str!("sql/end_expired.sql"),
                named_params! { ":report": report.to_string(), ":boot": &*self.now.boot, ":now": self.now.nanos },
            )?;
        }
        Ok(row)
    }

    /// What the ledger has under this owner.
    pub(super) fn ended(&self, owner: Owner) -> Result<Option<Entry>, Failure> {
        self.entry(include_str!("sql/ledger_by_owner.sql"), named_params! { ":owner": owner.to_string() })
    }

    /// What the ledger has under this operation.
    pub(super) fn published(&self, operation: OperationId) -> Result<Option<Entry>, Failure> {
        self.entry(include_str!("sql/ledger_by_operation.sql"), named_params! { ":operation": operation.to_string() })
    }

    fn entry(&self, sql: &str, key: impl Params) -> Result<Option<Entry>, Failure> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(key)?;
        rows.next()?.map(entry).transpose()
    }

    /// Writes the end of an acquisition. Under the one write lock a duplicate key cannot come from a race.
    pub(super) fn end(&self, entry: &Entry) -> Result<(), Failure> {
        self.change_one(
            include_str!("sql/ledger_insert.sql"),
            named_params! {
                ":owner": entry.owner.to_string(),
                ":report": entry.report.to_string(),
                ":generation": entry.generation.get(),
                ":epoch": entry.epoch.get(),
                ":operation": entry.operation.map(|operation| operation.to_string()),
                ":revision": entry.revision.map(SourceRevision::get),
                ":now_utc": utc::to_text(entry.ended_at),
            },
        )
    }

    /// The store-wide recovery epoch.
    pub(super) fn store_epoch(&self) -> Result<Epoch, Failure> {
        let mut statement = self.connection.prepare_cached("SELECT RecoveryEpoch FROM LeaseholdStore")?;
        let epoch = statement.query_row([], |columns| columns.get(0)).optional()?;
        epoch.map(Epoch::new).ok_or_else(|| unreadable("RecoveryEpoch", "the whole store").into())
    }

    /// Runs a statement, and says how many rows it changed.
    pub(super) fn change(&self, sql: &str, values: impl Params) -> Result<usize, Failure> {
        Ok(self.connection.prepare_cached(sql)?.execute(values)?)
    }

    /// Runs a conditional statement whose condition was seen to hold under the same lock. That it does not hold after all would
    /// be a mistake of ours, and is never answered as success.
    pub(super) fn change_one(&self, sql: &str, values: impl Params) -> Result<(), Failure> {
        match self.change(sql, values)? {
            1 => Ok(()),
            changed => Err(StoreError::rejected(format!(
                "a conditional write found {changed} rows where it must find one; all was rolled back: look for triggers on \
                 leasehold's tables, and report this"
            ))
            .into()),
        }
    }

    /// Now, for people, as it reads back.
    pub(super) fn now_utc(&self) -> SystemTime {
        let text = utc::to_text(self.now.utc);
        utc::from_text(&text).unwrap_or(self.now.utc)
    }
}

/// Reads a row of `row.sql` or `list.sql`.
pub(super) fn row(columns: &Columns<'_>, now: &Now) -> Result<Row, Failure> {
    let key: String = columns.get(0)?;
    let report = parse(&key, "ReportId", &key)?;
    let boot: Option<String> = columns.get(3)?;
    let expiry = boot.as_deref().zip(columns.get(4)?).map(|(boot, nanos)| now.expiry(boot, nanos));
    let epoch = Epoch::new(columns.get(8)?);
    let published: i64 = columns.get(9)?;
    let visible = if published > 0 {
        Some(Visible {
            version: Version { epoch, generation: Generation::new(published) },
            revision: columns.get::<_, Option<i64>>(11)?.map(SourceRevision::new),
            published_at: time(columns, 10, "PublishedAtUtc", &key)?
                .ok_or_else(|| unreadable("PublishedAtUtc", &key))?,
        })
    } else {
        None
    };
    let forced = match columns.get::<_, Option<i64>>(14)? {
        None => None,
        Some(generation) => Some(Forced {
            generation: Generation::new(generation),
            by: holder(columns.get(15)?, "ForcedBy", &key)?,
            at: time(columns, 16, "ForcedAtUtc", &key)?.ok_or_else(|| unreadable("ForcedAtUtc", &key))?,
        }),
    };
    Ok(Row {
        report,
        generation: Generation::new(columns.get(1)?),
        epoch,
        owner: columns.get::<_, Option<String>>(2)?.map(|owner| parse(&owner, "LeaseOwner", &key)).transpose()?,
        expiry,
        holder: columns.get::<_, Option<String>>(5)?.map(|label| holder(label, "LeaseHolder", &key)).transpose()?,
        since: time(columns, 6, "LeaseAcquiredAtUtc", &key)?.unwrap_or(SystemTime::UNIX_EPOCH),
        takeover_delay: Duration::from_millis(columns.get::<_, i64>(7)?.max(0).unsigned_abs()),
        visible,
        floor: columns.get::<_, Option<i64>>(12)?.map(SourceRevision::new),
        pruned_up_to: Generation::new(columns.get(13)?),
        forced,
    })
}

fn entry(columns: &Columns<'_>) -> Result<Entry, Failure> {
    let owner: String = columns.get(0)?;
    let report: String = columns.get(1)?;
    let operation: Option<String> = columns.get(4)?;
    Ok(Entry {
        owner: parse(&owner, "LeaseOwner", &report)?,
        report: parse(&report, "ReportId", &report)?,
        generation: Generation::new(columns.get(2)?),
        epoch: Epoch::new(columns.get(3)?),
        operation: operation.map(|operation| parse(&operation, "OperationId", &report)).transpose()?,
        revision: columns.get::<_, Option<i64>>(5)?.map(SourceRevision::new),
        ended_at: time(columns, 6, "EndedAtUtc", &report)?.ok_or_else(|| unreadable("EndedAtUtc", &report))?,
    })
}

fn time(columns: &Columns<'_>, index: usize, name: &str, key: &str) -> Result<Option<SystemTime>, Failure> {
    let text: Option<String> = columns.get(index)?;
    Ok(text.map(|text| utc::from_text(&text).ok_or_else(|| unreadable(name, key))).transpose()?)
}

fn holder(label: String, name: &str, key: &str) -> Result<Holder, StoreError> {
    Holder::new(label).map_err(|error| unreadable(name, key).with_source(error))
}

fn parse<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    text: &str,
    name: &str,
    key: &str,
) -> Result<T, StoreError> {
    text.parse().map_err(|error: T::Err| unreadable(name, key).with_source(error))
}

fn unreadable(column: &str, key: impl Display) -> StoreError {
    StoreError::rejected(format!(
        "the column {column} of {key} holds what leasehold never writes: look who edited the table, and mend that value"
    ))
}
