//! Budgets: a call that cannot have the row's lock says so in time, and is surely not applied afterwards.

use std::future::Future;
use std::time::{Duration, Instant};

use super::answers::{fails, renewed};
use super::harness::{BlockerEnd, Database, RawRow};
use super::queue::Call;
use super::scene::Scene;
use super::suite::cases;
use super::worker::{TTL, acquiring, advancing, budget, holder, publishing};
use crate::answer::ReleaseAnswer;
use crate::error::{StoreError, StoreErrorKind};
use crate::fence::{Epoch, Fence, Generation, Owner, ReportId, SourceRevision};
use crate::store::{Budget, CloseRequest, ListRequest, Store};

cases![
    an_acquisition_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied,
    a_renewal_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied,
    a_renewal_of_many_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied,
    a_publication_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied,
    an_advance_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied,
    a_close_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied,
    a_release_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied,
    operators_behind_a_blocker_are_unavailable_by_their_budgets_and_not_applied,
    an_epoch_advance_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied,
    a_spent_budget_is_unavailable_and_applies_nothing,
    reads_do_not_wait_for_the_rows_lock,
    a_store_works_again_after_a_call_ran_out_of_its_budget,
];

/// A short budget, and how much later than it a busy machine may answer.
const SHORT: Duration = Duration::from_millis(150);
const GRACE: Duration = Duration::from_secs(10);

/// Sends a call behind a blocker that outlasts its budget, for every end of the blocker. The row must stay as it was.
async fn is_not_applied<D, T, F>(scene: &Scene<D>, held: bool, call: impl Fn(D::Store, Fence) -> F)
where
    D: Database,
    T: std::fmt::Debug + Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    for end in BlockerEnd::ALL {
        let report = scene.another_report().await;
        let (a, worker) = scene.two_workers().await;
        let fence = if held { a.acquires(report).await } else { nobodys(report) };
        let before = without_time(scene.row_of(report).await);
        let queue = scene.hold(report, end).await;
        let started = Instant::now();
        let answer = Call::send(call(worker.store, fence)).answer().await;
        let took = started.elapsed();
        queue.let_go().await;
        fails(answer, StoreErrorKind::Unavailable);
        assert!(took < SHORT + GRACE, "{end:?}: a budget of {SHORT:?} and an answer after {took:?}");
        // What could still be on its way is let through before the row is looked at: this waits for the lock, too.
        assert_eq!(a.release(nobodys(report)).await, ReleaseAnswer::AlreadyOver);
        assert_eq!(without_time(scene.row_of(report).await), before, "{end:?}: it was applied");
        if held {
            renewed(a.renew(fence).await);
            a.publishes(fence, "still possible").await;
        }
    }
}

fn nobodys(report: ReportId) -> Fence {
    Fence { report, owner: Owner::random(), generation: Generation::new(0), epoch: Epoch::new(0) }
}

/// The row with its expiry rounded to whether it is beyond the lease that the case took.
fn without_time(row: RawRow) -> RawRow {
    let ttl = i64::try_from(TTL.as_millis()).expect("a TTL");
    RawRow { expires_in_millis: row.expires_in_millis.map(|millis| i64::from(millis > ttl)), ..row }
}

fn short() -> Budget {
    Budget::within(SHORT)
}

async fn an_acquisition_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied<D: Database>(scene: Scene<D>) {
    let call = |store: D::Store, fence: Fence| async move { store.acquire(acquiring(fence.report), short()).await };
    is_not_applied(&scene, false, call).await;
}

async fn a_renewal_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied<D: Database>(scene: Scene<D>) {
    let call = |store: D::Store, fence| async move { store.renew(fence, 2 * TTL, short()).await };
    is_not_applied(&scene, true, call).await;
}

async fn a_renewal_of_many_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied<D: Database>(scene: Scene<D>) {
    if scene.db.skips_locked_rows() {
        return; // It does not wait.
    }
    let call = |store: D::Store, fence| async move { store.renew_many(vec![fence], 2 * TTL, short()).await };
    is_not_applied(&scene, true, call).await;
}

async fn a_publication_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied<D: Database>(scene: Scene<D>) {
    let call = |store: D::Store, fence| async move { store.publish(publishing(fence, "late"), short()).await };
    is_not_applied(&scene, true, call).await;
}

async fn an_advance_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied<D: Database>(scene: Scene<D>) {
    let call =
        |store: D::Store, fence| async move { store.publish_and_advance(advancing(fence, "late"), short()).await };
    is_not_applied(&scene, true, call).await;
}

async fn a_close_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied<D: Database>(scene: Scene<D>) {
    let call = |store: D::Store, Fence { report, owner, generation, epoch }: Fence| async move {
        store.close(CloseRequest { report, owner, learned: Some((generation, epoch)) }, short()).await
    };
    is_not_applied(&scene, true, call).await;
}

async fn a_release_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied<D: Database>(scene: Scene<D>) {
    let call = |store: D::Store, fence| async move { store.release(fence, short()).await };
    is_not_applied(&scene, true, call).await;
}

async fn operators_behind_a_blocker_are_unavailable_by_their_budgets_and_not_applied<D: Database>(scene: Scene<D>) {
    let call = |store: D::Store, fence: Fence| async move {
        store.force_release(fence.report, holder("an operator"), short()).await
    };
    is_not_applied(&scene, true, call).await;
    let call = |store: D::Store, fence: Fence| async move {
        store.require_source_revision(fence.report, SourceRevision::new(9), short()).await
    };
    is_not_applied(&scene, true, call).await;
    let call =
        |store: D::Store, fence: Fence| async move { store.reset_source_revision(fence.report, None, short()).await };
    is_not_applied(&scene, true, call).await;
}

async fn an_epoch_advance_behind_a_blocker_is_unavailable_by_its_budget_and_not_applied<D: Database>(scene: Scene<D>) {
    let to = Epoch::new(scene.row().await.epoch.get() + 1);
    let call = |store: D::Store, _| async move { store.advance_recovery_epoch(to, short()).await };
    is_not_applied(&scene, true, call).await;
}

async fn a_spent_budget_is_unavailable_and_applies_nothing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let spent = || Budget::within(Duration::ZERO);
    let kind = StoreErrorKind::Unavailable;
    let free = scene.another_report().await;
    fails(a.store.acquire(acquiring(free), spent()).await, kind);
    assert_eq!(scene.row_of(free).await.generation, Generation::new(0));
    let fence = a.acquires(scene.report).await;
    let before = without_time(scene.row().await);
    let learned = Some((fence.generation, fence.epoch));
    fails(a.store.renew(fence, 2 * TTL, spent()).await, kind);
    fails(a.store.renew_many(vec![fence], 2 * TTL, spent()).await, kind);
    fails(a.store.publish(publishing(fence, "late"), spent()).await, kind);
    fails(a.store.publish_and_advance(advancing(fence, "late"), spent()).await, kind);
    fails(a.store.close(CloseRequest { report: fence.report, owner: fence.owner, learned }, spent()).await, kind);
    fails(a.store.release(fence, spent()).await, kind);
    fails(a.store.force_release(fence.report, holder("an operator"), spent()).await, kind);
    fails(a.store.read(fence.report, None, spent()).await, kind);
    fails(a.store.inspect(fence.report, spent()).await, kind);
    assert_eq!(without_time(scene.row().await), before);
    a.publishes(fence, "in time").await;
}

async fn reads_do_not_wait_for_the_rows_lock<D: Database>(scene: Scene<D>) {
    let (a, reader) = scene.two_workers().await;
    let receipt = a.acquires_and_publishes(scene.report, "a report", None).await;
    let fence = a.acquires(scene.report).await;
    if scene.db.readers_wait_for_writers() {
        let queue = scene.hold(scene.report, BlockerEnd::CommitUpdate).await;
        fails(reader.store.read(scene.report, None, short()).await, StoreErrorKind::Unavailable);
        fails(reader.store.inspect(scene.report, short()).await, StoreErrorKind::Unavailable);
        queue.let_go().await;
        assert_eq!(super::answers::found(reader.read(scene.report).await), "a report");
        return;
    }
    for end in BlockerEnd::ALL {
        let queue = scene.hold(scene.report, end).await;
        // With the lock held, a read that waited for it would use its budget up.
        assert_eq!(super::answers::found(reader.read(scene.report).await), "a report");
        let metadata = reader.store.metadata(scene.report, budget()).await.expect("metadata").expect("the row");
        assert_eq!(metadata.visible.map(|visible| visible.version.generation), Some(receipt.generation));
        assert_eq!(reader.inspect(scene.report).await.lease.and_then(|lease| lease.owner), Some(fence.owner));
        let list = ListRequest { after: None, limit: 10, leased_only: true };
        assert_eq!(reader.store.list(list, budget()).await.expect("list").len(), 1);
        queue.let_go().await;
    }
}

async fn a_store_works_again_after_a_call_ran_out_of_its_budget<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    for round in 0..3 {
        let queue = scene.hold(scene.report, BlockerEnd::RollBack).await;
        fails(a.store.renew(fence, TTL, short()).await, StoreErrorKind::Unavailable);
        queue.let_go().await;
        renewed(a.renew(fence).await);
        assert_eq!(scene.row().await.owner, Some(fence.owner), "round {round}");
    }
    // The answers still belong to their questions.
    assert_eq!(a.publishes(fence, "a report").await.generation, fence.generation);
    assert_eq!(super::answers::found(a.read(scene.report).await), "a report");
}
