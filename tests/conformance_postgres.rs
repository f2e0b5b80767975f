//! The PostgreSQL store keeps the contract, whatever isolation and plans its database's owner has made the default.
#![cfg(all(feature = "postgres", feature = "conformance"))]

#[allow(dead_code)] // Other tests use the rest.
#[path = "support/postgres.rs"]
mod support;

use leasehold::conformance;

use support::{Defaults, PostgresHarness};

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
