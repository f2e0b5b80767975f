//! The contract as pure functions: what an operation answers, given the row and the ledger that were found under the lock.
//!
//! A store that runs its SQL from Rust loads a [`Row`] and the ledger's [`Entry`]s, asks here, and carries out what it is
//! told. Nothing here reads a clock or a database: the row says how far away its expiry is. Each function finds its answer
//! in the order written at the operation in [`Store`](super::Store), one statement a point.

mod lease;
mod publish;
mod row;

pub(crate) use lease::{Acquire, Close, Renew, acquire, close, exhausted, release, renew};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use publish::next_generation;
pub(crate) use publish::{Publish, publish};
pub(crate) use row::{Entry, Expiry, Row, whole_millis};
