//! Opening the database, and making it ready.

use leasehold::StoreError;

use crate::arguments::Arguments;
use crate::command;
use crate::database::{self, Database, OpenStore};
use crate::failure::Failure;

/// The store; says how to install what is missing there.
pub(crate) async fn open(arguments: &Arguments, database: &Database) -> Result<OpenStore, Failure> {
    database.open().await.map_err(|error| failure(arguments, error))
}

/// `--install`.
pub(crate) async fn install(arguments: &Arguments) -> Result<String, Failure> {
    let database = arguments.database()?;
    database.install().await.map_err(Failure::Store)?;
    Ok(match database {
        #[cfg(feature = "sqlserver")]
        Database::SqlServer(server) => format!(
            "leasehold is installed in schema {}. Whoever is to build reports needs its role: ALTER ROLE leasehold_worker ADD MEMBER \
             [user];\n",
            server.schema()
        ),
        #[cfg(feature = "postgres")]
        Database::Postgres(server) => format!(
            "leasehold is installed in schema {}. Whoever is to build reports needs its role: GRANT leasehold_worker TO \"user\";\n",
            server.schema()
        ),
        #[allow(unreachable_patterns)]
        _ => "The file is ready. It would have been made by the first report as well.\n".to_owned(),
    })
}

/// `--install-script`.
#[cfg(any(feature = "sqlserver", feature = "postgres"))]
pub(crate) fn install_script(arguments: &Arguments) -> Result<String, Failure> {
    arguments.database.install_script().map_err(Failure::Unnamed)?.map_err(Failure::Store)
}

fn failure(arguments: &Arguments, error: StoreError) -> Failure {
    if database::is_not_installed(&error) {
        return Failure::NotInstalled { error, to_install: command::to_install(arguments) };
    }
    Failure::Store(error)
}
