//! A worker: a process of its own that tells what happens to it as JSON lines on its standard output.

mod fenced;
mod gate;
mod plain;
mod unanswered;

use std::time::Duration;

use leasehold::{Holder, LeasePolicy, ReportId};

pub(crate) use self::unanswered::read_ticket;
use crate::arguments::{Task, Worker};
use crate::event::Who;
use crate::failure::Failure;
use gate::Gate;

/// How long the end of a worker may wait for its releases.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// How fine a build's steps are.
const STEP: Duration = Duration::from_millis(10);

/// The report that this worker is about.
fn report(worker: &Worker) -> ReportId {
    ReportId::from_name(&worker.report)
}

/// What a worker builds.
pub(crate) fn payload_of(who: Who) -> String {
    format!("the report as {who} built it")
}

/// Does what the worker was started for.
pub(crate) async fn work(worker: &Worker) -> Result<(), Failure> {
    let gate = Gate::watch();
    match worker.task {
        Task::Plain => plain::work(worker, &gate).await,
        Task::Resolve => unanswered::resolve(worker).await,
        Task::Fenced | Task::Unanswered => {
            let store = worker.database.named(None)?.open().await?;
            let supervisor = store.supervisor(policy(worker)?)?;
            let worked = if worker.task == Task::Fenced {
                fenced::work(worker, &supervisor, &store, gate).await
            } else {
                unanswered::work(worker, &supervisor, &gate).await
            };
            // What is still under way is the release of a lost lease; the process must not end before it.
            let _ = supervisor.shutdown(CLEAN_UP).await;
            worked
        }
    }
}

fn policy(worker: &Worker) -> Result<LeasePolicy, Failure> {
    let label = format!("worker {} (pid {})", worker.who, std::process::id());
    let holder = Holder::new(label).map_err(|error| Failure::Unexpected(error.to_string()))?;
    Ok(LeasePolicy::builder(worker.ttl).cadence(cadence(worker.ttl)).holder(holder).build()?)
}

/// How often both kinds of lease are renewed.
fn cadence(ttl: Duration) -> Duration {
    ttl * 3 / 10
}
