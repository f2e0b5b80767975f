//! The SQLite store keeps the contract when every worker is a process of its own.
//!
//! The suite, its blockers and its looks at raw rows are in the test's own process; every store that a case connects is served
//! by a process that was started for it and ends with it.
#![cfg(all(feature = "sqlite", feature = "conformance", feature = "serde"))]

#[path = "support/process_harness.rs"]
mod process_harness;
#[path = "support/process_store.rs"]
mod process_store;
#[path = "support/process_wire.rs"]
mod process_wire;
#[path = "support/serving.rs"]
mod serving;
#[path = "support/sqlite.rs"]
mod sqlite;
#[path = "support/worker_process.rs"]
mod worker_process;

use std::io::Write;
use std::time::{Duration, Instant};

use leasehold::answer::AcquireAnswer;
use leasehold::conformance::{self, Blocker, BlockerEnd, Database, Harness};
use leasehold::store::{AcquireRequest, Budget, Store};
use leasehold::{Epoch, Generation, Holder, Owner, ReportId};

use process_harness::ProcessHarness;
use sqlite::SqliteHarness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_store_keeps_the_contract_among_processes() {
    let harness = ProcessHarness::new(SqliteHarness::in_memory());
    let started = Instant::now();
    let report = conformance::run(&harness).await;
    let tally = harness.tally();
    say(&format!(
        "{report}\nin {} processes, up to {} at once, in {:.1} s",
        tally.started(),
        tally.most_at_once(),
        started.elapsed().as_secs_f32()
    ));
    report.assert_passed();
    // Every case connects at least once.
    assert!(tally.started() >= report.outcomes().len());
    assert_eq!(tally.ended_well(), tally.started(), "processes that ended by themselves, of those that were started");
}

/// In a worker's process this is where it serves.
#[tokio::test]
async fn a_process_ends_with_the_last_clone_of_its_store() {
    if let Some(file) = serving::file() {
        return serving::serve(&file).await;
    }
    let harness = ProcessHarness::new(SqliteHarness::in_memory());
    let database = harness.fresh().await;
    let store = database.connect().await;
    let clone = store.clone();
    let transaction = store.begin(budget()).await.expect("begin");
    drop(store);
    clone.provision(report(), budget()).await.expect("the clone's process is there");
    drop(clone);
    assert_eq!(harness.tally().ended_well(), 0, "the transaction's process is there");
    drop(transaction);
    assert_eq!((harness.tally().started(), harness.tally().ended_well()), (1, 1));
}

#[tokio::test]
async fn calls_of_one_process_overlap_and_a_dropped_one_is_given_up_in_the_process_too() {
    let harness = ProcessHarness::new(SqliteHarness::in_memory());
    let database = harness.fresh().await;
    let store = database.connect().await;
    store.provision(report(), budget()).await.expect("provision");
    let blocker = database.block(report(), BlockerEnd::OnlyLock).await;
    let acquire = |request| {
        let store = store.clone();
        tokio::spawn(async move { store.acquire(request, budget()).await.expect("acquire") })
    };
    let dropped = acquire(request());
    blocker.wait_for_waiters(1).await;
    let asked = request();
    let answered = acquire(asked.clone());
    blocker.wait_for_waiters(2).await;
    store.metadata(report(), budget()).await.expect("a read goes past both of them");

    dropped.abort();
    assert!(dropped.await.expect_err("it was dropped").is_cancelled());
    let given_up = async {
        while database.waiting_calls().await > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), given_up).await.expect("the process forgets the dropped call");
    blocker.release().await;
    let AcquireAnswer::Acquired(lease) = answered.await.expect("no panic") else { panic!("only one call is left") };
    assert_eq!((lease.fence.owner, lease.fence.generation), (asked.owner, Generation::new(1)));
    drop(store);
    assert_eq!(harness.tally().ended_well(), 1);
}

fn report() -> ReportId {
    ReportId::from_name("report")
}

fn budget() -> Budget {
    Budget::within(Duration::from_secs(60))
}

fn request() -> AcquireRequest {
    AcquireRequest {
        report: report(),
        owner: Owner::random(),
        ttl: Duration::from_secs(600),
        holder: Holder::of_this_process(),
        min_epoch: Epoch::new(0),
        takeover_delay: Duration::ZERO,
        wanted: None,
    }
}

/// Past the test harness, which shows what is printed only when a test fails.
fn say(text: &str) {
    writeln!(std::io::stdout(), "\n{text}").expect("an output");
}
