//! Stops a worker at a point where it holds no lock of the file.
//!
//! SQLite has one write lock for the whole file. A process that is stopped inside its tiny write section would hold up
//! everybody else, B included, and nothing could be shown but that.

use std::time::{Duration, Instant};

use leasehold::StoreErrorKind;
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::{Budget, Store};
use rustix::process::Signal;

use crate::event::{Event, Who};
use crate::failure::Failure;
use crate::stage::{Actor, Stage};
use crate::worker::report;

/// How long the lock may take to be had; it takes far below a millisecond if nobody holds it.
const PROOF: Duration = Duration::from_millis(250);

/// How often a worker may be caught inside a store call before something must be wrong.
const ATTEMPTS: usize = 20;

/// Stops the worker right after one of its renewals, and proves with a write of the director's own that it holds no lock.
pub(crate) async fn stop(stage: &mut Stage, store: &SqliteStore, actor: &Actor) -> Result<(), Failure> {
    for _ in 0..ATTEMPTS {
        stage.next(actor.who, "a renewal", |event| matches!(event, Event::Renewed { .. })).await?;
        actor.stop().await?;
        let asked = Instant::now();
        // Takes the write lock, also where the row exists already.
        match store.provision(report(), Budget::within(PROOF)).await {
            Ok(_) => {
                let micros = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
                stage.act(Event::Stopped { lock_had_in_micros: micros });
                return Ok(());
            }
            Err(error) if error.kind() == StoreErrorKind::Unavailable => actor.signal(Signal::CONT)?,
            Err(error) => return Err(error.into()),
        }
    }
    let caught = format!("{} was inside a store call each of {ATTEMPTS} times that it was stopped", Who::A);
    Err(Failure::Unexpected(caught))
}
