//! Provision, acquire, renew, release and close.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use tokio_postgres::Row as Columns;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PostgresStore;
use super::call::Statement;
use super::connections::Lane;
use super::failure;
use super::rows::{Answer, get};
use crate::answer::{
    AcquireAnswer, Acquired, BatchRenewal, CloseAnswer, Ending, ProvisionAnswer, ReleaseAnswer, RenewAnswer,
};
use crate::error::StoreError;
use crate::fence::{Fence, ReportId, SourceRevision};
use crate::store::decide::{self, Acquire, Close, Entry, Renew, exhausted, whole_millis};
use crate::store::{AcquireRequest, Budget, CloseRequest};

/// Whole milliseconds of a time that was checked to be short.
pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl Statement {
    /// The values of a fence: report, owner, generation, epoch.
    pub(super) fn with_fence(self, fence: &Fence) -> Self {
        self.with(*fence.report.as_uuid(), Type::UUID)
            .with(*fence.owner.as_uuid(), Type::UUID)
            .with(fence.generation.get(), Type::INT8)
            .with(fence.epoch.get(), Type::INT8)
    }
}

impl PostgresStore {
    /// A statement that calls a function of the schema.
    pub(super) fn function(&self, call: &str) -> String {
        format!("SELECT * FROM {}.{call}", self.settings().schema)
    }

    pub(super) async fn do_provision(&self, report: ReportId, budget: Budget) -> Result<ProvisionAnswer, StoreError> {
        let statement = Statement::writing(self.function("provision($1)")).with(*report.as_uuid(), Type::UUID);
        self.call(Lane::Ordinary, statement, budget, |rows| match &*rows {
            [row] if get(row, "created")? => Ok(ProvisionAnswer::Created),
            [_] => Ok(ProvisionAnswer::Existed),
            _ => Err(failure::disagreement(true)),
        })
        .await
    }

    pub(super) async fn do_acquire(
        &self,
        request: AcquireRequest,
        budget: Budget,
    ) -> Result<AcquireAnswer, StoreError> {
        let statement = Statement::writing(self.function("acquire($1, $2, $3, $4, $5, $6, $7)"))
            .with(*request.report.as_uuid(), Type::UUID)
            .with(*request.owner.as_uuid(), Type::UUID)
            .with(millis(request.ttl), Type::INT8)
            .with(request.holder.as_str().to_owned(), Type::TEXT)
            .with(request.min_epoch.get(), Type::INT8)
            .with(millis(request.takeover_delay), Type::INT8)
            .with(request.wanted.map(SourceRevision::get), Type::INT8);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let found = Answer::one(&rows, Some(request.owner), None)?;
            let decision = decide::acquire(found.row.as_ref(), found.ended.as_ref(), &request);
            match (decision, &found.row) {
                (Acquire::Answer(answer), _) => found.agrees(false, answer),
                (Acquire::Take(generation), Some(row)) => {
                    let fence = Fence { report: row.report, owner: request.owner, generation, epoch: row.epoch };
                    let remaining = whole_millis(request.ttl);
                    let lease = Acquired { fence, remaining, visible: row.visible };
                    found.agrees(true, AcquireAnswer::Acquired(lease))
                }
                _ => found.agrees(false, ()).and(Err(exhausted(request.report))),
            }
        })
        .await
    }

    pub(super) async fn do_renew(
        &self,
        fence: Fence,
        ttl: Duration,
        budget: Budget,
    ) -> Result<RenewAnswer, StoreError> {
        let statement = Statement::writing(self.function("renew($1, $2, $3, $4, $5)"))
            .with_fence(&fence)
            .with(millis(ttl), Type::INT8);
        self.call(Lane::Renewals, statement, budget, move |rows| {
            let found = Answer::one(&rows, Some(fence.owner), None)?;
            match renewal(&found, &fence)? {
                Renew::Answer(answer) => found.agrees(false, answer),
                Renew::Extend => {
                    let left = found.row.as_ref().map_or(Duration::ZERO, |row| row.remaining());
                    found.agrees(true, RenewAnswer::Renewed { remaining: left.max(whole_millis(ttl)) })
                }
            }
        })
        .await
    }

    pub(super) async fn do_renew_many(
        &self,
        fences: Vec<Fence>,
        ttl: Duration,
        budget: Budget,
    ) -> Result<Vec<BatchRenewal>, StoreError> {
        // A fence that is asked twice is sent once, and its answer given twice.
        let mut places = HashMap::with_capacity(fences.len());
        let mut sent = Vec::with_capacity(fences.len());
        let asked: Vec<usize> = fences
            .into_iter()
            .map(|fence| {
                *places.entry(fence).or_insert_with(|| {
                    sent.push(fence);
                    sent.len() - 1
                })
            })
            .collect();
        let sql = format!(
            "SELECT place, renewed_at, renewed_until, skipped, (found).* FROM {}.renew_many($1, $2, $3, $4, $5)",
            self.settings().schema
        );
        let statement = Statement::writing(sql)
            .with(sent.iter().map(|fence| *fence.report.as_uuid()).collect::<Vec<Uuid>>(), Type::UUID_ARRAY)
            .with(sent.iter().map(|fence| *fence.owner.as_uuid()).collect::<Vec<Uuid>>(), Type::UUID_ARRAY)
            .with(sent.iter().map(|fence| fence.generation.get()).collect::<Vec<i64>>(), Type::INT8_ARRAY)
            .with(sent.iter().map(|fence| fence.epoch.get()).collect::<Vec<i64>>(), Type::INT8_ARRAY)
            .with(millis(ttl), Type::INT8);
        self.call(Lane::Renewals, statement, budget, move |rows| {
            let mut answers = vec![None; sent.len()];
            for row in &rows {
                let place = usize::try_from(get::<i64>(row, "place")? - 1).unwrap_or(usize::MAX);
                let (Some(fence), Some(answer)) = (sent.get(place), answers.get_mut(place)) else {
                    return Err(failure::disagreement(true));
                };
                *answer = Some(one_of_many(row, fence)?);
            }
            asked.into_iter().map(|place| answers[place].ok_or_else(|| failure::disagreement(true))).collect()
        })
        .await
    }

    pub(super) async fn do_release(&self, fence: Fence, budget: Budget) -> Result<ReleaseAnswer, StoreError> {
        let statement = Statement::writing(self.function("release($1, $2, $3, $4)")).with_fence(&fence);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let found = Answer::one(&rows, Some(fence.owner), None)?;
            let releases = decide::release(found.row.as_ref(), found.ended.as_ref(), &fence);
            found.agrees(releases, if releases { ReleaseAnswer::Released } else { ReleaseAnswer::AlreadyOver })
        })
        .await
    }

    pub(super) async fn do_close(&self, request: CloseRequest, budget: Budget) -> Result<CloseAnswer, StoreError> {
        let (generation, epoch) = request.learned.unzip();
        let statement = Statement::writing(self.function("close($1, $2, $3, $4)"))
            .with(*request.report.as_uuid(), Type::UUID)
            .with(*request.owner.as_uuid(), Type::UUID)
            .with(generation.map(|generation| generation.get()), Type::INT8)
            .with(epoch.map(|epoch| epoch.get()), Type::INT8);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let found = Answer::one(&rows, Some(request.owner), None)?;
            match decide::close(found.row.as_ref(), found.ended.as_ref(), &request) {
                Close::Answer(answer) => found.agrees(false, answer),
                Close::Write { .. } => found.agrees(true, CloseAnswer::Ended(Ending::Closed)),
            }
        })
        .await
    }
}

fn renewal(found: &Answer, fence: &Fence) -> Result<Renew, StoreError> {
    decide::renew(found.row.as_ref(), fence, || Ok::<Option<Entry>, StoreError>(found.ended))
}

/// One row of `renew_many`.
fn one_of_many(row: &Columns, fence: &Fence) -> Result<BatchRenewal, StoreError> {
    if let Some(until) = get::<Option<SystemTime>>(row, "renewed_until")? {
        let left = until.duration_since(get(row, "renewed_at")?).unwrap_or(Duration::ZERO);
        return Ok(BatchRenewal::Answered(RenewAnswer::Renewed { remaining: whole_millis(left) }));
    }
    if get(row, "skipped")? {
        return Ok(BatchRenewal::Skipped);
    }
    match renewal(&Answer::from(row, Some(fence.owner), None)?, fence)? {
        Renew::Answer(answer) => Ok(BatchRenewal::Answered(answer)),
        Renew::Extend => Err(failure::disagreement(true)),
    }
}
