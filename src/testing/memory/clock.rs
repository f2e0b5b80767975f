//! The clock of a [`MemoryStore`](super::MemoryStore), which tests can step.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// The database clock of a memory store: tokio's, so that it stands still and jumps with a paused runtime, plus an offset
/// that a test may change at any time. Clones are the same clock.
///
/// Where a runtime is paused, everything that looks at the store must run in that runtime: another one has its own time.
///
/// ```
/// use std::time::Duration;
/// use leasehold::testing::MemoryStore;
///
/// let store = MemoryStore::new();
/// store.clock().step(Duration::from_secs(30)); // Every lease of half a minute has expired.
/// store.clock().step_back(Duration::from_secs(5)); // And the clock was wrong.
/// ```
#[derive(Debug, Clone)]
pub struct MemoryClock {
    started: Instant,
    started_at: SystemTime,
    offset_nanos: Arc<AtomicI64>,
}

/// A reading of the clock, in nanoseconds since the store was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(i64);

impl MemoryClock {
    pub(super) fn start() -> Self {
        Self { started: Instant::now(), started_at: SystemTime::now(), offset_nanos: Arc::default() }
    }

    /// Puts the clock forward.
    pub fn step(&self, by: Duration) {
        self.offset_nanos.fetch_add(nanos(by), Ordering::SeqCst);
    }

    /// Puts the clock back, as a badly set server clock does.
    pub fn step_back(&self, by: Duration) {
        self.offset_nanos.fetch_sub(nanos(by), Ordering::SeqCst);
    }

    pub(super) fn now(&self) -> Time {
        Time(nanos(self.started.elapsed()).saturating_add(self.offset_nanos.load(Ordering::SeqCst)))
    }

    pub(super) fn offset_millis(&self) -> i64 {
        self.offset_nanos.load(Ordering::SeqCst) / 1_000_000
    }

    /// What people call this time.
    pub(super) fn for_people(&self, Time(time): Time) -> SystemTime {
        let distance = Duration::from_nanos(time.unsigned_abs());
        if time < 0 { self.started_at - distance } else { self.started_at + distance }
    }
}

impl Time {
    pub(super) fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    pub(super) fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }

    /// Milliseconds from `now` to this time, rounded down; negative if it has passed.
    pub(super) fn millis_after(self, now: Self) -> i64 {
        self.0.saturating_sub(now.0).div_euclid(1_000_000)
    }

    /// The whole milliseconds from `now` to this time; zero if it has passed.
    pub(super) fn remaining_after(self, now: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.millis_after(now)).unwrap_or(0))
    }
}

/// Enough for 292 years.
fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
