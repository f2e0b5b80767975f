//! The memory store keeps the contract, whether it skips locked rows or waits for them.
#![cfg(feature = "conformance")]

use leasehold::conformance;
use leasehold::testing::MemoryHarness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_keeps_the_contract() {
    let report = conformance::run(&MemoryHarness::default()).await;
    println!("{report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_that_waits_for_locked_rows_keeps_the_contract() {
    conformance::run(&MemoryHarness::default().waiting_for_locked_rows()).await.assert_passed();
}

#[tokio::test]
async fn a_part_of_the_suite_can_be_run_by_prefix() {
    let group = conformance::run_matching(&MemoryHarness::default(), "handover::").await;
    group.assert_passed();
    assert!(group.names().all(|name| name.starts_with("handover::")));
    let sentence = conformance::run_matching(&MemoryHarness::default(), "late_renewal_after_lock_wait").await;
    assert_eq!(sentence.names().collect::<Vec<_>>(), ["waiting::late_renewal_after_lock_wait_is_refused"]);
}
