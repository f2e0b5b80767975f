//! The database that a scene is played on, and the report that it is about: made for it, and cleared away after it.

use std::path::Path;
use std::time::Duration;

use leasehold::store::Budget;
use leasehold::{OperationId, ReportId};
use tempfile::TempDir;

use crate::arguments::Scenes;
use crate::database::{self, Database, OpenStore};
use crate::failure::Failure;

/// How long the database may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Where scenes are played.
pub(crate) struct Place {
    pub(crate) database: Database,
    pub(crate) store: OpenStore,
    /// The one report of every scene.
    pub(crate) name: String,
    pub(crate) report: ReportId,
    pub(crate) ttl: Duration,
    /// For an SQLite file of its own, and for tickets. Gone when dropped.
    folder: TempDir,
}

impl Place {
    /// On the server that was named, under a name that nobody else uses; or on an SQLite file of its own.
    pub(crate) async fn open(scenes: &Scenes) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("leasehold-handover-").tempdir()?;
        let database = scenes.database.named(Some(&folder.path().join("reports.db")))?;
        let store = database.open().await.map_err(|error| {
            if database::is_not_installed(&error) {
                let how =
                    "To install them: the example rebuild_report with --install, and the same server and --schema";
                Failure::Unexpected(format!("{error}. {how}"))
            } else {
                error.into()
            }
        })?;
        // Any fresh random identifier will do.
        let name = format!("handover {}", OperationId::random());
        let report = ReportId::from_name(&name);
        // So that a first call, which may have to be prepared on the server, is not taken for a lock that somebody holds.
        store.take_lock(report, LIMIT).await?;
        store.check(Budget::within(LIMIT)).await?;
        Ok(Self { database, store, name, report, ttl: scenes.ttl, folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Takes away what was made. Every worker has ended by now.
    pub(crate) async fn clear_away(&self) -> Result<(), Failure> {
        match &self.database {
            #[cfg(feature = "sqlserver")]
            Database::SqlServer(server) => {
                let mut client = server.client().await?;
                for table in ["ReportLedger", "ReportPublication"] {
                    let sql = format!("DELETE FROM {} WHERE ReportId = @P1", server.table(table));
                    client.execute(sql, &[self.report.as_uuid()]).await?;
                }
                let plain = crate::plain_lease::table_on(server, self.report);
                let sql =
                    format!("IF OBJECT_ID(N'{}', N'U') IS NOT NULL DROP TABLE {plain}", plain.replace('\'', "''"));
                client.simple_query(sql).await?.into_results().await?;
                Ok(())
            }
            #[cfg(feature = "postgres")]
            Database::Postgres(server) => {
                use leasehold::store::postgres::Type;

                let client = server.client().await?;
                for table in ["report_ledger", "report_payload", "report_publication"] {
                    let sql = format!("DELETE FROM {} WHERE report_id = $1", server.table(table));
                    client.execute_typed(&sql, &[(self.report.as_uuid(), Type::UUID)]).await?;
                }
                let plain = crate::plain_lease::table_on_postgres(server, self.report);
                client.batch_execute(&format!("DROP TABLE IF EXISTS {plain}")).await?;
                Ok(())
            }
            // The file goes with its folder.
            #[allow(unreachable_patterns)]
            _ => Ok(()),
        }
    }
}
