//! Runs `examples/rebuild_report` as the processes that its users run.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::database::TestDatabase;
use crate::example_database::OpenStore;

/// How long anything may take before it counts as hung. Nothing waits for it to pass.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A small tree, and a database beside it.
pub(crate) struct Scene {
    database: TestDatabase,
}

/// A run of the example under way. Killed when dropped.
pub(crate) struct Run {
    child: Child,
    lines: Receiver<String>,
    stdout: Option<JoinHandle<String>>,
    stderr: String,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scene {
    /// With an empty tree, and an SQLite file.
    pub(crate) fn new() -> Self {
        Self::with(TestDatabase::on_sqlite())
    }

    /// With one small file.
    #[cfg(unix)]
    pub(crate) async fn on_sqlite() -> Self {
        Self::with_a_file()
    }

    /// The same, and a schema on a server.
    #[cfg(all(feature = "sqlserver", feature = "conformance"))]
    pub(crate) async fn on_sqlserver() -> Self {
        Self::with(TestDatabase::on_sqlserver().await).file("a.txt", "one\ntwo\n")
    }

    /// The same.
    #[cfg(all(feature = "postgres", feature = "conformance"))]
    pub(crate) async fn on_postgres() -> Self {
        Self::with(TestDatabase::on_postgres().await).file("a.txt", "one\ntwo\n")
    }

    fn with(database: TestDatabase) -> Self {
        fs::create_dir(database.folder().join("tree")).expect("the tree");
        Self { database }
    }

    /// With one small file, and an SQLite file.
    pub(crate) fn with_a_file() -> Self {
        Self::new().file("a.txt", "one\ntwo\n")
    }

    /// Adds a file to the tree.
    pub(crate) fn file(self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> Self {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().expect("files have folders")).expect("the folder of a file");
        fs::write(path, contents).expect("a file");
        self
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.database.folder().join("tree")
    }

    pub(crate) fn file_of_database(&self) -> PathBuf {
        self.database.file()
    }

    /// A connection of the test's own.
    pub(crate) async fn open(&self) -> OpenStore {
        self.database.open().await
    }

    /// Starts the example on the tree and the database.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Run {
        let mut command = self.command();
        command.arg(self.tree()).args(arguments);
        self.database.hand_to(&mut command);
        Run::start(command)
    }

    /// The same, to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        self.start(arguments).end()
    }

    /// The example without arguments, away from cargo's and the user's own settings.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(example());
        command.current_dir(self.database.folder()).env_remove("LEASEHOLD_SQLSERVER").env_remove("LEASEHOLD_POSTGRES");
        command.env_remove("CARGO_MANIFEST_DIR").env("XDG_CONFIG_HOME", self.database.folder());
        command
    }

    /// What `--read --json` prints.
    pub(crate) fn published(&self) -> serde_json::Value {
        let read = self.run(["--read", "--json"]);
        read.assert_code(0);
        serde_json::from_str(&read.stdout).expect("the payload is JSON")
    }
}

impl Run {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example starts");
        let mut stdout = child.stdout.take().expect("it is piped");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let stdout = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).expect("it prints UTF-8");
            text
        });
        Self { child, lines, stdout: Some(stdout), stderr: String::new() }
    }

    /// Waits until it says so on standard error.
    pub(crate) fn says(mut self, part: &str) -> Self {
        let until = Instant::now() + LIMIT;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.stderr += &format!("{line}\n");
                    if line.contains(part) {
                        return self;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("it did not say {part:?} within {LIMIT:?}: {}", self.stderr),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended and never said {part:?}: {}", self.stderr),
            }
        }
    }

    /// Waits until it holds a lease of this generation.
    pub(crate) fn holds_generation(self, generation: i64) -> Self {
        self.says(&format!("under generation {generation};"))
    }

    /// Waits until it ends.
    pub(crate) fn end(mut self) -> Ended {
        let until = Instant::now() + LIMIT;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.stderr += &format!("{line}\n"),
                Err(RecvTimeoutError::Timeout) => panic!("it did not end within {LIMIT:?}: {}", self.stderr),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = self.child.wait().expect("it ends");
        let stdout = self.stdout.take().expect("it ends once").join().expect("its output was read");
        Ended { code: status.code(), stdout, stderr: std::mem::take(&mut self.stderr) }
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).expect("it still runs");
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Also of one that ended: then there is nobody to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:#?}");
    }

    /// That it ended with this code, and that each of these parts is on standard error.
    #[track_caller]
    pub(crate) fn assert_complains(&self, code: i32, parts: &[&str]) {
        self.assert_code(code);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing: {self:#?}");
        }
    }

    /// That all went well, and that each of these parts was printed.
    #[track_caller]
    pub(crate) fn assert_prints(&self, parts: &[&str]) {
        self.assert_code(0);
        for part in parts {
            assert!(self.stdout.contains(part), "{part:?} is missing: {self:#?}");
        }
    }
}

/// Where cargo puts it: the tests are in `target/<profile>/deps`.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("it lies in target/<profile>/deps");
    let example = profile.join("examples").join(format!("rebuild_report{}", std::env::consts::EXE_SUFFIX));
    assert!(
        example.exists(),
        "{} is not built; `cargo test --features sqlite` builds it, with `--test` it takes `--examples` beside it",
        example.display()
    );
    example
}
