//! A build that is polled many times, bare and under each of the ways to stop it.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::future::{AbortHandle, Abortable};
use leasehold::{Acquisition, LeaseGuard, LeasePolicy, LeaseSupervisor, ReportId};
use tokio_util::sync::CancellationToken;

use super::store::{Renewals, ScriptedStore};

/// How often the build is polled in what is measured.
pub(crate) const POLLS: u64 = 10_000;

/// A build that is never ready and does next to nothing per poll. Never inlined, like the state machine of a real build.
pub(crate) struct Build(u64);

impl Build {
    pub(crate) fn new() -> Self {
        Self(0)
    }
}

impl Future for Build {
    type Output = ();

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // Unknown to the compiler: what it does to its memory and to the context's, and that it is never ready.
        black_box(context);
        let polls = black_box(&mut self.0);
        *polls += 1;
        if *polls == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// A build that was polled once, so that what happens at the first poll only is not measured.
pub(crate) struct Polled {
    future: Box<dyn Pollable>,
    waker: Waker,
    _kept: Option<Kept>,
}

/// A lease is held by its guard, and acquired in a runtime.
struct Kept {
    _guard: LeaseGuard,
    _supervisor: LeaseSupervisor,
    _runtime: tokio::runtime::Runtime,
}

/// Polls a future of a known type, as the task that it is part of does.
trait Pollable {
    fn poll(&mut self, waker: &Waker, times: u64);
}

impl<F: Future> Pollable for Pin<Box<F>> {
    fn poll(&mut self, waker: &Waker, times: u64) {
        let mut context = Context::from_waker(waker);
        for _ in 0..times {
            assert!(self.as_mut().poll(&mut context).is_pending());
        }
    }
}

/// A waker as a task has one, with a count of its owners.
struct WakesNobody;

impl Wake for WakesNobody {
    fn wake(self: Arc<Self>) {}
}

impl Polled {
    fn new(future: impl Future + 'static) -> Self {
        let waker = Waker::from(Arc::new(WakesNobody));
        let mut polled = Self { future: Box::new(Box::pin(future)), waker, _kept: None };
        polled.poll(1);
        polled
    }

    pub(crate) fn poll(&mut self, times: u64) {
        self.future.poll(&self.waker, times);
    }
}

pub(crate) fn bare() -> Polled {
    Polled::new(Build::new())
}

pub(crate) fn supervised() -> Polled {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let policy = LeasePolicy::builder(Duration::from_secs(3_600)).build().expect("a policy");
    let (supervisor, guard) = runtime.block_on(async {
        let supervisor = LeaseSupervisor::new(ScriptedStore::new(Renewals::Confirmed), policy).expect("a thread");
        let acquisition = supervisor.acquire(ReportId::from_name("report"), None).await.expect("acquire");
        let Acquisition::Acquired(guard) = acquisition else { panic!("nothing is fresh here") };
        (supervisor, guard)
    });
    let polled = Polled::new(guard.supervise(Build::new()));
    Polled { _kept: Some(Kept { _guard: guard, _supervisor: supervisor, _runtime: runtime }), ..polled }
}

pub(crate) fn run_until_cancelled() -> Polled {
    let token = CancellationToken::new();
    Polled::new(async move { token.run_until_cancelled(Build::new()).await })
}

pub(crate) fn select_biased() -> Polled {
    let token = CancellationToken::new();
    Polled::new(async move {
        tokio::select! {
            biased;
            () = token.cancelled() => None,
            () = Build::new() => Some(()),
        }
    })
}

pub(crate) fn abortable() -> Polled {
    let (_, registration) = AbortHandle::new_pair();
    Polled::new(Abortable::new(Build::new(), registration))
}
