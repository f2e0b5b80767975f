//! The plain lease that many services have: a row with a holder and an expiry, and a report that whoever believes to hold it
//! writes. Its table lives in the same SQLite file.
//!
//! Everything about the lease is right: it is granted to one at a time, it expires by one clock, its renewal never revives
//! it. What is missing is the fence in [`write`](PlainLease::write).

use std::path::Path;
use std::time::Duration;

use leasehold::{BootClock, Clock, Moment};
use rusqlite::{Connection, OptionalExtension, named_params};

use crate::event::{At, Who};

/// How long SQLite waits for the file's lock.
const BUSY: Duration = Duration::from_secs(5);

/// One worker's connection.
pub(crate) struct PlainLease {
    connection: Connection,
    who: Who,
}

/// What an attempt to take the lease came to.
pub(crate) enum Taken {
    Mine,
    Busy { holder: String, remaining: Duration },
}

impl PlainLease {
    /// Opens the file, and creates the table and its one row if there is none.
    pub(crate) fn open(database: &Path, who: Who) -> rusqlite::Result<Self> {
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

    /// Takes the lease if it is free or expired.
    pub(crate) fn take(&self, ttl: Duration) -> rusqlite::Result<Taken> {
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

    /// Extends the lease, if it is still this worker's and not expired; answers whether it was.
    pub(crate) fn renew(&self, ttl: Duration) -> rusqlite::Result<bool> {
        let sql = "UPDATE PlainReport SET UntilNanos = :until WHERE HeldBy = :who AND UntilNanos > :now";
        self.change(sql, ttl)
    }

    /// What is left of the lease, if it is this worker's.
    pub(crate) fn remaining(&self) -> rusqlite::Result<Option<Duration>> {
        let sql = "SELECT UntilNanos FROM PlainReport WHERE HeldBy = ?1 AND UntilNanos > ?2";
        let expires = self.connection.query_row(sql, (self.who.to_string(), now()), |row| row.get(0)).optional()?;
        Ok(expires.map(|expires: i64| nanos(expires - now())))
    }

    /// Saves the report. The lease was looked at before, so what could go wrong?
    pub(crate) fn write(&self, payload: &str) -> rusqlite::Result<()> {
        self.connection.execute("UPDATE PlainReport SET Payload = ?1", [payload])?;
        Ok(())
    }

    /// Frees the lease if it is this worker's.
    pub(crate) fn release(&self) -> rusqlite::Result<()> {
        self.connection.execute("UPDATE PlainReport SET HeldBy = NULL WHERE HeldBy = ?1", [self.who.to_string()])?;
        Ok(())
    }

    /// The report, if there is one.
    pub(crate) fn read(&self) -> rusqlite::Result<Option<String>> {
        self.connection.query_row("SELECT Payload FROM PlainReport", [], |row| row.get(0))
    }

    /// When the lease ends that somebody holds.
    pub(crate) fn expires(&self) -> rusqlite::Result<At> {
        let expires = self.connection.query_row("SELECT UntilNanos FROM PlainReport", [], |row| row.get(0))?;
        Ok(At::of(nanos(expires)))
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
