//! The database that the user named, for both examples: where it is, and its store.
//!
//! A store more is a variant of [`Database`] and one of [`OpenStore`].

// Each example uses a part of it; and without any store's feature nothing can be opened.
#![allow(dead_code, unreachable_code, unused_imports, unused_variables)]

mod open_store;
#[cfg(feature = "sqlserver")]
mod server;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use leasehold::{StoreError, StoreErrorKind};

pub(crate) use self::open_store::OpenStore;
#[cfg(feature = "sqlserver")]
pub(crate) use self::server::Server;

/// How long opening a database may take.
const OPENING: Duration = Duration::from_secs(15);

/// Where a connection string is looked for that is not on the command line, which everybody on this machine can read.
#[cfg(feature = "sqlserver")]
pub(crate) const SQLSERVER_VARIABLE: &str = "LEASEHOLD_SQLSERVER";

/// The options that name a database.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DatabaseArguments {
    /// An SQLite file; it is created if there is none
    #[cfg(feature = "sqlite")]
    #[arg(long, value_name = "PATH")]
    #[cfg_attr(feature = "sqlserver", arg(conflicts_with = "sqlserver"))]
    pub(crate) database: Option<PathBuf>,

    /// A SQL Server, as an ADO.NET or JDBC string. Unless a file is given, LEASEHOLD_SQLSERVER of the environment is used, which
    /// other users of this machine do not see in the list of processes
    #[cfg(feature = "sqlserver")]
    #[arg(long, value_name = "CONNECTION_STRING")]
    pub(crate) sqlserver: Option<Secret>,

    /// The schema on the SQL Server that holds leasehold's tables
    #[cfg(feature = "sqlserver")]
    #[arg(long, value_name = "NAME", default_value = "dbo")]
    pub(crate) schema: String,
}

/// A connection string, which is never printed.
#[derive(Clone)]
pub(crate) struct Secret(String);

/// Where the reports are.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    #[cfg(feature = "sqlite")]
    File(PathBuf),
    #[cfg(feature = "sqlserver")]
    SqlServer(Server),
}

impl DatabaseArguments {
    /// The database that was named: on the command line, in the environment, or this file if there is a store for files.
    pub(crate) fn named(&self, default_file: Option<&Path>) -> Result<Database, Unnamed> {
        #[cfg(feature = "sqlite")]
        if let Some(path) = &self.database {
            return Ok(Database::File(path.clone()));
        }
        #[cfg(feature = "sqlserver")]
        if let Some(string) = self.sqlserver.clone().or_else(|| Secret::from_environment(SQLSERVER_VARIABLE)) {
            return Ok(Database::SqlServer(Server::new(string, &self.schema)));
        }
        #[cfg(feature = "sqlite")]
        if let Some(path) = default_file {
            return Ok(Database::File(path.to_owned()));
        }
        Err(Unnamed)
    }

    /// The same again, as a user would type it; what is secret stays out.
    pub(crate) fn words(&self, quoted: impl Fn(&std::ffi::OsStr) -> String) -> Vec<String> {
        let mut words = Vec::new();
        #[cfg(feature = "sqlite")]
        if let Some(path) = &self.database {
            words.extend(["--database".to_owned(), quoted(path.as_os_str())]);
        }
        #[cfg(feature = "sqlserver")]
        {
            if self.sqlserver.is_some() {
                words.extend(["--sqlserver".to_owned(), "'…as before…'".to_owned()]);
            }
            if self.schema != "dbo" {
                words.extend(["--schema".to_owned(), quoted(self.schema.as_ref())]);
            }
        }
        words
    }
}

impl Database {
    /// Opens it: makes the file, or looks whether the server lets this login in and has what is needed.
    pub(crate) async fn open(&self) -> Result<OpenStore, StoreError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(path) => Ok(OpenStore::Sqlite(leasehold::store::sqlite::SqliteStore::open(path).await?)),
            #[cfg(feature = "sqlserver")]
            Self::SqlServer(server) => Ok(OpenStore::SqlServer(server.open(OPENING).await?)),
            #[allow(unreachable_patterns)]
            _ => unreachable!("without a store nothing can be named"),
        }
    }

    /// Makes what the store needs there.
    pub(crate) async fn install(&self) -> Result<(), StoreError> {
        match self {
            #[cfg(feature = "sqlserver")]
            Self::SqlServer(server) => server.install().await,
            // A file is made when it is first opened.
            _ => self.open().await.map(drop),
        }
    }

    /// Whether it surely holds nothing yet. A reader should not open what opening would create.
    pub(crate) fn is_absent(&self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(path) => matches!(path.try_exists(), Ok(false)),
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }

    /// The files on this machine that it consists of: SQLite keeps some beside the one that was named.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(path) => {
                let Ok(path) = path.canonicalize() else { return Vec::new() };
                let beside = |suffix: &str| {
                    let mut path = path.clone().into_os_string();
                    path.push(suffix);
                    PathBuf::from(path)
                };
                ["", "-wal", "-shm", "-journal"].map(beside).to_vec()
            }
            #[allow(unreachable_patterns)]
            _ => Vec::new(),
        }
    }

    /// Names it to another process of the same program. What is secret goes through the environment.
    pub(crate) fn hand_to(&self, command: &mut Command) {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(path) => {
                command.arg("--database").arg(path);
            }
            #[cfg(feature = "sqlserver")]
            Self::SqlServer(server) => {
                command.arg("--schema").arg(server.schema()).env(SQLSERVER_VARIABLE, &server.string().0);
            }
            #[allow(unreachable_patterns)]
            _ => {}
        }
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(path) => write!(f, "the SQLite file {}", path.display()),
            #[cfg(feature = "sqlserver")]
            Self::SqlServer(server) => write!(f, "schema {} of the SQL Server", server.schema()),
            #[allow(unreachable_patterns)]
            _ => Ok(()),
        }
    }
}

impl Secret {
    fn from_environment(variable: &str) -> Option<Self> {
        std::env::var(variable).ok().filter(|string| !string.trim().is_empty()).map(Self)
    }
}

impl std::str::FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(string: &str) -> Result<Self, Self::Err> {
        Ok(Self(string.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Whether an error says that the store's tables are missing, or of another version.
pub(crate) fn is_not_installed(error: &StoreError) -> bool {
    error.kind() == StoreErrorKind::Rejected && error.to_string().contains("install()")
}

/// No database was named, and there is none to use instead.
#[derive(Debug)]
pub(crate) struct Unnamed;

impl fmt::Display for Unnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if cfg!(feature = "sqlserver") {
            f.write_str("No database was named: give --sqlserver, or LEASEHOLD_SQLSERVER in the environment.")
        } else {
            f.write_str("This was built without a store: build it with --features sqlserver or --features sqlite.")
        }
    }
}

impl std::error::Error for Unnamed {}
