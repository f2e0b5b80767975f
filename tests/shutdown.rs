//! How long a shutdown takes with a renewal thread of the supervisor's own.
#![cfg(feature = "test-util")]

use std::time::{Duration, Instant};

use leasehold::testing::MemoryStore;
use leasehold::{LeasePolicy, LeaseSupervisor, ReportId};

/// So long that a shutdown which takes all of it cannot be mistaken for one that ends when it is done.
const LIMIT: Duration = Duration::from_secs(30);

/// For machines that are busy.
const SOON: Duration = Duration::from_secs(3);

fn supervisor() -> LeaseSupervisor {
    let policy = LeasePolicy::builder(Duration::from_secs(30)).cleanup_timeout(LIMIT).build().unwrap();
    LeaseSupervisor::new(MemoryStore::new(), policy).unwrap()
}

#[tokio::test]
async fn a_shutdown_with_nothing_to_do_does_not_wait_for_its_limit() {
    let started = Instant::now();
    let report = supervisor().shutdown(LIMIT).await;
    assert!(report.not_released.is_empty());
    assert!(started.elapsed() < SOON, "it took {:?}", started.elapsed());
}

#[tokio::test]
async fn a_shutdown_ends_with_the_release_that_a_dropped_guard_began() {
    let supervisor = supervisor();
    let report = ReportId::from_name("monthly");
    drop(supervisor.acquire_or_provision(report, None).await.unwrap());
    let started = Instant::now();
    let _ = supervisor.shutdown(LIMIT).await;
    assert!(started.elapsed() < SOON, "it took {:?}", started.elapsed());
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_guard_that_is_kept_nor_report_it_again() {
    let policy = LeasePolicy::builder(Duration::from_secs(30)).cleanup_timeout(LIMIT).build().unwrap();
    let supervisor = LeaseSupervisor::new(MemoryStore::new(), policy).unwrap();
    let report = ReportId::from_name("monthly");
    let _kept = supervisor.acquire_or_provision(report, None).await.unwrap();
    let (limit, started) = (Duration::from_secs(8), Instant::now());
    let first = supervisor.shutdown(limit).await;
    assert_eq!((first.released, first.not_released.len()), (1, 0));
    assert!(started.elapsed() < limit / 2 + SOON, "it took {:?}", started.elapsed());
    let second = supervisor.shutdown(limit).await;
    assert_eq!((second.released, second.not_released.len()), (0, 0), "there is nothing left to release");
}
