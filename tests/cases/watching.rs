//! Renewals that nobody watches, and watchdogs that watch over a hung build for ever.

use std::future::pending;
use std::time::Duration;

use leasehold::store::Store;
use leasehold::testing::{Fault, FaultyStore, MemoryStore, Operation};
use leasehold::{
    Holder, LeaseGuard, LeasePolicy, LeaseStatus, LeaseSupervisor, LossReason, ReportId, RunError, StoreErrorKind,
};
use tokio::time::{Instant, sleep, timeout};

use crate::process::wait_until;
use crate::support::{Scene, TTL, acquire, budget, policy, scene, scene_with, secs};

async fn guard(scene: &Scene, name: &str) -> LeaseGuard {
    let report = ReportId::from_name(name);
    scene.store.provision(report, budget()).await.unwrap();
    acquire(&scene.supervisor, report).await
}

fn is_held(guard: &LeaseGuard) -> bool {
    matches!(guard.status(), LeaseStatus::Held { .. })
}

/// azure-webjobs#2454 and #2839: an exception of the renewal's timer took the whole host down.
#[tokio::test(start_paused = true)]
async fn case_12_a_renewal_that_fails_for_good_cancels_its_own_build_only() {
    // In a batch of three, and alone; by the database's word, and by its error.
    for together in [true, false] {
        for how in ["forced", "rejected"] {
            if together && how == "rejected" {
                continue; // It would be the error of all three.
            }
            let what = format!("{how}, together: {together}");
            let scene = scene().await;
            let mut guards = Vec::new();
            for name in ["first", "second", "third"] {
                guards.push(guard(&scene, name).await);
                if !together {
                    sleep(Duration::from_millis(2_500)).await;
                }
            }
            let [first, second, third] = <[LeaseGuard; 3]>::try_from(guards).unwrap();
            let build = tokio::spawn(async move { second.supervise(pending::<()>()).await });
            let reason = if how == "forced" {
                let by = Holder::new("operator").unwrap();
                scene.store.inner().force_release(ReportId::from_name("second"), by, budget()).await.unwrap();
                LossReason::Forced
            } else {
                // The first has renewed; the next to renew is the second.
                while first.lease().renewals() == 0 {
                    sleep(Duration::from_millis(1)).await;
                }
                scene.store.plan(Operation::Renew, Fault::Fail(StoreErrorKind::Rejected));
                LossReason::StoreRejected
            };
            let loss = build.await.unwrap().unwrap_err();
            assert_eq!((loss.reason(), loss.fence().report), (reason, ReportId::from_name("second")), "{what}");
            sleep(10 * TTL).await;
            assert!(is_held(&first) && is_held(&third), "{what}: the others go on");
        }
    }
}

/// A renewal that panics, on the engine's own thread: the process lives, and so does every lease.
#[tokio::test]
async fn case_12_a_renewal_that_panics_takes_nobody_down() {
    let store = FaultyStore::new(MemoryStore::new());
    let ttl = secs(3);
    let supervisor = LeaseSupervisor::new(store.clone(), LeasePolicy::builder(ttl).build().unwrap()).unwrap();
    let mut guards = Vec::new();
    for name in ["first", "second", "third"] {
        let acquisition = supervisor.acquire_or_provision(ReportId::from_name(name), None).await.unwrap();
        guards.push(acquisition.acquired().unwrap());
    }
    for _ in 0..2 {
        store.plan(Operation::Renew, Fault::Panic);
        store.plan(Operation::RenewMany, Fault::Panic);
    }
    for guard in &guards {
        let mut watch = guard.watch();
        while guard.lease().renewals() < 2 {
            assert!(matches!(watch.changed().await, LeaseStatus::Held { .. }), "nobody is lost");
        }
    }
    assert!(store.renewals() > 2);
    for guard in guards {
        guard.publish("payload").await.unwrap();
    }
}

/// The known flaw of watchdogs: they keep the lock of a hung job for ever.
#[tokio::test(start_paused = true)]
async fn case_20_a_hung_build_loses_its_lease_and_another_has_it_at_once() {
    type Limit = fn(leasehold::LeasePolicyBuilder) -> leasehold::LeasePolicyBuilder;
    let limits: [(&str, Limit, LossReason); 3] = [
        ("stall_after", |policy| policy.stall_after(secs(100)), LossReason::Stalled),
        ("max_hold", |policy| policy.max_hold(secs(100)), LossReason::HeldTooLong),
        ("both", |policy| policy.max_hold(secs(1_000)).stall_after(secs(100)), LossReason::Stalled),
    ];
    for (name, limit, reason) in limits {
        let scene = scene_with(limit(policy())).await;
        let waiting = {
            let (rival, report) = (scene.rival(), scene.report);
            tokio::spawn(async move {
                sleep(secs(1)).await;
                rival.acquire_wait(report, None).await
            })
        };
        let started = Instant::now();
        let hung = |_| pending::<Result<String, std::io::Error>>();
        let running = scene.supervisor.run(scene.report, None, hung);
        let error = timeout(secs(10_000), running).await.expect("not for ever").unwrap_err();
        let RunError::Lost { loss, .. } = error else { panic!("{name}: lost, not {error:?}") };
        assert_eq!((loss.reason(), started.elapsed()), (reason, secs(100)), "{name}");
        let next = waiting.await.unwrap().unwrap().acquired().unwrap();
        assert_eq!(next.lease().fence().generation.get(), 2, "{name}");
        assert!(started.elapsed() <= secs(106), "{name}: it was released, not left to expire: {:?}", started.elapsed());
    }
}

/// A build that says that it goes on is not hung, but not for ever either; nor is one that is not asked to say so.
#[tokio::test(start_paused = true)]
async fn case_20_progress_keeps_a_lease_up_to_max_hold_and_without_limits_it_is_kept() {
    let scene = scene_with(policy().stall_after(secs(30)).max_hold(secs(600))).await;
    let guard = scene.acquire().await;
    let (lease, started) = (guard.lease(), Instant::now());
    let build = async {
        loop {
            sleep(secs(29)).await;
            lease.progress();
        }
    };
    let loss = guard.supervise(build).await.map(|(): ()| ()).unwrap_err();
    assert_eq!((loss.reason(), started.elapsed()), (LossReason::HeldTooLong, secs(600)));
    drop(guard);

    let scene = self::scene().await;
    let guard = scene.acquire().await;
    sleep(secs(24 * 3600)).await;
    assert!(is_held(&guard));
}

/// A hung build on a blocking thread cannot be stopped; it is told, and renewed no more.
#[test]
fn case_20_a_hung_blocking_build_is_renewed_no_more_and_another_takes_over() {
    let ttl = Duration::from_millis(900);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let store = FaultyStore::new(MemoryStore::new());
    let policy = || LeasePolicy::builder(ttl);
    let supervisor = LeaseSupervisor::new(store.clone(), policy().max_hold(2 * ttl).build().unwrap()).unwrap();
    let report = ReportId::from_name("report");
    runtime.block_on(supervisor.provision(report)).unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let (began, begin) = std::sync::mpsc::channel();
    let running = {
        let supervisor = supervisor.clone();
        runtime.spawn(async move {
            let hung = move |lease: leasehold::Lease| {
                began.send(lease).unwrap();
                let _ = ended.recv();
                Ok::<_, ()>("never published")
            };
            supervisor.run_blocking(report, None, hung).await
        })
    };
    let lease = begin.recv().unwrap();
    wait_until("the loss", || lease.checkpoint().is_err());
    assert_eq!(lease.checkpoint().unwrap_err().reason(), LossReason::HeldTooLong);
    let rival = LeaseSupervisor::new(store.inner().clone(), policy().build().unwrap()).unwrap();
    let theirs = runtime.block_on(rival.acquire_wait(report, None)).unwrap().acquired().unwrap();
    assert_eq!(theirs.lease().fence().generation.get(), 2);
    assert!(!running.is_finished() || store.calls(Operation::Release) == 0, "it was not released while the build ran");
    drop(end);
    let answer = runtime.block_on(running).unwrap();
    assert!(answer.is_err(), "its result is discarded: {answer:?}");
    runtime.block_on(theirs.publish("theirs")).unwrap();
}
