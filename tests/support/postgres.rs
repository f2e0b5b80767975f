//! The conformance harness of the PostgreSQL store: a database for the whole run, with the defaults that the run is about, and
//! in it a schema for each case, seen and changed as the superuser behind the store's back.
//!
//! The server is the one that `LEASEHOLD_TEST_POSTGRES` names, a URL of a superuser; `tests/postgres/cluster.sh` starts one.

use std::sync::Arc;
use std::time::Duration;

use leasehold::conformance::{Blocker, BlockerEnd, Database, Harness, RawRow};
use leasehold::store::Budget;
use leasehold::store::postgres::{Config, PostgresStore, PostgresTransaction, Type};
use leasehold::{Epoch, Generation, Owner, ReportId, SourceRevision};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// The login of the stores under test: it has an operator's rights and nothing else.
pub(crate) const LOGIN: &str = "leasehold_test_operator";

/// The server of the tests, as a superuser.
pub(crate) fn superuser() -> Config {
    let url = std::env::var("LEASEHOLD_TEST_POSTGRES").expect(
        "LEASEHOLD_TEST_POSTGRES is not set, so nothing was tested: name a PostgreSQL server for tests, as a superuser, or run \
         the tests with tests/run.sh, which starts one",
    );
    url.parse().expect("LEASEHOLD_TEST_POSTGRES is a URL that tokio-postgres can read")
}

/// A connection of the test's own.
pub(crate) async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.expect("the PostgreSQL server of the tests answers");
    tokio::spawn(connection);
    client
}

/// The same server, another database.
pub(crate) fn in_database(config: &Config, name: &str) -> Config {
    let mut config = config.clone();
    config.dbname(name);
    config
}

/// The same server, another login.
pub(crate) fn as_login(config: &Config, login: &str) -> Config {
    let mut config = config.clone();
    config.user(login).password(login);
    config
}

/// A login with these roles and no other rights. It lasts as long as the server, because others may be using it.
pub(crate) async fn create_login(superuser: &Client, login: &str, roles: &str) {
    let sql = format!(
        "DO $$ BEGIN \
             IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{login}') THEN \
                 CREATE ROLE {login} LOGIN PASSWORD '{login}'; \
             END IF; \
             IF NOT pg_has_role('{login}', '{roles}', 'MEMBER') THEN \
                 GRANT {roles} TO {login}; \
             END IF; \
         END $$"
    );
    // Another test may do the same at this moment, in another database, where no lock of this one reaches.
    for _ in 0..50 {
        if superuser.batch_execute(&sql).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    superuser.batch_execute(&sql).await.expect("a login for the test");
}

/// Settings that a database's owner may have made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Defaults {
    ReadCommitted,
    RepeatableRead,
    Serializable,
    HashPlans,
    SequentialPlans,
}

impl Defaults {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::ReadCommitted => &["default_transaction_isolation = 'read committed'"],
            Self::RepeatableRead => &["default_transaction_isolation = 'repeatable read'"],
            Self::Serializable => &["default_transaction_isolation = 'serializable'"],
            Self::HashPlans => &["enable_nestloop = off", "enable_mergejoin = off", "enable_indexscan = off"],
            Self::SequentialPlans => &[
                "enable_hashjoin = off",
                "enable_mergejoin = off",
                "enable_indexscan = off",
                "enable_indexonlyscan = off",
                "enable_bitmapscan = off",
                "plan_cache_mode = force_generic_plan",
            ],
        }
    }
}

/// A database of its own on the server of the tests. Dropping it drops the database.
#[derive(Debug)]
pub(crate) struct PostgresHarness {
    /// As the superuser, in the database.
    pub(crate) config: Config,
    /// Where the stores connect: the same database, perhaps through a pooler.
    pub(crate) reached: Config,
    server: Config,
    name: String,
}

impl PostgresHarness {
    /// A database with these defaults.
    pub(crate) async fn new(defaults: Defaults) -> Self {
        Self::on(superuser(), defaults.settings()).await
    }

    /// A database of this server with these settings.
    pub(crate) async fn on(server: Config, settings: &[&str]) -> Self {
        let name = format!("leasehold_test_{}", Uuid::new_v4().simple());
        let client = connect(&server).await;
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database for the test");
        for setting in settings {
            let sql = format!("ALTER DATABASE {name} SET {setting}");
            client.batch_execute(&sql).await.expect("a default of the database");
        }
        let config = in_database(&server, &name);
        Self { reached: config.clone(), config, server, name }
    }
}

impl Drop for PostgresHarness {
    fn drop(&mut self) {
        let (server, sql) = (self.server.clone(), format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                // The server may be gone, and its databases with it.
                if let Ok((client, connection)) = server.connect(NoTls).await {
                    tokio::spawn(connection);
                    let _ = client.batch_execute(&sql).await;
                }
            });
        });
        let _ = dropped.join();
    }
}

impl Harness for PostgresHarness {
    type Database = PostgresDatabase;

    async fn fresh(&self) -> PostgresDatabase {
        let mut database = PostgresDatabase::install(&self.config).await;
        database.reached = self.reached.clone();
        database
    }
}

/// One schema, installed and empty.
pub(crate) struct PostgresDatabase {
    pub(crate) schema: String,
    pub(crate) config: Config,
    pub(crate) reached: Config,
    pub(crate) client: Arc<Client>,
}

impl PostgresDatabase {
    /// A schema in this database, installed by this superuser.
    pub(crate) async fn install(config: &Config) -> Self {
        let schema = format!("leasehold_{}", Uuid::new_v4().simple());
        let owner = PostgresStore::from_config(config.clone()).schema(&schema).build().expect("a store");
        owner.install(Budget::within(Duration::from_secs(60))).await.expect("an installation");
        let client = connect(config).await;
        create_login(&client, LOGIN, "leasehold_operator").await;
        let notes = format!(
            "CREATE TABLE {schema}.notes (place bigserial, note bigint NOT NULL); \
             GRANT SELECT, INSERT ON {schema}.notes TO PUBLIC; GRANT USAGE ON SEQUENCE {schema}.notes_place_seq TO PUBLIC"
        );
        client.batch_execute(&notes).await.expect("a table of the user's");
        Self { schema, config: config.clone(), reached: config.clone(), client: Arc::new(client) }
    }

    /// The same, by a new connection: after the server was restarted.
    pub(crate) async fn connected_anew(mut self) -> Self {
        self.client = Arc::new(connect(&self.config).await);
        self
    }

    /// As this login, with a name by which the sessions of this schema's stores are known.
    pub(crate) fn store_config(&self, login: &str) -> Config {
        let mut config = as_login(&self.reached, login);
        config.application_name(&self.schema);
        config
    }

    /// A store with an operator's rights.
    pub(crate) fn store(&self) -> PostgresStore {
        PostgresStore::from_config(self.store_config(LOGIN)).schema(&self.schema).build().expect("a store")
    }

    /// Changes something behind the store's back. `{s}` is the schema.
    pub(crate) async fn change(&self, sql: &str, values: &[(&(dyn leasehold::store::postgres::ToSql + Sync), Type)]) {
        let sql = sql.replace("{s}", &self.schema);
        self.client.execute_typed(&sql, values).await.expect("a change behind the store's back");
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        let (client, sql) = (Arc::clone(&self.client), format!("DROP SCHEMA {} CASCADE", self.schema));
        // What is left of it goes with the database.
        tokio::spawn(async move { client.batch_execute(&sql).await });
    }
}

impl Database for PostgresDatabase {
    type Store = PostgresStore;
    type Blocker = PostgresBlocker;

    async fn connect(&self) -> PostgresStore {
        self.store()
    }

    async fn set_expiry(&self, report: ReportId, millis_from_now: i64) {
        self.change(
            "UPDATE {s}.report_publication SET lease_until = clock_timestamp() + $1 * interval '1 millisecond' \
             WHERE report_id = $2",
            &[(&(millis_from_now as f64), Type::FLOAT8), (report.as_uuid(), Type::UUID)],
        )
        .await;
    }

    async fn set_generation(&self, report: ReportId, generation: Generation) {
        self.change(
            "UPDATE {s}.report_publication SET generation = $1 WHERE report_id = $2",
            &[(&generation.get(), Type::INT8), (report.as_uuid(), Type::UUID)],
        )
        .await;
    }

    async fn delete_row(&self, report: ReportId) {
        for table in ["report_publication", "report_payload"] {
            let sql = format!("DELETE FROM {{s}}.{table} WHERE report_id = $1");
            self.change(&sql, &[(report.as_uuid(), Type::UUID)]).await;
        }
    }

    async fn age_ledger(&self, by: Duration) {
        self.change(
            "UPDATE {s}.report_ledger SET ended_at = ended_at - $1 * interval '1 second'",
            &[(&by.as_secs_f64(), Type::FLOAT8)],
        )
        .await;
    }

    async fn row(&self, report: ReportId) -> Option<RawRow> {
        let sql = format!(
            "SELECT r.*, p.payload, \
                    floor(extract(epoch FROM r.lease_until - clock_timestamp()) * 1000)::bigint AS expires_in_millis \
             FROM {s}.report_publication AS r LEFT JOIN {s}.report_payload AS p USING (report_id) WHERE report_id = $1",
            s = self.schema
        );
        let rows = self.client.query_typed(&sql, &[(report.as_uuid(), Type::UUID)]).await.expect("the row");
        rows.first().map(|row| RawRow {
            generation: Generation::new(row.get("generation")),
            owner: row.get::<_, Option<Uuid>>("lease_owner").map(Owner::from_uuid),
            expires_in_millis: row.get("expires_in_millis"),
            epoch: Epoch::new(row.get("recovery_epoch")),
            published_generation: Generation::new(row.get("published_generation")),
            payload: row.get("payload"),
            revision: row.get::<_, Option<i64>>("source_revision").map(SourceRevision::new),
            revision_floor: row.get::<_, Option<i64>>("source_revision_floor").map(SourceRevision::new),
            pruned_up_to: Generation::new(row.get("pruned_up_to")),
            forced_generation: row.get::<_, Option<i64>>("forced_generation").map(Generation::new),
        })
    }

    async fn block(&self, report: ReportId, then: BlockerEnd) -> PostgresBlocker {
        let client = connect(&self.config).await;
        let lock = if then == BlockerEnd::OnlyLock {
            format!("SELECT FROM {}.report_publication WHERE report_id = '{report}' FOR UPDATE", self.schema)
        } else {
            format!(
                "UPDATE {}.report_publication SET lease_holder = 'blocker' WHERE report_id = '{report}'",
                self.schema
            )
        };
        let sql = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {lock}");
        client.batch_execute(&sql).await.expect("the row's lock");
        PostgresBlocker { client, then, watcher: Arc::clone(&self.client), stores: self.schema.clone() }
    }

    fn skips_locked_rows(&self) -> bool {
        true
    }

    async fn write_note(&self, transaction: &mut PostgresTransaction, note: i64) {
        let sql = format!("INSERT INTO {}.notes (note) VALUES ($1)", self.schema);
        let budget = Budget::within(Duration::from_secs(20));
        assert_eq!(transaction.execute(&sql, &[(&note, Type::INT8)], budget).await.expect("a note"), 1);
    }

    async fn notes(&self) -> Vec<i64> {
        let sql = format!("SELECT note FROM {}.notes ORDER BY place", self.schema);
        let rows = self.client.query_typed(&sql, &[]).await.expect("notes");
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// Somebody else with the row's lock.
pub(crate) struct PostgresBlocker {
    client: Client,
    then: BlockerEnd,
    watcher: Arc<Client>,
    stores: String,
}

impl Blocker for PostgresBlocker {
    async fn wait_for_waiters(&self, waiters: usize) {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
        loop {
            let rows = self.watcher.query_typed(sql, &[(&self.stores, Type::TEXT)]).await.expect("the sessions");
            if rows[0].get::<_, i64>(0) >= i64::try_from(waiters).expect("a few") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn release(self) {
        let end = if self.then == BlockerEnd::RollBack { "ROLLBACK" } else { "COMMIT" };
        self.client.batch_execute(end).await.expect("the blocker lets go");
    }
}
