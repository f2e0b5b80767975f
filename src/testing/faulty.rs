//! A store whose network is as bad as a test wants it, and that counts what is sent to it.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::answer::{
    AcquireAnswer, BatchRenewal, CheckReport, CloseAnswer, EpochAnswer, ForceAnswer, Metadata, ProvisionAnswer,
    PublishAnswer, ReadAnswer, ReleaseAnswer, RenewAnswer, ReportStatus, RevisionAnswer, Version,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::fence::{Epoch, Fence, Holder, ReportId, SourceRevision};
use crate::store::{AcquireRequest, AdvanceRequest, Budget, CloseRequest, ListRequest, PublishRequest, Store};

/// An operation of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // The operations' own names.
pub enum Operation {
    Provision,
    Acquire,
    Renew,
    RenewMany,
    Publish,
    PublishAndAdvance,
    Close,
    Release,
    Read,
    Metadata,
    Inspect,
    List,
    Check,
    ForceRelease,
    RequireSourceRevision,
    ResetSourceRevision,
    AdvanceRecoveryEpoch,
    PruneLedger,
    Begin,
}

/// What befalls one call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// It is not applied and answers this kind of error.
    Fail(StoreErrorKind),
    /// It is applied, and its answer is lost: [`Unknown`](StoreErrorKind::Unknown).
    LoseAnswer,
    /// It is not applied, and never answers.
    Hang,
    /// It is applied, and never answers.
    HangAfterwards,
    /// It is held at a gate, and applied once that opens.
    Hold(Gate),
    /// It is applied, and its answer is held at a gate.
    HoldAnswer(Gate),
    /// It panics.
    Panic,
}

/// A place at which a call is held until the test lets it go. Clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate {
    arrived: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self { arrived: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    /// Waits until a call is held here; each arrival is reported once.
    pub async fn arrival(&self) {
        if let Ok(permit) = self.arrived.acquire().await {
            permit.forget();
        }
    }

    /// Lets one call through, now or when it arrives.
    pub fn open(&self) {
        self.open.add_permits(1);
    }

    async fn pass(&self) {
        self.arrived.add_permits(1);
        if let Ok(permit) = self.open.acquire().await {
            permit.forget();
        }
    }
}

/// A store with planned faults in front of another. Clones, also those for other runtimes, share plans and counts.
///
/// ```
/// use leasehold::testing::{Fault, FaultyStore, MemoryStore, Operation};
///
/// let store = FaultyStore::new(MemoryStore::new());
/// store.plan(Operation::Publish, Fault::LoseAnswer); // The next publish only.
/// assert_eq!(store.calls(Operation::Publish), 0);
/// ```
#[derive(Debug, Clone)]
pub struct FaultyStore<S> {
    inner: S,
    plans: Arc<Mutex<Plans>>,
}

#[derive(Debug, Default)]
struct Plans {
    next: HashMap<Operation, VecDeque<Fault>>,
    always: HashMap<Operation, Fault>,
    calls: HashMap<Operation, usize>,
}

impl<S: Store> FaultyStore<S> {
    /// A store without faults, for now.
    pub fn new(inner: S) -> Self {
        Self { inner, plans: Arc::default() }
    }

    /// The store behind.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Adds a fault for one call of this operation, after those planned before.
    pub fn plan(&self, operation: Operation, fault: Fault) {
        self.plans().next.entry(operation).or_default().push_back(fault);
    }

    /// The fault of every call of this operation for which no other is planned; `None` heals it.
    pub fn plan_always(&self, operation: Operation, fault: impl Into<Option<Fault>>) {
        let mut plans = self.plans();
        match fault.into() {
            Some(fault) => plans.always.insert(operation, fault),
            None => plans.always.remove(&operation),
        };
    }

    /// How many calls of this operation were made.
    #[must_use]
    pub fn calls(&self, operation: Operation) -> usize {
        self.plans().calls.get(&operation).copied().unwrap_or(0)
    }

    /// How many renewals were sent, alone or in batches.
    #[must_use]
    pub fn renewals(&self) -> usize {
        self.calls(Operation::Renew) + self.calls(Operation::RenewMany)
    }

    fn plans(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_fault(&self, operation: Operation) -> Option<Fault> {
        let mut plans = self.plans();
        *plans.calls.entry(operation).or_default() += 1;
        let planned = plans.next.get_mut(&operation).and_then(VecDeque::pop_front);
        planned.or_else(|| plans.always.get(&operation).cloned())
    }

    async fn through<T>(
        &self,
        operation: Operation,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match self.next_fault(operation) {
            None => call.await,
            Some(Fault::Fail(kind)) => Err(StoreError::new(kind, format!("planned: {operation:?} fails"))),
            Some(Fault::LoseAnswer) => {
                let _ = call.await;
                Err(StoreError::unknown(format!("planned: the answer of {operation:?} is lost")))
            }
            Some(Fault::Hang) => pending().await,
            Some(Fault::HangAfterwards) => {
                let _ = call.await;
                pending().await
            }
            Some(Fault::Hold(gate)) => {
                gate.pass().await;
                call.await
            }
            Some(Fault::HoldAnswer(gate)) => {
                let answer = call.await;
                gate.pass().await;
                answer
            }
            Some(Fault::Panic) => panic!("planned: {operation:?} panics"),
        }
    }
}

/// Sends each operation of a store through the planned faults.
macro_rules! faulty_operations {
    ($($name:ident => $operation:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(async fn $name(&self, $($argument: $type,)* budget: Budget) -> Result<$answer, StoreError> {
            self.through(Operation::$operation, self.inner.$name($($argument,)* budget)).await
        })*
    };
}

impl<S: Store> Store for FaultyStore<S> {
    type Transaction = S::Transaction;

    fn for_runtime(&self, runtime: &Handle) -> Self {
        Self { inner: self.inner.for_runtime(runtime), plans: Arc::clone(&self.plans) }
    }

    faulty_operations! {
        provision => Provision(report: ReportId) -> ProvisionAnswer;
        acquire => Acquire(request: AcquireRequest) -> AcquireAnswer;
        renew => Renew(fence: Fence, ttl: Duration) -> RenewAnswer;
        renew_many => RenewMany(fences: Vec<Fence>, ttl: Duration) -> Vec<BatchRenewal>;
        publish => Publish(request: PublishRequest) -> PublishAnswer;
        publish_and_advance => PublishAndAdvance(request: AdvanceRequest) -> PublishAnswer;
        close => Close(request: CloseRequest) -> CloseAnswer;
        release => Release(fence: Fence) -> ReleaseAnswer;
        read => Read(report: ReportId, newer_than: Option<Version>) -> ReadAnswer;
        metadata => Metadata(report: ReportId) -> Option<Metadata>;
        inspect => Inspect(report: ReportId) -> Option<ReportStatus>;
        list => List(request: ListRequest) -> Vec<ReportStatus>;
        check => Check() -> CheckReport;
        force_release => ForceRelease(report: ReportId, by: Holder) -> ForceAnswer;
        require_source_revision => RequireSourceRevision(report: ReportId, revision: SourceRevision) -> RevisionAnswer;
        reset_source_revision => ResetSourceRevision(report: ReportId, revision: Option<SourceRevision>) -> RevisionAnswer;
        advance_recovery_epoch => AdvanceRecoveryEpoch(to: Epoch) -> EpochAnswer;
        prune_ledger => PruneLedger(older_than: Duration) -> u64;
        begin => Begin() -> S::Transaction;
    }
}
