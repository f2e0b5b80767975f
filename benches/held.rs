//! What it costs to hold leases: CPU time of the client and of the server, statements, memory, and whether any is lost.
//!
//! Ten seconds of TTL, renewed every third of it, for a minute each (`LEASEHOLD_HELD_SECONDS` says otherwise), by a real supervisor
//! on a durable server of the bench's own; and once more with one statement a renewal instead of one for many.

mod support {
    pub(crate) mod figure;
    pub(crate) mod fleet;
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

use leasehold::StoreErrorKind;
use leasehold::testing::{Fault, FaultyStore, Operation};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use support::figure::Figures;
use support::fleet::{TTL, acquire_all, is_held, provision, seconds, supervisor};
use support::server::{Server, load};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const FIGURES: Figures = Figures { store: "held", engine: Some("postgres") };

/// How renewals that are due together leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renewals {
    Together,
    Alone,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let Some(server) = Server::start().await else { return };
    let held_for = seconds("LEASEHOLD_HELD_SECONDS", 60);
    // `cargo bench --bench held -- 1000` holds only so many.
    let asked: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    // Beside its counterpart, so that both meet the same load.
    for (count, renewals) in [
        (1, Renewals::Together),
        (100, Renewals::Together),
        (1_000, Renewals::Together),
        (1_000, Renewals::Alone),
        (10_000, Renewals::Together),
    ] {
        if asked.is_empty() || asked.contains(&count) {
            hold(&server, count, renewals, held_for).await;
        }
    }
}

async fn hold(server: &Server, count: usize, renewals: Renewals, held_for: Duration) {
    let name = if renewals == Renewals::Alone { format!("{count}.alone") } else { count.to_string() };
    let reports = provision(server, &name, count).await;
    let store = FaultyStore::new(server.store());
    if renewals == Renewals::Alone {
        // Before it is sent: its leases are then renewed one by one.
        store.plan_always(Operation::RenewMany, Fault::Fail(StoreErrorKind::Invalid));
    }
    let region = Region::new(ALLOCATOR);
    let supervisor = supervisor(store.clone());
    let guards = acquire_all(&supervisor, reports).await;
    // Until those that were acquired together are spread by their jitter, and leave together with what is due when they are.
    tokio::time::sleep(TTL).await;
    let change = region.change();
    let bytes = change.bytes_allocated.saturating_sub(change.bytes_deallocated) as f64;

    let statements = || match renewals {
        Renewals::Together => store.renewals(),
        Renewals::Alone => store.calls(Operation::Renew),
    };
    let (sent, client, on_server, began) = (statements(), client_cpu_seconds(), server.cpu_seconds(), Instant::now());
    tokio::time::sleep(held_for).await;
    let took = began.elapsed().as_secs_f64();
    let (client, on_server) = (client_cpu_seconds() - client, server.cpu_seconds() - on_server);
    let sent = statements() - sent;
    let missed = guards.iter().filter(|guard| !is_held(guard)).count();

    let lease_hours = count as f64 * took / 3_600.0;
    println!("{count} leases, {renewals:?}, for {took:.0} s; load {}", load());
    FIGURES.print(&format!("{name}.client_cpu_seconds_per_lease_hour"), client / lease_hours, "s");
    FIGURES.print(&format!("{name}.server_cpu_seconds_per_lease_hour"), on_server / lease_hours, "s");
    FIGURES.print(&format!("{name}.statements_per_second"), sent as f64 / took, "1/s");
    FIGURES.print(&format!("{name}.bytes_per_lease"), (bytes / count as f64).round(), "bytes");
    FIGURES.print(&format!("{name}.missed"), missed as f64, "count");
    let began = Instant::now();
    // A guard that is kept would be waited for.
    drop(guards);
    let report = supervisor.shutdown(Duration::from_secs(60)).await;
    println!("let go in {:.2} s: {} not released", began.elapsed().as_secs_f64(), report.not_released.len());
}

/// Of this whole process, which does nothing else.
#[cfg(unix)]
fn client_cpu_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};

    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(not(unix))]
fn client_cpu_seconds() -> f64 {
    panic!("NOTHING WAS MEASURED: this bench reads CPU times on Unix only")
}
