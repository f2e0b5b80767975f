//! Row locks that calls really wait for, in the order in which they came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedMutexGuard, watch};

use crate::error::StoreError;
use crate::fence::ReportId;
use crate::store::Budget;

/// The row locks of one database.
#[derive(Debug, Default)]
pub(super) struct RowLocks(Mutex<HashMap<ReportId, Arc<RowLock>>>);

/// A held row lock; dropping it lets go.
pub(super) type RowGuard = OwnedMutexGuard<()>;

#[derive(Debug, Default)]
pub(super) struct RowLock {
    lock: Arc<tokio::sync::Mutex<()>>,
    waiting: watch::Sender<usize>,
}

impl RowLocks {
    pub(super) fn of(&self, report: ReportId) -> Arc<RowLock> {
        Arc::clone(unpoisoned(&self.0).entry(report).or_default())
    }
}

impl RowLock {
    /// Waits for the lock as long as the budget allows.
    pub(super) async fn lock(&self, budget: Budget) -> Result<RowGuard, StoreError> {
        if let Some(guard) = self.try_lock() {
            return Ok(guard);
        }
        let _waiting = Waiting::count(&self.waiting);
        tokio::time::timeout(budget.remaining(), Arc::clone(&self.lock).lock_owned()).await.map_err(|_| {
            StoreError::unavailable("the row's lock was not had within the budget: somebody else holds it")
        })
    }

    pub(super) fn try_lock(&self) -> Option<RowGuard> {
        Arc::clone(&self.lock).try_lock_owned().ok()
    }

    /// Returns once at least this many calls wait.
    #[cfg(feature = "conformance")]
    pub(super) async fn wait_for_waiters(&self, waiters: usize) {
        let waiting = self.waiting.subscribe().wait_for(|waiting| *waiting >= waiters).await.map(drop);
        waiting.expect("the lock outlives its borrow");
    }
}

/// Counts a call while it waits, also if its future is dropped.
struct Waiting<'a>(&'a watch::Sender<usize>);

impl<'a> Waiting<'a> {
    fn count(waiting: &'a watch::Sender<usize>) -> Self {
        waiting.send_modify(|waiting| *waiting += 1);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

/// A test that panicked elsewhere has said so already; the data is whole after every operation.
pub(super) fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
