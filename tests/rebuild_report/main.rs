//! The main job, `examples/rebuild_report`, in real processes.

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

// It takes signals to stop one of two at a known point.
#[cfg(unix)]
mod lease;
#[cfg(all(feature = "postgres", feature = "conformance"))]
mod postgres_server;
#[cfg_attr(not(unix), allow(dead_code))]
mod process;
mod report;
#[cfg(all(feature = "sqlserver", feature = "conformance"))]
mod server;

use process::Scene;
