//! Two at once, waiting, interrupts, and a lease that is lost.

use std::time::{Duration, Instant};

use leasehold::ReportId;
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::{Budget, Store};
use rustix::process::Signal;

use super::process::{LIMIT, Run, Scene};

/// A build that pauses for ever after its first file, under a lease that outlasts the test.
const ENDLESS: [&str; 8] = ["--ttl", "1h", "--slow", "1h", "--name", "report", "--holder", "the first of two"];

const NAMED: [&str; 2] = ["--name", "report"];

#[test]
fn of_two_at_once_the_other_is_told_who_holds_the_lease() {
    let scene = Scene::with_a_file();
    let _first = scene.start(ENDLESS).holds_generation(1);
    let second = scene.run(NAMED);
    let told =
        ["the first of two holds the lease on this report, since ", "it ends in 59m", "Nothing was built", "--wait"];
    second.assert_complains(3, &told);
}

#[test]
fn an_interrupt_releases_the_lease_and_the_next_run_need_not_wait() {
    for signal in [Signal::INT, Signal::TERM] {
        let scene = Scene::with_a_file();
        let first = scene.start(ENDLESS).holds_generation(1);
        first.signal(signal);
        let said = ["the build was stopped and nothing was published", "The lease was released"];
        first.end().assert_complains(130, &said);
        scene.run(["--read", "--name", "report"]).assert_complains(1, &["Nothing is published yet"]);
        // The TTL is an hour, and nobody waits: it must be free.
        scene.run(NAMED).assert_prints(&["Published generation 2"]);
    }
}

#[tokio::test]
async fn the_lease_is_renewed_while_the_build_works() {
    let scene = Scene::with_a_file();
    let ttl = ["--ttl", "30s", "--cadence", "100ms", "--slow", "1h", "--name", "report"];
    let run = scene.start(ttl).holds_generation(1);
    // After the second it has surely heard of the first.
    wait_for_a_renewal(&scene).await;
    wait_for_a_renewal(&scene).await;
    run.signal(Signal::INT);
    let ended = run.end();
    ended.assert_code(130);
    assert!(!ended.stderr.contains("after 0 renewals"), "{ended:#?}");
}

#[test]
fn one_that_waits_publishes_the_next_generation() {
    let scene = Scene::with_a_file();
    let first = scene.start(ENDLESS).holds_generation(1);
    let second = scene.start(["--wait", "--name", "report"]).says("the first of two holds").says("Waiting for it");
    first.signal(Signal::INT);
    first.end().assert_code(130);
    second.end().assert_prints(&["Published generation 2"]);
}

#[test]
fn an_interrupt_while_waiting_leaves_nothing_held() {
    let scene = Scene::with_a_file();
    let first = scene.start(ENDLESS).holds_generation(1);
    let second = scene.start(["--wait", "--name", "report"]).says("Waiting for it");
    second.signal(Signal::INT);
    second.end().assert_complains(130, &["nothing is held"]);
    first.signal(Signal::INT);
    first.end().assert_code(130);
    scene.run(NAMED).assert_prints(&["Published generation 2"]);
}

#[test]
fn a_build_that_was_stopped_for_too_long_publishes_nothing() {
    let scene = Scene::with_a_file();
    // The first renewal is two seconds off: it is not stopped inside a transaction, where it would hold up all others.
    let slow = ["--ttl", "4s", "--cadence", "2s", "--slow", "1h", "--name", "report"];
    let first = scene.start(slow).holds_generation(1);
    first.signal(Signal::STOP);
    scene.run(["--wait", "--name", "report"]).assert_prints(&["Published generation 2"]);
    first.signal(Signal::CONT);
    let said = [
        "The lease was lost: ",
        "Evidence: generation 1 was last confirmed ",
        "generation 2 now",
        "nothing was published",
    ];
    first.end().assert_complains(4, &said);
    scene.run(["--read", "--name", "report"]).assert_prints(&["Generation 2, published "]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_also_ends_the_reading_of_a_huge_file() {
    let scene = Scene::with_a_file();
    // A hole: it takes no room, and hours to read.
    let huge = std::fs::File::create(scene.tree().join("0-huge")).expect("a file");
    huge.set_len(1 << 42).expect("the file system has holes");
    let run: Run = scene.start(NAMED).holds_generation(1);
    run.signal(Signal::INT);
    run.end().assert_complains(130, &["The lease was released"]);
}

/// Only a renewal makes what remains of a lease more than it was.
async fn wait_for_a_renewal(scene: &Scene) {
    let store = SqliteStore::open(scene.database()).await.expect("the database opens");
    let started = Instant::now();
    let mut before = Duration::MAX;
    loop {
        let status = store.inspect(ReportId::from_name("report"), Budget::within(LIMIT)).await.expect("it answers");
        let remaining = status.and_then(|status| status.lease).expect("the lease is held").remaining;
        if remaining > before {
            return;
        }
        before = remaining;
        assert!(started.elapsed() < LIMIT, "the lease was not renewed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
