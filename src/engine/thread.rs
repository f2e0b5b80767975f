//! The renewal thread: one current-thread runtime that nobody else can block or shut down.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Starts the thread. It runs until `stop`, then lets the tracked tasks finish for at most `drain`, and cancels `ended` as
/// the last thing it does.
pub(super) fn start(
    stop: CancellationToken,
    ended: CancellationToken,
    tasks: TaskTracker,
    drain: Duration,
) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new().name("leasehold".to_owned()).spawn(move || {
        let _ended = ended.drop_guard();
        runtime.block_on(async {
            stop.cancelled().await;
            if tokio::time::timeout(drain, tasks.wait()).await.is_err() {
                tracing::warn!(tasks = tasks.len(), ?drain, "the renewal thread ends with tasks unfinished");
            }
        });
        // Does not wait for blocking tasks that some store may have left behind.
        runtime.shutdown_background();
    })?;
    Ok(handle)
}
