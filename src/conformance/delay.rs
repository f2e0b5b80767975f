//! The takeover delay: an expired, unreleased lease is kept from others for so much longer.

use std::time::Duration;

use super::answers::{CLOSED, busy, not_renewed, refused};
use super::harness::{BlockerEnd, Database};
use super::scene::Scene;
use super::suite::cases;
use super::worker::{TTL, acquiring};
use crate::answer::{AcquireAnswer, Refusal, ReleaseAnswer};
use crate::store::{AcquireRequest, MAX_TAKEOVER_DELAY};

cases![
    an_expired_unreleased_lease_is_kept_for_its_delay,
    an_expired_lease_is_free_once_its_delay_has_passed,
    the_delay_counts_from_the_expiry,
    what_remains_while_held_includes_the_delay,
    recording_the_expiry_keeps_the_delay,
    the_delay_holds_for_the_former_owner_too,
    a_lease_within_its_delay_can_neither_publish_nor_be_renewed,
    a_released_lease_is_free_at_once,
    a_closed_lease_is_free_at_once,
    a_published_lease_is_free_at_once,
    a_close_after_the_expiry_keeps_the_delay,
    the_delay_is_the_holders_not_the_takers,
    the_next_holder_brings_its_own_delay,
    a_takeover_that_waits_for_the_row_still_sees_the_delay,
    the_longest_delay_is_accepted,
];

const DELAY: Duration = Duration::from_secs(300);

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).expect("a delay")
}

async fn an_expired_unreleased_lease_is_kept_for_its_delay<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    scene.expire().await;
    for _ in 0..2 {
        let busy = busy(b.acquire(acquiring(scene.report)).await);
        assert!(busy.remaining <= DELAY && busy.remaining > DELAY / 2, "{busy:?}");
    }
    assert_eq!(scene.row().await.generation, fence.generation);
}

async fn an_expired_lease_is_free_once_its_delay_has_passed<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    scene.db.set_expiry(scene.report, -millis(DELAY) - 1).await;
    assert_eq!(Some(b.acquires(scene.report).await.generation), fence.generation.next());
}

async fn the_delay_counts_from_the_expiry<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    a.acquires_with_delay(scene.report, DELAY).await;
    scene.db.set_expiry(scene.report, -millis(DELAY / 2)).await;
    let first = busy(b.acquire(acquiring(scene.report)).await);
    assert!(first.remaining <= DELAY / 2 && first.remaining > DELAY / 4, "{first:?}");
    let second = busy(b.acquire(acquiring(scene.report)).await);
    assert!(second.remaining <= first.remaining, "the delay began anew when the expiry was seen: {second:?}");
}

async fn what_remains_while_held_includes_the_delay<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let lease = a.acquires_as(AcquireRequest { takeover_delay: DELAY, ..acquiring(scene.report) }).await;
    assert!(lease.remaining <= TTL, "the holder's own lease does not include the delay: {lease:?}");
    let busy = busy(b.acquire(acquiring(scene.report)).await);
    assert!(busy.remaining <= TTL + DELAY && busy.remaining > TTL, "{busy:?}");
}

async fn recording_the_expiry_keeps_the_delay<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    scene.expire().await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Expired));
    assert_eq!(scene.row().await.owner, None);
    let seen = busy(b.acquire(acquiring(scene.report)).await);
    assert!(seen.remaining <= DELAY && seen.remaining > DELAY / 2, "{seen:?}");
    let view = a.inspect(scene.report).await.lease.expect("a lease within its delay");
    assert_eq!((view.owner, view.remaining, view.takeover_delay), (None, Duration::ZERO, DELAY));
}

async fn the_delay_holds_for_the_former_owner_too<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = AcquireRequest { takeover_delay: DELAY, ..acquiring(scene.report) };
    a.acquires_as(request.clone()).await;
    scene.expire().await;
    busy(a.acquire(request).await);
}

async fn a_lease_within_its_delay_can_neither_publish_nor_be_renewed<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    scene.expire().await;
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Expired));
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Expired));
    assert_eq!(scene.row().await.payload, None);
}

async fn a_released_lease_is_free_at_once<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    assert_eq!(a.release(fence).await, ReleaseAnswer::Released);
    b.acquires(scene.report).await;
}

async fn a_closed_lease_is_free_at_once<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    assert_eq!(a.close(fence).await, CLOSED);
    b.acquires(scene.report).await;
}

async fn a_published_lease_is_free_at_once<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    a.publishes(fence, "a report").await;
    b.acquires(scene.report).await;
}

/// Rule 3 comes before the answer: the lease ended by its expiry, so its side effects may still be under way.
async fn a_close_after_the_expiry_keeps_the_delay<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    scene.expire().await;
    assert_eq!(a.close(fence).await, CLOSED);
    busy(b.acquire(acquiring(scene.report)).await);
}

async fn the_delay_is_the_holders_not_the_takers<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    a.acquires_with_delay(scene.report, Duration::ZERO).await;
    scene.expire().await;
    b.acquires_with_delay(scene.report, DELAY).await; // B's own delay does not keep B out.
    scene.expire().await;
    busy(a.acquire(acquiring(scene.report)).await); // A's lack of one does not let A in.
}

async fn the_next_holder_brings_its_own_delay<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    a.release(fence).await;
    b.acquires_with_delay(scene.report, Duration::ZERO).await;
    scene.expire().await;
    a.acquires(scene.report).await;
}

async fn a_takeover_that_waits_for_the_row_still_sees_the_delay<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let (report, a, b) = (scene.another_report().await, scene.worker().await, scene.worker().await);
        a.acquires_with_delay(report, DELAY).await;
        scene.db.set_expiry(report, -1).await;
        let mut queue = scene.hold(report, end).await;
        let call = queue.call(async move { b.acquire(acquiring(report)).await }).await;
        queue.let_go().await;
        let answer = call.answer().await;
        assert!(matches!(answer, AcquireAnswer::Busy(_)), "{end:?}: {answer:?}");
    }
}

async fn the_longest_delay_is_accepted<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    a.acquires_with_delay(scene.report, MAX_TAKEOVER_DELAY).await;
    scene.expire().await;
    let busy = busy(b.acquire(acquiring(scene.report)).await);
    assert!(busy.remaining <= MAX_TAKEOVER_DELAY && busy.remaining > MAX_TAKEOVER_DELAY / 2, "{busy:?}");
}
