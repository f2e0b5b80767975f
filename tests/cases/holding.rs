//! Long holders keep what they hold; lost leases are taken up again, under a new generation.

use leasehold::testing::{Fault, Operation};
use leasehold::{AcquireError, Completed, LeaseStatus, LossReason, RunError, StoreErrorKind};
use tokio::time::{Instant, sleep};

use crate::support::{Scene, TTL, acquire, no_tasks_left, policy, scene, secs};

fn blips() -> [Fault; 4] {
    [Fault::Fail(StoreErrorKind::Unavailable), Fault::Fail(StoreErrorKind::Unknown), Fault::Hang, Fault::LoseAnswer]
}

const EVERYTHING: [Operation; 6] = [
    Operation::Acquire,
    Operation::Renew,
    Operation::RenewMany,
    Operation::Publish,
    Operation::Release,
    Operation::Close,
];

fn blip(scene: &Scene, fault: Option<Fault>) {
    for operation in EVERYTHING {
        scene.store.plan_always(operation, fault.clone());
    }
}

/// KCL#136: after a blip of the database the leases that were lost stayed lost.
#[tokio::test(start_paused = true)]
async fn case_16_a_lease_that_was_lost_in_a_blip_is_taken_up_again_under_a_new_generation() {
    for fault in blips() {
        let scene = scene().await;
        let first = scene.acquire().await;
        let generation = first.lease().fence().generation;
        blip(&scene, Some(fault.clone()));
        first.lost().await;
        drop(first);
        let healing = async {
            sleep(secs(100)).await;
            blip(&scene, None);
            Instant::now()
        };
        // It began in the middle of the blip and lasts beyond it.
        let (again, healed_at) = tokio::join!(scene.supervisor.acquire_wait(scene.report, None), healing);
        let guard = again.unwrap().acquired().unwrap();
        assert!(guard.lease().fence().generation > generation, "{fault:?}");
        assert!(healed_at.elapsed() <= TTL + secs(15), "{fault:?}: {:?}", healed_at.elapsed());
        sleep(5 * TTL).await;
        assert!(matches!(guard.status(), LeaseStatus::Held { .. }), "{fault:?}: and it is renewed");
        guard.publish("again").await.unwrap();
        no_tasks_left(&scene.supervisor).await;
    }
}

/// The same with `run`: the lost build is discarded, and the next run builds anew.
#[tokio::test(start_paused = true)]
async fn case_16_a_run_after_a_lost_run_publishes_under_a_new_generation() {
    for fault in blips() {
        let scene = scene().await;
        let build = |text: &'static str| {
            move |_| async move {
                sleep(10 * TTL).await;
                Ok::<_, std::io::Error>(text)
            }
        };
        let blips = async {
            sleep(secs(5)).await;
            blip(&scene, Some(fault.clone()));
        };
        let (lost, ()) = tokio::join!(scene.supervisor.run(scene.report, None, build("the lost one")), blips);
        let Err(RunError::Lost { loss, .. }) = lost else { panic!("{fault:?}: {lost:?}") };
        assert_eq!(loss.reason(), LossReason::DeadlinePassed);
        blip(&scene, None);
        let receipt = loop {
            match scene.supervisor.run(scene.report, None, build("the next one")).await {
                Ok(Completed::Published(receipt)) => break receipt,
                Err(RunError::Acquire(AcquireError::Busy(busy))) => sleep(busy.remaining + secs(1)).await,
                other => panic!("{fault:?}: {other:?}"),
            }
        };
        assert!(receipt.generation > loss.fence().generation, "{fault:?}");
        let generation = receipt.generation.get();
        assert_eq!(scene.published().await, Some(("the next one".into(), generation)), "{fault:?}");
    }
}

/// apalis#530: jobs were given to others by their age, alive or not.
#[tokio::test(start_paused = true)]
async fn case_17_as_long_as_renewals_succeed_nobody_else_gets_the_lease() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let fence = guard.lease().fence();
    // Whatever TTL they ask for, and whether they ask or wait.
    let rivals = [secs(1), TTL, secs(7 * 24 * 3600)].map(|ttl| scene.rival_with(leasehold::LeasePolicy::builder(ttl)));
    let waiting = {
        let (rival, report) = (scene.rival_with(policy()), scene.report);
        tokio::spawn(async move { rival.acquire_wait(report, None).await })
    };
    let started = Instant::now();
    while started.elapsed() < secs(24 * 3600) {
        sleep(secs(7)).await;
        for rival in &rivals {
            let error = rival.acquire(scene.report, None).await.unwrap_err();
            assert!(matches!(error, AcquireError::Busy(_)), "{error} after {:?}", started.elapsed());
        }
    }
    assert!(!waiting.is_finished() && matches!(guard.status(), LeaseStatus::Held { .. }));
    assert_eq!(guard.lease().fence(), fence);
    guard.publish("after a day").await.unwrap();
    let next = waiting.await.unwrap().unwrap().acquired().unwrap();
    assert_eq!(next.lease().fence().generation.get(), fence.generation.get() + 1);
}

/// And not between two publications of a holder that goes on.
#[tokio::test(start_paused = true)]
async fn case_17_a_holder_that_advances_lets_nobody_in_between() {
    let scene = scene().await;
    let rival = scene.rival();
    let mut guard = acquire(&scene.supervisor, scene.report).await;
    for generation in 1..=100 {
        let mut publication = guard.publication("part").and_advance();
        let (sent, theirs) = tokio::join!(publication.send(), rival.acquire(scene.report, None));
        assert_eq!(sent.unwrap().generation.get(), generation);
        assert!(matches!(theirs, Err(AcquireError::Busy(_))));
        guard = publication.into_guard().unwrap();
        sleep(secs(50)).await;
    }
}
