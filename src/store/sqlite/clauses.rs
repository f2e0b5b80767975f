//! The conditional writes refuse by themselves, whatever the code before them says: the second lock on the same door.

use rusqlite::{Connection, Params, named_params};

const HELD: &str = "INSERT INTO ReportPublication (ReportId, Generation, LeaseOwner, LeaseBootId, LeaseUntilNanos,
    TakeoverDelayMillis, RecoveryEpoch, PublishedGeneration, PublishedAtUtc, SourceRevision,
    SourceRevisionFloor)
    VALUES ('report', 7, 'owner', 'boot', 1000, 1, 3, 6, '', 20, 30)";

/// A row that is held by owner under generation 7 and epoch 3 until 1000, with a change made to it.
fn row(change: &str) -> Connection {
    let connection = Connection::open_in_memory().expect("a database in memory");
    connection.execute_batch(include_str!("sql/schema.sql")).expect("the schema");
    connection.execute_batch(HELD).expect("a held row");
    if !change.is_empty() {
        connection.execute_batch(&format!("UPDATE ReportPublication SET {change}")).expect("a change");
    }
    connection
}

fn writes(change: &str, sql: &str, values: impl Params) -> bool {
    row(change).execute(sql, values).expect("the statement is sound") == 1
}

fn publishes(change: &str) -> bool {
    writes(
        change,
        include_str!("sql/publish.sql"),
        named_params! {
            ":report": "report", ":generation": 7, ":owner": "owner", ":epoch": 3, ":revision": 30, ":boot": "boot",
            ":now": 999, ":now_utc": "",
        },
    )
}

fn renews(change: &str) -> bool {
    writes(
        change,
        include_str!("sql/renew.sql"),
        named_params! {
            ":report": "report", ":generation": 7, ":owner": "owner", ":epoch": 3, ":boot": "boot", ":now": 999,
            ":until": 2000, ":until_utc": "",
        },
    )
}

fn acquires(change: &str) -> bool {
    writes(
        change,
        include_str!("sql/acquire.sql"),
        named_params! {
            ":report": "report", ":generation": 8, ":owner": "next", ":boot": "boot", ":now": 1_001_000, ":now_utc": "",
            ":until": 2_000_000, ":until_utc": "", ":holder": "", ":takeover_delay": 0,
        },
    )
}

const OTHERS: [&str; 7] = [
    "ReportId = 'other'",
    "Generation = 8",
    "Generation = 6",
    "LeaseOwner = 'other'",
    "LeaseOwner = NULL",
    "RecoveryEpoch = 4",
    "LeaseBootId = 'other'",
];

#[test]
fn a_renewal_writes_for_its_own_unexpired_lease_only() {
    assert!(renews(""));
    for change in OTHERS.into_iter().chain(["LeaseUntilNanos = 999"]) {
        assert!(!renews(change), "{change}");
    }
}

#[test]
fn a_publication_writes_for_its_own_unexpired_lease_and_a_revision_that_is_new_enough_only() {
    assert!(publishes(""));
    assert!(publishes("SourceRevision = NULL, SourceRevisionFloor = NULL"));
    let further =
        ["LeaseUntilNanos = 999", "PublishedGeneration = 7", "SourceRevision = 31", "SourceRevisionFloor = 31"];
    for change in OTHERS.into_iter().chain(further) {
        assert!(!publishes(change), "{change}");
    }
}

#[test]
fn an_acquisition_writes_only_after_the_expiry_and_its_takeover_delay() {
    // One millisecond of delay after the expiry at 1000.
    assert!(acquires(""));
    assert!(!acquires("LeaseUntilNanos = 1001"));
    assert!(acquires("LeaseUntilNanos = 1001, TakeoverDelayMillis = 0"));
    assert!(acquires("LeaseUntilNanos = 5000000, LeaseBootId = 'other'"));
    assert!(!acquires("Generation = 8"), "the generation was read under another lock");
}

#[test]
fn the_end_of_the_range_is_refused_by_the_column_and_never_becomes_a_real() {
    let row = row("Generation = 9223372036854775807");
    row.execute("UPDATE ReportPublication SET Generation = Generation + 1", []).expect_err("not an INTEGER any more");
}
