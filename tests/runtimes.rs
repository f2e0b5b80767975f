//! Guards outside runtimes, runtimes that are blocked or shut down, and the engine's own thread. In real time, because it is
//! the runtime's own behaviour that is tested: every wait is for a condition, and the TTLs decide nothing but how long it takes.

mod support;

use std::time::{Duration, Instant};

use leasehold::store::Store;
use leasehold::testing::{Fault, FaultyStore, JumpingClock, MemoryStore, Operation};
use leasehold::{
    AcquireError, BootClock, LeaseGuard, LeasePolicy, LeasePolicyBuilder, LeaseStatus, LeaseSupervisor, LossReason,
    ReportId, RunError,
};
use support::{TestStore, budget, secs};
use tokio::runtime::{Builder, Runtime};

const TTL: Duration = Duration::from_millis(900);

fn policy() -> LeasePolicyBuilder {
    LeasePolicy::builder(TTL)
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn new_store(runtime: &Runtime, report: ReportId) -> TestStore {
    let store = FaultyStore::new(MemoryStore::new());
    runtime.block_on(store.provision(report, budget())).unwrap();
    store
}

fn supervised(runtime: &Runtime, store: &TestStore) -> LeaseSupervisor {
    let _entered = runtime.enter();
    LeaseSupervisor::new(store.clone(), policy().build().unwrap()).unwrap()
}

fn acquire(runtime: &Runtime, supervisor: &LeaseSupervisor, report: ReportId) -> LeaseGuard {
    runtime.block_on(support::acquire(supervisor, report))
}

fn is_free(store: &TestStore, report: ReportId) -> bool {
    current_thread().block_on(store.inner().inspect(report, budget())).unwrap().unwrap().lease.is_none()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_blocked_runtime_keeps_its_lease_by_the_engines_own_thread() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = supervised(&runtime, &store);
    let guard = acquire(&runtime, &supervisor, report);
    let renewals = store.renewals();
    runtime.block_on(async { std::thread::sleep(3 * TTL) });
    assert!(store.renewals() > renewals + 3);
    assert!(matches!(guard.status(), LeaseStatus::Held { .. }));
    runtime.block_on(guard.publish("kept")).unwrap();
}

#[test]
fn a_blocked_runtime_that_renews_itself_sees_the_loss_at_the_first_look() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let policy = policy().build().unwrap();
    let supervisor =
        LeaseSupervisor::builder(store.clone(), policy).renew_on(runtime.handle().clone()).start().unwrap();
    let guard = acquire(&runtime, &supervisor, report);
    runtime.block_on(async {
        std::thread::sleep(2 * TTL);
        assert!(matches!(guard.status(), LeaseStatus::Lost(loss) if loss.reason() == LossReason::DeadlinePassed));
    });
    assert!(runtime.block_on(guard.publish("late")).is_err());
    assert_eq!(store.calls(Operation::Publish), 0);
}

#[test]
fn a_lease_outlives_the_runtime_it_was_acquired_on_and_is_released_outside_any() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = supervised(&runtime, &store);
    let guard = acquire(&runtime, &supervisor, report);
    drop(runtime);
    let renewals = store.renewals();
    wait_until("three more renewals", || store.renewals() >= renewals + 3);
    assert!(matches!(guard.status(), LeaseStatus::Held { .. }));
    std::thread::spawn(move || drop(guard)).join().unwrap();
    wait_until("the release of a guard dropped on a plain thread", || is_free(&store, report));

    // The first call on the runtime that is gone is lost; those after it run on the engine's thread.
    let other = current_thread();
    let guard = other.block_on(async {
        loop {
            match supervisor.acquire(report, None).await {
                Ok(acquisition) => break acquisition.acquired().unwrap(),
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
    });
    other.block_on(guard.publish("from another runtime")).unwrap();
}

#[test]
fn a_runtime_that_is_shut_down_with_its_renewals_trips_the_token() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = LeaseSupervisor::builder(store.clone(), policy().build().unwrap())
        .renew_on(runtime.handle().clone())
        .start()
        .unwrap();
    let guard = acquire(&runtime, &supervisor, report);
    let token = guard.lease().child_token();
    drop(runtime);
    assert!(token.is_cancelled());
    let LeaseStatus::Lost(loss) = guard.status() else { panic!("it is lost") };
    assert_eq!(loss.reason(), LossReason::RenewalDied);
    drop(guard);
}

#[test]
fn waiting_for_a_lease_ends_when_every_runtime_is_gone() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = {
        let _entered = runtime.enter();
        let builder = LeaseSupervisor::builder(store.clone(), policy().build().unwrap());
        builder.renew_on(runtime.handle().clone()).start().unwrap()
    };
    drop(runtime);
    let waiting = async { tokio::time::timeout(secs(30), supervisor.acquire_wait(report, None)).await };
    let error = current_thread().block_on(waiting).expect("it does not try for ever").unwrap_err();
    assert!(matches!(error, AcquireError::ShutDown), "{error}");
}

#[test]
fn a_shutdown_returns_by_its_limit_though_nobody_drives_the_runtime_that_renews() {
    let (idle, runtime, report) = (current_thread(), current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = {
        let _entered = runtime.enter();
        let builder = LeaseSupervisor::builder(store.clone(), policy().build().unwrap());
        builder.renew_on(idle.handle().clone()).start().unwrap()
    };
    let guard = acquire(&runtime, &supervisor, report);
    let shutdown = async { tokio::time::timeout(secs(30), supervisor.shutdown(secs(1))).await };
    let told = runtime.block_on(shutdown).expect("it returns by its limit");
    assert_eq!(told.not_released, vec![guard.lease().fence()]);
}

#[test]
fn a_blocking_build_whose_runtime_is_gone_never_runs_and_its_lease_is_released() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = supervised(&runtime, &store);
    let guard = acquire(&runtime, &supervisor, report);
    drop(runtime);
    let build = |_| panic!("there is no runtime to run it on");
    let built: Result<(), _> = current_thread().block_on(guard.supervise_blocking(build));
    assert!(built.is_err());
    drop(guard);
    wait_until("the release", || is_free(&store, report));
    assert_eq!(store.calls(Operation::Release), 1, "it did not just expire");
}

#[test]
fn a_guard_that_a_thread_local_drops_at_the_end_of_its_thread_is_released() {
    thread_local!(static KEPT: std::cell::RefCell<Option<LeaseGuard>> = const { std::cell::RefCell::new(None) });

    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = supervised(&runtime, &store);
    let guard = acquire(&runtime, &supervisor, report);
    std::thread::spawn(move || KEPT.with(|kept| *kept.borrow_mut() = Some(guard))).join().unwrap();
    wait_until("the release", || store.calls(Operation::Release) == 1);
}

#[test]
fn no_thread_is_left_once_the_supervisor_and_its_guards_are_gone() {
    // In a process of its own, so that the threads of other tests do not count.
    if std::env::var_os("LEASEHOLD_COUNTS_THREADS").is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "no_thread_is_left_once_the_supervisor_and_its_guards_are_gone", "--test-threads=1"]);
        assert!(again.env("LEASEHOLD_COUNTS_THREADS", "1").status().unwrap().success());
        return;
    }
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let before = threads();
    let supervisor = supervised(&runtime, &store);
    let guard = acquire(&runtime, &supervisor, report);
    assert_eq!(threads(), before + 1);
    drop(supervisor);
    let renewals = store.renewals();
    wait_until("the guard alone keeps the engine alive", || store.renewals() >= renewals + 2);
    drop(guard);
    wait_until("the thread ends", || threads() == before);
    assert!(is_free(&store, report), "after it has released");

    store.plan_always(Operation::Release, Fault::Hang);
    let supervisor = supervised(&runtime, &store);
    let guard = acquire(&runtime, &supervisor, report);
    let report = runtime.block_on(supervisor.shutdown(secs(1)));
    assert_eq!(report.not_released.len(), 1);
    drop((supervisor, guard));
    wait_until("the thread ends though the store never answers", || threads() == before);
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.count())
}

#[test]
fn a_blocking_build_is_renewed_checked_and_published() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = supervised(&runtime, &store);
    let watched = store.clone();
    let build = move |lease: leasehold::Lease| {
        wait_until("renewals under a blocking build", || watched.renewals() >= 3);
        lease.checkpoint()?;
        Ok::<_, leasehold::Loss>("built".to_owned())
    };
    runtime.block_on(supervisor.run_blocking(report, None, build)).unwrap();
    assert!(is_free(&store, report));
}

#[test]
fn a_blocking_build_sees_the_loss_at_its_checkpoint() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    store.plan_always(Operation::Renew, Fault::Hang);
    let supervisor = supervised(&runtime, &store);
    let build = |lease: leasehold::Lease| {
        loop {
            lease.checkpoint()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        #[allow(unreachable_code)]
        Ok::<String, leasehold::Loss>(String::new())
    };
    let error = runtime.block_on(supervisor.run_blocking(report, None, build)).unwrap_err();
    let RunError::Lost { loss, source } = error else { panic!("lost, not {error:?}") };
    assert_eq!(loss.reason(), LossReason::DeadlinePassed);
    assert_eq!(source.unwrap().reason(), LossReason::DeadlinePassed, "what the build answered when it noticed");
}

#[test]
fn a_lease_under_a_blocking_build_is_never_released_only_left_to_expire() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = supervised(&runtime, &store);
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let (began, begin) = std::sync::mpsc::channel();
    let token = runtime.block_on(async {
        let build = move |lease: leasehold::Lease| {
            began.send(lease.child_token()).unwrap();
            ended.recv().unwrap();
            Ok::<_, leasehold::Loss>("never published")
        };
        let mut run = Box::pin(supervisor.run_blocking(report, None, build));
        loop {
            tokio::select! { biased; _ = &mut run => panic!("it blocks"), () = tokio::time::sleep(Duration::from_millis(1)) => {} }
            if let Ok(token) = begin.try_recv() {
                break token;
            }
        }
    });
    // The run was dropped: the build is told, the renewal stopped, and nothing released while it goes on.
    assert!(token.is_cancelled());
    wait_until("the lease expires", || is_free_or_expired(&store, report));
    assert_eq!(store.calls(Operation::Release), 0);
    end.send(()).unwrap();
}

fn is_free_or_expired(store: &TestStore, report: ReportId) -> bool {
    let status = current_thread().block_on(store.inner().inspect(report, budget())).unwrap().unwrap();
    status.lease.is_none_or(|lease| lease.remaining.is_zero())
}

#[test]
#[should_panic(expected = "the build's own panic")]
fn a_blocking_builds_panic_is_the_callers() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let supervisor = supervised(&runtime, &store);
    let build = |_: leasehold::Lease| -> Result<String, std::io::Error> { panic!("the build's own panic") };
    let _ = runtime.block_on(supervisor.run_blocking(report, None, build));
}

#[test]
fn a_supervisor_made_outside_any_runtime_works_from_any() {
    let report = ReportId::from_name("r");
    let store = FaultyStore::new(MemoryStore::new());
    let supervisor = LeaseSupervisor::new(store, policy().build().unwrap()).unwrap();
    let guard = futures::executor::block_on(async {
        supervisor.acquire_or_provision(report, None).await.unwrap().acquired().unwrap()
    });
    let receipt = futures::executor::block_on(guard.publish("without a runtime")).unwrap();
    assert_eq!(receipt.generation.get(), 1);
}

#[test]
fn a_suspension_is_noticed_within_a_slice_on_the_engines_own_thread() {
    let (runtime, report) = (current_thread(), ReportId::from_name("r"));
    let store = new_store(&runtime, report);
    let clock = JumpingClock::new(BootClock);
    let supervisor = {
        let _entered = runtime.enter();
        // A TTL that no busy machine uses up, and slices of half a second: a quarter of the margin.
        let policy = LeasePolicy::builder(secs(60)).margin(secs(2)).build().unwrap();
        LeaseSupervisor::builder(store.clone(), policy).clock(clock.clone()).start().unwrap()
    };
    let guard = acquire(&runtime, &supervisor, report);
    let token = guard.lease().child_token();
    // Long after the first pulse; the caller's runtime is not driven at all.
    std::thread::sleep(secs(1));
    assert!(!token.is_cancelled());
    clock.jump(secs(300));
    let resumed_at = Instant::now();
    wait_until("the token trips", || token.is_cancelled());
    let took = resumed_at.elapsed();
    assert!(took < secs(10), "a slice, and what a busy machine adds; the timer alone would have taken 18 s: {took:?}");
    let LeaseStatus::Lost(loss) = guard.status() else { panic!("it is lost") };
    assert_eq!(loss.reason(), LossReason::DeadlinePassed);
    assert!(loss.past_deadline() > secs(240));
    assert_eq!(store.renewals(), 0, "nothing is renewed after the deadline");
}
