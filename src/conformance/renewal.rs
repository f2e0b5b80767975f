//! `renew`: what it extends, and the order of its refusals.

use std::time::Duration;

use super::answers::{CLOSED, not_renewed, renewed};
use super::harness::Database;
use super::scene::{Scene, unknown_report};
use super::suite::cases;
use super::worker::{TTL, acquiring};
use crate::answer::{Refusal, RenewAnswer};
use crate::fence::{Fence, Generation, Owner};

cases![
    a_renewal_extends_to_now_plus_its_ttl,
    a_renewal_never_shortens,
    a_renewal_changes_nothing_else,
    a_renewal_whose_answer_was_lost_can_be_sent_again,
    an_unknown_report_is_refused_as_missing,
    missing_is_answered_before_the_own_publication,
    the_own_publication_is_answered_before_superseded,
    superseded_is_answered_before_released,
    superseded_is_answered_before_forced,
    superseded_is_answered_before_another_epoch,
    released_is_answered_for_a_closed_owner,
    released_is_answered_before_forced,
    released_is_answered_before_another_epoch,
    released_is_answered_for_a_free_row_of_this_generation,
    forced_is_answered_while_nobody_came_after,
    another_epoch_is_answered_before_expired,
    a_generation_above_the_rows_belongs_to_another_history,
    an_expired_lease_is_not_renewed,
    a_foreign_owner_is_not_renewed,
    an_older_generation_of_the_same_owner_is_not_renewed,
];

async fn a_renewal_extends_to_now_plus_its_ttl<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    scene.db.set_expiry(scene.report, 60_000).await;
    let remaining = renewed(a.renew(fence).await);
    assert!(remaining <= TTL && remaining > TTL / 2, "{remaining:?}");
    assert!(scene.row().await.expires_in_millis.is_some_and(|millis| millis > 60_000));
}

async fn a_renewal_never_shortens<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let remaining = renewed(a.renew_for(fence, Duration::from_secs(1)).await);
    assert!(remaining <= TTL && remaining > TTL / 2, "{remaining:?}");
    assert!(scene.row().await.expires_in_millis.is_some_and(|millis| millis > 60_000));
}

async fn a_renewal_changes_nothing_else<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "a report", Some(3)).await;
    let fence = a.acquires(scene.report).await;
    let (before, status) = (scene.row().await, a.inspect(scene.report).await);
    renewed(a.renew_for(fence, TTL * 2).await);
    let mut after = scene.row().await;
    after.expires_in_millis = before.expires_in_millis;
    assert_eq!(after, before);
    let since = |status: crate::answer::ReportStatus| status.lease.map(|lease| (lease.since, lease.holder));
    assert_eq!(since(a.inspect(scene.report).await), since(status));
}

async fn a_renewal_whose_answer_was_lost_can_be_sent_again<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    renewed(a.renew(fence).await);
    renewed(a.renew(fence).await);
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation), (Some(fence.owner), fence.generation));
    a.publishes(fence, "a report").await;
}

async fn an_unknown_report_is_refused_as_missing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = Fence { report: unknown_report(), ..a.acquires(scene.report).await };
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Missing));
}

async fn missing_is_answered_before_the_own_publication<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    a.publishes(fence, "a report").await;
    scene.db.delete_row(scene.report).await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Missing));
}

async fn the_own_publication_is_answered_before_superseded<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    let receipt = a.publishes(fence, "a report").await;
    assert_eq!(a.renew(fence).await, RenewAnswer::Published(receipt));
    b.acquires(scene.report).await;
    assert_eq!(a.renew(fence).await, RenewAnswer::Published(receipt));
    scene.raise_epoch().await;
    assert_eq!(a.renew(fence).await, RenewAnswer::Published(receipt));
}

async fn superseded_is_answered_before_released<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    a.release(fence).await;
    let by = b.acquires(scene.report).await.generation;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Superseded { by }));
}

async fn superseded_is_answered_before_forced<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    a.force_release(scene.report).await;
    let by = b.acquires(scene.report).await.generation;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Superseded { by }));
}

async fn superseded_is_answered_before_another_epoch<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires(scene.report).await;
    scene.raise_epoch().await;
    let by = b.acquires(scene.report).await.generation;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Superseded { by }));
}

async fn released_is_answered_for_a_closed_owner<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let released = a.acquires(scene.report).await;
    a.release(released).await;
    assert_eq!(a.renew(released).await, not_renewed(Refusal::Released));
    let closed = a.acquires(scene.report).await;
    assert_eq!(a.close(closed).await, CLOSED);
    assert_eq!(a.renew(closed).await, not_renewed(Refusal::Released));
}

async fn released_is_answered_before_forced<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    a.release(fence).await;
    a.force_release(scene.report).await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Released));
}

async fn released_is_answered_before_another_epoch<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    a.release(fence).await;
    scene.raise_epoch().await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Released));
}

async fn released_is_answered_for_a_free_row_of_this_generation<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    a.release(fence).await;
    let stranger = Fence { owner: Owner::random(), ..fence };
    assert_eq!(a.renew(stranger).await, not_renewed(Refusal::Released));
}

async fn forced_is_answered_while_nobody_came_after<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    a.force_release(scene.report).await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Forced));
    assert_eq!(scene.row().await.owner, None);
}

async fn another_epoch_is_answered_before_expired<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    scene.expire().await;
    let forged = Fence { epoch: crate::fence::Epoch::new(fence.epoch.get() + 1), ..fence };
    assert_eq!(a.renew(forged).await, not_renewed(Refusal::StaleEpoch { epoch: fence.epoch }));
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Expired));
}

async fn a_generation_above_the_rows_belongs_to_another_history<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.db.set_generation(scene.report, Generation::new(40)).await;
    let fence = a.acquires(scene.report).await;
    scene.db.set_generation(scene.report, Generation::new(12)).await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::StaleEpoch { epoch: fence.epoch }));
}

async fn an_expired_lease_is_not_renewed<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    scene.expire().await;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Expired));
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Expired), "the second answer is another");
    let row = scene.row().await;
    assert!(row.expires_in_millis.is_some_and(|millis| millis < 0), "revived: {row:?}");
}

async fn a_foreign_owner_is_not_renewed<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    scene.db.set_expiry(scene.report, 60_000).await;
    let answer = a.renew(Fence { owner: Owner::random(), ..fence }).await;
    assert!(matches!(answer, RenewAnswer::Refused(_)), "{answer:?}");
    assert!(scene.row().await.expires_in_millis.is_some_and(|millis| millis <= 60_000), "it extended A's lease");
}

async fn an_older_generation_of_the_same_owner_is_not_renewed<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = acquiring(scene.report);
    let old = a.acquires_as(request.clone()).await.fence;
    scene.expire().await;
    let new = a.acquires_as(request).await.fence;
    scene.db.set_expiry(scene.report, 60_000).await;
    assert_eq!(a.renew(old).await, not_renewed(Refusal::Superseded { by: new.generation }));
    let left = scene.row().await.expires_in_millis;
    assert!(left <= Some(60_000), "it extended the new generation's lease: {left:?}");
    renewed(a.renew(new).await);
}
