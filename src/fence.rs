//! Who may write: identifiers, generations and the [`Fence`] that every request carries.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Makes the newtype of a UUID that means one thing only.
macro_rules! uuid_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID that came from elsewhere, such as a database column.
            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID itself.
            #[must_use]
            pub const fn as_uuid(&self) -> &Uuid {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::from_str(text).map(Self)
            }
        }
    };
}

uuid_newtype! {
    /// The protected row: what a lease is taken on and what is published.
    ///
    /// ```
    /// use leasehold::ReportId;
    ///
    /// let report = ReportId::from_name("customer 42 / monthly");
    /// assert_eq!(report, ReportId::from_name("customer 42 / monthly"));
    /// assert_ne!(report, ReportId::from_name("customer 43 / monthly"));
    /// ```
    ReportId
}

uuid_newtype! {
    /// One acquisition, named by a fresh random UUID. It identifies; it orders nothing.
    Owner
}

uuid_newtype! {
    /// One publication, named by a UUID that the library mints: the same id, sent again, is the same publication.
    OperationId
}

/// The namespace of [`ReportId::from_name`]; it must never change.
const REPORT_NAMES: Uuid = Uuid::from_u128(0x8b0d_1c4e_2f6a_5d39_9a57_6c65_6173_6501);

impl ReportId {
    /// The id of a report that users know by a string key: a version 5 UUID, the same on every machine and for ever.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self(Uuid::new_v5(&REPORT_NAMES, name.as_bytes()))
    }
}

impl Owner {
    /// A fresh owner for a fresh acquisition.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl OperationId {
    /// A fresh id for a fresh publication.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

/// Makes the newtype of an ordered 64-bit counter.
macro_rules! counter_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
        pub struct $name(i64);

        impl $name {
            /// Wraps a number.
            #[must_use]
            pub const fn new(number: i64) -> Self {
                Self(number)
            }

            /// The number itself.
            #[must_use]
            pub const fn get(self) -> i64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

counter_newtype! {
    /// The ownership generation of a report: grows by one at every acquisition, is never reset and never reused in one history.
    Generation
}

counter_newtype! {
    /// The recovery epoch: raised by an operator when a database history is replaced (a restore, a lossy failover).
    Epoch
}

counter_newtype! {
    /// The revision of the source data that a report was built from. Ordered; its meaning is the caller's.
    SourceRevision
}

impl Generation {
    /// The generation that follows, or `None` at the end of the 64-bit range, where a store refuses to acquire.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }
}

/// What every renewal, publication and release carries, matched exactly by the database.
///
/// A fence is ordering metadata and no credential: whoever may call the store may forge one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fence {
    /// The protected row.
    pub report: ReportId,
    /// The acquisition.
    pub owner: Owner,
    /// Its place in the order of acquisitions.
    pub generation: Generation,
    /// The database history it belongs to.
    pub epoch: Epoch,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, owner, generation, epoch } = self;
        write!(f, "report {report}, generation {generation}, epoch {epoch}, owner {owner}")
    }
}

/// A label for people, such as `host/pid/service`, shown to whoever finds the lease busy. It decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct Holder(String);

/// The label is not fit to be a [`Holder`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHolder {
    /// It is empty or too long.
    #[error("a holder label has 1 to {max} characters, and this one has {found}", max = Holder::MAX_CHARS)]
    Length {
        /// Its length in characters.
        found: usize,
    },
    /// It has a control character: labels are printed to terminals and logs.
    #[error("a holder label has no control characters, and this one has one at character {at}")]
    Control {
        /// Which character, counted from 0.
        at: usize,
    },
}

impl Holder {
    /// The longest label, in characters: what every store's column takes.
    pub const MAX_CHARS: usize = 128;

    /// A label of 1 to [`MAX_CHARS`](Self::MAX_CHARS) characters without control characters.
    ///
    /// # Errors
    /// [`InvalidHolder`] if it is empty, too long, or has a control character.
    pub fn new(label: impl Into<String>) -> Result<Self, InvalidHolder> {
        let label = label.into();
        let found = label.chars().count();
        if found == 0 || found > Self::MAX_CHARS {
            return Err(InvalidHolder::Length { found });
        }
        match label.chars().position(char::is_control) {
            Some(at) => Err(InvalidHolder::Control { at }),
            None => Ok(Self(label)),
        }
    }

    /// `host/pid/program` of this process, as well as they can be learned.
    #[must_use]
    pub fn of_this_process() -> Self {
        let program = std::env::current_exe()
            .ok()
            .and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
            .unwrap_or_else(|| "unknown".to_owned());
        let label = format!("{}/{}/{program}", host_name(), std::process::id());
        let fit = label.chars().filter(|c| !c.is_control()).take(Self::MAX_CHARS).collect();
        Self(fit)
    }

    /// The label.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Holder {
    /// As strict as [`Holder::new`]: a label that came over a wire is printed to the same terminals.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_report_keeps_its_id_for_ever() {
        assert_eq!(ReportId::from_name("report").to_string(), "827892f9-9073-504f-9eb5-04a08ea18284");
    }

    #[test]
    fn a_generation_at_the_end_of_its_range_has_no_next() {
        assert_eq!(Generation::new(41).next(), Some(Generation::new(42)));
        assert_eq!(Generation::new(i64::MAX).next(), None);
    }

    #[test]
    fn a_holder_label_is_short_and_printable() {
        assert!(Holder::new("host/1/reports").is_ok());
        assert!(Holder::new("ü".repeat(Holder::MAX_CHARS)).is_ok());
        for bad in ["", "a\nb", "a\0b", "\u{1b}[31m", &"x".repeat(Holder::MAX_CHARS + 1)] {
            assert!(Holder::new(bad).is_err(), "{bad:?} should be refused");
        }
        assert!(Holder::new(Holder::of_this_process().as_str()).is_ok());
    }
}
