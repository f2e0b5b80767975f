//! For tests of code that uses leases: a store that needs no database, a store with planned faults, and clocks to drive.

mod clocks;
mod faulty;
mod memory;

pub use clocks::{JumpingClock, TokioClock};
pub use faulty::{Fault, FaultyStore, Gate, Operation};
#[doc(hidden)]
pub use memory::Mutant;
#[cfg(feature = "conformance")]
pub use memory::{MemoryBlocker, MemoryDatabase, MemoryHarness};
pub use memory::{MemoryClock, MemoryStore, MemoryTransaction};
