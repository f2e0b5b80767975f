//! Stops a worker at a point where it holds no lock.
//!
//! SQLite has one write lock for the whole file. A process that is stopped inside its tiny write section would hold up
//! everybody else, B included, and nothing could be shown but that. A server ends a call by itself, whoever sent it, unless
//! the client keeps a transaction open.

use std::time::{Duration, Instant};

use leasehold::StoreErrorKind;
use rustix::process::Signal;

use crate::event::{Event, Who};
use crate::failure::Failure;
use crate::place::Place;
use crate::plain_lease::PlainLease;
use crate::stage::{Actor, Stage};

/// How long the lock may take to be had; it takes a few milliseconds at most if nobody holds it.
const PROOF: Duration = Duration::from_millis(500);

/// How often a worker may be caught inside a store call before something must be wrong.
const ATTEMPTS: usize = 20;

/// The lock that a writer needs of the report that leasehold keeps, or of the plain one.
pub(crate) enum Lock<'a> {
    Report(&'a Place),
    Plain(PlainLease, &'a Place),
}

impl Lock<'_> {
    /// Takes it and lets it go; answers whether it was had in time.
    async fn take(&mut self) -> Result<bool, Failure> {
        match self {
            Self::Report(place) => match place.store.take_lock(place.report, PROOF).await {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == StoreErrorKind::Unavailable => Ok(false),
                Err(error) => Err(error.into()),
            },
            Self::Plain(lease, _) => match tokio::time::timeout(PROOF, lease.take_lock()).await {
                Ok(taken) => taken.map(|()| true),
                Err(_) => Ok(false),
            },
        }
    }

    fn name(&self) -> &'static str {
        let (Self::Report(place) | Self::Plain(_, place)) = self;
        place.store.lock_name()
    }
}

/// Stops the worker right after one of its renewals, and proves by having it that it does not hold the lock.
pub(crate) async fn stop(stage: &mut Stage, actor: &Actor, mut lock: Lock<'_>) -> Result<(), Failure> {
    for _ in 0..ATTEMPTS {
        stage.next(actor.who, "a renewal", |event| matches!(event, Event::Renewed { .. })).await?;
        actor.stop().await?;
        let asked = Instant::now();
        if lock.take().await? {
            let micros = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
            stage.act(Event::Stopped { lock: lock.name().to_owned(), lock_had_in_micros: micros });
            return Ok(());
        }
        actor.signal(Signal::CONT)?;
    }
    let caught = format!("{} was inside a store call each of {ATTEMPTS} times that it was stopped", Who::A);
    Err(Failure::Unexpected(caught))
}
