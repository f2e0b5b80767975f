//! The job: acquire, build under the lease, publish through its fence, and put everything in order at the end.
//!
//! `LeaseSupervisor::run_blocking` does this in one call. It is taken apart here because the job wants the guard: to count
//! renewals, to wait for a lease that is taken, and to say what became of the release.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use leasehold::answer::{Receipt, Visible};
use leasehold::{
    AcquireError, Acquisition, LeaseGuard, LeaseSupervisor, Loss, Outcome, Publication, PublishError, ReportId,
};

use crate::arguments::Arguments;
use crate::checkpoints::{Checkpoints, Stopped};
use crate::database::Database;
use crate::failure::{self, Failure};
use crate::interrupt::Interrupt;
use crate::inventory::{self, Abandoned, Inventory};
use crate::progress::Progress;
use crate::{command, names, opening, rendering, wording};

/// How long the end of the process may wait for releases in the background.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// Builds and publishes the report. Answers what to tell the user.
pub(crate) async fn rebuild(arguments: &Arguments, interrupt: &Interrupt) -> Result<String, Failure> {
    let started = Instant::now();
    let policy = arguments.policy()?;
    let folder = arguments.canonical_folder()?;
    let report = ReportId::from_name(&arguments.report_name()?);
    let database = arguments.database()?;
    let opened = interrupt.or(opening::open(arguments, &database)).await.ok_or(Failure::InterruptedUnleased)?;
    let supervisor = opened?.supervisor(policy).map_err(Failure::Thread)?;
    let job = Job { arguments, interrupt, database: &database, folder, report, supervisor: &supervisor, started };
    let ended = job.run().await;
    // Every guard is gone by now. What is still under way is the release of a lost lease, or the close of an acquisition that
    // the user interrupted; the process must not end before it.
    let _ = supervisor.shutdown(CLEAN_UP).await;
    ended
}

struct Job<'a> {
    arguments: &'a Arguments,
    interrupt: &'a Interrupt,
    database: &'a Database,
    folder: PathBuf,
    report: ReportId,
    supervisor: &'a LeaseSupervisor,
    started: Instant,
}

impl Job<'_> {
    async fn run(&self) -> Result<String, Failure> {
        let guard = match self.acquire().await? {
            Acquisition::Acquired(guard) => guard,
            Acquisition::AlreadyFresh(visible) => return Ok(self.nothing_to_build(visible)),
            other => return Err(Failure::Unexpected(format!("{other:?}"))),
        };
        if let Err(failure) = self.check_revision().await {
            guard.release().await;
            return Err(failure);
        }
        self.announce(&guard);
        let lease = guard.lease();
        let progress = Progress::start(lease.clone(), self.interrupt.clone());
        let built = self.build(&guard, progress.clone()).await;
        progress.clear();
        match built {
            Ok(inventory) => self.publish(guard, &inventory).await,
            Err(Abandoned::Stopped(Stopped::Lost(loss))) => Err(self.lost(guard, loss).await),
            Err(Abandoned::Stopped(Stopped::Interrupted)) => {
                // The build has ended, so that the release is safe also for what it did outside the database.
                let release = guard.release().await;
                Err(Failure::Interrupted { renewals: lease.renewals(), release })
            }
            Err(Abandoned::TooLarge { files }) => Err(self.too_large(guard, files).await),
        }
    }

    /// Takes the lease. Dropped by an interrupt, the acquisition is closed in the background.
    async fn acquire(&self) -> Result<Acquisition, Failure> {
        let wanted = self.arguments.wanted();
        let attempt = self.supervisor.acquire_or_provision(self.report, wanted);
        let error = match self.interrupt.or(attempt).await.ok_or(Failure::InterruptedUnleased)? {
            Err(error) if self.arguments.wait && error.is_transient() => error,
            answer => return Ok(answer?),
        };
        match &error {
            AcquireError::Busy(busy) => eprintln!("{}\nWaiting for it.", failure::held(busy)),
            error => eprintln!("Trying again: {error}"),
        }
        let attempts = self.supervisor.acquire_wait(self.report, wanted);
        Ok(self.interrupt.or(attempts).await.ok_or(Failure::InterruptedUnleased)??)
    }

    /// Refuses before the work what the database would refuse after it.
    async fn check_revision(&self) -> Result<(), Failure> {
        let Some(metadata) = self.supervisor.metadata(self.report).await.map_err(Failure::Store)? else {
            return Ok(());
        };
        let visible = metadata.visible.and_then(|visible| visible.revision);
        match (self.arguments.wanted(), visible.max(metadata.revision_floor)) {
            (given, Some(required)) if given < Some(required) => Err(Failure::Revision { given, required }),
            _ => Ok(()),
        }
    }

    /// Runs the build on a blocking thread, which stops at its next checkpoint once the lease is lost or the user says so.
    async fn build(&self, guard: &LeaseGuard, progress: Progress) -> Result<Inventory, Abandoned> {
        let checkpoints = Checkpoints::new(guard.lease(), self.interrupt.clone(), self.arguments.slow);
        let (folder, except) = (self.folder.clone(), self.database.files());
        let limit = self.arguments.max_payload;
        let built = guard.supervise_blocking(move |_| inventory::take(&folder, except, limit, &checkpoints, &progress));
        built.await.unwrap_or_else(|loss| Err(Stopped::Lost(loss).into()))
    }

    async fn publish(&self, guard: LeaseGuard, inventory: &Inventory) -> Result<String, Failure> {
        let payload = serde_json::to_string(inventory).expect("an inventory has no key that is not text");
        if payload.len() > self.arguments.max_payload {
            return Err(self.too_large(guard, inventory.files.len()).await);
        }
        let renewals = guard.lease().renewals();
        let mut publication = guard.publication(payload);
        if let Some(revision) = self.arguments.wanted() {
            publication = publication.with_revision(revision);
        }
        let error = match self.interrupt.or(publication.send()).await {
            Some(Ok(receipt)) => return Ok(self.published(&receipt, inventory, renewals)),
            None => None,
            Some(Err(PublishError::Unresolved(error))) => Some(error),
            Some(Err(error)) => return Err(self.unpublished(publication, error).await),
        };
        // Interrupted, or the answer was lost: the database makes it certain, one way or the other.
        match publication.resolve().await {
            Ok(Outcome::Published(receipt)) => Ok(self.published(&receipt, inventory, renewals)),
            Ok(Outcome::NotPublished) if error.is_none() => Err(Failure::InterruptedPublishing),
            Ok(Outcome::NotPublished) => Err(Failure::AnswerLost),
            Ok(Outcome::NoLongerKnown(why)) => Err(Failure::Publish(PublishError::NoLongerKnown(why))),
            Ok(other) => Err(Failure::Unexpected(format!("{other:?}"))),
            Err(error) => Err(Failure::Unresolved { error, to_read: command::to_read(self.arguments) }),
        }
    }

    /// The publication failed, and surely so.
    async fn unpublished(&self, publication: Publication, error: PublishError) -> Failure {
        match (publication.into_guard(), error) {
            (Ok(guard), PublishError::Lost(loss)) => self.lost(guard, loss).await,
            (Ok(guard), error) => {
                guard.release().await;
                Failure::Publish(error)
            }
            (Err(_), PublishError::Refused(refusal)) => Failure::Refused(refusal),
            (Err(_), error) => Failure::Publish(error),
        }
    }

    /// The lease was lost. Dropping its guard also releases it in the database, should that not have noticed.
    async fn lost(&self, guard: LeaseGuard, loss: Loss) -> Failure {
        drop(guard);
        let now = self.supervisor.inspect(self.report).await.ok().flatten().map(Box::new);
        Failure::Lost { loss, now }
    }

    async fn too_large(&self, guard: LeaseGuard, files: usize) -> Failure {
        guard.release().await;
        Failure::TooLarge { files, limit: self.arguments.max_payload }
    }

    fn announce(&self, guard: &LeaseGuard) {
        let policy = self.supervisor.policy();
        eprintln!(
            "Taking stock of {} under generation {}; the lease lasts {} and is renewed every {}.",
            names::readable(&self.folder),
            guard.lease().fence().generation,
            wording::duration(policy.ttl()),
            wording::duration(policy.cadence()),
        );
    }

    fn nothing_to_build(&self, visible: Visible) -> String {
        let mut text = format!("Nothing was built: {} is visible already.\n", rendering::version(&visible));
        text += &format!("To read it: {}\n", command::to_read(self.arguments));
        text
    }

    fn published(&self, receipt: &Receipt, inventory: &Inventory, renewals: u64) -> String {
        let mut text = format!("Published generation {}", receipt.generation);
        if let Some(revision) = receipt.revision {
            text += &format!(" (revision {revision})");
        }
        text += &format!(" of {}: {}.\n", inventory.folder, rendering::sums(&inventory.total));
        text += &rendering::unreadable(&inventory.unreadable, Some(5));
        text += &format!(
            "It took {}, with {} of the lease.\n",
            wording::duration(self.started.elapsed()),
            wording::count(renewals, "renewal"),
        );
        text += &format!("To read it: {}\n", command::to_read(self.arguments));
        text
    }
}
