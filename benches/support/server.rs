//! A PostgreSQL server of a bench's own, on a disk, and what it costs the machine.
#![allow(dead_code)] // Shared by benches that each use a part of it.

use std::path::Path;

use leasehold::conformance::Harness;
use leasehold::store::postgres::PostgresStore;
use tokio_postgres::Client;

use crate::cluster::{Cluster, programs};
use crate::postgres::{PostgresDatabase, PostgresHarness, connect};

/// One schema in one database of one cluster. What is first is dropped first.
pub(crate) struct Server {
    pub(crate) database: PostgresDatabase,
    pub(crate) harness: PostgresHarness,
    pub(crate) cluster: Cluster,
}

impl Server {
    /// A server with the settings that a new cluster has, durable; or `None`, and loudly, where there is none.
    pub(crate) async fn start() -> Option<Self> {
        if programs().is_none() {
            println!(
                "!! NOTHING WAS MEASURED ON POSTGRESQL: its programs are not here (apt-get install postgresql, or name their"
            );
            println!("!! folder in LEASEHOLD_TEST_POSTGRES_BIN)");
            return None;
        }
        let cluster = Cluster::on_disk();
        let harness = PostgresHarness::on(cluster.config(), &[]).await;
        let database = harness.fresh().await;
        let settings = "SELECT format('PostgreSQL %s, fsync %s, synchronous_commit %s, full_page_writes %s', \
                        current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'), \
                        current_setting('full_page_writes'))";
        let rows = database.client.query_typed(settings, &[]).await.expect("settings");
        println!("{}; load {}", rows[0].get::<_, String>(0), load());
        Some(Self { database, harness, cluster })
    }

    pub(crate) fn store(&self) -> PostgresStore {
        self.database.store()
    }

    /// A connection of the bench's own, as a user of the database has one.
    pub(crate) async fn connect(&self) -> Client {
        connect(&self.harness.config).await
    }

    /// One number that the server tells.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.database.client.query_typed(sql, &[]).await.expect("a number")[0].get(0)
    }

    /// Where the log of changes ends, in bytes.
    pub(crate) async fn wal_position(&self) -> i64 {
        self.number("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").await
    }

    /// CPU time of all the server's processes so far, also of those that have ended, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let pid = std::fs::read_to_string(self.cluster.data().join("postmaster.pid")).expect("the server runs");
        let postmaster: u32 = pid.lines().next().and_then(|line| line.parse().ok()).expect("its number");
        let own = ProcessTimes::of(postmaster).expect("the server runs");
        let children = std::fs::read_dir("/proc").expect("processes").flatten();
        let children = children.filter_map(|entry| ProcessTimes::of(entry.file_name().to_str()?.parse().ok()?));
        let running: u64 = children.filter(|times| times.parent == postmaster).map(|times| times.own).sum();
        (own.own + own.ended_children + running) as f64 / TICKS_PER_SECOND
    }
}

/// What Linux shows to programs, whatever it counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// From `/proc/<pid>/stat`.
struct ProcessTimes {
    parent: u32,
    own: u64,
    ended_children: u64,
}

impl ProcessTimes {
    fn of(pid: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may have spaces.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let (own, ended_children) = (number(11)? + number(12)?, number(13)? + number(14)?);
        Some(Self { parent: u32::try_from(number(1)?).ok()?, own, ended_children })
    }
}

/// CPU time of one process so far, in microseconds.
pub(crate) fn cpu_micros_of(pid: u32) -> f64 {
    ProcessTimes::of(pid).expect("it runs").own as f64 / TICKS_PER_SECOND * 1e6
}

/// The machine's load averages: a figure that was measured beside other work says so.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string(Path::new("/proc/loadavg")).unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
