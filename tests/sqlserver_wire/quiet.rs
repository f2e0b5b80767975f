//! Connections that stay up: answers in pieces, requests and answers that stand still or vanish.

use crate::losing;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn an_operation_whose_bytes_come_one_by_one_is_answered() {
    losing::split_everywhere().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn an_operation_that_stands_still_for_a_while_is_answered_on_the_same_connection() {
    losing::stand_still_everywhere().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn an_operation_that_is_lost_on_a_connection_that_stays_up_is_unknown_and_resolved() {
    losing::lose_everywhere().await;
}
