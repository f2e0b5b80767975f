//! A renewal-aware lease supervisor. (The tour comes with the client.)

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
