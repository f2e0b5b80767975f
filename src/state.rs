//! What a guard, its handles, its renewal and its publication share: the state of one lease.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Moment};
use crate::error::StoreError;
use crate::fence::{Fence, Generation, Owner};
use crate::loss::{Evidence, Loss, LossReason};

/// The state of one lease. Once it is over it stays over; whoever ends it first says why.
#[derive(Debug)]
pub(crate) struct LeaseState {
    clock: Arc<dyn Clock>,
    /// Never handed out: users get children, so that their cancelling cannot trip the lease without a reason.
    token: CancellationToken,
    /// 1 once it is over, set after `loss` and before `token`: what a supervised build looks at on every poll. A number, because
    /// a truth value costs that build three instructions more.
    over: AtomicUsize,
    publishing: AtomicBool,
    loss: OnceLock<Loss>,
    deadline: AtomicU64,
    confirmed_at: AtomicU64,
    renewals: AtomicU64,
    last_progress: AtomicU64,
    /// Builds on blocking threads, which nothing can stop: while there are any, the lease is left to expire.
    blocking_builds: AtomicUsize,
    rare: Mutex<Rare>,
}

/// What changes rarely and is read rarely.
#[derive(Debug)]
struct Rare {
    fence: Fence,
    /// The owner that a publication on its way may advance to: closed with the lease, so that none is held by nobody.
    next_owner: Option<Owner>,
    last_error: Option<Arc<StoreError>>,
    /// Made for the first who watches: it is larger than all the rest, and most leases are watched by nobody.
    changes: Option<watch::Sender<()>>,
    /// The task that renews the lease.
    renewal: Option<Waker>,
}

impl LeaseState {
    pub(crate) fn new(clock: Arc<dyn Clock>, fence: Fence, confirmed_at: Moment, deadline: Moment) -> Self {
        let now = clock.now().as_nanos();
        Self {
            clock,
            token: CancellationToken::new(),
            over: AtomicUsize::new(0),
            publishing: AtomicBool::new(false),
            loss: OnceLock::new(),
            deadline: AtomicU64::new(deadline.as_nanos()),
            confirmed_at: AtomicU64::new(confirmed_at.as_nanos()),
            renewals: AtomicU64::new(0),
            last_progress: AtomicU64::new(now),
            blocking_builds: AtomicUsize::new(0),
            rare: Mutex::new(Rare { fence, next_owner: None, last_error: None, changes: None, renewal: None }),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(crate) fn fence(&self) -> Fence {
        self.rare().fence
    }

    pub(crate) fn next_owner(&self) -> Option<Owner> {
        self.rare().next_owner
    }

    /// A publication is on its way that may advance the lease to this owner; `None`: not any more.
    pub(crate) fn set_next_owner(&self, next_owner: Option<Owner>) {
        self.rare().next_owner = next_owner;
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.rare().changes.get_or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// Enters the task that renews this generation: it is woken when the lease is over, or should look at the clock. Answers the
    /// fence, or `None` if there is nothing to renew: the lease is over, or goes on under a later generation.
    #[must_use]
    pub(crate) fn renewed_by(&self, waker: &Waker, generation: Generation) -> Option<Fence> {
        let mut rare = self.rare();
        if self.is_over() || rare.fence.generation != generation {
            return None;
        }
        match &mut rare.renewal {
            Some(entered) => entered.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        Some(rare.fence)
    }

    /// Lets the task that renews the lease look at the clock.
    pub(crate) fn wake_renewal(&self) {
        let renewal = self.rare().renewal.take();
        if let Some(renewal) = renewal {
            renewal.wake();
        }
    }

    /// Whether the lease is over, without a look at the clock: one atomic load.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over() != 0
    }

    /// 1 if the lease is over, 0 if not.
    #[inline]
    pub(crate) fn over(&self) -> usize {
        self.over.load(Ordering::Acquire)
    }

    /// Why the lease is over, if it was ended; without a look at the clock.
    pub(crate) fn loss(&self) -> Option<&Loss> {
        if self.is_over() { self.loss.get() } else { None }
    }

    /// Looks at the clock, and ends the lease if its deadline has passed. What remains until then, or why it is over.
    pub(crate) fn check(&self) -> Result<Duration, Loss> {
        if let Some(loss) = self.loss() {
            return Err(loss.clone());
        }
        // In this order: a thread that is stopped between the two must not hold an old deadline against a new time.
        let now = self.now();
        let remaining = self.deadline().since(now);
        if remaining.is_zero() { Err(self.trip(LossReason::DeadlinePassed)) } else { Ok(remaining) }
    }

    /// Ends the lease. Answers the loss that counts: this one, or the one that came first.
    pub(crate) fn trip(&self, reason: LossReason) -> Loss {
        let now = self.now();
        self.end(self.rare(), now, reason)
    }

    /// Ends the lease if it is of this generation: what is known of one that it advanced from says nothing about it.
    pub(crate) fn trip_under(&self, generation: Generation, reason: LossReason) {
        let now = self.now();
        let rare = self.rare();
        if rare.fence.generation == generation {
            self.end(rare, now, reason);
        }
    }

    /// Under the lock that an advance needs too: a lease ends under one fence or goes on under the next, never both.
    fn end(&self, mut rare: MutexGuard<'_, Rare>, now: Moment, reason: LossReason) -> Loss {
        let mut first = false;
        let loss = self.loss.get_or_init(|| {
            first = true;
            Loss::new(Evidence {
                fence: rare.fence,
                reason,
                since_confirmed: now.since(Moment::from_nanos(self.confirmed_at.load(Ordering::Relaxed))),
                past_deadline: now.since(self.deadline()),
                last_error: rare.last_error.clone(),
            })
        });
        // Also by whoever came second: what it was told must hold when it looks again.
        self.over.store(1, Ordering::Release);
        let renewal = rare.renewal.take();
        let changes = rare.changes.clone();
        drop(rare);
        self.token.cancel();
        if let Some(renewal) = renewal {
            renewal.wake();
        }
        if first {
            announce(changes);
            report(loss);
        }
        loss.clone()
    }

    /// A renewal of this fence was confirmed. Without effect if the lease goes on under another fence meanwhile.
    pub(crate) fn confirmed(&self, fence: Fence, confirmed_at: Moment, deadline: Moment) {
        let changes = {
            let mut rare = self.rare();
            if rare.fence != fence {
                return;
            }
            rare.last_error = None;
            self.set_times(confirmed_at, deadline);
            rare.changes.clone()
        };
        self.renewals.fetch_add(1, Ordering::Relaxed);
        announce(changes);
    }

    pub(crate) fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::Relaxed)
    }

    /// The lease goes on under another fence, after a publication that advanced it. `false` if it is over already.
    #[must_use]
    pub(crate) fn advanced(&self, fence: Fence, confirmed_at: Moment, deadline: Moment) -> bool {
        let changes = {
            let mut rare = self.rare();
            if self.is_over() {
                return false;
            }
            rare.fence = fence;
            rare.next_owner = None;
            rare.last_error = None;
            self.set_times(confirmed_at, deadline);
            rare.changes.clone()
        };
        self.publishing.store(false, Ordering::Release);
        announce(changes);
        true
    }

    fn set_times(&self, confirmed_at: Moment, deadline: Moment) {
        self.confirmed_at.store(confirmed_at.as_nanos(), Ordering::Relaxed);
        self.deadline.store(deadline.as_nanos(), Ordering::Release);
    }

    /// A publication of the guard's own is on its way: it will say how the lease goes on.
    pub(crate) fn set_publishing(&self, publishing: bool) {
        self.publishing.store(publishing, Ordering::Release);
    }

    pub(crate) fn is_publishing(&self) -> bool {
        self.publishing.load(Ordering::Acquire)
    }

    pub(crate) fn failed(&self, error: Arc<StoreError>) {
        self.rare().last_error = Some(error);
    }

    pub(crate) fn progress(&self) {
        self.last_progress.store(self.now().as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn last_progress(&self) -> Moment {
        Moment::from_nanos(self.last_progress.load(Ordering::Relaxed))
    }

    pub(crate) fn deadline(&self) -> Moment {
        Moment::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    /// Counts a build on a blocking thread until the mark is dropped.
    pub(crate) fn blocking_build(self: &Arc<Self>) -> BlockingBuild {
        self.blocking_builds.fetch_add(1, Ordering::AcqRel);
        BlockingBuild(Arc::clone(self))
    }

    pub(crate) fn has_blocking_build(&self) -> bool {
        self.blocking_builds.load(Ordering::Acquire) > 0
    }

    fn rare(&self) -> MutexGuard<'_, Rare> {
        // Nothing in here can be left half-written by a panic.
        self.rare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports the end of a lease, after all else was done: a subscriber is foreign code, which may panic.
fn report(loss: &Loss) {
    // A second panic would abort the process.
    if std::thread::panicking() {
        return;
    }
    let (fence, reason) = (loss.fence(), loss.reason());
    if reason.is_own_doing() {
        tracing::debug!(%fence, %reason, "lease ended");
    } else {
        tracing::warn!(%fence, %reason, since_confirmed = ?loss.since_confirmed(), "lease lost");
    }
}

/// Tells the watches, if there are any. Not under the lock: wakers are foreign code.
fn announce(changes: Option<watch::Sender<()>>) {
    if let Some(changes) = changes {
        changes.send_replace(());
    }
}

/// Marks that a build runs on a blocking thread.
#[derive(Debug)]
pub(crate) struct BlockingBuild(Arc<LeaseState>);

impl Drop for BlockingBuild {
    fn drop(&mut self) {
        self.0.blocking_builds.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::fence::{Epoch, ReportId};

    fn fence(generation: i64) -> Fence {
        let (owner, generation) = (Owner::random(), Generation::new(generation));
        Fence { report: ReportId::from_name("report"), owner, generation, epoch: Epoch::new(1) }
    }

    const SECOND: Moment = Moment::from_nanos(1_000_000_000);

    fn at(seconds: u64) -> Moment {
        SECOND.plus(Duration::from_secs(seconds - 1))
    }

    #[derive(Debug)]
    struct StandsStill;

    impl Clock for StandsStill {
        fn now(&self) -> Moment {
            at(10)
        }
    }

    /// A thread that looks at its lease is stopped for a minute, in which the lease is renewed.
    #[derive(Debug, Default)]
    struct StopsTheThread(OnceLock<(Weak<LeaseState>, Fence)>);

    impl Clock for StopsTheThread {
        fn now(&self) -> Moment {
            let Some((lease, fence)) = self.0.get() else { return at(10) };
            if let Some(lease) = lease.upgrade() {
                lease.confirmed(*fence, at(65), at(95));
            }
            at(70)
        }
    }

    #[test]
    fn a_look_that_takes_a_minute_does_not_end_a_lease_that_was_renewed_meanwhile() {
        let (clock, fence) = (Arc::new(StopsTheThread::default()), fence(1));
        let lease = Arc::new(LeaseState::new(Arc::clone(&clock) as Arc<dyn Clock>, fence, at(10), at(40)));
        clock.0.set((Arc::downgrade(&lease), fence)).unwrap();
        assert_eq!(lease.check().unwrap(), Duration::from_secs(25));
    }

    #[test]
    fn a_late_verdict_on_the_fence_that_a_lease_advanced_from_does_not_end_it() {
        let (old, new) = (fence(1), fence(2));
        let lease = LeaseState::new(Arc::new(StandsStill), old, at(10), at(40));
        assert!(lease.advanced(new, at(10), at(40)));
        lease.trip_under(old.generation, LossReason::Published);
        assert!(lease.check().is_ok());
        lease.trip_under(new.generation, LossReason::Expired);
        assert_eq!(lease.check().unwrap_err().reason(), LossReason::Expired);
    }

    #[test]
    fn a_late_renewal_of_the_fence_that_a_lease_advanced_from_moves_no_deadline() {
        let (old, new) = (fence(1), fence(2));
        let lease = LeaseState::new(Arc::new(StandsStill), old, at(10), at(40));
        assert!(lease.advanced(new, at(10), at(30)));
        lease.confirmed(old, at(11), at(41));
        assert_eq!((lease.deadline(), lease.renewals()), (at(30), 0));
    }

    #[test]
    fn a_lease_is_renewed_under_its_own_fence_until_it_is_over() {
        let (old, new) = (fence(1), fence(2));
        let lease = LeaseState::new(Arc::new(StandsStill), old, at(10), at(40));
        let renewed = |fence: Fence| lease.renewed_by(Waker::noop(), fence.generation);
        assert_eq!(renewed(old), Some(old));
        assert!(lease.advanced(new, at(10), at(40)));
        assert_eq!((renewed(old), renewed(new)), (None, Some(new)));
        lease.trip(LossReason::Released);
        assert_eq!(renewed(new), None);
    }

    #[test]
    fn a_lease_that_is_over_does_not_advance() {
        let old = fence(1);
        let lease = LeaseState::new(Arc::new(StandsStill), old, at(10), at(40));
        lease.trip(LossReason::DeadlinePassed);
        assert!(!lease.advanced(fence(2), at(10), at(40)));
        assert_eq!(lease.fence(), old);
    }
}
