//! The conformance harness of the SQLite store: every database a file of its own, seen and changed with rusqlite behind the
//! store's back.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::conformance::{Blocker, BlockerEnd, Database, Harness, RawRow};
use leasehold::store::sqlite::testing::machine_now;
use leasehold::store::sqlite::{SqliteStore, SqliteTransaction};
use leasehold::{Epoch, Generation, ReportId, SourceRevision};
use rusqlite::{Connection, OptionalExtension, named_params};
use tempfile::TempDir;

/// Makes database files in a folder.
#[derive(Debug)]
pub(crate) struct SqliteHarness {
    folder: PathBuf,
}

impl SqliteHarness {
    /// On the disk that the build uses: with real fsyncs.
    pub(crate) fn on_disk() -> Self {
        Self { folder: env!("CARGO_TARGET_TMPDIR").into() }
    }

    /// In memory where the machine has a folder for it: the same store, without waiting for a disk.
    pub(crate) fn in_memory() -> Self {
        let shm = Path::new("/dev/shm");
        if shm.is_dir() { Self { folder: shm.into() } } else { Self::on_disk() }
    }
}

impl Harness for SqliteHarness {
    type Database = SqliteDatabase;

    async fn fresh(&self) -> SqliteDatabase {
        let folder = TempDir::with_prefix_in("leasehold-", &self.folder).expect("a folder for the database");
        let database =
            SqliteDatabase { path: folder.path().join("reports.db"), _folder: folder, stores: Arc::default() };
        SqliteStore::open(&database.path).await.expect("a new database");
        database.raw().execute_batch("CREATE TABLE Notes (Note INTEGER NOT NULL)").expect("a table of the user's");
        database
    }
}

/// One database file.
#[derive(Debug)]
pub(crate) struct SqliteDatabase {
    pub(crate) path: PathBuf,
    _folder: TempDir,
    /// Every store that was connected, to see who waits for the lock.
    stores: Arc<Mutex<Vec<SqliteStore>>>,
}

impl SqliteDatabase {
    fn raw(&self) -> Connection {
        let connection = Connection::open(&self.path).expect("the database opens");
        connection.busy_timeout(Duration::from_secs(10)).expect("a busy timeout");
        connection
    }

    fn change(&self, sql: &str, values: impl rusqlite::Params) {
        self.raw().execute(sql, values).expect("a change behind the store's back");
    }
}

impl Database for SqliteDatabase {
    type Store = SqliteStore;
    type Blocker = SqliteBlocker;

    async fn connect(&self) -> SqliteStore {
        let store = SqliteStore::open(&self.path).await.expect("a connection");
        self.stores.lock().expect("no panic").push(store.clone());
        store
    }

    async fn set_expiry(&self, report: ReportId, millis_from_now: i64) {
        let (boot, nanos) = machine_now();
        self.change(
            "UPDATE ReportPublication SET LeaseBootId = :boot, LeaseUntilNanos = :until WHERE ReportId = :report",
            named_params! { ":boot": boot, ":until": nanos + millis_from_now * 1_000_000, ":report": report.to_string() },
        );
    }

    async fn set_generation(&self, report: ReportId, generation: Generation) {
        self.change(
            "UPDATE ReportPublication SET Generation = :generation WHERE ReportId = :report",
            named_params! { ":generation": generation.get(), ":report": report.to_string() },
        );
    }

    async fn delete_row(&self, report: ReportId) {
        self.change("DELETE FROM ReportPublication WHERE ReportId = ?1", [report.to_string()]);
        self.change("DELETE FROM ReportPayload WHERE ReportId = ?1", [report.to_string()]);
    }

    async fn age_ledger(&self, by: Duration) {
        let modifier = format!("-{}.{:03} seconds", by.as_secs(), by.subsec_millis());
        self.change("UPDATE ReportLedger SET EndedAtUtc = strftime('%Y-%m-%dT%H:%M:%fZ', EndedAtUtc, ?1)", [modifier]);
    }

    async fn row(&self, report: ReportId) -> Option<RawRow> {
        let (_, now) = machine_now();
        let columns = |columns: &rusqlite::Row<'_>| {
            Ok(RawRow {
                generation: Generation::new(columns.get("Generation")?),
                owner: columns.get::<_, Option<String>>("LeaseOwner")?.map(|owner| owner.parse().expect("a UUID")),
                expires_in_millis: columns
                    .get::<_, Option<i64>>("LeaseUntilNanos")?
                    .map(|until| (until - now).div_euclid(1_000_000)),
                epoch: Epoch::new(columns.get("RecoveryEpoch")?),
                published_generation: Generation::new(columns.get("PublishedGeneration")?),
                payload: columns.get("Payload")?,
                revision: columns.get::<_, Option<i64>>("SourceRevision")?.map(SourceRevision::new),
                revision_floor: columns.get::<_, Option<i64>>("SourceRevisionFloor")?.map(SourceRevision::new),
                pruned_up_to: Generation::new(columns.get("PrunedUpTo")?),
                forced_generation: columns.get::<_, Option<i64>>("ForcedGeneration")?.map(Generation::new),
            })
        };
        self.raw()
            .query_row(
                "SELECT * FROM ReportPublication LEFT JOIN ReportPayload USING (ReportId) WHERE ReportId = ?1",
                [report.to_string()],
                columns,
            )
            .optional()
            .expect("the row")
    }

    async fn block(&self, report: ReportId, then: BlockerEnd) -> SqliteBlocker {
        let connection = self.raw();
        connection.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
        if then != BlockerEnd::OnlyLock {
            connection
                .execute(
                    "UPDATE ReportPublication SET LeaseHolder = 'blocker' WHERE ReportId = ?1",
                    [report.to_string()],
                )
                .expect("a change under the lock");
        }
        SqliteBlocker { connection: Mutex::new(connection), then, stores: self.stores.clone() }
    }

    /// There is one write lock for the whole file.
    fn skips_locked_rows(&self) -> bool {
        false
    }

    async fn write_note(&self, transaction: &mut SqliteTransaction, note: i64) {
        transaction.execute("INSERT INTO Notes (Note) VALUES (?1)", [note.into()]);
    }

    async fn notes(&self) -> Vec<i64> {
        let connection = self.raw();
        let mut statement = connection.prepare("SELECT Note FROM Notes ORDER BY rowid").expect("the user's table");
        let notes = statement.query_map([], |columns| columns.get(0)).expect("notes");
        notes.collect::<Result<_, _>>().expect("notes")
    }
}

/// Somebody else with the write lock.
#[derive(Debug)]
pub(crate) struct SqliteBlocker {
    /// In a lock because the suite shares the blocker between threads while it waits.
    connection: Mutex<Connection>,
    then: BlockerEnd,
    stores: Arc<Mutex<Vec<SqliteStore>>>,
}

impl SqliteBlocker {
    fn waiters(&self) -> usize {
        self.stores.lock().expect("no panic").iter().map(SqliteStore::calls_waiting_for_lock).sum()
    }
}

impl Blocker for SqliteBlocker {
    async fn wait_for_waiters(&self, waiters: usize) {
        while self.waiters() < waiters {
            std::thread::sleep(Duration::from_millis(1));
            tokio::task::yield_now().await;
        }
    }

    async fn release(self) {
        let end = if self.then == BlockerEnd::RollBack { "ROLLBACK" } else { "COMMIT" };
        self.connection.into_inner().expect("no panic").execute_batch(end).expect("the blocker lets go");
    }
}
