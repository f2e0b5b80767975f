//! A worker with leasehold: acquire, build under the lease, publish through the fence.

use std::time::Instant;

use leasehold::answer::PublishAnswer;
use leasehold::store::{Budget, Payload, PublishRequest};
use leasehold::{
    AcquireError, Acquisition, Lease, LeaseGuard, LeaseStatus, LeaseSupervisor, Loss, Publication, StatusWatch,
};

use super::gate::Gate;
use super::{CLEAN_UP, STEP, payload_of, report};
use crate::arguments::Worker;
use crate::database::OpenStore;
use crate::event::{At, Event, Who, millis, name_of, tell};
use crate::failure::Failure;

pub(super) async fn work(
    worker: &Worker,
    supervisor: &LeaseSupervisor,
    store: &OpenStore,
    gate: Gate,
) -> Result<(), Failure> {
    let who = worker.who;
    let guard = acquire(supervisor, worker).await?;
    let watching = tokio::spawn(tell_changes(guard.watch(), guard.lease(), who));
    let duration = worker.build;
    let payload = guard.supervise_blocking(move |lease| build(&lease, who, duration, &gate)).await??;

    let mut publication = guard.publication(payload);
    let sent = publication.send().await;
    // The lease is over now, one way or the other, and the watch has told why.
    let _ = watching.await;
    match sent {
        Ok(receipt) => tell(who, Event::Published { generation: Some(receipt.generation.get()) }),
        Err(error) => {
            tell(who, Event::Withheld { said: error.to_string() });
            send_regardless(store, &publication, who).await?;
        }
    }
    Ok(())
}

/// Takes the lease, and waits for it if somebody else has it.
pub(super) async fn acquire(supervisor: &LeaseSupervisor, worker: &Worker) -> Result<LeaseGuard, Failure> {
    let (report, who) = (report(worker), worker.who);
    let acquisition = match supervisor.acquire_or_provision(report, None).await {
        Err(AcquireError::Busy(busy)) => {
            let remaining_millis = millis(busy.remaining);
            tell(who, Event::Waiting { holder: busy.holder.to_string(), remaining_millis });
            supervisor.acquire_wait(report, None).await?
        }
        answer => answer?,
    };
    let Acquisition::Acquired(guard) = acquisition else {
        return Err(Failure::Unexpected(format!("no revision was wanted, but: {acquisition:?}")));
    };
    let lease = guard.lease();
    let generation = Some(lease.fence().generation.get());
    tell(who, Event::Acquired { generation, deadline: At::now().plus(lease.remaining()) });
    Ok(guard)
}

/// The build: it looks at its lease again and again, and once more right before it hands over its result.
fn build(lease: &Lease, who: Who, duration: std::time::Duration, gate: &Gate) -> Result<String, Loss> {
    let started = Instant::now();
    while started.elapsed() < duration {
        lease.checkpoint()?;
        std::thread::sleep(STEP);
    }
    lease.checkpoint()?;
    tell(who, Event::Checked { remaining_millis: millis(lease.remaining()) });
    // Here A is stopped. No look at the lease can close the gap between the look and the write.
    gate.pass();
    Ok(payload_of(who))
}

/// Tells every renewal, and the loss.
async fn tell_changes(mut watch: StatusWatch, lease: Lease, who: Who) {
    let mut told = lease.renewals();
    loop {
        match watch.changed().await {
            LeaseStatus::Held { remaining } => {
                if lease.renewals() > told {
                    told = lease.renewals();
                    tell(who, Event::Renewed { deadline: At::now().plus(remaining) });
                }
            }
            LeaseStatus::Lost(loss) if loss.reason().is_own_doing() => return,
            LeaseStatus::Lost(loss) => return tell(who, lost(&loss)),
            _ => return,
        }
    }
}

fn lost(loss: &Loss) -> Event {
    Event::Lost {
        reason: name_of(loss.reason()),
        said: loss.reason().to_string(),
        since_confirmed_millis: millis(loss.since_confirmed()),
        past_deadline_millis: millis(loss.past_deadline()),
    }
}

/// What a request does that was delayed on its way, beyond the reach of any guard: the very publication, with its original
/// fence, sent to the database.
async fn send_regardless(store: &OpenStore, publication: &Publication, who: Who) -> Result<(), Failure> {
    let ticket = publication.ticket();
    let payload = Payload::new(publication.payload(), usize::MAX)?;
    let request = PublishRequest { fence: ticket.fence, operation: ticket.operation, payload, revision: None };
    match store.publish(request, Budget::within(CLEAN_UP)).await? {
        PublishAnswer::Refused(refusal) => {
            tell(who, Event::Refused { reason: name_of(refusal), said: refusal.to_string() });
        }
        PublishAnswer::Published(published) | PublishAnswer::AlreadyPublished(published) => {
            tell(who, Event::Published { generation: Some(published.receipt.generation.get()) });
        }
        other => return Err(Failure::Unexpected(format!("the late request was answered {other:?}"))),
    }
    Ok(())
}
