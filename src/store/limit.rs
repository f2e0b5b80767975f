//! A limit in time for work that runs in its caller's future and not in a task.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

/// What the work came to; `None` once the limit has passed, or the runtime was shut down.
///
/// The clock is that of the connections' runtime, because the caller may have none; and it is asked in a task, because a timer
/// panics when its runtime is shut down under it.
pub(crate) async fn within<T>(runtime: &Handle, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let limit = AbortOnDropHandle::new(runtime.spawn(async move { tokio::time::sleep(limit).await }));
    match select(pin!(work), limit).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn a_runtime_that_is_shut_down_ends_the_wait_without_a_panic() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime");
        let handle = runtime.handle().clone();
        assert_eq!(block_on(within(&handle, Duration::from_secs(60), async { 1 })), Some(1));
        assert_eq!(block_on(within(&handle, Duration::ZERO, std::future::pending::<()>())), None);
        runtime.shutdown_background();
        assert_eq!(block_on(within(&handle, Duration::from_secs(60), std::future::pending::<()>())), None);
    }
}
