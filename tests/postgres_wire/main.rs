//! The PostgreSQL store at the wire: connections that end at any byte, and requests and answers that stand still or vanish.
#![cfg(all(feature = "postgres", feature = "conformance"))]

#[path = "../support/wire/cutting.rs"]
mod cutting;
#[path = "../../benches/support/figure.rs"]
mod figure;
#[path = "../support/wire/losing.rs"]
mod losing;
#[path = "../support/wire/neighbours.rs"]
mod neighbours;
#[allow(dead_code)] // Of the harness only the schema is used here.
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../support/proxy/mod.rs"]
mod proxy;
#[path = "../support/wire/subject.rs"]
mod subject;
#[path = "../support/wire/verdict.rs"]
mod verdict;

mod every_byte;
mod quiet;
mod scene;
mod tables;
