//! Logins that may not do everything. What least privilege comes to is proved in `only_sql_server`.

use leasehold::store::Store;
use leasehold::store::sqlserver::tiberius::AuthMethod;
use leasehold::store::sqlserver::{Client, SqlServerStore};
use leasehold::{StoreError, StoreErrorKind};
use uuid::Uuid;

use crate::support::{Schema, batch, config, raw, rows};
use crate::words::{budget, holder, says, unknown_report};

/// A login with a user in the test's database, and both gone when the test is over.
pub(crate) struct Login {
    name: String,
}

const PASSWORD: &str = "Hush-hush-8!";

impl Login {
    pub(crate) async fn new(role: Option<&str>) -> Self {
        let name = format!("l{}", Uuid::new_v4().simple());
        let mut raw = raw("leasehold tests").await;
        batch(&mut raw, &format!("CREATE LOGIN {name} WITH PASSWORD = '{PASSWORD}'")).await;
        batch(&mut raw, &format!("CREATE USER {name} FOR LOGIN {name}")).await;
        let login = Self { name };
        if let Some(role) = role {
            login.add_to(&mut raw, role).await;
        }
        login
    }

    pub(crate) async fn add_to(&self, raw: &mut Client, role: &str) {
        batch(raw, &format!("ALTER ROLE {role} ADD MEMBER {}", self.name)).await;
    }

    pub(crate) fn store(&self, schema: &Schema) -> SqlServerStore {
        let mut config = config(&schema.name);
        config.authentication(AuthMethod::sql_server(&self.name, PASSWORD));
        SqlServerStore::builder().config(config).schema(&schema.name).build().expect("a store")
    }

    /// A connection past the store.
    pub(crate) async fn raw(&self) -> Client {
        let mut config = config("leasehold tests");
        config.authentication(AuthMethod::sql_server(&self.name, PASSWORD));
        crate::support::connect(config).await
    }
}

impl Drop for Login {
    /// On a thread of its own, because a drop cannot wait for a future.
    fn drop(&mut self) {
        let name = self.name.clone();
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut raw = raw("leasehold tests").await;
                batch(&mut raw, &format!("DROP USER {name}")).await;
                // Its connections are closed, but the server may not know yet.
                let sql = format!("DROP LOGIN {name}");
                while let Err(error) = async { raw.simple_query(sql.as_str()).await?.into_results().await }.await {
                    assert!(error.to_string().contains("logged in"), "{error}");
                    tokio::task::yield_now().await;
                }
            });
        });
        let dropped = dropping.join();
        if !std::thread::panicking() {
            dropped.expect("the login is dropped");
        }
    }
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn both_roles_are_there_after_an_installation() {
    let schema = Schema::installed().await;
    let sql = "SELECT CAST(COUNT(*) AS bigint) FROM sys.database_principals \
               WHERE name IN ('leasehold_worker', 'leasehold_operator')";
    assert_eq!(schema.number(sql).await, 2);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_login_in_no_role_is_told_to_be_added_to_one() {
    let schema = Schema::installed().await;
    let login = Login::new(None).await;
    let store = login.store(&schema);
    says(store.metadata(unknown_report(), budget()).await, StoreErrorKind::Rejected, &["leasehold_worker"]);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_login_that_may_not_create_anything_is_told_so_by_install() {
    let schema = Schema::missing().await;
    let login = Login::new(None).await;
    let store = login.store(&schema);
    let words = ["this login may not create", "install_script()"];
    says(store.install(budget()).await, StoreErrorKind::Rejected, &words);
}

/// Babelfish has no ownership chaining: EXECUTE gets a worker into the procedure and no further. SQL Server lets it through, which
/// `only_sql_server` proves; an operator's procedure is closed to it on both.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_worker_may_execute_its_procedures_but_gets_no_further_than_the_table_where_ownership_is_not_chained() {
    let schema = Schema::installed().await;
    let login = Login::new(Some("leasehold_worker")).await;
    let mut raw = login.raw().await;
    let quoted = schema.quoted();
    let report = unknown_report();
    let told = |error: leasehold::store::sqlserver::tiberius::error::Error| error.to_string();
    let read = format!("EXEC {quoted}.LeaseholdRead @ReportId = '{report}'");
    let read = async { raw.simple_query(read).await?.into_results().await }.await.map_err(told);
    let prune = format!("EXEC {quoted}.LeaseholdPrune @OlderThanSeconds = 0, @OlderThanMillis = 0, @WaitMillis = 1000");
    let pruned = async { raw.simple_query(prune).await?.into_results().await }.await.map_err(told).unwrap_err();
    if schema.babelfish {
        let refused = read.unwrap_err();
        assert!(refused.contains("permission denied for table"), "{refused}");
        assert!(pruned.contains("permission denied for procedure"), "{pruned}");
    } else {
        read.expect("chained");
    }
    let refused: Result<_, StoreError> = login.store(&schema).force_release(report, holder("me"), budget()).await;
    says(refused, StoreErrorKind::Rejected, &["leasehold_operator"]);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn every_procedure_is_granted_to_somebody_but_the_two_that_procedures_call() {
    let schema = Schema::installed().await;
    let sql = if schema.babelfish {
        "SELECT p.proname AS Name FROM pg_catalog.pg_proc AS p INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace \
         WHERE n.nspname LIKE '%' + @P1 AND CAST(p.proacl AS varchar(2000)) LIKE '%leasehold[_][wo]%r=X/%'"
    } else {
        "SELECT DISTINCT o.name AS Name FROM sys.database_permissions AS g INNER JOIN sys.objects AS o ON o.object_id = g.major_id \
         INNER JOIN sys.schemas AS s ON s.schema_id = o.schema_id WHERE s.name = @P1 AND g.permission_name = 'EXECUTE'"
    };
    let granted = rows(&mut *schema.raw.lock().await, sql, &[&schema.name.as_str()]).await;
    let mut granted: Vec<String> =
        granted.iter().map(|row| row.get::<&str, _>("Name").expect("a name").to_lowercase()).collect();
    granted.sort();
    let expected = "acquire advanceepoch close forcerelease inspect list provision prune publish read release renew renewmany \
                    requirerevision resetrevision version";
    let expected: Vec<String> = expected.split_whitespace().map(|name| format!("leasehold{name}")).collect();
    assert_eq!(granted, expected);
}
