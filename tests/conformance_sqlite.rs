//! The SQLite store keeps the contract, on a disk and in memory.
#![cfg(all(feature = "sqlite", feature = "conformance"))]

#[path = "support/sqlite.rs"]
mod support;

use leasehold::conformance;

use support::SqliteHarness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_store_keeps_the_contract_on_a_disk() {
    let report = conformance::run(&SqliteHarness::on_disk()).await;
    println!("{report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_store_keeps_the_contract_in_memory() {
    conformance::run(&SqliteHarness::in_memory()).await.assert_passed();
}
