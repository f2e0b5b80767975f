//! What went wrong on the connection, and what it means for the caller.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// Why an attempt gave no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// Somebody else holds a lock that is needed. Nothing was applied: try again while the budget lasts.
    Busy,
    /// Ours, and final; nothing was applied.
    Store(StoreError),
    /// SQLite's, before the COMMIT: nothing was applied.
    Sql(rusqlite::Error),
    /// SQLite's, at the COMMIT.
    Commit(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        if is_busy(&error) { Self::Busy } else { Self::Sql(error) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// At the COMMIT, `BUSY` is said before anything is written, so that one may be tried again like any other.
    pub(super) fn at_commit(error: rusqlite::Error) -> Self {
        if is_busy(&error) { Self::Busy } else { Self::Commit(error) }
    }

    /// Whether the connection is not to be trusted any more and is opened anew.
    pub(super) fn spoils_connection(&self) -> bool {
        match self {
            Self::Busy | Self::Store(_) => false,
            Self::Sql(error) | Self::Commit(error) => !matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DiskFull | ErrorCode::ConstraintViolation | ErrorCode::OperationInterrupted)
            ),
        }
    }

    /// The error that the caller gets, for the database at this path.
    pub(super) fn into_store_error(self, path: &Path) -> StoreError {
        match self {
            Self::Busy => lock_not_had(path),
            Self::Store(error) => error,
            Self::Sql(error) => not_applied(error, path),
            Self::Commit(error) => match error.sqlite_error_code() {
                // SQLite rolls these back before it answers: the commit frame was not written.
                Some(ErrorCode::DiskFull | ErrorCode::ConstraintViolation) => not_applied(error, path),
                _ => sourced(
                    StoreError::unknown(format!(
                        "committing to {} failed, and whether it was written is not known: send the request again with the \
                         same identifiers, or close it ({})",
                        path.display(),
                        said(&error)
                    )),
                    error,
                ),
            },
        }
    }
}

/// The lock was not had before the budget ended.
pub(super) fn lock_not_had(path: &Path) -> StoreError {
    StoreError::unavailable(format!(
        "another process or connection holds the write lock of {} and the budget ended before it let go: try again, and look \
         for a process that is stopped, or a transaction that is left open",
        path.display()
    ))
}

/// The budget ended before this call's turn came.
pub(super) fn turn_not_had(path: &Path) -> StoreError {
    StoreError::unavailable(format!(
        "the budget ended while earlier calls used the connection to {}: try again, or give a longer budget",
        path.display()
    ))
}

/// Whether somebody else's lock is in the way: the writer's, a recovery's, a checkpoint's, or a race for the WAL's own locks.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

/// What an error of a statement means that surely changed nothing.
fn not_applied(error: rusqlite::Error, path: &Path) -> StoreError {
    let file = path.display();
    let detail = said(&error);
    let known = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::rejected(format!(
            "there is no room to write to {file}; the transaction was rolled back and nothing is half-written: make room on \
             the disk (or raise max_page_count), then send the request again ({detail})"
        )),
        Some(ErrorCode::CannotOpen) => no_files(path, &detail),
        Some(ErrorCode::ReadOnly) if is_folder(&error) => no_files(path, &detail),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => read_only(path, &detail),
        Some(ErrorCode::NotADatabase) => StoreError::rejected(format!(
            "{file} is not an SQLite database (or is encrypted): give the path of a database, or of a file that does not exist \
             yet ({detail})"
        )),
        Some(ErrorCode::DatabaseCorrupt) => StoreError::rejected(format!(
            "the database {file} is damaged: stop its users, restore a backup, and advance the recovery epoch before any worker \
             connects ({detail})"
        )),
        Some(ErrorCode::SystemIoFailure) if is_shared_memory(&error) => StoreError::rejected(format!(
            "the shared memory (-shm) that processes coordinate through cannot be used beside {file}: put the database on a \
             local disk with room, not on a network file system ({detail})"
        )),
        Some(ErrorCode::SystemIoFailure) => StoreError::unavailable(format!(
            "reading or writing {file} failed; nothing was applied: look at the disk, then try again ({detail})"
        )),
        Some(ErrorCode::OutOfMemory) => StoreError::unavailable(format!(
            "there was no memory for SQLite to work on {file}; nothing was applied: try again ({detail})"
        )),
        Some(ErrorCode::OperationInterrupted) => StoreError::unavailable(format!(
            "the budget ended while the transaction's own statements ran on {file}; all was rolled back: give a longer budget \
             ({detail})"
        )),
        _ => StoreError::rejected(format!(
            "the database {file} refused a statement, and nothing was applied: check that nobody changed its schema ({detail})"
        )),
    };
    sourced(known, error)
}

/// The file cannot be written.
pub(super) fn read_only(path: &Path, detail: &str) -> StoreError {
    StoreError::rejected(format!(
        "the database {} is read-only here: let this user write the file and its folder, and look whether the disk is mounted \
         read-only ({detail})",
        path.display()
    ))
}

/// The file, or one of those that SQLite makes beside it, cannot be opened.
fn no_files(path: &Path, detail: &str) -> StoreError {
    StoreError::rejected(format!(
        "{} cannot be opened, or its -wal and -shm files beside it cannot be made: let this user read and write the file and \
         its folder ({detail})",
        path.display()
    ))
}

/// It is the folder that is read-only, not the file.
fn is_folder(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_READONLY_CANTINIT, SQLITE_READONLY_DIRECTORY};
    let codes = [SQLITE_READONLY_CANTINIT, SQLITE_READONLY_DIRECTORY];
    error.sqlite_extended_error_code().is_some_and(|code| codes.contains(&code))
}

/// `SQLITE_IOERR_SHMOPEN`, `_SHMSIZE`, `_SHMLOCK`, `_SHMMAP`.
fn is_shared_memory(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi;
    let codes =
        [ffi::SQLITE_IOERR_SHMOPEN, ffi::SQLITE_IOERR_SHMSIZE, ffi::SQLITE_IOERR_SHMLOCK, ffi::SQLITE_IOERR_SHMMAP];
    error.sqlite_extended_error_code().is_some_and(|code| codes.contains(&code))
}

/// What SQLite said, without the statement's text, which may hold what must not be logged.
pub(super) fn said(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(code, Some(text)) => format!("SQLite: {text}, code {}", code.extended_code),
        rusqlite::Error::SqliteFailure(code, None) => format!("SQLite: {code}"),
        // What follows the first colon or quotation mark may be a piece of the statement, a value in it included.
        rusqlite::Error::SqlInputError { error: code, msg, offset, .. } => {
            let what = if msg.ends_with("syntax error") {
                "syntax error"
            } else {
                msg.split([':', '"']).next().unwrap_or_default()
            };
            format!("SQLite: {what} at byte {offset}, code {}", code.extended_code)
        }
        rusqlite::Error::FromSqlConversionFailure(column, kind, _) => format!("column {column} holds a {kind}"),
        rusqlite::Error::InvalidColumnType(_, name, kind) => format!("column {name} holds a {kind}"),
        rusqlite::Error::MultipleStatement => "more than one statement".to_owned(),
        rusqlite::Error::InvalidParameterCount(given, wanted) => format!("{given} parameters for {wanted} places"),
        _ => "an unexpected answer of the driver".to_owned(),
    }
}

/// Adds the driver's error as the source, unless it carries the statement's text or a value.
pub(super) fn sourced(error: StoreError, source: rusqlite::Error) -> StoreError {
    match source {
        rusqlite::Error::SqliteFailure(..) => error.with_source(source),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;
    use crate::error::StoreErrorKind;

    fn sqlite(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    fn kind(failure: Failure) -> StoreErrorKind {
        failure.into_store_error(Path::new("reports.db")).kind()
    }

    #[test]
    fn a_commit_whose_outcome_cannot_be_known_is_unknown_and_costs_the_connection() {
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_SHMSIZE, ffi::SQLITE_CORRUPT] {
            let failure = Failure::at_commit(sqlite(code));
            assert!(failure.spoils_connection());
            assert_eq!(kind(failure), StoreErrorKind::Unknown, "{code}");
        }
    }

    #[test]
    fn a_commit_that_was_surely_not_written_is_busy_or_rejected() {
        assert!(matches!(Failure::at_commit(sqlite(ffi::SQLITE_BUSY)), Failure::Busy));
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_CONSTRAINT_FOREIGNKEY] {
            assert_eq!(kind(Failure::at_commit(sqlite(code))), StoreErrorKind::Rejected, "{code}");
        }
    }

    #[test]
    fn every_lock_of_somebody_else_is_waited_for() {
        let locks = [
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_RECOVERY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_LOCKED,
            ffi::SQLITE_PROTOCOL,
        ];
        for code in locks {
            assert!(matches!(Failure::from(sqlite(code)), Failure::Busy), "{code}");
        }
        assert_eq!(kind(Failure::Busy), StoreErrorKind::Unavailable);
    }

    #[test]
    fn before_the_commit_no_error_is_unknown() {
        for code in 1..=101 {
            assert_ne!(kind(Failure::from(sqlite(code))), StoreErrorKind::Unknown, "{code}");
        }
    }
}
