//! One store with planned faults, one report, and supervisors whose time is the paused runtime's.
#![allow(dead_code, unreachable_pub)] // Shared by test binaries that each use a part of it.

use std::time::Duration;

use leasehold::store::{Budget, Store};
use leasehold::testing::{FaultyStore, MemoryStore, TokioClock};
use leasehold::{Acquisition, Clock, LeaseGuard, LeasePolicy, LeasePolicyBuilder, LeaseSupervisor, ReportId};
use tokio::runtime::Handle;

pub type TestStore = FaultyStore<MemoryStore>;

pub const TTL: Duration = Duration::from_secs(30);
/// TTL less the default margin.
pub const DEADLINE: Duration = Duration::from_secs(27);

pub struct Scene {
    pub store: TestStore,
    pub report: ReportId,
    pub supervisor: LeaseSupervisor,
}

/// A TTL of 30 s, a cadence of 10 s, a margin of 3 s, attempts of 5 s.
pub fn policy() -> LeasePolicyBuilder {
    LeasePolicy::builder(TTL)
}

/// A provisioned report, and a supervisor that renews on this, paused, runtime.
pub async fn scene() -> Scene {
    scene_with(policy()).await
}

pub async fn scene_with(policy: LeasePolicyBuilder) -> Scene {
    scene_with_clock(policy, TokioClock::start()).await
}

pub async fn scene_with_clock(policy: LeasePolicyBuilder, clock: impl Clock) -> Scene {
    let store = FaultyStore::new(MemoryStore::new());
    let report = ReportId::from_name("report");
    store.provision(report, budget()).await.unwrap();
    let supervisor = LeaseSupervisor::builder(store.clone(), policy.build().unwrap())
        .clock(clock)
        .renew_on(Handle::current())
        .start()
        .unwrap();
    Scene { store, report, supervisor }
}

impl Scene {
    /// Another worker with a policy of its own on the same database.
    pub fn rival(&self) -> LeaseSupervisor {
        self.rival_with(policy())
    }

    pub fn rival_with(&self, policy: LeasePolicyBuilder) -> LeaseSupervisor {
        LeaseSupervisor::builder(self.store.inner().clone(), policy.build().unwrap())
            .clock(TokioClock::start())
            .renew_on(Handle::current())
            .start()
            .unwrap()
    }

    pub async fn acquire(&self) -> LeaseGuard {
        acquire(&self.supervisor, self.report).await
    }

    /// The visible payload and its generation.
    pub async fn published(&self) -> Option<(String, i64)> {
        use leasehold::answer::ReadAnswer;
        match self.store.inner().read(self.report, None, budget()).await.unwrap() {
            ReadAnswer::Found { visible, payload } => Some((payload, visible.version.generation.get())),
            _ => None,
        }
    }

    /// Whether nobody holds the report.
    pub async fn is_free(&self) -> bool {
        self.store.inner().inspect(self.report, budget()).await.unwrap().unwrap().lease.is_none()
    }

    /// Waits, in paused time, until nobody holds the report; at most for this long.
    pub async fn free_within(&self, limit: Duration) {
        let waiting = async {
            while !self.is_free().await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(limit, waiting).await.expect("the report should be free by now");
    }
}

pub async fn acquire(supervisor: &LeaseSupervisor, report: ReportId) -> LeaseGuard {
    match supervisor.acquire(report, None).await.unwrap() {
        Acquisition::Acquired(guard) => guard,
        other => panic!("acquired, not {other:?}"),
    }
}

/// Waits, in paused time, until the supervisor has no task left.
pub async fn no_tasks_left(supervisor: &LeaseSupervisor) {
    let waiting = async {
        while supervisor.tasks() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(120), waiting).await;
    assert!(waited.is_ok(), "{} tasks are left", supervisor.tasks());
}

pub fn budget() -> Budget {
    Budget::within(Duration::from_secs(10))
}

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
