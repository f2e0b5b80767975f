//! What the database itself has in the end, and when it counts a lease as over.

use std::path::Path;
use std::time::Duration;

use leasehold::answer::ReadAnswer;
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::{Budget, Store};
use rusqlite::{Connection, OpenFlags};

use crate::event::{At, Who};
use crate::failure::Failure;
use crate::plain_lease::PlainLease;
use crate::worker::report;

/// How long the database may take.
const LIMIT: Duration = Duration::from_secs(10);

/// What is visible.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) payload: Option<String>,
    pub(crate) generation: Option<i64>,
    /// How many publications the ledger has; a plain lease keeps none.
    pub(crate) publications: i64,
}

impl Row {
    /// Of the report that leasehold keeps.
    pub(crate) async fn fenced(database: &Path, store: &SqliteStore) -> Result<Self, Failure> {
        // Not by the store that is to be believed; and first, so that what it counts is in the row that is read after it.
        let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "SELECT count(*) FROM ReportLedger WHERE ReportId = ?1 AND OperationId IS NOT NULL";
        let publications = connection.query_row(sql, [report().to_string()], |row| row.get(0))?;
        let (payload, generation) = match store.read(report(), None, Budget::within(LIMIT)).await? {
            ReadAnswer::Found { visible, payload } => (Some(payload), Some(visible.version.generation.get())),
            _ => (None, None),
        };
        Ok(Self { payload, generation, publications })
    }

    /// Of the report with a plain lease.
    pub(crate) fn plain(database: &Path) -> Result<Self, Failure> {
        let payload = PlainLease::open(database, Who::Director)?.read()?;
        Ok(Self { payload, generation: None, publications: 0 })
    }
}

/// When the lease ends that is held now, by the database's clock: at the earliest, because what remains is rounded down.
pub(crate) async fn expiry(store: &SqliteStore) -> Result<At, Failure> {
    let asked = At::now();
    let status = store.inspect(report(), Budget::within(LIMIT)).await?;
    let lease = status.and_then(|status| status.lease);
    let lease = lease.ok_or_else(|| Failure::Unexpected("nobody holds the lease".to_owned()))?;
    Ok(asked.plus(lease.remaining))
}
