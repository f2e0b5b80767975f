//! In a table of its own on the SQL Server, which the director drops at the end.

use std::time::Duration;

use leasehold::ReportId;
use leasehold::store::sqlserver::Client;
use leasehold::store::sqlserver::tiberius::error::Error;
use leasehold::store::sqlserver::tiberius::{Row, ToSql};

use super::Taken;
use crate::database::Server;
use crate::event::{At, Who};

pub(crate) struct SqlServerPlainLease {
    client: Client,
    table: String,
    who: String,
}

/// The table of this report's plain lease.
pub(crate) fn table(server: &Server, report: ReportId) -> String {
    server.table(&format!("PlainReport_{}", report.as_uuid().simple()))
}

impl SqlServerPlainLease {
    pub(super) async fn open(server: &Server, report: ReportId, who: Who) -> Result<Self, Error> {
        let mut client = server.client().await?;
        let table = table(server, report);
        let sql = format!(
            "IF OBJECT_ID(N'{}', N'U') IS NULL
             BEGIN
                 CREATE TABLE {table}
                 (
                     Id       int           NOT NULL PRIMARY KEY CHECK (Id = 1),
                     HeldBy   nvarchar(20)  NULL,
                     UntilUtc datetime2(6)  NULL,
                     Payload  nvarchar(max) NULL
                 );
                 INSERT INTO {table} (Id) VALUES (1);
             END;",
            table.replace('\'', "''")
        );
        client.simple_query(sql).await?.into_results().await?;
        Ok(Self { client, table, who: who.to_string() })
    }

    pub(super) async fn take(&mut self, ttl: Duration) -> Result<Taken, Error> {
        let sql = "UPDATE {table} SET HeldBy = @P1, UntilUtc = DATEADD(millisecond, @P2, SYSUTCDATETIME()) \
                   WHERE HeldBy IS NULL OR UntilUtc <= SYSUTCDATETIME()";
        let (who, ttl) = (self.who.clone(), millis(ttl));
        if self.execute(sql, &[&who, &ttl]).await? == 1 {
            return Ok(Taken::Mine);
        }
        let row = self.row("WHERE 1 = 1", &[]).await?;
        let holder = row.as_ref().and_then(|row| row.get::<&str, _>("HeldBy")).unwrap_or_default().to_owned();
        Ok(Taken::Busy { holder, remaining: row.as_ref().map_or(Duration::ZERO, remaining) })
    }

    pub(super) async fn renew(&mut self, ttl: Duration) -> Result<bool, Error> {
        let sql = "UPDATE {table} SET UntilUtc = DATEADD(millisecond, @P2, SYSUTCDATETIME()) \
                   WHERE HeldBy = @P1 AND UntilUtc > SYSUTCDATETIME()";
        let (who, ttl) = (self.who.clone(), millis(ttl));
        Ok(self.execute(sql, &[&who, &ttl]).await? == 1)
    }

    pub(super) async fn remaining(&mut self) -> Result<Option<Duration>, Error> {
        let who = self.who.clone();
        let row = self.row("WHERE HeldBy = @P1 AND UntilUtc > SYSUTCDATETIME()", &[&who]).await?;
        Ok(row.as_ref().map(remaining))
    }

    pub(super) async fn write(&mut self, payload: &str) -> Result<(), Error> {
        self.execute("UPDATE {table} SET Payload = @P1 WHERE Id = 1", &[&payload]).await.map(drop)
    }

    pub(super) async fn release(&mut self) -> Result<(), Error> {
        let who = self.who.clone();
        self.execute("UPDATE {table} SET HeldBy = NULL WHERE HeldBy = @P1", &[&who]).await.map(drop)
    }

    pub(super) async fn read(&mut self) -> Result<Option<String>, Error> {
        let row = self.row("WHERE Id = 1", &[]).await?;
        Ok(row.and_then(|row| row.get::<&str, _>("Payload").map(str::to_owned)))
    }

    /// At the earliest.
    pub(super) async fn expires(&mut self) -> Result<At, Error> {
        let asked = At::now();
        let row = self.row("WHERE HeldBy IS NOT NULL", &[]).await?;
        Ok(asked.plus(row.as_ref().map_or(Duration::ZERO, remaining)))
    }

    pub(super) async fn take_lock(&mut self) -> Result<(), Error> {
        self.execute("UPDATE {table} SET HeldBy = HeldBy WHERE Id = 1", &[]).await.map(drop)
    }

    async fn execute(&mut self, sql: &str, arguments: &[&dyn ToSql]) -> Result<u64, Error> {
        Ok(self.client.execute(sql.replace("{table}", &self.table), arguments).await?.total())
    }

    async fn row(&mut self, which: &str, arguments: &[&dyn ToSql]) -> Result<Option<Row>, Error> {
        let sql = format!(
            "SELECT HeldBy AS HeldBy, Payload AS Payload, DATEDIFF_BIG(microsecond, SYSUTCDATETIME(), UntilUtc) AS LeftMicros \
             FROM {} {which}",
            self.table
        );
        self.client.query(sql, arguments).await?.into_row().await
    }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

/// By the server's clock.
fn remaining(row: &Row) -> Duration {
    Duration::from_micros(row.get::<i64, _>("LeftMicros").and_then(|micros| u64::try_from(micros).ok()).unwrap_or(0))
}
