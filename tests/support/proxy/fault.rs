//! What can be done to a connection, and the handle of a fault that was armed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::PATIENCE;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    ToServer,
    ToClient,
}

impl Direction {
    pub const BOTH: [Self; 2] = [Self::ToServer, Self::ToClient];

    pub fn other(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }
}

/// What a fault does. Everything before its position was handed to the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Both sides see a reset. Of more than a socket's buffer, the receiver may have read less than was handed over.
    Reset,
    /// Both sides see the connection end cleanly; what they still send vanishes.
    Finish,
    /// The receiver of this direction sees its end, what the sender still sends vanishes, and the other direction goes on.
    HalfClose,
    /// This direction stands still until [`Armed::go_on`]. What arrives meanwhile is kept, also beyond its sender's end: a
    /// request that arrives late.
    Hold,
    /// Both directions stand still until [`Armed::go_on`]: a partition.
    HoldBoth,
    /// From here on this direction is delivered in pieces of so many bytes, and other tasks run between them.
    Split(usize),
    /// From here on the bytes of this direction vanish while the connection stays up: with
    /// [`ToClient`](Direction::ToClient) a lost acknowledgement, with [`ToServer`](Direction::ToServer) a lost request.
    Swallow,
}

/// After so many more bytes in a direction, do something once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub(super) direction: Direction,
    pub(super) after: u64,
    pub(super) action: Action,
    pub(super) at_next_byte: bool,
}

impl Fault {
    /// Fires as soon as `after` bytes of this direction have passed since it was armed; with 0, at once.
    pub const fn new(direction: Direction, after: u64, action: Action) -> Self {
        Self { direction, after, action, at_next_byte: false }
    }

    /// Fires only when one byte more than that arrives, which is then the first that is not delivered. With 0, the connection
    /// looks healthy until it is used.
    #[must_use]
    pub fn at_next_byte(self) -> Self {
        Self { at_next_byte: true, ..self }
    }
}

/// A fault's own state, shared by whoever armed it and the connections that it may meet.
#[derive(Debug)]
pub(super) struct Trigger {
    pub(super) fault: Fault,
    /// Whether it is used up by the first connection that gets there.
    once: bool,
    claimed: AtomicBool,
    fired: watch::Sender<usize>,
    released: AtomicBool,
}

impl Trigger {
    pub(super) fn new(fault: Fault, once: bool) -> Arc<Self> {
        Arc::new(Self {
            fault,
            once,
            claimed: AtomicBool::new(false),
            fired: watch::Sender::new(0),
            released: AtomicBool::new(false),
        })
    }

    /// Whether the connection that asks may fire it: one that fires once belongs to the first.
    pub(super) fn claim(&self) -> bool {
        !self.claimed.swap(self.once, Ordering::SeqCst)
    }

    /// Whether nobody will be allowed to fire it any more.
    pub(super) fn is_spent(&self) -> bool {
        self.claimed.load(Ordering::SeqCst)
    }

    pub(super) fn is_released(&self) -> bool {
        self.released.load(Ordering::SeqCst)
    }

    /// Tells who waits for it. Called when what it does is done.
    pub(super) fn report(&self) {
        self.fired.send_modify(|times| *times += 1);
    }
}

/// A fault that lies in wait. Dropping this changes nothing.
#[must_use = "nothing but this tells whether the fault has fired"]
#[derive(Debug)]
pub struct Armed {
    pub(super) trigger: Arc<Trigger>,
    pub(super) changed: watch::Sender<()>,
}

impl Armed {
    /// Waits until the fault has done what it does.
    ///
    /// # Panics
    /// If that takes half a minute.
    pub async fn fired(&self) {
        let mut fired = self.trigger.fired.subscribe();
        let waited = tokio::time::timeout(PATIENCE, fired.wait_for(|times| *times > 0)).await;
        assert!(waited.is_ok(), "{:?} did not fire", self.trigger.fault);
    }

    /// How many connections it has fired on.
    pub fn times(&self) -> usize {
        *self.trigger.fired.borrow()
    }

    pub fn has_fired(&self) -> bool {
        self.times() > 0
    }

    /// Lets what is held go on.
    pub fn go_on(&self) {
        self.trigger.released.store(true, Ordering::SeqCst);
        self.changed.send_replace(());
    }

    /// Keeps it from firing from now on.
    pub fn disarm(&self) {
        self.trigger.claimed.store(true, Ordering::SeqCst);
        self.changed.send_replace(());
    }
}
