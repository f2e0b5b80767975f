//! A worker that never hears whether its publication was accepted, and another process that asks.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use futures::FutureExt;
use leasehold::{Epoch, Fence, Generation, LeaseSupervisor, OperationId, Outcome, Owner, ReportId, Ticket};
use serde::{Deserialize, Serialize};

use super::fenced::acquire;
use super::gate::Gate;
use super::{CLEAN_UP, payload_of, policy};
use crate::arguments::Worker;
use crate::event::{Event, tell};
use crate::failure::Failure;

/// Writes the ticket, then sends the publication and drops the answer on its way. The director kills it.
pub(super) async fn work(worker: &Worker, supervisor: &LeaseSupervisor, gate: &Gate) -> Result<(), Failure> {
    let guard = acquire(supervisor, worker).await?;
    let mut publication = guard.publication(payload_of(worker.who));
    let ticket = publication.ticket();
    write_ticket(ticket_path(worker)?, &ticket)?;
    tell(worker.who, Event::TicketWritten { operation: ticket.operation.to_string() });
    // Nothing else is to be done on this thread meanwhile.
    gate.pass();
    // Polled once, the request is sent; dropped, nobody receives its answer.
    let unanswered = publication.send().now_or_never().is_none();
    if !unanswered {
        return Err(Failure::Unexpected("the answer was there before it could be lost".to_owned()));
    }
    tell(worker.who, Event::Sent);
    // The guard stays alive in here, as in a process that works on: only the kill ends it.
    std::future::pending::<()>().await;
    drop(publication);
    Ok(())
}

/// Asks what the ticket came to, as a process that knows nothing else.
pub(super) async fn resolve(worker: &Worker) -> Result<(), Failure> {
    let ticket = read_ticket(ticket_path(worker)?)?;
    let supervisor = worker.database.named(None)?.open().await?.supervisor(policy(worker)?)?;
    let outcome = supervisor.resolve(ticket).await?;
    let receipt = match outcome {
        Outcome::Published(receipt) => Some(receipt),
        _ => None,
    };
    tell(
        worker.who,
        Event::Resolved {
            outcome: crate::event::name_of(outcome),
            generation: receipt.map(|receipt| receipt.generation.get()),
            operation: receipt.map(|receipt| receipt.operation.to_string()),
        },
    );
    let _ = supervisor.shutdown(CLEAN_UP).await;
    Ok(())
}

fn ticket_path(worker: &Worker) -> Result<&Path, Failure> {
    worker.ticket.as_deref().ok_or_else(|| Failure::Unexpected("no path for the ticket was given".to_owned()))
}

/// A ticket on the disk. With leasehold's feature `serde` a [`Ticket`] can be written as it is.
#[derive(Debug, Serialize, Deserialize)]
struct WrittenTicket {
    report: String,
    owner: String,
    generation: i64,
    epoch: i64,
    operation: String,
}

/// Durable *before* anything is sent, or it is worth nothing.
fn write_ticket(path: &Path, ticket: &Ticket) -> Result<(), Failure> {
    let Ticket { fence, operation, .. } = ticket;
    let written = WrittenTicket {
        report: fence.report.to_string(),
        owner: fence.owner.to_string(),
        generation: fence.generation.get(),
        epoch: fence.epoch.get(),
        operation: operation.to_string(),
    };
    let mut file = File::create_new(path)?;
    serde_json::to_writer(&mut file, &written)?;
    file.flush()?;
    file.sync_all()?;
    Ok(())
}

/// The ticket that a worker wrote before it was killed.
pub(crate) fn read_ticket(path: &Path) -> Result<Ticket, Failure> {
    let written: WrittenTicket = serde_json::from_reader(BufReader::new(File::open(path)?))?;
    let no_uuid = |_| Failure::Unexpected(format!("{} is no ticket", path.display()));
    Ok(Ticket {
        fence: Fence {
            report: written.report.parse::<ReportId>().map_err(no_uuid)?,
            owner: written.owner.parse::<Owner>().map_err(no_uuid)?,
            generation: Generation::new(written.generation),
            epoch: Epoch::new(written.epoch),
        },
        operation: written.operation.parse::<OperationId>().map_err(no_uuid)?,
        next_owner: None,
    })
}
