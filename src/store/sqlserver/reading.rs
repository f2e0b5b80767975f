//! Read, metadata, inspect, list and check: no lock is taken.

use std::time::SystemTime;

use super::call::{Argument, Call};
use super::found::{self, optional, required};
use super::leases::{found as found_in, id};
use super::{Lane, SqlServerStore};
use crate::answer::{CheckReport, Metadata, ReadAnswer, ReportStatus, Version};
use crate::error::{StoreError, StoreErrorKind};
use crate::fence::{Epoch, ReportId};
use crate::store::decide::Row;
use crate::store::{Budget, ListRequest};

/// A read changes nothing: an answer that is not understood leaves nothing unknown, but somebody has to mend it.
pub(super) fn certain(error: StoreError) -> StoreError {
    match error.kind() {
        StoreErrorKind::Unknown => error.meaning(StoreErrorKind::Rejected),
        _ => error,
    }
}

impl SqlServerStore {
    pub(super) async fn read_report(
        &self,
        report: ReportId,
        newer_than: Option<Version>,
        budget: Budget,
    ) -> Result<ReadAnswer, StoreError> {
        let call = Call::reading("LeaseholdRead")
            .with("@ReportId", id(report))
            .with_some("@KnownEpoch", newer_than.map(|known| Argument::Long(known.epoch.get())))
            .with_some("@KnownGeneration", newer_than.map(|known| Argument::Long(known.generation.get())));
        let answer = self.call(Lane::Others, budget, call).await?;
        let Some(columns) = answer.rows(0).first() else { return Ok(ReadAnswer::Missing) };
        let epoch = Epoch::new(required(columns, "RecoveryEpoch")?);
        let Some(visible) = found::visible(columns, epoch)? else { return Ok(ReadAnswer::Unpublished) };
        if newer_than.is_some_and(|known| visible.version <= known) {
            return Ok(ReadAnswer::NotNewer(visible));
        }
        let payload = optional::<&str>(columns, "Payload")?.ok_or_else(|| {
            StoreError::rejected(format!(
                "the payload of report {report} is gone from ReportPublication: look who removed it"
            ))
        })?;
        Ok(ReadAnswer::Found { visible, payload: payload.to_owned() })
    }

    pub(super) async fn metadata_of(&self, report: ReportId, budget: Budget) -> Result<Option<Metadata>, StoreError> {
        Ok(self.row_of(report, budget).await?.map(|row| row.metadata()))
    }

    pub(super) async fn status_of(&self, report: ReportId, budget: Budget) -> Result<Option<ReportStatus>, StoreError> {
        Ok(self.row_of(report, budget).await?.map(|row| row.status()))
    }

    async fn row_of(&self, report: ReportId, budget: Budget) -> Result<Option<Row>, StoreError> {
        let call = Call::reading("LeaseholdInspect").with("@ReportId", id(report));
        Ok(found_in(&self.call(Lane::Others, budget, call).await?, report)?.row)
    }

    pub(super) async fn list_reports(
        &self,
        request: ListRequest,
        budget: Budget,
    ) -> Result<Vec<ReportStatus>, StoreError> {
        let call = Call::reading("LeaseholdList")
            .with("@Limit", Argument::Int(i32::try_from(request.limit).unwrap_or(i32::MAX)))
            .with("@LeasedOnly", Argument::Bit(request.leased_only))
            .with_some("@After", request.after.map(id));
        let answer = self.call(Lane::Others, budget, call).await?;
        let rows = answer.rows(0).iter().filter_map(|columns| found::row(columns).transpose());
        rows.map(|row| row.map(|row| row.status())).collect()
    }

    pub(super) async fn check_store(&self, budget: Budget) -> Result<CheckReport, StoreError> {
        let answer = self.call(Lane::Others, budget, Call::reading("LeaseholdVersion")).await?;
        let here = SystemTime::now();
        let columns = answer
            .rows(0)
            .first()
            .ok_or_else(|| StoreError::rejected("LeaseholdStore has lost its row: run install()"))?;
        let engine: &str = required(columns, "Engine")?;
        let schema_version: i32 = required(columns, "SchemaVersion")?;
        let there = found::time(required(columns, "NowMicros")?);
        Ok(CheckReport {
            engine: engine.lines().next().unwrap_or_default().trim().to_owned(),
            schema_version: u32::try_from(schema_version).unwrap_or(0),
            epoch: Epoch::new(required(columns, "RecoveryEpoch")?),
            isolation: required::<&str>(columns, "Isolation")?.to_owned(),
            problems: Vec::new(),
            clock_offset_millis: offset(there, here),
        })
    }
}

/// Whole milliseconds from one time to another.
fn offset(there: SystemTime, here: SystemTime) -> i64 {
    let millis = |apart: std::time::Duration| i64::try_from(apart.as_millis()).unwrap_or(i64::MAX);
    match there.duration_since(here) {
        Ok(ahead) => millis(ahead),
        Err(behind) => -millis(behind.duration()),
    }
}
