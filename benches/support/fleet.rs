//! Many leases of one service, acquired through a real supervisor.

use std::time::Duration;

use futures::StreamExt;
use leasehold::store::Store;
use leasehold::store::postgres::Type;
use leasehold::{Acquisition, LeaseGuard, LeasePolicy, LeaseStatus, LeaseSupervisor, ReportId};
use uuid::Uuid;

use super::server::Server;

pub(crate) const TTL: Duration = Duration::from_secs(10);

/// How many acquisitions are under way at once.
const AT_ONCE: usize = 32;

/// Renews every third of the TTL.
pub(crate) fn supervisor(store: impl Store) -> LeaseSupervisor {
    let policy = LeasePolicy::builder(TTL).cadence(TTL / 3).build().expect("a policy");
    LeaseSupervisor::new(store, policy).expect("a thread")
}

/// The reports of these names, each with a row: by one statement, because there are ten thousand.
pub(crate) async fn provision(server: &Server, name: &str, count: usize) -> Vec<ReportId> {
    let reports: Vec<ReportId> = (0..count).map(|number| ReportId::from_name(&format!("{name} {number}"))).collect();
    let ids: Vec<Uuid> = reports.iter().map(|report| *report.as_uuid()).collect();
    let sql = "INSERT INTO {s}.report_publication (report_id, recovery_epoch) SELECT unnest($1), 0";
    server.database.change(sql, &[(&ids, Type::UUID_ARRAY)]).await;
    reports
}

pub(crate) async fn acquire_all(supervisor: &LeaseSupervisor, reports: Vec<ReportId>) -> Vec<LeaseGuard> {
    let mut guards = Vec::with_capacity(reports.len());
    let mut acquired =
        futures::stream::iter(reports).map(|report| acquire(supervisor, report)).buffer_unordered(AT_ONCE);
    while let Some(guard) = acquired.next().await {
        guards.push(guard);
    }
    guards
}

pub(crate) async fn acquire(supervisor: &LeaseSupervisor, report: ReportId) -> LeaseGuard {
    match supervisor.acquire(report, None).await.expect("acquire") {
        Acquisition::Acquired(guard) => guard,
        other => panic!("acquired, not {other:?}"),
    }
}

pub(crate) fn is_held(guard: &LeaseGuard) -> bool {
    matches!(guard.status(), LeaseStatus::Held { .. })
}

/// This many seconds, unless the variable says how many.
pub(crate) fn seconds(variable: &str, otherwise: u64) -> Duration {
    let said = std::env::var(variable).ok();
    Duration::from_secs(said.map_or(otherwise, |text| text.parse().expect("a number of seconds")))
}
