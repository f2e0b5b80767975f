//! The SQL Server store keeps the contract on a T-SQL engine.
#![cfg(all(feature = "sqlserver", feature = "conformance"))]

#[path = "support/sqlserver.rs"]
mod support;

use std::time::Duration;

use leasehold::conformance::Suite;

use support::SqlServerHarness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn the_sqlserver_store_keeps_the_contract() {
    let prefix = std::env::var("LEASEHOLD_TEST_CASES").unwrap_or_default();
    // The first connections of some engines take seconds each.
    let suite = Suite::default().matching(prefix).hang_limit(Duration::from_secs(300));
    let report = suite.run(&SqlServerHarness::default()).await;
    println!("{report}");
    report.assert_passed();
}
