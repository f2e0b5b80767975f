//! The contract of a store as one suite: [`run`] it against any store.

mod harness;

pub use harness::{Blocker, BlockerEnd, Database, Harness, RawRow};
