//! Renewing: when ([`machine`]), for one lease ([`task`]), and for many at once ([`batch`]).

mod batch;
mod machine;
#[cfg(test)]
mod machine_laws;
mod task;

pub(crate) use batch::Batcher;
pub(crate) use machine::Pace;
pub(crate) use task::{Renewal, machine_of};
