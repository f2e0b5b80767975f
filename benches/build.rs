//! By how much a lease slows down the build that runs under it, in CPU time.
//!
//! A guard on the SQLite store renews while slices of the build run in turns: one bare, one supervised. Two things are added up.
//! What supervision costs on the build's own thread is the difference of the two kinds of slices, in medians. What renewals cost
//! is all that the process spent on other threads meanwhile.

mod support {
    pub(crate) mod builds;
    pub(crate) mod figure;
    pub(crate) mod place;
    pub(crate) mod samples;
}

use std::time::{Duration, Instant};

use leasehold::{Acquisition, LeaseGuard, LeasePolicy, LeaseSupervisor, ReportId};
use support::builds::{Builds, Kind, consume};
use support::figure::figure;
use support::place::Place;
use support::samples::Samples;

/// Each cadence, and for how long a guard is held: at least for two renewals.
const CADENCES: [(&str, Duration, Duration); 3] = [
    ("10s", Duration::from_secs(10), Duration::from_secs(21)),
    ("1s", Duration::from_secs(1), Duration::from_secs(10)),
    ("100ms", Duration::from_millis(100), Duration::from_secs(6)),
];

/// On one thread, whose CPU time is the build's.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    // `cargo bench --bench build -- polls cadence_1s` measures that cell alone.
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let place = Place::new();
    let store = place.open().await;
    let builds = Builds::new().await;
    for (kind, name) in Kind::ALL {
        for (cadence_name, cadence, held) in CADENCES {
            let figure_name = format!("build.slowdown.{name}.cadence_{cadence_name}");
            if !asked.iter().all(|part| figure_name.contains(part.as_str())) {
                continue;
            }
            let policy = LeasePolicy::builder(Duration::from_secs(60)).cadence(cadence).build().expect("a policy");
            let supervisor = LeaseSupervisor::new(store.clone(), policy).expect("a thread");
            let report = ReportId::from_name(&format!("{name}/{cadence_name}"));
            let acquisition = supervisor.acquire_or_provision(report, None).await.expect("acquire");
            let Acquisition::Acquired(guard) = acquisition else { panic!("nothing is fresh here") };
            let slowdown = slowdown(&builds, kind, &guard, held).await;
            figure(&figure_name, slowdown, "% CPU over bare");
        }
    }
}

/// In per cent of the bare build's CPU time.
async fn slowdown(builds: &Builds, kind: Kind, guard: &LeaseGuard, held: Duration) -> f64 {
    let (mut bare, mut supervised) = (Samples::default(), Samples::default());
    let started = Instant::now();
    let (process, thread) = (cpu(Of::Process), cpu(Of::Thread));
    let mut pair = 0;
    while started.elapsed() < held {
        // In turns of the order too.
        if pair % 2 == 0 {
            bare.push(slice(builds, kind).await);
            supervised.push(supervised_slice(builds, kind, guard).await);
        } else {
            supervised.push(supervised_slice(builds, kind, guard).await);
            bare.push(slice(builds, kind).await);
        }
        pair += 1;
    }
    let on_this = cpu(Of::Thread) - thread;
    let on_others = cpu(Of::Process) - process - on_this;
    let (bare, supervised) = (bare.median(), supervised.median());
    let (by_supervision, by_renewal) = (100.0 * (supervised / bare - 1.0), 100.0 * on_others / on_this);
    println!(
        "{kind:?}: {by_supervision:.3} % by supervision (medians of {pair} slices of {:.2} ms), {by_renewal:.3} % by {} renewals",
        1e3 * bare,
        guard.lease().renewals(),
    );
    by_supervision + by_renewal
}

async fn slice(builds: &Builds, kind: Kind) -> f64 {
    let before = cpu(Of::Thread);
    builds.slice(kind).await;
    cpu(Of::Thread) - before
}

async fn supervised_slice(builds: &Builds, kind: Kind, guard: &LeaseGuard) -> f64 {
    let before = cpu(Of::Thread);
    match kind {
        Kind::Stream => consume(guard.supervise_stream(builds.stream())).await,
        _ => guard.supervise(builds.slice(kind)).await.expect("the lease is held"),
    }
    cpu(Of::Thread) - before
}

/// Whose CPU time.
#[derive(Debug, Clone, Copy)]
enum Of {
    Process,
    Thread,
}

/// In seconds.
#[cfg(unix)]
fn cpu(of: Of) -> f64 {
    use rustix::time::{ClockId, clock_gettime};

    let time = clock_gettime(match of {
        Of::Process => ClockId::ProcessCPUTime,
        Of::Thread => ClockId::ThreadCPUTime,
    });
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(not(unix))]
fn cpu(of: Of) -> f64 {
    panic!("THE SLOWDOWN OF BUILDS WAS NOT MEASURED: this bench reads the CPU time of a {of:?} on Unix only")
}
