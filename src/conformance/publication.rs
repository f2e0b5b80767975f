//! `publish`: the order of its answers, constructed so that two reasons hold at once.

use super::answers::{CLOSED, already_published, forgotten, published, refused};
use super::harness::Database;
use super::scene::{Scene, unknown_report};
use super::suite::cases;
use super::worker::{acquiring, publishing, publishing_revision};
use crate::answer::{Forgotten, Refusal};
use crate::fence::{Fence, Owner, SourceRevision};
use crate::store::PublishRequest;

cases![
    a_publication_frees_the_row_and_keeps_its_generation,
    a_receipt_says_what_was_published,
    the_ledger_answers_although_the_row_is_gone,
    the_ledger_answers_although_the_epoch_is_another,
    the_ledger_answers_although_a_successor_published,
    the_own_publication_is_answered_before_a_reused_operation,
    a_closed_owner_is_told_so_before_a_reused_operation,
    an_operation_of_another_owner_is_refused_as_reused,
    a_reused_operation_is_answered_before_no_longer_known,
    an_unknown_report_is_no_longer_known,
    pruned_is_answered_before_another_epoch,
    pruned_is_answered_before_forced,
    another_epoch_is_answered_before_forced,
    forced_is_answered_before_superseded,
    superseded_is_answered_before_released,
    superseded_is_answered_for_a_foreign_owner_of_the_same_generation,
    superseded_is_answered_before_a_stale_source,
    released_is_answered_before_a_stale_source,
    expired_is_answered_before_a_stale_source,
    the_older_generation_of_one_owner_cannot_publish,
];

async fn a_publication_frees_the_row_and_keeps_its_generation<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    a.publishes(fence, "a report").await;
    let row = scene.row().await;
    assert_eq!((row.owner, row.expires_in_millis, row.generation), (None, None, fence.generation));
    assert_eq!(Some(b.acquires(scene.report).await.generation), fence.generation.next());
}

async fn a_receipt_says_what_was_published<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = publishing_revision(a.acquires(scene.report).await, "a report", 7);
    let publication = published(a.send(&request).await);
    let receipt = publication.receipt;
    assert_eq!((receipt.report, receipt.operation), (scene.report, request.operation));
    assert_eq!((receipt.generation, receipt.epoch), (request.fence.generation, request.fence.epoch));
    assert_eq!((receipt.revision, publication.next), (Some(SourceRevision::new(7)), None));
    assert_eq!(already_published(a.send(&request).await), publication, "a receipt that changed");
}

async fn the_ledger_answers_although_the_row_is_gone<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = publishing(a.acquires(scene.report).await, "a report");
    let publication = published(a.send(&request).await);
    let closed = a.acquires(scene.report).await;
    assert_eq!(a.close(closed).await, CLOSED);
    scene.db.delete_row(scene.report).await;
    assert_eq!(already_published(a.send(&request).await), publication);
    let other = a.publish(request.fence, "another").await;
    assert_eq!(other, refused(Refusal::GenerationPublished { operation: request.operation }));
    assert_eq!(a.publish(closed, "closed").await, refused(Refusal::Closed));
}

async fn the_ledger_answers_although_the_epoch_is_another<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = publishing(a.acquires(scene.report).await, "a report");
    let publication = published(a.send(&request).await);
    let closed = a.acquires(scene.report).await;
    assert_eq!(a.close(closed).await, CLOSED);
    scene.raise_epoch().await;
    assert_eq!(already_published(a.send(&request).await), publication);
    assert_eq!(a.publish(closed, "closed").await, refused(Refusal::Closed));
}

async fn the_ledger_answers_although_a_successor_published<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let request = publishing(a.acquires(scene.report).await, "built by A");
    let publication = published(a.send(&request).await);
    b.acquires_and_publishes(scene.report, "built by B", None).await;
    assert_eq!(already_published(a.send(&request).await), publication);
    assert_eq!(scene.row().await.payload.as_deref(), Some("built by B"), "A's payload was written again");
}

async fn the_own_publication_is_answered_before_a_reused_operation<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let of_a = publishing(a.acquires(scene.report).await, "built by A");
    published(a.send(&of_a).await);
    let of_b = publishing(b.acquires(scene.report).await, "built by B");
    published(b.send(&of_b).await);
    let mixed = PublishRequest { operation: of_b.operation, ..of_a.clone() };
    assert_eq!(a.send(&mixed).await, refused(Refusal::GenerationPublished { operation: of_a.operation }));
}

async fn a_closed_owner_is_told_so_before_a_reused_operation<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let closed = a.acquires(scene.report).await;
    assert_eq!(a.close(closed).await, CLOSED);
    let receipt = b.acquires_and_publishes(scene.report, "built by B", None).await;
    let request = PublishRequest { operation: receipt.operation, ..publishing(closed, "built by A") };
    assert_eq!(a.send(&request).await, refused(Refusal::Closed));
}

async fn an_operation_of_another_owner_is_refused_as_reused<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let receipt = a.acquires_and_publishes(scene.report, "built by A", None).await;
    let fence = b.acquires(scene.report).await;
    let request = PublishRequest { operation: receipt.operation, ..publishing(fence, "built by B") };
    assert_eq!(b.send(&request).await, refused(Refusal::OperationReused { generation: receipt.generation }));
    let row = scene.row().await;
    assert_eq!((row.payload.as_deref(), row.owner), (Some("built by A"), Some(fence.owner)));
    b.publishes(fence, "built by B").await; // Under an id of its own it is accepted.
}

async fn a_reused_operation_is_answered_before_no_longer_known<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let receipt = a.acquires_and_publishes(scene.report, "a report", None).await;
    let fence = Fence { report: unknown_report(), ..a.acquires(scene.report).await };
    let request = PublishRequest { operation: receipt.operation, ..publishing(fence, "another") };
    assert_eq!(a.send(&request).await, refused(Refusal::OperationReused { generation: receipt.generation }));
}

async fn an_unknown_report_is_no_longer_known<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let unknown = Fence { report: unknown_report(), ..fence };
    assert_eq!(a.publish(unknown, "a report").await, forgotten(Forgotten::Missing));
    scene.db.delete_row(scene.report).await;
    assert_eq!(a.publish(fence, "a report").await, forgotten(Forgotten::Missing));
}

async fn pruned_is_answered_before_another_epoch<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let request = publishing(a.acquires(scene.report).await, "a report");
    published(a.send(&request).await);
    b.acquires(scene.report).await;
    scene.prune_everything_old().await;
    scene.raise_epoch().await;
    assert_eq!(a.send(&request).await, forgotten(Forgotten::Pruned { up_to: request.fence.generation }));
}

async fn pruned_is_answered_before_forced<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    // Another acquisition was closed without ever learning a generation: filed under the row's, the same as A's.
    assert_eq!(a.close_unlearned(scene.report, Owner::random()).await, CLOSED);
    a.force_release(scene.report).await;
    assert_eq!(scene.prune_everything_old().await, 1);
    assert_eq!(a.publish(fence, "late").await, forgotten(Forgotten::Pruned { up_to: fence.generation }));
}

async fn another_epoch_is_answered_before_forced<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    a.force_release(scene.report).await;
    let epoch = scene.raise_epoch().await;
    assert_eq!(a.publish(fence, "late").await, forgotten(Forgotten::HistoryReplaced { epoch }));
}

async fn forced_is_answered_before_superseded<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    a.force_release(scene.report).await;
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Forced));
    b.acquires(scene.report).await;
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Forced));
    assert_eq!(scene.row().await.payload, None);
}

async fn superseded_is_answered_before_released<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    scene.expire().await;
    let fence_of_b = b.acquires(scene.report).await;
    b.release(fence_of_b).await;
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Superseded { by: fence_of_b.generation }));
}

async fn superseded_is_answered_for_a_foreign_owner_of_the_same_generation<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let of_a = a.acquires(scene.report).await;
    scene.expire().await;
    b.acquires(scene.report).await;
    // A restore that nobody told the store about gave the generation away twice.
    scene.db.set_generation(scene.report, of_a.generation).await;
    assert_eq!(a.publish(of_a, "late").await, refused(Refusal::Superseded { by: of_a.generation }));
    assert_eq!(scene.row().await.payload, None);
}

async fn superseded_is_answered_before_a_stale_source<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    scene.expire().await;
    let by = b.acquires(scene.report).await.generation;
    b.require_revision(scene.report, 9).await;
    let answer = a.send(&publishing_revision(fence, "late", 3)).await;
    assert_eq!(answer, refused(Refusal::Superseded { by }));
}

async fn released_is_answered_before_a_stale_source<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    a.release(fence).await;
    a.require_revision(scene.report, 9).await;
    let stranger = Fence { owner: Owner::random(), ..fence };
    assert_eq!(a.send(&publishing_revision(stranger, "stale", 3)).await, refused(Refusal::Released));
}

async fn expired_is_answered_before_a_stale_source<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    a.require_revision(scene.report, 9).await;
    scene.expire().await;
    assert_eq!(a.send(&publishing_revision(fence, "stale", 3)).await, refused(Refusal::Expired));
}

async fn the_older_generation_of_one_owner_cannot_publish<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let old = a.acquires_as(request.clone()).await.fence;
    scene.expire().await;
    let new = a.acquires_as(request).await.fence;
    assert_eq!(a.publish(old, "old").await, refused(Refusal::Superseded { by: new.generation }));
    assert_eq!(scene.row().await.payload, None);
    a.publishes(new, "new").await;
}
