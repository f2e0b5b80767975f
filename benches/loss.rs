//! How long after a loss the build is dropped: from the local deadline, and from the store's answer that refuses a renewal.
//!
//! In real time, with the engine on its own thread and the builds in a runtime of the caller.

mod support {
    pub(crate) mod figure;
    pub(crate) mod samples;
    pub(crate) mod store;
}

use std::future::pending;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use leasehold::{Acquisition, LeasePolicy, LeaseSupervisor, LossReason, ReportId};
use support::figure::figure;
use support::samples::Samples;
use support::store::{Renewals, ScriptedStore};

/// How many leases are lost at once, and how often.
const AT_ONCE: usize = 10;
const ROUNDS: usize = 30;

/// The shortest lease a policy allows: it is lost within a tenth of a second.
const TTL: Duration = Duration::from_millis(100);

/// A build that never ends and says when it was dropped.
struct Dropped(Sender<Instant>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(Instant::now());
    }
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    for (event, renewals) in [("deadline", Renewals::Silent), ("refusal", Renewals::Refused)] {
        let samples = runtime.block_on(lose_many(renewals));
        for (name, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            figure(&format!("loss.latency.{event}.{name}"), samples.quantile(share), "ms");
        }
    }
}

async fn lose_many(renewals: Renewals) -> Samples {
    let store = ScriptedStore::new(renewals);
    let policy = LeasePolicy::builder(TTL).build().expect("a policy");
    let supervisor = LeaseSupervisor::new(store.clone(), policy).expect("a thread");
    let mut samples = Samples::default();
    for round in 0..ROUNDS {
        let builds = (0..AT_ONCE).map(|number| {
            let report = ReportId::from_name(&format!("{round}/{number}"));
            tokio::spawn(lose(store.clone(), supervisor.clone(), report))
        });
        for build in builds.collect::<Vec<_>>() {
            samples.push(build.await.expect("a build").as_secs_f64() * 1e3);
        }
    }
    samples
}

/// Loses one lease. How long after the event its build was dropped.
async fn lose(store: ScriptedStore, supervisor: LeaseSupervisor, report: ReportId) -> Duration {
    let Acquisition::Acquired(guard) = supervisor.acquire(report, None).await.expect("acquire") else {
        panic!("nothing is fresh here");
    };
    let deadline = Instant::now() + guard.lease().remaining();
    let (sender, dropped) = channel();
    let build = Dropped(sender);
    let supervised = guard.supervise(async move {
        let _build = build;
        pending::<()>().await;
    });
    let loss = supervised.await.expect_err("the lease is lost");
    let dropped = dropped.recv().expect("the build was dropped");
    let event = match loss.reason() {
        LossReason::DeadlinePassed => deadline,
        LossReason::Superseded { .. } => store.refused_at(guard.lease().fence().owner).expect("it was refused"),
        other => panic!("lost by its deadline or a refusal, not {other}"),
    };
    dropped.saturating_duration_since(event)
}
