//! A worker in a process of its own: this test binary again, one test only. Parent and worker speak in lines.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use leasehold::store::sqlite::SqliteStore;
use leasehold::{LeasePolicy, LeaseSupervisor};

use crate::child;

/// Before what a worker says, because the test harness prints on the same line.
const MARK: &str = "worker: ";

pub(crate) struct Worker {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts this test as a worker on this database.
    pub(crate) fn start(test: &str, file: &Path) -> Self {
        Self::start_with(test, file, |command| command)
    }

    pub(crate) fn start_with(test: &str, file: &Path, set: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let mut command = child::command(test, file);
        let mut process =
            set(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the worker starts");
        let input = process.stdin.take().expect("its input");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        Self { process, input, output }
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the worker listens");
    }

    /// The next thing that the worker says.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        while self.output.read_line(&mut line).expect("its output") > 0 {
            if let Some((_, said)) = line.trim_end().split_once(MARK) {
                return said.to_owned();
            }
            line.clear();
        }
        panic!("the worker ended and said no more");
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.process.wait().expect("the worker ends")
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("it ended");
    }

    /// Stops it, as a suspended machine or a paused container does, and waits until it stands.
    #[cfg(unix)]
    pub(crate) fn suspend(&self) {
        use rustix::process::{Signal, WaitOptions, kill_process, waitpid};
        let pid = self.pid();
        kill_process(pid, Signal::STOP).expect("stopped");
        let status = waitpid(Some(pid), WaitOptions::UNTRACED).expect("it stops").expect("waited for").1;
        assert!(status.stopped(), "{status:?}");
    }

    #[cfg(unix)]
    pub(crate) fn resume(&self) {
        use rustix::process::{Signal, kill_process};
        kill_process(self.pid(), Signal::CONT).expect("resumed");
    }

    #[cfg(unix)]
    fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.process)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Also a stopped one; an ended one cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// In the worker.
pub(crate) fn say(line: impl std::fmt::Display) {
    println!("{MARK}{line}");
}

/// In the worker: the next line of the parent.
pub(crate) fn hear() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("the parent's line");
    line.trim_end().to_owned()
}

/// A supervisor with an engine of its own on a database file.
pub(crate) fn supervisor(store: &SqliteStore, ttl: Duration) -> LeaseSupervisor {
    LeaseSupervisor::new(store.clone(), LeasePolicy::builder(ttl).build().expect("a policy")).expect("a thread")
}

/// Waits, in real time, for a condition.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
