//! Creates the schema, and brings an older one up to date.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::failure::Failure;
use crate::error::StoreError;

/// What leads from each version to the next; the first creates everything.
const MIGRATIONS: [&str; 1] = [include_str!("sql/schema.sql")];

/// The version that this build knows.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// The tables that no statement of a user's may write.
pub(super) const TABLES: [&str; 4] = ["LeaseholdStore", "ReportPublication", "ReportPayload", "ReportLedger"];

/// Brings the schema to [`VERSION`]. Of several processes that open a new file at once, one creates it.
pub(super) fn migrate(connection: &Connection, path: &Path) -> Result<(), Failure> {
    if installed(connection, path)? == VERSION {
        return Ok(());
    }
    let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Again, under the lock: another process may have done it meanwhile.
    let from = installed(&transaction, path)?;
    for (version, sql) in (1_u32..).zip(MIGRATIONS).skip(from as usize) {
        transaction.execute_batch(sql)?;
        transaction.execute("UPDATE LeaseholdStore SET SchemaVersion = ?1", [version])?;
    }
    transaction.commit().map_err(Failure::at_commit)
}

/// The version that is installed; 0 if none is.
fn installed(connection: &Connection, path: &Path) -> Result<u32, Failure> {
    let exists = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'LeaseholdStore'", [], |_| Ok(()))
        .optional()?;
    if exists.is_none() {
        return Ok(0);
    }
    let version: i64 = connection
        .query_row("SELECT SchemaVersion FROM LeaseholdStore", [], |row| row.get(0))
        .optional()?
        .ok_or_else(|| {
            StoreError::rejected(format!(
                "the table LeaseholdStore of {} has lost its row: restore a backup",
                path.display()
            ))
        })?;
    match u32::try_from(version) {
        Ok(version) if version <= VERSION => Ok(version),
        _ => Err(StoreError::rejected(format!(
            "the database {} has schema version {version}, and this build of leasehold knows versions up to {VERSION}: update \
             leasehold here",
            path.display()
        ))
        .into()),
    }
}
