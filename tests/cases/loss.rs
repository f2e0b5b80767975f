//! A loss that nobody looks for.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;

use leasehold::store::Store;
use leasehold::testing::{Fault, Operation};
use leasehold::{Holder, LossReason, RunError};
use tokio::time::{Instant, sleep};

use crate::support::{DEADLINE, Scene, acquire, budget, policy, scene, scene_with, secs};

/// Notes when it is dropped, and what was done until then.
struct Build {
    steps: Rc<Cell<u32>>,
    dropped_at: Rc<Cell<Option<Instant>>>,
}

impl Drop for Build {
    fn drop(&mut self) {
        self.dropped_at.set(Some(Instant::now()));
    }
}

impl Build {
    /// Works for ever, and never looks at its lease.
    async fn work(self) -> Result<String, std::io::Error> {
        loop {
            sleep(std::time::Duration::from_millis(100)).await;
            self.steps.set(self.steps.get() + 1);
        }
    }
}

const LOSSES: [&str; 5] = ["a silent database", "an operator", "held too long", "stalled", "a shutdown"];

async fn scene_that_loses(how: &str) -> Scene {
    match how {
        "held too long" => scene_with(policy().max_hold(secs(40))).await,
        "stalled" => scene_with(policy().stall_after(secs(40))).await,
        _ => scene().await,
    }
}

/// Ends the lease in this way, and says when and why it must be lost.
async fn lose(scene: &Scene, how: &str) -> LossReason {
    match how {
        "a silent database" => {
            scene.store.plan_always(Operation::Renew, Fault::Hang);
            sleep(DEADLINE).await;
            LossReason::DeadlinePassed
        }
        "an operator" => {
            sleep(secs(5)).await;
            scene.store.inner().force_release(scene.report, Holder::new("operator").unwrap(), budget()).await.unwrap();
            sleep(secs(5)).await;
            LossReason::Forced
        }
        "held too long" | "stalled" => {
            sleep(secs(40)).await;
            if how == "stalled" { LossReason::Stalled } else { LossReason::HeldTooLong }
        }
        _ => {
            sleep(secs(5)).await;
            let _ = scene.supervisor.shutdown(secs(1)).await;
            LossReason::Shutdown
        }
    }
}

/// artifact-keeper#3502: the code held a token that said the lease was lost, and never looked at it.
#[tokio::test(start_paused = true)]
async fn case_19_a_build_that_never_looks_is_cancelled_all_the_same() {
    for how in LOSSES {
        for runs in [true, false] {
            let scene = scene_that_loses(how).await;
            let (steps, dropped_at) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
            let build = Build { steps: Rc::clone(&steps), dropped_at: Rc::clone(&dropped_at) };
            let building = async {
                if runs {
                    match scene.supervisor.run(scene.report, None, |_| build.work()).await {
                        Err(RunError::Lost { loss, source: None }) => loss,
                        other => panic!("{how}: lost, not {other:?}"),
                    }
                } else {
                    let guard = acquire(&scene.supervisor, scene.report).await;
                    guard.supervise(build.work()).await.unwrap_err()
                }
            };
            let ending = async { (lose(&scene, how).await, Instant::now()) };
            let (loss, (reason, at)) = tokio::join!(building, ending);
            assert_eq!(loss.reason(), reason, "{how}");
            assert!(dropped_at.get().is_some_and(|dropped_at| dropped_at <= at + secs(1)), "{how}: the build is gone");
            let done = steps.get();
            sleep(secs(60)).await;
            assert_eq!(steps.get(), done, "{how}: not one step more");
        }
    }
}

/// What must not be thrown away says so: each of these is an error under `deny(unused_must_use)`. If one did not, its
/// expectation would be unfulfilled, and this would not compile.
#[tokio::test(start_paused = true)]
#[deny(unfulfilled_lint_expectations)]
async fn case_19_what_must_not_be_thrown_away_says_so() {
    let scene = scene().await;
    #[expect(unused_must_use)]
    {
        scene.supervisor.acquire(scene.report, None);
    }
    #[expect(unused_must_use)]
    {
        scene.supervisor.acquire(scene.report, None).await.unwrap();
    }
    scene.free_within(secs(1)).await;
    #[expect(unused_must_use)]
    {
        scene.acquire().await;
    }
    scene.free_within(secs(1)).await;
    let guard = scene.acquire().await;
    #[expect(unused_must_use)]
    {
        guard.lost();
    }
    #[expect(unused_must_use)]
    {
        guard.supervise(pending::<()>());
    }
    #[expect(unused_must_use)]
    {
        guard.lease().checkpoint();
    }
    #[expect(unused_must_use)]
    {
        guard.publication("payload");
    }
    scene.free_within(secs(1)).await;
    #[expect(unused_must_use)]
    {
        scene.supervisor.shutdown(secs(1)).await;
    }
}
