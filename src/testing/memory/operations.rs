//! The operations of [`Store`], each by way of the row's lock or of a snapshot.

use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::runtime::Handle;

use super::lock::unpoisoned;
use super::mutant::Mutant;
use super::rows::{Row, Tables};
use super::{EARLY_CLOSE, EARLY_PUBLISH, Early, FIRST_EPOCH, MemoryStore, MemoryTransaction, not_spent, without_end};
use crate::answer::{
    AcquireAnswer, BatchRenewal, CheckReport, CloseAnswer, EpochAnswer, ForceAnswer, Metadata, ProvisionAnswer,
    PublishAnswer, ReadAnswer, ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer, Version,
};
use crate::error::StoreError;
use crate::fence::{Epoch, Fence, Generation, Holder, ReportId, SourceRevision};
use crate::store::{
    AcquireRequest, AdvanceRequest, Budget, CloseRequest, ListRequest, MAX_BATCH, MAX_TAKEOVER_DELAY, MAX_TTL, MIN_TTL,
    PublishRequest, Store,
};

impl Store for MemoryStore {
    type Transaction = MemoryTransaction;

    fn for_runtime(&self, _: &Handle) -> Self {
        self.clone()
    }

    async fn provision(&self, report: ReportId, budget: Budget) -> Result<ProvisionAnswer, StoreError> {
        not_spent(budget)?;
        let mut tables = unpoisoned(&self.shared.tables);
        if tables.rows.contains_key(&report) && !self.shared.mutants.has(Mutant::ProvisionResets) {
            return Ok(ProvisionAnswer::Existed);
        }
        let first = self.shared.mutants.has(Mutant::ProvisionInFirstEpoch);
        let epoch = if first { FIRST_EPOCH } else { tables.epoch };
        tables.rows.insert(report, Row::new(epoch, self.shared.clock.now()));
        Ok(ProvisionAnswer::Created)
    }

    async fn acquire(&self, request: AcquireRequest, budget: Budget) -> Result<AcquireAnswer, StoreError> {
        valid_ttl(request.ttl)?;
        if request.takeover_delay > MAX_TAKEOVER_DELAY {
            return Err(out_of_range("takeover delay", request.takeover_delay, &(Duration::ZERO..=MAX_TAKEOVER_DELAY)));
        }
        let early = Early::clock(Mutant::AcquireReadsClockBeforeLock);
        let budget = if self.shared.mutants.has(Mutant::AcquireIgnoresBudget) { without_end() } else { budget };
        self.locked(request.report, budget, early, |row| row.acquire(request)).await?
    }

    async fn renew(&self, fence: Fence, ttl: Duration, budget: Budget) -> Result<RenewAnswer, StoreError> {
        valid_ttl(ttl)?;
        let early = Early::clock(Mutant::RenewReadsClockBeforeLock);
        if self.shared.mutants.has(Mutant::RenewAppliedAfterBudget) {
            return self.renew_now_or_later(fence, ttl, budget).await;
        }
        self.locked(fence.report, budget, early, |row| row.renew(fence, ttl)).await
    }

    async fn renew_many(
        &self,
        fences: Vec<Fence>,
        ttl: Duration,
        budget: Budget,
    ) -> Result<Vec<BatchRenewal>, StoreError> {
        valid_ttl(ttl)?;
        if fences.len() > MAX_BATCH {
            let message = format!("{} leases were to be renewed at once and the limit is {MAX_BATCH}", fences.len());
            return Err(StoreError::invalid(message));
        }
        not_spent(budget)?;
        let has = |mutant| self.shared.mutants.has(mutant);
        let before = has(Mutant::RenewManyUndoneByOneRefusal).then(|| unpoisoned(&self.shared.tables).clone());
        let mut answers = Vec::with_capacity(fences.len());
        for fence in fences {
            answers.push(self.renew_one_of_many(fence, ttl, budget).await?);
        }
        let refused = |answer: &_| matches!(answer, BatchRenewal::Answered(RenewAnswer::Refused(_)));
        if let Some(before) = before.filter(|_| answers.iter().any(refused)) {
            *unpoisoned(&self.shared.tables) = before;
        }
        if has(Mutant::RenewManyAnswersReversed) {
            answers.reverse();
        }
        Ok(answers)
    }

    async fn publish(&self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        self.locked(request.fence.report, budget, EARLY_PUBLISH, |row| row.publish(&request, None)).await
    }

    async fn publish_and_advance(&self, request: AdvanceRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        valid_ttl(request.ttl)?;
        let AdvanceRequest { publish, next_owner, ttl } = request;
        if next_owner == publish.fence.owner {
            return Err(StoreError::invalid("the next owner of an advance is the publishing one: mint a fresh owner"));
        }
        let next = Some((next_owner, ttl));
        self.locked(publish.fence.report, budget, EARLY_PUBLISH, |row| row.publish(&publish, next)).await
    }

    async fn close(&self, request: CloseRequest, budget: Budget) -> Result<CloseAnswer, StoreError> {
        self.locked(request.report, budget, EARLY_CLOSE, |row| row.close(request)).await
    }

    async fn release(&self, fence: Fence, budget: Budget) -> Result<ReleaseAnswer, StoreError> {
        let early = Early::clock(Mutant::ReleaseReadsClockBeforeLock);
        self.locked(fence.report, budget, early, |row| row.release(fence)).await
    }

    async fn read(
        &self,
        report: ReportId,
        newer_than: Option<Version>,
        budget: Budget,
    ) -> Result<ReadAnswer, StoreError> {
        let newer_than = newer_than.filter(|_| !self.shared.mutants.has(Mutant::ReadIgnoresVersion));
        self.snapshot(budget, |tables, _, clock| {
            let Some(row) = tables.rows.get(&report) else { return ReadAnswer::Missing };
            match (row.visible(clock), &row.payload) {
                (Some(visible), _) if newer_than.is_some_and(|known| visible.version <= known) => {
                    ReadAnswer::NotNewer(visible)
                }
                (Some(visible), Some(payload)) => ReadAnswer::Found { visible, payload: payload.as_str().to_owned() },
                _ => ReadAnswer::Unpublished,
            }
        })
    }

    async fn metadata(&self, report: ReportId, budget: Budget) -> Result<Option<Metadata>, StoreError> {
        self.snapshot(budget, |tables, _, clock| tables.rows.get(&report).map(|row| row.metadata(clock)))
    }

    async fn inspect(&self, report: ReportId, budget: Budget) -> Result<Option<ReportStatus>, StoreError> {
        self.snapshot(budget, |tables, now, clock| tables.rows.get(&report).map(|row| row.status(report, now, clock)))
    }

    async fn list(&self, request: ListRequest, budget: Budget) -> Result<Vec<ReportStatus>, StoreError> {
        if request.limit > MAX_BATCH {
            let message = format!("{} rows were asked for at once and the limit is {MAX_BATCH}", request.limit);
            return Err(StoreError::invalid(message));
        }
        self.snapshot(budget, |tables, now, clock| {
            let after = |report: &ReportId| request.after.is_none_or(|after| *report > after);
            let wanted = |row: &Row| !request.leased_only || row.is_kept(now);
            let rows = tables.rows.iter().filter(|(report, row)| after(report) && wanted(row));
            rows.take(request.limit).map(|(report, row)| row.status(*report, now, clock)).collect()
        })
    }

    async fn check(&self, budget: Budget) -> Result<CheckReport, StoreError> {
        self.snapshot(budget, |tables, _, clock| CheckReport {
            engine: format!("memory {}", env!("CARGO_PKG_VERSION")),
            schema_version: 1,
            epoch: tables.epoch,
            isolation: "serial; nothing is durable".to_owned(),
            problems: Vec::new(),
            clock_offset_millis: clock.offset_millis(),
        })
    }

    async fn force_release(&self, report: ReportId, by: Holder, budget: Budget) -> Result<ForceAnswer, StoreError> {
        self.locked(report, budget, Early::default(), |row| row.force_release(by)).await?
    }

    async fn require_source_revision(
        &self,
        report: ReportId,
        revision: SourceRevision,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.locked(report, budget, Early::default(), |row| row.require_revision(revision)).await
    }

    async fn reset_source_revision(
        &self,
        report: ReportId,
        revision: Option<SourceRevision>,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        self.locked(report, budget, Early::default(), |row| row.reset_revision(revision)).await?
    }

    async fn advance_recovery_epoch(&self, to: Epoch, budget: Budget) -> Result<EpochAnswer, StoreError> {
        let _guards = self.lock_all(budget).await?;
        let keeps_leases = self.shared.mutants.has(Mutant::EpochKeepsLeases);
        let mut tables = unpoisoned(&self.shared.tables);
        let from = tables.epoch;
        let accepts_current = self.shared.mutants.has(Mutant::EpochAcceptsCurrent);
        if to < from || (to == from && !accepts_current) {
            return Ok(EpochAnswer::NotAbove { current: from });
        }
        tables.epoch = to;
        let (now, mut ended_leases) = (self.shared.clock.now(), 0);
        for row in tables.rows.values_mut() {
            ended_leases += u64::from(row.owner.is_some() && !row.is_expired(now));
            row.epoch = to;
            if !keeps_leases {
                row.free();
            }
        }
        Ok(EpochAnswer::Advanced { from, ended_leases })
    }

    async fn prune_ledger(&self, older_than: Duration, budget: Budget) -> Result<u64, StoreError> {
        let _guards = self.lock_all(budget).await?;
        let has = |mutant| self.shared.mutants.has(mutant);
        let horizon = self.shared.clock.now().minus(older_than);
        let mut tables = unpoisoned(&self.shared.tables);
        let Tables { rows, ledger, .. } = &mut *tables;
        let pruned = ledger.prune(|ended| {
            let is_old = ended.written_at < horizon || has(Mutant::PruneIgnoresAge);
            let current = rows.get(&ended.report).map_or(Generation::new(0), |row| row.generation);
            is_old && (ended.generation < current || has(Mutant::PruneTakesCurrentGeneration))
        });
        for ended in &pruned {
            if let Some(row) = rows.get_mut(&ended.report).filter(|_| !has(Mutant::PruneForgetsHowFar)) {
                row.pruned_up_to = row.pruned_up_to.max(ended.generation);
            }
        }
        Ok(pruned.len() as u64)
    }

    async fn begin(&self, budget: Budget) -> Result<MemoryTransaction, StoreError> {
        not_spent(budget)?;
        Ok(MemoryTransaction::new(self.clone()))
    }
}

fn valid_ttl(ttl: Duration) -> Result<(), StoreError> {
    let range = MIN_TTL..=MAX_TTL;
    if range.contains(&ttl) { Ok(()) } else { Err(out_of_range("TTL", ttl, &range)) }
}

fn out_of_range(what: &str, found: Duration, range: &RangeInclusive<Duration>) -> StoreError {
    StoreError::invalid(format!("the {what} is {found:?}; it must be from {:?} to {:?}", range.start(), range.end()))
}
