//! Real processes on one file.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use leasehold::answer::{AcquireAnswer, PublishAnswer};
use leasehold::store::Store;
use leasehold::store::sqlite::SqliteStore;

use crate::child;
use crate::place::{Place, TTL, budget, publish, report, request, take};

/// What a child prints, after this mark, for each generation that it published.
const WON: &str = "won ";

struct Worker {
    process: Child,
    start: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// A process that waits for [`go`](Self::go).
    fn new(mut command: Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the child starts");
        let start = process.stdin.take().expect("its input");
        let mut output = BufReader::new(process.stdout.take().expect("its output"));
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert_ne!(output.read_line(&mut line).expect("its output"), 0, "the child ended early");
        }
        Self { process, start, output }
    }

    fn go(&mut self) {
        self.start.write_all(b"go\n").expect("the child listens");
    }

    fn next_win(&mut self) -> Option<i64> {
        let mut line = String::new();
        while self.output.read_line(&mut line).expect("its output") > 0 {
            if let Some((_, generation)) = line.trim().split_once(WON) {
                return Some(generation.parse().expect("a generation"));
            }
            line.clear();
        }
        None
    }
}

/// In the child: says that it is there, and waits for the others.
fn wait_for_start() {
    println!("ready");
    std::io::stdin().read_exact(&mut [0]).expect("the parent says go");
}

/// In the child: takes and publishes as often as said.
async fn work(file: &std::path::Path, times: usize) {
    let store = SqliteStore::open(file).await.expect("opened beside the others");
    store.provision(report(), budget()).await.expect("provisioned");
    for _ in 0..times {
        let fence = loop {
            match store.acquire(request(TTL), budget()).await.expect("acquire answers") {
                AcquireAnswer::Acquired(acquired) => break acquired.fence,
                AcquireAnswer::Busy(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                other => panic!("{other:?}"),
            }
        };
        let answer = publish(&store, fence, &format!("by {} in {}", std::process::id(), fence.generation)).await;
        assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
        println!("{WON}{}", fence.generation);
    }
}

#[tokio::test]
async fn of_several_processes_exactly_one_publishes_each_generation() {
    const TIMES: usize = 40;
    if let Some(file) = child::file() {
        wait_for_start();
        return work(&file, TIMES).await;
    }
    let place = Place::new();
    let command =
        || child::command("processes::of_several_processes_exactly_one_publishes_each_generation", &place.file());
    let mut workers: Vec<Worker> = (0..4).map(|_| Worker::new(command())).collect();
    // All open a file that does not exist yet, at once.
    workers.iter_mut().for_each(Worker::go);
    let mut won: Vec<i64> = Vec::new();
    for mut worker in workers {
        won.extend(std::iter::from_fn(|| worker.next_win()));
        assert!(worker.process.wait().expect("the child ends").success());
    }
    won.sort_unstable();
    assert_eq!(won, (1..=4 * TIMES as i64).collect::<Vec<_>>(), "each generation once, none left out");
    let ledger = "SELECT count(*), count(DISTINCT Generation) FROM ReportLedger WHERE OperationId IS NOT NULL";
    let counts: (i64, i64) = place.raw().query_row(ledger, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(counts, (4 * TIMES as i64, 4 * TIMES as i64));

    let fence = take(&place.open().await, request(TTL)).await;
    assert_eq!(fence.generation.get(), 4 * TIMES as i64 + 1, "it goes on where they ended");
}

#[tokio::test]
async fn what_a_killed_process_was_told_is_still_true() {
    if let Some(file) = child::file() {
        wait_for_start();
        return work(&file, usize::MAX).await;
    }
    let place = Place::new();
    let mut last = 0;
    for _ in 0..5 {
        let mut worker =
            Worker::new(child::command("processes::what_a_killed_process_was_told_is_still_true", &place.file()));
        worker.go();
        for _ in 0..10 {
            let generation = worker.next_win().expect("it goes on for ever");
            assert!(generation > last, "{generation} after {last}");
            last = generation;
        }
        worker.process.kill().expect("killed");
        last = std::iter::from_fn(|| worker.next_win()).last().unwrap_or(last);
        worker.process.wait().expect("it ended");

        let raw = place.raw();
        let known = "SELECT count(*) FROM ReportLedger WHERE Generation <= ?1 AND OperationId IS NOT NULL";
        let known: i64 = raw.query_row(known, [last], |row| row.get(0)).unwrap();
        let taken: i64 = raw.query_row("SELECT Generation FROM ReportPublication", [], |row| row.get(0)).unwrap();
        assert!(taken >= last && taken <= last + 2, "the last told was {last}, the row is at {taken}");
        // Generations that were taken and not published were those of killed processes, at most one each.
        assert!(last - known <= 5, "{known} publications up to {last}");
        let expired = "UPDATE ReportPublication SET LeaseUntilNanos = 0 WHERE LeaseOwner IS NOT NULL";
        raw.execute(expired, []).unwrap();
    }
}

#[tokio::test]
async fn generations_grow_across_every_reopening() {
    let place = Place::new();
    let mut last = 0;
    for _ in 0..5 {
        let store = place.open().await;
        let fence = take(&store, request(TTL)).await;
        assert_eq!(fence.generation.get(), last + 1);
        last = fence.generation.get();
        store.release(fence, budget()).await.unwrap();
        drop(store);
        while place.folder().join("reports.db-wal").exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
