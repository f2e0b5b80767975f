//! `close` and `release`: an acquisition ends once, and its ending never changes.

use std::time::Duration;

use super::answers::{CLOSED, already_published, ended_by, published, refused, renewed};
use super::harness::Database;
use super::scene::{Scene, unknown_report};
use super::suite::cases;
use super::worker::{acquiring, publishing};
use crate::answer::{AcquireAnswer, CloseAnswer, Ending, Forgotten, Refusal, ReleaseAnswer};
use crate::fence::{Epoch, Fence, Generation, Owner};

cases![
    a_close_of_a_held_lease_frees_the_row,
    a_close_of_an_unknown_acquisition_lets_it_in_no_more,
    a_close_of_an_acquisition_whose_answer_was_lost_frees_the_row,
    a_close_after_the_publication_finds_it,
    a_close_sent_again_gives_the_same_answer,
    a_late_publication_after_the_close_is_refused,
    a_close_of_another_owner_leaves_the_holder_alone,
    a_close_of_a_superseded_acquisition_leaves_the_successor_alone,
    a_close_ends_every_generation_of_its_owner,
    the_ledger_answers_a_close_although_the_row_is_gone,
    a_close_without_a_row_is_no_longer_known,
    the_ledger_answers_a_close_before_pruned_and_epoch,
    a_close_answers_pruned_before_another_epoch,
    a_close_of_another_epoch_is_no_longer_known,
    a_close_of_a_generation_above_the_rows_is_no_longer_known,
    a_close_without_a_generation_is_answered_in_any_epoch,
    a_release_frees_the_row_and_closes_the_owner,
    a_release_sent_again_is_already_over,
    a_release_of_what_is_over_is_already_over,
    a_release_on_anything_but_an_exact_match_changes_nothing,
    a_release_of_an_older_generation_of_the_same_owner_changes_nothing,
];

async fn a_close_of_a_held_lease_frees_the_row<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(a.close(fence).await, CLOSED);
    let row = scene.row().await;
    assert_eq!((row.owner, row.expires_in_millis, row.generation), (None, None, fence.generation));
    b.acquires(scene.report).await;
}

async fn a_close_of_an_unknown_acquisition_lets_it_in_no_more<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let late = acquiring(scene.report);
    assert_eq!(a.close_unlearned(scene.report, late.owner).await, CLOSED);
    assert_eq!(a.acquire(late).await, AcquireAnswer::Ended(Ending::Closed));
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation), (None, Generation::new(0)));
}

async fn a_close_of_an_acquisition_whose_answer_was_lost_frees_the_row<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let request = acquiring(scene.report);
    a.acquires_as(request.clone()).await;
    assert_eq!(a.close_unlearned(scene.report, request.owner).await, CLOSED);
    assert_eq!(scene.row().await.owner, None);
    b.acquires(scene.report).await;
}

async fn a_close_after_the_publication_finds_it<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    let receipt = a.publishes(fence, "a report").await;
    assert_eq!(a.close(fence).await, ended_by(receipt));
    assert_eq!(a.close_unlearned(scene.report, fence.owner).await, ended_by(receipt));
    b.acquires(scene.report).await;
    assert_eq!(a.close(fence).await, ended_by(receipt));
}

async fn a_close_sent_again_gives_the_same_answer<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(a.close(fence).await, CLOSED);
    assert_eq!(a.close(fence).await, CLOSED);
    let fence_of_b = b.acquires(scene.report).await;
    assert_eq!(a.close(fence).await, CLOSED);
    assert_eq!(scene.row().await.owner, Some(fence_of_b.owner));
}

async fn a_late_publication_after_the_close_is_refused<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = publishing(a.acquires(scene.report).await, "still on its way");
    assert_eq!(a.close(request.fence).await, CLOSED);
    assert_eq!(a.send(&request).await, refused(Refusal::Closed));
    assert_eq!(a.close(request.fence).await, CLOSED, "an answer that changed");
    assert_eq!(scene.row().await.payload, None);
}

async fn a_close_of_another_owner_leaves_the_holder_alone<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(a.close_unlearned(scene.report, Owner::random()).await, CLOSED);
    assert_eq!(scene.row().await.owner, Some(fence.owner));
    renewed(a.renew(fence).await);
    a.publishes(fence, "a report").await;
}

async fn a_close_of_a_superseded_acquisition_leaves_the_successor_alone<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    scene.expire().await;
    let fence_of_b = b.acquires(scene.report).await;
    assert_eq!(a.close(fence).await, CLOSED);
    assert_eq!(scene.row().await.owner, Some(fence_of_b.owner));
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Closed));
    b.publishes(fence_of_b, "built by B").await;
}

async fn a_close_ends_every_generation_of_its_owner<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let old = a.acquires_as(request.clone()).await.fence;
    scene.expire().await;
    let new = a.acquires_as(request).await.fence;
    assert_eq!(a.close(old).await, CLOSED);
    assert_eq!(scene.row().await.owner, None, "a closed owner holds the row");
    assert_eq!(a.publish(new, "late").await, refused(Refusal::Closed));
}

async fn the_ledger_answers_a_close_although_the_row_is_gone<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let published = a.acquires(scene.report).await;
    let receipt = a.publishes(published, "a report").await;
    let closed = a.acquires(scene.report).await;
    assert_eq!(a.close(closed).await, CLOSED);
    scene.db.delete_row(scene.report).await;
    assert_eq!(a.close(published).await, ended_by(receipt));
    assert_eq!(a.close(closed).await, CLOSED);
}

async fn a_close_without_a_row_is_no_longer_known<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let unknown = unknown_report();
    let missing = CloseAnswer::NoLongerKnown(Forgotten::Missing);
    assert_eq!(a.close_unlearned(unknown, Owner::random()).await, missing);
    let fence = Fence { report: unknown, ..a.acquires(scene.report).await };
    assert_eq!(a.close(fence).await, missing);
}

async fn the_ledger_answers_a_close_before_pruned_and_epoch<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let closed = a.acquires(scene.report).await;
    assert_eq!(a.close(closed).await, CLOSED);
    scene.db.age_ledger(Duration::from_secs(86_400)).await;
    let fence = a.acquires(scene.report).await;
    let receipt = a.publishes(fence, "a report").await;
    b.acquires(scene.report).await;
    assert_eq!(a.prune(Duration::from_secs(3_600)).await, 1);
    scene.raise_epoch().await;
    assert_eq!(a.close(fence).await, ended_by(receipt));
}

async fn a_close_answers_pruned_before_another_epoch<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    a.publishes(fence, "a report").await;
    b.acquires(scene.report).await;
    scene.prune_everything_old().await;
    scene.raise_epoch().await;
    let pruned = CloseAnswer::NoLongerKnown(Forgotten::Pruned { up_to: fence.generation });
    assert_eq!(a.close(fence).await, pruned);
}

async fn a_close_of_another_epoch_is_no_longer_known<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let forged = Fence { epoch: Epoch::new(fence.epoch.get() - 1), ..fence };
    let answer = a.close(forged).await;
    assert_eq!(answer, CloseAnswer::NoLongerKnown(Forgotten::HistoryReplaced { epoch: fence.epoch }));
    assert_eq!(scene.row().await.owner, Some(fence.owner), "it ended a lease of this history");
    let epoch = scene.raise_epoch().await;
    let replaced = CloseAnswer::NoLongerKnown(Forgotten::HistoryReplaced { epoch });
    assert_eq!(a.close(fence).await, replaced);
    assert_eq!(a.close(fence).await, replaced, "an answer that changed");
}

async fn a_close_of_a_generation_above_the_rows_is_no_longer_known<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.db.set_generation(scene.report, Generation::new(40)).await;
    let fence = a.acquires(scene.report).await;
    scene.db.set_generation(scene.report, Generation::new(12)).await;
    let replaced = CloseAnswer::NoLongerKnown(Forgotten::HistoryReplaced { epoch: fence.epoch });
    assert_eq!(a.close(fence).await, replaced);
}

async fn a_close_without_a_generation_is_answered_in_any_epoch<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let late = acquiring(scene.report);
    scene.raise_epoch().await;
    assert_eq!(a.close_unlearned(scene.report, late.owner).await, CLOSED);
    assert_eq!(a.acquire(late).await, AcquireAnswer::Ended(Ending::Closed));
}

async fn a_release_frees_the_row_and_closes_the_owner<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let request = acquiring(scene.report);
    let fence = a.acquires_as(request.clone()).await.fence;
    assert_eq!(a.release(fence).await, ReleaseAnswer::Released);
    let row = scene.row().await;
    assert_eq!((row.owner, row.expires_in_millis, row.generation), (None, None, fence.generation));
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Closed));
    assert_eq!(a.close(fence).await, CLOSED);
    assert_eq!(a.acquire(request).await, AcquireAnswer::Ended(Ending::Closed));
    assert_eq!(Some(b.acquires(scene.report).await.generation), fence.generation.next());
}

async fn a_release_sent_again_is_already_over<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(a.release(fence).await, ReleaseAnswer::Released);
    assert_eq!(a.release(fence).await, ReleaseAnswer::AlreadyOver);
    let fence_of_b = b.acquires(scene.report).await;
    assert_eq!(a.release(fence).await, ReleaseAnswer::AlreadyOver);
    assert_eq!(scene.row().await.owner, Some(fence_of_b.owner));
}

async fn a_release_of_what_is_over_is_already_over<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let unknown = Fence { report: unknown_report(), ..fence };
    assert_eq!(a.release(unknown).await, ReleaseAnswer::AlreadyOver, "missing");

    let request = publishing(fence, "a report");
    let publication = published(a.send(&request).await);
    assert_eq!(a.release(request.fence).await, ReleaseAnswer::AlreadyOver, "published");
    assert_eq!(already_published(a.send(&request).await), publication, "the release took the receipt away");

    let fence = a.acquires(scene.report).await;
    scene.expire().await;
    assert_eq!(a.release(fence).await, ReleaseAnswer::AlreadyOver, "expired");

    let fence = a.acquires(scene.report).await;
    a.force_release(scene.report).await;
    assert_eq!(a.release(fence).await, ReleaseAnswer::AlreadyOver, "forced");
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Forced), "the release wrote to the ledger");

    let fence = a.acquires(scene.report).await;
    scene.raise_epoch().await;
    assert_eq!(a.release(fence).await, ReleaseAnswer::AlreadyOver, "another epoch");
}

async fn a_release_on_anything_but_an_exact_match_changes_nothing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let others = [
        Fence { owner: Owner::random(), ..fence },
        Fence { generation: Generation::new(fence.generation.get() - 1), ..fence },
        Fence { generation: Generation::new(fence.generation.get() + 1), ..fence },
        Fence { epoch: Epoch::new(fence.epoch.get() - 1), ..fence },
        Fence { epoch: Epoch::new(fence.epoch.get() + 1), ..fence },
    ];
    for other in others {
        assert_eq!(a.release(other).await, ReleaseAnswer::AlreadyOver, "{other}");
        assert_eq!(scene.row().await.owner, Some(fence.owner), "{other}");
    }
    a.publishes(fence, "a report").await;
}

async fn a_release_of_an_older_generation_of_the_same_owner_changes_nothing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let old = a.acquires_as(request.clone()).await.fence;
    scene.expire().await;
    let new = a.acquires_as(request).await.fence;
    assert_eq!(a.release(old).await, ReleaseAnswer::AlreadyOver);
    assert_eq!(scene.row().await.owner, Some(new.owner));
    a.publishes(new, "a report").await;
}
