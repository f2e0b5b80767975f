//! For tests of code that uses leases: a store that needs no database.

mod memory;

#[doc(hidden)]
pub use memory::Mutant;
#[cfg(feature = "conformance")]
pub use memory::{MemoryBlocker, MemoryDatabase, MemoryHarness};
pub use memory::{MemoryClock, MemoryStore, MemoryTransaction};
