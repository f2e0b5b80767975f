//! Every method of the store, as a future that may be dropped.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use leasehold::store::sqlserver::SqlServerStore;
use leasehold::store::{AdvanceRequest, Budget, FencedTransaction, ListRequest, Store};
use leasehold::{Epoch, Holder, Owner, SourceRevision, StoreError};

use crate::subject::{RENEWED_FOR, Subject};

type Asked = BoxFuture<'static, Result<(), StoreError>>;

/// A method by its name, which is called for a report of this kind.
pub(crate) type Method = (&'static str, fn(SqlServerStore, Subject, Budget) -> Asked);

/// What is answered does not matter: the answer is dropped.
macro_rules! methods {
    ($($name:literal = |$store:ident, $subject:ident, $budget:ident| $call:expr;)*) => {
        vec![$(($name, |$store, $subject, $budget| async move { $call.await.map(drop) }.boxed())),*]
    };
}

pub(crate) fn all() -> Vec<Method> {
    let mut methods: Vec<Method> = methods! {
        "provision" = |store, subject, budget| store.provision(subject.report, budget);
        "acquire" = |store, subject, budget| store.acquire(subject.acquire_request(), budget);
        "renew" = |store, subject, budget| store.renew(subject.fence(), RENEWED_FOR, budget);
        "renew_many" = |store, subject, budget| store.renew_many(vec![subject.fence(); 2], RENEWED_FOR, budget);
        "publish" = |store, subject, budget| store.publish(subject.publish_request(), budget);
        "publish_and_advance" = |store, subject, budget| store.publish_and_advance(
            AdvanceRequest { publish: subject.publish_request(), next_owner: Owner::random(), ttl: RENEWED_FOR },
            budget,
        );
        "close" = |store, subject, budget| store.close(subject.close_request(), budget);
        "release" = |store, subject, budget| store.release(subject.fence(), budget);
        "read" = |store, subject, budget| store.read(subject.report, None, budget);
        "metadata" = |store, subject, budget| store.metadata(subject.report, budget);
        "inspect" = |store, subject, budget| store.inspect(subject.report, budget);
        "list" = |store, subject, budget| store.list(
            ListRequest { after: Some(subject.report), limit: 10, leased_only: false },
            budget,
        );
        "check" = |store, _subject, budget| store.check(budget);
        "force_release" = |store, subject, budget| store.force_release(subject.report, label(), budget);
        "require_source_revision" = |store, subject, budget| store.require_source_revision(
            subject.report,
            SourceRevision::new(1),
            budget,
        );
        "reset_source_revision" = |store, subject, budget| store.reset_source_revision(subject.report, None, budget);
        "advance_recovery_epoch" = |store, _subject, budget| store.advance_recovery_epoch(Epoch::new(0), budget);
        "prune_ledger" = |store, _subject, budget| store.prune_ledger(Duration::from_secs(86_400 * 365), budget);
    };
    methods.push(("begin", |store, _, budget| async move { store.begin(budget).await.map(drop) }.boxed()));
    methods.push(("a transaction", |store, subject, budget| transaction(store, subject, budget).boxed()));
    methods.push(("a rollback", |store, _, budget| {
        async move { store.begin(budget).await?.rollback(budget).await }.boxed()
    }));
    methods
}

/// Statements of the user's own, and the publication, in one future with an await point for each.
async fn transaction(store: SqlServerStore, subject: Subject, budget: Budget) -> Result<(), StoreError> {
    let mut transaction = store.begin(budget).await?;
    transaction.execute("DECLARE @i int = @P1", &[&1_i32], budget).await?;
    transaction.query("SELECT @P1 AS One", &[&1_i32], budget).await?;
    transaction.publish(subject.publish_request(), budget).await.map(drop)
}

fn label() -> Holder {
    Holder::new("at the wire").expect("a label")
}
