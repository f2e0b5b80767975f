//! A user's transaction on a memory store.

use std::fmt;

use super::{EARLY_PUBLISH, MemoryStore, Mutant, not_spent};
use crate::answer::PublishAnswer;
use crate::error::StoreError;
use crate::store::{Budget, FencedTransaction, PublishRequest};

/// A transaction whose statements are closures: they run when, and only when, the publication is accepted.
///
/// ```
/// # use std::time::Duration;
/// # use std::sync::atomic::{AtomicBool, Ordering};
/// # use std::sync::Arc;
/// use leasehold::store::{Budget, FencedTransaction, Store};
/// use leasehold::testing::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leasehold::StoreError> {
/// # let budget = Budget::within(Duration::from_secs(1));
/// let done = Arc::new(AtomicBool::new(false));
/// let mut transaction = MemoryStore::new().begin(budget).await?;
/// let effect = done.clone();
/// transaction.on_commit(move || effect.store(true, Ordering::SeqCst));
/// transaction.rollback(budget).await?;
/// assert!(!done.load(Ordering::SeqCst));
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a transaction rolls it back"]
pub struct MemoryTransaction {
    store: MemoryStore,
    effects: Vec<Box<dyn FnOnce() + Send>>,
}

impl MemoryTransaction {
    pub(super) fn new(store: MemoryStore) -> Self {
        Self { store, effects: Vec::new() }
    }

    /// Adds a statement. It runs before the publication's answer, while the report's row lock is held.
    pub fn on_commit(&mut self, effect: impl FnOnce() + Send + 'static) {
        self.effects.push(Box::new(effect));
    }
}

impl FencedTransaction for MemoryTransaction {
    async fn publish(self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        let Self { store, effects } = self;
        let mutants = store.shared.mutants.clone();
        let commits = move |answer: &PublishAnswer| match answer {
            PublishAnswer::Published(_) => true,
            PublishAnswer::AlreadyPublished(_) => mutants.has(Mutant::TransactionCommitsAgain),
            _ => mutants.has(Mutant::TransactionCommitsWhenRefused),
        };
        store
            .locked(request.fence.report, budget, EARLY_PUBLISH, |row| {
                let answer = row.publish(&request, None);
                if commits(&answer) {
                    effects.into_iter().for_each(|effect| effect());
                }
                answer
            })
            .await
    }

    async fn rollback(self, budget: Budget) -> Result<(), StoreError> {
        not_spent(budget)
    }
}

impl fmt::Debug for MemoryTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTransaction").field("effects", &self.effects.len()).finish_non_exhaustive()
    }
}
