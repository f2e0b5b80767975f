//! Read, metadata, inspect, list and check: one snapshot, no write lock.

use rusqlite::{OptionalExtension, named_params};

use super::clock::Clock;
use super::failure::Failure;
use super::rows::{self, Tx};
use super::schema;
use crate::answer::{CheckReport, Metadata, ReadAnswer, ReportStatus, Version};
use crate::error::StoreError;
use crate::fence::ReportId;
use crate::store::ListRequest;

pub(super) fn read(tx: &Tx<'_>, report: ReportId, newer_than: Option<Version>) -> Result<ReadAnswer, Failure> {
    let Some(row) = tx.row(report)? else { return Ok(ReadAnswer::Missing) };
    let Some(visible) = row.visible else { return Ok(ReadAnswer::Unpublished) };
    if newer_than.is_some_and(|known| visible.version <= known) {
        return Ok(ReadAnswer::NotNewer(visible));
    }
    let mut statement = tx.connection.prepare_cached("SELECT Payload FROM ReportPayload WHERE ReportId = ?1")?;
    let payload = statement.query_row([report.to_string()], |columns| columns.get(0)).optional()?.ok_or_else(|| {
        StoreError::rejected(format!("the payload of report {report} is gone from ReportPayload: look who deleted it"))
    })?;
    Ok(ReadAnswer::Found { visible, payload })
}

pub(super) fn metadata(tx: &Tx<'_>, report: ReportId) -> Result<Option<Metadata>, Failure> {
    Ok(tx.row(report)?.map(|row| row.metadata()))
}

pub(super) fn inspect(tx: &Tx<'_>, report: ReportId) -> Result<Option<ReportStatus>, Failure> {
    Ok(tx.row(report)?.map(|row| row.status()))
}

/// In the order of the ids' text, which is the order of their bytes.
pub(super) fn list(tx: &Tx<'_>, request: ListRequest) -> Result<Vec<ReportStatus>, Failure> {
    let mut statement = tx.connection.prepare_cached(include_str!("sql/list.sql"))?;
    let mut found = statement.query(named_params! {
        ":after": request.after.map(|report| report.to_string()).unwrap_or_default(),
        ":leased_only": request.leased_only,
        ":boot": &*tx.now.boot,
        ":now": tx.now.nanos,
        ":limit": i64::try_from(request.limit).unwrap_or(i64::MAX),
    })?;
    let mut page = Vec::new();
    while let Some(columns) = found.next()? {
        page.push(rows::row(columns, &tx.now)?.status());
    }
    Ok(page)
}

pub(super) fn check(tx: &Tx<'_>, clock: &Clock) -> Result<CheckReport, Failure> {
    let schema_version: u32 =
        tx.connection.query_row("SELECT SchemaVersion FROM LeaseholdStore", [], |columns| columns.get(0))?;
    let journal: String = tx.connection.query_row("PRAGMA journal_mode", [], |columns| columns.get(0))?;
    let mut problems = Vec::new();
    if schema_version != schema::VERSION {
        problems.push(format!(
            "the schema has version {schema_version} and this build knows {}: open the store with the newest build in use",
            schema::VERSION
        ));
    }
    if journal != "wal" {
        problems
            .push(format!("somebody set the journal mode to {journal}: set it back to WAL while nobody uses the file"));
    }
    if clock.is_wall_clock() {
        problems.push(
            "this system names no boot, so the wall clock decides: a step of it shortens or lengthens leases"
                .to_owned(),
        );
    }
    Ok(CheckReport {
        engine: format!("SQLite {}", rusqlite::version()),
        schema_version,
        epoch: tx.store_epoch()?,
        isolation: format!("serializable (BEGIN IMMEDIATE), journal {journal}, synchronous FULL"),
        problems,
        // The database's clock is this machine's.
        clock_offset_millis: 0,
    })
}
