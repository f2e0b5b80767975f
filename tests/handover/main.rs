//! The handover between real processes on one SQLite file: a worker that is stopped, killed, or never hears its answer.
//!
//! The workers are those of `examples/handover`; what is done to them, and what must be true then, is told here once more and
//! without the example's director, which has tests of its own in `program.rs`.

// It takes SIGSTOP.
#![cfg(unix)]

mod killed;
mod plain;
mod program;
mod scene;
mod stopped;
mod unanswered;
mod worker;
