//! Supervised builds and streams: not one step runs after the loss.

mod support;

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::StreamExt;
use leasehold::LossReason;
use support::*;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn a_build_that_finishes_answers_what_it_built() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let built = guard.supervise(async {
        sleep(secs(100)).await;
        41 + 1
    });
    assert_eq!(built.await.unwrap(), 42);
}

#[tokio::test(start_paused = true)]
async fn a_lost_build_is_not_polled_once_more_and_is_dropped_at_once() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let polls = Arc::new(AtomicUsize::new(0));
    let build = {
        let polls = Arc::clone(&polls);
        poll_fn(move |_| {
            polls.fetch_add(1, Ordering::SeqCst);
            Poll::<()>::Pending
        })
    };
    let mut supervised = Box::pin(guard.supervise(build));
    let waker = CountingWaker::new();
    let mut context = Context::from_waker(&waker.1);
    assert!(supervised.as_mut().poll(&mut context).is_pending());
    assert!(supervised.as_mut().poll(&mut context).is_pending());
    assert_eq!(Arc::strong_count(&polls), 2);
    drop(guard);
    assert_eq!(waker.0.0.load(Ordering::SeqCst), 1, "the task is woken by the loss, once");
    let Poll::Ready(Err(loss)) = supervised.as_mut().poll(&mut context) else { panic!("it is lost") };
    assert_eq!(loss.reason(), LossReason::Released);
    assert_eq!(polls.load(Ordering::SeqCst), 2, "the build is not polled after the loss");
    assert_eq!(Arc::strong_count(&polls), 1, "the build is dropped with the answer, not later");
}

#[tokio::test(start_paused = true)]
async fn a_build_that_moves_to_another_task_is_woken_there() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let mut supervised = Box::pin(guard.supervise(pending::<()>()));
    let (first, second) = (CountingWaker::new(), CountingWaker::new());
    assert!(supervised.as_mut().poll(&mut Context::from_waker(&first.1)).is_pending());
    assert!(supervised.as_mut().poll(&mut Context::from_waker(&second.1)).is_pending());
    drop(guard);
    assert_eq!(second.0.0.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_yields_the_loss_once_and_ends() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let ticks = futures::stream::unfold(0, |tick| async move {
        sleep(secs(1)).await;
        Some((tick, tick + 1))
    });
    let mut stream = pin!(guard.supervise_stream(ticks));
    assert_eq!(stream.next().await.unwrap().unwrap(), 0);
    assert_eq!(stream.next().await.unwrap().unwrap(), 1);
    drop(guard);
    assert_eq!(stream.next().await.unwrap().unwrap_err().reason(), LossReason::Released);
    assert!(stream.next().await.is_none());
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_by_itself_ends_without_a_loss() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let items: Vec<_> = guard.supervise_stream(futures::stream::iter([1, 2])).collect().await;
    assert_eq!(items.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [1, 2]);
}

struct CountingWaker(AtomicUsize);

impl CountingWaker {
    fn new() -> (Arc<Self>, Waker) {
        let this = Arc::new(Self(AtomicUsize::new(0)));
        (Arc::clone(&this), Waker::from(this))
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
