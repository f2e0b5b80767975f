//! The engine: the only place that spawns. It runs renewals, deadlines and clean-up, and every store call to its end.
//!
//! There are two lanes. The *renewal lane* is a thread of the engine's own, with its own runtime and its own store
//! connections: a caller that blocks its runtime, or shuts it down, stops no renewal. The *caller's lane* is the runtime in
//! which the supervisor was made: acquisitions, publications and reads run there, so that a large payload delays no
//! renewal. On either, a call is a task that outlives the future that asked for it: dropping a database future would stop
//! no statement, but would spoil its connection.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::{CloseAnswer, ReleaseAnswer};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::fence::{Fence, Owner, ReportId};
use crate::policy::LeasePolicy;
use crate::renewal::{Batcher, Pace};
use crate::store::{Budget, CloseRequest};

mod erased;
mod registry;
mod thread;

pub(crate) use erased::{ErasedStore, StoreCall};
pub(crate) use registry::Registry;

/// How long after its budget a store call may still answer before its future is dropped and its outcome is unknown.
const GRACE: Duration = Duration::from_millis(250);

/// How many releases and closes of the background run at once: a shutdown of thousands must not open as many connections.
pub(crate) const CLEAN_UPS_AT_ONCE: usize = 32;

/// Where a store call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The runtime in which the supervisor was made.
    Caller,
    /// The renewal thread.
    Renewal,
}

/// Owned by the supervisor and its guards: when the last of them goes, the engine's thread ends.
pub(crate) struct Engine {
    works: Arc<Works>,
    /// Tells the thread to finish what is under way and end.
    stop: CancellationToken,
    /// Cancelled by the thread as the last thing it does.
    ended: CancellationToken,
}

/// What tasks may hold on to without keeping the engine alive.
pub(crate) struct Works {
    pub(crate) policy: LeasePolicy,
    pub(crate) pace: Arc<Pace>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registry: Registry,
    caller: (Handle, Arc<dyn ErasedStore>),
    /// The caller's runtime was shut down, which is noticed when a call on it is lost: the renewal lane does its work then.
    caller_is_gone: AtomicBool,
    renewal: (Handle, Arc<dyn ErasedStore>),
    tasks: TaskTracker,
    clean_ups: tokio::sync::Semaphore,
    pub(crate) batcher: Batcher,
}

impl Engine {
    /// Starts the engine: on a thread of its own, or on `renew_on`.
    pub(crate) fn start(
        store: Arc<dyn ErasedStore>,
        policy: LeasePolicy,
        clock: Arc<dyn Clock>,
        renew_on: Option<Handle>,
    ) -> std::io::Result<Self> {
        let stop = CancellationToken::new();
        let ended = CancellationToken::new();
        let tasks = TaskTracker::new();
        let renewal_handle = match renew_on {
            Some(handle) => {
                ended.cancel();
                handle
            }
            None => {
                let drain = policy.cleanup_timeout.saturating_add(GRACE);
                thread::start(stop.clone(), ended.clone(), tasks.clone(), drain)?
            }
        };
        let caller_handle = Handle::try_current().unwrap_or_else(|_| renewal_handle.clone());
        let renewal_store = store.for_runtime(&renewal_handle);
        let works = Arc::new(Works {
            pace: Arc::new(Pace::from(&policy)),
            policy,
            clock,
            registry: Registry::default(),
            caller: (caller_handle, store),
            caller_is_gone: AtomicBool::new(false),
            renewal: (renewal_handle, renewal_store),
            tasks,
            clean_ups: tokio::sync::Semaphore::new(CLEAN_UPS_AT_ONCE),
            batcher: Batcher::default(),
        });
        Ok(Self { works, stop, ended })
    }

    pub(crate) fn works(&self) -> &Arc<Works> {
        &self.works
    }

    /// Tells the thread to finish what is under way and end, and waits until it has.
    pub(crate) async fn stop(&self) {
        self.works.tasks.close();
        self.stop.cancel();
        self.ended.cancelled().await;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.works.tasks.close();
        self.stop.cancel();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("policy", &self.works.policy).finish_non_exhaustive()
    }
}

impl Works {
    /// Runs a store call to its end in a task of its own, and answers what it answered. Dropping the future that this
    /// returns stops waiting and nothing else.
    pub(crate) fn call<T: Send + 'static>(
        self: &Arc<Self>,
        lane: Lane,
        limit: Duration,
        call: impl FnOnce(&dyn ErasedStore, Budget) -> StoreCall<T> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + 'static {
        let lane = self.open(lane);
        let store = Arc::clone(&self.lane(lane).1);
        let budget = Budget::within(limit);
        let task = self.spawn(lane, bounded(limit, async move { call(&*store, budget).await }));
        self.joined(lane, task)
    }

    /// Runs any store future of the caller's own (a fenced transaction) like [`call`](Self::call).
    pub(crate) fn run_to_end<T: Send + 'static>(
        self: &Arc<Self>,
        limit: Duration,
        future: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + 'static {
        let lane = self.open(Lane::Caller);
        self.joined(lane, self.spawn(lane, bounded(limit, future)))
    }

    /// Frees a lease in the background, within the clean-up time-out.
    pub(crate) fn release(
        self: &Arc<Self>,
        fence: Fence,
    ) -> impl Future<Output = Result<ReleaseAnswer, StoreError>> + Send + 'static {
        self.clean_up(move |store, budget| store.release(fence, budget))
    }

    /// Closes an acquisition in the background, within the clean-up time-out.
    pub(crate) fn close(
        self: &Arc<Self>,
        request: CloseRequest,
    ) -> impl Future<Output = Result<CloseAnswer, StoreError>> + Send + 'static {
        self.clean_up(move |store, budget| store.close(request, budget))
    }

    /// Closes an acquisition whose answer nobody waits for any more.
    pub(crate) fn close_unlearned(self: &Arc<Self>, report: ReportId, owner: Owner) {
        let close = self.close(CloseRequest { report, owner, learned: None });
        self.detach(async move {
            match close.await {
                Ok(CloseAnswer::Ended(_) | CloseAnswer::NoLongerKnown(_)) => {}
                Err(error) => {
                    tracing::warn!(%report, %owner, %error, "could not close a cancelled acquisition; it ends with its TTL");
                }
            }
        });
    }

    /// Runs an idempotent clean-up in the background, again while it fails for a passing reason and there is time.
    pub(crate) fn clean_up<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl Fn(&dyn ErasedStore, Budget) -> StoreCall<T> + Send + Sync + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + 'static {
        let works = Arc::clone(self);
        let limit = self.policy.cleanup_timeout;
        let task = self.spawn(Lane::Renewal, async move {
            let began = tokio::time::Instant::now();
            let store = Arc::clone(&works.renewal.1);
            let attempts = async {
                let _turn = works.clean_ups.acquire().await;
                loop {
                    // What is left, not the whole limit again: no call is dropped before its own budget is spent.
                    let left = limit.saturating_sub(began.elapsed());
                    match bounded(left, call(&*store, Budget::within(left))).await {
                        Err(error) if error.is_transient() && !left.is_zero() => {
                            tokio::time::sleep(retry_wait(limit)).await;
                        }
                        answer => return answer,
                    }
                }
            };
            tokio::time::timeout(limit.saturating_add(GRACE), attempts)
                .await
                .unwrap_or_else(|_| Err(StoreError::unknown(format!("the clean-up did not succeed within {limit:?}"))))
        });
        self.joined(Lane::Renewal, task)
    }

    /// Spawns a task of the renewal lane that nobody waits for.
    pub(crate) fn detach(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.run_detached(task).abort_handle()
    }

    /// Runs a task of the renewal lane that goes on if nobody waits for it any more.
    pub(crate) fn run_detached(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.spawn(Lane::Renewal, task)
    }

    /// Waits, on a lane: needs no runtime where it is awaited.
    ///
    /// Not a tracked task: it has nothing to finish, and a shutdown that bounds itself by a sleep would wait for its own.
    pub(crate) fn sleep(self: &Arc<Self>, duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        let sleep = async move { tokio::time::sleep(duration).await };
        let mut task = AbortOnDrop(self.lane(Lane::Caller).0.spawn(sleep));
        let works = Arc::clone(self);
        async move {
            if (&mut task.0).await.is_err() {
                works.caller_is_gone.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Runs a blocking build on the caller's runtime.
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        build: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.tasks.spawn_blocking_on(build, &self.lane(Lane::Caller).0)
    }

    pub(crate) fn renewal_store(&self) -> &Arc<dyn ErasedStore> {
        &self.renewal.1
    }

    #[cfg(feature = "test-util")]
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// This lane, or the one that does its work since its runtime is gone.
    fn open(&self, lane: Lane) -> Lane {
        if self.caller_is_gone.load(Ordering::Relaxed) { Lane::Renewal } else { lane }
    }

    fn lane(&self, lane: Lane) -> &(Handle, Arc<dyn ErasedStore>) {
        match self.open(lane) {
            Lane::Caller => &self.caller,
            Lane::Renewal => &self.renewal,
        }
    }

    /// The answer of a spawned call. A call that did not come to its end has an unknown outcome.
    fn joined<T: Send + 'static>(
        self: &Arc<Self>,
        lane: Lane,
        task: JoinHandle<Result<T, StoreError>>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + 'static {
        let works = Arc::clone(self);
        async move {
            match task.await {
                Ok(answer) => answer,
                Err(error) if error.is_panic() => Err(StoreError::unknown("the store panicked").with_source(error)),
                Err(error) => {
                    match lane {
                        Lane::Caller => works.caller_is_gone.store(true, Ordering::Relaxed),
                        // Nothing can be renewed any more: a caller that waits for a lease must not wait for ever.
                        Lane::Renewal => works.registry.close(),
                    }
                    Err(StoreError::unknown("the runtime of the store call was shut down").with_source(error))
                }
            }
        }
    }

    fn spawn<T: Send + 'static>(&self, lane: Lane, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.tasks.spawn_on(task, &self.lane(lane).0)
    }
}

/// A wait before an idempotent call is made again: an eighth of its limit, give or take a half.
fn retry_wait(limit: Duration) -> Duration {
    (limit / 8).min(Duration::from_millis(500)).mul_f64(0.5 + fastrand::f64())
}

/// Bounds a store call by its budget and a grace, in which a store's own, better error may still come.
///
/// The grace of a short budget is short: renewals of a short lease must not keep their places for longer than it lasts.
pub(crate) async fn bounded<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(limit.saturating_add(GRACE.min(limit)), call).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::unknown(format!("the store did not answer within {limit:?}, nor say so itself"))),
    }
}

/// A task that is of no use to anybody else.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use std::future::pending;
    use std::sync::Mutex;

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::testing::{MemoryStore, TokioClock};

    const LIMIT: Duration = Duration::from_secs(5);

    /// A call that is dropped without an answer notes how much of its budget was left.
    struct Call {
        began: Instant,
        budget: Duration,
        answered: bool,
        left: Arc<Mutex<Vec<Duration>>>,
    }

    impl Drop for Call {
        fn drop(&mut self) {
            if !self.answered {
                self.left.lock().unwrap().push(self.budget.saturating_sub(self.began.elapsed()));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_clean_up_is_dropped_before_its_own_budget_is_spent() {
        let policy = LeasePolicy::builder(6 * LIMIT).cleanup_timeout(LIMIT).build().unwrap();
        let clock = Arc::new(TokioClock::start());
        let engine = Engine::start(Arc::new(MemoryStore::new()), policy, clock, Some(Handle::current())).unwrap();
        let left = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&left);
        let began = Instant::now();
        let answer: Result<(), _> = engine
            .works()
            .clean_up(move |_, budget| {
                let left = Arc::clone(&notes);
                let call = Call { began: Instant::now(), budget: budget.remaining(), answered: false, left };
                Box::pin(async move {
                    let mut call = call; // All of it, not the one field below.
                    if began.elapsed() > LIMIT / 2 {
                        pending::<()>().await;
                    }
                    sleep(LIMIT * 3 / 5).await;
                    call.answered = true;
                    Err(StoreError::unavailable("planned: the first attempt fails late"))
                })
            })
            .await;
        assert!(answer.is_err() && began.elapsed() <= LIMIT + GRACE);
        assert_eq!(*left.lock().unwrap(), [Duration::ZERO], "one call was dropped, with nothing left of its budget");
    }
}
