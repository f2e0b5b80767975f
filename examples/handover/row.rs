//! What the database itself has in the end, and when it counts a lease as over. Read past the store, which is to be believed.

use std::time::Duration;

use leasehold::store::Budget;

use crate::database::Database;
use crate::event::{At, Who};
use crate::failure::Failure;
use crate::place::Place;
use crate::plain_lease::PlainLease;

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
    pub(crate) async fn fenced(place: &Place) -> Result<Self, Failure> {
        match &place.database {
            #[cfg(feature = "sqlite")]
            Database::File(path) => in_file(path, place),
            #[cfg(feature = "sqlserver")]
            Database::SqlServer(server) => on_server(server, place).await,
            #[cfg(feature = "postgres")]
            Database::Postgres(server) => on_postgres(server, place).await,
            #[allow(unreachable_patterns)]
            _ => unreachable!("without a store nothing can be named"),
        }
    }

    /// Of the report with a plain lease.
    pub(crate) async fn plain(place: &Place) -> Result<Self, Failure> {
        let payload = PlainLease::open(&place.database, place.report, Who::Director).await?.read().await?;
        Ok(Self { payload, generation: None, publications: 0 })
    }
}

/// In one statement, and so of one moment.
#[cfg(feature = "sqlite")]
fn in_file(path: &std::path::Path, place: &Place) -> Result<Row, Failure> {
    use rusqlite::{Connection, OpenFlags, OptionalExtension};

    const SQL: &str = "SELECT p.Payload, r.PublishedGeneration,
            (SELECT count(*) FROM ReportLedger AS l WHERE l.ReportId = r.ReportId AND l.OperationId IS NOT NULL)
        FROM ReportPublication AS r LEFT JOIN ReportPayload AS p ON p.ReportId = r.ReportId WHERE r.ReportId = ?1";
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let row =
        connection.query_row(SQL, [place.report.to_string()], |row| Ok(visible(row.get(0)?, row.get(1)?, row.get(2)?)));
    Ok(row.optional()?.unwrap_or_else(|| visible(None, 0, 0)))
}

/// The same in T-SQL.
#[cfg(feature = "sqlserver")]
async fn on_server(server: &crate::database::Server, place: &Place) -> Result<Row, Failure> {
    let sql = format!(
        "SELECT r.Payload AS Payload, r.PublishedGeneration AS PublishedGeneration, \
         (SELECT COUNT_BIG(*) FROM {} AS l WHERE l.ReportId = r.ReportId AND l.OperationId IS NOT NULL) AS Publications \
         FROM {} AS r WHERE r.ReportId = @P1",
        server.table("ReportLedger"),
        server.table("ReportPublication")
    );
    let row = server.client().await?.query(sql, &[place.report.as_uuid()]).await?.into_row().await?;
    let Some(row) = row else { return Ok(visible(None, 0, 0)) };
    let number = |name: &str| row.get::<i64, _>(name).unwrap_or_default();
    let payload = row.get::<&str, _>("Payload").map(str::to_owned);
    Ok(visible(payload, number("PublishedGeneration"), number("Publications")))
}

/// The same on PostgreSQL.
#[cfg(feature = "postgres")]
async fn on_postgres(server: &crate::database::PostgresServer, place: &Place) -> Result<Row, Failure> {
    use leasehold::store::postgres::Type;

    let sql = format!(
        "SELECT p.payload, r.published_generation, \
         (SELECT count(*) FROM {} AS l WHERE l.report_id = r.report_id AND l.operation_id IS NOT NULL) AS publications \
         FROM {} AS r LEFT JOIN {} AS p ON p.report_id = r.report_id WHERE r.report_id = $1",
        server.table("report_ledger"),
        server.table("report_publication"),
        server.table("report_payload")
    );
    let rows = server.client().await?.query_typed(&sql, &[(place.report.as_uuid(), Type::UUID)]).await?;
    let Some(row) = rows.first() else { return Ok(visible(None, 0, 0)) };
    Ok(visible(row.get("payload"), row.get("published_generation"), row.get("publications")))
}

/// Generation 0 has published nothing.
fn visible(payload: Option<String>, generation: i64, publications: i64) -> Row {
    let generation = Some(generation).filter(|&generation| generation > 0);
    Row { payload: payload.filter(|_| generation.is_some()), generation, publications }
}

/// When the lease ends that is held now, by the database's clock: at the earliest, because what remains is rounded down.
pub(crate) async fn expiry(place: &Place) -> Result<At, Failure> {
    let asked = At::now();
    let status = place.store.inspect(place.report, Budget::within(LIMIT)).await?;
    let lease = status.and_then(|status| status.lease);
    let lease = lease.ok_or_else(|| Failure::Unexpected("nobody holds the lease".to_owned()))?;
    Ok(asked.plus(lease.remaining))
}
