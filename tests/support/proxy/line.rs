//! The books of one connection: what passed in which direction, which faults lie ahead, and what may be done next. No I/O.

use std::sync::{Arc, Mutex, MutexGuard};

use super::fault::{Action, Direction, Trigger};
use super::traffic::Traffic;

/// What a pump is to do next with the bytes that have arrived.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing is there to be delivered.
    Idle,
    /// A fault keeps the direction still.
    Held,
    /// Deliver so many bytes.
    Pass(usize),
    /// Let others run, then deliver so many bytes.
    PassPiece(usize),
    /// Throw so many bytes away.
    Discard(usize),
    /// Let the receiver see the end, then report.
    HalfClose(Arc<Trigger>),
    /// End the connection in the way of this fault, then report.
    End(Arc<Trigger>),
}

#[derive(Debug, Default)]
pub(super) struct Line {
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    to_server: Lane,
    to_client: Lane,
    /// Whether the client has sent something that nothing was answered to yet.
    asking: bool,
    round_trips: u64,
    ended: bool,
}

/// One direction.
#[derive(Debug, Default)]
struct Lane {
    arrived: u64,
    /// Delivered or thrown away.
    passed: u64,
    ahead: Vec<Ahead>,
    holds: Vec<Arc<Trigger>>,
    piece: Option<usize>,
    discards: bool,
}

/// A fault and its position, counted from the beginning of the connection.
#[derive(Debug)]
struct Ahead {
    at: u64,
    trigger: Arc<Trigger>,
}

impl Line {
    /// Lays a fault so many bytes ahead of what has arrived so far.
    pub(super) fn arm(&self, trigger: Arc<Trigger>) {
        let mut books = self.books();
        let lane = books.lane(trigger.fault.direction);
        lane.ahead.push(Ahead { at: lane.arrived + trigger.fault.after, trigger });
    }

    /// Counts what has arrived. It is counted before it is delivered, so that whoever got it finds it counted.
    pub(super) fn arrived(&self, direction: Direction, bytes: usize) {
        let mut books = self.books();
        books.lane(direction).arrived += bytes as u64;
        match direction {
            Direction::ToServer => books.asking = true,
            Direction::ToClient => {
                books.round_trips += u64::from(books.asking);
                books.asking = false;
            }
        }
    }

    /// What to do next if so many bytes of this direction wait to be delivered. What it says to deliver or to throw away
    /// counts as done.
    pub(super) fn step(&self, direction: Direction, waiting: usize) -> Step {
        let mut books = self.books();
        loop {
            if books.lane(direction).is_held() {
                return Step::Held;
            }
            let Some(trigger) = books.lane(direction).take_due(waiting) else {
                return books.lane(direction).deliver(waiting);
            };
            let lane = books.lane(direction);
            match trigger.fault.action {
                Action::Reset | Action::Finish => return Step::End(trigger),
                Action::HalfClose => {
                    lane.discards = true;
                    return Step::HalfClose(trigger);
                }
                Action::Hold => lane.holds.push(trigger.clone()),
                Action::HoldBoth => {
                    lane.holds.push(trigger.clone());
                    books.lane(direction.other()).holds.push(trigger.clone());
                }
                Action::Split(piece) => lane.piece = Some(piece.max(1)),
                Action::Swallow => lane.discards = true,
            }
            trigger.report();
        }
    }

    /// Nobody is there to receive this direction any more.
    pub(super) fn discard(&self, direction: Direction) {
        self.books().lane(direction).discards = true;
    }

    pub(super) fn end(&self) {
        self.books().ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.books().ended
    }

    pub(super) fn traffic(&self) -> Traffic {
        let books = self.books();
        Traffic {
            to_server: books.to_server.arrived,
            to_client: books.to_client.arrived,
            round_trips: books.round_trips,
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("no panic")
    }
}

impl Books {
    fn lane(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}

impl Lane {
    fn is_held(&mut self) -> bool {
        self.holds.retain(|hold| !hold.is_released());
        !self.holds.is_empty()
    }

    /// The nearest fault, if its position is reached and it is still to be had.
    fn take_due(&mut self, waiting: usize) -> Option<Arc<Trigger>> {
        loop {
            let due = |ahead: &Ahead| ahead.at <= self.passed && (waiting > 0 || !ahead.trigger.fault.at_next_byte);
            let reached = self.ahead.iter().enumerate().filter(|(_, ahead)| due(ahead));
            let (nearest, _) = reached.min_by_key(|(_, ahead)| ahead.at)?;
            let trigger = self.ahead.remove(nearest).trigger;
            if trigger.claim() {
                return Some(trigger);
            }
        }
    }

    fn deliver(&mut self, waiting: usize) -> Step {
        if waiting == 0 {
            return Step::Idle;
        }
        self.ahead.retain(|ahead| !ahead.trigger.is_spent());
        let positions = self.ahead.iter().map(|ahead| ahead.at);
        let until_next = positions.filter(|at| *at > self.passed).min().map(|at| at - self.passed);
        let bytes =
            until_next.map_or(waiting, |bytes| usize::try_from(bytes).map_or(waiting, |some| some.min(waiting)));
        let (bytes, step) = match self.piece {
            _ if self.discards => (bytes, Step::Discard(bytes)),
            Some(piece) => (bytes.min(piece), Step::PassPiece(bytes.min(piece))),
            None => (bytes, Step::Pass(bytes)),
        };
        self.passed += bytes as u64;
        step
    }
}
