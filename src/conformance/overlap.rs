//! Calls that truly overlap: all of them wait for the row's lock before any of them may go on.

use super::answers::{CLOSED, acquired, already_published, ended_by, published, refused};
use super::harness::{BlockerEnd, Database};
use super::queue::Call;
use super::scene::Scene;
use super::suite::cases;
use super::worker::{acquiring, budget, publishing};
use crate::answer::{AcquireAnswer, Ending, ProvisionAnswer, PublishAnswer, Refusal, ReleaseAnswer, RenewAnswer};
use crate::store::Store;

cases![
    of_many_overlapping_acquisitions_exactly_one_wins,
    overlapping_acquisitions_of_an_expired_lease_have_one_winner,
    overlapping_repetitions_of_one_acquisition_share_its_generation,
    a_publication_and_an_acquisition_that_overlap_are_ordered,
    a_publication_and_a_takeover_that_overlap_are_ordered,
    a_publication_and_a_close_that_overlap_agree,
    an_acquisition_and_its_own_close_that_overlap_leave_the_row_free,
    overlapping_duplicates_of_one_publication_are_accepted_once,
    two_overlapping_publications_of_one_generation_are_accepted_once,
    a_publication_and_a_release_that_overlap_agree,
    a_publication_and_a_renewal_that_overlap_agree,
    a_publication_and_a_force_release_that_overlap_agree,
    a_renewal_and_a_release_that_overlap_agree,
    of_many_overlapping_provisions_exactly_one_creates,
];

/// How often each race is run: engines differ in whom they let go first.
const ROUNDS: usize = 6;

/// Every round with another end of the blocker, and with the two calls sent in either order.
fn rounds() -> impl Iterator<Item = (BlockerEnd, bool)> {
    (0..ROUNDS).map(|round| (BlockerEnd::ALL[round % BlockerEnd::ALL.len()], round % 2 == 0))
}

/// Sends two calls, in the order told, to a row whose lock is let go once both wait; their answers.
macro_rules! race {
    ($scene:expr, $report:expr, $end:expr, $in_order:expr, $first:expr, $second:expr) => {{
        let mut queue = $scene.hold($report, $end).await;
        let (first, second) = if $in_order {
            let first = queue.call($first).await;
            (first, queue.call($second).await)
        } else {
            let second = queue.call($second).await;
            (queue.call($first).await, second)
        };
        queue.let_go().await;
        (first.answer().await, second.answer().await)
    }};
}

async fn of_many_overlapping_acquisitions_exactly_one_wins<D: Database>(scene: Scene<D>) {
    for (end, _) in rounds() {
        let report = scene.another_report().await;
        let leases = acquire_all_at_once(&scene, report, end).await;
        assert_eq!(leases, 1, "{end:?}");
        assert_eq!(scene.row_of(report).await.generation.get(), 1, "{end:?}");
    }
}

async fn overlapping_acquisitions_of_an_expired_lease_have_one_winner<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    for (end, _) in rounds() {
        let report = scene.another_report().await;
        a.acquires(report).await;
        scene.db.set_expiry(report, -1).await;
        let leases = acquire_all_at_once(&scene, report, end).await;
        assert_eq!(leases, 1, "{end:?}");
        assert_eq!(scene.row_of(report).await.generation.get(), 2, "{end:?}");
    }
}

/// Eight workers ask for one report at once: how many got it.
async fn acquire_all_at_once<D: Database>(scene: &Scene<D>, report: crate::fence::ReportId, end: BlockerEnd) -> usize {
    let mut workers = Vec::new();
    for _ in 0..8 {
        workers.push(scene.worker().await);
    }
    let mut queue = scene.hold(report, end).await;
    let mut calls: Vec<Call<AcquireAnswer>> = Vec::new();
    for worker in workers {
        calls.push(queue.call(async move { worker.acquire(acquiring(report)).await }).await);
    }
    queue.let_go().await;
    let mut leases = 0;
    for call in calls {
        match call.answer().await {
            AcquireAnswer::Acquired(_) => leases += 1,
            AcquireAnswer::Busy(_) => {}
            other => panic!("{end:?}: {other:?}"),
        }
    }
    leases
}

async fn overlapping_repetitions_of_one_acquisition_share_its_generation<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, also_a) = scene.two_workers().await;
        let (one, again) = (acquiring(report), acquiring(report));
        let again = crate::store::AcquireRequest { owner: one.owner, ..again };
        let (first, second) =
            race!(scene, report, end, in_order, async move { acquired(a.acquire(one).await) }, async move {
                acquired(also_a.acquire(again).await)
            });
        assert_eq!(first.fence, second.fence, "{end:?}");
        assert_eq!(scene.row_of(report).await.generation.get(), 1, "{end:?}");
    }
}

async fn a_publication_and_an_acquisition_that_overlap_are_ordered<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, b) = scene.two_workers().await;
        let fence = a.acquires(report).await;
        let (publication, acquisition) = race!(
            scene,
            report,
            end,
            in_order,
            async move { published(a.publish(fence, "built by A").await) },
            async move { b.acquire(acquiring(report)).await }
        );
        assert_eq!(publication.receipt.generation, fence.generation);
        match acquisition {
            AcquireAnswer::Busy(_) => {}
            AcquireAnswer::Acquired(lease) => {
                assert_eq!(Some(lease.fence.generation), fence.generation.next());
                let visible = lease.visible.expect("what A published");
                assert_eq!(visible.version.generation, fence.generation);
            }
            other => panic!("{end:?}: {other:?}"),
        }
        assert_eq!(scene.row_of(report).await.payload.as_deref(), Some("built by A"));
    }
}

async fn a_publication_and_a_takeover_that_overlap_are_ordered<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, b) = scene.two_workers().await;
        let fence = a.acquires(report).await;
        // Expires somewhere around the race: both orders, and both sides of the expiry, must be consistent.
        scene.db.set_expiry(report, 20).await;
        let (publication, acquisition) =
            race!(scene, report, end, in_order, async move { a.publish(fence, "built by A").await }, async move {
                b.acquire(acquiring(report)).await
            });
        let row = scene.row_of(report).await;
        let accepted = match publication {
            PublishAnswer::Published(_) => true,
            PublishAnswer::Refused(Refusal::Expired) => false,
            PublishAnswer::Refused(Refusal::Superseded { by }) => {
                assert_eq!(Some(by), fence.generation.next(), "{end:?}");
                false
            }
            other => panic!("{end:?}: {other:?}"),
        };
        assert_eq!(row.payload.is_some(), accepted, "{end:?}: {row:?}");
        if let AcquireAnswer::Acquired(lease) = acquisition {
            assert_eq!(lease.visible.is_some(), accepted, "A published after B acquired: {lease:?}");
            assert_eq!((row.owner, row.generation), (Some(lease.fence.owner), lease.fence.generation));
        }
    }
}

async fn a_publication_and_a_close_that_overlap_agree<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, recovery) = scene.two_workers().await;
        let fence = a.acquires(report).await;
        let (publication, close) =
            race!(scene, report, end, in_order, async move { a.publish(fence, "built by A").await }, async move {
                recovery.close(fence).await
            });
        let row = scene.row_of(report).await;
        assert_eq!((row.owner, row.expires_in_millis), (None, None), "{end:?}: an ended acquisition holds the row");
        match publication {
            PublishAnswer::Published(publication) => {
                assert_eq!(close, ended_by(publication.receipt), "{end:?}");
                assert_eq!(row.published_generation, fence.generation);
            }
            refusal => {
                assert_eq!((refusal, close), (refused(Refusal::Closed), CLOSED), "{end:?}");
                assert_eq!(row.payload, None);
            }
        }
        assert_eq!(scene.worker().await.close(fence).await, close, "an answer that changed");
    }
}

async fn an_acquisition_and_its_own_close_that_overlap_leave_the_row_free<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, recovery) = scene.two_workers().await;
        let request = acquiring(report);
        let owner = request.owner;
        let late = request.clone();
        let (acquisition, close) =
            race!(scene, report, end, in_order, async move { a.acquire(request).await }, async move {
                recovery.close_unlearned(report, owner).await
            });
        assert_eq!(close, CLOSED, "{end:?}");
        assert!(
            matches!(acquisition, AcquireAnswer::Acquired(_) | AcquireAnswer::Ended(Ending::Closed)),
            "{end:?}: {acquisition:?}"
        );
        let row = scene.row_of(report).await;
        assert_eq!((row.owner, row.expires_in_millis), (None, None), "{end:?}: a closed owner holds the row");
        let again = scene.worker().await.acquire(late).await;
        assert_eq!(again, AcquireAnswer::Ended(Ending::Closed), "{end:?}: a request still on its way was accepted");
    }
}

async fn overlapping_duplicates_of_one_publication_are_accepted_once<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, also_a) = scene.two_workers().await;
        let request = publishing(a.acquires(report).await, "once");
        let again = request.clone();
        let (first, second) = race!(scene, report, end, in_order, async move { a.send(&request).await }, async move {
            also_a.send(&again).await
        });
        let (accepted, known) =
            if matches!(first, PublishAnswer::Published(_)) { (first, second) } else { (second, first) };
        assert_eq!(published(accepted), already_published(known), "{end:?}");
    }
}

async fn two_overlapping_publications_of_one_generation_are_accepted_once<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, also_a) = scene.two_workers().await;
        let fence = a.acquires(report).await;
        let (first, second) =
            race!(scene, report, end, in_order, async move { a.publish(fence, "first").await }, async move {
                also_a.publish(fence, "second").await
            });
        let (accepted, other, visible) = match first {
            PublishAnswer::Published(_) => (published(first), second, "first"),
            _ => (published(second), first, "second"),
        };
        let operation = accepted.receipt.operation;
        assert_eq!(other, refused(Refusal::GenerationPublished { operation }), "{end:?}");
        assert_eq!(scene.row_of(report).await.payload.as_deref(), Some(visible), "{end:?}");
    }
}

async fn a_publication_and_a_release_that_overlap_agree<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, also_a) = scene.two_workers().await;
        let fence = a.acquires(report).await;
        let (publication, release) =
            race!(scene, report, end, in_order, async move { a.publish(fence, "built by A").await }, async move {
                also_a.release(fence).await
            });
        match publication {
            PublishAnswer::Published(_) => assert_eq!(release, ReleaseAnswer::AlreadyOver, "{end:?}"),
            refusal => {
                assert_eq!((refusal, release), (refused(Refusal::Closed), ReleaseAnswer::Released), "{end:?}");
            }
        }
        assert_eq!(scene.row_of(report).await.owner, None);
    }
}

async fn a_publication_and_a_renewal_that_overlap_agree<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, also_a) = scene.two_workers().await;
        let fence = a.acquires(report).await;
        let (publication, renewal) = race!(
            scene,
            report,
            end,
            in_order,
            async move { published(a.publish(fence, "built by A").await) },
            async move { also_a.renew(fence).await }
        );
        match renewal {
            RenewAnswer::Renewed { .. } => {}
            other => assert_eq!(other, RenewAnswer::Published(publication.receipt), "{end:?}"),
        }
        let row = scene.row_of(report).await;
        assert_eq!((row.owner, row.expires_in_millis), (None, None), "{end:?}: a renewal revived a published lease");
    }
}

async fn a_publication_and_a_force_release_that_overlap_agree<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, operator) = scene.two_workers().await;
        let fence = a.acquires(report).await;
        let (publication, _) =
            race!(scene, report, end, in_order, async move { a.publish(fence, "built by A").await }, async move {
                operator.force_release(report).await
            });
        let row = scene.row_of(report).await;
        match publication {
            PublishAnswer::Published(_) => assert_eq!(row.published_generation, fence.generation, "{end:?}"),
            refusal => assert_eq!((refusal, row.payload), (refused(Refusal::Forced), None), "{end:?}"),
        }
        assert_eq!((Some(row.generation), row.owner), (fence.generation.next(), None), "{end:?}");
    }
}

async fn a_renewal_and_a_release_that_overlap_agree<D: Database>(scene: Scene<D>) {
    for (end, in_order) in rounds() {
        let report = scene.another_report().await;
        let (a, also_a) = scene.two_workers().await;
        let fence = a.acquires(report).await;
        let (renewal, release) = race!(scene, report, end, in_order, async move { a.renew(fence).await }, async move {
            also_a.release(fence).await
        });
        assert_eq!(release, ReleaseAnswer::Released, "{end:?}");
        match renewal {
            RenewAnswer::Renewed { .. } => {}
            other => assert_eq!(other, RenewAnswer::Refused(Refusal::Released), "{end:?}"),
        }
        let row = scene.row_of(report).await;
        assert_eq!((row.owner, row.expires_in_millis), (None, None), "{end:?}: a renewal revived a released lease");
    }
}

async fn of_many_overlapping_provisions_exactly_one_creates<D: Database>(scene: Scene<D>) {
    for round in 0..ROUNDS {
        let report = super::scene::unknown_report();
        let mut calls = Vec::new();
        for _ in 0..4 {
            let worker = scene.worker().await;
            calls.push(Call::send(async move { worker.store.provision(report, budget()).await.expect("provision") }));
        }
        let mut created = 0;
        for call in calls {
            created += usize::from(call.answer().await == ProvisionAnswer::Created);
        }
        assert_eq!(created, 1, "round {round}");
    }
}
