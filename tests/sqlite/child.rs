//! Tests that need another process: the test binary runs itself again, one test only, with the database's path in its
//! environment.

use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "LEASEHOLD_TEST_FILE";

/// In the child: the database to work on.
pub(crate) fn file() -> Option<PathBuf> {
    std::env::var_os(FILE).map(PathBuf::from)
}

/// In the parent: the command that runs this test again as a child on this database.
pub(crate) fn command(test: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test binary"));
    command.args(arguments(test)).env(FILE, file);
    command
}

/// The same inside a mount namespace of its own, with a tmpfs of this size at the database's folder. Nothing of it is left.
pub(crate) fn command_on_small_disk(test: &str, file: &Path, size: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs -o size={size} tmpfs \"$DISK\" && exec \"$@\"");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"]);
    command.arg(std::env::current_exe().expect("the test binary")).args(arguments(test));
    command.env(FILE, file).env("DISK", file.parent().expect("a folder"));
    command
}

fn arguments(test: &str) -> [&str; 3] {
    [test, "--exact", "--nocapture"]
}

/// Whether permission bits mean nothing to this process.
#[cfg(unix)]
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Runs a child to its end as a user who owns nothing.
#[cfg(unix)]
pub(crate) fn run_as_nobody(test: &str, file: &Path) {
    use std::os::unix::process::CommandExt;
    let mut command = command(test, file);
    if is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().expect("the child runs");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}
