//! A worker of the example, as a process of its own whose events are JSON lines.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use leasehold::StoreErrorKind;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use crate::scene::{REPORT, Scene, report};

/// How long anything may take before it counts as hung. Nothing waits for it to pass.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// How long the lock may take to be had while nobody holds it.
const PROOF: Duration = Duration::from_secs(1);

/// Killed when dropped.
pub(crate) struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    heard: Vec<Value>,
}

impl Worker {
    pub(crate) fn start(scene: &Scene, task: &str, who: &str, build: Duration, more: &[&str]) -> Self {
        let mut command = Command::new(example());
        command.args(["worker", task, "--who", who, "--report", REPORT]);
        scene.hand_to(&mut command);
        command.args([
            "--ttl",
            &format!("{}ms", scene.ttl.as_millis()),
            "--build",
            &format!("{}ms", build.as_millis()),
        ]);
        command.args(more).current_dir(scene.folder()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the example starts");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, input, lines, heard: Vec::new() }
    }

    /// Waits for the next event of this name.
    #[track_caller]
    pub(crate) fn tells(&mut self, name: &str) -> Value {
        let until = Instant::now() + LIMIT;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let event: Value = serde_json::from_str(&line).expect("an event is JSON");
                    self.heard.push(event.clone());
                    if event["event"] == name {
                        return event;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("no {name:?} within {LIMIT:?}: {:#?}", self.heard),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without {name:?}: {:#?}", self.heard),
            }
        }
    }

    /// Lets it go on to its write, now or when it comes to it.
    pub(crate) fn open_gate(&mut self) {
        self.input.write_all(b"go\n").expect("it listens");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
    }

    /// Stops it right after a renewal, and proves that it holds no lock: this process can have it.
    pub(crate) async fn stop_outside_a_store_call(&mut self, scene: &Scene) {
        for _ in 0..20 {
            self.tells("renewed");
            self.signal(Signal::STOP);
            self.wait_until_stopped();
            match scene.store.take_lock(report(), PROOF).await {
                Ok(()) => return,
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}"),
            }
            self.signal(Signal::CONT);
        }
        panic!("it was inside a store call each time that it was stopped");
    }

    fn wait_until_stopped(&self) {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(Pid::from_child(&self.child)), options).expect("it is a child");
        assert!(status.is_some_and(|status| status.stopped()), "it ended instead: {:#?}", self.heard);
    }

    /// Waits for its end; answers the signal that ended it. It must not have failed.
    pub(crate) fn end(mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;

        let until = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                assert!(status.success() || status.signal().is_some(), "{status}: {:#?}", self.heard);
                return status.signal();
            }
            assert!(Instant::now() < until, "it did not end within {LIMIT:?}: {:#?}", self.heard);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SIGKILL also ends what is stopped. Of one that ended there is nobody to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When it happened, by the machine's clock.
pub(crate) fn at(event: &Value) -> Duration {
    Duration::from_nanos(event["at"].as_u64().expect("events have a time"))
}

/// Where cargo puts it: the tests are in `target/<profile>/deps`.
pub(crate) fn example() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("it lies in target/<profile>/deps");
    let example = profile.join("examples").join("handover");
    assert!(
        example.exists(),
        "{} is not built; `cargo test --features sqlite` builds it, with `--test` it takes `--examples` beside it",
        example.display()
    );
    example
}
