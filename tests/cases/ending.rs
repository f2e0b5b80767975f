//! Leases that nobody ends properly: dropped, panicked, cancelled half way; and ends that come too late.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use leasehold::answer::ReleaseAnswer;
use leasehold::store::{CloseRequest, Store};
use leasehold::testing::{Fault, FaultyStore, Gate, MemoryStore, Operation};
use leasehold::{
    Epoch, Fence, Holder, LeasePolicy, LeaseSupervisor, LossReason, ReleaseOutcome, ReportId, RunError, StoreErrorKind,
};
use tokio::time::{Instant, sleep, timeout};

use crate::process::wait_until;
use crate::support::{Scene, TTL, acquire, budget, no_tasks_left, scene, secs};

type Attempt = Pin<Box<dyn Future<Output = ()>>>;

/// Everything that acquires.
fn attempts(scene: &Scene) -> [(&'static str, Attempt); 4] {
    let report = scene.report;
    let [a, b, c, d] = [(); 4].map(|()| scene.supervisor.clone());
    [
        ("acquire", Box::pin(async move { drop(a.acquire(report, None).await) })),
        ("acquire_or_provision", Box::pin(async move { drop(b.acquire_or_provision(report, None).await) })),
        ("acquire_wait", Box::pin(async move { drop(c.acquire_wait(report, None).await) })),
        ("run", Box::pin(async move { drop(d.run(report, None, |_| pending::<Result<String, ()>>()).await) })),
    ]
}

/// sqlx#4198: the query of a dropped future went on, and took the lock for nobody. Every await point of every
/// call is in tests/drops.rs; here is the one that matters, with the clean-up failing in every way too.
#[tokio::test(start_paused = true)]
async fn case_08_a_cancelled_acquisition_holds_the_lease_for_nobody() {
    let cleanups = [None, Some(Fault::LoseAnswer), Some(Fault::Hang), Some(Fault::Fail(StoreErrorKind::Unavailable))];
    for which in 0..4 {
        for cleanup in &cleanups {
            for was_applied in [false, true] {
                let scene = scene().await;
                let gate = Gate::new();
                let held = if was_applied { Fault::HoldAnswer(gate.clone()) } else { Fault::Hold(gate.clone()) };
                scene.store.plan(Operation::Acquire, held);
                scene.store.plan_always(Operation::Close, cleanup.clone());
                let (name, mut attempt) = attempts(&scene).into_iter().nth(which).unwrap();
                let what = format!("{name}, applied: {was_applied}, its close: {cleanup:?}");
                tokio::select! { biased; () = &mut attempt => panic!("{what}: it is held"), () = gate.arrival() => {} }
                let dropped_at = Instant::now();
                drop(attempt);
                no_tasks_left_but_held(&scene, &gate).await;
                // Nobody renews it: the rival has it within what is left of one TTL.
                let rival = scene.rival();
                let theirs =
                    timeout(TTL + secs(6), rival.acquire_wait(scene.report, None)).await.expect(&what).unwrap();
                if cleanup.is_none() || matches!(cleanup, Some(Fault::LoseAnswer)) {
                    assert!(
                        dropped_at.elapsed() < secs(7),
                        "{what}: closed, not left to expire: {:?}",
                        dropped_at.elapsed()
                    );
                }
                drop(theirs);
            }
        }
    }
}

/// Lets the clean-up come to its end, then the held request, which must acquire nothing for anybody.
async fn no_tasks_left_but_held(scene: &Scene, gate: &Gate) {
    sleep(secs(6)).await;
    gate.open();
    no_tasks_left(&scene.supervisor).await;
}

/// ShedLock#2047 and #1932, rslock: what ends a worker in the middle leaves the lock. Processes that end are in
/// processes.rs.
#[tokio::test(start_paused = true)]
async fn case_11_a_panic_a_drop_and_an_abort_stop_the_renewal_and_free_the_lease() {
    let releases = [None, Some(Fault::Hang), Some(Fault::Panic), Some(Fault::Fail(StoreErrorKind::Rejected))];
    for end in ["panic", "drop", "abort", "panic in a run"] {
        for release in &releases {
            let what = format!("{end}, its release: {release:?}");
            let scene = scene().await;
            scene.store.plan_always(Operation::Release, release.clone());
            let supervisor = scene.supervisor.clone();
            let (report, end_now) = (scene.report, tokio_util::sync::CancellationToken::new());
            let told = end_now.clone();
            let owner = tokio::spawn(async move {
                if end == "panic in a run" {
                    let build = |_| async move {
                        told.cancelled().await;
                        panic!("planned: the build panics") as Result<String, ()>
                    };
                    return drop(supervisor.run(report, None, build).await);
                }
                let _guard = acquire(&supervisor, report).await;
                told.cancelled().await;
                assert_ne!(end, "panic", "planned: the owner panics");
            });
            sleep(secs(25)).await;
            if end == "abort" {
                owner.abort()
            } else {
                end_now.cancel()
            }
            assert_eq!(owner.await.is_err(), end != "drop", "{what}");
            let (ended_at, renewals) = (Instant::now(), scene.store.renewals());
            if release.is_none() {
                scene.free_within(secs(1)).await;
            }
            // At worst by the end of the TTL that its last renewal gave.
            let waiting = scene.rival().acquire_wait(report, None).await.unwrap();
            assert!(ended_at.elapsed() <= TTL + secs(6), "{what}: {:?}", ended_at.elapsed());
            assert_eq!(scene.store.renewals(), renewals, "{what}: nothing is renewed after the end");
            no_tasks_left(&scene.supervisor).await;
            drop(waiting);
        }
    }
}

/// The runtime that a worker runs on is shut down around it.
#[test]
fn case_11_a_runtime_that_is_shut_down_leaves_no_lease_behind() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for renews_itself in [false, true] {
        let (mine, others) = (runtime(), runtime());
        let report = ReportId::from_name("report");
        let store = FaultyStore::new(MemoryStore::new());
        others.block_on(store.provision(report, budget())).unwrap();
        let ttl = Duration::from_millis(900);
        let supervisor = {
            let _entered = mine.enter();
            let policy = LeasePolicy::builder(ttl).build().unwrap();
            let builder = LeaseSupervisor::builder(store.clone(), policy);
            let builder = if renews_itself { builder.renew_on(mine.handle().clone()) } else { builder };
            builder.start().unwrap()
        };
        let guard = mine.block_on(acquire(&supervisor, report));
        mine.spawn(async move {
            let _guard = guard;
            pending::<()>().await
        });
        drop(mine);
        let renewals = store.renewals();
        let lease = || others.block_on(store.inner().inspect(report, budget())).unwrap().unwrap().lease;
        wait_until("the end of the lease", || lease().is_none_or(|lease| lease.remaining.is_zero()));
        assert_eq!(store.renewals(), renewals);
        if !renews_itself {
            assert_eq!(store.calls(Operation::Release), 1, "the engine's own thread has released it");
        }
    }
}

/// How a lease can be over before its holder releases it.
const OVER: [&str; 6] = ["expired", "taken", "published by another", "forced", "closed", "history replaced"];

async fn end_behind_its_back(scene: &Scene, fence: Fence, how: &str) {
    let store = scene.store.inner();
    match how {
        "forced" => drop(store.force_release(scene.report, Holder::new("operator").unwrap(), budget()).await.unwrap()),
        "history replaced" => drop(store.advance_recovery_epoch(Epoch::new(9), budget()).await.unwrap()),
        "closed" => {
            let learned = Some((fence.generation, fence.epoch));
            let close = CloseRequest { report: scene.report, owner: fence.owner, learned };
            store.close(close, budget()).await.unwrap();
        }
        _ => {
            store.clock().step(2 * TTL);
            if how != "expired" {
                let theirs = acquire(&scene.rival(), scene.report).await;
                if how == "published by another" {
                    theirs.publish("theirs").await.unwrap();
                } else {
                    std::mem::forget(theirs);
                }
            }
        }
    }
}

/// DistributedLock#141: the release of an expired lease threw in clean-up.
#[tokio::test(start_paused = true)]
async fn case_13_releasing_a_lease_that_is_over_is_an_answer_and_no_error() {
    for how in OVER {
        let scene = scene().await;
        let guard = scene.acquire().await;
        let fence = guard.lease().fence();
        end_behind_its_back(&scene, fence, how).await;
        let before = scene.store.inner().inspect(scene.report, budget()).await.unwrap().unwrap();
        assert!(matches!(guard.release().await, ReleaseOutcome::AlreadyOver), "{how}");
        for _ in 0..2 {
            let again = scene.store.inner().release(fence, budget()).await.unwrap();
            assert_eq!(again, ReleaseAnswer::AlreadyOver, "{how}");
        }
        let after = scene.store.inner().inspect(scene.report, budget()).await.unwrap().unwrap();
        if how != "expired" {
            assert_eq!(after, before, "{how}: and it changes nothing");
        }
        no_tasks_left(&scene.supervisor).await;
    }
}

/// spring-integration#9291: the clean-up's own failure hid why the work had stopped.
#[tokio::test(start_paused = true)]
async fn case_13_a_release_that_fails_hides_neither_the_loss_nor_the_builds_error() {
    for release in [Fault::Hang, Fault::Panic, Fault::LoseAnswer, Fault::Fail(StoreErrorKind::Unavailable)] {
        for how in OVER {
            let scene = scene().await;
            scene.store.plan_always(Operation::Release, release.clone());
            let (began, has_begun) = tokio::sync::oneshot::channel();
            let build = |lease: leasehold::Lease| async move {
                began.send(lease.fence()).unwrap();
                pending::<Result<String, &str>>().await
            };
            let run = scene.supervisor.run(scene.report, None, build);
            let meanwhile = async { end_behind_its_back(&scene, has_begun.await.unwrap(), how).await };
            let (answer, ()) = tokio::join!(run, meanwhile);
            let Err(RunError::Lost { loss, source: None }) = answer else { panic!("{how}, {release:?}: {answer:?}") };
            assert_ne!(loss.reason(), LossReason::DeadlinePassed, "{how}: the database said why");
        }
        let scene = scene().await;
        scene.store.plan_always(Operation::Release, release.clone());
        let answer = scene.supervisor.run(scene.report, None, |_| async { Err::<String, _>("the build's own") }).await;
        assert!(matches!(answer, Err(RunError::Build("the build's own"))), "{release:?}: {answer:?}");
    }
}
