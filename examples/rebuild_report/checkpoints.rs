//! Where the build, on its blocking thread, asks whether it may go on.

use std::time::{Duration, Instant};

use leasehold::{Lease, Loss};

use crate::interrupt::Interrupt;

/// How often a pause looks up: soon enough for a person who presses Ctrl-C.
const SLICE: Duration = Duration::from_millis(20);

/// Why a build stopped before its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The user said so.
    Interrupted,
    /// The lease is over.
    Lost(Loss),
}

impl From<Loss> for Stopped {
    fn from(loss: Loss) -> Self {
        Self::Lost(loss)
    }
}

/// What a build must pass again and again: nothing else can stop a blocking thread.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    lease: Lease,
    interrupt: Interrupt,
    pause: Duration,
}

impl Checkpoints {
    pub(crate) fn new(lease: Lease, interrupt: Interrupt, pause: Duration) -> Self {
        Self { lease, interrupt, pause }
    }

    /// Goes on only while the lease is held and nobody interrupted; says that the build is alive.
    pub(crate) fn pass(&self) -> Result<(), Stopped> {
        if self.interrupt.is_requested() {
            return Err(Stopped::Interrupted);
        }
        // By a look at the clock: it also knows after this process itself was stopped for a while.
        self.lease.checkpoint()?;
        self.lease.progress();
        Ok(())
    }

    /// The same between two files, with the pause that the user asked for.
    pub(crate) fn between_files(&self) -> Result<(), Stopped> {
        let started = Instant::now();
        loop {
            self.pass()?;
            let left = self.pause.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(SLICE));
        }
    }
}
