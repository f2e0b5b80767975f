//! The life of a held lease: it is renewed, or it is lost by its deadline; and nothing is sent for one that is over.

mod support;

use std::time::Duration;

use leasehold::store::Store;
use leasehold::testing::{Fault, JumpingClock, Operation, TokioClock};
use leasehold::{Holder, LeaseGuard, LeaseStatus, LossReason, ReleaseOutcome, ReportId, StoreErrorKind};
use support::*;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(start_paused = true)]
async fn a_held_lease_is_renewed_at_its_cadence_and_kept() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    sleep(secs(600)).await;
    assert!(matches!(guard.status(), LeaseStatus::Held { remaining } if remaining > secs(16)));
    let renewals = scene.store.renewals();
    assert!((60..=67).contains(&renewals), "600 s at 9 to 10 s are 60 to 67 renewals, not {renewals}");
    assert!(!guard.lease().child_token().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn no_renewal_is_sent_and_no_task_left_once_a_lease_is_over() {
    type End = fn(LeaseGuard, &Scene) -> futures::future::BoxFuture<'_, ()>;
    let ends: [(&str, End); 4] = [
        ("published", |guard, _| Box::pin(async move { assert!(guard.publish("payload").await.is_ok()) })),
        ("released", |guard, _| {
            Box::pin(async move { assert!(matches!(guard.release().await, ReleaseOutcome::Released)) })
        }),
        ("dropped", |guard, _| Box::pin(async move { drop(guard) })),
        ("lost", |guard, scene| {
            Box::pin(async move {
                let by = Holder::new("operator").unwrap();
                scene.store.inner().force_release(scene.report, by, budget()).await.unwrap();
                assert_eq!(guard.lost().await.reason(), LossReason::Forced);
            })
        }),
    ];
    for (name, end) in ends {
        let scene = scene().await;
        let guard = scene.acquire().await;
        sleep(secs(25)).await;
        assert_eq!(scene.store.renewals(), 2, "{name}");
        end(guard, &scene).await;
        let sent = scene.store.renewals();
        no_tasks_left(&scene.supervisor).await;
        sleep(10 * TTL).await;
        assert_eq!(scene.store.renewals(), sent, "{name}: a renewal was sent after the end");
        assert!(scene.is_free().await, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_database_trips_the_token_by_the_local_deadline() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Renew, Fault::Hang);
    let acquired_at = Instant::now();
    let guard = scene.acquire().await;
    let token = guard.lease().child_token();
    token.cancelled().await;
    assert_eq!(acquired_at.elapsed(), DEADLINE);
    let loss = guard.lost().await;
    assert_eq!(loss.reason(), LossReason::DeadlinePassed);
    assert_eq!(loss.since_confirmed(), DEADLINE);
    assert!(loss.past_deadline() < Duration::from_millis(2));
    assert_eq!(loss.last_error().unwrap().kind(), StoreErrorKind::Unknown, "silence is evidence too");
    drop(guard);
    no_tasks_left(&scene.supervisor).await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_store_trips_the_token_by_the_local_deadline() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Renew, Fault::Panic);
    let acquired_at = Instant::now();
    let guard = scene.acquire().await;
    let loss = guard.lost().await;
    assert_eq!(loss.reason(), LossReason::DeadlinePassed);
    assert_eq!(acquired_at.elapsed(), DEADLINE);
    assert_eq!(loss.last_error().unwrap().kind(), StoreErrorKind::Unknown);
}

#[tokio::test(start_paused = true)]
async fn failed_renewals_before_the_deadline_do_not_lose_the_lease() {
    let scene = scene().await;
    scene.store.plan(Operation::Renew, Fault::Fail(StoreErrorKind::Unavailable));
    scene.store.plan(Operation::Renew, Fault::Hang);
    scene.store.plan(Operation::Renew, Fault::Panic);
    let guard = scene.acquire().await;
    sleep(secs(120)).await;
    assert!(matches!(guard.status(), LeaseStatus::Held { .. }));
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_the_evidence_of_a_loss() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Renew, Fault::Fail(StoreErrorKind::Unavailable));
    let guard = scene.acquire().await;
    let loss = guard.lost().await;
    assert_eq!(loss.reason(), LossReason::DeadlinePassed);
    assert_eq!(loss.last_error().unwrap().kind(), StoreErrorKind::Unavailable);
    let attempts = scene.store.renewals();
    assert!(attempts > 5, "it kept trying: {attempts}");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_acknowledgement_is_lost_keeps_lease_and_generation() {
    let scene = scene().await;
    scene.store.plan(Operation::Renew, Fault::LoseAnswer);
    let guard = scene.acquire().await;
    let fence = guard.lease().fence();
    sleep(secs(60)).await;
    assert!(matches!(guard.status(), LeaseStatus::Held { .. }));
    assert_eq!(guard.lease().fence(), fence);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_renewal_counts_from_before_it_was_sent_too() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let gate = leasehold::testing::Gate::new();
    scene.store.plan(Operation::Renew, Fault::HoldAnswer(gate.clone()));
    gate.arrival().await;
    let sent_at = Instant::now();
    sleep(secs(4)).await;
    gate.open();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(guard.lease().renewals(), 1);
    assert!(guard.lease().remaining() <= DEADLINE - sent_at.elapsed(), "{:?}", guard.lease().remaining());
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_its_time_out_is_not_told_as_a_renewal() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let gate = leasehold::testing::Gate::new();
    scene.store.plan(Operation::Renew, Fault::HoldAnswer(gate.clone()));
    gate.arrival().await;
    sleep(secs(5) + Duration::from_millis(5)).await;
    let remaining = guard.lease().remaining();
    gate.open();
    sleep(Duration::from_millis(2)).await;
    assert!(guard.lease().remaining() < remaining && guard.lease().renewals() == 0, "it extends nothing");
    sleep(secs(5)).await;
    assert_eq!(guard.lease().renewals(), 1, "the next attempt does");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_rejects_renewals_for_good_trips_at_once() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Renew, Fault::Fail(StoreErrorKind::Rejected));
    let guard = scene.acquire().await;
    let started = Instant::now();
    assert_eq!(guard.lost().await.reason(), LossReason::StoreRejected);
    assert!(started.elapsed() <= secs(10), "at the first renewal");
}

#[tokio::test(start_paused = true)]
async fn a_superseded_lease_is_lost_at_its_next_renewal_with_the_generation_that_took_it() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    scene.store.inner().clock().step(2 * TTL);
    let theirs = acquire(&scene.rival(), scene.report).await;
    let loss = guard.lost().await;
    let by = theirs.lease().fence().generation;
    assert_eq!(loss.reason(), LossReason::Superseded { by });
    assert!(loss.to_string().contains(&format!("superseded by generation {by}")), "{loss}");
    drop(guard);
    sleep(secs(5)).await;
    assert!(matches!(theirs.status(), LeaseStatus::Held { .. }), "its clean-up does not touch the successor");
    assert_eq!(scene.store.calls(Operation::Release), 0, "the database knows already");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_from_before_the_request_was_sent() {
    let scene = scene().await;
    let gate = leasehold::testing::Gate::new();
    scene.store.plan(Operation::Acquire, Fault::HoldAnswer(gate.clone()));
    scene.store.plan_always(Operation::Renew, Fault::Hang);
    let asked_at = Instant::now();
    let (guard, ()) = tokio::join!(scene.acquire(), async {
        gate.arrival().await;
        sleep(secs(9)).await;
        gate.open();
    });
    assert_eq!(guard.lease().remaining(), DEADLINE - secs(9));
    guard.lost().await;
    assert_eq!(asked_at.elapsed(), DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_up_after_max_hold_however_well_it_renews() {
    let scene = scene_with(policy().max_hold(secs(95))).await;
    let guard = scene.acquire().await;
    let started = Instant::now();
    assert_eq!(guard.lost().await.reason(), LossReason::HeldTooLong);
    assert_eq!(started.elapsed(), secs(95));
}

#[tokio::test(start_paused = true)]
async fn a_build_without_progress_is_given_up_and_one_with_progress_is_not() {
    let scene = scene_with(policy().stall_after(secs(40))).await;
    let guard = scene.acquire().await;
    let lease = guard.lease();
    for _ in 0..10 {
        sleep(secs(39)).await;
        lease.checkpoint().expect("it makes progress");
        lease.progress();
    }
    let last_progress = Instant::now();
    assert_eq!(guard.lost().await.reason(), LossReason::Stalled);
    assert_eq!(last_progress.elapsed(), secs(40));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_machine_sees_the_loss_within_a_slice_of_its_resume() {
    let clock = JumpingClock::new(TokioClock::start());
    let scene = scene_with_clock(policy(), clock.clone()).await;
    let guard = scene.acquire().await;
    let token = guard.lease().child_token();
    sleep(secs(1)).await;
    clock.jump(secs(300));
    let resumed_at = Instant::now();
    timeout(secs(5), token.cancelled()).await.expect("the token trips though no timer knows of the suspension");
    let slice = Duration::from_millis(750);
    assert!(resumed_at.elapsed() <= slice, "{:?}", resumed_at.elapsed());
    let loss = guard.lost().await;
    assert_eq!(loss.reason(), LossReason::DeadlinePassed);
    assert!(loss.past_deadline() > secs(270));
    assert_eq!(scene.store.renewals(), 0, "nothing is renewed after the deadline");
}

#[tokio::test(start_paused = true)]
async fn the_first_look_after_a_suspension_sees_the_loss_before_any_slice() {
    let clock = JumpingClock::new(TokioClock::start());
    let scene = scene_with_clock(policy(), clock.clone()).await;
    let (status, checkpoint, remaining, lost) = (
        scene.acquire().await,
        scene_named(&scene, "b").await,
        scene_named(&scene, "c").await,
        scene_named(&scene, "d").await,
    );
    clock.jump(secs(28));
    assert!(matches!(status.status(), LeaseStatus::Lost(loss) if loss.reason() == LossReason::DeadlinePassed));
    assert!(checkpoint.lease().checkpoint().is_err());
    assert_eq!(remaining.lease().remaining(), Duration::ZERO);
    assert!(futures::FutureExt::now_or_never(lost.lost()).is_some());
}

async fn scene_named(scene: &Scene, name: &str) -> LeaseGuard {
    let report = ReportId::from_name(name);
    scene.store.provision(report, budget()).await.unwrap();
    acquire(&scene.supervisor, report).await
}

#[tokio::test(start_paused = true)]
async fn a_short_suspension_is_followed_by_a_renewal_at_once() {
    let clock = JumpingClock::new(TokioClock::start());
    let scene = scene_with_clock(policy(), clock.clone()).await;
    let guard = scene.acquire().await;
    sleep(secs(1)).await;
    clock.jump(secs(20));
    sleep(secs(1)).await;
    assert_eq!(scene.store.renewals(), 1, "21 s have passed by the boot clock, so a renewal was due");
    assert!(matches!(guard.status(), LeaseStatus::Held { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_watch_reports_each_renewal_and_the_end() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let mut watch = guard.watch();
    assert!(matches!(watch.changed().await, LeaseStatus::Held { .. }));
    assert_eq!(scene.store.renewals(), 1);
    drop(guard);
    assert!(matches!(watch.changed().await, LeaseStatus::Lost(loss) if loss.reason() == LossReason::Released));
    assert!(matches!(watch.changed().await, LeaseStatus::Lost(_)), "and again, without waiting");
}

#[tokio::test(start_paused = true)]
async fn a_users_cancel_of_a_child_token_does_not_touch_the_lease() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    guard.lease().child_token().cancel();
    assert!(!guard.lease().child_token().is_cancelled());
    assert!(matches!(guard.status(), LeaseStatus::Held { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_answered_in_time_and_looked_at_after_the_deadline_extends_nothing() {
    let clock = JumpingClock::new(TokioClock::start());
    let scene = scene_with_clock(policy(), clock.clone()).await;
    let gate = leasehold::testing::Gate::new();
    scene.store.plan(Operation::Renew, Fault::HoldAnswer(gate.clone()));
    let guard = scene.acquire().await;
    gate.arrival().await;
    // The process is stopped for twenty seconds, with the answer already in its socket.
    clock.jump(secs(20));
    gate.open();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(guard.lease().child_token().is_cancelled(), "the renewal task itself saw the deadline first");
    assert_eq!(guard.lost().await.reason(), LossReason::DeadlinePassed);
    assert_eq!(guard.lease().renewals(), 0);
}
