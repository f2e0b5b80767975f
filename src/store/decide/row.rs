//! What was found under the lock: a report's [`Row`], and [`Entry`]s of the ledger.

use std::time::{Duration, SystemTime};

use crate::answer::{Busy, Ending, Forced, LeaseView, Metadata, Receipt, ReportStatus, Visible};
use crate::fence::{Epoch, Fence, Generation, Holder, OperationId, Owner, ReportId, SourceRevision};

/// Where a lease's expiry lies, seen from the clock that was read under the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The expiry is that far ahead; never zero.
    In(Duration),
    /// The expiry has passed, that long ago.
    Passed(Duration),
}

/// A report's row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) report: ReportId,
    pub(crate) generation: Generation,
    pub(crate) epoch: Epoch,
    pub(crate) owner: Option<Owner>,
    pub(crate) expiry: Option<Expiry>,
    /// None before the first acquisition.
    pub(crate) holder: Option<Holder>,
    pub(crate) since: SystemTime,
    pub(crate) takeover_delay: Duration,
    pub(crate) visible: Option<Visible>,
    pub(crate) floor: Option<SourceRevision>,
    pub(crate) pruned_up_to: Generation,
    pub(crate) forced: Option<Forced>,
}

impl Row {
    /// Held by somebody, and not expired.
    pub(crate) fn is_held(&self) -> bool {
        self.owner.is_some() && matches!(self.expiry, Some(Expiry::In(_)))
    }

    /// Held by exactly this fence, and not expired.
    pub(crate) fn is_held_by(&self, fence: &Fence) -> bool {
        self.is_held()
            && self.owner == Some(fence.owner)
            && self.generation == fence.generation
            && self.epoch == fence.epoch
    }

    /// Released, published, closed, forced, never taken, or ended by an epoch.
    pub(crate) fn is_free(&self) -> bool {
        self.owner.is_none() && self.expiry.is_none()
    }

    /// Rule 3: an owner whose expiry has passed is over from now on. Says whether there was one, which must then be recorded
    /// and committed whatever the answer is. The expiry stays: the takeover delay counts from it.
    #[cfg(feature = "sqlite")] // The servers' functions do it themselves.
    pub(crate) fn end_if_expired(&mut self) -> bool {
        let expired = self.owner.is_some() && !self.is_held();
        if expired {
            self.owner = None;
        }
        expired
    }

    /// What is left of the lease, in whole milliseconds; zero once it is expired.
    pub(crate) fn remaining(&self) -> Duration {
        match self.expiry {
            Some(Expiry::In(left)) => whole_millis(left),
            _ => Duration::ZERO,
        }
    }

    /// Until when nobody else may take the lease; `None` if it can be taken now.
    pub(crate) fn kept_for(&self) -> Option<Duration> {
        match self.expiry? {
            Expiry::In(left) => Some(left.saturating_add(self.takeover_delay)),
            Expiry::Passed(ago) => self.takeover_delay.checked_sub(ago).filter(|left| !left.is_zero()),
        }
    }

    /// The lease as somebody else is told of it, if it can not be taken now.
    pub(crate) fn busy(&self) -> Option<Busy> {
        let remaining = whole_millis(self.kept_for()?);
        Some(Busy { holder: self.label(), since: self.since, remaining })
    }

    /// The holder's label. A lease has one, unless somebody edited the row.
    fn label(&self) -> Holder {
        self.holder.clone().unwrap_or_else(|| Holder::new("unknown").expect("it is short and printable"))
    }

    /// The highest revision that a publication must reach.
    pub(crate) fn required_revision(&self) -> Option<SourceRevision> {
        self.floor.max(self.visible.and_then(|visible| visible.revision))
    }

    /// The row without its lease.
    pub(crate) fn metadata(&self) -> Metadata {
        Metadata {
            generation: self.generation,
            epoch: self.epoch,
            visible: self.visible,
            revision_floor: self.floor,
            pruned_up_to: self.pruned_up_to,
        }
    }

    /// The row for operators.
    pub(crate) fn status(&self) -> ReportStatus {
        let lease = self.kept_for().map(|_| LeaseView {
            owner: self.owner,
            holder: self.label(),
            since: self.since,
            remaining: self.remaining(),
            takeover_delay: self.takeover_delay,
        });
        ReportStatus { report: self.report, metadata: self.metadata(), lease, forced: self.forced.clone() }
    }
}

/// One row of the ledger: an acquisition that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) owner: Owner,
    pub(crate) report: ReportId,
    pub(crate) generation: Generation,
    pub(crate) epoch: Epoch,
    /// `None` if it was closed.
    pub(crate) operation: Option<OperationId>,
    pub(crate) revision: Option<SourceRevision>,
    pub(crate) ended_at: SystemTime,
}

impl Entry {
    /// The publication's receipt, unless the acquisition was closed.
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        Some(Receipt {
            report: self.report,
            operation: self.operation?,
            generation: self.generation,
            epoch: self.epoch,
            revision: self.revision,
            published_at: self.ended_at,
        })
    }

    /// How the acquisition ended.
    pub(crate) fn ending(&self) -> Ending {
        self.receipt().map_or(Ending::Closed, Ending::Published)
    }
}

/// Rounded down to whole milliseconds, as every remaining time is.
pub(crate) fn whole_millis(time: Duration) -> Duration {
    Duration::new(time.as_secs(), time.subsec_millis() * 1_000_000)
}
