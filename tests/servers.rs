//! Which servers the tests run against: `tests/run.sh` asks first, and learns whether they can be reached at all.
#![cfg(all(feature = "sqlserver", feature = "conformance"))]

#[allow(dead_code)]
#[path = "support/sqlserver.rs"]
mod sqlserver;

mod version {
    use super::sqlserver::{raw, rows};

    /// Prints one line, and whether the engine is SQL Server's own or another that speaks its language.
    #[tokio::test]
    #[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
    async fn of_sqlserver() {
        let mut client = raw("leasehold version").await;
        let sql = "SELECT CAST(@@VERSION AS nvarchar(400)) AS Version, CAST(SERVERPROPERTY('Babelfish') AS int) AS Babelfish, \
                   CAST(d.is_read_committed_snapshot_on AS int) AS Snapshot FROM sys.databases AS d WHERE d.database_id = DB_ID()";
        let found = rows(&mut client, sql, &[]).await;
        let engine = if found[0].get::<i32, _>("Babelfish") == Some(1) { "babelfish" } else { "sqlserver" };
        let snapshot = if found[0].get::<i32, _>("Snapshot") == Some(1) { "on" } else { "off" };
        let version: &str = found[0].get("Version").expect("a version");
        // Of several lines, the first has the product and its number.
        println!(
            "engine: {engine}: {}, READ_COMMITTED_SNAPSHOT {snapshot}",
            version.lines().next().unwrap_or_default()
        );
    }
}
