//! A renewal-aware lease supervisor: long builds keep their lease, lose it loudly, and a superseded worker's write is refused
//! by the database itself.
//!
//! # The problem
//!
//! A lease can expire while the code that acquired it is still running. Another worker takes over and publishes; then the
//! first resumes and overwrites it. Renewal makes that rarer and cancellation makes it shorter, but neither helps a worker
//! that is not running at all. So every write carries a *fence*, and the database refuses a superseded one in the statement
//! that would have written.
//!
//! # The tour
//!
//! A [`store`] keeps reports in a database. A [`LeasePolicy`] says how long leases last and how often they are renewed.
//! A [`LeaseSupervisor`], one per service, acquires leases and owns the thread that renews them. [`run`](LeaseSupervisor::run)
//! does the whole job in one call; this is the same in parts:
//!
//! ```
//! # #[cfg(feature = "test-util")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use leasehold::{Acquisition, LeasePolicy, LeaseSupervisor, ReportId};
//!
//! # let store = leasehold::testing::MemoryStore::new();
//! // let store = leasehold::store::sqlite::SqliteStore::open("reports.db").await?;
//! let policy = LeasePolicy::builder(Duration::from_secs(30)).build()?;
//! let supervisor = LeaseSupervisor::new(store, policy)?;
//! let report = ReportId::from_name("customer 42 / monthly");
//!
//! // Take the lease. It is renewed in the background from here on.
//! let Acquisition::Acquired(guard) = supervisor.acquire_or_provision(report, None).await? else {
//!     return Ok(()); // What is visible is new enough. (Not here: no revision was asked for.)
//! };
//!
//! // Build under it: the build is dropped the moment the lease is lost.
//! let lease = guard.lease();
//! let payload = guard
//!     .supervise(async {
//!         // Long work, with awaits; code that does not await asks `checkpoint` now and then.
//!         lease.checkpoint()?;
//!         Ok::<_, leasehold::Loss>("the report".to_owned())
//!     })
//!     .await??;
//!
//! // Publish through the fence. Keep the ticket, to learn the outcome even after a crash.
//! let mut publication = guard.publication(payload);
//! let ticket = publication.ticket();
//! let receipt = publication.send().await?;
//! assert_eq!(receipt.generation.get(), 1);
//! assert_eq!(supervisor.resolve(ticket).await?, leasehold::Outcome::Published(receipt));
//!
//! // At the end of the service: cancel builds, release leases, tell what could not be.
//! let left = supervisor.shutdown(Duration::from_secs(5)).await;
//! assert!(left.not_released.is_empty());
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "test-util"))]
//! # fn main() {}
//! ```
//!
//! # Where to look
//!
//! | for | see |
//! |---|---|
//! | the protocol, operation by operation, and how to write a store | [`store`] |
//! | a lease that is held, and how it ends | [`LeaseGuard`], [`Loss`], [`LossReason`] |
//! | a write whose answer was lost | [`Publication`], [`Ticket`], [`Outcome`] |
//! | what a store answers | [`answer`] |
//! | operators' calls (force release, revisions, epochs, pruning) | [`store::Store`]: keep a clone of the store that the supervisor got |
//! | errors | [`AcquireError`], [`RunError`], [`PublishError`], [`StoreError`], [`PolicyError`] |
//! | tests of your own code | `testing` (feature `test-util`) |
//! | tests of your own store | `conformance` (feature `conformance`) |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod answer;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod engine;
mod error;
mod fence;
mod guard;
mod loss;
mod policy;
mod publication;
mod renewal;
mod state;
pub mod store;
mod supervise;
mod supervisor;
#[cfg(feature = "test-util")]
pub mod testing;

pub use clock::{BootClock, Clock, Moment};
pub use error::{StoreError, StoreErrorKind};
pub use fence::{Epoch, Fence, Generation, Holder, InvalidHolder, OperationId, Owner, ReportId, SourceRevision};
pub use guard::{Lease, LeaseGuard, LeaseStatus, Lost, ReleaseOutcome, StatusWatch};
pub use loss::{Loss, LossReason};
pub use policy::{LeasePolicy, LeasePolicyBuilder, PolicyError};
pub use publication::{Outcome, Publication, PublishError, Ticket, UnresolvedPublication};
pub use supervise::{Supervised, SupervisedStream};
pub use supervisor::{
    AcquireError, Acquisition, Built, Completed, LeaseSupervisor, RunError, ShutdownReport, SupervisorBuilder,
};

/// The README's code compiles.
#[cfg(all(doctest, feature = "sqlite", feature = "sqlserver"))]
#[doc = include_str!("../README.md")]
struct Readme;
