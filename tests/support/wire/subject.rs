//! The five operations that change something, each on a fresh report of its own, and what may be answered.

use std::time::Duration;

use leasehold::answer::{
    AcquireAnswer, CloseAnswer, Ending, PublishAnswer, Published, Receipt, ReleaseAnswer, RenewAnswer,
};
use leasehold::store::{AcquireRequest, Budget, CloseRequest, Payload, PublishRequest, Store};
use leasehold::{Epoch, Fence, Generation, Holder, OperationId, Owner, ReportId, StoreError};
use uuid::Uuid;

use crate::scene::{TestStore, budget};

/// What a lease of a test has left when it is made, and what a renewal makes of it.
pub(crate) const HELD_FOR_HOURS: u64 = 1;
pub(crate) const RENEWED_FOR: Duration = Duration::from_secs(3 * 3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Acquire,
    Renew,
    Publish,
    Close,
    Release,
}

impl Operation {
    pub(crate) const ALL: [Self; 5] = [Self::Acquire, Self::Renew, Self::Publish, Self::Close, Self::Release];

    /// What it answers when all goes well.
    pub(crate) fn success(self) -> Told {
        match self {
            Self::Acquire => Told::Held,
            Self::Renew => Told::Renewed,
            Self::Publish => Told::Published { again: false },
            Self::Close => Told::Closed,
            Self::Release => Told::Freed { again: false },
        }
    }

    /// What it answers when it is sent again after it was applied.
    pub(crate) fn repetition(self) -> Told {
        match self {
            Self::Publish => Told::Published { again: true },
            Self::Release => Told::Freed { again: true },
            _ => self.success(),
        }
    }
}

/// An answer that is about the very report that was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    Held,
    Renewed,
    Published { again: bool },
    Closed,
    Freed { again: bool },
}

/// One report, and one acquisition of it: the first.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) report: ReportId,
    pub(crate) owner: Owner,
    pub(crate) operation: OperationId,
}

impl Subject {
    pub(crate) fn fresh() -> Self {
        Self { report: ReportId::from_uuid(Uuid::new_v4()), owner: Owner::random(), operation: OperationId::random() }
    }

    pub(crate) fn fence(&self) -> Fence {
        Fence { report: self.report, owner: self.owner, generation: Generation::new(1), epoch: Epoch::new(0) }
    }

    pub(crate) fn payload(&self) -> String {
        format!("the report {}", self.report)
    }

    pub(crate) fn acquire_request(&self) -> AcquireRequest {
        AcquireRequest {
            report: self.report,
            owner: self.owner,
            ttl: RENEWED_FOR,
            holder: Holder::new("at the wire").expect("a label"),
            min_epoch: Epoch::new(0),
            takeover_delay: Duration::ZERO,
            wanted: None,
        }
    }

    pub(crate) fn publish_request(&self) -> PublishRequest {
        let payload = Payload::new(self.payload(), 1_000).expect("a payload");
        PublishRequest { fence: self.fence(), operation: self.operation, payload, revision: None }
    }

    pub(crate) fn close_request(&self) -> CloseRequest {
        let fence = self.fence();
        CloseRequest { report: self.report, owner: self.owner, learned: Some((fence.generation, fence.epoch)) }
    }

    /// Of an acquisition that was never answered.
    pub(crate) fn close_unlearned_request(&self) -> CloseRequest {
        CloseRequest { learned: None, ..self.close_request() }
    }

    /// # Panics
    /// If the answer is about another report, or none that a report like this can have.
    pub(crate) async fn ask(&self, store: &TestStore, operation: Operation) -> Result<Told, StoreError> {
        self.ask_within(budget(), store, operation).await
    }

    pub(crate) async fn ask_within(
        &self,
        budget: Budget,
        store: &TestStore,
        operation: Operation,
    ) -> Result<Told, StoreError> {
        match operation {
            Operation::Acquire => self.acquire(store, budget).await,
            Operation::Renew => match store.renew(self.fence(), RENEWED_FOR, budget).await? {
                RenewAnswer::Renewed { remaining } if remaining == RENEWED_FOR => Ok(Told::Renewed),
                other => panic!("{self:?} was renewed: {other:?}"),
            },
            Operation::Publish => match store.publish(self.publish_request(), budget).await? {
                PublishAnswer::Published(published) => Ok(self.published(&published, false)),
                PublishAnswer::AlreadyPublished(published) => Ok(self.published(&published, true)),
                other => panic!("{self:?} was published: {other:?}"),
            },
            Operation::Close => self.close_within(budget, store, operation).await,
            Operation::Release => match store.release(self.fence(), budget).await? {
                ReleaseAnswer::Released => Ok(Told::Freed { again: false }),
                ReleaseAnswer::AlreadyOver => Ok(Told::Freed { again: true }),
                other => panic!("{self:?} was released: {other:?}"),
            },
        }
    }

    async fn acquire(&self, store: &TestStore, budget: Budget) -> Result<Told, StoreError> {
        match store.acquire(self.acquire_request(), budget).await? {
            AcquireAnswer::Acquired(acquired) => {
                assert_eq!(acquired.fence, self.fence());
                assert!(acquired.remaining <= RENEWED_FOR && acquired.visible.is_none(), "{acquired:?}");
                Ok(Told::Held)
            }
            other => panic!("{self:?} was acquired: {other:?}"),
        }
    }

    /// Makes the outcome of this operation certain.
    pub(crate) async fn close(&self, store: &TestStore, after: Operation) -> Result<Told, StoreError> {
        self.close_within(budget(), store, after).await
    }

    async fn close_within(&self, budget: Budget, store: &TestStore, after: Operation) -> Result<Told, StoreError> {
        let request = match after {
            Operation::Acquire => self.close_unlearned_request(),
            _ => self.close_request(),
        };
        match store.close(request, budget).await? {
            CloseAnswer::Ended(Ending::Published(receipt)) => {
                self.is_of_this(&receipt);
                Ok(Told::Published { again: true })
            }
            CloseAnswer::Ended(Ending::Closed) => Ok(Told::Closed),
            other => panic!("{self:?} was closed: {other:?}"),
        }
    }

    fn published(&self, published: &Published, again: bool) -> Told {
        assert_eq!(published.next, None);
        self.is_of_this(&published.receipt);
        Told::Published { again }
    }

    fn is_of_this(&self, receipt: &Receipt) {
        let Receipt { report, operation, generation, .. } = *receipt;
        assert_eq!((report, operation, generation), (self.report, self.operation, Generation::new(1)), "mixed up");
    }

    /// Asks about this report, which was published long ago, by the lane and where possible the procedure of this operation. Whether
    /// the answer is that of another report can be seen by its receipt.
    ///
    /// # Panics
    /// If it is.
    pub(crate) async fn look(&self, store: &TestStore, operation: Operation) -> Result<(), StoreError> {
        let receipt = match operation {
            Operation::Renew => match store.renew(self.fence(), RENEWED_FOR, budget()).await? {
                RenewAnswer::Published(receipt) => receipt,
                other => panic!("{self:?}: {other:?}"),
            },
            Operation::Acquire => match store.acquire(self.acquire_request(), budget()).await? {
                AcquireAnswer::Ended(Ending::Published(receipt)) => receipt,
                other => panic!("{self:?}: {other:?}"),
            },
            Operation::Publish => match store.publish(self.publish_request(), budget()).await? {
                PublishAnswer::AlreadyPublished(published) => published.receipt,
                other => panic!("{self:?}: {other:?}"),
            },
            Operation::Close | Operation::Release => match store.close(self.close_request(), budget()).await? {
                CloseAnswer::Ended(Ending::Published(receipt)) => receipt,
                other => panic!("{self:?}: {other:?}"),
            },
        };
        self.is_of_this(&receipt);
        Ok(())
    }
}
