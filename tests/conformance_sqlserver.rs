//! The SQL Server store keeps the contract on a T-SQL engine, whatever its sessions are set to.
#![cfg(all(feature = "sqlserver", feature = "conformance"))]

#[path = "support/sqlserver.rs"]
#[allow(dead_code)] // Shared with other tests.
mod support;

use std::time::Duration;

use leasehold::conformance::Suite;

use support::{Setting, SqlServerHarness};

/// What depends on the isolation of the sessions: everything that waits, overlaps, or asks the ledger.
const GROUPS: [&str; 8] =
    ["handover::", "overlap::", "waiting::", "expiry::", "publication::", "ending::", "batch::", "transaction::"];

/// `LEASEHOLD_TEST_CASES` is a prefix of the cases to run instead; empty, it is all of them.
async fn keeps_the_contract(harness: SqlServerHarness, groups: &[&str]) {
    let asked = std::env::var("LEASEHOLD_TEST_CASES");
    let groups: Vec<&str> = asked.as_deref().map_or(groups.to_vec(), |prefix| vec![prefix]);
    for group in groups {
        // The first connections of some engines take seconds each.
        let suite = Suite::default().matching(group).hang_limit(Duration::from_secs(300));
        let report = suite.run(&harness).await;
        println!("{report}");
        report.assert_passed();
    }
}

async fn keeps_the_contract_at(level: &'static str) {
    keeps_the_contract(SqlServerHarness::with_sessions(Setting::Isolation(level)), &GROUPS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn the_sqlserver_store_keeps_the_contract() {
    keeps_the_contract(SqlServerHarness::default(), &[""]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn over_sessions_left_at_read_uncommitted() {
    keeps_the_contract_at("READ UNCOMMITTED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn over_sessions_left_at_read_committed_in_a_pool_of_the_users() {
    keeps_the_contract_at("READ COMMITTED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn over_sessions_left_at_repeatable_read() {
    keeps_the_contract_at("REPEATABLE READ").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn over_sessions_left_at_snapshot() {
    keeps_the_contract_at("SNAPSHOT").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn over_sessions_left_at_serializable() {
    keeps_the_contract_at("SERIALIZABLE").await;
}

/// Implicit transactions, a lock time-out of a millisecond, `ROWCOUNT 1`, `TEXTSIZE 3`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn over_sessions_that_somebody_left_dirty() {
    keeps_the_contract(SqlServerHarness::with_sessions(Setting::Dirty), &GROUPS).await;
}
