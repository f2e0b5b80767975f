//! PgBouncer between the stores and the server, in the mode that hands out server connections by the transaction.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use leasehold::store::postgres::Config;
use tempfile::TempDir;

/// A pooler of a test's own. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Pooler {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    /// Before this server, for this login.
    pub(crate) fn before(server: &Config, login: &str) -> Self {
        let program = std::env::var_os("LEASEHOLD_TEST_PGBOUNCER").expect(
            "LEASEHOLD_TEST_PGBOUNCER is not set, so nothing was tested: name the program pgbouncer, or run the tests with \
             tests/run.sh",
        );
        let [tokio_postgres::config::Host::Tcp(host)] = server.get_hosts() else { panic!("a TCP host") };
        let folder = TempDir::with_prefix("leasehold-pooler-").expect("a folder for the pooler");
        let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = socket.local_addr().expect("a port").port();
        drop(socket);
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("users"), format!("\"{login}\" \"{login}\"\n")).expect("users");
        let settings = format!(
            "[databases]\n* = host={host} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\nmax_client_conn = 1000\n\
             default_pool_size = 12\nlogfile = {}\n",
            server.get_ports()[0],
            path("users").display(),
            path("log").display(),
        );
        std::fs::write(path("settings"), settings).expect("settings");
        let mut command = Command::new(program);
        command.arg("--quiet").arg(path("settings")).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        if let Some((user, group)) = crate::cluster::server_user() {
            use std::os::unix::fs::chown;
            use std::os::unix::process::CommandExt;
            for path in [folder.path().to_owned(), path("users"), path("settings")] {
                chown(path, Some(user), Some(group)).expect("the pooler's user owns its files");
            }
            command.uid(user).gid(group);
        }
        let child = command.spawn().expect("pgbouncer runs");
        let pooler = Self { child, port, _folder: folder };
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "pgbouncer does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        pooler
    }

    /// The same database, through the pooler.
    pub(crate) fn through(&self, config: &Config) -> Config {
        let mut through = Config::new();
        through.host("127.0.0.1").port(self.port).ssl_mode(tokio_postgres::config::SslMode::Disable);
        through.dbname(config.get_dbname().expect("a database"));
        through
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
