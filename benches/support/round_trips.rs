//! How often the client asks the store, and how many transactions that makes, for each step of a lease's life.

use std::time::Duration;

use leasehold::store::sqlite::SqliteStore;
use leasehold::testing::{FaultyStore, Operation};
use leasehold::{Acquisition, LeaseGuard, LeasePolicy, LeaseSupervisor, ReportId};

use super::figure::figure;
use super::place::Place;

/// Whatever the client may send between an acquisition and its end.
const OPERATIONS: [Operation; 9] = [
    Operation::Provision,
    Operation::Acquire,
    Operation::Renew,
    Operation::RenewMany,
    Operation::Publish,
    Operation::PublishAndAdvance,
    Operation::Close,
    Operation::Release,
    Operation::Begin,
];

/// Counts calls and transactions, whichever are more.
struct Counted {
    place: Place,
    store: FaultyStore<SqliteStore>,
    calls: usize,
    commits: usize,
}

impl Counted {
    fn calls_so_far(&self) -> usize {
        OPERATIONS.iter().map(|&operation| self.store.calls(operation)).sum()
    }

    /// Since it was last asked.
    fn round_trips(&mut self) -> f64 {
        let (calls, commits) = (self.calls_so_far(), self.place.commits());
        let since = (calls - self.calls).max(commits - self.commits);
        (self.calls, self.commits) = (calls, commits);
        since as f64
    }
}

pub(crate) async fn measure() {
    let place = Place::new();
    let store = FaultyStore::new(place.open().await);
    // Renewals are frequent in the third part, and none is due before.
    let policy = |cadence| LeasePolicy::builder(Duration::from_secs(60)).cadence(cadence).build().expect("a policy");
    let calm = LeaseSupervisor::new(store.clone(), policy(Duration::from_secs(20))).expect("a thread");
    let report = ReportId::from_name("report");
    calm.provision(report).await.expect("a row");
    let mut counted = Counted { calls: 0, commits: 0, place, store };
    counted.round_trips();

    let guard = acquire(&calm, report).await;
    figure("sqlite.acquire.round_trips", counted.round_trips(), "count");
    guard.publish("payload").await.expect("published");
    figure("sqlite.publish.round_trips", counted.round_trips(), "count");

    let guard = acquire(&calm, report).await;
    guard.publish("payload").await.expect("published");
    figure("sqlite.cycle.round_trips", counted.round_trips(), "count");

    let guard = acquire(&calm, report).await;
    counted.round_trips();
    guard.release().await;
    figure("sqlite.release.round_trips", counted.round_trips(), "count");

    let busy = LeaseSupervisor::new(counted.store.clone(), policy(Duration::from_millis(200))).expect("a thread");
    let guard = acquire(&busy, report).await;
    counted.round_trips();
    while guard.lease().renewals() < 5 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    figure("sqlite.renew.round_trips", counted.round_trips() / guard.lease().renewals() as f64, "count");
}

async fn acquire(supervisor: &LeaseSupervisor, report: ReportId) -> LeaseGuard {
    match supervisor.acquire(report, None).await.expect("acquire") {
        Acquisition::Acquired(guard) => guard,
        other => panic!("acquired, not {other:?}"),
    }
}
