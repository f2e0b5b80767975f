//! The proxy of the tests over the wire does what it says, at the byte it says.
#[path = "../support/proxy/mod.rs"]
mod proxy;

mod cut;
mod echo;
mod end;
mod flow;
mod reach;
