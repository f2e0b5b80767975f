//! A future that is dropped after it was pending so often.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

pub(crate) type Subjected = Pin<Box<dyn Future<Output = ()>>>;

/// No await of a subject takes longer than this, unless it hangs: the longest are those of a lease that is lost.
const HANGS: Duration = Duration::from_secs(300);

/// Drops the future when it is pending for the `point`-th time, `linger` later. `false` if it was ready before that.
pub(crate) async fn drop_at(point: usize, linger: Duration, mut future: Subjected) -> bool {
    let mut pending = 0;
    let counting = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(false),
        Poll::Pending => {
            pending += 1;
            if pending == point { Poll::Ready(true) } else { Poll::Pending }
        }
    });
    let dropped = tokio::time::timeout(HANGS, counting).await.expect("no await hangs");
    if dropped && !linger.is_zero() {
        // Not polled meanwhile: what it asked for goes on, and nobody reads the answer.
        tokio::time::sleep(linger).await;
    }
    dropped
}
