//! A renewal-aware lease supervisor. (The tour comes with the client.)

pub mod answer;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod fence;
pub mod store;
#[cfg(feature = "test-util")]
pub mod testing;

pub use error::{StoreError, StoreErrorKind};
pub use fence::{Epoch, Fence, Generation, Holder, InvalidHolder, OperationId, Owner, ReportId, SourceRevision};
