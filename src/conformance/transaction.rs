//! The fenced transaction: the user's own statements and the publication, together or not at all.

use super::answers::{already_published, ended_by, fails, forgotten, published, refused, renewed};
use super::harness::{BlockerEnd, Database};
use super::scene::Scene;
use super::suite::cases;
use super::worker::{Worker, acquiring, budget, publishing, publishing_revision};
use crate::answer::{Forgotten, PublishAnswer, Refusal};
use crate::error::StoreErrorKind;
use crate::fence::Fence;
use crate::store::{Budget, FencedTransaction, PublishRequest, Store};

cases![
    statements_are_committed_together_with_the_publication,
    statements_are_rolled_back_when_the_publication_is_refused,
    statements_are_rolled_back_when_the_outcome_is_no_longer_known,
    statements_are_rolled_back_when_the_publication_was_accepted_before,
    statements_are_rolled_back_when_the_source_is_stale_and_the_lease_goes_on,
    statements_are_rolled_back_on_demand,
    statements_are_rolled_back_when_the_transaction_is_dropped,
    a_transaction_without_statements_publishes,
    an_open_transaction_holds_no_row,
    a_late_transaction_after_lock_wait_is_refused,
    a_transaction_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied,
];

/// A transaction with these notes, not yet ended.
async fn noting<D: Database>(
    scene: &Scene<D>,
    a: &Worker<D::Store>,
    notes: &[i64],
) -> <D::Store as Store>::Transaction {
    let mut transaction = a.store.begin(budget()).await.expect("begin");
    for note in notes {
        scene.db.write_note(&mut transaction, *note).await;
    }
    transaction
}

/// Writes a note and publishes.
async fn note_and_publish<D: Database>(
    scene: &Scene<D>,
    a: &Worker<D::Store>,
    note: i64,
    request: &PublishRequest,
) -> PublishAnswer {
    let transaction = noting(scene, a, &[note]).await;
    transaction.publish(request.clone(), budget()).await.expect("publish")
}

async fn statements_are_committed_together_with_the_publication<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = publishing(a.acquires(scene.report).await, "a report");
    let transaction = noting(&scene, &a, &[1, 2]).await;
    let answer = transaction.publish(request.clone(), budget()).await.expect("publish");
    let publication = published(answer);
    assert_eq!(scene.db.notes().await, [1, 2]);
    let row = scene.row().await;
    assert_eq!((row.payload.as_deref(), row.owner), (Some("a report"), None));
    assert_eq!(already_published(a.send(&request).await), publication);
    assert_eq!(a.close(request.fence).await, ended_by(publication.receipt));
}

async fn statements_are_rolled_back_when_the_publication_is_refused<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    scene.expire().await;
    let late = publishing(fence, "late");
    assert_eq!(note_and_publish(&scene, &a, 1, &late).await, refused(Refusal::Expired));
    let by = b.acquires(scene.report).await.generation;
    assert_eq!(note_and_publish(&scene, &a, 2, &late).await, refused(Refusal::Superseded { by }));
    assert_eq!(scene.db.notes().await, []);
    assert_eq!(scene.row().await.payload, None);
}

async fn statements_are_rolled_back_when_the_outcome_is_no_longer_known<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let epoch = scene.raise_epoch().await;
    let answer = note_and_publish(&scene, &a, 1, &publishing(fence, "late")).await;
    assert_eq!(answer, forgotten(Forgotten::HistoryReplaced { epoch }));
    assert_eq!(scene.db.notes().await, []);
}

async fn statements_are_rolled_back_when_the_publication_was_accepted_before<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = publishing(a.acquires(scene.report).await, "a report");
    let first = published(note_and_publish(&scene, &a, 1, &request).await);
    assert_eq!(already_published(note_and_publish(&scene, &a, 2, &request).await), first);
    assert_eq!(scene.db.notes().await, [1], "one publication, one set of statements");
}

async fn statements_are_rolled_back_when_the_source_is_stale_and_the_lease_goes_on<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.require_revision(scene.report, 5).await;
    let fence: Fence = a.acquires(scene.report).await;
    let answer = note_and_publish(&scene, &a, 1, &publishing_revision(fence, "stale", 4)).await;
    assert!(matches!(answer, PublishAnswer::Refused(Refusal::StaleSource { .. })), "{answer:?}");
    assert_eq!(scene.db.notes().await, []);
    renewed(a.renew(fence).await);
    published(note_and_publish(&scene, &a, 2, &publishing_revision(fence, "fresh", 5)).await);
    assert_eq!(scene.db.notes().await, [2]);
}

async fn statements_are_rolled_back_on_demand<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    noting(&scene, &a, &[1]).await.rollback(budget()).await.expect("rollback");
    assert_eq!(scene.db.notes().await, []);
    a.publishes(fence, "a report").await;
    assert_eq!(scene.db.notes().await, []);
}

async fn statements_are_rolled_back_when_the_transaction_is_dropped<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    for note in 1..=3 {
        drop(noting(&scene, &a, &[note]).await);
        renewed(a.renew(fence).await); // The store still works, and its connection is in no transaction.
    }
    a.publishes(fence, "a report").await;
    assert_eq!(scene.db.notes().await, []);
}

async fn a_transaction_without_statements_publishes<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let transaction = a.store.begin(budget()).await.expect("begin");
    published(transaction.publish(publishing(fence, "a report"), budget()).await.expect("publish"));
    assert_eq!(scene.row().await.payload.as_deref(), Some("a report"));
}

async fn an_open_transaction_holds_no_row<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    let transaction = a.store.begin(budget()).await.expect("begin"); // And then its client is stopped.
    renewed(b.renew(fence).await);
    scene.expire().await;
    let by = b.acquires(scene.report).await.generation;
    let answer = transaction.publish(publishing(fence, "late"), budget()).await.expect("publish");
    assert_eq!(answer, refused(Refusal::Superseded { by }));
}

async fn a_late_transaction_after_lock_wait_is_refused<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let report = scene.another_report().await;
        let a = scene.worker().await;
        let ttl = std::time::Duration::from_millis(300);
        let request = crate::store::AcquireRequest { ttl, ..acquiring(report) };
        let fence = a.acquires_as(request).await.fence;
        // Without a note: where the engine has one lock for everything, the note would have to wait for the blocker.
        let transaction = a.store.begin(budget()).await.expect("begin");
        let mut queue = scene.hold(report, end).await;
        let late = publishing(fence, "late");
        let call = queue.call(async move { transaction.publish(late, budget()).await.expect("publish") }).await;
        scene.until_expired(report).await;
        queue.let_go().await;
        assert_eq!(call.answer().await, refused(Refusal::Expired), "{end:?}");
        assert_eq!(scene.row_of(report).await.payload, None, "{end:?}");
    }
}

async fn a_transaction_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let transaction = a.store.begin(budget()).await.expect("begin");
    let queue = scene.hold(scene.report, BlockerEnd::OnlyLock).await;
    let short = Budget::within(std::time::Duration::from_millis(150));
    fails(transaction.publish(publishing(fence, "late"), short).await, StoreErrorKind::Unavailable);
    queue.let_go().await;
    assert_eq!(scene.row().await.payload, None);
    renewed(a.renew(fence).await);
    a.publishes(fence, "in time").await;
}
