//! The connection thread: calls wait in its queue, never in a blocked runtime thread, and each is answered by its budget.
//!
//! SQLite has one write lock for the whole file, and what waits for it here is the *queue*, not a statement: a call that
//! finds the lock taken changes nothing and stays at its place, reads go on past it, and those whose budget ends are
//! answered. An attempt covers the whole operation from `BEGIN` to `COMMIT`, because SQLite's own waiting does not cover the
//! switch to WAL, nor a recovery, nor a snapshot that turned stale.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::clock::Clock;
use super::connection::Session;
use super::failure::{Failure, lock_not_had, turn_not_had};
use crate::error::StoreError;
use crate::store::Budget;

/// The thread's name: at most 15 bytes, or Linux shows it cut.
const NAME: &str = "leasehold-sql";

/// The longest sleep between two looks at a lock that somebody else holds.
const LONGEST_SLEEP: Duration = Duration::from_millis(16);

/// Whether a call needs the write lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// It changes something.
    WriteLock,
    /// It only reads.
    Snapshot,
}

/// A connection on a thread of its own, started by the first call and ended with the last handle.
pub(super) struct ConnectionThread {
    path: PathBuf,
    clock: Clock,
    /// Whether the first opening creates the file.
    create: AtomicBool,
    waiting: Arc<AtomicUsize>,
    calls: Mutex<Option<Sender<Box<dyn Call>>>>,
}

impl ConnectionThread {
    /// One that creates the database if it is missing.
    pub(super) fn creating(path: PathBuf, clock: Clock) -> Self {
        Self { path, clock, create: AtomicBool::new(true), waiting: Arc::default(), calls: Mutex::default() }
    }

    /// Another one to the same database, which must exist.
    pub(super) fn another(&self) -> Self {
        Self {
            path: self.path.clone(),
            clock: self.clock.clone(),
            create: AtomicBool::new(false),
            waiting: self.waiting.clone(),
            calls: Mutex::default(),
        }
    }

    /// The file is there now: from here on a missing one is not created again.
    pub(super) fn set_created(&self) {
        self.create.store(false, Ordering::Relaxed);
    }

    /// How many calls, on this connection and the others made from it, found the write lock taken and wait for it.
    #[cfg(feature = "test-util")]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Runs `work` on the connection, as often as a lock makes necessary, and gives its answer.
    pub(super) async fn call<T, F>(&self, needs: Needs, budget: Budget, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut Session) -> Result<T, Failure> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(Pending { needs, budget, reply: Some(reply), work }))?;
        answer.await.unwrap_or_else(|_| {
            let message = format!("the connection thread of {} died in this call", self.path.display());
            Err(match needs {
                Needs::WriteLock => {
                    StoreError::unknown(message + ": send it again with the same identifiers, or close it")
                }
                Needs::Snapshot => StoreError::unavailable(message + ": try again"),
            })
        })
    }

    fn send(&self, call: Box<dyn Call>) -> Result<(), StoreError> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let call = match &*calls {
            None => call,
            Some(sender) => match sender.send(call) {
                Ok(()) => return Ok(()),
                // The thread died of a panic: start another.
                Err(mpsc::SendError(call)) => call,
            },
        };
        let sender = self.start(call)?;
        *calls = Some(sender);
        Ok(())
    }

    fn start(&self, first: Box<dyn Call>) -> Result<Sender<Box<dyn Call>>, StoreError> {
        let (sender, calls) = mpsc::channel();
        let session = Session::new(self.path.clone(), self.clock.clone(), self.create.load(Ordering::Relaxed));
        let queue = Queue { calls: VecDeque::from([first]), not_before: None, sleeps: 0 };
        let waiting = Waiting { all: self.waiting.clone(), mine: 0 };
        std::thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || serve(session, &calls, queue, waiting))
            .map_err(|error| {
                StoreError::unavailable("the system gave no thread for the database connection: try again")
                    .with_source(error)
            })?;
        Ok(sender)
    }
}

impl fmt::Debug for ConnectionThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionThread").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Serves calls until the last handle is gone and nobody waits for an answer.
fn serve(mut session: Session, calls: &Receiver<Box<dyn Call>>, mut queue: Queue, mut waiting: Waiting) {
    loop {
        queue.calls.extend(calls.try_iter());
        queue.round(&mut session);
        waiting.set(queue.waiting_for_lock());
        let arrived = match queue.pause() {
            None if queue.calls.is_empty() => calls.recv().map_err(|_| RecvTimeoutError::Disconnected),
            None => continue,
            Some(pause) => calls.recv_timeout(pause),
        };
        match arrived {
            Ok(call) => queue.calls.push_back(call),
            Err(RecvTimeoutError::Timeout) => {}
            // Every caller borrows a handle, so whatever is still queued has been given up by its caller.
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The calls that are not answered yet, in the order in which they came.
struct Queue {
    calls: VecDeque<Box<dyn Call>>,
    /// While somebody else has the lock: when to look again.
    not_before: Option<Instant>,
    sleeps: u32,
}

impl Queue {
    /// Answers what can be answered now.
    fn round(&mut self, session: &mut Session) {
        let mut blocked = self.not_before.is_some_and(|time| Instant::now() < time);
        let looked = !blocked;
        for _ in 0..self.calls.len() {
            let Some(mut call) = self.calls.pop_front() else { break };
            if call.is_given_up() {
                continue;
            }
            if call.budget().is_spent() {
                let lock = self.not_before.is_some() || blocked;
                call.refuse(if lock { lock_not_had(session.path()) } else { turn_not_had(session.path()) });
                continue;
            }
            let waits = blocked && call.needs() == Needs::WriteLock;
            if waits || !call.attempt(session) {
                blocked = true;
                self.calls.push_back(call);
            }
        }
        if looked {
            self.look_again(blocked);
        }
    }

    fn look_again(&mut self, blocked: bool) {
        if blocked {
            let longest = LONGEST_SLEEP.min(Duration::from_millis(1 << self.sleeps.min(10)));
            self.sleeps = self.sleeps.saturating_add(1);
            // Jitter, so that processes that wait for the same lock do not look in step.
            self.not_before = Some(Instant::now() + longest.mul_f64(0.5 + fastrand::f64() / 2.0));
        } else {
            (self.not_before, self.sleeps) = (None, 0);
        }
    }

    /// How long to wait for further calls before the next round; `None` if there is no lock to wait for.
    fn pause(&self) -> Option<Duration> {
        let until = self.not_before?.saturating_duration_since(Instant::now());
        Some(self.calls.iter().map(|call| call.budget().remaining()).fold(until, Duration::min))
    }

    fn waiting_for_lock(&self) -> usize {
        if self.not_before.is_none() {
            return 0;
        }
        self.calls.iter().filter(|call| call.needs() == Needs::WriteLock).count()
    }
}

/// This thread's share in the count of calls that wait for the lock.
struct Waiting {
    all: Arc<AtomicUsize>,
    mine: usize,
}

impl Waiting {
    fn set(&mut self, now: usize) {
        if now != self.mine {
            self.all.fetch_add(now, Ordering::SeqCst);
            self.all.fetch_sub(self.mine, Ordering::SeqCst);
            self.mine = now;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A call in the queue.
trait Call: Send {
    fn needs(&self) -> Needs;
    fn budget(&self) -> Budget;
    /// Whether its caller has gone. What has not begun is then not begun.
    fn is_given_up(&self) -> bool;
    /// Tries the whole operation once, and answers; `false` if a lock was in the way and nothing was done.
    fn attempt(&mut self, session: &mut Session) -> bool;
    fn refuse(&mut self, error: StoreError);
}

struct Pending<T, F> {
    needs: Needs,
    budget: Budget,
    reply: Option<oneshot::Sender<Result<T, StoreError>>>,
    work: F,
}

impl<T, F> Pending<T, F> {
    fn answer(&mut self, answer: Result<T, StoreError>) {
        if let Some(reply) = self.reply.take() {
            // The caller may have gone while it ran; the outcome stands all the same.
            let _ = reply.send(answer);
        }
    }
}

impl<T, F> Call for Pending<T, F>
where
    T: Send + 'static,
    F: FnMut(&mut Session) -> Result<T, Failure> + Send + 'static,
{
    fn needs(&self) -> Needs {
        self.needs
    }

    fn budget(&self) -> Budget {
        self.budget
    }

    fn is_given_up(&self) -> bool {
        self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn attempt(&mut self, session: &mut Session) -> bool {
        match (self.work)(session) {
            Err(Failure::Busy) => false,
            result => {
                let answer = result.map_err(|failure| failure.into_store_error(session.path()));
                self.answer(answer);
                true
            }
        }
    }

    fn refuse(&mut self, error: StoreError) {
        self.answer(Err(error));
    }
}
