//! What is SQLite's own: files, locks, processes, clocks. The protocol itself is proved by the conformance suite.
#![cfg(all(feature = "sqlite", feature = "conformance"))]

mod child;
mod clock;
mod cost;
mod file;
mod lock;
mod place;
mod processes;
mod transaction;
