//! The command line: the scenes for people, and the roles that the program runs itself again in.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::database::DatabaseArguments;
use crate::event::Who;

/// Shows with real processes, on one database, what becomes of a worker that is stopped past its lease and then writes.
#[derive(Debug, Parser)]
#[command(
    name = "handover",
    after_help = "Without --naive, --kill or --lost-ack: the fenced handover, then the plain lease, then both side by side.\n\
                  On an SQLite file of its own, which is deleted at the end; with --sqlserver or --postgres on a server where \
                  leasehold is installed, with a login that may create, read and delete in its schema: what was made there is deleted, too.\n\
                  Exit codes: 0 the evidence holds; 1 it does not, or something failed; 130 interrupted.",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) scenes: Scenes,

    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// What to show.
#[derive(Debug, Args)]
pub(crate) struct Scenes {
    /// Only the plain lease: A overwrites B
    #[arg(long, group = "scene")]
    pub(crate) naive: bool,

    /// A is killed with kill -9: B takes over within one TTL
    #[arg(long, group = "scene")]
    pub(crate) kill: bool,

    /// A is killed before it hears whether it published: its ticket tells
    #[arg(long, group = "scene")]
    pub(crate) lost_ack: bool,

    /// The control experiment: A is not stopped, so that nothing is refused, the evidence fails and the exit code is 1
    #[arg(long, conflicts_with = "scene")]
    pub(crate) control: bool,

    #[command(flatten)]
    pub(crate) database: DatabaseArguments,

    /// How long a lease lasts unless it is renewed
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = humantime::parse_duration)]
    pub(crate) ttl: Duration,

    /// Where to write the picture of both handovers. Default: beside this program, in cargo's target folder
    #[arg(long, value_name = "PATH")]
    pub(crate) svg: Option<PathBuf>,
}

/// What a process that the director started does.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// One worker; prints its events as JSON lines, and waits at its gate for the line `go`
    #[command(hide = true)]
    Worker(Worker),
}

/// A worker's orders.
#[derive(Debug, Clone, Args)]
pub(crate) struct Worker {
    #[arg(value_enum)]
    pub(crate) task: Task,
    #[arg(long)]
    pub(crate) who: Who,
    #[command(flatten)]
    pub(crate) database: DatabaseArguments,
    /// The name of the report that the workers are about
    #[arg(long)]
    pub(crate) report: String,
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(crate) ttl: Duration,
    #[arg(long, value_parser = humantime::parse_duration, default_value = "0s")]
    pub(crate) build: Duration,
    /// Where a ticket is written to or read from
    #[arg(long, required_if_eq_any([("task", "unanswered"), ("task", "resolve")]))]
    pub(crate) ticket: Option<PathBuf>,
}

/// What a worker is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Acquires, builds and publishes with leasehold
    Fenced,
    /// The same with a plain lease
    Plain,
    /// Writes its ticket, sends its publication and never hears the answer
    Unanswered,
    /// Asks what a ticket came to
    Resolve,
}

impl Task {
    /// As the command line has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::Plain => "plain",
            Self::Unanswered => "unanswered",
            Self::Resolve => "resolve",
        }
    }
}
