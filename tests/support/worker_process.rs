//! A worker's process, seen from the test: started for one `connect`, asked over its pipes, ended and waited for with the last
//! handle.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::store::{Budget, StoreError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::process_wire::{Answer, Ask, Call, Failure, Line, MARK};
use crate::serving;

/// How long a process may take to end once nothing is asked of it. Then it is killed, and counts as not ended by itself.
const ENDING: Duration = Duration::from_secs(20);

/// How many processes there were.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    started: AtomicUsize,
    ended: AtomicUsize,
    ended_well: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Tally {
    /// How many were started.
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    /// How many ended by themselves, successfully, and were waited for.
    pub(crate) fn ended_well(&self) -> usize {
        self.ended_well.load(Ordering::SeqCst)
    }

    /// How many there were at one time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most_at_once.load(Ordering::SeqCst)
    }

    fn start(&self) {
        let started = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        let alive = started.saturating_sub(self.ended.load(Ordering::SeqCst));
        self.most_at_once.fetch_max(alive, Ordering::SeqCst);
    }

    fn end(&self, well: bool) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        self.ended_well.fetch_add(usize::from(well), Ordering::SeqCst);
    }
}

/// A process that serves the calls of one store.
pub(crate) struct WorkerProcess {
    process: Child,
    /// `None` once it is to end.
    input: Mutex<Option<ChildStdin>>,
    /// Says, by being closed, that the process has closed its output.
    output_ended: Mutex<Receiver<()>>,
    calls: Arc<UnansweredCalls>,
    ids: AtomicU64,
    connections: AtomicU64,
    tally: Arc<Tally>,
}

impl WorkerProcess {
    /// Starts a process that opens this database, and returns once it has.
    pub(crate) async fn start(file: &Path, tally: Arc<Tally>) -> Self {
        let mut process =
            serving::command(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the process starts");
        tally.start();
        let input = process.stdin.take().expect("its input");
        let output = process.stdout.take().expect("its output");
        let calls = Arc::new(UnansweredCalls::default());
        let output_ended = Mutex::new(listen(output, calls.clone()));
        let input = Mutex::new(Some(input));
        let started =
            Self { process, input, output_ended, calls, ids: AtomicU64::new(1), connections: AtomicU64::new(1), tally };
        let id: u32 = started.call(0, Ask::ProcessId, opening()).await.expect("the process opens the database");
        assert_eq!(id, started.process.id(), "who answers is the process that was started");
        started
    }

    /// A number that no other call has.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for one more set of connections, made in the process when they are first needed.
    pub(crate) fn more_connections(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// How many of its calls wait for the write lock now.
    pub(crate) async fn waiting_calls(&self) -> usize {
        self.call(0, Ask::WaitingCalls, opening()).await.expect("the process answers")
    }

    /// Asks, and waits for the answer. The process's store is who keeps the budget. Dropping the future gives the call up in
    /// the process too.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        connections: u64,
        ask: Ask,
        budget: Budget,
    ) -> Result<T, StoreError> {
        self.call_as(self.next_id(), connections, ask, budget).await
    }

    /// [`call`](Self::call) with an id that the caller had from [`next_id`](Self::next_id).
    pub(crate) async fn call_as<T: DeserializeOwned>(
        &self,
        id: u64,
        connections: u64,
        ask: Ask,
        budget: Budget,
    ) -> Result<T, StoreError> {
        let died = if ask.changes_nothing() { StoreError::unavailable } else { StoreError::unknown };
        let under_way = UnderWay { process: self, id };
        let answer = self.calls.add(id);
        let budget_millis = u64::try_from(budget.remaining().as_millis()).unwrap_or(u64::MAX);
        self.send(&Line::Call(Call { id, connections, budget_millis, ask }));
        let answer = answer.await;
        drop(under_way);
        match answer {
            Ok(Ok(value)) => Ok(serde_json::from_value(value).expect("an answer of this call's type")),
            Ok(Err(failure)) => Err(failure.into()),
            Err(_) => Err(died("the worker's process died in this call")),
        }
    }

    /// Nobody waits for this call any more, or uses the transaction that it began.
    pub(crate) fn give_up(&self, id: u64) {
        self.send(&Line::GiveUp(id));
    }

    fn send(&self, line: &Line) {
        let mut line = serde_json::to_vec(line).expect("serialisable");
        line.push(b'\n');
        let mut input = self.input.lock().expect("no panic");
        // A process that died cannot be written to; whoever waits for it learns so when its output ends.
        let _ = input.as_mut().expect("it is taken in drop only").write_all(&line);
    }
}

impl Drop for WorkerProcess {
    /// Ends the process by ending its input, and waits for it: none is left, not even as a zombie.
    fn drop(&mut self) {
        drop(self.input.get_mut().expect("no panic").take());
        let in_time = self.output_ended.get_mut().expect("no panic").recv_timeout(ENDING);
        let in_time = in_time != Err(mpsc::RecvTimeoutError::Timeout);
        if !in_time {
            let _ = self.process.kill();
        }
        let status = self.process.wait();
        self.tally.end(in_time && status.is_ok_and(|status| status.success()));
    }
}

/// The budget of what is asked of the process itself; it waits for no lock but at its opening.
fn opening() -> Budget {
    Budget::within(Duration::from_secs(10))
}

/// Hands out the answers from this output, on a thread of its own, until it ends.
fn listen(output: ChildStdout, calls: Arc<UnansweredCalls>) -> Receiver<()> {
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let _ended_when_dropped = end;
        let calls = Closing(calls);
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(answer) = line.strip_prefix(MARK) {
                let Answer { id, answer } = serde_json::from_str(answer).expect("an answer");
                calls.0.answer(id, answer);
            }
        }
    });
    ended
}

type Reply = oneshot::Sender<Result<Value, Failure>>;

/// Who waits for an answer; `None` once the process is gone and nobody will get one.
struct UnansweredCalls(Mutex<Option<HashMap<u64, Reply>>>);

impl Default for UnansweredCalls {
    fn default() -> Self {
        Self(Mutex::new(Some(HashMap::new())))
    }
}

impl UnansweredCalls {
    fn add(&self, id: u64) -> oneshot::Receiver<Result<Value, Failure>> {
        let (reply, answer) = oneshot::channel();
        if let Some(calls) = &mut *self.0.lock().expect("no panic") {
            calls.insert(id, reply);
        }
        answer
    }

    fn remove(&self, id: u64) -> Option<Reply> {
        self.0.lock().expect("no panic").as_mut()?.remove(&id)
    }

    fn answer(&self, id: u64, answer: Result<Value, Failure>) {
        if let Some(reply) = self.remove(id) {
            // Its caller may have gone meanwhile.
            let _ = reply.send(answer);
        }
    }
}

/// Closes when dropped, also by a panic: nobody may wait for ever.
struct Closing(Arc<UnansweredCalls>);

impl Drop for Closing {
    fn drop(&mut self) {
        if let Ok(mut calls) = self.0.0.lock() {
            *calls = None;
        }
    }
}

/// A call that somebody waits for. Dropped unanswered, it is given up.
struct UnderWay<'a> {
    process: &'a WorkerProcess,
    id: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if self.process.calls.remove(self.id).is_some() {
            self.process.give_up(self.id);
        }
    }
}
