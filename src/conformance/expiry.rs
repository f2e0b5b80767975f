//! Whoever sees a lease expired ends it in the row, so that a clock that steps back revives nothing.

use std::time::Duration;

use super::answers::{CLOSED, already_published, busy, not_renewed, published, refused};
use super::harness::Database;
use super::scene::Scene;
use super::suite::cases;
use super::worker::{Worker, acquiring, advancing, publishing};
use crate::answer::{AcquireAnswer, BatchRenewal, Refusal, ReleaseAnswer};
use crate::fence::{Epoch, Fence, Owner, SourceRevision};
use crate::store::AcquireRequest;

cases![
    an_expiry_seen_by_a_renewal_is_recorded,
    an_expiry_seen_by_a_renewal_of_many_is_recorded,
    an_expiry_seen_by_a_publication_is_recorded,
    an_expiry_seen_by_an_advance_is_recorded,
    an_expiry_seen_by_a_publication_sent_again_is_recorded,
    an_expiry_seen_by_a_busy_answer_is_recorded,
    an_expiry_seen_by_a_fresh_answer_is_recorded,
    an_expiry_seen_by_an_ended_answer_is_recorded,
    an_expiry_seen_by_a_stale_history_answer_is_recorded,
    an_expiry_seen_by_a_release_is_recorded,
    an_expiry_seen_by_a_foreign_release_is_recorded,
    an_expiry_seen_by_a_close_is_recorded,
    an_expiry_seen_by_a_foreign_close_is_recorded,
    an_expiry_seen_by_an_operator_is_recorded,
    an_expiry_seen_by_an_acquisition_is_superseded_for_good,
    an_expired_lease_that_nobody_saw_is_the_holders_again_when_the_clock_steps_back,
];

/// What a recorded expiry must keep: the row is reserved for so long after it.
const DELAY: Duration = Duration::from_secs(300);

/// A lease that has expired, and nobody has seen it yet.
async fn expired<D: Database>(scene: &Scene<D>, a: &Worker<D::Store>) -> Fence {
    let fence = a.acquires_with_delay(scene.report, DELAY).await;
    scene.expire().await;
    fence
}

/// Asserts that the expiry is in the row, then plays a clock that steps back: nothing of it comes to life again.
async fn stays_over<D: Database>(scene: &Scene<D>, a: &Worker<D::Store>, fence: Fence) {
    is_recorded(scene).await;
    scene.step_the_clock_back().await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Expired));
    let many = a.renew_many(vec![fence]).await;
    assert_eq!(many, [BatchRenewal::Answered(not_renewed(Refusal::Expired))]);
    assert_eq!(a.publish(fence, "revived").await, refused(Refusal::Expired));
    assert_eq!(a.release(fence).await, ReleaseAnswer::AlreadyOver);
    let again = AcquireRequest { owner: fence.owner, ..acquiring(scene.report) };
    busy(a.acquire(again).await);
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation, row.payload), (None, fence.generation, None));
}

async fn is_recorded<D: Database>(scene: &Scene<D>) {
    let row = scene.row().await;
    assert_eq!(row.owner, None, "an expiry that was seen is not in the row: {row:?}");
    assert!(row.expires_in_millis.is_some_and(|millis| millis < 0), "the expiry itself is to be kept: {row:?}");
}

async fn an_expiry_seen_by_a_renewal_is_recorded<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = expired(&scene, &a).await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Expired));
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_a_renewal_of_many_is_recorded<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = expired(&scene, &a).await;
    let many = a.renew_many(vec![fence]).await;
    assert_eq!(many, [BatchRenewal::Answered(not_renewed(Refusal::Expired))]);
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_a_publication_is_recorded<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = expired(&scene, &a).await;
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Expired));
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_an_advance_is_recorded<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = expired(&scene, &a).await;
    assert_eq!(a.advance(&advancing(fence, "late")).await, refused(Refusal::Expired));
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_a_publication_sent_again_is_recorded<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let request = publishing(b.acquires(scene.report).await, "built by B");
    let publication = published(b.send(&request).await);
    expired(&scene, &a).await;
    assert_eq!(already_published(b.send(&request).await), publication);
    is_recorded(&scene).await;
}

async fn an_expiry_seen_by_a_busy_answer_is_recorded<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = expired(&scene, &a).await;
    busy(b.acquire(acquiring(scene.report)).await);
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_a_fresh_answer_is_recorded<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    a.acquires_and_publishes(scene.report, "a report", Some(5)).await;
    expired(&scene, &a).await;
    let answer = b.acquire(AcquireRequest { wanted: Some(SourceRevision::new(5)), ..acquiring(scene.report) }).await;
    assert!(matches!(answer, AcquireAnswer::AlreadyFresh(_)), "{answer:?}");
    is_recorded(&scene).await;
}

async fn an_expiry_seen_by_an_ended_answer_is_recorded<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let late = acquiring(scene.report);
    assert_eq!(b.close_unlearned(scene.report, late.owner).await, CLOSED);
    let fence = expired(&scene, &a).await;
    assert!(matches!(b.acquire(late).await, AcquireAnswer::Ended(_)));
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_a_stale_history_answer_is_recorded<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = expired(&scene, &a).await;
    let answer = b.acquire(AcquireRequest { min_epoch: Epoch::new(1_000), ..acquiring(scene.report) }).await;
    assert_eq!(answer, AcquireAnswer::StaleHistory { epoch: fence.epoch });
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_a_release_is_recorded<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = expired(&scene, &a).await;
    assert_eq!(a.release(fence).await, ReleaseAnswer::AlreadyOver);
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_a_foreign_release_is_recorded<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = expired(&scene, &a).await;
    assert_eq!(b.release(Fence { owner: Owner::random(), ..fence }).await, ReleaseAnswer::AlreadyOver);
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_a_close_is_recorded<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = expired(&scene, &a).await;
    assert_eq!(a.close(fence).await, CLOSED);
    is_recorded(&scene).await;
    scene.step_the_clock_back().await;
    assert_eq!(a.publish(fence, "revived").await, refused(Refusal::Closed));
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Released));
}

async fn an_expiry_seen_by_a_foreign_close_is_recorded<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = expired(&scene, &a).await;
    assert_eq!(b.close_unlearned(scene.report, Owner::random()).await, CLOSED);
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_an_operator_is_recorded<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = expired(&scene, &a).await;
    a.require_revision(scene.report, 1).await;
    stays_over(&scene, &a, fence).await;
}

async fn an_expiry_seen_by_an_acquisition_is_superseded_for_good<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    scene.expire().await;
    let by = b.acquires(scene.report).await.generation;
    scene.step_the_clock_back().await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Superseded { by }));
    assert_eq!(a.publish(fence, "revived").await, refused(Refusal::Superseded { by }));
}

/// Design.md, promise 6: not promised is anything if the clock steps back before an expiry was seen by anyone. It shows that
/// the other cases of this file see what they think they see, and that reading (`inspect`) ends no lease.
async fn an_expired_lease_that_nobody_saw_is_the_holders_again_when_the_clock_steps_back<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = expired(&scene, &a).await;
    a.inspect(scene.report).await;
    a.read(scene.report).await;
    scene.step_the_clock_back().await;
    a.publishes(fence, "a report").await;
}
