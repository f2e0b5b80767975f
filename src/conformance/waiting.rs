//! Calls that wait for the row's lock until the lease has expired. A statement that decided before it waited is wrong.

use std::future::Future;
use std::time::{Duration, Instant};

use super::answers::{CLOSED, acquired, not_renewed, refused, renewed};
use super::harness::{BlockerEnd, Database, RawRow};
use super::queue::Call;
use super::scene::Scene;
use super::suite::cases;
use super::worker::{TTL, Worker, acquiring, advancing};
use crate::answer::{AcquireAnswer, BatchRenewal, Refusal, ReleaseAnswer};
use crate::fence::{Fence, Generation, Owner, ReportId};
use crate::store::AcquireRequest;

cases![
    late_renewal_after_lock_wait_is_refused,
    late_publish_after_lock_wait_is_refused,
    late_advance_after_lock_wait_is_refused,
    late_release_after_lock_wait_is_already_over,
    late_close_after_lock_wait_closes_and_records_the_expiry,
    late_renewal_in_a_batch_after_lock_wait_is_skipped_or_refused,
    late_takeover_after_lock_wait_acquires_once_the_lease_expired,
    late_repeated_acquisition_after_lock_wait_acquires_anew,
    a_lease_lasts_from_when_the_lock_was_had_not_from_when_it_was_asked,
    a_renewal_lasts_from_when_the_lock_was_had_not_from_when_it_was_asked,
    a_call_that_waited_in_time_is_answered_as_if_it_had_not,
];

/// A call that waited past the expiry.
struct Late<T> {
    answer: T,
    report: ReportId,
    fence: Fence,
    row: RawRow,
}

/// Has a worker send this call while somebody else holds the row, lets the lease expire meanwhile, and lets go.
async fn late<D, T, F>(scene: &Scene<D>, end: BlockerEnd, call: impl Fn(Worker<D::Store>, Fence) -> F) -> Late<T>
where
    D: Database,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    // On a slow machine the lease may expire before the call waits, which proves nothing: then again, with a longer one.
    for ttl in [200, 1_000, 5_000].map(Duration::from_millis) {
        let report = scene.another_report().await;
        let (a, worker) = scene.two_workers().await;
        let fence = a.acquires_as(AcquireRequest { ttl, ..acquiring(report) }).await.fence;
        let mut queue = scene.hold(report, end).await;
        let call: Call<T> = queue.call(call(worker, fence)).await;
        let in_time = scene.row_of(report).await.expires_in_millis.is_some_and(|millis| millis > 0);
        scene.until_expired(report).await;
        queue.let_go().await;
        let answer = call.answer().await;
        if in_time {
            return Late { answer, report, fence, row: scene.row_of(report).await };
        }
    }
    panic!("a lease of five seconds expired before the call waited for the row's lock");
}

/// The row has nobody, and remembers since when.
fn is_recorded_as_expired(row: &RawRow) -> bool {
    row.owner.is_none() && row.expires_in_millis.is_some_and(|millis| millis < 0)
}

async fn late_renewal_after_lock_wait_is_refused<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let late = late(&scene, end, |worker, fence| async move { worker.renew(fence).await }).await;
        assert_eq!(late.answer, not_renewed(Refusal::Expired), "{end:?}");
        assert!(is_recorded_as_expired(&late.row), "{end:?}: {:?}", late.row);
    }
}

async fn late_publish_after_lock_wait_is_refused<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let late = late(&scene, end, |worker, fence| async move { worker.publish(fence, "late").await }).await;
        assert_eq!(late.answer, refused(Refusal::Expired), "{end:?}");
        assert_eq!((late.row.published_generation, &late.row.payload), (Generation::new(0), &None), "{end:?}");
        assert!(is_recorded_as_expired(&late.row), "{end:?}: {:?}", late.row);
    }
}

async fn late_advance_after_lock_wait_is_refused<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let call = |worker: Worker<D::Store>, fence| async move { worker.advance(&advancing(fence, "late")).await };
        let late = late(&scene, end, call).await;
        assert_eq!(late.answer, refused(Refusal::Expired), "{end:?}");
        assert_eq!((late.row.generation, &late.row.payload), (late.fence.generation, &None), "{end:?}");
        assert!(is_recorded_as_expired(&late.row), "{end:?}: {:?}", late.row);
    }
}

async fn late_release_after_lock_wait_is_already_over<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let late = late(&scene, end, |worker, fence| async move { worker.release(fence).await }).await;
        assert_eq!(late.answer, ReleaseAnswer::AlreadyOver, "{end:?}");
        assert!(is_recorded_as_expired(&late.row), "{end:?}: {:?}", late.row);
    }
}

async fn late_close_after_lock_wait_closes_and_records_the_expiry<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let late = late(&scene, end, |worker, fence| async move { worker.close(fence).await }).await;
        assert_eq!(late.answer, CLOSED, "{end:?}");
        assert_eq!(late.row.owner, None, "{end:?}");
        let publication = scene.worker().await.publish(late.fence, "later still").await;
        assert_eq!(publication, refused(Refusal::Closed), "{end:?}");
    }
}

async fn late_renewal_in_a_batch_after_lock_wait_is_skipped_or_refused<D: Database>(scene: Scene<D>) {
    if scene.db.skips_locked_rows() {
        return; // It does not wait; `batch::a_locked_row_is_skipped_and_not_waited_for` has that.
    }
    for end in BlockerEnd::ALL {
        let late = late(&scene, end, |worker, fence| async move { worker.renew_many(vec![fence]).await }).await;
        assert_eq!(late.answer, [BatchRenewal::Answered(not_renewed(Refusal::Expired))], "{end:?}");
        assert!(is_recorded_as_expired(&late.row), "{end:?}: {:?}", late.row);
    }
}

async fn late_takeover_after_lock_wait_acquires_once_the_lease_expired<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let call =
            |worker: Worker<D::Store>, fence: Fence| async move { worker.acquire(acquiring(fence.report)).await };
        let late = late(&scene, end, call).await;
        let lease = acquired(late.answer);
        assert_eq!(Some(lease.fence.generation), late.fence.generation.next(), "{end:?}");
        assert_eq!(late.row.owner, Some(lease.fence.owner), "{end:?}");
    }
}

async fn late_repeated_acquisition_after_lock_wait_acquires_anew<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let call = |worker: Worker<D::Store>, Fence { report, owner, .. }: Fence| async move {
            worker.acquire(AcquireRequest { owner, ..acquiring(report) }).await
        };
        let late = late(&scene, end, call).await;
        let lease = acquired(late.answer);
        assert_eq!(lease.fence.owner, late.fence.owner, "{end:?}");
        assert_eq!(Some(lease.fence.generation), late.fence.generation.next(), "{end:?}: an expired lease was revived");
        let old = scene.worker().await.publish(late.fence, "under the old generation").await;
        assert_eq!(old, refused(Refusal::Superseded { by: lease.fence.generation }), "{end:?}");
        assert_eq!(scene.row_of(late.report).await.payload, None, "{end:?}");
    }
}

/// For how long the blocker holds the row when the question is from when a TTL counts.
const HELD: Duration = Duration::from_millis(200);

async fn a_lease_lasts_from_when_the_lock_was_had_not_from_when_it_was_asked<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let (report, worker) = (scene.another_report().await, scene.worker().await);
        let call = async move { acquired(worker.acquire(acquiring(report)).await).remaining };
        lasts_from_when_the_lock_was_had(&scene, report, end, call).await;
    }
}

async fn a_renewal_lasts_from_when_the_lock_was_had_not_from_when_it_was_asked<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let (report, worker) = (scene.another_report().await, scene.worker().await);
        let fence = worker.acquires(report).await;
        scene.db.set_expiry(report, 60_000).await;
        let call = async move { renewed(worker.renew(fence).await) };
        lasts_from_when_the_lock_was_had(&scene, report, end, call).await;
    }
}

async fn lasts_from_when_the_lock_was_had<D: Database>(
    scene: &Scene<D>,
    report: ReportId,
    end: BlockerEnd,
    call: impl Future<Output = Duration> + Send + 'static,
) {
    let mut queue = scene.hold(report, end).await;
    let call = queue.call(call).await;
    tokio::time::sleep(HELD).await; // Not a hope: it makes the difference between the two instants visible.
    let before_the_lock = Instant::now();
    queue.let_go().await;
    let remaining = call.answer().await;
    let left = scene.row_of(report).await.expires_in_millis.expect("a held lease");
    let since = i64::try_from(before_the_lock.elapsed().as_millis()).expect("a short while");
    let ttl = i64::try_from(TTL.as_millis()).expect("a TTL");
    assert!(left >= ttl - since - 20, "{end:?}: {left} ms are left {since} ms after the lock was free");
    assert!(remaining <= TTL, "{end:?}: {remaining:?} is above the TTL");
}

async fn a_call_that_waited_in_time_is_answered_as_if_it_had_not<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let (report, worker) = (scene.another_report().await, scene.worker().await);
        let request = AcquireRequest { owner: Owner::random(), ..acquiring(report) };
        let fence = waited(&scene, report, end, async move { worker.acquire(request).await }).await;
        let AcquireAnswer::Acquired(lease) = fence else { panic!("{end:?}: {fence:?}") };
        let worker = scene.worker().await;
        let fence = lease.fence;
        renewed(waited(&scene, report, end, async move { worker.renew(fence).await }).await);
        let worker = scene.worker().await;
        let answer = waited(&scene, report, end, async move { worker.publish(fence, "in time").await }).await;
        super::answers::published(answer);
        assert_eq!(scene.row_of(report).await.payload.as_deref(), Some("in time"), "{end:?}");
    }
}

/// The answer of a call that waited behind a blocker, but not for long.
async fn waited<D: Database, T: Send + 'static>(
    scene: &Scene<D>,
    report: ReportId,
    end: BlockerEnd,
    call: impl Future<Output = T> + Send + 'static,
) -> T {
    let mut queue = scene.hold(report, end).await;
    let call = queue.call(call).await;
    queue.let_go().await;
    call.answer().await
}
