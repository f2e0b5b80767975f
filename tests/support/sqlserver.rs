//! The conformance harness of the SQL Server store: every database a schema of its own, seen and changed through the driver behind
//! the store's back.
//!
//! The server is named by `LEASEHOLD_TEST_SQLSERVER`, a connection string whose login may create schemas and roles in its database.

use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use leasehold::conformance::{Blocker, BlockerEnd, Database, Harness, RawRow};
use leasehold::store::sqlserver::tiberius::{Config, Row, ToSql};
use leasehold::store::sqlserver::{Client, SqlServerStore, SqlServerTransaction};
use leasehold::store::{AcquireRequest, Budget, CloseRequest, Payload, PublishRequest, Store};
use leasehold::{Epoch, Fence, Generation, Holder, OperationId, Owner, ReportId, SourceRevision};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_util::compat::TokioAsyncWriteCompatExt;
use uuid::Uuid;

const TTL: Duration = Duration::from_secs(10);

/// The server to test against. A test that needs one fails without it; `tests/run.sh` leaves such tests out, loudly.
pub(crate) fn connection_string() -> String {
    std::env::var("LEASEHOLD_TEST_SQLSERVER").expect(
        "LEASEHOLD_TEST_SQLSERVER must hold the connection string of a SQL Server to test against; bash tests/run.sh finds or starts \
         one (see tests/README.md)",
    )
}

/// The driver's configuration for that server, under an application name by which its sessions are found again.
pub(crate) fn config(application: &str) -> Config {
    let mut config = Config::from_ado_string(&connection_string()).expect("a connection string");
    config.application_name(application);
    config
}

/// A connection past the store.
pub(crate) async fn raw(application: &str) -> Client {
    let config = config(application);
    let stream = TcpStream::connect(config.get_addr()).await.expect("the server listens");
    stream.set_nodelay(true).expect("a socket option");
    Client::connect(config, stream.compat_write()).await.expect("the server lets the test in")
}

/// Runs a batch to its end.
pub(crate) async fn batch(client: &mut Client, sql: &str) {
    let run = async { client.simple_query(sql).await?.into_results().await };
    run.await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The rows of a query.
pub(crate) async fn rows(client: &mut Client, sql: &str, arguments: &[&dyn ToSql]) -> Vec<Row> {
    let run = async { client.query(sql, arguments).await?.into_first_result().await };
    run.await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Whether the server is Babelfish: it speaks T-SQL, but has no lock hints, and PostgreSQL's own views of who waits.
pub(crate) async fn is_babelfish(client: &mut Client) -> bool {
    let found = rows(client, "SELECT CAST(SERVERPROPERTY('Babelfish') AS int) AS Babelfish", &[]).await;
    found[0].get::<i32, _>("Babelfish") == Some(1)
}

/// Makes databases out of schemas, and uses a schema again, emptied, once a case is done with it.
///
/// A connection of Babelfish's takes seconds until it has read and compiled the procedures, so those are kept as well.
#[derive(Debug, Default)]
pub(crate) struct SqlServerHarness {
    parked: Arc<StdMutex<Vec<Arc<Schema>>>>,
}

impl Harness for SqlServerHarness {
    type Database = SqlServerDatabase;

    async fn fresh(&self) -> SqlServerDatabase {
        let parked = self.parked.lock().expect("no panic").pop();
        let schema = match parked {
            Some(schema) => schema,
            None => Arc::new(Schema::installed().await),
        };
        schema.empty().await;
        SqlServerDatabase { schema, given: StdMutex::default(), parked: Arc::clone(&self.parked) }
    }
}

/// One schema with leasehold's tables and a table of the user's, dropped with all that is in it.
pub(crate) struct Schema {
    /// Also the application name of every connection to it.
    pub(crate) name: String,
    pub(crate) raw: Mutex<Client>,
    babelfish: bool,
    /// Stores with connections that are in nobody's hands.
    idle: StdMutex<Vec<SqlServerStore>>,
}

impl Schema {
    pub(crate) async fn installed() -> Self {
        let schema = Self::missing().await;
        schema.store().install(budget()).await.expect("an installation");
        schema
            .change(&format!("CREATE TABLE {}.Notes (Id int IDENTITY PRIMARY KEY, Note bigint NOT NULL)", schema.name))
            .await;
        schema
    }

    /// A name for a schema that does not exist yet.
    pub(crate) async fn missing() -> Self {
        let name = format!("t{}", Uuid::new_v4().simple());
        let mut raw = raw(&name).await;
        let babelfish = is_babelfish(&mut raw).await;
        Self { name, raw: Mutex::new(raw), babelfish, idle: StdMutex::default() }
    }

    /// A store that has not connected yet.
    pub(crate) fn store(&self) -> SqlServerStore {
        SqlServerStore::builder().config(config(&self.name)).schema(&self.name).build().expect("a store")
    }

    pub(crate) async fn change(&self, sql: &str) {
        batch(&mut *self.raw.lock().await, sql).await;
    }

    async fn empty(&self) {
        let name = &self.name;
        let tables = ["Notes", "ReportLedger", "ReportPublication"];
        let deletions: String =
            tables.iter().map(|table| format!("DELETE FROM {name}.{table} WHERE 1 = 1; ")).collect();
        self.change(&format!("{deletions} UPDATE {name}.LeaseholdStore SET RecoveryEpoch = 0 WHERE Id = 1")).await;
    }
}

impl Drop for Schema {
    /// On a thread of its own, because a drop cannot wait for a future.
    fn drop(&mut self) {
        let name = self.name.clone();
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(drop_schema(&name));
        });
        let dropped = dropping.join();
        if !std::thread::panicking() {
            dropped.expect("the schema is dropped");
        }
    }
}

async fn drop_schema(schema: &str) {
    let mut raw = raw("leasehold tests").await;
    let sql = "SELECT o.name AS Name, RTRIM(o.type) AS Kind FROM sys.objects AS o INNER JOIN sys.schemas AS s \
               ON s.schema_id = o.schema_id WHERE s.name = @P1 AND o.type IN ('P', 'V', 'U')";
    let found = rows(&mut raw, sql, &[&schema]).await;
    for (kind, word) in [("P", "PROCEDURE"), ("V", "VIEW"), ("U", "TABLE")] {
        for row in found.iter().filter(|row| row.get::<&str, _>("Kind") == Some(kind)) {
            let name: &str = row.get("Name").expect("a name");
            batch(&mut raw, &format!("DROP {word} {schema}.{name}")).await;
        }
    }
    batch(&mut raw, &format!("IF SCHEMA_ID(N'{schema}') IS NOT NULL DROP SCHEMA {schema}")).await;
}

/// A schema in the hands of one case.
pub(crate) struct SqlServerDatabase {
    schema: Arc<Schema>,
    given: StdMutex<Vec<SqlServerStore>>,
    parked: Arc<StdMutex<Vec<Arc<Schema>>>>,
}

impl Drop for SqlServerDatabase {
    fn drop(&mut self) {
        let given = std::mem::take(self.given.get_mut().expect("no panic"));
        self.schema.idle.lock().expect("no panic").extend(given);
        self.parked.lock().expect("no panic").push(Arc::clone(&self.schema));
    }
}

impl SqlServerDatabase {
    /// Each procedure once, on a report that is not there: a connection of Babelfish's compiles it at its first call.
    async fn warm_store(&self) -> SqlServerStore {
        let store = self.schema.store();
        let fence = Fence {
            report: ReportId::from_uuid(Uuid::new_v4()),
            owner: Owner::random(),
            generation: Generation::new(0),
            epoch: Epoch::new(0),
        };
        let report = fence.report;
        let known = "the procedure answers";
        store.check(budget()).await.expect(known);
        store.renew(fence, TTL, budget()).await.expect(known);
        store.renew_many(vec![fence], TTL, budget()).await.expect(known);
        let acquire = AcquireRequest {
            report,
            owner: fence.owner,
            ttl: TTL,
            holder: Holder::new("warming up").expect("a label"),
            min_epoch: Epoch::new(0),
            takeover_delay: Duration::ZERO,
            wanted: None,
        };
        store.acquire(acquire, budget()).await.expect(known);
        let payload = Payload::new("warming up", 100).expect("a payload");
        let publish = PublishRequest { fence, operation: OperationId::random(), payload, revision: None };
        store.publish(publish, budget()).await.expect(known);
        store.close(CloseRequest { report, owner: fence.owner, learned: None }, budget()).await.expect(known);
        store.release(fence, budget()).await.expect(known);
        store.inspect(report, budget()).await.expect(known);
        store.read(report, None, budget()).await.expect(known);
        store.force_release(report, Holder::new("warming up").expect("a label"), budget()).await.expect(known);
        store.require_source_revision(report, SourceRevision::new(0), budget()).await.expect(known);
        store.reset_source_revision(report, None, budget()).await.expect(known);
        store.advance_recovery_epoch(Epoch::new(0), budget()).await.expect(known);
        store
    }

    async fn change_row(&self, set: &str, report: ReportId, value: &dyn ToSql) {
        let sql = format!("UPDATE {}.ReportPublication SET {set} WHERE ReportId = @P2", self.schema.name);
        let mut raw = self.schema.raw.lock().await;
        raw.execute(sql, &[value, report.as_uuid()]).await.expect("a change behind the store's back");
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Schema").field(&self.name).finish()
    }
}

fn budget() -> Budget {
    Budget::within(Duration::from_secs(30))
}

impl Database for SqlServerDatabase {
    type Store = SqlServerStore;
    type Blocker = SqlServerBlocker;

    /// With connections already made and used, so that a short budget is not spent on that.
    async fn connect(&self) -> SqlServerStore {
        let idle = self.schema.idle.lock().expect("no panic").pop();
        let store = match idle {
            Some(store) => store,
            None => self.warm_store().await,
        };
        self.given.lock().expect("no panic").push(store.clone());
        store
    }

    async fn set_expiry(&self, report: ReportId, millis_from_now: i64) {
        let millis = i32::try_from(millis_from_now).expect("within days");
        self.change_row(
            "LeaseUntilUtc = DATEADD(millisecond, @P1, CAST(SYSUTCDATETIME() AS datetime2(6)))",
            report,
            &millis,
        )
        .await;
    }

    async fn set_generation(&self, report: ReportId, generation: Generation) {
        self.change_row("Generation = @P1", report, &generation.get()).await;
    }

    async fn delete_row(&self, report: ReportId) {
        let sql = format!("DELETE FROM {}.ReportPublication WHERE ReportId = @P1", self.schema.name);
        self.schema.raw.lock().await.execute(sql, &[report.as_uuid()]).await.expect("a deletion");
    }

    async fn age_ledger(&self, by: Duration) {
        let seconds = i32::try_from(by.as_secs()).expect("within decades");
        let sql = format!(
            "UPDATE {}.ReportLedger SET EndedAtUtc = DATEADD(second, -@P1, EndedAtUtc) WHERE 1 = 1",
            self.schema.name
        );
        self.schema.raw.lock().await.execute(sql, &[&seconds]).await.expect("an older ledger");
    }

    async fn row(&self, report: ReportId) -> Option<RawRow> {
        let sql = format!(
            "SELECT *, DATEDIFF_BIG(microsecond, SYSUTCDATETIME(), LeaseUntilUtc) AS LeftMicros \
             FROM {}.ReportPublication WHERE ReportId = @P1",
            self.schema.name
        );
        let found = rows(&mut *self.schema.raw.lock().await, &sql, &[report.as_uuid()]).await;
        let row = found.first()?;
        let number = |name: &str| row.get::<i64, _>(name);
        Some(RawRow {
            generation: Generation::new(number("Generation")?),
            owner: row.get::<Uuid, _>("LeaseOwner").map(Owner::from_uuid),
            expires_in_millis: number("LeftMicros").map(|micros| micros.div_euclid(1_000)),
            epoch: Epoch::new(number("RecoveryEpoch")?),
            published_generation: Generation::new(number("PublishedGeneration")?),
            payload: row.get::<&str, _>("Payload").map(str::to_owned),
            revision: number("SourceRevision").map(SourceRevision::new),
            revision_floor: number("SourceRevisionFloor").map(SourceRevision::new),
            pruned_up_to: Generation::new(number("PrunedUpTo")?),
            forced_generation: number("ForcedGeneration").map(Generation::new),
        })
    }

    async fn block(&self, report: ReportId, then: BlockerEnd) -> SqlServerBlocker {
        let mut client = raw("leasehold blocker").await;
        let table = format!("{}.ReportPublication", self.schema.name);
        // Babelfish takes no lock for a hint; there an update that changes nothing stands for it.
        let lock = match then {
            BlockerEnd::OnlyLock if self.schema.babelfish => {
                format!("UPDATE {table} SET LeaseHolder = LeaseHolder WHERE ReportId = '{report}'")
            }
            BlockerEnd::OnlyLock => {
                format!("SELECT Generation FROM {table} WITH (XLOCK, ROWLOCK) WHERE ReportId = '{report}'")
            }
            _ => format!("UPDATE {table} SET LeaseHolder = N'blocker' WHERE ReportId = '{report}'"),
        };
        batch(&mut client, &format!("BEGIN TRANSACTION; {lock}")).await;
        let watcher = raw("leasehold watcher").await;
        SqlServerBlocker {
            client,
            watcher: Arc::new(Mutex::new(watcher)),
            then,
            application: self.schema.name.clone(),
            babelfish: self.schema.babelfish,
        }
    }

    /// SQL Server knows READPAST; Babelfish takes the hint and waits all the same.
    fn skips_locked_rows(&self) -> bool {
        !self.schema.babelfish
    }

    async fn write_note(&self, transaction: &mut SqlServerTransaction, note: i64) {
        let sql = format!("INSERT INTO {}.Notes (Note) VALUES (@P1)", self.schema.name);
        transaction.execute(&sql, &[&note], budget()).await.expect("a note");
    }

    async fn notes(&self) -> Vec<i64> {
        let sql = format!("SELECT Note FROM {}.Notes ORDER BY Id", self.schema.name);
        let found = rows(&mut *self.schema.raw.lock().await, &sql, &[]).await;
        found.iter().map(|row| row.get::<i64, _>("Note").expect("a note")).collect()
    }
}

/// Somebody else with the row's lock.
pub(crate) struct SqlServerBlocker {
    client: Client,
    watcher: Arc<Mutex<Client>>,
    then: BlockerEnd,
    application: String,
    babelfish: bool,
}

impl SqlServerBlocker {
    async fn waiters(&self) -> usize {
        let sql = if self.babelfish {
            "SELECT COUNT(DISTINCT l.pid) AS Waiters FROM pg_catalog.pg_locks AS l INNER JOIN pg_catalog.pg_stat_activity AS a \
             ON a.pid = l.pid WHERE l.granted = 'f' AND a.application_name = @P1"
        } else {
            "SELECT COUNT(*) AS Waiters FROM sys.dm_exec_requests AS r INNER JOIN sys.dm_exec_sessions AS s \
             ON s.session_id = r.session_id WHERE r.blocking_session_id <> 0 AND s.program_name = @P1"
        };
        let found = rows(&mut *self.watcher.lock().await, sql, &[&self.application.as_str()]).await;
        let waiters: i32 = found[0].get("Waiters").expect("a count");
        usize::try_from(waiters).expect("a count")
    }
}

impl Blocker for SqlServerBlocker {
    async fn wait_for_waiters(&self, waiters: usize) {
        while self.waiters().await < waiters {
            tokio::task::yield_now().await;
        }
    }

    async fn release(mut self) {
        let end = if self.then == BlockerEnd::RollBack { "ROLLBACK TRANSACTION" } else { "COMMIT TRANSACTION" };
        batch(&mut self.client, end).await;
    }
}
