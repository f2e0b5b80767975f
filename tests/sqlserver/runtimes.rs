//! A store belongs to the runtime in which it was made, and is called from anywhere.

use futures::executor::block_on;
use leasehold::answer::PublishAnswer;
use leasehold::store::sqlserver::SqlServerStore;
use leasehold::store::{FencedTransaction, Store};
use leasehold::{StoreError, StoreErrorKind};
use tokio::runtime::Runtime;

use crate::support::Schema;
use crate::words::{TTL, budget, every_worker_operation, publication, says, take, unknown_report};

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

#[test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
fn a_thread_without_a_runtime_uses_a_store() {
    let runtime = runtime();
    let schema = runtime.block_on(Schema::installed());
    let store = {
        let _in = runtime.enter();
        schema.store()
    };
    block_on(async {
        every_worker_operation(&store).await;
        // A transaction's statements are driven here, and limited by the other runtime's clock.
        let fence = take(&store).await;
        let mut transaction = store.begin(budget()).await.unwrap();
        let sql = format!("INSERT INTO {}.Notes (Note) VALUES (@P1)", schema.quoted());
        assert_eq!(transaction.execute(&sql, &[&7_i64], budget()).await.unwrap(), 1);
        let sql = format!("SELECT Note FROM {}.Notes", schema.quoted());
        assert_eq!(transaction.query(&sql, &[], budget()).await.unwrap().len(), 1);
        let answer = transaction.publish(publication(fence, "a report"), budget()).await.unwrap();
        assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
        store.begin(budget()).await.unwrap().rollback(budget()).await.unwrap();
        store.install(budget()).await.unwrap();
    });
    runtime.block_on(async { drop(schema) });
}

#[test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
fn a_store_for_another_runtime_works_when_the_first_is_gone() {
    let (first, second) = (runtime(), runtime());
    let schema = first.block_on(Schema::installed());
    let store = {
        let _in = first.enter();
        schema.store()
    };
    let fence = block_on(take(&store));
    let other = store.for_runtime(second.handle());
    block_on(other.renew(fence, TTL, budget())).unwrap();
    first.shutdown_background();
    block_on(every_worker_operation(&other));
    block_on(other.renew(fence, TTL, budget())).unwrap();
    drop(schema);
}

#[test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
fn a_store_whose_runtime_was_shut_down_says_so() {
    let runtime = runtime();
    let schema = runtime.block_on(Schema::installed());
    let store: SqlServerStore = {
        let _in = runtime.enter();
        schema.store()
    };
    let fence = block_on(take(&store));
    let mut transaction = block_on(store.begin(budget())).unwrap();
    let unused = block_on(store.begin(budget())).unwrap();
    runtime.shutdown_background();
    let words = ["the runtime that this store's connections belong to was shut down"];
    let kind = StoreErrorKind::Unavailable;
    says(block_on(store.renew(fence, TTL, budget())), kind, &words);
    says(block_on(store.publish(publication(fence, "late"), budget())), kind, &words);
    says(block_on(store.metadata(unknown_report(), budget())), kind, &words);
    says(block_on(store.begin(budget())).map(drop), kind, &words);
    // On its own connection a statement cannot be answered any more; a publication may have been sent.
    let executed: Result<u64, StoreError> = block_on(transaction.execute("SELECT 1", &[], budget()));
    assert_eq!(executed.unwrap_err().kind(), kind);
    let published = block_on(unused.publish(publication(fence, "late"), budget())).unwrap_err();
    assert!(matches!(published.kind(), StoreErrorKind::Unknown | StoreErrorKind::Unavailable), "{published:?}");
    drop(schema);
}
