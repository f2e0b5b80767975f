//! The same worker with a plain lease. It is no straw man: it renews in a task of its own, on a connection of its own, and it
//! looks at its lease right before it writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::task::JoinHandle;

use super::gate::Gate;
use super::{STEP, cadence, payload_of, report};
use crate::arguments::Worker;
use crate::event::{At, Event, millis, tell};
use crate::failure::Failure;
use crate::plain_lease::{PlainLease, Taken};

pub(super) async fn work(worker: &Worker, gate: &Gate) -> Result<(), Failure> {
    let who = worker.who;
    // Both before the lease is had, so that it is not spent on connecting.
    let (mut lease, renewals) = (open(worker).await?, open(worker).await?);
    acquire(&mut lease, worker).await?;
    let renewing = Renewing::start(renewals, worker.clone());
    let started = Instant::now();
    while started.elapsed() < worker.build {
        tokio::time::sleep(STEP).await;
    }
    if let Some(remaining) = lease.remaining().await? {
        tell(who, Event::Checked { remaining_millis: millis(remaining) });
        // Here A is stopped.
        tokio::task::block_in_place(|| gate.pass());
        lease.write(&payload_of(who)).await?;
        tell(who, Event::Published { generation: None });
    }
    renewing.end().await?;
    lease.release().await
}

async fn open(worker: &Worker) -> Result<PlainLease, Failure> {
    PlainLease::open(&worker.database.named(None)?, report(worker), worker.who).await
}

async fn acquire(lease: &mut PlainLease, worker: &Worker) -> Result<(), Failure> {
    let mut told = false;
    loop {
        let asked = At::now();
        match lease.take(worker.ttl).await? {
            Taken::Mine => {
                tell(worker.who, Event::Acquired { generation: None, deadline: asked.plus(worker.ttl) });
                return Ok(());
            }
            Taken::Busy { holder, remaining } => {
                if !std::mem::replace(&mut told, true) {
                    tell(worker.who, Event::Waiting { holder, remaining_millis: millis(remaining) });
                }
                tokio::time::sleep(STEP).await;
            }
        }
    }
}

/// Renews the lease until it is told to end, or finds it gone. Nothing that it finds can take a write back.
struct Renewing {
    ended: Arc<AtomicBool>,
    task: JoinHandle<Result<(), Failure>>,
}

impl Renewing {
    fn start(mut lease: PlainLease, worker: Worker) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&ended);
        let task = tokio::spawn(async move {
            let mut renewed = Instant::now();
            while !ends.load(Ordering::Relaxed) {
                tokio::time::sleep(STEP).await;
                if renewed.elapsed() < cadence(worker.ttl) {
                    continue;
                }
                renewed = Instant::now();
                let asked = At::now();
                if !lease.renew(worker.ttl).await? {
                    return Ok(());
                }
                tell(worker.who, Event::Renewed { deadline: asked.plus(worker.ttl) });
            }
            Ok(())
        });
        Self { ended, task }
    }

    async fn end(self) -> Result<(), Failure> {
        self.ended.store(true, Ordering::Relaxed);
        self.task.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}
