//! Client clocks that a test can drive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Moment};

/// Tokio's clock, which stands still and jumps with `tokio::time::pause`. For supervisors that
/// [renew on](crate::SupervisorBuilder::renew_on) the paused runtime.
///
/// Its time is that of the runtime in which it is read: everything of the test must run in one.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    origin: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        // Not at the origin itself, so that a test can look at earlier moments.
        Moment::after_origin(self.origin.elapsed() + Duration::from_secs(3600))
    }
}

/// Another clock plus what a test has added: a machine that was suspended, as the boot clock shows it while the runtime's
/// timers stood still. Clones share it.
#[derive(Debug, Clone)]
pub struct JumpingClock<C> {
    inner: C,
    jumped_nanos: Arc<AtomicU64>,
}

impl<C: Clock> JumpingClock<C> {
    /// The same time as this clock, until it jumps.
    #[must_use]
    pub fn new(inner: C) -> Self {
        Self { inner, jumped_nanos: Arc::default() }
    }

    /// Plays a suspension of this length.
    pub fn jump(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.jumped_nanos.fetch_add(nanos, Ordering::SeqCst);
    }
}

impl<C: Clock> Clock for JumpingClock<C> {
    fn now(&self) -> Moment {
        self.inner.now().plus(Duration::from_nanos(self.jumped_nanos.load(Ordering::SeqCst)))
    }
}
