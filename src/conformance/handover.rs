//! The handover: a worker that was superseded comes back. The schedules are the article's own.

use tokio::sync::oneshot;

use super::answers::{acquired, already_published, busy, found, not_renewed, published, refused};
use super::harness::Database;
use super::scene::Scene;
use super::suite::cases;
use super::worker::{acquiring, advancing, publishing};
use crate::answer::{AcquireAnswer, Refusal, ReleaseAnswer};
use crate::fence::Generation;
use crate::store::PublishRequest;

cases![
    a_superseded_publish_is_refused_before_the_successor_publishes,
    a_superseded_publish_is_refused_after_the_successor_published,
    a_superseded_release_leaves_the_successor_alone,
    a_superseded_renewal_is_refused,
    a_superseded_advance_is_refused,
    publication_after_expiry_without_a_successor_is_refused,
    the_same_publication_sent_twice_changes_the_row_once,
    a_second_publication_of_one_generation_is_refused,
    an_expired_lease_is_taken_over_with_the_next_generation,
    a_held_lease_is_busy_for_others,
    taking_over_keeps_the_visible_payload,
    every_acquisition_has_a_greater_generation,
];

async fn a_superseded_publish_is_refused_before_the_successor_publishes<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let (tell, fence_of_a) = oneshot::channel();
    let (lift, barrier) = oneshot::channel::<()>();
    let report = scene.report;
    let worker_a = tokio::spawn(async move {
        let fence = a.acquires(report).await;
        tell.send(fence).expect("the case listens");
        barrier.await.expect("the case lifts the barrier"); // Held immediately before its publication.
        a.publish(fence, "built by A").await
    });
    let fence_of_a = fence_of_a.await.expect("A acquires");

    scene.expire().await;
    let fence_of_b = b.acquires(report).await;
    assert_eq!(fence_of_b.generation.get(), fence_of_a.generation.get() + 1);
    let before = scene.row().await;

    lift.send(()).expect("A waits");
    let answer = worker_a.await.expect("A runs to its end");
    assert_eq!(answer, refused(Refusal::Superseded { by: fence_of_b.generation }));
    let after = scene.row().await;
    assert_eq!((after.owner, after.generation), (before.owner, before.generation));
    assert_eq!((after.published_generation, after.payload), (Generation::new(0), None), "A affected the row");

    b.publishes(fence_of_b, "built by B").await;
    let row = scene.row().await;
    assert_eq!(row.payload.as_deref(), Some("built by B"));
    assert_eq!(row.published_generation, fence_of_b.generation);
}

async fn a_superseded_publish_is_refused_after_the_successor_published<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence_of_a = a.acquires(scene.report).await;
    scene.expire().await;
    let fence_of_b = b.acquires(scene.report).await;
    b.publishes(fence_of_b, "built by B").await;

    let answer = a.publish(fence_of_a, "built by A").await;
    assert_eq!(answer, refused(Refusal::Superseded { by: fence_of_b.generation }));
    let row = scene.row().await;
    assert_eq!((row.payload.as_deref(), row.published_generation), (Some("built by B"), fence_of_b.generation));
}

async fn a_superseded_release_leaves_the_successor_alone<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence_of_a = a.acquires(scene.report).await;
    scene.expire().await;
    let fence_of_b = b.acquires(scene.report).await;

    assert_eq!(a.release(fence_of_a).await, ReleaseAnswer::AlreadyOver);
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation), (Some(fence_of_b.owner), fence_of_b.generation));
    assert!(row.expires_in_millis.is_some_and(|millis| millis > 0), "B's lease was cut: {row:?}");
    b.publishes(fence_of_b, "built by B").await;
}

async fn a_superseded_renewal_is_refused<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence_of_a = a.acquires(scene.report).await;
    scene.expire().await;
    let fence_of_b = b.acquires(scene.report).await;
    assert_eq!(a.renew(fence_of_a).await, not_renewed(Refusal::Superseded { by: fence_of_b.generation }));
    assert_eq!(scene.row().await.owner, Some(fence_of_b.owner));
}

async fn a_superseded_advance_is_refused<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence_of_a = a.acquires(scene.report).await;
    scene.expire().await;
    let fence_of_b = b.acquires(scene.report).await;
    let answer = a.advance(&advancing(fence_of_a, "built by A")).await;
    assert_eq!(answer, refused(Refusal::Superseded { by: fence_of_b.generation }));
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation, row.payload), (Some(fence_of_b.owner), fence_of_b.generation, None));
}

async fn publication_after_expiry_without_a_successor_is_refused<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    scene.expire().await;
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Expired));
    let row = scene.row().await;
    assert_eq!((row.published_generation, row.payload, row.owner), (Generation::new(0), None, None));
}

async fn the_same_publication_sent_twice_changes_the_row_once<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = publishing(a.acquires(scene.report).await, "once");
    let first = published(a.send(&request).await);
    let altered = PublishRequest { payload: super::worker::payload("written again"), ..request.clone() };
    let second = already_published(a.send(&altered).await);
    assert_eq!(second, first);
    assert_eq!(found(a.read(scene.report).await), "once");
    assert_eq!(scene.row().await.generation, request.fence.generation);
}

async fn a_second_publication_of_one_generation_is_refused<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let first = a.publishes(fence, "first").await;
    let answer = a.publish(fence, "second").await;
    assert_eq!(answer, refused(Refusal::GenerationPublished { operation: first.operation }));
    assert_eq!(scene.row().await.payload.as_deref(), Some("first"));
}

async fn an_expired_lease_is_taken_over_with_the_next_generation<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence_of_a = a.acquires(scene.report).await;
    scene.expire().await;
    let fence_of_b = b.acquires(scene.report).await;
    assert_eq!(Some(fence_of_b.generation), fence_of_a.generation.next());
    assert_eq!(fence_of_b.epoch, fence_of_a.epoch);
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation), (Some(fence_of_b.owner), fence_of_b.generation));
}

async fn a_held_lease_is_busy_for_others<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let request = crate::store::AcquireRequest { holder: super::worker::holder("host/1/A"), ..acquiring(scene.report) };
    let lease = a.acquires_as(request).await;
    let before = scene.row().await;
    let busy = busy(b.acquire(acquiring(scene.report)).await);
    assert_eq!(busy.holder.as_str(), "host/1/A");
    assert!(busy.remaining <= lease.remaining, "{busy:?} outlives {lease:?}");
    assert!(busy.remaining > lease.remaining / 2, "{busy:?} is far from {lease:?}");
    assert_eq!(scene.row().await.generation, before.generation);
    assert_eq!(scene.row().await.owner, before.owner);
}

async fn taking_over_keeps_the_visible_payload<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let receipt = a.acquires_and_publishes(scene.report, "the previous report", Some(3)).await;
    let lease = acquired(b.acquire(acquiring(scene.report)).await);
    let visible = lease.visible.expect("what is published now");
    assert_eq!(visible.version.generation, receipt.generation);
    assert_eq!((visible.revision, visible.published_at), (receipt.revision, receipt.published_at));
    assert_eq!(found(b.read(scene.report).await), "the previous report");
}

async fn every_acquisition_has_a_greater_generation<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let mut last = Generation::new(0);
    for round in 0..12 {
        let fence = a.acquires(scene.report).await;
        assert_eq!(Some(fence.generation), last.next(), "round {round}");
        last = fence.generation;
        match round % 4 {
            0 => assert_eq!(a.release(fence).await, ReleaseAnswer::Released),
            1 => drop(a.publishes(fence, "a report").await),
            2 => assert_eq!(a.close(fence).await, super::answers::CLOSED),
            _ => scene.expire().await,
        }
        assert_eq!(scene.row().await.generation, last, "an ended lease keeps the row and its generation");
    }
    let missing = acquiring(super::scene::unknown_report());
    assert_eq!(a.acquire(missing).await, AcquireAnswer::Missing);
}
