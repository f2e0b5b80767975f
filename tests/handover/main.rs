//! The handover between real processes on one database: a worker that is stopped, killed, or never hears its answer.
//!
//! The workers are those of `examples/handover`; what is done to them, and what must be true then, is told here once more and
//! without the example's director, which has tests of its own in `program.rs`.

// It takes SIGSTOP.
#![cfg(unix)]

#[macro_use]
#[path = "../support/stores.rs"]
mod stores;

#[path = "../support/database.rs"]
mod database;
#[path = "../../examples/database/mod.rs"]
mod example_database;
#[cfg(all(feature = "postgres", feature = "conformance"))]
#[allow(dead_code)] // Other tests use the rest.
#[path = "../support/postgres.rs"]
mod postgres;
#[cfg(all(feature = "postgres", feature = "conformance"))]
#[allow(dead_code)]
#[path = "../support/postgres_schema.rs"]
mod postgres_schema;
#[cfg(all(feature = "sqlserver", feature = "conformance"))]
#[allow(dead_code)]
#[path = "../support/sqlserver.rs"]
mod sqlserver;

mod killed;
mod plain;
mod program;
#[cfg(all(any(feature = "sqlserver", feature = "postgres"), feature = "conformance"))]
mod program_on_a_server;
mod scene;
mod stopped;
mod unanswered;
mod worker;

use scene::Scene;
