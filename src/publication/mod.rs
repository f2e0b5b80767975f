//! [`Publication`]: the one accepted write of a lease, sent until its outcome is certain.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::answer::{PublishAnswer, Published, Receipt, Refusal};
use crate::clock::Moment;
use crate::engine::Lane;
use crate::error::{StoreError, StoreErrorKind};
use crate::fence::{Fence, OperationId, Owner, SourceRevision};
use crate::guard::LeaseGuard;
use crate::loss::{Loss, LossReason};
use crate::store::{AdvanceRequest, Budget, FencedTransaction, Payload, PublishRequest};

mod error;
mod ticket;

pub use error::{PublishError, UnresolvedPublication};
pub(crate) use ticket::resolve;
pub use ticket::{Outcome, Ticket};

/// How often one `send` tries before it answers that the outcome is unresolved (and can be called again).
const ATTEMPTS: u32 = 5;

/// The one publication of a lease.
///
/// It holds the guard, the payload and an operation id. [`send`](Self::send) may be dropped and called again: the same
/// operation id makes it the same publication. Dropping it releases the lease, like dropping the guard.
///
/// ```no_run
/// # async fn example(guard: leasehold::LeaseGuard, journal: impl Fn(&leasehold::Ticket)) -> Result<(), Box<dyn std::error::Error>> {
/// let mut publication = guard.publication("the report").with_revision(leasehold::SourceRevision::new(7));
/// journal(&publication.ticket()); // to ask after a crash
/// let receipt = publication.send().await?;
/// println!("published as generation {}", receipt.generation);
/// # Ok(())
/// # }
/// ```
#[must_use = "a publication does nothing before `send`, and dropping it releases the lease"]
pub struct Publication {
    guard: LeaseGuard,
    payload: Arc<str>,
    /// The payload once it was checked; it shares the text.
    checked: Option<Payload>,
    /// The fence at the time it was made: what the ticket says also after an advance.
    fence: Fence,
    operation: OperationId,
    revision: Option<SourceRevision>,
    next_owner: Option<Owner>,
    progress: Progress,
}

/// How far a publication is.
#[derive(Debug, Clone)]
enum Progress {
    /// No attempt has an unknown outcome.
    Unsent,
    /// An attempt may have been applied, or still be.
    Uncertain,
    /// Certain.
    Settled(Outcome),
}

impl Publication {
    pub(crate) fn new(guard: LeaseGuard, payload: Arc<str>) -> Self {
        Self {
            fence: guard.state().fence(),
            revision: guard.wanted(),
            guard,
            payload,
            checked: None,
            operation: OperationId::random(),
            next_owner: None,
            progress: Progress::Unsent,
        }
    }

    /// Says which source revision the payload was built from, if it is not the one that was asked for at the acquisition. The
    /// database refuses it if that is below the floor or below
    /// what is visible; once a report has a revision, every publication of it needs one.
    ///
    /// Without effect while an attempt has an unknown outcome: it may still be accepted, and is not to be another publication.
    pub fn with_revision(mut self, revision: SourceRevision) -> Self {
        if !matches!(self.progress, Progress::Uncertain) {
            self.revision = Some(revision);
        }
        self
    }

    /// Keeps the lease after the publication, under the next generation, a new owner and a fresh TTL: for holders that
    /// publish many times. After [`send`](Self::send), [`into_guard`](Self::into_guard) gives the guard back.
    ///
    /// It changes the [`ticket`](Self::ticket). Without effect while an attempt has an unknown outcome.
    pub fn and_advance(mut self) -> Self {
        if !matches!(self.progress, Progress::Uncertain) {
            self.next_owner.get_or_insert_with(Owner::random);
        }
        self
    }

    /// What a later process needs to learn the outcome.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket { fence: self.fence, operation: self.operation, next_owner: self.next_owner }
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// Publishes. A lost answer is sent again while the lease lasts, and made certain by closing the lease when it does not.
    /// A publication that the database accepted is a success, even if the lease was lost while its answer was on the way.
    ///
    /// # Errors
    /// [`PublishError`]. After [`Refused`](PublishError::Refused) for a stale source, [`Invalid`](PublishError::Invalid),
    /// [`Unavailable`](PublishError::Unavailable) and [`Rejected`](PublishError::Rejected) the lease goes on, and
    /// `send` may be called again or [`into_guard`](Self::into_guard) used. After [`Unresolved`](PublishError::Unresolved),
    /// `send` again or [`resolve`](Self::resolve).
    ///
    /// # Cancel safety
    /// It may be dropped at any point and called again.
    pub async fn send(&mut self) -> Result<Receipt, PublishError> {
        let mut attempt = 0;
        loop {
            if let Progress::Settled(outcome) = self.progress {
                return self.settled(outcome);
            }
            if let Err(loss) = self.guard.state().check() {
                return self.send_when_lost(loss).await;
            }
            let payload = self.checked_payload()?;
            let error = match self.attempt(payload).await {
                Ok((sent_at, answer)) => return self.answered(sent_at, answer),
                Err(error) => error,
            };
            attempt += 1;
            match (error.kind(), &self.progress) {
                (StoreErrorKind::Invalid, Progress::Unsent) => return Err(PublishError::Invalid(error)),
                (StoreErrorKind::Rejected, Progress::Unsent) => return Err(PublishError::Rejected(error)),
                (StoreErrorKind::Unavailable, Progress::Unsent) if attempt >= ATTEMPTS => {
                    return Err(PublishError::Unavailable(error));
                }
                (_, _) if attempt >= ATTEMPTS => return Err(self.unresolved(error)),
                (_, _) => {}
            }
            tracing::debug!(fence = %self.fence, %error, attempt, "publication attempt failed");
            self.guard.works().sleep(back_off(attempt)).await;
        }
    }

    /// Publishes together with the caller's own statements on the same database, which the transaction holds: committed
    /// together or not at all. It is sent once; a lost answer is resolved by closing the lease.
    ///
    /// # Errors
    /// [`PublishError`]; also [`Invalid`](PublishError::Invalid) if the publication is to advance, has an attempt of unknown
    /// outcome, or was published before: this transaction is dropped then, and nothing of it applied.
    ///
    /// # Cancel safety
    /// The transaction runs to its end even if the future is dropped; then [`resolve`](Self::resolve).
    pub async fn send_within<T: FencedTransaction>(&mut self, transaction: T) -> Result<Receipt, PublishError> {
        if let Progress::Settled(outcome) = self.progress {
            self.settled(outcome)?;
            let message = "it was published before, without this transaction: nothing of the transaction was applied";
            return Err(PublishError::Invalid(StoreError::invalid(message)));
        }
        if self.next_owner.is_some() || matches!(self.progress, Progress::Uncertain) {
            let message = "a fenced transaction is sent once, and does not advance: resolve this publication first";
            return Err(PublishError::Invalid(StoreError::invalid(message)));
        }
        if let Err(loss) = self.guard.state().check() {
            return Err(PublishError::Lost(loss));
        }
        let payload = self.checked_payload()?;
        let request = self.request(payload);
        let works = Arc::clone(self.guard.works());
        let limit = works.policy.operation_timeout;
        let call = works.run_to_end(limit, transaction.publish(request, Budget::within(limit)));
        self.guard.state().set_publishing(true);
        self.progress = Progress::Uncertain;
        match call.await {
            Ok(answer) => self.answered(self.guard.state().now(), answer),
            Err(error) if error.kind() == StoreErrorKind::Unknown => {
                tracing::debug!(fence = %self.fence, %error, "a fenced transaction's outcome is unknown");
                match self.resolve().await {
                    Ok(outcome) => self.settled(outcome),
                    Err(error) => Err(self.unresolved(error)),
                }
            }
            Err(error) => {
                self.progress = Progress::Unsent;
                self.guard.state().set_publishing(false);
                Err(match error.kind() {
                    StoreErrorKind::Invalid => PublishError::Invalid(error),
                    StoreErrorKind::Rejected => PublishError::Rejected(error),
                    _ => PublishError::Unavailable(error),
                })
            }
        }
    }

    /// Makes the outcome certain, and ends the lease by it: if the publication was not accepted yet, it never will be.
    ///
    /// # Errors
    /// [`StoreError`] if the database could not be asked; ask again.
    ///
    /// # Cancel safety
    /// It may be dropped at any point and called again.
    pub async fn resolve(&mut self) -> Result<Outcome, StoreError> {
        if let Progress::Settled(outcome) = self.progress {
            return Ok(outcome);
        }
        // From here on nothing of this lease may be sent any more, whether or not the answer arrives.
        self.guard.state().trip(LossReason::Released);
        let works = Arc::clone(self.guard.works());
        let outcome = resolve(&works, self.ticket()).await?;
        self.settle(outcome);
        Ok(outcome)
    }

    /// The guard, for as long as its lease can still be used: before anything was sent, after a refusal for a stale source
    /// and other errors that leave the lease as it is, and after a publication that advanced.
    ///
    /// # Errors
    /// The publication itself if its lease is over or its outcome uncertain.
    // The error is the publication, given back whole.
    #[allow(clippy::result_large_err)]
    pub fn into_guard(self) -> Result<LeaseGuard, Self> {
        let goes_on = match &self.progress {
            Progress::Unsent => true,
            Progress::Settled(_) => self.next_owner.is_some() && !self.guard.state().is_over(),
            Progress::Uncertain => false,
        };
        if goes_on { Ok(self.guard) } else { Err(self) }
    }

    /// Sends one attempt. Whatever becomes of the future, the attempt counts as uncertain until it was answered.
    async fn attempt(&mut self, payload: Payload) -> Result<(Moment, PublishAnswer), StoreError> {
        let works = Arc::clone(self.guard.works());
        let request = self.request(payload);
        let was = std::mem::replace(&mut self.progress, Progress::Uncertain);
        if self.next_owner.is_some() {
            self.guard.state().set_next_owner(self.next_owner);
        }
        self.guard.state().set_publishing(true);
        let sent_at = self.guard.state().now();
        let (limit, ttl, next_owner) = (works.policy.operation_timeout, works.policy.ttl, self.next_owner);
        let answer = works
            .call(Lane::Caller, limit, move |store, budget| match next_owner {
                None => store.publish(request, budget),
                Some(next_owner) => {
                    store.publish_and_advance(AdvanceRequest { publish: request, next_owner, ttl }, budget)
                }
            })
            .await;
        match &answer {
            Err(error) if error.kind() != StoreErrorKind::Unknown => {
                // This attempt changed nothing; an earlier one still may have.
                self.guard.state().set_publishing(matches!(was, Progress::Uncertain));
                self.progress = was;
            }
            _ => {}
        }
        answer.map(|answer| (sent_at, answer))
    }

    /// Takes note of what the database answered.
    fn answered(&mut self, sent_at: Moment, answer: PublishAnswer) -> Result<Receipt, PublishError> {
        match answer {
            PublishAnswer::Published(published) | PublishAnswer::AlreadyPublished(published) => {
                let Published { receipt, next } = published;
                self.progress = Progress::Settled(Outcome::Published(receipt));
                match next {
                    Some(next) => self.guard.advance(sent_at, next),
                    None => self.guard.end(LossReason::Published),
                }
                Ok(receipt)
            }
            PublishAnswer::Refused(refusal @ Refusal::StaleSource { .. }) => {
                // Judged under the fence: no attempt was accepted before, and the lease goes on.
                self.progress = Progress::Unsent;
                self.guard.state().set_publishing(false);
                Err(PublishError::Refused(refusal))
            }
            PublishAnswer::Refused(refusal) => {
                self.guard.end(LossReason::of(refusal));
                self.progress = Progress::Settled(Outcome::NotPublished);
                Err(PublishError::Refused(refusal))
            }
            PublishAnswer::NoLongerKnown(why) => {
                self.settle(Outcome::NoLongerKnown(why));
                Err(PublishError::NoLongerKnown(why))
            }
        }
    }

    /// The lease is over: nothing is sent any more; what was sent is made certain.
    async fn send_when_lost(&mut self, loss: Loss) -> Result<Receipt, PublishError> {
        if matches!(self.progress, Progress::Unsent) {
            return Err(PublishError::Lost(loss));
        }
        match self.resolve().await {
            Ok(outcome) => self.settled(outcome),
            Err(error) => Err(self.unresolved(error)),
        }
    }

    fn settle(&mut self, outcome: Outcome) {
        self.guard.end(match outcome {
            Outcome::Published(_) => LossReason::Published,
            Outcome::NotPublished | Outcome::NoLongerKnown(_) => LossReason::Released,
        });
        self.progress = Progress::Settled(outcome);
    }

    /// What a settled outcome is to a caller of `send`.
    fn settled(&self, outcome: Outcome) -> Result<Receipt, PublishError> {
        match outcome {
            Outcome::Published(receipt) => Ok(receipt),
            Outcome::NotPublished => Err(PublishError::Lost(self.guard.state().trip(LossReason::Released))),
            Outcome::NoLongerKnown(why) => Err(PublishError::NoLongerKnown(why)),
        }
    }

    fn unresolved(&self, source: StoreError) -> PublishError {
        PublishError::Unresolved(UnresolvedPublication::new(self.ticket(), source))
    }

    fn request(&self, payload: Payload) -> PublishRequest {
        PublishRequest { fence: self.fence, operation: self.operation, payload, revision: self.revision }
    }

    fn checked_payload(&mut self) -> Result<Payload, PublishError> {
        if self.checked.is_none() {
            let limit = self.guard.works().policy.max_payload;
            self.checked = Some(Payload::new(Arc::clone(&self.payload), limit).map_err(PublishError::Invalid)?);
        }
        Ok(self.checked.clone().expect("it was set just now"))
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("ticket", &self.ticket())
            .field("payload_bytes", &self.payload.len())
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

/// 50 to 100 ms after the first attempt, doubling to 0.8 to 1.6 s.
fn back_off(attempt: u32) -> Duration {
    Duration::from_millis(50).saturating_mul(1 << attempt.min(5)).mul_f64(0.5 + 0.5 * fastrand::f64())
}
