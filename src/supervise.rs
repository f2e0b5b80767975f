//! Builds and streams that stop the moment their lease is lost.
//!
//! Per poll, supervision costs an atomic load and a comparison of wakers: no lock, no allocation. The loss is looked at
//! *before* the build is polled, so that not one more step of it runs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, RawWakerVTable, Waker};

use futures::stream::{FusedStream, Stream};
use pin_project::pin_project;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::loss::Loss;
use crate::state::LeaseState;

/// A build under a lease: made by [`LeaseGuard::supervise`](crate::LeaseGuard::supervise).
///
/// Answers what the build answers, or the [`Loss`] as soon as the lease is lost; then the build is dropped at once.
///
/// # Panics
/// If it is polled again after it was ready.
#[pin_project]
#[must_use = "a build does nothing unless it is awaited"]
pub struct Supervised<F> {
    #[pin]
    build: Option<F>,
    #[pin]
    watch: LossWatch,
}

/// A stream under a lease: made by [`LeaseGuard::supervise_stream`](crate::LeaseGuard::supervise_stream).
///
/// Yields what the stream yields, each as `Ok`. When the lease is lost it drops the stream, yields the [`Loss`] once, and
/// ends.
#[pin_project]
#[must_use = "a stream does nothing unless it is polled"]
pub struct SupervisedStream<S> {
    #[pin]
    stream: Option<S>,
    #[pin]
    watch: LossWatch,
}

/// Sees to it that the task is woken by a loss.
#[pin_project]
struct LossWatch {
    state: Arc<LeaseState>,
    #[pin]
    cancelled: WaitForCancellationFutureOwned,
    /// The waker that `cancelled` has; at first one that wakes nobody.
    waker: Waker,
    /// Where the vtable lies of the waker that `waker` was cloned from; 0 if none is to be taken for it.
    ///
    /// A clone may name another copy of the same vtable, because the compiler keeps one for each unit that it generates: that of
    /// tokio's `block_on` does. `Waker::will_wake` would then say no at every poll, and every poll take the token's lock.
    vtable: usize,
}

impl LossWatch {
    fn new(state: Arc<LeaseState>) -> Self {
        let cancelled = state.token().clone().cancelled_owned();
        Self { state, cancelled, waker: Waker::noop().clone(), vtable: 0 }
    }

    /// Whether the lease is lost; if not, this task will be woken when it is.
    ///
    /// Inlined: a call of its own would cost more than all it does.
    #[inline]
    fn is_lost(self: Pin<&mut Self>, context: &mut Context<'_>) -> bool {
        let (waker, over) = (context.waker(), self.state.over());
        // Both questions in one comparison: the end of the lease makes the address odd, and no vtable lies at an odd one.
        let goes_on = waker.data() == self.waker.data() && vtable_of(waker) | over == self.vtable;
        if goes_on { false } else { self.register(context) }
    }

    /// The same without a short cut: enters the waker, if the lease goes on.
    #[cold]
    fn register(self: Pin<&mut Self>, context: &mut Context<'_>) -> bool {
        if self.state.is_over() {
            return true;
        }
        let this = self.project();
        let waker = context.waker();
        this.waker.clone_from(waker);
        // Only a clone that shares its data keeps that alive, and so from being another task's one day.
        *this.vtable = if this.waker.data() == waker.data() { vtable_of(waker) } else { 0 };
        this.cancelled.poll(context).is_ready()
    }

    fn loss(&self) -> Loss {
        self.state.loss().cloned().expect("a lease is over only after its loss was set")
    }
}

const _: () = assert!(align_of::<RawWakerVTable>() > 1, "the address of a vtable is even");

/// An address, not a pointer, which would keep the future from being sent to another thread.
#[inline]
fn vtable_of(waker: &Waker) -> usize {
    std::ptr::from_ref(waker.vtable()).addr()
}

impl<F> Supervised<F> {
    pub(crate) fn new(build: F, state: Arc<LeaseState>) -> Self {
        Self { build: Some(build), watch: LossWatch::new(state) }
    }
}

impl<F: Future> Future for Supervised<F> {
    type Output = Result<F::Output, Loss>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.watch.as_mut().is_lost(context) {
            this.build.set(None);
            return Poll::Ready(Err(this.watch.loss()));
        }
        let build = this.build.as_mut().as_pin_mut().expect("a supervised build was polled after it was ready");
        let output = std::task::ready!(build.poll(context));
        this.build.set(None);
        Poll::Ready(Ok(output))
    }
}

impl<F> std::fmt::Debug for Supervised<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervised").field("fence", &self.watch.state.fence()).finish_non_exhaustive()
    }
}

impl<S> SupervisedStream<S> {
    pub(crate) fn new(stream: S, state: Arc<LeaseState>) -> Self {
        Self { stream: Some(stream), watch: LossWatch::new(state) }
    }
}

impl<S: Stream> Stream for SupervisedStream<S> {
    type Item = Result<S::Item, Loss>;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let Some(stream) = this.stream.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        if this.watch.as_mut().is_lost(context) {
            this.stream.set(None);
            return Poll::Ready(Some(Err(this.watch.loss())));
        }
        let item = std::task::ready!(stream.poll_next(context));
        if item.is_none() {
            this.stream.set(None);
        }
        Poll::Ready(item.map(Ok))
    }
}

impl<S: Stream> FusedStream for SupervisedStream<S> {
    fn is_terminated(&self) -> bool {
        self.stream.is_none()
    }
}

impl<S> std::fmt::Debug for SupervisedStream<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SupervisedStream").field("fence", &self.watch.state.fence()).finish_non_exhaustive()
    }
}
