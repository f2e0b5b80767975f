//! Two at once, waiting, interrupts, and a lease that is lost.

use std::time::{Duration, Instant};

use leasehold::ReportId;
use leasehold::store::Budget;
use rustix::process::Signal;

use crate::database::remaining;
use crate::process::{LIMIT, Run, Scene};

/// A build that pauses for ever after its first file, under a lease that outlasts the test.
const ENDLESS: [&str; 8] = ["--ttl", "1h", "--slow", "1h", "--name", "report", "--holder", "the first of two"];

const NAMED: [&str; 2] = ["--name", "report"];

on_every_store! {
    what_is_published_is_read_back,
    of_two_at_once_the_other_is_told_who_holds_the_lease,
    an_interrupt_releases_the_lease_and_the_next_run_need_not_wait,
    the_lease_is_renewed_while_the_build_works,
    one_that_waits_publishes_the_next_generation,
    an_interrupt_while_waiting_leaves_nothing_held,
    a_build_that_was_stopped_for_too_long_publishes_nothing,
    #[cfg(target_os = "linux")]
    an_interrupt_also_ends_the_reading_of_a_huge_file,
}

async fn what_is_published_is_read_back(scene: Scene) {
    scene.run(["--read"]).assert_complains(1, &["Nothing is published yet", "To build and publish it: "]);
    scene.run::<&str>([]).assert_prints(&["Published generation 1", "1 file, 2 lines, 8 bytes", "To read it: "]);
    scene.run(["--read"]).assert_prints(&["Generation 1, published ", "1 file, 2 lines, 8 bytes"]);
    assert_eq!(scene.published()["total"], serde_json::json!({ "files": 1, "lines": 2, "bytes": 8 }));
    scene.run(["--revision", "7"]).assert_prints(&["Published generation 2 (revision 7)"]);
    scene.run(["--revision", "7"]).assert_prints(&["Nothing was built: generation 2, revision 7, published "]);
}

async fn of_two_at_once_the_other_is_told_who_holds_the_lease(scene: Scene) {
    let _first = scene.start(ENDLESS).holds_generation(1);
    let second = scene.run(NAMED);
    let told =
        ["the first of two holds the lease on this report, since ", "it ends in 59m", "Nothing was built", "--wait"];
    second.assert_complains(3, &told);
}

async fn an_interrupt_releases_the_lease_and_the_next_run_need_not_wait(scene: Scene) {
    for (generation, signal) in [(1, Signal::INT), (2, Signal::TERM)] {
        let first = scene.start(ENDLESS).holds_generation(generation);
        first.signal(signal);
        let said = ["the build was stopped and nothing was published", "The lease was released"];
        first.end().assert_complains(130, &said);
        scene.run(["--read", "--name", "report"]).assert_complains(1, &["Nothing is published yet"]);
    }
    // The TTL is an hour, and nobody waits: it must be free.
    scene.run(NAMED).assert_prints(&["Published generation 3"]);
}

async fn the_lease_is_renewed_while_the_build_works(scene: Scene) {
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

async fn one_that_waits_publishes_the_next_generation(scene: Scene) {
    let first = scene.start(ENDLESS).holds_generation(1);
    let second = scene.start(["--wait", "--name", "report"]).says("the first of two holds").says("Waiting for it");
    first.signal(Signal::INT);
    first.end().assert_code(130);
    second.end().assert_prints(&["Published generation 2"]);
}

async fn an_interrupt_while_waiting_leaves_nothing_held(scene: Scene) {
    let first = scene.start(ENDLESS).holds_generation(1);
    let second = scene.start(["--wait", "--name", "report"]).says("Waiting for it");
    second.signal(Signal::INT);
    second.end().assert_complains(130, &["nothing is held"]);
    first.signal(Signal::INT);
    first.end().assert_code(130);
    scene.run(NAMED).assert_prints(&["Published generation 2"]);
}

async fn a_build_that_was_stopped_for_too_long_publishes_nothing(scene: Scene) {
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
async fn an_interrupt_also_ends_the_reading_of_a_huge_file(scene: Scene) {
    // A hole: it takes no room, and hours to read.
    let huge = std::fs::File::create(scene.tree().join("0-huge")).expect("a file");
    huge.set_len(1 << 42).expect("the file system has holes");
    let run: Run = scene.start(NAMED).holds_generation(1);
    run.signal(Signal::INT);
    run.end().assert_complains(130, &["The lease was released"]);
}

/// Only a renewal makes what remains of a lease more than it was.
async fn wait_for_a_renewal(scene: &Scene) {
    let store = scene.open().await;
    let started = Instant::now();
    let mut before = Duration::MAX;
    loop {
        let remaining = remaining(&store, ReportId::from_name("report"), Budget::within(LIMIT)).await;
        let remaining = remaining.expect("the lease is held");
        if remaining > before {
            return;
        }
        before = remaining;
        assert!(started.elapsed() < LIMIT, "the lease was not renewed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
