//! Provision, acquire, renew, release and close.

use std::fmt::Write;
use std::time::Duration;

use super::call::{Answer, Argument, Call};
use super::found::{self, Found, required};
use super::{Lane, SqlServerStore};
use crate::answer::{
    AcquireAnswer, Acquired, BatchRenewal, CloseAnswer, Ending, ProvisionAnswer, ReleaseAnswer, RenewAnswer,
};
use crate::error::StoreError;
use crate::fence::{Fence, ReportId};
use crate::store::decide::{self, Acquire, Close, Renew, exhausted, whole_millis};
use crate::store::{AcquireRequest, Budget, CloseRequest};

impl SqlServerStore {
    pub(super) async fn provision_row(&self, report: ReportId, budget: Budget) -> Result<ProvisionAnswer, StoreError> {
        let call = Call::writing("LeaseholdProvision").with("@ReportId", id(report));
        let answer = self.call(Lane::Others, budget, call).await?;
        Ok(if applied(&answer)? { ProvisionAnswer::Created } else { ProvisionAnswer::Existed })
    }

    pub(super) async fn acquire_lease(
        &self,
        request: AcquireRequest,
        budget: Budget,
    ) -> Result<AcquireAnswer, StoreError> {
        let ttl = whole_millis(request.ttl);
        let call = Call::writing("LeaseholdAcquire")
            .with("@ReportId", id(request.report))
            .with("@Owner", Argument::Id(*request.owner.as_uuid()))
            .with("@TtlMillis", millis(ttl))
            .with("@Holder", Argument::Text(request.holder.as_str().to_owned()))
            .with("@MinEpoch", Argument::Long(request.min_epoch.get()))
            .with("@TakeoverDelayMillis", millis(request.takeover_delay))
            .with_some("@Wanted", request.wanted.map(|revision| Argument::Long(revision.get())));
        let answer = self.call(Lane::Others, budget, call).await?;
        let found = found(&answer, request.report)?;
        let decided = decide::acquire(found.row.as_ref(), found.ended.as_ref(), &request);
        agree(&answer, matches!(decided, Acquire::Take(_)))?;
        match (decided, found.row) {
            (Acquire::Answer(answer), _) => Ok(answer),
            (Acquire::Take(generation), Some(row)) => {
                let fence = Fence { report: row.report, owner: request.owner, generation, epoch: row.epoch };
                Ok(AcquireAnswer::Acquired(Acquired { fence, remaining: ttl, visible: row.visible }))
            }
            _ => Err(exhausted(request.report)),
        }
    }

    pub(super) async fn renew_lease(
        &self,
        fence: Fence,
        ttl: Duration,
        budget: Budget,
    ) -> Result<RenewAnswer, StoreError> {
        let ttl = whole_millis(ttl);
        let call = fenced(Call::writing("LeaseholdRenew"), &fence).with("@TtlMillis", millis(ttl));
        let answer = self.call(Lane::Renewals, budget, call).await?;
        let found = found(&answer, fence.report)?;
        let renewed = renewed(&found, &fence, ttl)?;
        agree(&answer, matches!(renewed, RenewAnswer::Renewed { .. }))?;
        Ok(renewed)
    }

    pub(super) async fn renew_leases(
        &self,
        fences: Vec<Fence>,
        ttl: Duration,
        budget: Budget,
    ) -> Result<Vec<BatchRenewal>, StoreError> {
        let ttl = whole_millis(ttl);
        let call = Call::writing("LeaseholdRenewMany")
            .with("@Fences", Argument::Text(json(&fences)))
            .with("@TtlMillis", millis(ttl));
        let answer = self.call(Lane::Renewals, budget, call).await?;
        let mut renewals = Vec::with_capacity(fences.len());
        let mut reports = std::collections::HashSet::new();
        for columns in answer.rows(0) {
            let fence = usize::try_from(required::<i32>(columns, "Ordinal")?).ok().filter(|&at| at == renewals.len());
            let fence = fence.and_then(|at| fences.get(at)).ok_or_else(disagreement)?;
            if required::<i32>(columns, "Skipped")? == 1 {
                renewals.push(BatchRenewal::Skipped);
                continue;
            }
            let found = Found {
                now: std::time::SystemTime::UNIX_EPOCH,
                row: found::row(columns)?.map(|row| of(row, fence.report)).transpose()?,
                ended: found::ended(columns)?,
                used: None,
            };
            let renewed = renewed(&found, fence, ttl)?;
            if matches!(renewed, RenewAnswer::Renewed { .. }) {
                reports.insert(fence.report);
            }
            renewals.push(BatchRenewal::Answered(renewed));
        }
        let renewed = answer.outcome().map(|columns| required::<i32>(columns, "Applied")).transpose()?;
        if renewals.len() != fences.len() || renewed.and_then(|rows| usize::try_from(rows).ok()) != Some(reports.len())
        {
            return Err(disagreement());
        }
        Ok(renewals)
    }

    pub(super) async fn release_lease(&self, fence: Fence, budget: Budget) -> Result<ReleaseAnswer, StoreError> {
        let call = fenced(Call::writing("LeaseholdRelease"), &fence);
        let answer = self.call(Lane::Others, budget, call).await?;
        let found = found(&answer, fence.report)?;
        let releases = decide::release(found.row.as_ref(), found.ended.as_ref(), &fence);
        agree(&answer, releases)?;
        Ok(if releases { ReleaseAnswer::Released } else { ReleaseAnswer::AlreadyOver })
    }

    pub(super) async fn close_lease(&self, request: CloseRequest, budget: Budget) -> Result<CloseAnswer, StoreError> {
        let call = Call::writing("LeaseholdClose")
            .with("@ReportId", id(request.report))
            .with("@Owner", Argument::Id(*request.owner.as_uuid()))
            .with_some("@Generation", request.learned.map(|(generation, _)| Argument::Long(generation.get())))
            .with_some("@Epoch", request.learned.map(|(_, epoch)| Argument::Long(epoch.get())));
        let answer = self.call(Lane::Others, budget, call).await?;
        let found = found(&answer, request.report)?;
        let decided = decide::close(found.row.as_ref(), found.ended.as_ref(), &request);
        agree(&answer, matches!(decided, Close::Write { .. }))?;
        Ok(match decided {
            Close::Answer(answer) => answer,
            Close::Write { .. } => CloseAnswer::Ended(Ending::Closed),
        })
    }
}

/// What a renewal answers, given what was found before it.
fn renewed(found: &Found, fence: &Fence, ttl: Duration) -> Result<RenewAnswer, StoreError> {
    let decided = decide::renew(found.row.as_ref(), fence, || Ok::<_, StoreError>(found.ended))?;
    Ok(match decided {
        Renew::Answer(answer) => answer,
        Renew::Extend => {
            let left = found.row.as_ref().map_or(Duration::ZERO, decide::Row::remaining);
            RenewAnswer::Renewed { remaining: left.max(ttl) }
        }
    })
}

/// The arguments that every fence has.
pub(super) fn fenced(call: Call, fence: &Fence) -> Call {
    call.with("@ReportId", id(fence.report))
        .with("@Owner", Argument::Id(*fence.owner.as_uuid()))
        .with("@Generation", Argument::Long(fence.generation.get()))
        .with("@Epoch", Argument::Long(fence.epoch.get()))
}

/// Fences as `LeaseholdRenewMany` takes them.
fn json(fences: &[Fence]) -> String {
    let mut text = String::with_capacity(fences.len() * 128);
    for (ordinal, fence) in fences.iter().enumerate() {
        let Fence { report, owner, generation, epoch } = fence;
        let separator = if ordinal == 0 { '[' } else { ',' };
        let written =
            write!(text, r#"{separator}{{"o":{ordinal},"r":"{report}","w":"{owner}","g":{generation},"e":{epoch}}}"#);
        written.expect("a String takes everything");
    }
    text.push(']');
    text
}

pub(super) fn id(report: ReportId) -> Argument {
    Argument::Id(*report.as_uuid())
}

/// Milliseconds of a time that was checked to fit.
pub(super) fn millis(time: Duration) -> Argument {
    Argument::Int(i32::try_from(time.as_millis()).unwrap_or(i32::MAX))
}

/// What was found under the lock about this report: the first result set.
pub(super) fn found(answer: &Answer, report: ReportId) -> Result<Found, StoreError> {
    let found = Found::read(answer.rows(0).first().ok_or_else(disagreement)?)?;
    Ok(Found { row: found.row.map(|row| of(row, report)).transpose()?, ..found })
}

/// Whether the procedure wrote.
pub(super) fn applied(answer: &Answer) -> Result<bool, StoreError> {
    Ok(required::<i32>(answer.outcome().ok_or_else(disagreement)?, "Applied")? == 1)
}

/// The procedure decides by the conditions of its UPDATE, this library by what was found: they must say the same.
pub(super) fn agree(answer: &Answer, decided: bool) -> Result<(), StoreError> {
    if applied(answer)? == decided { Ok(()) } else { Err(disagreement()) }
}

/// The row, unless the answer is another one's.
fn of(row: decide::Row, report: ReportId) -> Result<decide::Row, StoreError> {
    if row.report == report { Ok(row) } else { Err(disagreement()) }
}

fn disagreement() -> StoreError {
    StoreError::unknown(
        "a procedure did not do what this build expects of it, so what it did is unknown: run install() with this build, look for \
         triggers on leasehold's tables, and report this",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::{Epoch, Generation, Owner};

    #[test]
    fn fences_are_sent_in_order() {
        let fence = |n| Fence {
            report: ReportId::from_uuid(uuid::Uuid::from_u128(n)),
            owner: Owner::from_uuid(uuid::Uuid::from_u128(n + 1)),
            generation: Generation::new(i64::MAX),
            epoch: Epoch::new(-1),
        };
        assert_eq!(
            json(&[fence(1), fence(3)]),
            "[{\"o\":0,\"r\":\"00000000-0000-0000-0000-000000000001\",\"w\":\"00000000-0000-0000-0000-000000000002\",\
             \"g\":9223372036854775807,\"e\":-1},{\"o\":1,\"r\":\"00000000-0000-0000-0000-000000000003\",\
             \"w\":\"00000000-0000-0000-0000-000000000004\",\"g\":9223372036854775807,\"e\":-1}]"
        );
    }
}
