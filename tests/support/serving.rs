//! A worker's process, seen from inside: the test binary runs itself again, and serves the calls that come on its input with a
//! real store on the database that its environment names.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use leasehold::store::sqlite::{SqliteStore, SqliteTransaction};
use leasehold::store::{FencedTransaction, Store, StoreError};
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};

use crate::process_wire::{Answer, Ask, Call, Line, MARK};

/// The test that serves if it finds itself in a worker's process.
const ENTRY: &str = "a_process_ends_with_the_last_clone_of_its_store";

const FILE: &str = "LEASEHOLD_TEST_WORKER_FILE";

/// In the test: the command that runs this binary again as a worker on this database.
pub(crate) fn command(file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test binary"));
    command.args([ENTRY, "--exact", "--nocapture"]).env(FILE, file);
    command
}

/// In a worker's process: the database to work on.
pub(crate) fn file() -> Option<PathBuf> {
    std::env::var_os(FILE).map(PathBuf::from)
}

/// Serves calls until the input ends. Calls that are not answered by then are dropped: whoever asked is gone.
///
/// It needs a runtime with one thread, in which giving a call up and running it cannot overlap.
pub(crate) async fn serve(file: &Path) {
    // The test harness's own line is not ended yet.
    say("\n");
    let store = SqliteStore::open(file).await.expect("opened beside the others");
    let mut serving = Serving { stores: HashMap::from([(0, store)]), ..Serving::default() };
    let mut lines = lines_of_input();
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => serving.take(serde_json::from_str(&line).expect("a line of the test's")),
                None => return,
            },
            Some(ended) = serving.calls.join_next() => match ended {
                Ok(id) => drop(serving.under_way.remove(&id)),
                // Nobody would get an answer: end loudly.
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_given_up) => {}
            },
        }
    }
}

/// Reads on a thread of its own, so that the test can always write.
fn lines_of_input() -> UnboundedReceiver<String> {
    let (sender, lines) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

type Transactions = Arc<Mutex<HashMap<u64, SqliteTransaction>>>;

#[derive(Default)]
struct Serving {
    /// By their number; all of them of the first one.
    stores: HashMap<u64, SqliteStore>,
    transactions: Transactions,
    calls: JoinSet<u64>,
    under_way: HashMap<u64, AbortHandle>,
}

impl Serving {
    fn take(&mut self, line: Line) {
        match line {
            Line::Call(call) => self.begin(call),
            Line::GiveUp(id) => {
                if let Some(call) = self.under_way.remove(&id) {
                    call.abort();
                }
                self.transactions.lock().expect("no panic").remove(&id);
            }
        }
    }

    fn begin(&mut self, call: Call) {
        let first = &self.stores[&0];
        let store = match self.stores.get(&call.connections) {
            Some(store) => store.clone(),
            None => first.for_runtime(&Handle::current()),
        };
        self.stores.insert(call.connections, store.clone());
        let (id, transactions) = (call.id, self.transactions.clone());
        let call = self.calls.spawn(async move {
            let answer = answer(&store, &transactions, call).await.map_err(Into::into);
            let answer = serde_json::to_string(&Answer { id, answer }).expect("serialisable");
            say(&format!("{MARK}{answer}\n"));
            id
        });
        self.under_way.insert(id, call);
    }
}

/// Past the test harness, which would keep what is printed to itself. That nobody listens any more is learned from the input.
fn say(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

async fn answer(store: &SqliteStore, transactions: &Transactions, call: Call) -> Result<Value, StoreError> {
    let budget = call.budget();
    match call.ask {
        Ask::ProcessId => json(Ok(std::process::id())),
        Ask::WaitingCalls => json(Ok(store.calls_waiting_for_lock())),
        Ask::Provision(report) => json(store.provision(report, budget).await),
        Ask::Acquire(request) => json(store.acquire(request, budget).await),
        Ask::Renew(fence, ttl) => json(store.renew(fence, ttl, budget).await),
        Ask::RenewMany(fences, ttl) => json(store.renew_many(fences, ttl, budget).await),
        Ask::Publish(request) => json(store.publish(request, budget).await),
        Ask::PublishAndAdvance(request) => json(store.publish_and_advance(request, budget).await),
        Ask::Close(request) => json(store.close(request, budget).await),
        Ask::Release(fence) => json(store.release(fence, budget).await),
        Ask::Read(report, newer_than) => json(store.read(report, newer_than, budget).await),
        Ask::Metadata(report) => json(store.metadata(report, budget).await),
        Ask::Inspect(report) => json(store.inspect(report, budget).await),
        Ask::List(request) => json(store.list(request, budget).await),
        Ask::Check => json(store.check(budget).await),
        Ask::ForceRelease(report, by) => json(store.force_release(report, by, budget).await),
        Ask::RequireSourceRevision(report, revision) => {
            json(store.require_source_revision(report, revision, budget).await)
        }
        Ask::ResetSourceRevision(report, revision) => json(store.reset_source_revision(report, revision, budget).await),
        Ask::AdvanceRecoveryEpoch(to) => json(store.advance_recovery_epoch(to, budget).await),
        Ask::PruneLedger(older_than) => json(store.prune_ledger(older_than, budget).await),
        Ask::Begin => {
            let transaction = store.begin(budget).await?;
            transactions.lock().expect("no panic").insert(call.id, transaction);
            json(Ok(()))
        }
        Ask::Execute(id, sql, value) => {
            let mut transactions = transactions.lock().expect("no panic");
            transactions.get_mut(&id).expect("it was begun").execute(sql, [value.into()]);
            json(Ok(()))
        }
        Ask::PublishIn(id, request) => json(ended(transactions, id).publish(request, budget).await),
        Ask::Rollback(id) => json(ended(transactions, id).rollback(budget).await),
    }
}

fn ended(transactions: &Transactions, id: u64) -> SqliteTransaction {
    transactions.lock().expect("no panic").remove(&id).expect("it was begun")
}

fn json<T: Serialize>(answer: Result<T, StoreError>) -> Result<Value, StoreError> {
    answer.map(|answer| serde_json::to_value(answer).expect("serialisable"))
}
