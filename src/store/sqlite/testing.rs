//! What tests of this store need: a clock that they move, and a look at who waits for the lock.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::SqliteStore;
use super::clock::{Clock, Now};
use crate::error::StoreError;
use crate::store::Budget;

/// A clock that stands still until a test moves it.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<Mutex<Now>>,
    tick: Arc<Mutex<Duration>>,
}

impl ManualClock {
    /// A clock in this boot, that long after it.
    #[must_use]
    pub fn new(boot: &str, since_boot: Duration) -> Self {
        let utc = SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000);
        Self {
            now: Arc::new(Mutex::new(Now { boot: boot.into(), nanos: nanos(since_boot), utc })),
            tick: Arc::default(),
        }
    }

    /// Goes on, and the time for people with it.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.nanos += nanos(by);
        now.utc += by;
    }

    /// Steps back, and the time for people with it.
    pub fn step_back(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.nanos -= nanos(by);
        now.utc -= by;
    }

    /// From now on goes on by itself, that far after each reading.
    pub fn tick(&self, by: Duration) {
        *self.tick.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }

    /// Steps the time for people only, as setting the wall clock does.
    pub fn set_wall_clock(&self, utc: SystemTime) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).utc = utc;
    }

    /// Boots again: another boot id, and the time since it begins anew.
    pub fn reboot(&self, boot: &str, since_boot: Duration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.boot = boot.into();
        now.nanos = nanos(since_boot);
    }

    pub(super) fn now(&self) -> Now {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.advance(*self.tick.lock().unwrap_or_else(PoisonError::into_inner));
        now
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// The deciding time of this machine: the boot's id, and nanoseconds since that boot.
#[must_use]
pub fn machine_now() -> (String, i64) {
    let now = Clock::of_this_machine().expect("a boot id").now();
    (now.boot.to_string(), now.nanos)
}

impl SqliteStore {
    /// [`open`](Self::open) with a clock of the test's.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Cancel safety
    /// As [`open`](Self::open).
    pub async fn open_with_clock(path: impl AsRef<Path>, clock: &ManualClock) -> Result<Self, StoreError> {
        Self::open_on(path.as_ref(), Clock::Manual(clock.clone()), Budget::within(super::OPENING)).await
    }

    /// How many calls of this store, and of those made by [`for_runtime`](crate::store::Store::for_runtime) from it, have
    /// found the write lock taken and wait for it now.
    #[must_use]
    pub fn calls_waiting_for_lock(&self) -> usize {
        self.thread().waiting()
    }
}
