//! What is SQLite's own: files, locks, processes, clocks. The protocol itself is proved by the conformance suite.
#![cfg(all(feature = "sqlite", feature = "conformance"))]

mod clock;
#[allow(dead_code)]
mod place;
