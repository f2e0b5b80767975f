//! The database that the user named, for both examples: where it is, and its store.
//!
//! A store more is a variant of [`Database`] and one of [`OpenStore`].

// Each example uses a part of it; and without any store's feature nothing can be opened.
#![allow(dead_code, unreachable_code, unreachable_patterns, unused_imports, unused_variables)]

mod open_store;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlserver")]
mod server;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use leasehold::{StoreError, StoreErrorKind};

pub(crate) use self::open_store::OpenStore;
#[cfg(feature = "postgres")]
pub(crate) use self::postgres::PostgresServer;
#[cfg(feature = "sqlserver")]
pub(crate) use self::server::Server;

/// How long opening a database may take.
const OPENING: Duration = Duration::from_secs(15);

/// Where a connection string is looked for that is not on the command line, which everybody on this machine can read.
pub(crate) const SQLSERVER_VARIABLE: &str = "LEASEHOLD_SQLSERVER";

/// The same for the URL of a PostgreSQL server.
pub(crate) const POSTGRES_VARIABLE: &str = "LEASEHOLD_POSTGRES";

/// The options that name a database.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DatabaseArguments {
    /// An SQLite file; it is created if there is none
    #[cfg(feature = "sqlite")]
    #[arg(long, value_name = "PATH")]
    #[cfg_attr(feature = "sqlserver", arg(conflicts_with = "sqlserver"))]
    #[cfg_attr(feature = "postgres", arg(conflicts_with = "postgres"))]
    pub(crate) database: Option<PathBuf>,

    /// A SQL Server, as an ADO.NET or JDBC string. Unless a database is given, LEASEHOLD_SQLSERVER of the environment is used,
    /// which other users of this machine do not see in the list of processes
    #[cfg(feature = "sqlserver")]
    #[arg(long, value_name = "CONNECTION_STRING")]
    #[cfg_attr(feature = "postgres", arg(conflicts_with = "postgres"))]
    pub(crate) sqlserver: Option<Secret>,

    /// A PostgreSQL server, as a URL (postgresql://…); with TLS unless it says sslmode=disable. Unless a database is given,
    /// LEASEHOLD_POSTGRES of the environment is used, which other users of this machine do not see in the list of processes
    #[cfg(feature = "postgres")]
    #[arg(long, value_name = "URL")]
    pub(crate) postgres: Option<Secret>,

    /// The schema on the server that holds leasehold's tables. Default: dbo on a SQL Server, leasehold on PostgreSQL
    #[cfg(any(feature = "sqlserver", feature = "postgres"))]
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,
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
    #[cfg(feature = "postgres")]
    Postgres(PostgresServer),
}

impl DatabaseArguments {
    /// The database that was named: on the command line, in the environment, or this file if there is a store for files.
    pub(crate) fn named(&self, default_file: Option<&Path>) -> Result<Database, Unnamed> {
        #[cfg(feature = "sqlite")]
        if let Some(path) = &self.database {
            return Ok(Database::File(path.clone()));
        }
        if let Some(server) = self.server()? {
            return Ok(server);
        }
        #[cfg(feature = "sqlite")]
        if let Some(path) = default_file {
            return Ok(Database::File(path.to_owned()));
        }
        Err(Unnamed::Nothing)
    }

    /// The server that was named: on the command line, or else in the environment.
    fn server(&self) -> Result<Option<Database>, Unnamed> {
        let mut named: Vec<Database> = Vec::new();
        #[cfg(feature = "sqlserver")]
        named.extend(self.sqlserver.clone().map(|string| self.on_sqlserver(string)));
        #[cfg(feature = "postgres")]
        named.extend(self.postgres.clone().map(|url| self.on_postgres(url)));
        if named.is_empty() {
            #[cfg(feature = "sqlserver")]
            named.extend(Secret::from_environment(SQLSERVER_VARIABLE).map(|string| self.on_sqlserver(string)));
            #[cfg(feature = "postgres")]
            named.extend(Secret::from_environment(POSTGRES_VARIABLE).map(|url| self.on_postgres(url)));
        }
        if named.len() > 1 { Err(Unnamed::Two) } else { Ok(named.pop()) }
    }

    #[cfg(feature = "sqlserver")]
    fn on_sqlserver(&self, string: Secret) -> Database {
        Database::SqlServer(Server::new(string, self.schema.as_deref()))
    }

    #[cfg(feature = "postgres")]
    fn on_postgres(&self, url: Secret) -> Database {
        Database::Postgres(PostgresServer::new(url, self.schema.as_deref()))
    }

    /// What an installation would run on the server that was named; without one, on the first kind that this was built for.
    #[cfg(any(feature = "sqlserver", feature = "postgres"))]
    pub(crate) fn install_script(&self) -> Result<Result<String, StoreError>, Unnamed> {
        let (named, schema) = (self.server()?, self.schema.as_deref());
        #[cfg(feature = "postgres")]
        if matches!(named, Some(Database::Postgres(_))) || cfg!(not(feature = "sqlserver")) {
            return Ok(PostgresServer::install_script(schema));
        }
        #[cfg(feature = "sqlserver")]
        return Ok(Server::install_script(schema));
        #[cfg(not(feature = "sqlserver"))]
        unreachable!("then it is for PostgreSQL");
    }

    /// The same again, as a user would type it; what is secret stays out.
    pub(crate) fn words(&self, quoted: impl Fn(&std::ffi::OsStr) -> String) -> Vec<String> {
        let mut words = Vec::new();
        #[cfg(feature = "sqlite")]
        if let Some(path) = &self.database {
            words.extend(["--database".to_owned(), quoted(path.as_os_str())]);
        }
        #[cfg(feature = "sqlserver")]
        if self.sqlserver.is_some() {
            words.extend(["--sqlserver".to_owned(), "'…as before…'".to_owned()]);
        }
        #[cfg(feature = "postgres")]
        if self.postgres.is_some() {
            words.extend(["--postgres".to_owned(), "'…as before…'".to_owned()]);
        }
        #[cfg(any(feature = "sqlserver", feature = "postgres"))]
        if let Some(schema) = &self.schema {
            words.extend(["--schema".to_owned(), quoted(schema.as_ref())]);
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
            #[cfg(feature = "postgres")]
            Self::Postgres(server) => Ok(OpenStore::Postgres(server.open(OPENING).await?)),
            _ => unreachable!("without a store nothing can be named"),
        }
    }

    /// Makes what the store needs there.
    pub(crate) async fn install(&self) -> Result<(), StoreError> {
        match self {
            #[cfg(feature = "sqlserver")]
            Self::SqlServer(server) => server.install().await,
            #[cfg(feature = "postgres")]
            Self::Postgres(server) => server.install().await,
            // A file is made when it is first opened.
            _ => self.open().await.map(drop),
        }
    }

    /// Whether it surely holds nothing yet. A reader should not open what opening would create.
    pub(crate) fn is_absent(&self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::File(path) => matches!(path.try_exists(), Ok(false)),
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
                command.env_remove(POSTGRES_VARIABLE);
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(server) => {
                command.arg("--schema").arg(server.schema()).env(POSTGRES_VARIABLE, &server.url().0);
                command.env_remove(SQLSERVER_VARIABLE);
            }
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
            #[cfg(feature = "postgres")]
            Self::Postgres(server) => write!(f, "schema {} of the PostgreSQL server", server.schema()),
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

/// It is not known which database is meant.
#[derive(Debug)]
pub(crate) enum Unnamed {
    /// None was named, and there is none to use instead.
    Nothing,
    /// The environment names several.
    Two,
}

impl fmt::Display for Unnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sqlserver, postgres) = (cfg!(feature = "sqlserver"), cfg!(feature = "postgres"));
        f.write_str(match self {
            Self::Two => {
                "The environment names two databases, in LEASEHOLD_SQLSERVER and in LEASEHOLD_POSTGRES: leave one, or give \
                 --sqlserver or --postgres."
            }
            Self::Nothing if sqlserver && postgres => {
                "No database was named: give --sqlserver or --postgres, or LEASEHOLD_SQLSERVER or LEASEHOLD_POSTGRES in the \
                 environment."
            }
            Self::Nothing if sqlserver => {
                "No database was named: give --sqlserver, or LEASEHOLD_SQLSERVER in the environment."
            }
            Self::Nothing if postgres => {
                "No database was named: give --postgres, or LEASEHOLD_POSTGRES in the environment."
            }
            Self::Nothing => {
                "This was built without a store: build it with --features sqlserver, --features postgres or --features sqlite."
            }
        })
    }
}

impl std::error::Error for Unnamed {}
