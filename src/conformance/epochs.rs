//! Recovery epochs: after a restore, nothing of the lost history is let in.

use super::answers::{CLOSED, already_published, busy, ended_by, forgotten, not_renewed, published, refused, renewed};
use super::harness::Database;
use super::scene::{Scene, unknown_report};
use super::suite::cases;
use super::worker::{TTL, Worker, acquiring, advancing, budget, publishing};
use crate::answer::{
    AcquireAnswer, BatchRenewal, CloseAnswer, EpochAnswer, Forgotten, ProvisionAnswer, PublishAnswer, ReadAnswer,
    Refusal, ReleaseAnswer, Version,
};
use crate::fence::{Epoch, Fence, Generation};
use crate::store::{AcquireRequest, Store};

cases![
    an_advance_puts_every_row_into_the_new_epoch_and_ends_every_lease,
    an_advance_that_is_not_above_changes_nothing,
    an_advance_may_leave_numbers_out,
    a_row_provisioned_after_an_advance_is_in_the_new_epoch,
    provisioning_again_touches_nothing,
    generations_go_on_after_an_advance,
    an_old_fence_is_refused_everywhere,
    an_old_fence_is_refused_while_a_successor_holds,
    a_fence_of_another_epoch_is_refused_even_if_all_else_matches,
    history_below_the_callers_minimum_is_stale,
    a_history_that_was_replaced_without_raising_the_epoch_is_noticed,
    a_generation_that_was_published_before_cannot_publish_again,
    readers_of_a_lost_history_see_the_new_one,
    a_publication_of_the_old_epoch_is_still_known,
];

async fn an_advance_puts_every_row_into_the_new_epoch_and_ends_every_lease<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let (held, free) = (scene.another_report().await, scene.another_report().await);
    let from = scene.row().await.epoch;
    a.acquires_and_publishes(scene.report, "a report", Some(4)).await;
    a.acquires_with_delay(scene.report, TTL).await;
    a.acquires(held).await;
    let to = Epoch::new(from.get() + 1);
    assert_eq!(a.advance_epoch(to).await, EpochAnswer::Advanced { from, ended_leases: 2 });
    for report in [scene.report, held, free] {
        let row = scene.row_of(report).await;
        assert_eq!((row.epoch, row.owner, row.expires_in_millis), (to, None, None));
        assert_eq!(b.acquires(report).await.epoch, to);
    }
    let row = scene.row().await;
    assert_eq!(row.payload.as_deref(), Some("a report"), "what is visible stays");
    assert_eq!(row.revision.map(|revision| revision.get()), Some(4));
    assert_eq!(a.store.check(budget()).await.expect("check").epoch, to);
}

async fn an_advance_that_is_not_above_changes_nothing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let current = scene.raise_epoch().await;
    let fence = a.acquires(scene.report).await;
    for to in [current, Epoch::new(current.get() - 1), Epoch::new(i64::MIN)] {
        assert_eq!(a.advance_epoch(to).await, EpochAnswer::NotAbove { current }, "to {to}");
    }
    renewed(a.renew(fence).await);
    assert_eq!(scene.row().await.epoch, current);
}

async fn an_advance_may_leave_numbers_out<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let from = scene.row().await.epoch;
    let to = Epoch::new(from.get() + 1_000_000_000_000);
    assert_eq!(a.advance_epoch(to).await, EpochAnswer::Advanced { from, ended_leases: 0 });
    assert_eq!(a.acquires(scene.report).await.epoch, to);
}

async fn a_row_provisioned_after_an_advance_is_in_the_new_epoch<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let to = scene.raise_epoch().await;
    let report = scene.another_report().await;
    assert_eq!(scene.row_of(report).await.epoch, to);
    a.acquires_as(AcquireRequest { min_epoch: to, ..acquiring(report) }).await;
}

async fn provisioning_again_touches_nothing<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    a.acquires_and_publishes(scene.report, "a report", Some(3)).await;
    let fence = a.acquires(scene.report).await;
    let mut before = scene.row().await;
    assert_eq!(b.store.provision(scene.report, budget()).await.expect("provision"), ProvisionAnswer::Existed);
    let after = scene.row().await;
    before.expires_in_millis = after.expires_in_millis;
    assert_eq!(after, before);
    renewed(a.renew(fence).await);
    let fresh = unknown_report();
    assert_eq!(b.store.provision(fresh, budget()).await.expect("provision"), ProvisionAnswer::Created);
    assert_eq!(scene.row_of(fresh).await.generation, Generation::new(0));
}

async fn generations_go_on_after_an_advance<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let before = a.acquires(scene.report).await;
    scene.raise_epoch().await;
    assert_eq!(scene.row().await.generation, before.generation);
    assert_eq!(Some(a.acquires(scene.report).await.generation), before.generation.next());
}

/// Every operation that carries a fence, with one of an epoch that is not the row's.
async fn is_refused_everywhere<S: Store>(a: &Worker<S>, fence: Fence, epoch: Epoch) {
    let replaced = Forgotten::HistoryReplaced { epoch };
    let stale = not_renewed(Refusal::StaleEpoch { epoch });
    assert_eq!(a.publish(fence, "of a lost history").await, forgotten(replaced));
    assert_eq!(a.advance(&advancing(fence, "of a lost history")).await, forgotten(replaced));
    assert_eq!(a.renew(fence).await, stale);
    assert_eq!(a.renew_many(vec![fence]).await, [BatchRenewal::Answered(stale)]);
    assert_eq!(a.release(fence).await, ReleaseAnswer::AlreadyOver);
    assert_eq!(a.close(fence).await, CloseAnswer::NoLongerKnown(replaced));
}

async fn an_old_fence_is_refused_everywhere<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let epoch = scene.raise_epoch().await;
    is_refused_everywhere(&a, fence, epoch).await;
    assert_eq!(scene.row().await.payload, None);
}

async fn an_old_fence_is_refused_while_a_successor_holds<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let old = a.acquires(scene.report).await;
    let epoch = scene.raise_epoch().await;
    let new = b.acquires(scene.report).await;
    let replaced = Forgotten::HistoryReplaced { epoch };
    assert_eq!(a.publish(old, "of a lost history").await, forgotten(replaced));
    assert_eq!(a.renew(old).await, not_renewed(Refusal::Superseded { by: new.generation }));
    assert_eq!(a.release(old).await, ReleaseAnswer::AlreadyOver);
    assert_eq!(a.close(old).await, CloseAnswer::NoLongerKnown(replaced));
    b.publishes(new, "of this history").await;
    assert_eq!(scene.row().await.payload.as_deref(), Some("of this history"));
}

async fn a_fence_of_another_epoch_is_refused_even_if_all_else_matches<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.raise_epoch().await;
    let fence = a.acquires(scene.report).await;
    scene.db.set_expiry(scene.report, 60_000).await;
    for other in [fence.epoch.get() - 1, fence.epoch.get() + 1] {
        is_refused_everywhere(&a, Fence { epoch: Epoch::new(other), ..fence }, fence.epoch).await;
    }
    let row = scene.row().await;
    assert_eq!((row.owner, row.payload), (Some(fence.owner), None));
    assert!(row.expires_in_millis.is_some_and(|millis| millis <= 60_000), "a renewal of another epoch extended it");
    a.publishes(fence, "of this history").await;
}

async fn history_below_the_callers_minimum_is_stale<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let epoch = scene.row().await.epoch;
    let request = AcquireRequest { min_epoch: Epoch::new(epoch.get() + 1), ..acquiring(scene.report) };
    assert_eq!(a.acquire(request.clone()).await, AcquireAnswer::StaleHistory { epoch });
    assert_eq!(scene.row().await.generation, Generation::new(0));
    scene.raise_epoch().await;
    a.acquires_as(request).await;
}

async fn a_history_that_was_replaced_without_raising_the_epoch_is_noticed<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.db.set_generation(scene.report, Generation::new(40)).await;
    let fence = a.acquires(scene.report).await;
    // A restored row never heard of generation 41, nor of its owner.
    scene.raise_epoch().await;
    scene.db.set_generation(scene.report, Generation::new(12)).await;
    let lost = Fence { epoch: scene.row().await.epoch, ..fence };
    is_refused_everywhere(&a, lost, lost.epoch).await;
    let successor = a.acquires(scene.report).await;
    assert_eq!(successor.generation, Generation::new(13));
    is_refused_everywhere(&a, lost, lost.epoch).await;
    a.publishes(successor, "of this history").await;
}

async fn a_generation_that_was_published_before_cannot_publish_again<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.db.set_generation(scene.report, Generation::new(40)).await;
    a.acquires_and_publishes(scene.report, "published by generation 41", None).await;
    // Part of the row was rolled back: the counter gives away a generation that is not above the published one.
    scene.db.set_generation(scene.report, Generation::new(40)).await;
    let fence = a.acquires(scene.report).await;
    let answer = a.store.publish(publishing(fence, "published by generation 41 again"), budget()).await;
    let replaced = Forgotten::HistoryReplaced { epoch: fence.epoch };
    assert_eq!(answer.expect("publish"), PublishAnswer::NoLongerKnown(replaced));
    assert_eq!(scene.row().await.payload.as_deref(), Some("published by generation 41"));
}

async fn readers_of_a_lost_history_see_the_new_one<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.db.set_generation(scene.report, Generation::new(40)).await;
    let seen = a.acquires_and_publishes(scene.report, "of the lost history", None).await;
    let cached = Version { epoch: seen.epoch, generation: seen.generation };
    scene.raise_epoch().await;
    scene.db.set_generation(scene.report, Generation::new(50)).await;
    match a.store.read(scene.report, Some(cached), budget()).await.expect("read") {
        ReadAnswer::Found { visible, .. } => assert!(visible.version > cached, "{visible:?}"),
        other => panic!("a copy of the lost history is taken for current: {other:?}"),
    }
}

async fn a_publication_of_the_old_epoch_is_still_known<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = publishing(a.acquires(scene.report).await, "a report");
    let publication = published(a.send(&request).await);
    let closed = a.acquires(scene.report).await;
    assert_eq!(a.close(closed).await, CLOSED);
    scene.raise_epoch().await;
    assert_eq!(already_published(a.send(&request).await), publication);
    assert_eq!(a.close(request.fence).await, ended_by(publication.receipt));
    assert_eq!(a.close(closed).await, CLOSED);
    assert_eq!(a.publish(closed, "late").await, refused(Refusal::Closed));
    let fence = a.acquires(scene.report).await;
    busy(a.acquire(acquiring(scene.report)).await);
    a.publishes(fence, "of the new epoch").await;
}
