//! Source revisions: what is visible never goes down, unless an operator says so.

use super::answers::{acquired, not_renewed, published, refused};
use super::harness::Database;
use super::scene::{Scene, unknown_report};
use super::suite::cases;
use super::worker::{TTL, acquiring, publishing_revision};
use crate::answer::{AcquireAnswer, PublishAnswer, Refusal, RevisionAnswer};
use crate::fence::{ReportId, SourceRevision};
use crate::store::{AcquireRequest, AdvanceRequest};

cases![
    revisions_go_up_and_may_stay,
    a_revision_below_what_is_visible_is_refused_and_the_lease_goes_on,
    a_revision_below_the_floor_is_refused_and_the_lease_goes_on,
    the_greater_of_floor_and_visible_is_required,
    a_missing_revision_is_refused_once_one_is_visible,
    a_missing_revision_is_refused_once_one_is_required,
    without_any_requirement_a_revision_may_be_missing,
    an_advance_minds_revisions_too,
    the_floor_is_never_lowered_by_a_requirement,
    a_requirement_leaves_the_lease_alone,
    what_is_visible_is_fresh_up_to_its_revision,
    what_is_visible_below_the_floor_is_not_fresh,
    nothing_visible_is_never_fresh,
    a_visible_payload_without_a_revision_is_never_fresh,
    a_reset_is_the_way_down,
    a_reset_ends_the_lease_and_raises_the_generation,
    a_reset_to_nothing_requires_nothing,
    a_publication_refused_as_stale_stays_refused_after_a_reset,
    unknown_reports_have_no_floor,
];

fn revision(number: i64) -> SourceRevision {
    SourceRevision::new(number)
}

fn stale(required: i64) -> PublishAnswer {
    refused(Refusal::StaleSource { required: revision(required) })
}

fn wanting(report: ReportId, wanted: i64) -> AcquireRequest {
    AcquireRequest { wanted: Some(revision(wanted)), ..acquiring(report) }
}

async fn revisions_go_up_and_may_stay<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    for number in [-3, -3, 0, 7, 7, i64::MAX] {
        a.acquires_and_publishes(scene.report, "a report", Some(number)).await;
        assert_eq!(scene.row().await.revision, Some(revision(number)));
    }
}

async fn a_revision_below_what_is_visible_is_refused_and_the_lease_goes_on<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "revision 5", Some(5)).await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(a.send(&publishing_revision(fence, "revision 4", 4)).await, stale(5));
    let row = scene.row().await;
    assert_eq!((row.payload.as_deref(), row.revision), (Some("revision 5"), Some(revision(5))));
    assert_eq!(row.owner, Some(fence.owner), "a stale source does not end the lease");
    assert!(row.expires_in_millis.is_some_and(|millis| millis > 0));
    published(a.send(&publishing_revision(fence, "revision 6", 6)).await);
}

async fn a_revision_below_the_floor_is_refused_and_the_lease_goes_on<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.require_revision(scene.report, 5).await;
    let request = publishing_revision(a.acquires(scene.report).await, "revision 4", 4);
    assert_eq!(a.send(&request).await, stale(5));
    assert_eq!(a.send(&request).await, stale(5), "sent again");
    assert_eq!(scene.row().await.payload, None);
    published(a.send(&publishing_revision(request.fence, "revision 5", 5)).await);
}

async fn the_greater_of_floor_and_visible_is_required<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.require_revision(scene.report, 3).await;
    a.acquires_and_publishes(scene.report, "revision 5", Some(5)).await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(a.send(&publishing_revision(fence, "revision 4", 4)).await, stale(5));
    a.require_revision(scene.report, 8).await;
    assert_eq!(a.send(&publishing_revision(fence, "revision 6", 6)).await, stale(8));
    published(a.send(&publishing_revision(fence, "revision 8", 8)).await);
}

async fn a_missing_revision_is_refused_once_one_is_visible<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "revision 5", Some(5)).await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(a.publish(fence, "no revision").await, stale(5));
    assert_eq!(scene.row().await.payload.as_deref(), Some("revision 5"));
}

async fn a_missing_revision_is_refused_once_one_is_required<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.require_revision(scene.report, -2).await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(a.publish(fence, "no revision").await, stale(-2));
    assert_eq!(scene.row().await.payload, None);
}

async fn without_any_requirement_a_revision_may_be_missing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    for _ in 0..2 {
        let receipt = a.acquires_and_publishes(scene.report, "no revision", None).await;
        assert_eq!((receipt.revision, scene.row().await.revision), (None, None));
    }
    a.acquires_and_publishes(scene.report, "the first revision", Some(1)).await;
}

async fn an_advance_minds_revisions_too<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.require_revision(scene.report, 5).await;
    let fence = a.acquires(scene.report).await;
    let publish = publishing_revision(fence, "revision 4", 4);
    let request = AdvanceRequest { publish, next_owner: crate::fence::Owner::random(), ttl: TTL };
    assert_eq!(a.advance(&request).await, stale(5));
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation, row.payload), (Some(fence.owner), fence.generation, None));
}

async fn the_floor_is_never_lowered_by_a_requirement<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let floor = |number| RevisionAnswer::Floor(Some(revision(number)));
    assert_eq!(a.require_revision(scene.report, 5).await, floor(5));
    assert_eq!(a.require_revision(scene.report, 3).await, floor(5));
    assert_eq!(scene.row().await.revision_floor, Some(revision(5)), "answered, but lowered");
    assert_eq!(a.require_revision(scene.report, 5).await, floor(5));
    assert_eq!(a.require_revision(scene.report, 6).await, floor(6));
    assert_eq!(scene.row().await.revision_floor, Some(revision(6)));
}

async fn a_requirement_leaves_the_lease_alone<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    a.require_revision(scene.report, 5).await;
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation), (Some(fence.owner), fence.generation));
    published(a.send(&publishing_revision(fence, "revision 5", 5)).await);
}

async fn what_is_visible_is_fresh_up_to_its_revision<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let receipt = a.acquires_and_publishes(scene.report, "revision 5", Some(5)).await;
    for wanted in [i64::MIN, 4, 5] {
        match a.acquire(wanting(scene.report, wanted)).await {
            AcquireAnswer::AlreadyFresh(visible) => {
                assert_eq!((visible.revision, visible.version.generation), (receipt.revision, receipt.generation));
            }
            other => panic!("{wanted} is wanted and 5 is visible: {other:?}"),
        }
    }
    assert_eq!(scene.row().await.generation, receipt.generation, "nothing to build, nothing acquired");
    acquired(a.acquire(wanting(scene.report, 6)).await);
}

async fn what_is_visible_below_the_floor_is_not_fresh<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "revision 5", Some(5)).await;
    a.require_revision(scene.report, 6).await;
    let lease = acquired(a.acquire(wanting(scene.report, 3)).await);
    published(a.send(&publishing_revision(lease.fence, "revision 6", 6)).await);
    let answer = a.acquire(wanting(scene.report, 3)).await;
    assert!(matches!(answer, AcquireAnswer::AlreadyFresh(_)), "{answer:?}");
}

async fn nothing_visible_is_never_fresh<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let lease = acquired(a.acquire(wanting(scene.report, i64::MIN)).await);
    assert_eq!(lease.visible, None);
}

async fn a_visible_payload_without_a_revision_is_never_fresh<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "no revision", None).await;
    let lease = acquired(a.acquire(wanting(scene.report, i64::MIN)).await);
    assert_eq!(lease.visible.map(|visible| visible.revision), Some(None));
}

async fn a_reset_is_the_way_down<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "revision 9", Some(9)).await;
    a.require_revision(scene.report, 9).await;
    assert_eq!(a.reset_revision(scene.report, Some(2)).await, RevisionAnswer::Floor(Some(revision(2))));
    let row = scene.row().await;
    assert_eq!((row.revision, row.revision_floor), (None, Some(revision(2))));
    assert_eq!(row.payload.as_deref(), Some("revision 9"), "the payload stays");
    let lease = acquired(a.acquire(wanting(scene.report, 1)).await);
    assert_eq!(lease.visible.map(|visible| visible.revision), Some(None), "the visible revision is forgotten");
    assert_eq!(a.send(&publishing_revision(lease.fence, "revision 1", 1)).await, stale(2));
    published(a.send(&publishing_revision(lease.fence, "revision 2", 2)).await);
}

async fn a_reset_ends_the_lease_and_raises_the_generation<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, TTL).await;
    b.reset_revision(scene.report, None).await;
    let row = scene.row().await;
    assert_eq!((row.owner, row.expires_in_millis, Some(row.generation)), (None, None, fence.generation.next()));
    let by = row.generation;
    assert_eq!(a.renew(fence).await, not_renewed(Refusal::Superseded { by }));
    assert_eq!(a.publish(fence, "late").await, refused(Refusal::Superseded { by }));
    b.acquires(scene.report).await;
}

async fn a_reset_to_nothing_requires_nothing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "revision 9", Some(9)).await;
    assert_eq!(a.reset_revision(scene.report, None).await, RevisionAnswer::Floor(None));
    assert_eq!(scene.row().await.revision_floor, None);
    a.acquires_and_publishes(scene.report, "no revision", None).await;
}

async fn a_publication_refused_as_stale_stays_refused_after_a_reset<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "revision 9", Some(9)).await;
    let request = publishing_revision(a.acquires(scene.report).await, "revision 3", 3);
    assert_eq!(a.send(&request).await, stale(9));
    a.reset_revision(scene.report, Some(1)).await;
    let answer = a.send(&request).await; // A late duplicate of what was refused.
    assert_eq!(answer, refused(Refusal::Superseded { by: scene.row().await.generation }));
    assert_eq!(scene.row().await.payload.as_deref(), Some("revision 9"));
}

async fn unknown_reports_have_no_floor<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    assert_eq!(a.require_revision(unknown_report(), 1).await, RevisionAnswer::Missing);
    assert_eq!(a.reset_revision(unknown_report(), None).await, RevisionAnswer::Missing);
}
