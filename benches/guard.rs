//! What one idle, held guard costs: the guard itself, its state and token, its renewal task, the engine's entry for it.
//!
//! Heap bytes as they were asked for, plus the guard's own size; the store keeps nothing.

mod support {
    pub(crate) mod figure;
    pub(crate) mod store;
}

use std::alloc::System;
use std::time::Duration;

use leasehold::{Acquisition, LeaseGuard, LeasePolicy, LeaseSupervisor, ReportId};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use support::figure::figure;
use support::store::{Renewals, ScriptedStore};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const GUARDS: usize = 1_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // No renewal is due while this runs.
    let policy = LeasePolicy::builder(Duration::from_secs(3_600)).build().expect("a policy");
    let supervisor = LeaseSupervisor::new(ScriptedStore::new(Renewals::Confirmed), policy).expect("a thread");
    // The first guard pays for what all share.
    let first = acquire(&supervisor, 0).await;
    settle().await;

    let region = Region::new(ALLOCATOR);
    let mut guards = Vec::with_capacity(GUARDS);
    for number in 1..=GUARDS {
        guards.push(acquire(&supervisor, number).await);
    }
    settle().await;
    let change = region.change();
    drop((first, guards));

    let per_guard = |total: usize, freed: usize| (total as f64 - freed as f64) / GUARDS as f64;
    figure("guard.idle.bytes", per_guard(change.bytes_allocated, change.bytes_deallocated).round(), "bytes");
    figure("guard.idle.allocations", per_guard(change.allocations, change.deallocations).round(), "count");
}

async fn acquire(supervisor: &LeaseSupervisor, number: usize) -> LeaseGuard {
    match supervisor.acquire(ReportId::from_name(&number.to_string()), None).await.expect("acquire") {
        Acquisition::Acquired(guard) => guard,
        other => panic!("acquired, not {other:?}"),
    }
}

/// Until every renewal task waits for its turn.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}
