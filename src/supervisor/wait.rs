//! Waiting for a lease that somebody else holds.

use std::time::Duration;

use super::{AcquireError, Acquisition, LeaseSupervisor};
use crate::fence::{ReportId, SourceRevision};

/// The first wait.
const FIRST: Duration = Duration::from_millis(50);

/// The longest wait: a holder may release long before its lease ends.
const LONGEST: Duration = Duration::from_secs(5);

impl LeaseSupervisor {
    /// [`acquire`](Self::acquire), again and again while the report is busy or the database is unavailable, until the lease
    /// is had or there is nothing to build. Waits are jittered, double up to five seconds, and never go far beyond what the
    /// holder has left. Bound it with a time-out of your own.
    ///
    /// # Errors
    /// [`AcquireError`], but never busy, unavailable or unknown.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_wait(
        &self,
        report: ReportId,
        wanted: impl Into<Option<SourceRevision>>,
    ) -> Result<Acquisition, AcquireError> {
        let wanted = wanted.into();
        let mut back_off = FIRST;
        loop {
            let error = match self.acquire(report, wanted).await {
                Err(error) if error.is_transient() => error,
                answer => return answer,
            };
            let wait = match &error {
                // Just after the end of what the holder has, should it not renew; sooner, should it release.
                AcquireError::Busy(busy) => back_off.min(busy.remaining + FIRST / 5),
                _ => back_off,
            };
            tracing::trace!(%report, %error, ?wait, "waiting for a lease");
            self.works().sleep(wait.mul_f64(0.5 + 0.5 * fastrand::f64()).max(Duration::from_millis(1))).await;
            back_off = (back_off * 2).min(LONGEST);
        }
    }
}
