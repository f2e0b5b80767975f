//! A connection that ends at every byte of every operation, in both directions.

use crate::cutting::cut_everywhere;
use crate::figure::figure;
use crate::subject::Operation;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_cut_at_any_byte_is_told_truly_and_resolved() {
    let mut total = 0;
    for operation in Operation::ALL {
        total += cut_everywhere(operation).await;
    }
    figure("faults.bytes_cut", total as f64, "count engine=postgres");
}
