//! What went wrong, and what it means for the caller.
//!
//! PostgreSQL's own texts are repeated only where they are about the server or the login: in others a value may be quoted, and
//! a payload belongs in no log.

use std::error::Error as _;

use deadpool_postgres::PoolError;
use tokio_postgres::error::{DbError, Severity};

use crate::error::{StoreError, StoreErrorKind};

/// Why a flight gave no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// A passing conflict undid it. Nothing was applied: run it again while the budget lasts.
    Undone(StoreError),
    /// A fenced transaction's publication was not accepted, and all was rolled back.
    NotAccepted,
    /// The answer did not arrive, and the connection is of no use any more.
    Lost(StoreError),
    /// For the caller.
    Final(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Final(error)
    }
}

impl Failure {
    /// Where running it again is not ours to do.
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Undone(error) | Self::Lost(error) | Self::Final(error) => error,
            Self::NotAccepted => disagreement(false),
        }
    }
}

/// The answer did not arrive: of a write nobody knows, of a read nothing is lost.
pub(super) fn no_answer(writes: bool, what: &str) -> StoreError {
    if writes {
        StoreError::unknown(format!("{what}: send the request again with the same identifiers, or close it"))
    } else {
        StoreError::unavailable(format!("{what}: try again"))
    }
}

/// What an error in a flight means.
///
/// An error that the server *answers* rolled the transaction back, also at its COMMIT. One that ends the session, and one that
/// is not the server's at all, may have come after the COMMIT was done.
pub(super) fn of_flight(error: &tokio_postgres::Error, writes: bool) -> Failure {
    let Some(said) = error.as_db_error() else {
        let what = format!("the connection to the server failed ({})", outline(error));
        return Failure::Lost(no_answer(writes, &what));
    };
    if said.parsed_severity() != Some(Severity::Error) {
        let what = format!("the server ended the connection (SQLSTATE {})", said.code().code());
        return Failure::Lost(no_answer(writes, &what));
    }
    let refused = refused(said);
    match said.code().code() {
        "40001" | "40P01" => Failure::Undone(refused),
        // Two that write the same key at once. A key of the user's own, checked at the COMMIT, stays violated.
        "23505" if is_ours(said) => Failure::Undone(refused),
        "LH002" => Failure::NotAccepted,
        _ => Failure::Final(refused),
    }
}

/// Whether an error is about one of leasehold's tables.
fn is_ours(said: &DbError) -> bool {
    matches!(said.table(), Some("report_publication" | "report_payload" | "report_ledger"))
}

/// What an error means that the server answered, and with which it surely applied nothing.
pub(super) fn refused(said: &DbError) -> StoreError {
    use StoreErrorKind::{Rejected, Unavailable};
    let code = said.code().code();
    let (kind, what) = match code {
        "55P03" => (
            Unavailable,
            "somebody else held a lock until the budget ended: try again, and look for a session that \
                                  waits inside a transaction (pg_stat_activity)",
        ),
        "57014" => (
            Unavailable,
            "the server did not finish within the budget, or an operator cancelled it: try again, or \
                                  give a longer budget",
        ),
        "40001" | "40P01" => (Unavailable, "others' transactions were in the way until the budget ended: try again"),
        "23505" if is_ours(said) => (Unavailable, "another call wrote the same key until the budget ended: try again"),
        "57P03" => (Unavailable, "the server starts up, shuts down or recovers: try again"),
        "57P01" | "57P02" | "57P05" => (Unavailable, "the server ended the connection: try again"),
        "53300" => {
            (Unavailable, "the server has no connection left: try again, and raise max_connections, or lower pool_size")
        }
        "53200" => (Unavailable, "the server had no memory for it: try again"),
        "53100" => (Rejected, "the server's disk is full, and all was rolled back: make room there"),
        "28P01" | "28000" => (Rejected, "the server refused the login: mend user, password or pg_hba.conf"),
        "3D000" => (Rejected, "the server has no database of that name: mend the connection string, or create it"),
        "3F000" | "42883" | "42P01" | "42704" => (
            Rejected,
            "leasehold's schema is not installed in this database, or in another version: run install(), or its script",
        ),
        "42501" => (
            Rejected,
            "this login may not do that: grant it the worker's role, or for operators' calls the operator's (and to install, \
             the right to create a schema and roles)",
        ),
        "25006" => (
            Rejected,
            "the database is read-only: connect to the primary server (target_session_attrs=read-write), or look at \
             default_transaction_read_only",
        ),
        "LH001" => (Rejected, "the transaction is not READ COMMITTED: report this"),
        "LH003" => (Rejected, "a newer version of the schema is installed, and was left alone: update leasehold here"),
        "LH004" => (
            Rejected,
            "one of the transaction's own statements ended it: what came before that was committed or rolled back by itself, \
             and nothing was published",
        ),
        "25P02" => (Rejected, "an earlier statement of the transaction failed, and all of it was rolled back"),
        _ if code.starts_with("08") => (Unavailable, "the connection failed at the server: try again"),
        _ if code.starts_with("53") || code.starts_with("57") => {
            (Unavailable, "the server could not do it now: try again")
        }
        _ => (Rejected, "the server refused the statement, and nothing was applied: look at its log"),
    };
    StoreError::new(kind, format!("{what} (SQLSTATE {code}{})", names(said)))
}

/// The names in an error: those of tables and constraints are no values.
fn names(said: &DbError) -> String {
    [("table", said.table()), ("constraint", said.constraint()), ("column", said.column())]
        .into_iter()
        .filter_map(|(what, name)| Some(format!(", {what} {}", name?)))
        .collect()
}

/// A connection could not be had: nothing was sent.
pub(super) fn not_connected(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => not_logged_in(&error),
        other => StoreError::unavailable("the pool gave no connection: try again").with_source(other),
    }
}

fn not_logged_in(error: &tokio_postgres::Error) -> StoreError {
    if let Some(said) = error.as_db_error() {
        return refused(said);
    }
    let outline = outline(error);
    // The driver's error has no public kind but its text.
    match error.to_string().as_str() {
        "error performing TLS handshake" => StoreError::rejected(format!(
            "TLS with the server failed: turn TLS on there, with a certificate for this host name of an authority that is \
             trusted here (ca_file), or say sslmode=disable where the network is safe ({outline})"
        )),
        "authentication error" | "invalid configuration" => StoreError::rejected(format!(
            "the login cannot be tried as it is configured: look at user, password and host ({outline})"
        )),
        _ => StoreError::unavailable(format!(
            "the server cannot be reached: look at host and port, and whether it runs ({outline})"
        )),
    }
}

/// What the driver says of itself, and the system below it; nothing that the server said.
fn outline(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source.filter(|cause| !cause.is::<DbError>()) {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The installed functions and this library came to different conclusions.
pub(super) fn disagreement(applied: bool) -> StoreError {
    let what = "the functions that are installed in the database and this build of leasehold disagree about an answer: run \
                install() with the newest build in use, and look for triggers on leasehold's tables";
    if applied {
        // The functions did write something; it is only not what this build would have.
        StoreError::unknown(what)
    } else {
        StoreError::rejected(what)
    }
}
