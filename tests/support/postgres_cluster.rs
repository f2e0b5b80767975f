//! PostgreSQL clusters of a test's own: to restart, to fill, to copy and to lose.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use leasehold::store::postgres::Config;
use tempfile::TempDir;

/// A `pg_hba.conf` that trusts everybody on this machine.
const TRUSTING: &str =
    "local all all trust\nhost all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n";

/// A cluster in a folder of its own. Dropping it stops the server and deletes the folder.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: TempDir,
    port: u16,
    settings: String,
}

impl Cluster {
    /// A new cluster that trusts everybody on this machine, with these settings (`name=value`), started.
    pub(crate) fn start(settings: &[&str]) -> Self {
        Self::start_with(settings, TRUSTING, |_| {})
    }

    /// The same with a `pg_hba.conf`, and files that `prepare` puts into the data folder.
    pub(crate) fn start_with(settings: &[&str], hba: &str, prepare: impl FnOnce(&Path)) -> Self {
        Self::in_a_folder(&memory(), settings).initialised(hba, prepare)
    }

    /// A new cluster on a disk, with the settings that a new cluster has: for what is to be measured.
    #[allow(dead_code)] // Of the benches.
    pub(crate) fn on_disk() -> Self {
        Self::in_a_folder(Path::new(env!("CARGO_TARGET_TMPDIR")), &[]).initialised(TRUSTING, |_| {})
    }

    /// A new cluster in this folder.
    #[allow(dead_code)] // Of the test of a full disk.
    pub(crate) fn in_folder(parent: &Path, settings: &[&str]) -> Self {
        Self::in_a_folder(parent, settings).initialised(TRUSTING, |_| {})
    }

    fn initialised(self, hba: &str, prepare: impl FnOnce(&Path)) -> Self {
        succeeds(self.program("initdb").args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]));
        std::fs::write(self.data().join("pg_hba.conf"), hba).expect("pg_hba.conf");
        prepare(&self.data());
        self.started()
    }

    /// A standby of this cluster, asynchronous, from a copy of it.
    pub(crate) fn standby(&self) -> Self {
        let standby = Self::in_a_folder(&memory(), &[]);
        let source = format!("host=127.0.0.1 port={} user=postgres", self.port);
        let mut copy = standby.program("pg_basebackup");
        succeeds(
            copy.args([
                "--write-recovery-conf",
                "--wal-method=stream",
                "--checkpoint=fast",
                "--dbname",
                &source,
                "--pgdata",
            ])
            .arg(standby.data()),
        );
        standby.started()
    }

    fn in_a_folder(parent: &Path, settings: &[&str]) -> Self {
        let folder = TempDir::with_prefix_in("leasehold-cluster-", parent).expect("a folder for the cluster");
        let data = folder.path().join("data");
        std::fs::create_dir(&data).expect("a folder for the data");
        #[cfg(unix)]
        if let Some((user, group)) = server_user() {
            use std::os::unix::fs::{PermissionsExt, chown};
            for path in [folder.path(), &data] {
                chown(path, Some(user), Some(group)).expect("the server's user owns its folder");
            }
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        }
        #[cfg(unix)]
        std::fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("permissions");
        let settings = settings.iter().map(|setting| format!(" -c {setting}")).collect();
        Self { folder, port: 0, settings }
    }

    fn started(mut self) -> Self {
        for _ in 0..10 {
            // Free at this moment; if somebody takes it first, another is tried.
            let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
            self.port = socket.local_addr().expect("a port").port();
            drop(socket);
            if self.try_start().status.success() {
                return self;
            }
        }
        panic!("the cluster does not start: {}", self.log());
    }

    fn try_start(&self) -> Output {
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories={}{}",
            self.port,
            self.folder().display(),
            self.settings
        );
        let log = self.folder.path().join("log");
        let mut start = self.program("pg_ctl");
        start.args(["--wait", "--timeout=60", "start", "--options", &options, "--log"]).arg(log);
        // The server keeps what it inherits: with a pipe, this would wait for the server's end.
        let status = start.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
        Output { status: status.expect("pg_ctl runs"), stdout: Vec::new(), stderr: Vec::new() }
    }

    /// Starts it again, on the port that it had.
    pub(crate) fn start_again(&self) {
        let began = Instant::now();
        while !self.try_start().status.success() {
            assert!(began.elapsed() < Duration::from_secs(60), "the cluster does not start again: {}", self.log());
        }
    }

    /// Stops it: `fast` says goodbye to clients, `immediate` is a crash.
    pub(crate) fn stop(&self, mode: &str) {
        succeeds(self.program("pg_ctl").args(["--wait", "--mode", mode, "stop"]));
    }

    /// Makes a primary of a standby.
    pub(crate) fn promote(&self) {
        succeeds(self.program("pg_ctl").args(["--wait", "promote"]));
    }

    /// As the superuser, without TLS.
    pub(crate) fn config(&self) -> Config {
        let url = format!("postgresql://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port);
        url.parse().expect("a URL")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Where its Unix socket is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// One of the server's programs, as a user that is not root, for this cluster.
    fn program(&self, name: &str) -> Command {
        let folder = programs().expect(
            "LEASEHOLD_TEST_POSTGRES_BIN is not set, so nothing was tested: name the folder of PostgreSQL's programs (initdb, \
             pg_ctl), or run the tests with tests/run.sh",
        );
        let mut command = Command::new(folder.join(name));
        command.env("PGDATA", self.data()).env("LC_ALL", "C").current_dir(self.folder.path());
        #[cfg(unix)]
        if let Some((user, group)) = server_user() {
            use std::os::unix::process::CommandExt;
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if programs().is_some() {
            let _ = self.program("pg_ctl").args(["--wait", "--mode=immediate", "stop"]).output();
        }
    }
}

/// Where a machine has memory as a folder, else where it has temporary files.
fn memory() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() }
}

/// The folder of the server's programs, as `LEASEHOLD_TEST_POSTGRES_BIN` or else `pg_config` names it; of Debian's, the newest.
pub(crate) fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("LEASEHOLD_TEST_POSTGRES_BIN") {
        return Some(named.into());
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.max_by_key(|version| version.file_name().to_string_lossy().parse::<u32>().ok());
    let installed = newest.map(|version| version.path().join("bin")).or_else(|| {
        let said = Command::new("pg_config").arg("--bindir").output().ok()?;
        Some(PathBuf::from(String::from_utf8(said.stdout).ok()?.trim()))
    });
    installed.filter(|folder| folder.join("initdb").exists())
}

fn succeeds(command: &mut Command) {
    let output = command.output().expect("a program of PostgreSQL's runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// As root: the user under which a server can run, which refuses root.
#[cfg(unix)]
pub(crate) fn server_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("the users of this machine");
    let of = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(of("postgres").or_else(|| of("nobody")).expect("an ordinary user to run the server"))
}
