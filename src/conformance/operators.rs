//! What operators do: take a lease away by force.

use super::answers::{CLOSED, already_published, busy, not_renewed, published, refused};
use super::harness::Database;
use super::scene::{Scene, unknown_report};
use super::suite::cases;
use super::worker::{TTL, acquiring, advancing, budget, holder, publishing};
use crate::answer::{AcquireAnswer, Busy, ForceAnswer, Refusal, ReleaseAnswer};
use crate::fence::{Fence, Generation, Owner};
use crate::store::{AcquireRequest, Store};

cases![
    a_force_release_takes_the_lease_away_and_tells_whose_it_was,
    a_forced_out_holder_is_fenced_out_everywhere,
    a_forced_out_generation_is_below_the_rows,
    a_force_release_leaves_no_takeover_delay,
    a_force_release_of_a_lease_within_its_delay_leaves_none,
    a_force_release_of_a_free_row_raises_the_generation,
    a_force_release_is_recorded,
    a_second_force_release_is_recorded_instead,
    a_force_release_writes_nothing_to_the_ledger,
    a_force_release_keeps_what_is_visible,
    a_forced_out_publication_that_was_accepted_before_stays_known,
    an_unknown_report_is_missing,
];

#[track_caller]
fn forced(answer: ForceAnswer) -> (Generation, Option<Busy>) {
    match answer {
        ForceAnswer::Forced { generation, was } => (generation, was),
        other => panic!("expected a force release, got {other:?}"),
    }
}

async fn a_force_release_takes_the_lease_away_and_tells_whose_it_was<D: Database>(scene: Scene<D>) {
    let (a, operator) = scene.two_workers().await;
    let request = AcquireRequest { holder: holder("host/1/A"), ..acquiring(scene.report) };
    let fence = a.acquires_as(request).await.fence;
    let since = a.inspect(scene.report).await.lease.expect("a lease").since;
    let (generation, was) = forced(operator.force_release(scene.report).await);
    assert_eq!(Some(generation), fence.generation.next());
    let was = was.expect("the lease that was taken away");
    assert_eq!((was.holder.as_str(), was.since), ("host/1/A", since));
    assert!(was.remaining <= TTL && was.remaining > TTL / 2, "{was:?}");
    let row = scene.row().await;
    assert_eq!((row.owner, row.expires_in_millis, row.generation), (None, None, generation));
    assert_eq!(Some(operator.acquires(scene.report).await.generation), generation.next());
}

async fn a_forced_out_holder_is_fenced_out_everywhere<D: Database>(scene: Scene<D>) {
    let (a, operator) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    operator.force_release(scene.report).await;
    let before = scene.row().await;
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Forced));
    assert_eq!(a.advance(&advancing(fence, "late")).await, refused(Refusal::Forced));
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Forced));
    assert_eq!(a.release(fence).await, ReleaseAnswer::AlreadyOver);
    assert_eq!(scene.row().await, before);
    assert_eq!(a.close(fence).await, CLOSED);
    assert_eq!(a.publish(fence, "later").await, refused(Refusal::Closed));
}

/// The record in the row is overwritten by the next force release; the generation is what fences the old holder out for good.
async fn a_forced_out_generation_is_below_the_rows<D: Database>(scene: Scene<D>) {
    let (a, operator) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    operator.force_release(scene.report).await;
    let successor = operator.acquires(scene.report).await;
    operator.force_release(scene.report).await;
    let by = scene.row().await.generation;
    assert!(by > successor.generation && successor.generation > fence.generation);
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Superseded { by }));
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Superseded { by }));
    assert_eq!(operator.publish(successor, "late").await, refused(Refusal::Forced));
}

async fn a_force_release_leaves_no_takeover_delay<D: Database>(scene: Scene<D>) {
    let (a, operator) = scene.two_workers().await;
    a.acquires_with_delay(scene.report, TTL).await;
    let (_, was) = forced(operator.force_release(scene.report).await);
    assert!(was.is_some_and(|was| was.remaining > TTL && was.remaining <= 2 * TTL), "its delay is included");
    operator.acquires(scene.report).await;
}

async fn a_force_release_of_a_lease_within_its_delay_leaves_none<D: Database>(scene: Scene<D>) {
    let (a, operator) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, TTL).await;
    scene.expire().await;
    busy(operator.acquire(acquiring(scene.report)).await);
    let (generation, _) = forced(operator.force_release(scene.report).await);
    assert_eq!(Some(generation), fence.generation.next());
    operator.acquires(scene.report).await;
}

async fn a_force_release_of_a_free_row_raises_the_generation<D: Database>(scene: Scene<D>) {
    let operator = scene.worker().await;
    assert_eq!(forced(operator.force_release(scene.report).await), (Generation::new(1), None));
    assert_eq!(forced(operator.force_release(scene.report).await), (Generation::new(2), None));
    assert_eq!(operator.acquires(scene.report).await.generation, Generation::new(3));
}

async fn a_force_release_is_recorded<D: Database>(scene: Scene<D>) {
    let operator = scene.worker().await;
    assert_eq!(operator.inspect(scene.report).await.forced, None);
    let fence = operator.acquires(scene.report).await;
    operator.store.force_release(scene.report, holder("Ada, on call"), budget()).await.expect("force_release");
    for _ in 0..2 {
        let record = operator.inspect(scene.report).await.forced.expect("a record");
        assert_eq!((record.generation, record.by.as_str()), (fence.generation, "Ada, on call"));
        assert_eq!(scene.row().await.forced_generation, Some(fence.generation));
        operator.acquires(scene.report).await; // The record outlasts the next acquisition.
        scene.expire().await;
    }
}

async fn a_second_force_release_is_recorded_instead<D: Database>(scene: Scene<D>) {
    let operator = scene.worker().await;
    operator.force_release(scene.report).await;
    let fence = operator.acquires(scene.report).await;
    operator.store.force_release(scene.report, holder("the next shift"), budget()).await.expect("force_release");
    let record = operator.inspect(scene.report).await.forced.expect("a record");
    assert_eq!((record.generation, record.by.as_str()), (fence.generation, "the next shift"));
}

async fn a_force_release_writes_nothing_to_the_ledger<D: Database>(scene: Scene<D>) {
    let (a, operator) = scene.two_workers().await;
    let request = acquiring(scene.report);
    let first = a.acquires_as(request.clone()).await;
    operator.force_release(scene.report).await;
    // Not ended: an owner that was forced out simply acquires anew.
    let second = a.acquires_as(request).await;
    assert!(second.fence.generation > first.fence.generation);
    assert_eq!(a.publish(first.fence, "under the old generation").await, refused(Refusal::Forced));
    a.publishes(second.fence, "under the new generation").await;
}

async fn a_force_release_keeps_what_is_visible<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let receipt = a.acquires_and_publishes(scene.report, "a report", Some(5)).await;
    a.acquires(scene.report).await;
    a.force_release(scene.report).await;
    let row = scene.row().await;
    assert_eq!((row.payload.as_deref(), row.revision), (Some("a report"), receipt.revision));
    assert_eq!(row.published_generation, receipt.generation);
}

async fn a_forced_out_publication_that_was_accepted_before_stays_known<D: Database>(scene: Scene<D>) {
    let (a, operator) = scene.two_workers().await;
    let request = publishing(a.acquires(scene.report).await, "a report");
    let publication = published(a.send(&request).await);
    operator.force_release(scene.report).await;
    assert_eq!(already_published(a.send(&request).await), publication);
    let stranger = Fence { owner: Owner::random(), ..request.fence };
    assert_eq!(a.publish(stranger, "late").await, refused(Refusal::Forced));
}

async fn an_unknown_report_is_missing<D: Database>(scene: Scene<D>) {
    let operator = scene.worker().await;
    assert_eq!(operator.force_release(unknown_report()).await, ForceAnswer::Missing);
    assert_eq!(operator.acquire(acquiring(unknown_report())).await, AcquireAnswer::Missing);
}
