//! The client's clock: monotonic, and running while the machine is suspended.
//!
//! `std::time::Instant` on Linux stops while the machine sleeps; a lease does not. So deadlines are kept by
//! `CLOCK_BOOTTIME` there, and by the platform's own sleep-aware clock elsewhere.

use std::fmt;
use std::time::Duration;

/// A point in time of one [`Clock`]: nanoseconds since an origin of that clock's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The point this long after the clock's origin.
    #[must_use]
    pub fn after_origin(elapsed: Duration) -> Self {
        Self(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    pub(crate) fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Where the client reads the time by which it counts a lease lost.
///
/// It never decides who owns a report; the database's clock does. It must not step back, and should run while the machine
/// is suspended.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now. Called often, from any thread; it must not block.
    fn now(&self) -> Moment;
}

/// The machine's own clock, which runs while the machine is suspended. The default.
#[derive(Debug, Clone, Copy, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Moment {
        Moment::after_origin(since_boot())
    }
}

/// The time since the machine started, suspension included.
#[cfg(unix)]
pub(crate) fn since_boot() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    // Apple's CLOCK_MONOTONIC runs while the machine sleeps; Linux has a clock of its own for it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;

    let time = clock_gettime(CLOCK);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time since the first call: the performance counter behind `Instant` runs on while Windows sleeps.
#[cfg(not(unix))]
pub(crate) fn since_boot() -> Duration {
    static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    ORIGIN.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_does_not_step_back() {
        let first = BootClock.now();
        let second = BootClock.now();
        assert!(second >= first);
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let late = Moment::from_nanos(u64::MAX);
        assert_eq!(late.plus(Duration::MAX), late);
        assert_eq!(Moment::from_nanos(1).minus(Duration::from_secs(1)), Moment::from_nanos(0));
        assert_eq!(Moment::from_nanos(1).since(late), Duration::ZERO);
    }
}
