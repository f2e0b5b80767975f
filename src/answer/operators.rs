//! What operators are answered: who holds what, and what their interventions did.

use std::time::{Duration, SystemTime};

use super::{Busy, Metadata};
use crate::fence::{Epoch, Generation, Holder, Owner, ReportId, SourceRevision};

/// Who holds a report, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReportStatus {
    /// The report.
    pub report: ReportId,
    /// The row without its payload.
    pub metadata: Metadata,
    /// The lease, unless the report is free.
    pub lease: Option<LeaseView>,
    /// The latest force release, if there was one.
    pub forced: Option<Forced>,
}

/// A lease as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LeaseView {
    /// The owner; `None` once the lease was seen expired and only its takeover delay keeps the report from others.
    pub owner: Option<Owner>,
    /// The label that the holder gave.
    pub holder: Holder,
    /// When it acquired, by the database's clock.
    pub since: SystemTime,
    /// How long the lease lasts; zero once it is expired.
    pub remaining: Duration,
    /// How long after the expiry the report is kept from others.
    pub takeover_delay: Duration,
}

/// The record of a force release.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Forced {
    /// The generation that was fenced out.
    pub generation: Generation,
    /// Who did it.
    pub by: Holder,
    /// When, by the database's clock.
    pub at: SystemTime,
}

/// The answer of `force_release`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ForceAnswer {
    /// The report was never provisioned.
    Missing,
    /// The report is free under a raised generation; whoever held it is fenced out.
    Forced {
        /// The row's generation now.
        generation: Generation,
        /// The lease that was taken away, if one was held.
        was: Option<Busy>,
    },
}

/// The answer of `require_source_revision` and `reset_source_revision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RevisionAnswer {
    /// The report was never provisioned.
    Missing,
    /// The least source revision that a publication must have from now on.
    Floor(Option<SourceRevision>),
}

/// The answer of `advance_recovery_epoch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum EpochAnswer {
    /// Every row is in the new epoch and every lease is over.
    Advanced {
        /// The epoch before.
        from: Epoch,
        /// How many leases were ended.
        ended_leases: u64,
    },
    /// Refused: the value is not above the current epoch, and nothing was changed.
    NotAbove {
        /// The current epoch.
        current: Epoch,
    },
}

/// What `check` found, for operators and start-up checks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CheckReport {
    /// The engine and its version.
    pub engine: String,
    /// The version of the schema that is installed.
    pub schema_version: u32,
    /// The store-wide recovery epoch.
    pub epoch: Epoch,
    /// The isolation and durability that transactions of this store run with.
    pub isolation: String,
    /// What this login may not do, or what is set in a way that endangers a promise, in sentences; empty is good.
    pub problems: Vec<String>,
    /// The database's clock minus this machine's, in milliseconds. For information: nothing depends on it.
    pub clock_offset_millis: i64,
}
