//! The ledger: lost answers asked for again, and what is left to say once evidence was pruned.

use std::time::{Duration, SystemTime};

use super::answers::{CLOSED, already_published, ended_by, forgotten, not_renewed, published, refused};
use super::harness::Database;
use super::scene::Scene;
use super::suite::cases;
use super::worker::{Worker, acquiring, publishing};
use crate::answer::{AcquireAnswer, CloseAnswer, Forgotten, Receipt, Refusal};
use crate::fence::{Generation, Owner, ReportId};
use crate::store::PublishRequest;

cases![
    a_publication_whose_answer_was_lost_is_known_for_as_long_as_nothing_is_pruned,
    a_pruned_publication_is_no_longer_known_and_never_superseded,
    a_pruned_close_is_no_longer_known,
    a_close_of_a_pruned_generation_is_no_longer_known_and_writes_nothing,
    a_pruned_acquisition_is_not_renewed,
    pruning_leaves_the_rows_current_generation_alone,
    pruning_respects_the_age,
    pruning_remembers_the_highest_pruned_generation,
    pruning_tells_how_many_and_finds_nothing_twice,
    pruning_looks_at_each_row_by_itself,
    generations_above_what_was_pruned_are_answered_as_ever,
    a_close_without_a_generation_does_not_mind_pruning,
];

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// A receipt without its time: a store may keep one time for people and for the age, and ageing the ledger moves that one.
fn aged(receipt: Receipt) -> Receipt {
    Receipt { published_at: SystemTime::UNIX_EPOCH, ..receipt }
}

/// A publication of the first generation, superseded by another lease that is still held.
async fn superseded_publication<D: Database>(scene: &Scene<D>, a: &Worker<D::Store>) -> PublishRequest {
    let request = publishing(a.acquires(scene.report).await, "a report");
    published(a.send(&request).await);
    a.acquires(scene.report).await;
    request
}

async fn pruned_up_to<D: Database>(scene: &Scene<D>, report: ReportId) -> i64 {
    scene.row_of(report).await.pruned_up_to.get()
}

async fn a_publication_whose_answer_was_lost_is_known_for_as_long_as_nothing_is_pruned<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let request = publishing(a.acquires(scene.report).await, "a report");
    let publication = published(a.send(&request).await);
    for round in 0..3 {
        b.acquires_and_publishes(scene.report, "another", None).await;
        assert_eq!(already_published(a.send(&request).await), publication, "round {round}");
        assert_eq!(a.close(request.fence).await, ended_by(publication.receipt), "round {round}");
    }
}

async fn a_pruned_publication_is_no_longer_known_and_never_superseded<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = superseded_publication(&scene, &a).await;
    assert_eq!(scene.prune_everything_old().await, 1);
    let pruned = Forgotten::Pruned { up_to: request.fence.generation };
    assert_eq!(a.send(&request).await, forgotten(pruned));
    let other = PublishRequest { operation: crate::fence::OperationId::random(), ..request.clone() };
    assert_eq!(a.send(&other).await, forgotten(pruned));
    assert_eq!(a.send(&request).await, forgotten(pruned), "an answer that changed");
    assert_eq!(scene.row().await.payload.as_deref(), Some("a report"), "the payload itself stays");
}

async fn a_pruned_close_is_no_longer_known<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(a.close(fence).await, CLOSED);
    a.acquires(scene.report).await;
    assert_eq!(scene.prune_everything_old().await, 1);
    let pruned = Forgotten::Pruned { up_to: fence.generation };
    assert_eq!(a.publish(fence, "late").await, forgotten(pruned));
    assert_eq!(a.close(fence).await, CloseAnswer::NoLongerKnown(pruned));
}

async fn a_close_of_a_pruned_generation_is_no_longer_known_and_writes_nothing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = superseded_publication(&scene, &a).await;
    scene.prune_everything_old().await;
    let pruned = Forgotten::Pruned { up_to: request.fence.generation };
    assert_eq!(a.close(request.fence).await, CloseAnswer::NoLongerKnown(pruned));
    assert_eq!(a.close(request.fence).await, CloseAnswer::NoLongerKnown(pruned), "an answer that changed");
    assert_eq!(a.send(&request).await, forgotten(pruned), "the close wrote to the ledger");
}

async fn a_pruned_acquisition_is_not_renewed<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = superseded_publication(&scene, &a).await;
    scene.prune_everything_old().await;
    let by = scene.row().await.generation;
    assert_eq!(a.renew(request.fence).await, not_renewed(Refusal::Superseded { by }));
}

async fn pruning_leaves_the_rows_current_generation_alone<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = publishing(a.acquires(scene.report).await, "a report");
    let publication = published(a.send(&request).await);
    assert_eq!(scene.prune_everything_old().await, 0);
    assert_eq!(pruned_up_to(&scene, scene.report).await, 0);
    let known = already_published(a.send(&request).await).receipt;
    assert_eq!(aged(known), aged(publication.receipt));
    assert_eq!(a.close(request.fence).await, ended_by(known));
}

async fn pruning_respects_the_age<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let old = publishing(a.acquires(scene.report).await, "old");
    published(a.send(&old).await);
    scene.db.age_ledger(DAY).await;
    let young = publishing(a.acquires(scene.report).await, "young");
    let publication = published(a.send(&young).await);
    a.acquires(scene.report).await;

    assert_eq!(a.prune(2 * DAY).await, 0);
    assert_eq!(a.prune(HOUR).await, 1);
    assert_eq!(pruned_up_to(&scene, scene.report).await, old.fence.generation.get());
    assert_eq!(a.send(&old).await, forgotten(Forgotten::Pruned { up_to: old.fence.generation }));
    assert_eq!(already_published(a.send(&young).await), publication);
}

async fn pruning_remembers_the_highest_pruned_generation<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let first = superseded_publication(&scene, &a).await;
    assert_eq!(scene.prune_everything_old().await, 1);
    a.force_release(scene.report).await;
    for _ in 0..3 {
        a.acquires_and_publishes(scene.report, "a report", None).await;
    }
    let current = scene.row().await.generation.get();
    assert_eq!(scene.prune_everything_old().await, 2);
    assert_eq!(pruned_up_to(&scene, scene.report).await, current - 1);
    let up_to = Generation::new(current - 1);
    assert_eq!(a.send(&first).await, forgotten(Forgotten::Pruned { up_to }));
    let metadata = a.inspect(scene.report).await.metadata;
    assert_eq!(metadata.pruned_up_to, up_to);
    assert_eq!(scene.prune_everything_old().await, 0);
    assert_eq!(pruned_up_to(&scene, scene.report).await, current - 1, "it went down");
}

async fn pruning_tells_how_many_and_finds_nothing_twice<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    for _ in 0..5 {
        let fence = a.acquires(scene.report).await;
        a.release(fence).await;
    }
    a.acquires(scene.report).await;
    assert_eq!(scene.prune_everything_old().await, 5);
    assert_eq!(scene.prune_everything_old().await, 0);
}

async fn pruning_looks_at_each_row_by_itself<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let other = scene.another_report().await;
    let kept = publishing(a.acquires(other).await, "the other report");
    let publication = published(a.send(&kept).await);
    let gone = superseded_publication(&scene, &a).await;
    assert_eq!(scene.prune_everything_old().await, 1);
    assert_eq!((pruned_up_to(&scene, scene.report).await, pruned_up_to(&scene, other).await), (1, 0));
    assert_eq!(a.send(&gone).await, forgotten(Forgotten::Pruned { up_to: gone.fence.generation }));
    assert_eq!(aged(already_published(a.send(&kept).await).receipt), aged(publication.receipt));
}

async fn generations_above_what_was_pruned_are_answered_as_ever<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    superseded_publication(&scene, &a).await;
    scene.expire().await;
    let expired = b.acquires(scene.report).await;
    scene.expire().await;
    let held = a.acquires(scene.report).await;
    scene.prune_everything_old().await;
    assert_eq!(b.publish(expired, "late").await, refused(Refusal::Superseded { by: held.generation }));
    assert_eq!(b.close(expired).await, CLOSED);
    a.publishes(held, "a report").await;
}

async fn a_close_without_a_generation_does_not_mind_pruning<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    superseded_publication(&scene, &a).await;
    scene.prune_everything_old().await;
    let late = acquiring(scene.report);
    assert_eq!(a.close_unlearned(scene.report, late.owner).await, CLOSED);
    assert!(matches!(a.acquire(late).await, AcquireAnswer::Ended(_)));
    assert_eq!(a.close_unlearned(scene.report, Owner::random()).await, CLOSED);
}
