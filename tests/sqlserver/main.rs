//! What is the SQL Server store's own: its installation, names, permissions, sessions, transactions, pools and errors. The protocol
//! itself is proved by the conformance suite (`conformance_sqlserver.rs`).
#![cfg(all(feature = "sqlserver", feature = "conformance"))]

#[path = "../support/sqlserver.rs"]
#[allow(dead_code)] // Shared with the conformance suite's test.
mod support;

#[path = "../support/tds/mod.rs"]
mod tds;

mod article;
mod bad_input;
mod install;
mod names;
mod only_sql_server;
mod pools;
mod roles;
mod runtimes;
mod script;
mod sessions;
mod transaction;
mod versions;
mod words;
