//! What a test and the process of one worker say to each other: a JSON line per request and per answer, over the process's
//! standard input and output. Answers carry the id of their request, so that calls of one store overlap.

use std::time::Duration;

use leasehold::answer::Version;
use leasehold::store::{
    AcquireRequest, AdvanceRequest, Budget, CloseRequest, ListRequest, PublishRequest, StoreError, StoreErrorKind,
};
use leasehold::{Epoch, Fence, Holder, ReportId, SourceRevision};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What every answer begins with: the process is a test binary, whose harness has words of its own on the same output.
pub(crate) const MARK: &str = "@answer ";

/// A line to the process.
#[derive(Serialize, Deserialize)]
pub(crate) enum Line {
    /// A call, to be answered.
    Call(Call),
    /// Nobody waits for this call any more, or uses the transaction that it began. Not answered.
    GiveUp(u64),
}

/// A call of the store.
#[derive(Serialize, Deserialize)]
pub(crate) struct Call {
    /// Repeated in the answer.
    pub(crate) id: u64,
    /// Which of the store's sets of connections: 0 is the first, and every `for_runtime` makes one more.
    pub(crate) connections: u64,
    /// What is left of the budget: instants mean nothing to another process.
    pub(crate) budget_millis: u64,
    /// What is asked.
    pub(crate) ask: Ask,
}

impl Call {
    /// The budget, counted from now.
    pub(crate) fn budget(&self) -> Budget {
        Budget::within(Duration::from_millis(self.budget_millis))
    }
}

/// Every operation of a store, and what the test asks of the process itself.
#[derive(Serialize, Deserialize)]
pub(crate) enum Ask {
    /// The process's id. The first answer also says that the store is open.
    ProcessId,
    /// How many calls wait for the write lock.
    WaitingCalls,
    Provision(ReportId),
    Acquire(AcquireRequest),
    Renew(Fence, Duration),
    RenewMany(Vec<Fence>, Duration),
    Publish(PublishRequest),
    PublishAndAdvance(AdvanceRequest),
    Close(CloseRequest),
    Release(Fence),
    Read(ReportId, Option<Version>),
    Metadata(ReportId),
    Inspect(ReportId),
    List(ListRequest),
    Check,
    ForceRelease(ReportId, Holder),
    RequireSourceRevision(ReportId, SourceRevision),
    ResetSourceRevision(ReportId, Option<SourceRevision>),
    AdvanceRecoveryEpoch(Epoch),
    PruneLedger(Duration),
    /// Begins a transaction, which is known by this call's id from then on.
    Begin,
    /// Adds a statement with one value to a transaction.
    Execute(u64, String, i64),
    /// Ends a transaction.
    PublishIn(u64, PublishRequest),
    /// Ends a transaction.
    Rollback(u64),
}

impl Ask {
    /// Whether a lost answer leaves nothing open.
    pub(crate) fn changes_nothing(&self) -> bool {
        matches!(
            self,
            Self::ProcessId
                | Self::WaitingCalls
                | Self::Read(..)
                | Self::Metadata(_)
                | Self::Inspect(_)
                | Self::List(_)
                | Self::Check
                | Self::Begin
                | Self::Execute(..)
                | Self::Rollback(_)
        )
    }
}

/// A line from the process, after the [`MARK`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The call's.
    pub(crate) id: u64,
    /// What the store answered, in the form of its type.
    pub(crate) answer: Result<Value, Failure>,
}

/// A [`StoreError`] on its way: its driver's error becomes text.
#[derive(Serialize, Deserialize)]
pub(crate) struct Failure {
    kind: StoreErrorKind,
    message: String,
    source: Option<String>,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        Self { kind: error.kind(), message: error.to_string(), source }
    }
}

impl From<Failure> for StoreError {
    fn from(Failure { kind, message, source }: Failure) -> Self {
        let error = Self::new(kind, message);
        match source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}
