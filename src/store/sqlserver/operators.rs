//! Force release, source revisions, the recovery epoch and pruning.

use std::time::Duration;

use super::call::{Argument, Call};
use super::found::required;
use super::leases::{agree, found, id};
use super::{Lane, SqlServerStore};
use crate::answer::{EpochAnswer, ForceAnswer, RevisionAnswer};
use crate::error::StoreError;
use crate::fence::{Epoch, Holder, ReportId, SourceRevision};
use crate::store::Budget;
use crate::store::decide::exhausted;

/// The farthest that pruning looks back, in seconds: what `DATEADD` takes, about 60 years. Nothing of leasehold's is older.
const MAX_AGE_SECONDS: i32 = 1_900_000_000;

impl SqlServerStore {
    pub(super) async fn force_lease(
        &self,
        report: ReportId,
        by: Holder,
        budget: Budget,
    ) -> Result<ForceAnswer, StoreError> {
        let call = Call::writing("LeaseholdForceRelease")
            .with("@ReportId", id(report))
            .with("@By", Argument::Text(by.as_str().to_owned()));
        let answer = self.call(Lane::Others, budget, call).await?;
        let Some(row) = found(&answer, report)?.row else { return Ok(ForceAnswer::Missing) };
        let next = row.generation.next();
        agree(&answer, next.is_some())?;
        let generation = next.ok_or_else(|| exhausted(report))?;
        Ok(ForceAnswer::Forced { generation, was: row.is_held().then(|| row.busy()).flatten() })
    }

    pub(super) async fn require_revision(
        &self,
        report: ReportId,
        revision: SourceRevision,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        let call = Call::writing("LeaseholdRequireRevision")
            .with("@ReportId", id(report))
            .with("@Revision", Argument::Long(revision.get()));
        let answer = self.call(Lane::Others, budget, call).await?;
        let Some(row) = found(&answer, report)?.row else { return Ok(RevisionAnswer::Missing) };
        agree(&answer, true)?;
        Ok(RevisionAnswer::Floor(row.floor.max(Some(revision))))
    }

    pub(super) async fn reset_revision(
        &self,
        report: ReportId,
        revision: Option<SourceRevision>,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        let call = Call::writing("LeaseholdResetRevision")
            .with("@ReportId", id(report))
            .with_some("@Revision", revision.map(|revision| Argument::Long(revision.get())));
        let answer = self.call(Lane::Others, budget, call).await?;
        let Some(row) = found(&answer, report)?.row else { return Ok(RevisionAnswer::Missing) };
        agree(&answer, row.generation.next().is_some())?;
        if row.generation.next().is_none() {
            return Err(exhausted(report));
        }
        Ok(RevisionAnswer::Floor(revision))
    }

    pub(super) async fn advance_epoch(&self, to: Epoch, budget: Budget) -> Result<EpochAnswer, StoreError> {
        let call = Call::writing("LeaseholdAdvanceEpoch").with("@Epoch", Argument::Long(to.get()));
        let answer = self.call(Lane::Others, budget, call).await?;
        let columns =
            answer.outcome().ok_or_else(|| StoreError::unknown("the procedure answered nothing: run install()"))?;
        let from = Epoch::new(required(columns, "FromEpoch")?);
        Ok(if required::<i32>(columns, "Applied")? == 1 {
            let ended: i32 = required(columns, "EndedLeases")?;
            EpochAnswer::Advanced { from, ended_leases: u64::try_from(ended).unwrap_or(0) }
        } else {
            EpochAnswer::NotAbove { current: from }
        })
    }

    pub(super) async fn prune(&self, older_than: Duration, budget: Budget) -> Result<u64, StoreError> {
        let seconds =
            i32::try_from(older_than.as_secs()).map_or(MAX_AGE_SECONDS, |seconds| seconds.min(MAX_AGE_SECONDS));
        let millis = i32::try_from(older_than.subsec_millis()).unwrap_or(0);
        let call = Call::writing("LeaseholdPrune")
            .with("@OlderThanSeconds", Argument::Int(seconds))
            .with("@OlderThanMillis", Argument::Int(millis));
        let answer = self.call(Lane::Others, budget, call).await?;
        let columns =
            answer.outcome().ok_or_else(|| StoreError::unknown("the procedure answered nothing: run install()"))?;
        Ok(u64::try_from(required::<i32>(columns, "Pruned")?).unwrap_or(0))
    }
}
