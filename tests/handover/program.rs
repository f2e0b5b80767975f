//! The whole example, as people run it: what it says, how it exits, and what it leaves behind.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::worker::example;

/// With a folder of its own for temporary files.
fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(example());
    command.args(["--ttl", "3s"]).args(arguments).current_dir(folder).env("TMPDIR", folder).stdin(Stdio::null());
    command.env_remove("LEASEHOLD_SQLSERVER").env_remove("LEASEHOLD_POSTGRES");
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    program(folder, arguments).output().expect("the example runs")
}

#[track_caller]
pub(crate) fn assert_says(output: &Output, code: i32, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(code), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
}

/// Whether a process still works on a file in this folder.
#[cfg(target_os = "linux")]
fn has_processes(folder: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;

    let processes = std::fs::read_dir("/proc").expect("processes are listed").filter_map(Result::ok);
    let mut commands = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let folder = folder.as_os_str().as_bytes();
    commands.any(|command| command.windows(folder.len()).any(|part| part == folder))
}

fn files(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("the folder is there").map(|file| file.expect("it is listed"));
    files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn both_handovers_are_played_the_evidence_holds_and_the_picture_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["--svg", "picture.svg"]);
    let parts =
        ["REFUSED by the database", "ACCEPTED by the database", "superseded by generation 2", "The evidence holds."];
    assert_says(&output, 0, &parts);
    assert_eq!(files(folder.path()), ["picture.svg"], "nothing else is left");

    let picture = std::fs::read_to_string(folder.path().join("picture.svg")).expect("the picture");
    let broken = svg::read(&picture).expect("SVG").any(|event| matches!(event, svg::parser::Event::Error(_)));
    assert!(!broken, "{picture}");
    for part in ["prefers-color-scheme: dark", "REFUSED", "ACCEPTED", "A's stale report", "STOPPED for "] {
        assert!(picture.contains(part), "{part:?} is missing from the picture");
    }
    #[cfg(target_os = "linux")]
    assert!(!has_processes(folder.path()));
}

#[test]
fn the_other_scenes_hold_too() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_says(&run(folder.path(), &["--kill"]), 0, &["after the kill", "The evidence holds."]);
    assert_says(&run(folder.path(), &["--lost-ack"]), 0, &["Published", "NotPublished", "The evidence holds."]);
    assert_says(&run(folder.path(), &["--naive"]), 0, &["A overwrote B", "The evidence holds."]);
    assert_eq!(files(folder.path()), [""; 0]);
}

#[test]
fn without_the_stop_the_evidence_fails_and_so_does_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_says(
        &run(folder.path(), &["--control"]),
        1,
        &["[FAIL]", "it was not refused", "THE EVIDENCE DOES NOT HOLD."],
    );
}

/// The program at the point where A is stopped and B waits. Killed when dropped.
pub(crate) struct Interrupted(Child);

impl Interrupted {
    pub(crate) fn at_the_stop(mut program: Command) -> Self {
        let mut child = program.stdout(Stdio::piped()).spawn().expect("the example starts");
        let output = child.stdout.take().expect("it is piped");
        let this = Self(child);
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("SIGSTOP")), "it never stopped anybody");
        // So that it does not break for want of a reader.
        std::thread::spawn(move || lines.for_each(drop));
        this
    }

    /// As with Ctrl-C.
    pub(crate) fn interrupt(&mut self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).expect("it is there");
        assert_eq!(self.0.wait().expect("it ends").code(), Some(130));
    }
}

impl Drop for Interrupted {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_interrupt_leaves_no_process_and_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut interrupted = Interrupted::at_the_stop(program(folder.path(), &[]));
    interrupted.interrupt();
    assert_eq!(files(folder.path()), [""; 0]);
    #[cfg(target_os = "linux")]
    assert!(!has_processes(folder.path()));
}

#[cfg(target_os = "linux")]
#[test]
fn even_a_killed_director_leaves_no_worker_not_even_a_stopped_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = Interrupted::at_the_stop(program(folder.path(), &[]));
    assert!(has_processes(folder.path()), "the workers were not found while they ran");
    drop(running);
    let until = std::time::Instant::now() + crate::worker::LIMIT;
    while has_processes(folder.path()) {
        assert!(std::time::Instant::now() < until, "a worker is left");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
