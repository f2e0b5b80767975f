//! Renewals of many leases coalesce: what arrives while a statement is in flight leaves together in the next.
//!
//! Nobody waits when nothing is in flight. A statement that is past half its time-out no longer holds back the next, up to
//! [`AT_ONCE`] of them: one slow answer must not cost other leases their time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use crate::answer::{BatchRenewal, RenewAnswer};
use crate::engine::{ErasedStore, Works, bounded};
use crate::error::StoreError;
use crate::fence::Fence;
use crate::state::LeaseState;
use crate::store::{Budget, MAX_BATCH};

/// How many statements may be in flight at once.
const AT_ONCE: usize = 4;

/// How many leases may be renewed alone at once, because their row was locked or their batch was rejected.
const ALONE_AT_ONCE: usize = 8;

/// What a renewal was answered. The error may be shared with others of the same statement.
pub(crate) type Reply = Result<RenewAnswer, Arc<StoreError>>;

/// One lease that wants to be renewed.
struct Request {
    state: Arc<LeaseState>,
    fence: Fence,
    timeout: Duration,
    reply: oneshot::Sender<Reply>,
}

impl Request {
    /// Whether anybody still wants it: nothing is sent for a lease that is over.
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed() && !self.state.is_over()
    }
}

/// The queue of one engine.
pub(crate) struct Batcher {
    queue: Mutex<Queue>,
    alone: Semaphore,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Request>,
    in_flight: usize,
    /// Of those, the ones that are not past half their time-out.
    young: usize,
}

impl Default for Batcher {
    fn default() -> Self {
        Self { queue: Mutex::default(), alone: Semaphore::new(ALONE_AT_ONCE) }
    }
}

impl Batcher {
    /// Asks for a renewal. Dropping the receiver takes the request back, unless it is already on its way.
    pub(crate) fn renew(
        &self,
        works: &Arc<Works>,
        state: &Arc<LeaseState>,
        fence: Fence,
        timeout: Duration,
    ) -> oneshot::Receiver<Reply> {
        let (reply, answer) = oneshot::channel();
        self.queue().waiting.push(Request { state: Arc::clone(state), fence, timeout, reply });
        self.send_next(works);
        answer
    }

    /// Sends what waits, unless a young statement is in flight: its answer will call this again.
    fn send_next(&self, works: &Arc<Works>) {
        let batch = {
            let mut queue = self.queue();
            if queue.young > 0 || queue.in_flight >= AT_ONCE || queue.waiting.is_empty() {
                return;
            }
            queue.young += 1;
            queue.in_flight += 1;
            let taken = queue.waiting.len().min(MAX_BATCH);
            queue.waiting.drain(..taken).collect()
        };
        let turn = Turn { works: Arc::clone(works), young: true };
        works.detach(statement(turn, batch));
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A statement's place among those in flight; given back when dropped, also by a panic.
struct Turn {
    works: Arc<Works>,
    young: bool,
}

impl Turn {
    /// The statement no longer holds back the next one.
    fn is_slow(&mut self) {
        if std::mem::take(&mut self.young) {
            self.works.batcher.queue().young -= 1;
            self.works.batcher.send_next(&self.works);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut queue = self.works.batcher.queue();
            queue.in_flight -= 1;
            if self.young {
                queue.young -= 1;
            }
        }
        self.works.batcher.send_next(&self.works);
    }
}

/// One statement: sent, awaited, and its answers delivered.
async fn statement(mut turn: Turn, mut batch: Vec<Request>) {
    batch.retain(Request::is_wanted);
    let Some(limit) = batch.iter().map(|request| request.timeout).max() else { return };
    let works = Arc::clone(&turn.works);
    let answers = async {
        let store = works.renewal_store();
        let call = send(&**store, &batch, works.policy.ttl, limit);
        tokio::pin!(call);
        tokio::select! {
            biased;
            answers = &mut call => return answers,
            () = tokio::time::sleep(limit / 2) => turn.is_slow(),
        }
        call.await
    }
    .await;
    drop(turn);
    match answers {
        Ok(answers) if answers.len() == batch.len() => {
            for (request, answer) in batch.into_iter().zip(answers) {
                match answer {
                    BatchRenewal::Answered(answer) => {
                        let _ = request.reply.send(Ok(answer));
                    }
                    BatchRenewal::Skipped => renew_alone(&works, request),
                }
            }
        }
        Ok(answers) => {
            let error = format!("the store answered {} of {} renewals", answers.len(), batch.len());
            deliver_error(batch, StoreError::unknown(error));
        }
        // One request that can never succeed must not take the others with it.
        Err(error) if !error.is_transient() && batch.len() > 1 => {
            for request in batch {
                renew_alone(&works, request);
            }
        }
        Err(error) => deliver_error(batch, error),
    }
}

fn deliver_error(batch: Vec<Request>, error: StoreError) {
    let error = Arc::new(error);
    for request in batch {
        let _ = request.reply.send(Err(Arc::clone(&error)));
    }
}

/// Sends one statement for all of a batch, or the plain operation for one.
async fn send(
    store: &dyn ErasedStore,
    batch: &[Request],
    ttl: Duration,
    limit: Duration,
) -> Result<Vec<BatchRenewal>, StoreError> {
    let budget = Budget::within(limit);
    if let [request] = batch {
        let answer = bounded(limit, store.renew(request.fence, ttl, budget)).await?;
        return Ok(vec![BatchRenewal::Answered(answer)]);
    }
    let fences = batch.iter().map(|request| request.fence).collect();
    bounded(limit, store.renew_many(fences, ttl, budget)).await
}

/// Renews one lease by a statement of its own, a bounded number at a time.
fn renew_alone(works: &Arc<Works>, request: Request) {
    let works_of_task = Arc::clone(works);
    works.detach(async move {
        let works = works_of_task;
        let _turn = works.batcher.alone.acquire().await;
        if !request.is_wanted() {
            return;
        }
        let Request { fence, timeout, reply, .. } = request;
        let call = works.renewal_store().renew(fence, works.policy.ttl, Budget::within(timeout));
        let _ = reply.send(bounded(timeout, call).await.map_err(Arc::new));
    });
}
