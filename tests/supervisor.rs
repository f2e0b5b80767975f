//! Acquiring, waiting, running builds, and shutting down.

mod support;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use leasehold::store::Store;
use leasehold::testing::{Fault, Gate, JumpingClock, MemoryStore, Operation, TokioClock};
use leasehold::{
    AcquireError, Acquisition, Built, Completed, Epoch, Holder, LeaseStatus, LossReason, PublishError, ReportId,
    RunError, SourceRevision, StoreErrorKind,
};
use support::*;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(start_paused = true)]
async fn busy_says_who_and_for_how_long_and_is_not_unavailable() {
    let scene = scene().await;
    let holder = Holder::new("host-a/17/reports").unwrap();
    let _guard = acquire(&scene.rival_with(policy().holder(holder.clone())), scene.report).await;
    sleep(secs(5)).await;
    let error = scene.supervisor.acquire(scene.report, None).await.unwrap_err();
    let AcquireError::Busy(busy) = &error else { panic!("busy, not {error:?}") };
    assert_eq!((&busy.holder, busy.remaining), (&holder, secs(25)));
    assert!(error.to_string().contains("host-a/17/reports holds it, for 25s more"), "{error}");
    scene.store.plan(Operation::Acquire, Fault::Fail(StoreErrorKind::Unavailable));
    let error = scene.supervisor.acquire(scene.report, None).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)));
}

#[tokio::test(start_paused = true)]
async fn an_unprovisioned_report_is_an_error_that_says_what_to_do() {
    let scene = scene().await;
    let report = ReportId::from_name("unheard of");
    let error = scene.supervisor.acquire(report, None).await.unwrap_err();
    assert!(error.to_string().contains("never provisioned: call provision, or acquire_or_provision"), "{error}");
    let acquisition = scene.supervisor.acquire_or_provision(report, None).await.unwrap();
    assert!(acquisition.acquired().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_whose_answer_is_lost_is_asked_for_again_as_the_same() {
    let scene = scene().await;
    scene.store.plan(Operation::Acquire, Fault::LoseAnswer);
    let guard = scene.acquire().await;
    assert_eq!(guard.lease().fence().generation.get(), 1);
    assert_eq!((scene.store.calls(Operation::Acquire), scene.store.calls(Operation::Close)), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_stays_unknown_is_closed_and_holds_the_lease_for_nobody() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Acquire, Fault::LoseAnswer);
    let error = scene.supervisor.acquire(scene.report, None).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unknown(_)), "{error}");
    scene.free_within(secs(1)).await;
    no_tasks_left(&scene.supervisor).await;
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_whose_first_request_was_lost_is_closed_whatever_the_second_is_answered() {
    let scene = scene().await;
    let theirs = acquire(&scene.rival(), scene.report).await;
    scene.store.plan(Operation::Acquire, Fault::Fail(StoreErrorKind::Unknown));
    let error = scene.supervisor.acquire(scene.report, None).await.unwrap_err();
    assert!(matches!(error, AcquireError::Busy(_)), "{error}");
    no_tasks_left(&scene.supervisor).await;
    assert_eq!(scene.store.calls(Operation::Close), 1, "the first request may still arrive, after the holder has gone");
    assert!(matches!(theirs.status(), LeaseStatus::Held { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_acquisition_holds_the_lease_for_nobody_whenever_its_request_arrives() {
    for arrives_late in [false, true] {
        let scene = scene().await;
        let gate = Gate::new();
        let held = if arrives_late { Fault::Hold(gate.clone()) } else { Fault::HoldAnswer(gate.clone()) };
        scene.store.plan(Operation::Acquire, held);
        {
            let mut acquiring = Box::pin(scene.supervisor.acquire(scene.report, None));
            tokio::select! { biased; _ = &mut acquiring => panic!("it is held"), () = gate.arrival() => {} }
        }
        scene.free_within(secs(1)).await;
        gate.open();
        no_tasks_left(&scene.supervisor).await;
        assert!(scene.is_free().await, "the late request acquires nothing: its owner is closed");
        scene.acquire().await.publish("next").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_soon_after_a_release_and_after_an_expiry() {
    let scene = scene().await;
    let theirs = acquire(&scene.rival(), scene.report).await;
    let started = Instant::now();
    let (acquisition, ()) = tokio::join!(scene.supervisor.acquire_wait(scene.report, None), async {
        sleep(secs(60)).await;
        theirs.release().await;
    });
    let guard = acquisition.unwrap().acquired().unwrap();
    assert!((secs(60)..=secs(65)).contains(&started.elapsed()), "{:?}", started.elapsed());
    drop(guard);
    scene.free_within(secs(1)).await;

    let _theirs = acquire(&scene.rival(), scene.report).await;
    scene.store.inner().clock().step(TTL - secs(4));
    let started = Instant::now();
    let acquisition = scene.supervisor.acquire_wait(scene.report, None).await.unwrap();
    assert!(acquisition.acquired().is_some());
    assert!(started.elapsed() <= secs(15), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn waiting_outlasts_a_blip_of_the_database_and_takes_a_new_generation() {
    let scene = scene().await;
    let first = scene.acquire().await.lease().fence().generation;
    scene.free_within(secs(1)).await;
    for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Unknown, StoreErrorKind::Unavailable] {
        scene.store.plan(Operation::Acquire, Fault::Fail(kind));
    }
    let guard = scene.supervisor.acquire_wait(scene.report, None).await.unwrap().acquired().unwrap();
    assert!(guard.lease().fence().generation > first);
}

#[tokio::test(start_paused = true)]
async fn waiting_does_not_outlast_what_nobody_will_mend() {
    let scene = scene().await;
    scene.store.plan(Operation::Acquire, Fault::Fail(StoreErrorKind::Rejected));
    let error = scene.supervisor.acquire_wait(scene.report, None).await.unwrap_err();
    assert!(matches!(error, AcquireError::Rejected(_)));
}

#[tokio::test(start_paused = true)]
async fn an_older_history_than_one_that_was_seen_is_refused() {
    let scene = scene().await;
    let newer = MemoryStore::new();
    newer.provision(scene.report, budget()).await.unwrap();
    let supervisor = scene.rival_with(policy().min_epoch(Epoch::new(7)));
    let error = supervisor.acquire(scene.report, None).await.unwrap_err();
    let expected = Epoch::new(7);
    assert!(matches!(error, AcquireError::StaleHistory { expected: e, .. } if e == expected), "{error}");
    scene.store.inner().advance_recovery_epoch(expected, budget()).await.unwrap();
    assert!(supervisor.acquire(scene.report, None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_run_publishes_what_its_build_gives() {
    let scene = scene().await;
    // Neither Send nor 'static.
    let parts = Cell::new(0);
    let counted = Rc::new(());
    let completed = scene
        .supervisor
        .run(scene.report, SourceRevision::new(3), |lease| {
            let (counted, parts) = (Rc::clone(&counted), &parts);
            async move {
                for _ in 0..10 {
                    sleep(secs(20)).await;
                    lease.checkpoint().unwrap();
                    parts.set(parts.get() + 1);
                }
                drop(counted);
                Ok::<_, std::io::Error>(format!("{} parts", parts.get()))
            }
        })
        .await
        .unwrap();
    let Completed::Published(receipt) = completed else { panic!("published, not {completed:?}") };
    assert_eq!(receipt.revision, Some(SourceRevision::new(3)));
    assert_eq!(scene.published().await, Some(("10 parts".into(), 1)));
    no_tasks_left(&scene.supervisor).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_for_a_visible_revision_builds_nothing() {
    let scene = scene().await;
    let build = |revision| {
        let built = Built::from_revision("payload", SourceRevision::new(revision));
        move |_| async move { Ok::<_, std::io::Error>(built) }
    };
    scene.supervisor.run(scene.report, None, build(5)).await.unwrap();
    let completed = scene
        .supervisor
        .run(scene.report, SourceRevision::new(5), |_| async {
            panic!("there is nothing to build") as Result<String, String>
        })
        .await
        .unwrap();
    assert!(matches!(completed, Completed::AlreadyFresh(visible) if visible.revision == Some(SourceRevision::new(5))));
}

#[tokio::test(start_paused = true)]
async fn a_builds_own_error_comes_back_as_it_was_and_the_lease_is_free() {
    #[derive(Debug, PartialEq, thiserror::Error)]
    #[error("no such customer")]
    struct NoSuchCustomer;

    let scene = scene().await;
    let error =
        scene.supervisor.run(scene.report, None, |_| async { Err::<String, _>(NoSuchCustomer) }).await.unwrap_err();
    assert!(matches!(error, RunError::Build(NoSuchCustomer)));
    assert!(scene.is_free().await, "already when run returns");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_lease_is_lost_drops_its_build_and_says_lost() {
    let scene = scene().await;
    let dropped = Rc::new(Cell::new(None));
    let started = Instant::now();
    scene.store.plan_always(Operation::Renew, Fault::Hang);
    let error = scene
        .supervisor
        .run(scene.report, None, |_| {
            let on_drop = OnDrop(Rc::clone(&dropped));
            async move {
                let _on_drop = on_drop;
                std::future::pending::<Result<String, std::io::Error>>().await
            }
        })
        .await
        .unwrap_err();
    assert!(matches!(error, RunError::Lost { loss, source: None } if loss.reason() == LossReason::DeadlinePassed));
    assert_eq!(dropped.get().unwrap() - started, DEADLINE);
}

struct OnDrop(Rc<Cell<Option<Instant>>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.set(Some(Instant::now()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_build_whose_lease_is_lost_is_the_source_of_lost() {
    let clock = JumpingClock::new(TokioClock::start());
    let scene = scene_with_clock(policy(), clock.clone()).await;
    let build = |_| {
        // The machine is suspended in the middle of a poll: the build is the first to notice anything.
        clock.jump(TTL);
        async { Err::<String, _>("connection reset") }
    };
    let error = scene.supervisor.run(scene.report, None, build).await.unwrap_err();
    let RunError::Lost { loss, source } = error else { panic!("lost, not {error:?}") };
    assert_eq!((loss.reason(), source), (LossReason::DeadlinePassed, Some("connection reset")));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_gave_its_lease_up_has_released_it_when_it_returns() {
    let scene = scene_with(policy().stall_after(secs(20))).await;
    let build = |_| std::future::pending::<Result<String, std::io::Error>>();
    let error = scene.supervisor.run(scene.report, None, build).await.unwrap_err();
    assert!(matches!(error, RunError::Lost { loss, .. } if loss.reason() == LossReason::Stalled));
    assert!(scene.is_free().await, "not only soon after");
}

#[tokio::test(start_paused = true)]
async fn a_guard_publishes_the_revision_that_was_asked_for() {
    let scene = scene().await;
    let wanted = SourceRevision::new(9);
    let guard = scene.supervisor.acquire(scene.report, wanted).await.unwrap().acquired().unwrap();
    assert_eq!(guard.publish("payload").await.unwrap().revision, Some(wanted));
    let again = scene.supervisor.acquire(scene.report, wanted).await.unwrap();
    assert!(matches!(again, Acquisition::AlreadyFresh(visible) if visible.revision == Some(wanted)));
}

#[tokio::test(start_paused = true)]
async fn a_run_with_an_unfit_payload_releases_the_lease_and_says_why() {
    let scene = scene_with(policy().max_payload(4)).await;
    let build = |_| async { Ok::<_, std::io::Error>("five!") };
    let error = scene.supervisor.run(scene.report, None, build).await.unwrap_err();
    assert!(matches!(error, RunError::Publish(PublishError::Invalid(_))), "{error}");
    assert!(scene.is_free().await);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_drops_its_build_and_frees_the_lease() {
    let scene = scene().await;
    let build = |_| std::future::pending::<Result<String, std::io::Error>>();
    assert!(timeout(secs(50), scene.supervisor.run(scene.report, None, build)).await.is_err());
    scene.free_within(secs(1)).await;
    no_tasks_left(&scene.supervisor).await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_cancels_builds_releases_all_and_lets_nothing_in() {
    let scene = scene().await;
    let mut tokens = Vec::new();
    let mut builds = Vec::new();
    for index in 0..20 {
        let report = ReportId::from_name(&format!("report {index}"));
        scene.store.provision(report, budget()).await.unwrap();
        let guard = acquire(&scene.supervisor, report).await;
        tokens.push(guard.lease().child_token());
        builds.push(tokio::spawn(async move { guard.supervise(std::future::pending::<()>()).await }));
    }
    let report = scene.supervisor.shutdown(secs(10)).await;
    assert_eq!((report.released, report.not_released.len()), (20, 0));
    assert!(tokens.iter().all(tokio_util::sync::CancellationToken::is_cancelled));
    for build in builds {
        assert_eq!(build.await.unwrap().unwrap_err().reason(), LossReason::Shutdown);
    }
    let error = scene.supervisor.acquire(scene.report, None).await.unwrap_err();
    assert!(matches!(error, AcquireError::ShutDown));
    for index in 0..20 {
        let taken = acquire(&scene.rival(), ReportId::from_name(&format!("report {index}"))).await;
        assert_eq!(taken.lease().fence().generation.get(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_returns_by_its_limit_and_tells_what_it_could_not_release() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Release, Fault::Hang);
    let guard = scene.acquire().await;
    let started = Instant::now();
    let report = scene.supervisor.shutdown(secs(4)).await;
    assert!(started.elapsed() <= secs(4), "{:?}", started.elapsed());
    assert_eq!((report.released, report.not_released), (0, vec![guard.lease().fence()]));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_releases_a_guard_that_nobody_drops_after_half_its_limit() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let report = scene.supervisor.shutdown(secs(10)).await;
    assert_eq!(report.released, 1);
    assert!(matches!(guard.status(), LeaseStatus::Lost(loss) if loss.reason() == LossReason::Shutdown));
    assert!(scene.is_free().await);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_frees_the_lease_that_an_unanswered_publication_advanced_to() {
    let scene = scene().await;
    scene.store.plan(Operation::PublishAndAdvance, Fault::HangAfterwards);
    let mut publication = scene.acquire().await.publication("part").and_advance();
    let mut send = Box::pin(publication.send());
    assert!(timeout(secs(1), &mut send).await.is_err(), "it is accepted, and its answer never comes");
    let report = scene.supervisor.shutdown(secs(4)).await;
    assert_eq!((report.released, report.not_released.len()), (1, 0));
    assert!(scene.is_free().await);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_of_many_leases_takes_longer_than_one_clean_up_may_and_releases_all() {
    const COUNT: usize = 200;
    let scene = scene_with(policy().cleanup_timeout(secs(1))).await;
    let mut guards = Vec::new();
    for index in 0..COUNT {
        let report = ReportId::from_name(&format!("report {index}"));
        scene.store.provision(report, budget()).await.unwrap();
        guards.push(acquire(&scene.supervisor, report).await);
    }
    let gate = Gate::new();
    scene.store.plan_always(Operation::Release, Fault::Hold(gate.clone()));
    let each_takes_300_ms = tokio::spawn(async move {
        loop {
            gate.arrival().await;
            let gate = gate.clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(300)).await;
                gate.open();
            });
        }
    });
    let report = scene.supervisor.shutdown(secs(60)).await;
    each_takes_300_ms.abort();
    assert_eq!((report.released, report.not_released.len()), (COUNT, 0));
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_under_way_at_a_shutdown_is_handed_back() {
    let scene = scene().await;
    let gate = Gate::new();
    scene.store.plan(Operation::Acquire, Fault::HoldAnswer(gate.clone()));
    let (acquisition, ()) = tokio::join!(scene.supervisor.acquire(scene.report, None), async {
        gate.arrival().await;
        let _ = scene.supervisor.shutdown(Duration::from_millis(100)).await;
        gate.open();
    });
    assert!(matches!(acquisition, Err(AcquireError::ShutDown)));
    scene.free_within(secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn time_outs_without_end_are_no_time_outs() {
    let scene = scene_with(policy().operation_timeout(Duration::MAX).cleanup_timeout(Duration::MAX)).await;
    let guard = scene.acquire().await;
    assert!(matches!(guard.release().await, leasehold::ReleaseOutcome::Released));
    let policy = policy().cleanup_timeout(Duration::MAX).build().unwrap();
    assert!(leasehold::LeaseSupervisor::new(MemoryStore::new(), policy).is_ok());
    let told = scene.supervisor.shutdown(Duration::MAX).await;
    assert!(told.not_released.is_empty());
}

#[tokio::test(start_paused = true)]
async fn readers_get_a_payload_only_if_it_is_newer() {
    use leasehold::answer::ReadAnswer;
    let scene = scene().await;
    assert_eq!(scene.supervisor.read(scene.report).await.unwrap(), ReadAnswer::Unpublished);
    scene.acquire().await.publish("first").await.unwrap();
    let answer = scene.supervisor.read(scene.report).await.unwrap();
    assert!(!format!("{answer:?}").contains("first"), "payloads belong in no log");
    let ReadAnswer::Found { visible, payload } = answer else { panic!() };
    assert_eq!(payload, "first");
    let again = scene.supervisor.read_if_newer(scene.report, visible.version).await.unwrap();
    assert_eq!(again, ReadAnswer::NotNewer(visible));
    let metadata = scene.supervisor.metadata(scene.report).await.unwrap().unwrap();
    assert_eq!(metadata.visible, Some(visible));
    let Acquisition::Acquired(guard) = scene.supervisor.acquire(scene.report, None).await.unwrap() else { panic!() };
    assert_eq!(guard.visible(), Some(visible));
    let status = scene.supervisor.inspect(scene.report).await.unwrap().unwrap();
    assert_eq!(status.lease.unwrap().owner, Some(guard.lease().fence().owner));
    guard.publish("second").await.unwrap();
    let newer = scene.supervisor.read_if_newer(scene.report, visible.version).await.unwrap();
    assert!(matches!(newer, ReadAnswer::Found { payload, .. } if payload == "second"));
}
