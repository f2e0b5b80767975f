//! The conformance harness of workers that are processes: the files, blockers and raw rows of [`SqliteHarness`], which stay in
//! the test's own process, and a process for every connection.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use leasehold::conformance::{Blocker, BlockerEnd, Database, Harness, RawRow};
use leasehold::{Generation, ReportId};

use crate::process_store::{ProcessStore, ProcessTransaction};
use crate::sqlite::{SqliteBlocker, SqliteDatabase, SqliteHarness};
use crate::worker_process::{Tally, WorkerProcess};

/// How long calls may take to reach the lock that they wait for, on the busiest of machines.
const WAITERS_LIMIT: Duration = Duration::from_secs(30);

/// Makes database files whose workers are processes.
#[derive(Debug)]
pub(crate) struct ProcessHarness {
    files: SqliteHarness,
    tally: Arc<Tally>,
}

impl ProcessHarness {
    /// On these files.
    pub(crate) fn new(files: SqliteHarness) -> Self {
        Self { files, tally: Arc::default() }
    }

    /// How many processes there were.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Harness for ProcessHarness {
    type Database = ProcessDatabase;

    async fn fresh(&self) -> ProcessDatabase {
        let file = self.files.fresh().await;
        ProcessDatabase { file, processes: Processes::default(), tally: self.tally.clone() }
    }
}

/// One database file, and the processes that work on it.
pub(crate) struct ProcessDatabase {
    file: SqliteDatabase,
    processes: Processes,
    tally: Arc<Tally>,
}

impl ProcessDatabase {
    /// How many calls of all its workers wait for the write lock now.
    pub(crate) async fn waiting_calls(&self) -> usize {
        self.processes.waiting_calls().await
    }
}

impl Database for ProcessDatabase {
    type Store = ProcessStore;
    type Blocker = ProcessBlocker;

    async fn connect(&self) -> ProcessStore {
        let process = Arc::new(WorkerProcess::start(&self.file.path, self.tally.clone()).await);
        self.processes.add(&process);
        ProcessStore::new(process)
    }

    async fn set_expiry(&self, report: ReportId, millis_from_now: i64) {
        self.file.set_expiry(report, millis_from_now).await;
    }

    async fn set_generation(&self, report: ReportId, generation: Generation) {
        self.file.set_generation(report, generation).await;
    }

    async fn delete_row(&self, report: ReportId) {
        self.file.delete_row(report).await;
    }

    async fn age_ledger(&self, by: Duration) {
        self.file.age_ledger(by).await;
    }

    async fn row(&self, report: ReportId) -> Option<RawRow> {
        self.file.row(report).await
    }

    async fn block(&self, report: ReportId, then: BlockerEnd) -> ProcessBlocker {
        ProcessBlocker { blocker: self.file.block(report, then).await, processes: self.processes.clone() }
    }

    fn skips_locked_rows(&self) -> bool {
        self.file.skips_locked_rows()
    }

    async fn write_note(&self, transaction: &mut ProcessTransaction, note: i64) {
        transaction.execute("INSERT INTO Notes (Note) VALUES (?1)", note).await;
    }

    async fn notes(&self) -> Vec<i64> {
        self.file.notes().await
    }
}

/// The test's own process with the write lock.
pub(crate) struct ProcessBlocker {
    blocker: SqliteBlocker,
    processes: Processes,
}

impl Blocker for ProcessBlocker {
    async fn wait_for_waiters(&self, waiters: usize) {
        let started = Instant::now();
        while self.processes.waiting_calls().await < waiters {
            assert!(started.elapsed() < WAITERS_LIMIT, "{waiters} calls should wait for the lock by now");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn release(self) {
        self.blocker.release().await;
    }
}

/// The processes of one database. It keeps none of them alive.
#[derive(Clone, Default)]
struct Processes(Arc<Mutex<Vec<Weak<WorkerProcess>>>>);

impl Processes {
    fn add(&self, process: &Arc<WorkerProcess>) {
        let mut processes = self.0.lock().expect("no panic");
        processes.retain(|process| process.strong_count() > 0);
        processes.push(Arc::downgrade(process));
    }

    /// How many calls of all of them wait for the write lock now.
    async fn waiting_calls(&self) -> usize {
        let alive: Vec<_> = self.0.lock().expect("no panic").iter().filter_map(Weak::upgrade).collect();
        let mut waiting = 0;
        for process in alive {
            waiting += process.waiting_calls().await;
        }
        waiting
    }
}
