//! The leases that are held now: for shutdown, and for the pulse that notices a machine that was suspended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::Works;
use crate::clock::Moment;
use crate::fence::Owner;
use crate::state::LeaseState;

/// How much more than the runtime's own clock the boot clock must have moved to count as a suspension.
const JUMP: Duration = Duration::from_millis(5);

/// Every lease that has a guard.
#[derive(Default)]
pub(crate) struct Registry {
    leases: Mutex<Leases>,
    /// Wakes the shutdown when a guard is gone.
    left: Notify,
}

#[derive(Default)]
struct Leases {
    /// By the owner of their acquisition; a lease that advances keeps its place.
    held: HashMap<Owner, Arc<LeaseState>>,
    closed: bool,
    /// Runs while anything is held.
    pulse: Option<AbortHandle>,
}

impl Registry {
    /// Enters a lease. `false` if the supervisor was shut down.
    pub(crate) fn enter(&self, works: &Arc<Works>, key: Owner, state: &Arc<LeaseState>) -> bool {
        let mut leases = self.leases();
        if leases.closed {
            return false;
        }
        leases.held.insert(key, Arc::clone(state));
        leases.pulse.get_or_insert_with(|| works.detach(pulse(Arc::clone(works))));
        true
    }

    pub(crate) fn leave(&self, key: Owner) {
        let mut leases = self.leases();
        leases.held.remove(&key);
        if leases.held.is_empty()
            && let Some(pulse) = leases.pulse.take()
        {
            pulse.abort();
        }
        drop(leases);
        self.left.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.leases().closed
    }

    /// Lets nothing in any more. What is held is over or about to be, so nobody needs the pulse.
    pub(crate) fn close(&self) {
        let mut leases = self.leases();
        leases.closed = true;
        if let Some(pulse) = leases.pulse.take() {
            pulse.abort();
        }
    }

    /// Forgets every lease but these: the others are handed back, whether or not their guards are still there.
    pub(crate) fn forget_all_but(&self, kept: &[Arc<LeaseState>]) {
        self.leases().held.retain(|_, lease| kept.iter().any(|other| Arc::ptr_eq(other, lease)));
        self.left.notify_waiters();
    }

    /// What is held now.
    pub(crate) fn held(&self) -> Vec<Arc<LeaseState>> {
        self.leases().held.values().cloned().collect()
    }

    /// Waits until nothing is held.
    pub(crate) async fn emptied(&self) {
        loop {
            let left = self.left.notified();
            if self.leases().held.is_empty() {
                return;
            }
            left.await;
        }
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at the clock once a slice, while anything is held.
///
/// A timer of the runtime sleeps by a clock that stops while the machine is suspended. So after a resume it would fire too
/// late by as long as that took. The pulse notices within one slice that more time has passed than the runtime knows of,
/// ends every lease whose deadline has passed, and wakes the renewals of the others. One task does it for all leases.
async fn pulse(works: Arc<Works>) {
    let slice = (works.policy.margin / 4).clamp(Duration::from_millis(1), Duration::from_secs(1));
    let mut last = reading(&works);
    loop {
        tokio::time::sleep(slice).await;
        let now = reading(&works);
        let by_clock = now.0.since(last.0);
        let by_runtime = now.1.saturating_duration_since(last.1);
        if by_clock > by_runtime + JUMP {
            let leases = works.registry.held();
            tracing::debug!(missed = ?(by_clock - by_runtime), leases = leases.len(), "the machine was suspended");
            for lease in leases {
                let _ = lease.check();
                // Its timer stood still while time went on.
                lease.wake_renewal();
            }
        }
        last = now;
    }
}

fn reading(works: &Works) -> (Moment, tokio::time::Instant) {
    (works.clock.now(), tokio::time::Instant::now())
}
