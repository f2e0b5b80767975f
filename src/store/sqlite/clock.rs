//! The clock that decides, and the clock for people.
//!
//! SQLite's own `now` is the machine's wall clock, which people and NTP set back and forth. What decides here is the time
//! since the machine booted, the time it was suspended included (`CLOCK_BOOTTIME`), together with the *boot id*: after a
//! reboot the old times mean nothing, and a lease that was written under another boot is over. The wall clock is
//! kept beside it for people, and for the age of ledger rows.
//!
//! Where the system gives no boot id (anything but Linux and Android), the wall clock decides, under one constant boot id: a
//! time since boot without the boot's name could keep a dead lease for as long as the machine once ran. There a step of
//! the wall clock shortens or lengthens leases; [`Store::check`](crate::store::Store::check) says so.
//!
//! Containers that share a file must share the machine's boot time: a time namespace with an offset of its own breaks this.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::StoreError;
use crate::store::decide::Expiry;

/// The name of the boot where the system gives none.
const NO_BOOT: &str = "wall-clock";

/// One reading, taken after the write lock was had.
#[derive(Debug, Clone)]
pub(super) struct Now {
    /// Which boot `nanos` counts from.
    pub(super) boot: Arc<str>,
    /// Nanoseconds since that boot.
    pub(super) nanos: i64,
    /// For people.
    pub(super) utc: SystemTime,
}

impl Now {
    /// The deciding time this far ahead.
    pub(super) fn after(&self, time: Duration) -> i64 {
        self.nanos.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Where an expiry lies, seen from here. Under another boot it passed long enough ago for any takeover delay.
    pub(super) fn expiry(&self, boot: &str, nanos: i64) -> Expiry {
        if boot != &*self.boot {
            return Expiry::Passed(Duration::MAX);
        }
        let distance = Duration::from_nanos(nanos.abs_diff(self.nanos));
        if nanos > self.nanos { Expiry::In(distance) } else { Expiry::Passed(distance) }
    }
}

/// What a connection reads the time from.
#[derive(Debug, Clone)]
pub(super) enum Clock {
    /// The machine's.
    Machine(Arc<str>),
    /// A test's.
    #[cfg(feature = "test-util")]
    Manual(super::testing::ManualClock),
}

impl Clock {
    /// The machine's clock.
    ///
    /// # Errors
    /// If the system has a boot id and it cannot be read: a process that kept leases by another clock than the others on the
    /// same file would see all of theirs expired.
    pub(super) fn of_this_machine() -> Result<Self, StoreError> {
        boot_id().map(Self::Machine)
    }

    /// Whether a step of the wall clock moves the leases.
    pub(super) fn is_wall_clock(&self) -> bool {
        matches!(self, Self::Machine(boot) if &**boot == NO_BOOT)
    }

    /// Reads it.
    pub(super) fn now(&self) -> Now {
        match self {
            Self::Machine(boot) => {
                let utc = SystemTime::now();
                let nanos = if self.is_wall_clock() { since_epoch(utc) } else { since_boot() };
                Now { boot: boot.clone(), nanos, utc }
            }
            #[cfg(feature = "test-util")]
            Self::Manual(clock) => clock.now(),
        }
    }
}

fn since_epoch(utc: SystemTime) -> i64 {
    let since = utc.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_id() -> Result<Arc<str>, StoreError> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let unreadable = || {
        StoreError::rejected(format!(
            "{FILE} cannot be read, by which leases in an SQLite file are kept: mount /proc here"
        ))
    };
    let id = std::fs::read_to_string(FILE).map_err(|error| unreadable().with_source(error))?;
    match id.trim() {
        "" => Err(unreadable()),
        id => Ok(id.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot_id() -> Result<Arc<str>, StoreError> {
    Ok(NO_BOOT.into())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn since_boot() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // Both fit for 292 years after the boot.
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn since_boot() -> i64 {
    since_epoch(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot: &str, nanos: i64) -> Now {
        Now { boot: boot.into(), nanos, utc: SystemTime::UNIX_EPOCH }
    }

    #[test]
    fn an_expiry_has_passed_at_its_very_nanosecond_and_under_any_other_boot() {
        let now = at("a", 100);
        assert_eq!(now.expiry("a", 101), Expiry::In(Duration::from_nanos(1)));
        assert_eq!(now.expiry("a", 100), Expiry::Passed(Duration::ZERO));
        assert_eq!(now.expiry("a", i64::MIN), Expiry::Passed(Duration::from_nanos(i64::MIN.abs_diff(100))));
        assert_eq!(now.expiry("b", i64::MAX), Expiry::Passed(Duration::MAX));
    }

    #[test]
    fn the_machine_clock_does_not_go_back() {
        let clock = Clock::of_this_machine().unwrap();
        let (first, second) = (clock.now(), clock.now());
        assert!(second.nanos >= first.nanos && second.boot == first.boot);
    }
}
