//! In the SQLite file.

use std::path::Path;
use std::time::Duration;

use leasehold::{BootClock, Clock, Moment};
use rusqlite::{Connection, OptionalExtension, named_params};

use super::Taken;
use crate::event::{At, Who};

/// How long SQLite waits for the file's lock.
const BUSY: Duration = Duration::from_secs(5);

pub(crate) struct SqlitePlainLease {
    connection: Connection,
    who: Who,
}

impl SqlitePlainLease {
    pub(super) fn open(database: &Path, who: Who) -> rusqlite::Result<Self> {
        let connection = Connection::open(database)?;
        connection.busy_timeout(BUSY)?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS PlainReport
             (
                 Id         INTEGER PRIMARY KEY CHECK (Id = 1),
                 HeldBy     TEXT    NULL,
                 UntilNanos INTEGER NOT NULL DEFAULT 0,
                 Payload    TEXT    NULL
             );
             INSERT OR IGNORE INTO PlainReport (Id) VALUES (1);",
        )?;
        Ok(Self { connection, who })
    }

    pub(super) fn take(&self, ttl: Duration) -> rusqlite::Result<Taken> {
        let sql =
            "UPDATE PlainReport SET HeldBy = :who, UntilNanos = :until WHERE HeldBy IS NULL OR UntilNanos <= :now";
        if self.change(sql, ttl)? {
            return Ok(Taken::Mine);
        }
        let (holder, expires): (Option<String>, i64) =
            self.connection
                .query_row("SELECT HeldBy, UntilNanos FROM PlainReport", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Taken::Busy { holder: holder.unwrap_or_default(), remaining: nanos(expires - now()) })
    }

    pub(super) fn renew(&self, ttl: Duration) -> rusqlite::Result<bool> {
        let sql = "UPDATE PlainReport SET UntilNanos = :until WHERE HeldBy = :who AND UntilNanos > :now";
        self.change(sql, ttl)
    }

    pub(super) fn remaining(&self) -> rusqlite::Result<Option<Duration>> {
        let sql = "SELECT UntilNanos FROM PlainReport WHERE HeldBy = ?1 AND UntilNanos > ?2";
        let expires = self.connection.query_row(sql, (self.who.to_string(), now()), |row| row.get(0)).optional()?;
        Ok(expires.map(|expires: i64| nanos(expires - now())))
    }

    pub(super) fn write(&self, payload: &str) -> rusqlite::Result<()> {
        self.connection.execute("UPDATE PlainReport SET Payload = ?1", [payload])?;
        Ok(())
    }

    pub(super) fn release(&self) -> rusqlite::Result<()> {
        self.connection.execute("UPDATE PlainReport SET HeldBy = NULL WHERE HeldBy = ?1", [self.who.to_string()])?;
        Ok(())
    }

    pub(super) fn read(&self) -> rusqlite::Result<Option<String>> {
        self.connection.query_row("SELECT Payload FROM PlainReport", [], |row| row.get(0))
    }

    pub(super) fn expires(&self) -> rusqlite::Result<At> {
        let expires = self.connection.query_row("SELECT UntilNanos FROM PlainReport", [], |row| row.get(0))?;
        Ok(At::of(nanos(expires)))
    }

    /// There is one write lock for the whole file.
    pub(super) fn take_lock(&self) -> rusqlite::Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE; COMMIT")
    }

    /// One machine, one clock. That it is read before the lock is had can only revive a lease that nobody took meanwhile.
    fn change(&self, sql: &str, ttl: Duration) -> rusqlite::Result<bool> {
        let now = now();
        let until = now.saturating_add(i64::try_from(ttl.as_nanos()).unwrap_or(i64::MAX));
        let named = named_params! { ":who": self.who.to_string(), ":until": until, ":now": now };
        Ok(self.connection.execute(sql, named)? == 1)
    }
}

fn now() -> i64 {
    let since_boot = BootClock.now().since(Moment::after_origin(Duration::ZERO));
    i64::try_from(since_boot.as_nanos()).unwrap_or(i64::MAX)
}

fn nanos(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}
