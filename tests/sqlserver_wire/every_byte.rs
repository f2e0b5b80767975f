//! A connection that ends at every byte of every operation, in both directions. The bytes are those of the ciphertext.

use crate::cutting;
use crate::figure::figure;
use crate::subject::Operation;

/// One operation at a time: what is cut is bounded by the server's processors, not by waiting.
static TURN: tokio::sync::Mutex<usize> = tokio::sync::Mutex::const_new(0);

async fn cut_everywhere(operation: Operation) {
    let mut total = TURN.lock().await;
    *total += cutting::cut_everywhere(operation).await;
    figure("faults.bytes_cut", *total as f64, "count engine=babelfish");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn an_acquisition_cut_at_any_byte_is_told_truly_and_resolved() {
    cut_everywhere(Operation::Acquire).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_renewal_cut_at_any_byte_is_told_truly_and_resolved() {
    cut_everywhere(Operation::Renew).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_publication_cut_at_any_byte_is_told_truly_and_resolved() {
    cut_everywhere(Operation::Publish).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_close_cut_at_any_byte_is_told_truly_and_resolved() {
    cut_everywhere(Operation::Close).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_release_cut_at_any_byte_is_told_truly_and_resolved() {
    cut_everywhere(Operation::Release).await;
}
