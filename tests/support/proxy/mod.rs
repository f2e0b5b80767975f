//! A TCP proxy between a database's client and its server that does harm at an exact byte.
//!
//! It knows no protocol. A test warms a connection up through it, runs an operation once to learn what it costs on the wire,
//! and then runs it again for each byte and each harm:
//!
//! ```ignore
//! let before = proxy.traffic();
//! operation().await;
//! let cost = proxy.traffic() - before;
//! for direction in Direction::BOTH {
//!     for after in 0..=cost.bytes(direction) {
//!         warm_up().await;
//!         let armed = proxy.arm(Fault::new(direction, after, Action::Reset));
//!         let outcome = operation().await;
//!         armed.fired().await;
//!         // … what the outcome must be, and what the database must say …
//!     }
//! }
//! ```
//!
//! Positions are of bytes on the wire, so under TLS they are positions in the ciphertext.
#![allow(dead_code, unreachable_pub, unused_imports)] // Shared by test binaries that each use a part of it.

mod fault;
mod line;
mod pump;
mod traffic;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::error::Elapsed;
use tokio_util::sync::{CancellationToken, DropGuard};

use fault::Trigger;
pub use fault::{Action, Armed, Direction, Fault};
use line::Line;
pub use traffic::Traffic;

/// How long is waited for anything. A test that waits for what never comes should fail with a reason instead of hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// Its tasks and sockets end when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
    stop: DropGuard,
}

#[derive(Debug, Default)]
struct Shared {
    lines: Mutex<Lines>,
    /// Sends to every pump, and to whoever waits, whenever there is a reason to look at the books again.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Lines {
    /// Of every connection that there ever was.
    opened: Vec<Arc<Line>>,
    /// The faults of the connection that is opened next, or of all that will be.
    for_new: Vec<ForNew>,
}

#[derive(Debug)]
struct ForNew {
    trigger: Arc<Trigger>,
    next_only: bool,
}

impl Proxy {
    /// Listens on a free port of this machine for connections to this server. The server is dialled anew for each.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("its own address");
        let shared = Arc::new(Shared::default());
        let stop = CancellationToken::new();
        let accepting = tokio::spawn(accept(listener, server, shared.clone(), stop.clone()));
        Self { addr, shared, accepting, stop: stop.drop_guard() }
    }

    /// Where clients connect to.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many connections were opened so far.
    pub fn connections(&self) -> usize {
        self.shared.lines().opened.len()
    }

    /// How many of them are open now.
    pub fn open_connections(&self) -> usize {
        self.shared.lines().opened.iter().filter(|line| !line.has_ended()).count()
    }

    /// The connection that was opened as this one, counted from 0.
    pub fn connection(&self, index: usize) -> Connection {
        Connection { line: self.shared.lines().opened[index].clone(), shared: self.shared.clone() }
    }

    /// The connection that was opened last.
    pub fn latest(&self) -> Connection {
        self.connection(self.connections() - 1)
    }

    /// The connection that was opened last; waits for it if there is none yet. A client is connected before the proxy knows.
    ///
    /// # Panics
    /// If that takes half a minute.
    pub async fn latest_when_open(&self) -> Connection {
        self.shared.when(|| self.connections() > 0).await.expect("somebody connects");
        self.latest()
    }

    /// What all connections together have moved so far.
    pub fn traffic(&self) -> Traffic {
        self.shared.lines().opened.iter().map(|line| line.traffic()).fold(Traffic::default(), |all, one| all + one)
    }

    /// For whichever connection first moves so many bytes from now on: each open one after what it has moved, each new one
    /// from its beginning.
    pub fn arm(&self, fault: Fault) -> Armed {
        let trigger = Trigger::new(fault, true);
        let mut lines = self.shared.lines();
        for line in lines.opened.iter().filter(|line| !line.has_ended()) {
            line.arm(trigger.clone());
        }
        lines.for_new.push(ForNew { trigger: trigger.clone(), next_only: false });
        drop(lines);
        self.shared.armed(trigger)
    }

    /// For the connection that is opened next.
    pub fn arm_next(&self, fault: Fault) -> Armed {
        let trigger = Trigger::new(fault, true);
        self.shared.lines().for_new.push(ForNew { trigger: trigger.clone(), next_only: true });
        self.shared.armed(trigger)
    }

    /// For each connection that is opened from now on, until it is disarmed.
    pub fn arm_every_new(&self, fault: Fault) -> Armed {
        let trigger = Trigger::new(fault, false);
        self.shared.lines().for_new.push(ForNew { trigger: trigger.clone(), next_only: false });
        self.shared.armed(trigger)
    }

    /// Ends everything and waits until it has ended.
    pub async fn end(self) {
        drop(self.stop);
        self.accepting.await.expect("no panic in the proxy");
    }
}

/// One connection through the proxy.
#[derive(Debug, Clone)]
pub struct Connection {
    line: Arc<Line>,
    shared: Arc<Shared>,
}

impl Connection {
    /// For this connection, after what it has moved so far.
    pub fn arm(&self, fault: Fault) -> Armed {
        let trigger = Trigger::new(fault, true);
        self.line.arm(trigger.clone());
        self.shared.armed(trigger)
    }

    pub fn traffic(&self) -> Traffic {
        self.line.traffic()
    }

    pub fn has_ended(&self) -> bool {
        self.line.has_ended()
    }

    /// Waits until it has ended, both ways.
    ///
    /// # Panics
    /// If that takes half a minute.
    pub async fn ended(&self) {
        self.shared.when(|| self.line.has_ended()).await.expect("the connection ends");
    }

    /// Waits until so many bytes of this direction have arrived at the proxy since the connection was opened.
    ///
    /// # Panics
    /// If that takes half a minute.
    pub async fn arrived(&self, direction: Direction, bytes: u64) {
        self.shared.when(|| self.traffic().bytes(direction) >= bytes).await.expect("so many bytes");
    }
}

impl Shared {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().expect("no panic")
    }

    /// Waits for this to be true, at most for as long as a test should.
    async fn when(&self, what: impl Fn() -> bool) -> Result<(), Elapsed> {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while !what() {
                changed.changed().await.expect("these books hold a sender");
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await
    }

    fn armed(&self, trigger: Arc<Trigger>) -> Armed {
        self.changed.send_replace(());
        Armed { trigger, changed: self.changed.clone() }
    }

    /// The books of a new connection, with the faults that wait for it.
    fn open(&self) -> Arc<Line> {
        let line = Arc::new(Line::default());
        let mut lines = self.lines();
        lines.for_new.retain(|new| {
            if !new.trigger.is_spent() {
                line.arm(new.trigger.clone());
            }
            !new.next_only && !new.trigger.is_spent()
        });
        lines.opened.push(line.clone());
        drop(lines);
        self.changed.send_replace(());
        line
    }
}

/// Accepts until it is told to stop, and then ends what was accepted before it ends itself.
async fn accept(listener: TcpListener, server: SocketAddr, shared: Arc<Shared>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                let (line, shared) = (shared.open(), shared.clone());
                connections.spawn(pump::serve(client, server, line, shared.changed.clone()));
            }
            Some(served) = connections.join_next(), if !connections.is_empty() => served.expect("no panic in a connection"),
        }
    }
    drop(listener);
    connections.shutdown().await;
}
