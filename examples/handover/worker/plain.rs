//! The same worker with a plain lease. It is no straw man: it renews on a thread of its own, and it looks at its lease
//! right before it writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use super::gate::Gate;
use super::{STEP, cadence, payload_of};
use crate::arguments::Worker;
use crate::event::{At, Event, millis, tell};
use crate::failure::Failure;
use crate::plain_lease::{PlainLease, Taken};

pub(super) fn work(worker: &Worker, gate: &Gate) -> Result<(), Failure> {
    let who = worker.who;
    let lease = acquire(worker)?;
    let renewing = Renewing::start(worker.clone())?;
    let started = Instant::now();
    while started.elapsed() < worker.build {
        std::thread::sleep(STEP);
    }
    if let Some(remaining) = lease.remaining()? {
        tell(who, Event::Checked { remaining_millis: millis(remaining) });
        // Here A is stopped.
        gate.pass();
        lease.write(&payload_of(who))?;
        tell(who, Event::Published { generation: None });
    }
    renewing.end()?;
    lease.release()?;
    Ok(())
}

fn acquire(worker: &Worker) -> Result<PlainLease, Failure> {
    let lease = PlainLease::open(&worker.database, worker.who)?;
    let mut told = false;
    loop {
        match lease.take(worker.ttl)? {
            Taken::Mine => break,
            Taken::Busy { holder, remaining } => {
                if !std::mem::replace(&mut told, true) {
                    tell(worker.who, Event::Waiting { holder, remaining_millis: millis(remaining) });
                }
                std::thread::sleep(STEP);
            }
        }
    }
    tell(worker.who, Event::Acquired { generation: None, deadline: At::now().plus(worker.ttl) });
    Ok(lease)
}

/// Renews the lease until it is told to end, or finds it gone. Nothing that it finds can take a write back.
struct Renewing {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), Failure>>,
}

impl Renewing {
    fn start(worker: Worker) -> Result<Self, Failure> {
        // SQLite's connections are for one thread each.
        let lease = PlainLease::open(&worker.database, worker.who)?;
        let ended = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut renewed = Instant::now();
            while !ends.load(Ordering::Relaxed) {
                std::thread::sleep(STEP);
                if renewed.elapsed() < cadence(worker.ttl) {
                    continue;
                }
                renewed = Instant::now();
                if !lease.renew(worker.ttl)? {
                    return Ok(());
                }
                tell(worker.who, Event::Renewed { deadline: At::now().plus(worker.ttl) });
            }
            Ok(())
        });
        Ok(Self { ended, thread })
    }

    fn end(self) -> Result<(), Failure> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
