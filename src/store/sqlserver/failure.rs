//! What the driver's errors mean for the caller, by the server's error numbers.

use tiberius::error::{Error, TokenError};

use crate::error::{StoreError, StoreErrorKind};

/// What a call does to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: without its answer nothing is uncertain.
    Reads,
    /// Something, so that an answer that did not arrive leaves the outcome unknown.
    Writes,
}

/// How much of a call's answer came before an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    Nothing,
    /// What was found under the lock: the transaction is open, or committed since.
    WhatItFound,
    /// What was done: it is committed.
    WhatItDid,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server rolled it back for no fault of its own: run it again inside the budget.
    Again(StoreError),
    /// The server refused it, and its connection goes on.
    Refused(StoreError),
    /// It has no answer, or the last one of its connection.
    Lost(StoreError),
}

impl Failure {
    /// Of an error after a call was sent.
    pub(super) fn of(error: Error, effect: Effect) -> Self {
        match error {
            Error::Server(token) => of_server(token, effect),
            other => Self::Lost(unanswered(effect).with_source(other)),
        }
    }

    /// Of an error after so much of a call's answer.
    pub(super) fn after(error: Error, effect: Effect, answered: Answered) -> Self {
        match error {
            Error::Server(token) if effect == Effect::Writes && may_be_committed(&token, answered) => {
                Self::Lost(unanswered(effect).with_source(Error::Server(token)))
            }
            error => Self::of(error, effect),
        }
    }

    /// Of an error of the batches that install.
    pub(super) fn while_installing(error: Error) -> Self {
        match error {
            Error::Server(token) if is_about_permissions(token.code(), token.message()) => Self::Refused(
                StoreError::rejected(format!("{MAY_NOT_INSTALL} (error {})", token.code()))
                    .with_source(Error::Server(token)),
            ),
            other => Self::of(other, Effect::Writes),
        }
    }

    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Again(error) | Self::Refused(error) | Self::Lost(error) => error,
        }
    }
}

/// Of an error of a statement that the user added to a transaction. Until the commit nothing is applied, so nothing is unknown.
pub(super) fn of_own_statement(error: Error) -> StoreError {
    let Error::Server(token) = &error else { return unanswered(Effect::Reads).with_source(error) };
    let code = token.code();
    let (kind, message) = match meaning(code, token.message()) {
        Meaning::Again(_) if !matches!(code, 2_601 | 2_627) => (
            StoreErrorKind::Unavailable,
            "another transaction got in the way of a statement: run the whole transaction again",
        ),
        Meaning::Busy(_) | Meaning::Ending => {
            (StoreErrorKind::Unavailable, "the server could not run a statement now: run the whole transaction again")
        }
        _ => (
            StoreErrorKind::Rejected,
            "a statement of the transaction failed, and the transaction is over: look at the source of this error",
        ),
    };
    StoreError::new(kind, format!("{message} (error {code})")).with_source(error)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// After the commit a procedure only tells what it did. What can fail then is what can fail anywhere: memory, throttling.
fn may_be_committed(token: &TokenError, answered: Answered) -> bool {
    match answered {
        Answered::Nothing => false,
        Answered::WhatItFound => matches!(meaning(token.code(), token.message()), Meaning::Busy(_)),
        Answered::WhatItDid => true,
    }
}

/// Of a call whose answer did not arrive, or not in time.
pub(super) fn unanswered(effect: Effect) -> StoreError {
    match effect {
        Effect::Reads => StoreError::unavailable("the server's answer did not arrive: try again"),
        Effect::Writes => StoreError::unknown(
            "the server's answer did not arrive, so the operation may have been applied: send it again with the same identifiers, \
             or close it",
        ),
    }
}

/// Of an error while connecting, when nothing was sent yet.
pub(super) fn connecting(error: Error) -> StoreError {
    let message = match &error {
        Error::Server(token) => return of_login(token.code(), token.message()).with_source(error),
        Error::Tls(_) => {
            "no encrypted connection to the server: it may offer no TLS, or a certificate that nobody here trusts. Give its \
             authority's file as TrustServerCertificateCA; for a test server with a certificate of its own, say \
             TrustServerCertificate=true"
        }
        Error::Io { .. } => {
            "no connection to the server: look at its name, its port and the network, and whether it runs"
        }
        Error::Protocol(what) if what.contains("encryption level") => {
            "the server offers no encryption, and the login was not sent to it: have TLS set up there; nobody on the way should read \
             a password"
        }
        Error::Protocol(_) => "what answered does not speak SQL Server's protocol as expected",
        _ => "no connection to the server",
    };
    let kind = match &error {
        Error::Tls(_) => StoreErrorKind::Rejected,
        Error::Protocol(what) if what.contains("encryption level") => StoreErrorKind::Rejected,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, message).with_source(error)
}

fn of_login(code: u32, message: &str) -> StoreError {
    // Babelfish says of an unknown user, and of an empty password, what PostgreSQL says.
    let unknown_user =
        code == BABELFISH && (message.contains("does not exist") || message.contains("authentication request"));
    let message = match code {
        _ if unknown_user => NO_LOGIN,
        18_456 => NO_LOGIN,
        18_486..=18_488 => "the login's password is locked, expired or must be changed: ask the database's owner",
        18_452 | 18_470 => {
            "the login is disabled, or of a kind that this server does not accept: ask the database's owner"
        }
        4_060 | 911 | 916 => {
            "the database does not exist, or this login has no user in it: look at its name, and create the user"
        }
        40_532 | 40_615 | 40_914 => "the server's firewall keeps this client out: ask its owner",
        _ => {
            return StoreError::unavailable(format!(
                "the server does not accept connections now (error {code}): try again"
            ));
        }
    };
    StoreError::rejected(message)
}

/// Severities from here on end the connection, at a moment that may lie after the commit.
const FATAL: u8 = 20;

fn of_server(token: TokenError, effect: Effect) -> Failure {
    let (code, class) = (token.code(), token.class());
    if class >= FATAL {
        return Failure::Lost(unanswered(effect).with_source(Error::Server(token)));
    }
    let error = match meaning(code, token.message()) {
        Meaning::Again(why) => {
            return Failure::Again(
                StoreError::unavailable(format!("{why} (error {code}): try again")).with_source(Error::Server(token)),
            );
        }
        Meaning::Locked => {
            StoreError::unavailable(format!("the row is locked by somebody else (error {code}): try again"))
        }
        Meaning::Busy(why) => StoreError::unavailable(format!("{why} (error {code}): try again")),
        Meaning::Mend(why) => StoreError::rejected(format!("{why} (error {code})")),
        Meaning::Ending => return Failure::Lost(unanswered(effect).with_source(Error::Server(token))),
        Meaning::Other => StoreError::rejected(format!(
            "the server refused the call with error {code}, severity {class}, and rolled it back: look at the source of this error"
        )),
    };
    Failure::Refused(error.with_source(Error::Server(token)))
}

enum Meaning {
    /// Rolled back because of somebody else: the same call can succeed at once.
    Again(&'static str),
    /// Not applied: the wait for the row's lock was over.
    Locked,
    /// Not applied; later it may be.
    Busy(&'static str),
    /// Not applied, and not before somebody mends this.
    Mend(&'static str),
    /// The session ends, perhaps after the commit.
    Ending,
    Other,
}

fn meaning(code: u32, message: &str) -> Meaning {
    use Meaning::{Again, Busy, Ending, Locked, Mend, Other};
    match code {
        1_205 => Again("a deadlock was resolved against this call"),
        3_960 | 3_961 => Again(CHANGED),
        2_601 | 2_627 => Again("another call wrote the same ledger entry first"),
        BABELFISH if message.contains("could not serialize access") => Again(CHANGED),
        1_222 => Locked,
        BABELFISH if message.contains("lock timeout") => Locked,
        BABELFISH if is_about_permissions(code, message) => Mend(NO_PERMISSION),
        BABELFISH if message.contains("does not exist") => Mend(NOT_INSTALLED),
        BABELFISH if message.contains("read-only") => Mend(READ_ONLY),
        701 | 802 | 8_645 | 8_651 | 8_657 | 8_902 => Busy("the server is short of memory"),
        // Throttled, moved or failing over: Azure SQL and availability groups.
        40_197 | 40_143 | 40_540 | 40_545 => Ending,
        40_501
        | 40_613
        | 10_928
        | 10_929
        | 10_936
        | 49_918..=49_920
        | 4_221
        | 615
        | 41_301
        | 41_302
        | 41_305
        | 41_325
        | 41_839 => Busy("the service is throttling or moving the database"),
        922 | 927 | 976 | 978 | 979 | 981..=983 | 988 | 41_614 => Busy("the database is failing over"),
        40_544 | 40_549..=40_553 => Ending,
        // The session was killed, the server shuts down.
        596 | 6_005 | 6_006 | 3_980 | 233 | 64 | 20 | 121 | 10_053 | 10_054 | 10_060 => Ending,
        229 | 230 | 262 | 297 | 300 | 916 => Mend(NO_PERMISSION),
        201 | 207 | 208 | 2_812 | 8_144 | 8_145 | 51_803 => Mend(NOT_INSTALLED),
        3_906 | 3_908 => Mend(READ_ONLY),
        1_101 | 1_105 | 9_002 => Mend("the database or its log is full: make room"),
        823..=825 => Mend("the server cannot read or write its files: look at its disks"),
        51_800 => Mend(OPEN_TRANSACTION),
        // Babelfish cannot even set the isolation level in one.
        BABELFISH if message.contains("SET TRANSACTION ISOLATION failed") => Mend(OPEN_TRANSACTION),
        51_804 => Busy("another installation is under way"),
        1_934 => Mend(
            "the session has settings under which SQL Server writes no table with a filtered index: leave QUOTED_IDENTIFIER, ARITHABORT \
             and the ANSI settings as the driver sets them",
        ),
        51_801 => Mend(
            "the transaction is not open any more: one of its statements failed, or ended it. All that was not committed by such a \
             statement was rolled back",
        ),
        51_802 => Mend("the schema was installed by a newer version of leasehold: use a build that is as new"),
        _ => Other,
    }
}

const NO_LOGIN: &str = "the login failed: look at the user's name and password";
/// Babelfish's one number for whatever PostgreSQL says and T-SQL has no number for.
const BABELFISH: u32 = 33_557_097;

fn is_about_permissions(code: u32, message: &str) -> bool {
    matches!(code, 229 | 230 | 262 | 297 | 300 | 2_760 | 15_151 | 15_247)
        || (code == BABELFISH && message.contains("permission denied"))
}

const MAY_NOT_INSTALL: &str = "this login may not create the schema's tables, procedures and roles: install with a login that may, or \
                               have a DBA run the script of install_script()";
const NOT_INSTALLED: &str = "leasehold's tables and procedures are missing or of another version in this schema: run install(), or have \
                             the script of install_script() run";
const CHANGED: &str = "another transaction changed what this one had seen";
const OPEN_TRANSACTION: &str = "a transaction is open on this connection, and what is done in it may never be committed: hand out \
                                connections without an open transaction";
const NO_PERMISSION: &str = "this login may not do that: add its user to the role leasehold_worker (or leasehold_operator, for force \
                             releases, source revisions, epochs and pruning)";
const READ_ONLY: &str = "the database is read-only: connect to the primary, or have it made writable";

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: u32) -> &'static str {
        match meaning(code, "") {
            Meaning::Again(_) => "again",
            Meaning::Locked => "locked",
            Meaning::Busy(_) => "busy",
            Meaning::Mend(_) => "mend",
            Meaning::Ending => "ending",
            Meaning::Other => "other",
        }
    }

    #[test]
    fn what_can_succeed_later_is_told_from_what_must_be_mended() {
        for (code, expected) in [
            (1_205, "again"),
            (2_627, "again"),
            (1_222, "locked"),
            (40_613, "busy"),
            (40_501, "busy"),
            (983, "busy"),
            (40_197, "ending"),
            (596, "ending"),
            (229, "mend"),
            (2_812, "mend"),
            (3_906, "mend"),
            (1_934, "mend"),
            (51_804, "busy"),
            (547, "other"),
        ] {
            assert_eq!(kind(code), expected, "{code}");
        }
    }

    #[test]
    fn an_answer_that_did_not_arrive_is_unknown_only_if_something_was_written() {
        let lost = || Error::Io { kind: std::io::ErrorKind::BrokenPipe, message: "gone".to_owned() };
        assert_eq!(Failure::of(lost(), Effect::Writes).into_error().kind(), StoreErrorKind::Unknown);
        assert_eq!(Failure::of(lost(), Effect::Reads).into_error().kind(), StoreErrorKind::Unavailable);
        assert_eq!(connecting(lost()).kind(), StoreErrorKind::Unavailable);
    }

    #[test]
    fn a_login_that_somebody_must_mend_is_rejected() {
        for code in [18_456, 18_470, 18_487, 4_060, 40_615] {
            assert_eq!(of_login(code, "").kind(), StoreErrorKind::Rejected, "{code}");
        }
        assert_eq!(of_login(40_613, "").kind(), StoreErrorKind::Unavailable);
    }
}
