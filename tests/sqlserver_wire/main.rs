//! The SQL Server store at the wire: connections that end at any byte, answers that come late or never, servers on a bad day.
#![cfg(all(feature = "sqlserver", feature = "conformance"))]

#[path = "../support/wire/cutting.rs"]
mod cutting;
#[path = "../../benches/support/figure.rs"]
mod figure;
#[path = "../support/wire/losing.rs"]
mod losing;
#[path = "../support/wire/neighbours.rs"]
mod neighbours;
#[path = "../support/proxy/mod.rs"]
mod proxy;
#[allow(dead_code)] // Of the harness only the schema is used here.
#[path = "../support/sqlserver.rs"]
mod sqlserver;
#[path = "../support/wire/subject.rs"]
mod subject;
#[path = "../support/tds/mod.rs"]
mod tds;
#[path = "../support/wire/verdict.rs"]
mod verdict;

mod drops;
mod errors;
mod every_byte;
mod lanes;
mod late;
mod logins;
mod methods;
mod not_understood;
mod quiet;
mod scene;
mod secrets;
mod stand_in;
mod tables;
