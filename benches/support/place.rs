//! A place for database files, on the disk that the build uses, and how many transactions were committed there.

use std::path::PathBuf;

use leasehold::store::sqlite::SqliteStore;
use tempfile::TempDir;

/// The header of a write-ahead log, and of each of its frames.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// A folder that is gone when dropped.
#[derive(Debug)]
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::with_prefix_in("leasehold-bench-", env!("CARGO_TARGET_TMPDIR")).expect("a folder"))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.file("reports.db")).await.expect("the store opens")
    }

    /// The transactions in the store's write-ahead log: the last frame of each says so. Grows until the log begins anew.
    #[allow(dead_code)] // Of the bench that counts round trips.
    pub(crate) fn commits(&self) -> usize {
        let log = std::fs::read(self.file("reports.db-wal")).expect("the log");
        let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes"));
        let (page_size, salt) = (number(8) as usize, &log[16..24]);
        (LOG_HEADER..log.len())
            .step_by(FRAME_HEADER + page_size)
            // A frame with another salt is a leftover from before the log began anew.
            .filter(|&frame| log[frame + 8..frame + 16] == *salt && number(frame + 4) > 0)
            .count()
    }
}
