//! What a program without leases does: it overwrites the report. As durable as the store, in a file of the same kind, and from
//! an async caller too, who may not wait for a disk on a runtime's thread.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leasehold::ReportId;
use leasehold::store::Payload;
use rusqlite::Connection;

use super::place::Place;

/// A table of payloads in an SQLite file of its own.
#[derive(Debug)]
pub(crate) struct NaiveReports {
    connection: Arc<Mutex<Connection>>,
    _place: Place,
}

impl NaiveReports {
    pub(crate) fn new() -> Self {
        let place = Place::new();
        let connection = Connection::open(place.file("naive.db")).expect("the file opens");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE Report
                 (ReportId TEXT NOT NULL PRIMARY KEY, Payload TEXT NOT NULL, Version INTEGER NOT NULL DEFAULT 0) STRICT;",
            )
            .expect("a table");
        Self { connection: Arc::new(Mutex::new(connection)), _place: place }
    }

    pub(crate) fn provision(&self, report: ReportId) {
        let connection = self.connection.lock().expect("no panic");
        connection
            .execute("INSERT INTO Report (ReportId, Payload) VALUES (?1, '')", [report.to_string()])
            .expect("a row");
    }

    /// One statement and one commit. How long the caller waits for it, and how long the statement takes by itself.
    pub(crate) async fn publish(&self, report: ReportId, payload: &Payload) -> (Duration, Duration) {
        let (connection, payload) = (Arc::clone(&self.connection), payload.clone());
        let started = Instant::now();
        let update = move || {
            let started = Instant::now();
            overwrite(&connection.lock().expect("no panic"), report, payload.as_str());
            started.elapsed()
        };
        let alone = tokio::task::spawn_blocking(update).await.expect("no panic");
        (started.elapsed(), alone)
    }
}

/// With a version that counts, because SQLite writes nothing where nothing changes.
fn overwrite(connection: &Connection, report: ReportId, payload: &str) {
    const UPDATE: &str = "UPDATE Report SET Payload = ?2, Version = Version + 1 WHERE ReportId = ?1";
    let mut update = connection.prepare_cached(UPDATE).expect("a statement");
    assert_eq!(update.execute((report.to_string(), payload)).expect("an update"), 1);
}
