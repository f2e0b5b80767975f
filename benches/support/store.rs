//! A store that keeps nothing and answers at once, as a bench has told it to: what is measured in front of it is the client.

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leasehold::answer::{
    AcquireAnswer, Acquired, BatchRenewal, CheckReport, CloseAnswer, Ending, EpochAnswer, ForceAnswer, Metadata,
    ProvisionAnswer, PublishAnswer, ReadAnswer, Refusal, ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer,
    Version,
};
use leasehold::store::{
    AcquireRequest, AdvanceRequest, Budget, CloseRequest, FencedTransaction, ListRequest, PublishRequest, Store,
};
use leasehold::{Epoch, Fence, Generation, Holder, Owner, ReportId, SourceRevision, StoreError};
use tokio::runtime::Handle;

/// What renewals are answered.
#[allow(dead_code)] // Each bench needs some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewals {
    /// With a fresh TTL.
    Confirmed = 0,
    /// Superseded.
    Refused = 1,
    /// Not at all.
    Silent = 2,
}

/// The store. Every lease is free, and every release succeeds. Clones are the same store.
#[derive(Debug, Clone)]
pub(crate) struct ScriptedStore {
    script: Arc<Script>,
}

#[derive(Debug)]
struct Script {
    renewals: AtomicU8,
    /// When the refusal of each owner was answered.
    refused_at: Mutex<HashMap<Owner, Instant>>,
}

impl ScriptedStore {
    pub(crate) fn new(renewals: Renewals) -> Self {
        Self { script: Arc::new(Script { renewals: AtomicU8::new(renewals as u8), refused_at: Mutex::default() }) }
    }

    /// When this owner's refusal was answered, if it was.
    #[allow(dead_code)] // Of those benches that lose leases.
    pub(crate) fn refused_at(&self, owner: Owner) -> Option<Instant> {
        self.script.refused_at.lock().expect("no panic").get(&owner).copied()
    }

    async fn answer(&self, fence: Fence, ttl: Duration) -> RenewAnswer {
        match self.script.renewals.load(Ordering::Relaxed) {
            0 => RenewAnswer::Renewed { remaining: ttl },
            1 => {
                let by = fence.generation.next().expect("the first generation has a next");
                self.script.refused_at.lock().expect("no panic").insert(fence.owner, Instant::now());
                RenewAnswer::Refused(Refusal::Superseded { by })
            }
            _ => pending().await,
        }
    }
}

/// Operations that no bench asks for.
macro_rules! not_served {
    ($($name:ident($($argument:ty),*) -> $answer:ty;)*) => {
        $(async fn $name(&self, $(_: $argument,)* _: Budget) -> Result<$answer, StoreError> {
            Err(StoreError::rejected(concat!("this store does not serve ", stringify!($name))))
        })*
    };
}

impl Store for ScriptedStore {
    type Transaction = NoTransaction;

    fn for_runtime(&self, _: &Handle) -> Self {
        self.clone()
    }

    async fn provision(&self, _: ReportId, _: Budget) -> Result<ProvisionAnswer, StoreError> {
        Ok(ProvisionAnswer::Created)
    }

    async fn acquire(&self, request: AcquireRequest, _: Budget) -> Result<AcquireAnswer, StoreError> {
        let AcquireRequest { report, owner, ttl, .. } = request;
        let fence = Fence { report, owner, generation: Generation::new(1), epoch: Epoch::new(1) };
        Ok(AcquireAnswer::Acquired(Acquired { fence, remaining: ttl, visible: None }))
    }

    async fn renew(&self, fence: Fence, ttl: Duration, _: Budget) -> Result<RenewAnswer, StoreError> {
        Ok(self.answer(fence, ttl).await)
    }

    async fn renew_many(&self, fences: Vec<Fence>, ttl: Duration, _: Budget) -> Result<Vec<BatchRenewal>, StoreError> {
        let mut answers = Vec::with_capacity(fences.len());
        for fence in fences {
            answers.push(BatchRenewal::Answered(self.answer(fence, ttl).await));
        }
        Ok(answers)
    }

    async fn close(&self, _: CloseRequest, _: Budget) -> Result<CloseAnswer, StoreError> {
        Ok(CloseAnswer::Ended(Ending::Closed))
    }

    async fn release(&self, _: Fence, _: Budget) -> Result<ReleaseAnswer, StoreError> {
        Ok(ReleaseAnswer::Released)
    }

    not_served! {
        publish(PublishRequest) -> PublishAnswer;
        publish_and_advance(AdvanceRequest) -> PublishAnswer;
        read(ReportId, Option<Version>) -> ReadAnswer;
        metadata(ReportId) -> Option<Metadata>;
        inspect(ReportId) -> Option<ReportStatus>;
        list(ListRequest) -> Vec<ReportStatus>;
        check() -> CheckReport;
        force_release(ReportId, Holder) -> ForceAnswer;
        require_source_revision(ReportId, SourceRevision) -> RevisionAnswer;
        reset_source_revision(ReportId, Option<SourceRevision>) -> RevisionAnswer;
        advance_recovery_epoch(Epoch) -> EpochAnswer;
        prune_ledger(Duration) -> u64;
        begin() -> NoTransaction;
    }
}

/// There is none.
#[derive(Debug)]
pub(crate) enum NoTransaction {}

impl FencedTransaction for NoTransaction {
    async fn publish(self, _: PublishRequest, _: Budget) -> Result<PublishAnswer, StoreError> {
        match self {}
    }

    async fn rollback(self, _: Budget) -> Result<(), StoreError> {
        match self {}
    }
}
