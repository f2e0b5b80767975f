//! What people reported against the systems that do this job, each as a test with the value it should have had. The numbers
//! are those of the table in tests/README.md; the issues are named at each test.

#[allow(dead_code)] // Shared with the tests of the SQLite store.
#[path = "../sqlite/child.rs"]
mod child;
#[allow(dead_code)] // Shared with the tests of the SQLite store.
#[path = "../sqlite/place.rs"]
mod place;
#[path = "../support/mod.rs"]
mod support;

mod blocked;
mod ending;
mod generations;
mod holding;
mod loss;
mod process;
mod processes;
mod publication;
mod renewal;
mod shutdown;
mod telling;
mod watching;
