//! Sessions of a user's pool in states that nobody would want; the conformance suite runs over most of them.

use std::sync::Arc;

use leasehold::answer::{BatchRenewal, PublishAnswer, RenewAnswer};
use leasehold::store::sqlserver::SqlServerStore;
use leasehold::store::{FencedTransaction, ListRequest, Store};
use leasehold::{Epoch, StoreErrorKind};

use crate::support::{Counts, Schema, Sessions, Setting};
use crate::words::{
    TTL, acquire, budget, closing, every_operator_operation, every_worker_operation, holder, holds, payload,
    publication, publish, says, take,
};

fn over(schema: &Schema, setting: Setting) -> SqlServerStore {
    let pool = Sessions::new(&schema.name, setting);
    SqlServerStore::builder().pool(pool).schema(&schema.name).build().expect("a store")
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn over_dirty_sessions_an_installation_is_complete_and_every_operation_works() {
    let schema = Schema::missing().await;
    let store = over(&schema, Setting::Dirty);
    store.install(budget()).await.unwrap();
    let report = every_worker_operation(&schema.store()).await;
    assert_eq!(payload(&store, report).await.as_deref(), Some("third"), "not cut short");
    let report = every_worker_operation(&store).await;
    every_operator_operation(&store, report).await;
}

/// `SET ROWCOUNT 1` would renew, list, prune and move to the new epoch one row of many.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_row_count_that_somebody_set_limits_nothing() {
    let schema = Schema::installed().await;
    let store = over(&schema, Setting::Dirty);
    let mut fences = Vec::new();
    for _ in 0..3 {
        fences.push(take(&store).await);
    }
    for renewed in store.renew_many(fences.clone(), TTL, budget()).await.unwrap() {
        assert!(matches!(renewed, BatchRenewal::Answered(RenewAnswer::Renewed { .. })), "{renewed:?}");
    }
    let list = || ListRequest { after: None, limit: 10, leased_only: true };
    assert_eq!(store.list(list(), budget()).await.unwrap().len(), 3);
    for fence in &fences {
        publish(&store, *fence, "a report").await;
        store.force_release(fence.report, holder("an operator"), budget()).await.unwrap();
    }
    assert_eq!(store.prune_ledger(std::time::Duration::ZERO, budget()).await.unwrap(), 3);
    store.advance_recovery_epoch(Epoch::new(7), budget()).await.unwrap();
    for fence in fences {
        assert_eq!(store.metadata(fence.report, budget()).await.unwrap().unwrap().epoch, Epoch::new(7));
    }
}

/// Nothing is committed with the transaction that somebody forgot, and nothing of it is committed with us.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_connection_with_an_open_transaction_is_refused_in_words_and_commits_nothing() {
    let schema = Schema::installed().await;
    let fence = take(&schema.store()).await;
    let store = over(&schema, Setting::OpenTransaction);
    let words = ["a transaction is open on this connection", "hand out connections without an open transaction"];
    let kind = StoreErrorKind::Rejected;
    says(store.renew(fence, TTL, budget()).await, kind, &words);
    says(store.renew_many(vec![fence], TTL, budget()).await, kind, &words);
    says(store.publish(publication(fence, "accident"), budget()).await, kind, &words);
    says(store.release(fence, budget()).await, kind, &words);
    says(store.close(closing(fence), budget()).await, kind, &words);
    says(store.acquire(crate::words::request(fence.report), budget()).await, kind, &words);
    says(store.provision(crate::words::unknown_report(), budget()).await, kind, &words);
    says(store.force_release(fence.report, holder("me"), budget()).await, kind, &words);
    says(store.reset_source_revision(fence.report, None, budget()).await, kind, &words);
    says(store.advance_recovery_epoch(Epoch::new(9), budget()).await, kind, &words);
    says(store.prune_ledger(TTL, budget()).await, kind, &words);
    says(store.begin(budget()).await.map(drop), kind, &words);
    says(store.install(budget()).await, kind, &words);
    drop(store);
    let notes = format!("SELECT CAST(COUNT(*) AS bigint) FROM {}.Notes", schema.quoted());
    assert_eq!(schema.number(&notes).await, 0);
    assert!(holds(&schema.store(), fence).await, "as it was");
    assert!(matches!(publish(&schema.store(), fence, "a report").await, PublishAnswer::Published(_)));
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_users_pool_has_its_connections_back_unless_something_is_under_way_on_them() {
    let schema = Schema::installed().await;
    let counts = Arc::new(Counts::default());
    let count = |what: &std::sync::atomic::AtomicUsize| what.load(std::sync::atomic::Ordering::SeqCst);
    let pool = Sessions::counted(&schema.name, Setting::Clean, Arc::clone(&counts));
    let store = SqlServerStore::builder().pool(pool).schema(&schema.name).build().unwrap();
    assert_eq!(
        (count(&counts.pools), count(&counts.opened)),
        (2, 0),
        "renewals have a pool of their own; nothing is opened"
    );
    let fence = take(&store).await;
    publish(&store, fence, "a report").await;
    assert_eq!(count(&counts.opened), 1, "one call after the other needs one connection");
    store.renew(fence, TTL, budget()).await.unwrap();
    assert_eq!((count(&counts.opened), count(&counts.discarded)), (2, 0));
    // A transaction that is dropped may have a statement under way.
    drop(store.begin(budget()).await.unwrap());
    assert_eq!(count(&counts.discarded), 1);
    let transaction = store.begin(budget()).await.unwrap();
    transaction.rollback(budget()).await.unwrap();
    assert_eq!(count(&counts.discarded), 1, "rolled back, it goes on");
    let _elsewhere = store.for_runtime(&tokio::runtime::Handle::current());
    assert_eq!(count(&counts.pools), 4);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn where_nothing_may_be_written_reads_work_and_writes_say_so() {
    let schema = Schema::installed().await;
    if !schema.babelfish {
        return println!("skipped: only_sql_server has a read-only database");
    }
    let fence = take(&schema.store()).await;
    publish(&schema.store(), fence, "a report").await;
    let store = over(&schema, Setting::ReadOnly);
    assert_eq!(payload(&store, fence.report).await.as_deref(), Some("a report"));
    let words = ["read-only", "connect to the primary"];
    says(store.acquire(crate::words::request(fence.report), budget()).await, StoreErrorKind::Rejected, &words);
    says(store.provision(crate::words::unknown_report(), budget()).await, StoreErrorKind::Rejected, &words);
    assert_eq!(acquire(&schema.store(), fence.report).await.generation.get(), 2);
}
