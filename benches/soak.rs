//! Ten thousand leases for ten minutes (`LEASEHOLD_SOAK_SECONDS` says otherwise), while payloads are published and leases handed over
//! between two services all the time: no lease may be lost, no memory may grow, and renewals must keep updating rows in place.

mod support {
    pub(crate) mod figure;
    pub(crate) mod fleet;
    pub(crate) mod samples;
    pub(crate) mod server;
}
#[allow(dead_code)] // The tests use more of it.
#[path = "../tests/support/postgres_cluster.rs"]
mod cluster;
#[allow(dead_code)] // The tests use more of it.
#[path = "../tests/support/postgres.rs"]
mod postgres;

use std::alloc::System;
use std::time::{Duration, Instant};

use leasehold::{LeaseGuard, LeaseSupervisor, ReportId};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use support::figure::Figures;
use support::fleet::{acquire_all, is_held, provision, seconds, supervisor};
use support::samples::Samples;
use support::server::{Server, load};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const FIGURES: Figures = Figures { store: "soak", engine: Some("postgres") };

/// `LEASEHOLD_SOAK_LEASES` says otherwise.
const LEASES: usize = 10_000;

/// How many tasks hand over, each its own part of the leases, one after another.
const HANDS: usize = 4;

/// So that the machine is busy with renewals too.
const PAUSE: Duration = Duration::from_millis(20);

/// What a task has done and seen.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    publications: u64,
    releases: u64,
    lost: u64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let Some(server) = Server::start().await else { return };
    let lasts = seconds("LEASEHOLD_SOAK_SECONDS", 600);
    let count = std::env::var("LEASEHOLD_SOAK_LEASES").map_or(LEASES, |text| text.parse().expect("a number"));
    let reports = provision(&server, "soak", count).await;
    let services = [supervisor(server.store()), supervisor(server.store())];
    let guards = acquire_all(&services[0], reports).await;
    println!("{count} leases are held; load {}", load());

    let updates = updates(&server).await;
    let mut parts: Vec<Vec<Option<LeaseGuard>>> = (0..HANDS).map(|_| Vec::new()).collect();
    for (index, guard) in guards.into_iter().enumerate() {
        parts[index % HANDS].push(Some(guard));
    }
    let until = Instant::now() + lasts;
    // What is allocated tells a leak from memory that the allocator keeps in pieces.
    tokio::spawn(async move {
        let mut pause = tokio::time::interval(lasts / 10);
        while Instant::now() < until {
            pause.tick().await;
            println!("{} KiB allocated, {:.0} KiB resident", allocated() >> 10, resident_kib());
        }
    });
    let hands = parts.into_iter().map(|part| tokio::spawn(hand_over(services.clone(), part, until)));
    let hands: Vec<_> = hands.collect();
    let growth = rss_growth(until, lasts).await;
    let mut seen = Seen::default();
    for hand in hands {
        let one = hand.await.expect("no panic");
        seen.publications += one.publications;
        seen.releases += one.releases;
        seen.lost += one.lost;
    }
    println!("{seen:?} in {lasts:?}; load {}", load());
    FIGURES.print("false_losses", seen.lost as f64, "count");
    FIGURES.print("rss_growth", growth, "%");
    // Sessions tell the server's statistics within a second.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let (all, in_place) = self::updates(&server).await;
    FIGURES.print("hot_share", 100.0 * (in_place - updates.1) as f64 / (all - updates.0) as f64, "%");
    FIGURES.print("handovers", (seen.publications + seen.releases) as f64, "count");
    let sql = format!("SELECT count(*) FROM {}.report_ledger WHERE operation_id IS NOT NULL", server.database.schema);
    assert_eq!(server.number(&sql).await, seen.publications as i64, "each publication once in the ledger");
}

/// Ends one lease after another, three of four times by a publication, and the other service takes it. A lease that was lost, by
/// whatever, is counted when it is looked at; all are, at the latest in the end.
async fn hand_over(services: [LeaseSupervisor; 2], mut part: Vec<Option<LeaseGuard>>, until: Instant) -> Seen {
    let mut seen = Seen::default();
    let mut turns = vec![0; part.len()];
    for turn in 0_usize.. {
        if Instant::now() >= until {
            break;
        }
        // A step that has no divisor in common with the number of leases comes by all of them.
        let index = turn * 7_919 % part.len();
        let guard = part[index].take().expect("every lease has its guard");
        let report: ReportId = guard.lease().fence().report;
        if !is_held(&guard) {
            println!("lost: {:?}", guard.status());
            seen.lost += 1;
            drop(guard);
        } else if turn % 4 == 3 {
            guard.release().await;
            seen.releases += 1;
        } else {
            match guard.publish("x".repeat(100 + turn % 4_000)).await {
                Ok(_) => seen.publications += 1,
                Err(error) => {
                    println!("not published: {error:?}");
                    seen.lost += 1;
                }
            }
        }
        turns[index] += 1;
        let next = services[turns[index] % 2].acquire_wait(report, None).await;
        part[index] = Some(next.expect("it was let go").acquired().expect("a lease"));
        tokio::time::sleep(PAUSE).await;
    }
    for guard in part.iter().flatten().filter(|guard| !is_held(guard)) {
        println!("lost: {:?}", guard.status());
        seen.lost += 1;
    }
    seen
}

/// Updates of rows that are renewed, and how many of them touched no index.
async fn updates(server: &Server) -> (i64, i64) {
    let of = |column: &str| {
        format!(
            "SELECT {column} FROM pg_stat_user_tables WHERE schemaname = '{}' AND relname = 'report_publication'",
            server.database.schema
        )
    };
    (server.number(&of("n_tup_upd")).await, server.number(&of("n_tup_hot_upd")).await)
}

/// By how many per cent this process takes more memory in the last tenth of the time than after a fifth of it, by medians.
async fn rss_growth(until: Instant, lasts: Duration) -> f64 {
    let mut all = Vec::new();
    while Instant::now() < until {
        all.push(resident_kib());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let tenth = (all.len() / 10).max(1);
    let median = |part: &[f64]| {
        let mut samples = Samples::default();
        part.iter().for_each(|&sample| samples.push(sample));
        samples.median()
    };
    let early = median(&all[2 * tenth..(3 * tenth).min(all.len())]);
    let late = median(&all[all.len() - tenth..]);
    println!("resident after a fifth of {lasts:?}: {early:.0} KiB; at the end: {late:.0} KiB; {} samples", all.len());
    100.0 * (late - early) / early
}

fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells how much memory a process has");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its resident memory");
    line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
}
