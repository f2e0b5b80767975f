//! `renew_many`: an answer each, in the order asked, and no fence harms another.

use super::answers::{fails, not_renewed, renewed};
use super::harness::{BlockerEnd, Database};
use super::scene::{Scene, unknown_report};
use super::suite::cases;
use super::worker::{TTL, Worker, acquiring, advancing, budget};
use crate::answer::{BatchRenewal, Refusal, RenewAnswer};
use crate::error::StoreErrorKind;
use crate::fence::{Epoch, Fence, Generation, Owner};
use crate::store::{MAX_BATCH, Store};

cases![
    an_empty_batch_has_no_answers,
    answers_come_in_the_order_asked,
    every_lease_of_a_batch_is_extended,
    a_batch_never_shortens,
    duplicates_are_answered_each,
    two_fences_of_one_report_are_answered_each,
    stale_fences_are_answered_as_renew_would,
    a_fence_that_differs_in_one_part_only_is_not_renewed,
    one_expired_lease_does_not_undo_the_others,
    a_locked_row_is_skipped_and_not_waited_for,
    a_batch_of_the_greatest_size_is_answered,
    a_batch_above_the_greatest_size_is_invalid_and_renews_nothing,
];

/// Leases on so many fresh reports, each with a minute left.
async fn leases<D: Database>(scene: &Scene<D>, a: &Worker<D::Store>, count: usize) -> Vec<Fence> {
    let mut fences = Vec::new();
    for _ in 0..count {
        let fence = a.acquires(scene.another_report().await).await;
        scene.db.set_expiry(fence.report, 60_000).await;
        fences.push(fence);
    }
    fences
}

#[track_caller]
fn answered(renewal: BatchRenewal) -> RenewAnswer {
    match renewal {
        BatchRenewal::Answered(answer) => answer,
        BatchRenewal::Skipped => panic!("skipped, although nobody holds the row's lock"),
    }
}

async fn is_extended<D: Database>(scene: &Scene<D>, fence: Fence) -> bool {
    scene.row_of(fence.report).await.expires_in_millis.is_some_and(|millis| millis > 120_000)
}

async fn an_empty_batch_has_no_answers<D: Database>(scene: Scene<D>) {
    assert_eq!(scene.worker().await.renew_many(Vec::new()).await, []);
}

async fn answers_come_in_the_order_asked<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let live = leases(&scene, &a, 4).await;
    let missing = Fence { report: unknown_report(), ..live[0] };
    let expired = leases(&scene, &a, 1).await[0];
    scene.db.set_expiry(expired.report, -1).await;
    let asked = vec![live[3], missing, live[0], expired, live[2], missing, live[1]];
    let answers: Vec<_> = a.renew_many(asked).await.into_iter().map(answered).collect();
    assert_eq!(answers.len(), 7);
    for live in [0, 2, 4, 6] {
        renewed(answers[live]);
    }
    assert_eq!((answers[1], answers[5]), (not_renewed(Refusal::Missing), not_renewed(Refusal::Missing)));
    assert_eq!(answers[3], not_renewed(Refusal::Expired));
}

async fn every_lease_of_a_batch_is_extended<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fences = leases(&scene, &a, 20).await;
    for answer in a.renew_many(fences.clone()).await {
        let remaining = renewed(answered(answer));
        assert!(remaining <= TTL && remaining > TTL / 2, "{remaining:?}");
    }
    for fence in fences {
        assert!(is_extended(&scene, fence).await, "{fence}");
    }
}

async fn a_batch_never_shortens<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires(scene.report).await;
    let short = a.store.renew_many(vec![fence], TTL / 100, budget()).await.expect("renew_many");
    let remaining = renewed(answered(short[0]));
    assert!(remaining > TTL / 2, "{remaining:?}");
    assert!(is_extended(&scene, fence).await);
}

async fn duplicates_are_answered_each<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fences = leases(&scene, &a, 2).await;
    let answers = a.renew_many(vec![fences[0], fences[1], fences[0], fences[0]]).await;
    assert_eq!(answers.len(), 4);
    for answer in answers {
        renewed(answered(answer));
    }
    for fence in fences {
        assert!(is_extended(&scene, fence).await, "{fence}");
    }
}

async fn two_fences_of_one_report_are_answered_each<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let old = a.acquires(scene.report).await;
    scene.expire().await;
    let new = b.acquires(scene.report).await;
    let superseded = not_renewed(Refusal::Superseded { by: new.generation });
    for in_order in [true, false] {
        scene.db.set_expiry(scene.report, 60_000).await;
        let asked = if in_order { vec![old, new] } else { vec![new, old] };
        let mut answers = a.renew_many(asked).await;
        if !in_order {
            answers.reverse();
        }
        assert_eq!(answered(answers[0]), superseded);
        renewed(answered(answers[1]));
        assert!(is_extended(&scene, new).await);
    }
}

async fn stale_fences_are_answered_as_renew_would<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let mut fences = leases(&scene, &a, 6).await;
    a.publishes(fences[0], "a report").await;
    a.release(fences[1]).await;
    a.force_release(fences[2].report).await;
    scene.db.set_expiry(fences[3].report, -1).await;
    a.advance(&advancing(fences[4], "a report")).await;
    fences.push(Fence { owner: Owner::random(), ..fences[5] });
    let many: Vec<_> = a.renew_many(fences.clone()).await.into_iter().map(answered).collect();
    for (fence, answer) in fences.iter().zip(&many).filter(|(fence, _)| **fence != fences[5]) {
        assert_eq!(a.renew(*fence).await, *answer, "{fence}");
    }
    renewed(many[5]);
}

/// Alone in its batch, so that no exact fence of the same row is renewed in its place.
async fn a_fence_that_differs_in_one_part_only_is_not_renewed<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    // Not its first generation, and not in the first epoch.
    scene.raise_epoch().await;
    a.acquires_and_publishes(scene.report, "a report", None).await;
    let fence = a.acquires(scene.report).await;
    scene.db.set_expiry(scene.report, 60_000).await;
    let (generation, epoch) = (fence.generation.get(), fence.epoch.get());
    let mut others = vec![Fence { owner: Owner::random(), ..fence }];
    for step in [-1, 1] {
        others.push(Fence { generation: Generation::new(generation + step), ..fence });
        others.push(Fence { epoch: Epoch::new(epoch + step), ..fence });
    }
    for other in others {
        let answer = answered(a.renew_many(vec![other]).await.remove(0));
        assert!(matches!(answer, RenewAnswer::Refused(_)), "{other}: {answer:?}");
        assert_eq!(answer, a.renew(other).await, "{other}");
        assert!(!is_extended(&scene, fence).await, "{other} extended the lease");
    }
    renewed(answered(a.renew_many(vec![fence]).await.remove(0)));
}

async fn one_expired_lease_does_not_undo_the_others<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    for expired in 0..3 {
        let fences = leases(&scene, &a, 3).await;
        scene.db.set_expiry(fences[expired].report, -1).await;
        let answers = a.renew_many(fences.clone()).await;
        for (index, answer) in answers.into_iter().map(answered).enumerate() {
            if index == expired {
                assert_eq!(answer, not_renewed(Refusal::Expired));
                assert_eq!(scene.row_of(fences[index].report).await.owner, None, "the expiry was not recorded");
            } else {
                renewed(answer);
                assert!(is_extended(&scene, fences[index]).await);
            }
        }
    }
}

async fn a_locked_row_is_skipped_and_not_waited_for<D: Database>(scene: Scene<D>) {
    for end in BlockerEnd::ALL {
        let (a, other) = scene.two_workers().await;
        let fences = leases(&scene, &a, 3).await;
        let asked = fences.clone();
        let mut queue = scene.hold(fences[1].report, end).await;
        if scene.db.skips_locked_rows() {
            let answers = a.renew_many(asked).await; // The lock is still held: it would wait for ever.
            assert_eq!(answers[1], BatchRenewal::Skipped, "{end:?}");
            renewed(answered(answers[0]));
            renewed(answered(answers[2]));
            queue.let_go().await;
            renewed(a.renew(fences[1]).await);
        } else {
            let call = queue.call(async move { other.renew_many(asked).await }).await;
            queue.let_go().await;
            for answer in call.answer().await {
                renewed(answered(answer));
            }
        }
        for fence in fences {
            assert!(is_extended(&scene, fence).await, "{end:?}: {fence}");
        }
    }
}

async fn a_batch_of_the_greatest_size_is_answered<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fences = leases(&scene, &a, 8).await;
    let asked: Vec<_> = (0..MAX_BATCH)
        .map(|index| match index % 10 {
            live @ 0..8 => fences[live],
            8 => Fence { report: unknown_report(), ..fences[0] },
            _ => Fence { owner: Owner::random(), ..fences[0] },
        })
        .collect();
    let answers = a.renew_many(asked).await;
    assert_eq!(answers.len(), MAX_BATCH);
    for (index, answer) in answers.into_iter().map(answered).enumerate() {
        match index % 10 {
            0..8 => drop(renewed(answer)),
            8 => assert_eq!(answer, not_renewed(Refusal::Missing), "{index}"),
            _ => assert!(matches!(answer, RenewAnswer::Refused(_)), "{index}: {answer:?}"),
        }
    }
}

async fn a_batch_above_the_greatest_size_is_invalid_and_renews_nothing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let fence = a.acquires_as(acquiring(scene.report)).await.fence;
    scene.db.set_expiry(scene.report, 60_000).await;
    fails(a.store.renew_many(vec![fence; MAX_BATCH + 1], TTL, budget()).await, StoreErrorKind::Invalid);
    assert!(!is_extended(&scene, fence).await);
}
