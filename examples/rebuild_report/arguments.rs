//! The command line, and what it means for the lease.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use leasehold::{Holder, LeasePolicy, SourceRevision};

use crate::database::{Database, DatabaseArguments};
use crate::failure::Failure;
use crate::names;

/// A build that reads nothing for so long hangs (on a dead network disk, say): its lease is given up.
const STALLED: Duration = Duration::from_secs(300);

/// Builds an inventory of a folder under a renewed lease, and publishes it into a database.
#[derive(Debug, Parser)]
#[command(
    name = "rebuild_report",
    after_help = "Exit codes: 0 published, already fresh or read; 3 somebody else holds the lease; 4 the lease was lost; \
                  130 interrupted; 1 anything else."
)]
pub(crate) struct Arguments {
    /// The folder to take stock of. Default: the package that `cargo run` runs, or else the current folder
    pub(crate) folder: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) database: DatabaseArguments,

    /// Create leasehold's tables, procedures and roles in the database, and build nothing. Rows that are there are kept
    #[arg(long)]
    pub(crate) install: bool,

    /// Print the script that --install would run on the server (a SQL Server, unless PostgreSQL is named), for a DBA to read and
    /// run. Nothing is connected to
    #[cfg(any(feature = "sqlserver", feature = "postgres"))]
    #[arg(long, conflicts_with_all = ["install", "read"])]
    pub(crate) install_script: bool,

    /// How long the lease lasts unless it is renewed
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) ttl: Duration,

    /// How often to renew it. Default: a third of the TTL
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) cadence: Option<Duration>,

    /// If somebody else holds the lease, wait for it
    #[arg(long)]
    pub(crate) wait: bool,

    /// The revision of the source data; if it is already visible, nothing is built
    #[arg(long, value_name = "N")]
    pub(crate) revision: Option<i64>,

    /// Pause after every file, to have time to watch
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    pub(crate) slow: Duration,

    /// The report's name; whoever gives the same name works on the same report. Default: the folder's full path
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// What others are told who find the lease taken. Default: host/pid/program
    #[arg(long, value_name = "LABEL")]
    pub(crate) holder: Option<String>,

    /// The largest report to publish
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    pub(crate) max_payload: usize,

    /// Print the published report instead of building one
    #[arg(long, conflicts_with = "install")]
    pub(crate) read: bool,

    /// With --read: the payload as it is
    #[arg(long, requires = "read")]
    pub(crate) json: bool,
}

/// Where reports go unless the user says otherwise.
const DEFAULT_FILE: &str = "leasehold-reports.db";

impl Arguments {
    /// Where reports go.
    pub(crate) fn database(&self) -> Result<Database, Failure> {
        self.database.named(Some(Path::new(DEFAULT_FILE))).map_err(Failure::Unnamed)
    }

    /// The folder to take stock of: its canonical path, which is the same from wherever this is run, and which the
    /// database's can be compared with.
    pub(crate) fn canonical_folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.folder.clone().unwrap_or_else(default_folder);
        let failed = |source| Failure::Folder { folder: folder.clone(), source };
        let canonical = folder.canonicalize().map_err(failed)?;
        // Also says so if it is a file.
        std::fs::read_dir(&canonical).map_err(failed)?;
        Ok(canonical)
    }

    /// The report's name.
    pub(crate) fn report_name(&self) -> Result<String, Failure> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => Ok(names::readable(&self.canonical_folder()?)),
        }
    }

    /// How to hold the lease.
    pub(crate) fn policy(&self) -> Result<LeasePolicy, Failure> {
        let mut policy = LeasePolicy::builder(self.ttl).stall_after(STALLED).max_payload(self.max_payload);
        if let Some(cadence) = self.cadence {
            policy = policy.cadence(cadence);
        }
        if let Some(label) = &self.holder {
            policy = policy.holder(Holder::new(label.as_str()).map_err(Failure::Holder)?);
        }
        policy.build().map_err(Failure::Policy)
    }

    /// The revision to build, if the user keeps revisions.
    pub(crate) fn wanted(&self) -> Option<SourceRevision> {
        self.revision.map(SourceRevision::new)
    }
}

/// The package's own folder under `cargo run`, else the current one.
fn default_folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from)
}
