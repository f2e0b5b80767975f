//! What supervision costs per poll: instructions over the bare build, beside three usual ways to stop one, and allocations.
//!
//! Instructions are counted by callgrind, which gungraun runs; they do not depend on the load of the machine.

mod support {
    pub(crate) mod figure;
    pub(crate) mod instructions;
    pub(crate) mod polling;
    pub(crate) mod store;
}

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use support::figure::figure;
use support::{instructions, polling};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    if instructions::is_for_gungraun() {
        return instructions::for_gungraun();
    }
    let mut supervised = polling::supervised();
    let region = Region::new(ALLOCATOR);
    supervised.poll(polling::POLLS);
    let allocations = region.change().allocations;
    drop(supervised);
    figure("poll.supervised.allocations", allocations as f64 / polling::POLLS as f64, "per poll");

    let Some(counted) = instructions::count() else { return };
    let bare = counted["bare"];
    for name in ["supervised", "run_until_cancelled", "select_biased", "abortable"] {
        let over = (counted[name] - bare) / polling::POLLS as f64;
        figure(&format!("poll.{name}.instructions_over_bare"), over, "instructions/poll");
    }
}
