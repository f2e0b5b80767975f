//! Files that are no fit databases, and disks without room: each a sentence that says what to do, and nothing half-written.

use leasehold::answer::{PublishAnswer, ReadAnswer, RenewAnswer};
use leasehold::store::Store;
use leasehold::store::sqlite::SqliteStore;
use leasehold::{StoreError, StoreErrorKind};

use crate::child;
use crate::place::{Place, TTL, budget, publication, publish, report, request, take};

async fn rejected(path: impl AsRef<std::path::Path>) -> String {
    let error = SqliteStore::open(path).await.expect_err("no store can be there");
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    error.to_string()
}

fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {text}");
    }
}

/// Closes a store and waits until its thread has closed the file, which takes the -wal file away.
async fn close(store: SqliteStore, place: &Place) {
    drop(store);
    while place.folder().join("reports.db-wal").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_folder_is_no_database() {
    assert_says(&rejected(Place::new().folder()).await, &["is a folder", "give the path of a file"]);
}

#[tokio::test]
async fn a_folder_that_does_not_exist_is_named() {
    let path = Place::new().folder().join("missing").join("reports.db");
    assert_says(&rejected(path).await, &["missing of the database", "create it first"]);
}

#[tokio::test]
async fn no_path_and_a_private_memory_database_are_invalid() {
    for path in ["", ":memory:"] {
        let error = SqliteStore::open(path).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error}");
    }
}

#[tokio::test]
async fn a_file_that_is_something_else_is_left_alone() {
    let place = Place::new();
    let text = "Dear Sir or Madam, ".repeat(1000);
    std::fs::write(place.file(), &text).unwrap();
    assert_says(&rejected(place.file()).await, &["is not an SQLite database"]);
    assert_eq!(std::fs::read_to_string(place.file()).unwrap(), text);
}

#[tokio::test]
async fn a_damaged_database_is_told_and_not_written() {
    let place = Place::new();
    let store = place.open().await;
    take(&store, request(TTL)).await;
    close(store, &place).await;
    let mut bytes = std::fs::read(place.file()).unwrap();
    bytes[4096..].fill(0xff);
    std::fs::write(place.file(), &bytes).unwrap();

    let error = match place_opens(&place).await {
        Err(error) => error,
        Ok(store) => store.acquire(request(TTL), budget()).await.expect_err("the rows are gone"),
    };
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert_says(&error.to_string(), &["is damaged", "restore a backup", "advance the recovery epoch"]);
}

async fn place_opens(place: &Place) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(place.file()).await
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_both_versions_are_named() {
    let place = Place::new();
    place.open().await;
    place.raw().execute("UPDATE LeaseholdStore SET SchemaVersion = 99", []).unwrap();
    assert_says(&rejected(place.file()).await, &["schema version 99", "up to 1", "update leasehold"]);
}

#[tokio::test]
async fn a_database_that_was_taken_away_does_not_come_back_empty() {
    let place = Place::new();
    let store = place.open().await;
    take(&store, request(TTL)).await;
    std::fs::rename(place.file(), place.folder().join("elsewhere.db")).unwrap();
    let other = store.for_runtime(&tokio::runtime::Handle::current());
    for store in [store, other] {
        let error = store.acquire(request(TTL), budget()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected);
        assert_says(&error.to_string(), &["was there and is gone"]);
    }
    assert!(!place.file().exists());
}

#[tokio::test]
async fn a_column_that_somebody_edited_is_named() {
    let place = Place::new();
    let store = place.open().await;
    take(&store, request(TTL)).await;
    place.raw().execute("UPDATE ReportPublication SET LeaseAcquiredAtUtc = 'yesterday'", []).unwrap();
    let error = store.inspect(report(), budget()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert_says(&error.to_string(), &["LeaseAcquiredAtUtc", &report().to_string()]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_file_is_told() {
    use std::os::unix::fs::PermissionsExt;
    if let Some(file) = child::file() {
        return assert_says(&rejected(file).await, &["is read-only here", "write the file and its folder"]);
    }
    let place = Place::new();
    let store = place.open().await;
    close(store, &place).await;
    std::fs::set_permissions(place.folder(), PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::set_permissions(place.file(), PermissionsExt::from_mode(0o444)).unwrap();
    child::run_as_nobody("file::a_read_only_file_is_told", &place.file());
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_in_which_no_shared_memory_can_be_made_is_told() {
    use std::os::unix::fs::PermissionsExt;
    if let Some(file) = child::file() {
        return assert_says(&rejected(file).await, &["-shm", "its folder"]);
    }
    let place = Place::new();
    let store = place.open().await;
    close(store, &place).await;
    std::fs::set_permissions(place.file(), PermissionsExt::from_mode(0o666)).unwrap();
    std::fs::set_permissions(place.folder(), PermissionsExt::from_mode(0o555)).unwrap();
    child::run_as_nobody("file::a_folder_in_which_no_shared_memory_can_be_made_is_told", &place.file());
    std::fs::set_permissions(place.folder(), PermissionsExt::from_mode(0o755)).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_leaves_nothing_half_written_and_the_store_works_again_with_room() {
    let Some(file) = child::file() else {
        let place = Place::new();
        let name = "file::a_full_disk_leaves_nothing_half_written_and_the_store_works_again_with_room";
        let output = child::command_on_small_disk(name, &place.file(), "1m").output().expect("unshare runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        // Not passed off as passed: `tests/run.sh` leaves it out, and says so, where this cannot be done.
        assert!(said.contains("running 1 test"), "no small disk can be mounted here by unshare: {complained}");
        assert!(output.status.success(), "{said}{complained}");
        return;
    };
    let store = SqliteStore::open(&file).await.unwrap();
    let fence = take(&store, request(TTL)).await;

    // What can be taken away later to make room.
    let ballast = file.with_file_name("ballast");
    std::fs::write(&ballast, [0; 256 * 1024]).unwrap();

    // Too big for the disk: it is full in the middle of the transaction.
    let secret = "secret ".repeat(300_000);
    let big = publication(fence, &secret);
    let error = store.publish(big.clone(), budget()).await.unwrap_err();
    assert_full(&error);
    assert_eq!(store.read(report(), None, budget()).await.unwrap(), ReadAnswer::Unpublished);
    let renewed = store.renew(fence, TTL, budget()).await.unwrap();
    assert!(matches!(renewed, RenewAnswer::Renewed { .. }), "the lease goes on: {renewed:?}");

    // The log has taken what room there was and reuses it; when that is used up, even a renewal is refused, and says so.
    let error = loop {
        match store.renew(fence, TTL, budget()).await {
            Ok(answer) => assert!(matches!(answer, RenewAnswer::Renewed { .. }), "{answer:?}"),
            Err(error) => break error,
        }
    };
    assert_full(&error);
    std::fs::remove_file(&ballast).unwrap();

    let renewed = store.renew(fence, TTL, budget()).await.unwrap();
    assert!(matches!(renewed, RenewAnswer::Renewed { .. }), "{renewed:?}");
    let answer = publish(&store, fence, "small").await;
    assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
    let raw = rusqlite::Connection::open(&file).unwrap();
    let sound: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let ended: i64 = raw.query_row("SELECT count(*) FROM ReportLedger", [], |row| row.get(0)).unwrap();
    assert_eq!(ended, 1, "only the publication that was accepted");
}

fn assert_full(error: &StoreError) {
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error:?}");
    assert_says(&error.to_string(), &["no room", "nothing is half-written", "make room"]);
    assert!(!format!("{error:?}").contains("secret"), "a payload in an error");
}
