//! `acquire`: its answers, in their order, and repeated requests.

use std::time::Duration;

use super::answers::{CLOSED, acquired, busy, refused};
use super::harness::Database;
use super::scene::{Scene, unknown_report};
use super::suite::cases;
use super::worker::{TTL, acquiring};
use crate::answer::{AcquireAnswer, Ending, Refusal};
use crate::fence::{Epoch, SourceRevision};
use crate::store::AcquireRequest;

cases![
    an_unknown_report_is_missing_whatever_else_holds,
    a_deleted_row_is_missing_even_for_an_owner_in_the_ledger,
    stale_history_is_answered_before_the_ledger,
    stale_history_is_answered_before_busy,
    an_ended_owner_is_told_so_before_it_is_told_what_is_fresh,
    an_ended_owner_is_told_so_before_busy,
    an_owner_that_holds_is_told_so_before_it_is_told_what_is_fresh,
    what_is_fresh_is_answered_before_busy,
    an_acquisition_repeated_while_held_gives_the_same_lease,
    an_acquisition_repeated_while_held_gives_no_new_ttl,
    an_acquisition_repeated_after_its_publication_is_ended,
    an_acquisition_repeated_after_its_close_is_ended,
    an_acquisition_repeated_after_its_release_is_ended,
    an_acquisition_repeated_after_its_expiry_acquires_anew,
    an_acquisition_repeated_after_it_was_superseded_is_busy,
    a_minimum_epoch_that_the_row_has_is_enough,
    what_remains_is_rounded_down_and_never_above_the_ttl,
    a_lease_on_one_report_leaves_others_free,
];

/// A request by the same owner with everything else at its default.
fn again(request: &AcquireRequest) -> AcquireRequest {
    AcquireRequest { owner: request.owner, ..acquiring(request.report) }
}

fn wanting(revision: i64, request: AcquireRequest) -> AcquireRequest {
    AcquireRequest { wanted: Some(SourceRevision::new(revision)), ..request }
}

fn from_the_future(request: AcquireRequest) -> AcquireRequest {
    AcquireRequest { min_epoch: Epoch::new(1_000), ..request }
}

async fn an_unknown_report_is_missing_whatever_else_holds<D: Database>(scene: Scene<D>) {
    let request = wanting(1, from_the_future(acquiring(unknown_report())));
    assert_eq!(scene.worker().await.acquire(request).await, AcquireAnswer::Missing);
}

async fn a_deleted_row_is_missing_even_for_an_owner_in_the_ledger<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let lease = a.acquires_as(request.clone()).await;
    a.publishes(lease.fence, "a report").await;
    scene.db.delete_row(scene.report).await;
    assert_eq!(a.acquire(request).await, AcquireAnswer::Missing);
}

async fn stale_history_is_answered_before_the_ledger<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let lease = a.acquires_as(request.clone()).await;
    assert_eq!(a.close(lease.fence).await, CLOSED);
    let epoch = scene.row().await.epoch;
    assert_eq!(a.acquire(from_the_future(request)).await, AcquireAnswer::StaleHistory { epoch });
}

async fn stale_history_is_answered_before_busy<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    a.acquires_and_publishes(scene.report, "a report", Some(5)).await;
    let fence = a.acquires(scene.report).await;
    let answer = b.acquire(wanting(5, from_the_future(acquiring(scene.report)))).await;
    assert_eq!(answer, AcquireAnswer::StaleHistory { epoch: fence.epoch });
    let held = AcquireRequest { owner: fence.owner, ..acquiring(scene.report) };
    let answer = a.acquire(from_the_future(held)).await;
    assert_eq!(answer, AcquireAnswer::StaleHistory { epoch: fence.epoch }, "before the repeated acquisition");
}

async fn an_ended_owner_is_told_so_before_it_is_told_what_is_fresh<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "a report", Some(5)).await;
    let request = acquiring(scene.report);
    let lease = a.acquires_as(request.clone()).await;
    assert_eq!(a.close(lease.fence).await, CLOSED);
    assert_eq!(a.acquire(wanting(5, again(&request))).await, AcquireAnswer::Ended(Ending::Closed));
}

async fn an_ended_owner_is_told_so_before_busy<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let request = acquiring(scene.report);
    let lease = a.acquires_as(request.clone()).await;
    let receipt = a.publishes(lease.fence, "a report").await;
    b.acquires(scene.report).await;
    assert_eq!(a.acquire(request).await, AcquireAnswer::Ended(Ending::Published(receipt)));
}

async fn an_owner_that_holds_is_told_so_before_it_is_told_what_is_fresh<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "a report", Some(5)).await;
    let request = acquiring(scene.report);
    let lease = a.acquires_as(request.clone()).await;
    let repeated = acquired(a.acquire(wanting(5, request)).await);
    assert_eq!(repeated.fence, lease.fence);
}

async fn what_is_fresh_is_answered_before_busy<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    a.acquires_and_publishes(scene.report, "a report", Some(5)).await;
    a.acquires(scene.report).await;
    let answer = b.acquire(wanting(5, acquiring(scene.report))).await;
    assert!(matches!(answer, AcquireAnswer::AlreadyFresh(_)), "{answer:?}");
    busy(b.acquire(wanting(6, acquiring(scene.report))).await);
}

async fn an_acquisition_repeated_while_held_gives_the_same_lease<D: Database>(scene: Scene<D>) {
    let (a, also_a) = scene.two_workers().await;
    let request = acquiring(scene.report);
    let first = a.acquires_as(request.clone()).await;
    let before = scene.row().await;
    let second = also_a.acquires_as(request).await;
    assert_eq!((second.fence, second.visible), (first.fence, first.visible));
    assert!(second.remaining <= first.remaining, "{second:?} outlives {first:?}");
    let after = scene.row().await;
    assert_eq!((after.generation, after.owner), (before.generation, before.owner));
    a.publishes(first.fence, "a report").await;
}

async fn an_acquisition_repeated_while_held_gives_no_new_ttl<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    a.acquires_as(request.clone()).await;
    scene.db.set_expiry(scene.report, 60_000).await;
    let repeated = a.acquires_as(AcquireRequest { takeover_delay: TTL, ..request }).await;
    assert!(repeated.remaining <= Duration::from_secs(60), "{repeated:?}");
    assert!(repeated.remaining > Duration::from_secs(30), "{repeated:?}");
    let left = scene.row().await.expires_in_millis;
    assert!(left.is_some_and(|millis| millis <= 60_000), "the lease was extended to {left:?} ms");
}

async fn an_acquisition_repeated_after_its_publication_is_ended<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let lease = a.acquires_as(request.clone()).await;
    let receipt = a.publishes(lease.fence, "a report").await;
    assert_eq!(a.acquire(request).await, AcquireAnswer::Ended(Ending::Published(receipt)));
    assert_eq!(scene.row().await.owner, None);
}

async fn an_acquisition_repeated_after_its_close_is_ended<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    a.acquires_as(request.clone()).await;
    assert_eq!(a.close_unlearned(scene.report, request.owner).await, CLOSED);
    assert_eq!(a.acquire(request).await, AcquireAnswer::Ended(Ending::Closed));
    assert_eq!(scene.row().await.owner, None);
}

async fn an_acquisition_repeated_after_its_release_is_ended<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let lease = a.acquires_as(request.clone()).await;
    a.release(lease.fence).await;
    assert_eq!(a.acquire(request).await, AcquireAnswer::Ended(Ending::Closed));
    assert_eq!(scene.row().await.owner, None);
}

async fn an_acquisition_repeated_after_its_expiry_acquires_anew<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let first = a.acquires_as(request.clone()).await;
    scene.expire().await;
    let second = a.acquires_as(request).await;
    assert_eq!(Some(second.fence.generation), first.fence.generation.next());
    // One owner, two generations: only the later one may write.
    let old = a.publish(first.fence, "under the old generation").await;
    assert_eq!(old, refused(Refusal::Superseded { by: second.fence.generation }));
    a.publishes(second.fence, "under the new generation").await;
}

async fn an_acquisition_repeated_after_it_was_superseded_is_busy<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let request = acquiring(scene.report);
    a.acquires_as(request.clone()).await;
    scene.expire().await;
    let fence_of_b = b.acquires(scene.report).await;
    busy(a.acquire(request).await);
    assert_eq!(scene.row().await.owner, Some(fence_of_b.owner));
}

async fn a_minimum_epoch_that_the_row_has_is_enough<D: Database>(scene: Scene<D>) {
    let min_epoch = scene.row().await.epoch;
    let lease = scene.worker().await.acquires_as(AcquireRequest { min_epoch, ..acquiring(scene.report) }).await;
    assert_eq!(lease.fence.epoch, min_epoch);
}

async fn what_remains_is_rounded_down_and_never_above_the_ttl<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let lease = a.acquires_as(request.clone()).await;
    assert!(lease.remaining <= TTL && lease.remaining > TTL / 2, "{lease:?}");
    for _ in 0..20 {
        let before = scene.row().await.expires_in_millis.expect("a held lease");
        let repeated = a.acquires_as(request.clone()).await;
        assert_eq!(repeated.remaining.subsec_nanos() % 1_000_000, 0, "not whole milliseconds: {repeated:?}");
        let millis = i64::try_from(repeated.remaining.as_millis()).expect("a TTL");
        assert!(millis <= before, "{millis} ms remain, but only {before} ms did before");
    }
}

async fn a_lease_on_one_report_leaves_others_free<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let other = scene.another_report().await;
    let of_a = a.acquires(scene.report).await;
    let of_b = b.acquires(other).await;
    assert_eq!(of_a.generation, of_b.generation, "generations are ordered within a report only");
    b.publishes(of_b, "the other report").await;
    assert_eq!(scene.row().await.payload, None);
    a.publishes(of_a, "the report").await;
}
