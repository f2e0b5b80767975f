//! Builds and streams that stop the moment their lease is lost.
//!
//! Per poll, supervision costs an atomic load and a comparison of wakers: no lock, no allocation. The loss is looked at
//! *before* the build is polled, so that not one more step of it runs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

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
    /// The waker that `cancelled` has. At first one that wakes nobody, which needs no entry: then there is always one to compare
    /// with, and no poll asks whether there is.
    waker: Waker,
}

impl LossWatch {
    fn new(state: Arc<LeaseState>) -> Self {
        let cancelled = state.token().clone().cancelled_owned();
        Self { state, cancelled, waker: Waker::noop().clone() }
    }

    /// Whether the lease is lost; if not, this task will be woken when it is.
    ///
    /// Inlined: a call of its own would cost more than all it does.
    #[inline]
    fn is_lost(self: Pin<&mut Self>, context: &mut Context<'_>) -> bool {
        if self.state.is_over() {
            return true;
        }
        if self.waker.will_wake(context.waker()) { false } else { self.register(context) }
    }

    #[cold]
    fn register(self: Pin<&mut Self>, context: &mut Context<'_>) -> bool {
        let this = self.project();
        this.waker.clone_from(context.waker());
        this.cancelled.poll(context).is_ready()
    }

    fn loss(&self) -> Loss {
        self.state.loss().cloned().expect("a lease is over only after its loss was set")
    }
}

impl<F> Supervised<F> {
    pub(crate) fn new(build: F, state: Arc<LeaseState>) -> Self {
        Self { build: Some(build), watch: LossWatch::new(state) }
    }
}

impl<F: Future> Future for Supervised<F> {
    type Output = Result<F::Output, Loss>;

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
