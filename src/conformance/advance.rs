//! `publish_and_advance`: the lease goes on under the next generation and the next owner.

use std::time::Duration;

use super::answers::{CLOSED, already_published, busy, ended_by, fails, next, published, refused, renewed};
use super::harness::Database;
use super::scene::Scene;
use super::suite::cases;
use super::worker::{TTL, acquiring, advancing, budget, holder};
use crate::answer::{AcquireAnswer, Ending, Refusal, ReleaseAnswer};
use crate::error::StoreErrorKind;
use crate::fence::{Generation, Owner};
use crate::store::{AcquireRequest, AdvanceRequest, Store};

cases![
    an_advance_publishes_and_goes_on_under_the_next_fence,
    an_advance_keeps_holder_and_delay_and_gives_a_fresh_ttl,
    an_advance_leaves_no_gap_for_others,
    the_old_fence_is_dead_after_an_advance,
    the_next_fence_can_renew_publish_and_release,
    the_next_owner_can_ask_for_its_lease_again,
    an_advance_sent_again_answers_what_remains_and_gives_no_new_ttl,
    an_advance_sent_again_after_the_next_lease_ended_has_no_next,
    an_advance_sent_again_after_a_second_advance_has_no_next,
    an_advance_onto_a_closed_owner_publishes_and_ends,
    an_advance_at_the_last_generation_publishes_and_ends,
    an_advance_of_an_expired_lease_is_refused,
    another_operation_of_the_advanced_generation_is_refused,
    many_advances_publish_many_times,
    an_advance_onto_the_publishing_owner_is_invalid,
];

async fn an_advance_publishes_and_goes_on_under_the_next_fence<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = advancing(a.acquires(scene.report).await, "first");
    let fence = request.publish.fence;
    let publication = published(a.advance(&request).await);
    assert_eq!(publication.receipt.generation, fence.generation);
    let lease = next(publication);
    assert_eq!(lease.fence.owner, request.next_owner);
    assert_eq!(Some(lease.fence.generation), fence.generation.next());
    assert_eq!((lease.fence.report, lease.fence.epoch), (fence.report, fence.epoch));
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation), (Some(request.next_owner), lease.fence.generation));
    assert_eq!((row.published_generation, row.payload.as_deref()), (fence.generation, Some("first")));
}

async fn an_advance_keeps_holder_and_delay_and_gives_a_fresh_ttl<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let delay = Duration::from_secs(300);
    let request = AcquireRequest { holder: holder("host/1/A"), takeover_delay: delay, ..acquiring(scene.report) };
    let fence = a.acquires_as(request).await.fence;
    scene.db.set_expiry(scene.report, 60_000).await;
    let lease = next(published(a.advance(&advancing(fence, "first")).await));
    assert!(lease.remaining <= TTL && lease.remaining > TTL / 2, "{lease:?}");
    let left = scene.row().await.expires_in_millis;
    assert!(left > Some(120_000), "answered, but not written: {left:?}");
    assert_eq!(busy(b.acquire(acquiring(scene.report)).await).holder.as_str(), "host/1/A");
    scene.expire().await;
    let kept = busy(b.acquire(acquiring(scene.report)).await);
    assert!(kept.remaining > delay / 2, "{kept:?}");
}

async fn an_advance_leaves_no_gap_for_others<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    let lease = next(published(a.advance(&advancing(fence, "first")).await));
    busy(b.acquire(acquiring(scene.report)).await);
    scene.expire().await;
    assert_eq!(Some(b.acquires(scene.report).await.generation), lease.fence.generation.next());
}

async fn the_old_fence_is_dead_after_an_advance<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = advancing(a.acquires(scene.report).await, "first");
    let old = request.publish.fence;
    let publication = published(a.advance(&request).await);
    let receipt = publication.receipt;
    assert_eq!(a.renew(old).await, crate::answer::RenewAnswer::Published(receipt));
    let published = refused(Refusal::GenerationPublished { operation: receipt.operation });
    assert_eq!(a.publish(old, "second").await, published);
    assert_eq!(a.release(old).await, ReleaseAnswer::AlreadyOver);
    assert_eq!(a.close(old).await, ended_by(receipt));
    let late = AcquireRequest { owner: old.owner, ..acquiring(scene.report) };
    assert_eq!(a.acquire(late).await, AcquireAnswer::Ended(Ending::Published(receipt)));
    assert_eq!(scene.row().await.owner, Some(next(publication).fence.owner), "the next lease was harmed");
}

async fn the_next_fence_can_renew_publish_and_release<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let second = next(published(a.advance(&advancing(fence, "first")).await)).fence;
    renewed(a.renew(second).await);
    let third = next(published(a.advance(&advancing(second, "second")).await)).fence;
    assert_eq!(a.release(third).await, ReleaseAnswer::Released);
    let row = scene.row().await;
    assert_eq!((row.payload.as_deref(), row.owner), (Some("second"), None));
    let fence = a.acquires(scene.report).await;
    let last = next(published(a.advance(&advancing(fence, "third")).await)).fence;
    let receipt = a.publishes(last, "last").await;
    assert_eq!(receipt.generation, last.generation);
    assert_eq!(scene.row().await.payload.as_deref(), Some("last"));
}

async fn the_next_owner_can_ask_for_its_lease_again<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let lease = next(published(a.advance(&advancing(fence, "first")).await));
    let again = AcquireRequest { owner: lease.fence.owner, ..acquiring(scene.report) };
    assert_eq!(a.acquires_as(again).await.fence, lease.fence);
}

async fn an_advance_sent_again_answers_what_remains_and_gives_no_new_ttl<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = advancing(a.acquires(scene.report).await, "first");
    let first = published(a.advance(&request).await);
    scene.db.set_expiry(scene.report, 60_000).await;
    let second = already_published(a.advance(&request).await);
    assert_eq!((second.receipt, next(second).fence), (first.receipt, next(first).fence));
    let remaining = next(second).remaining;
    assert!(remaining <= Duration::from_secs(60) && remaining > Duration::from_secs(30), "{remaining:?}");
    assert!(scene.row().await.expires_in_millis.is_some_and(|millis| millis <= 60_000), "it was extended");
    a.publishes(next(second).fence, "second").await;
}

async fn an_advance_sent_again_after_the_next_lease_ended_has_no_next<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = advancing(a.acquires(scene.report).await, "first");
    let first = published(a.advance(&request).await);
    scene.expire().await;
    let second = already_published(a.advance(&request).await);
    assert_eq!((second.receipt, second.next), (first.receipt, None));
    scene.step_the_clock_back().await;
    let third = already_published(a.advance(&request).await);
    assert_eq!(third.next, None, "a lease that was seen expired came back");
}

async fn an_advance_sent_again_after_a_second_advance_has_no_next<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = advancing(a.acquires(scene.report).await, "first");
    let first = published(a.advance(&request).await);
    let second = published(a.advance(&advancing(next(first).fence, "second")).await);
    let again = already_published(a.advance(&request).await);
    assert_eq!((again.receipt, again.next), (first.receipt, None));
    let row = scene.row().await;
    assert_eq!((row.owner, row.payload.as_deref()), (Some(next(second).fence.owner), Some("second")));
}

async fn an_advance_onto_a_closed_owner_publishes_and_ends<D: Database>(scene: Scene<D>) {
    let (a, recovery) = scene.two_workers().await;
    let request = advancing(a.acquires(scene.report).await, "first");
    assert_eq!(recovery.close_unlearned(scene.report, request.next_owner).await, CLOSED);
    let publication = published(a.advance(&request).await);
    assert_eq!(publication.next, None);
    let row = scene.row().await;
    assert_eq!((row.owner, row.expires_in_millis), (None, None), "a closed owner holds the row");
    assert_eq!((row.published_generation, row.payload.as_deref()), (request.publish.fence.generation, Some("first")));
    assert_eq!(already_published(a.advance(&request).await), publication);
    recovery.acquires(scene.report).await;
}

async fn an_advance_at_the_last_generation_publishes_and_ends<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.db.set_generation(scene.report, Generation::new(i64::MAX - 1)).await;
    let request = advancing(a.acquires(scene.report).await, "the last");
    assert_eq!(request.publish.fence.generation, Generation::new(i64::MAX));
    let publication = published(a.advance(&request).await);
    assert_eq!(publication.next, None);
    let row = scene.row().await;
    assert_eq!(
        (row.owner, row.generation, row.payload.as_deref()),
        (None, Generation::new(i64::MAX), Some("the last"))
    );
    assert_eq!(already_published(a.advance(&request).await), publication);
}

async fn an_advance_of_an_expired_lease_is_refused<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = advancing(a.acquires(scene.report).await, "late");
    scene.expire().await;
    assert_eq!(a.advance(&request).await, refused(Refusal::Expired));
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation, row.payload), (None, request.publish.fence.generation, None));
}

async fn another_operation_of_the_advanced_generation_is_refused<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = advancing(a.acquires(scene.report).await, "first");
    published(a.advance(&request).await);
    let operation = request.publish.operation;
    let other = advancing(request.publish.fence, "second");
    assert_eq!(a.advance(&other).await, refused(Refusal::GenerationPublished { operation }));
    assert_eq!(scene.row().await.payload.as_deref(), Some("first"));
}

async fn many_advances_publish_many_times<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let mut fence = a.acquires(scene.report).await;
    for round in 1..=10 {
        let text = format!("round {round}");
        let publication = published(a.advance(&advancing(fence, &text)).await);
        assert_eq!(publication.receipt.generation, Generation::new(round));
        assert_eq!(scene.row().await.payload, Some(text));
        fence = next(publication).fence;
    }
    assert_eq!(fence.generation, Generation::new(11));
}

async fn an_advance_onto_the_publishing_owner_is_invalid<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = advancing(a.acquires(scene.report).await, "first");
    let same: Owner = request.publish.fence.owner;
    let invalid = AdvanceRequest { next_owner: same, ..request.clone() };
    fails(a.store.publish_and_advance(invalid, budget()).await, StoreErrorKind::Invalid);
    assert_eq!(scene.row().await.payload, None);
    published(a.advance(&request).await);
}
