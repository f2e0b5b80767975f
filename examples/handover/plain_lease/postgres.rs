//! In a table of its own on the PostgreSQL server, which the director drops at the end.

use std::time::Duration;

use leasehold::ReportId;
use leasehold::store::postgres::{Row, ToSql, Type};
use tokio_postgres::{Client, Error};

use super::Taken;
use crate::database::PostgresServer;
use crate::event::{At, Who};
use crate::failure::Failure;

pub(crate) struct PostgresPlainLease {
    client: Client,
    table: String,
    who: String,
}

/// The table of this report's plain lease.
pub(crate) fn table(server: &PostgresServer, report: ReportId) -> String {
    server.table(&format!("plain_report_{}", report.as_uuid().simple()))
}

impl PostgresPlainLease {
    pub(super) async fn open(server: &PostgresServer, report: ReportId, who: Who) -> Result<Self, Failure> {
        let client = server.client().await?;
        let table = table(server, report);
        // One transaction. Of two that create the same table at once, one would fail; so they take turns.
        let sql = format!(
            "SELECT pg_advisory_xact_lock(hashtextextended('{report}', 0));
             CREATE TABLE IF NOT EXISTS {table}
             (
                 id         integer     NOT NULL PRIMARY KEY CHECK (id = 1),
                 held_by    text        NULL,
                 held_until timestamptz NULL,
                 payload    text        NULL
             );
             INSERT INTO {table} (id) VALUES (1) ON CONFLICT DO NOTHING;"
        );
        client.batch_execute(&sql).await?;
        Ok(Self { client, table, who: who.to_string() })
    }

    pub(super) async fn take(&self, ttl: Duration) -> Result<Taken, Error> {
        let sql = "UPDATE {table} SET held_by = $1, held_until = clock_timestamp() + $2 * interval '1 millisecond' \
                   WHERE held_by IS NULL OR held_until <= clock_timestamp()";
        if self.execute(sql, &[(&self.who, Type::TEXT), (&millis(ttl), Type::FLOAT8)]).await? == 1 {
            return Ok(Taken::Mine);
        }
        let row = self.row("WHERE id = 1", &[]).await?;
        let holder = row.as_ref().and_then(|row| row.get::<_, Option<String>>("held_by")).unwrap_or_default();
        Ok(Taken::Busy { holder, remaining: row.as_ref().map_or(Duration::ZERO, remaining) })
    }

    pub(super) async fn renew(&self, ttl: Duration) -> Result<bool, Error> {
        let sql = "UPDATE {table} SET held_until = clock_timestamp() + $2 * interval '1 millisecond' \
                   WHERE held_by = $1 AND held_until > clock_timestamp()";
        Ok(self.execute(sql, &[(&self.who, Type::TEXT), (&millis(ttl), Type::FLOAT8)]).await? == 1)
    }

    pub(super) async fn remaining(&self) -> Result<Option<Duration>, Error> {
        let mine = "WHERE held_by = $1 AND held_until > clock_timestamp()";
        Ok(self.row(mine, &[(&self.who, Type::TEXT)]).await?.as_ref().map(remaining))
    }

    pub(super) async fn write(&self, payload: &str) -> Result<(), Error> {
        self.execute("UPDATE {table} SET payload = $1 WHERE id = 1", &[(&payload, Type::TEXT)]).await.map(drop)
    }

    pub(super) async fn release(&self) -> Result<(), Error> {
        let sql = "UPDATE {table} SET held_by = NULL WHERE held_by = $1";
        self.execute(sql, &[(&self.who, Type::TEXT)]).await.map(drop)
    }

    pub(super) async fn read(&self) -> Result<Option<String>, Error> {
        Ok(self.row("WHERE id = 1", &[]).await?.and_then(|row| row.get("payload")))
    }

    /// At the earliest.
    pub(super) async fn expires(&self) -> Result<At, Error> {
        let asked = At::now();
        let row = self.row("WHERE held_by IS NOT NULL", &[]).await?;
        Ok(asked.plus(row.as_ref().map_or(Duration::ZERO, remaining)))
    }

    pub(super) async fn take_lock(&self) -> Result<(), Error> {
        self.execute("UPDATE {table} SET held_by = held_by WHERE id = 1", &[]).await.map(drop)
    }

    async fn execute(&self, sql: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Result<u64, Error> {
        self.client.execute_typed(&sql.replace("{table}", &self.table), values).await
    }

    async fn row(&self, which: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Result<Option<Row>, Error> {
        let sql = format!(
            "SELECT held_by, payload, \
                    floor(extract(epoch FROM held_until - clock_timestamp()) * 1000000)::bigint AS left_micros \
             FROM {} {which}",
            self.table
        );
        Ok(self.client.query_typed(&sql, values).await?.into_iter().next())
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// By the server's clock.
fn remaining(row: &Row) -> Duration {
    let micros = row.get::<_, Option<i64>>("left_micros").and_then(|micros| u64::try_from(micros).ok());
    Duration::from_micros(micros.unwrap_or(0))
}
