//! What is PostgreSQL's own: rights, installations, sessions, histories, cost. The protocol itself is proved by the conformance
//! suite.
#![cfg(all(feature = "postgres", feature = "conformance"))]

#[path = "../support/postgres_cluster.rs"]
mod cluster;
#[allow(dead_code)] // The conformance run uses the rest.
#[path = "../support/postgres.rs"]
mod support;

mod blips;
mod cost;
mod encryption;
mod full_disk;
mod history;
mod installation;
mod late;
mod reaching;
mod rights;
mod scene;
mod sessions;
mod transaction;
