//! The plain lease that many services have: a row with a holder and an expiry, and a report that whoever believes to hold it
//! writes. Its table lives in the same database as the reports that leasehold keeps.
//!
//! Everything about the lease is right: it is granted to one at a time, it expires by the database's clock, its renewal never
//! revives it. What is missing is the fence in [`write`](PlainLease::write).

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlserver")]
mod sqlserver;

use std::time::Duration;

use leasehold::ReportId;

use crate::database::Database;
use crate::event::{At, Who};
use crate::failure::Failure;

#[cfg(feature = "postgres")]
use self::postgres::PostgresPlainLease;
#[cfg(feature = "postgres")]
pub(crate) use self::postgres::table as table_on_postgres;
#[cfg(feature = "sqlite")]
use self::sqlite::SqlitePlainLease;
#[cfg(feature = "sqlserver")]
use self::sqlserver::SqlServerPlainLease;
#[cfg(feature = "sqlserver")]
pub(crate) use self::sqlserver::table as table_on;

/// One worker's connection.
pub(crate) enum PlainLease {
    #[cfg(feature = "sqlite")]
    Sqlite(SqlitePlainLease),
    #[cfg(feature = "sqlserver")]
    SqlServer(Box<SqlServerPlainLease>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresPlainLease>),
}

/// What an attempt to take the lease came to.
pub(crate) enum Taken {
    Mine,
    Busy { holder: String, remaining: Duration },
}

/// The same in every database.
macro_rules! with_lease {
    ($this:expr, $lease:ident => $what:expr) => {
        match $this {
            #[cfg(feature = "sqlite")]
            PlainLease::Sqlite($lease) => Ok($what?),
            #[cfg(feature = "sqlserver")]
            PlainLease::SqlServer($lease) => Ok($what.await?),
            #[cfg(feature = "postgres")]
            PlainLease::Postgres($lease) => Ok($what.await?),
            #[allow(unreachable_patterns)]
            _ => unreachable!("without a store there is no plain lease"),
        }
    };
}

impl PlainLease {
    /// Connects, and creates the table and its one row if there is none.
    // A file of its own needs no table of the report's own.
    #[cfg_attr(not(any(feature = "sqlserver", feature = "postgres")), allow(unused_variables))]
    pub(crate) async fn open(database: &Database, report: ReportId, who: Who) -> Result<Self, Failure> {
        match database {
            #[cfg(feature = "sqlite")]
            Database::File(path) => Ok(Self::Sqlite(SqlitePlainLease::open(path, who)?)),
            #[cfg(feature = "sqlserver")]
            Database::SqlServer(server) => {
                Ok(Self::SqlServer(Box::new(SqlServerPlainLease::open(server, report, who).await?)))
            }
            #[cfg(feature = "postgres")]
            Database::Postgres(server) => {
                Ok(Self::Postgres(Box::new(PostgresPlainLease::open(server, report, who).await?)))
            }
            #[allow(unreachable_patterns)]
            _ => unreachable!("without a store nothing can be named"),
        }
    }

    /// Takes the lease if it is free or expired.
    pub(crate) async fn take(&mut self, ttl: Duration) -> Result<Taken, Failure> {
        with_lease!(self, lease => lease.take(ttl))
    }

    /// Extends the lease, if it is still this worker's and not expired; answers whether it was.
    pub(crate) async fn renew(&mut self, ttl: Duration) -> Result<bool, Failure> {
        with_lease!(self, lease => lease.renew(ttl))
    }

    /// What is left of the lease, if it is this worker's.
    pub(crate) async fn remaining(&mut self) -> Result<Option<Duration>, Failure> {
        with_lease!(self, lease => lease.remaining())
    }

    /// Saves the report. The lease was looked at before, so what could go wrong?
    pub(crate) async fn write(&mut self, payload: &str) -> Result<(), Failure> {
        with_lease!(self, lease => lease.write(payload))
    }

    /// Frees the lease if it is this worker's.
    pub(crate) async fn release(&mut self) -> Result<(), Failure> {
        with_lease!(self, lease => lease.release())
    }

    /// The report, if there is one.
    pub(crate) async fn read(&mut self) -> Result<Option<String>, Failure> {
        with_lease!(self, lease => lease.read())
    }

    /// When the lease ends that somebody holds.
    pub(crate) async fn expires(&mut self) -> Result<At, Failure> {
        with_lease!(self, lease => lease.expires())
    }

    /// Takes the lock that a write needs, and changes nothing.
    pub(crate) async fn take_lock(&mut self) -> Result<(), Failure> {
        with_lease!(self, lease => lease.take_lock())
    }
}
