//! One connection: opened when first needed, set up, and every transaction on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};

use super::clock::Clock;
use super::failure::{Failure, read_only};
use super::rows::Tx;
use super::schema;
use super::user::UserGuard;
use crate::error::StoreError;

/// A connection that opens itself when it is needed, and anew after it was spoiled.
#[derive(Debug)]
pub(super) struct Session {
    path: PathBuf,
    clock: Clock,
    /// Whether a missing file is created. Only ever at the first opening: a file that was there and is gone must not come
    /// back empty, with generations that begin at 0 again.
    create: bool,
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    connection: Connection,
    guard: Arc<UserGuard>,
    file: Option<FileIdentity>,
}

impl Session {
    pub(super) fn new(path: PathBuf, clock: Clock, create: bool) -> Self {
        Self { path, clock, create, opened: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Opens the connection, unless it is open and still that of the path.
    pub(super) fn open(&mut self) -> Result<(), Failure> {
        if self.opened.as_ref().is_some_and(|opened| opened.file != FileIdentity::of(&self.path)) {
            // Locks are on the file that was opened. Whoever opens the path now gets another file with another lock.
            self.opened = None;
        }
        if self.opened.is_none() {
            self.opened = Some(open(&self.path, self.create)?);
            self.create = false;
        }
        Ok(())
    }

    /// Runs `work` under the write lock and commits, or rolls everything back.
    pub(super) fn write<T>(&mut self, work: impl FnOnce(&Tx<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        self.transaction("BEGIN IMMEDIATE", work)
    }

    /// Runs `work` on one snapshot, without the write lock.
    pub(super) fn read<T>(&mut self, work: impl FnOnce(&Tx<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        self.transaction("BEGIN DEFERRED", work)
    }

    fn transaction<T>(&mut self, begin: &str, work: impl FnOnce(&Tx<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        self.open()?;
        let Some(opened) = &self.opened else { return Err(Failure::Busy) };
        let result = opened.transaction(begin, &self.clock, work);
        let left_open = !opened.connection.is_autocommit();
        if left_open || result.as_ref().is_err_and(Failure::spoils_connection) {
            self.opened = None;
        }
        result
    }
}

impl Opened {
    fn transaction<T>(
        &self,
        begin: &str,
        clock: &Clock,
        work: impl FnOnce(&Tx<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let run = |sql: &str| self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        run(begin)?;
        // The clock is read after the lock was had: a time read before it may be as old as the wait.
        let tx = Tx { connection: &self.connection, guard: &self.guard, now: clock.now() };
        let result = work(&tx).and_then(|answer| match run("COMMIT") {
            Ok(_) => Ok(answer),
            Err(error) => Err(Failure::at_commit(error)),
        });
        if result.is_err() && !self.connection.is_autocommit() {
            // If this fails too, the transaction is still open and the caller throws the connection away.
            let _ = run("ROLLBACK");
        }
        result
    }
}

fn open(path: &Path, create: bool) -> Result<Opened, Failure> {
    check_place(path, create)?;
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let mut connection = Connection::open_with_flags(path, flags)?;
    let guard = UserGuard::install(&mut connection)?;
    set_up(&connection, path)?;
    schema::migrate(&connection, path)?;
    Ok(Opened { file: FileIdentity::of(path), connection, guard })
}

/// Says in words what SQLite would call "unable to open database file".
fn check_place(path: &Path, create: bool) -> Result<(), StoreError> {
    let file = path.display();
    if path.is_dir() {
        return Err(StoreError::rejected(format!("{file} is a folder: give the path of a file in it")));
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        return Err(StoreError::rejected(format!(
            "the folder {} of the database {file} does not exist (or cannot be seen by this user): create it first",
            parent.display()
        )));
    }
    if !create && !path.exists() {
        return Err(StoreError::rejected(format!(
            "the database {file} was there and is gone: put it back, or stop all its users and open the store anew"
        )));
    }
    Ok(())
}

fn set_up(connection: &Connection, path: &Path) -> Result<(), Failure> {
    // Waiting is ours, in the thread's loop: SQLite's own does not cover the switch to WAL nor a recovery.
    connection.busy_timeout(std::time::Duration::ZERO)?;
    connection.set_prepared_statement_cache_capacity(64);
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(read_only(path, "SQLite opened it for reading only").into());
    }
    let pragma = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0));
    let journal = pragma("PRAGMA journal_mode = WAL")?;
    if journal != rusqlite::types::Value::Text("wal".to_owned()) {
        return Err(StoreError::rejected(format!(
            "{} cannot have a write-ahead log: put it on a local disk that can share memory between processes",
            path.display()
        ))
        .into());
    }
    // FULL: an acknowledged generation must survive a power cut, or it would be given twice.
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;",
    )?;
    Ok(())
}

/// Which file a path led to.
#[cfg(unix)]
#[derive(Debug, PartialEq, Eq)]
struct FileIdentity(u64, u64);

#[cfg(unix)]
impl FileIdentity {
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self(metadata.dev(), metadata.ino()))
    }
}

/// Windows keeps an open database from being renamed or deleted.
#[cfg(not(unix))]
#[derive(Debug, PartialEq, Eq)]
struct FileIdentity;

#[cfg(not(unix))]
impl FileIdentity {
    fn of(_: &Path) -> Option<Self> {
        Some(Self)
    }
}
