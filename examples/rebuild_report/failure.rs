//! How a run can end without a report: each in sentences that say what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use leasehold::answer::{Busy, Refusal, ReportStatus};
use leasehold::{
    AcquireError, InvalidHolder, Loss, PolicyError, PublishError, ReleaseOutcome, SourceRevision, StoreError,
};

use crate::database::Unnamed;
use crate::{interrupt, wording};

/// Why a run ended without what was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Somebody else holds the lease.
    Busy(Busy),
    /// The lease was lost, and with it the build; and what the database says about the report now, if it could be asked.
    Lost { loss: Loss, now: Option<Box<ReportStatus>> },
    /// The database refused the publication, because the lease is over.
    Refused(Refusal),
    /// The user ended it before there was a lease.
    InterruptedUnleased,
    /// The user ended it while the lease was held.
    Interrupted { renewals: u64, release: ReleaseOutcome },
    /// The user ended it while it was being published, and it is certain that it was not.
    InterruptedPublishing,
    /// Signals cannot be listened for.
    Signals(io::Error),
    /// There is no thread for renewals.
    Thread(io::Error),
    /// There is no such folder.
    Folder { folder: PathBuf, source: io::Error },
    /// The label is not fit to print.
    Holder(InvalidHolder),
    /// The durations cannot work.
    Policy(PolicyError),
    /// There is no database to use.
    Unnamed(Unnamed),
    /// The database was not opened or read.
    Store(StoreError),
    /// The server has no tables of leasehold's, or those of another version.
    NotInstalled { error: StoreError, to_install: String },
    /// The lease was not acquired, for another reason than that it is busy.
    Acquire(AcquireError),
    /// The report has revisions, and this one is too old, or was not given.
    Revision { given: Option<SourceRevision>, required: SourceRevision },
    /// There is more to report than a payload may hold.
    TooLarge { files: usize, limit: usize },
    /// The report was not published.
    Publish(PublishError),
    /// The report was published or not: the answer was lost, and could not be asked for again.
    Unresolved { error: StoreError, to_read: String },
    /// The answer was lost, and it is certain now that nothing was published.
    AnswerLost,
    /// There is nothing to read.
    Unpublished { name: String, to_build: String },
    /// What is published is no inventory, or one of another version of this program.
    Foreign { why: String, to_read: String },
    /// The library has learned to answer what this program does not know.
    Unexpected(String),
}

impl Failure {
    /// What the process answers to its caller.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Busy(_) => 3.into(),
            Self::Lost { .. } | Self::Refused(_) => 4.into(),
            Self::InterruptedUnleased | Self::Interrupted { .. } | Self::InterruptedPublishing => {
                interrupt::EXIT_CODE.into()
            }
            _ => ExitCode::FAILURE,
        }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Busy(busy) => Self::Busy(busy),
            error => Self::Acquire(error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(busy) => {
                write!(f, "{}\nNothing was built. To wait for it, add --wait.", held(busy))
            }
            Self::Lost { loss, now } => lost(f, loss, now.as_deref()),
            Self::Refused(refusal) => {
                write!(f, "The lease was lost: {refusal}.\nThe database refused the report, and nothing was published.")
            }
            Self::InterruptedUnleased => f.write_str("Interrupted before the lease was had: nothing is held."),
            Self::Interrupted { renewals, release } => {
                let renewals = wording::count(*renewals, "renewal");
                writeln!(f, "Interrupted after {renewals}: the build was stopped and nothing was published.")?;
                f.write_str(&released(release))
            }
            Self::InterruptedPublishing => f.write_str(
                "Interrupted while the report was being published: it was not, and never will be. The lease is released.",
            ),
            Self::Signals(error) => write!(f, "Ctrl-C cannot be listened for: {error}"),
            Self::Thread(error) => write!(f, "There is no thread for the renewals: {error}"),
            Self::Folder { folder, source } => {
                write!(f, "{} cannot be taken stock of: {source}. Give a folder that this user can read.", folder.display())
            }
            Self::Holder(error) => write!(f, "--holder: {error}"),
            Self::Policy(error) => write!(f, "The lease cannot work: {error}"),
            Self::Unnamed(error) => error.fmt(f),
            Self::Store(error) => write!(f, "The database cannot be used: {error}"),
            Self::NotInstalled { error, to_install } => write!(
                f,
                "The database is not ready: {error}.\nTo install them, once, with a login that may create tables, procedures and \
                 roles: {to_install}"
            ),
            Self::Acquire(error) => write!(f, "The lease was not acquired: {error}"),
            Self::Revision { given, required } => revision(f, *given, *required),
            Self::TooLarge { files, limit } => write!(
                f,
                "The report is too large: about {} are all that its limit of {} holds. The lease is released and nothing was \
                 published. Take stock of a smaller folder, leave some out with a .ignore file, or raise --max-payload.",
                wording::count(*files as u64, "file"),
                wording::count(*limit as u64, "byte"),
            ),
            Self::Publish(error) => write!(f, "The report was built, but {error}"),
            Self::Unresolved { error, to_read } => write!(
                f,
                "Whether the report was published is not known: the database's answer was lost, and it cannot be asked now \
                 ({error}).\nLook later: {to_read}"
            ),
            Self::AnswerLost => f.write_str(
                "The database's answer was lost. It was asked again, and nothing was published, nor will be: run this again.",
            ),
            Self::Unpublished { name, to_build } => {
                write!(f, "Nothing is published yet as {name:?}.\nTo build and publish it: {to_build}")
            }
            Self::Foreign { why, to_read } => write!(
                f,
                "What is published is not an inventory that this version reads ({why}).\nTo see it as it is: {to_read} --json"
            ),
            Self::Unexpected(answer) => write!(f, "The library answered what this program does not know: {answer}"),
        }
    }
}

/// Who holds the lease, since when, and for how long.
pub(crate) fn held(busy: &Busy) -> String {
    format!(
        "{} holds the lease on this report, since {}. Unless renewed, it ends in {}.",
        busy.holder,
        wording::time(busy.since),
        wording::duration(busy.remaining),
    )
}

fn lost(f: &mut fmt::Formatter<'_>, loss: &Loss, now: Option<&ReportStatus>) -> fmt::Result {
    writeln!(f, "The lease was lost: {}.", loss.reason())?;
    let confirmed = wording::duration(loss.since_confirmed());
    write!(f, "Evidence: generation {} was last confirmed {confirmed} before", loss.fence().generation)?;
    if !loss.past_deadline().is_zero() {
        write!(f, ", and its local deadline had passed {} before", wording::duration(loss.past_deadline()))?;
    }
    match loss.last_error() {
        Some(error) => writeln!(f, "; the last attempt to renew it failed: {error}.")?,
        None => writeln!(f, ".")?,
    }
    if let Some(status) = now {
        write!(f, "The database has generation {} now", status.metadata.generation)?;
        match &status.lease {
            Some(lease) => writeln!(f, ", held by {} since {}.", lease.holder, wording::time(lease.since))?,
            None => writeln!(f, ", which nobody holds.")?,
        }
    }
    f.write_str("What was built is discarded and nothing was published. Run this again to build it anew.")
}

fn released(release: &ReleaseOutcome) -> String {
    match release {
        ReleaseOutcome::Released => "The lease was released: the next run need not wait.".to_owned(),
        ReleaseOutcome::AlreadyOver => "The lease was over already.".to_owned(),
        ReleaseOutcome::Unconfirmed(error) => {
            format!("Its release was not confirmed ({error}): the lease ends with its TTL at the latest.")
        }
        _ => "The lease ends with its TTL.".to_owned(),
    }
}

fn revision(f: &mut fmt::Formatter<'_>, given: Option<SourceRevision>, required: SourceRevision) -> fmt::Result {
    match given {
        Some(given) => write!(f, "Revision {given} is too old: at least {required} is required. ")?,
        None => write!(f, "This report has revisions, and at least {required} is required. ")?,
    }
    let next = required.get().saturating_add(1);
    write!(f, "Nothing was built. Give the revision of what you have now, say --revision {next}.")
}
