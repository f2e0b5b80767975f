//! The end of a supervisor: builds are cancelled, leases released, and what could not be is told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;

use super::LeaseSupervisor;
use crate::engine::{CLEAN_UPS_AT_ONCE, Works};
use crate::error::StoreError;
use crate::fence::Fence;
use crate::loss::LossReason;
use crate::state::LeaseState;
use crate::store::CloseRequest;

/// What a shutdown came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "a lease that was not released keeps others waiting for up to its TTL"]
pub struct ShutdownReport {
    /// How many leases are over and known to the database to be so.
    pub released: usize,
    /// Those that the database did not confirm in time, or that a build on a blocking thread still works under. Each ends
    /// with its TTL.
    pub not_released: Vec<Fence>,
}

impl LeaseSupervisor {
    /// Ends it all: no new leases, every build is cancelled, every lease released. Returns by `limit`, with what could not
    /// be. Afterwards acquisitions answer [`AcquireError::ShutDown`](super::AcquireError::ShutDown), and the renewal thread is
    /// gone.
    ///
    /// Builds get up to half of the limit to notice that they are cancelled before their leases are released. Releases that
    /// dropped guards began in the background are waited for too, so this belongs before the end of `main`:
    ///
    /// ```no_run
    /// # async fn example(supervisor: leasehold::LeaseSupervisor, ctrl_c: impl Future<Output = ()>) {
    /// # async fn work(_: leasehold::LeaseSupervisor) {}
    /// tokio::select! {
    ///     () = work(supervisor.clone()) => {}
    ///     () = ctrl_c => {} // Drops the work, and with it its guards.
    /// }
    /// let left = supervisor.shutdown(std::time::Duration::from_secs(5)).await;
    /// for fence in left.not_released {
    ///     eprintln!("busy until its TTL ends: {fence}");
    /// }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Once polled, the shutdown goes on even if the future is dropped.
    pub async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        let works = Arc::clone(self.works());
        let ended = std::time::Instant::now();
        works.registry.close();
        let leases = works.registry.held();
        for lease in &leases {
            lease.trip(LossReason::Shutdown);
        }
        let pending = Arc::new(Mutex::new(leases));
        let total = lock(&pending).len();
        if total > 0 {
            let releasing = release_all(Arc::clone(&works), Arc::clone(&pending), limit);
            let releasing = works.run_detached(releasing);
            tokio::select! {
                _ = releasing => {}
                // It bounds itself, unless nobody drives the runtime that it is on.
                () = works.sleep(limit) => {}
            }
        }
        let left = limit.saturating_sub(ended.elapsed());
        tokio::select! {
            () = self.engine.stop() => {}
            () = works.sleep(left) => {}
        }
        let pending = lock(&pending).clone();
        works.registry.forget_all_but(&pending);
        let not_released: Vec<Fence> = pending.iter().map(|lease| lease.fence()).collect();
        if !not_released.is_empty() {
            tracing::warn!(leases = not_released.len(), "leases could not be released; each ends with its TTL");
        }
        ShutdownReport { released: total - not_released.len(), not_released }
    }
}

fn lock(leases: &Mutex<Vec<Arc<LeaseState>>>) -> std::sync::MutexGuard<'_, Vec<Arc<LeaseState>>> {
    leases.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Releases every lease of `pending`, and takes out what is done, until `limit`.
async fn release_all(works: Arc<Works>, pending: Arc<Mutex<Vec<Arc<LeaseState>>>>, limit: Duration) {
    let all = async {
        // A build that notices at once is gone before its report is free.
        let _ = tokio::time::timeout(limit / 2, works.registry.emptied()).await;
        let leases = lock(&pending).clone();
        // No more at once than can be on their way, so that the time-out of each begins with its turn.
        let mut releases = futures::stream::iter(leases)
            .filter(|lease| std::future::ready(!lease.has_blocking_build()))
            .map(|lease| async {
                let answer = hand_back(&works, &lease).await;
                (lease, answer)
            })
            .buffer_unordered(CLEAN_UPS_AT_ONCE);
        while let Some((lease, answer)) = releases.next().await {
            match answer {
                Ok(()) => lock(&pending).retain(|other| !Arc::ptr_eq(other, &lease)),
                Err(error) => tracing::debug!(fence = %lease.fence(), %error, "a release failed"),
            }
        }
    };
    // Within the limit, so that there is time left to say so.
    let _ = tokio::time::timeout(limit.mul_f64(0.95), all).await;
}

/// Releases a lease, and the one that a publication on its way may have advanced it to.
async fn hand_back(works: &Arc<Works>, lease: &LeaseState) -> Result<(), StoreError> {
    let fence = lease.fence();
    if let Some(owner) = lease.next_owner() {
        works.close(CloseRequest { report: fence.report, owner, learned: None }).await?;
    }
    works.release(fence).await.map(drop)
}
