//! The PostgreSQL store keeps the contract, whatever isolation and plans its database's owner has made the default.
#![cfg(all(feature = "postgres", feature = "conformance"))]

#[allow(dead_code)] // Other tests use the rest.
#[path = "support/postgres_cluster.rs"]
mod cluster;
#[path = "support/postgres_pooler.rs"]
mod pooler;
#[allow(dead_code)] // Other tests use the rest.
#[path = "support/postgres.rs"]
mod support;

use leasehold::conformance;

use pooler::Pooler;
use support::{Defaults, LOGIN, PostgresHarness};

async fn keeps_the_contract(defaults: Defaults) {
    let report = conformance::run(&PostgresHarness::new(defaults).await).await;
    println!("{defaults:?}: {report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_keeps_the_contract_where_read_committed_is_the_default() {
    keeps_the_contract(Defaults::ReadCommitted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_keeps_the_contract_where_repeatable_read_is_the_default() {
    keeps_the_contract(Defaults::RepeatableRead).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_keeps_the_contract_where_serializable_is_the_default() {
    keeps_the_contract(Defaults::Serializable).await;
}

async fn keeps_it_with_forced_plans(defaults: Defaults) {
    let harness = PostgresHarness::new(defaults).await;
    for group in ["waiting::", "expiry::", "batch::", "overlap::"] {
        conformance::run_matching(&harness, group).await.assert_passed();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_keeps_the_contract_with_hash_plans() {
    keeps_it_with_forced_plans(Defaults::HashPlans).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_keeps_the_contract_with_sequential_plans() {
    keeps_it_with_forced_plans(Defaults::SequentialPlans).await;
}

/// No statement is prepared on one server connection and used on another, and no setting outlives its transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_keeps_the_contract_behind_a_pooler_by_the_transaction() {
    let mut harness = PostgresHarness::new(Defaults::RepeatableRead).await;
    let pooler = Pooler::before(&harness.config, LOGIN);
    harness.reached = pooler.through(&harness.config);
    let report = conformance::run(&harness).await;
    println!("behind a pooler: {report}");
    report.assert_passed();
}
