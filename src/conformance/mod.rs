//! The contract of a store as one suite: [`run`] it against any store.
//!
//! A store's author provides a [`Harness`]; the suite makes a fresh database for every case, puts it into every state that
//! the [protocol](crate::store) speaks of, and names what fails. A case never hopes for an interleaving: it holds the row's
//! lock until every call waits for it. It waits for conditions, with a limit, and sets expiries instead of sleeping.
//!
//! ```
//! use leasehold::conformance;
//! use leasehold::testing::MemoryHarness;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let report = conformance::run_matching(&MemoryHarness::default(), "handover::").await;
//! println!("{report}");
//! report.assert_passed();
//! # }
//! ```

mod answers;
mod harness;
mod queue;
mod report;
mod scene;
mod suite;
mod worker;

mod acquisition;
mod advance;
mod batch;
mod budgets;
mod delay;
mod ending;
mod epochs;
mod expiry;
mod handover;
mod ledger;
mod limits;
mod operators;
mod overlap;
mod publication;
mod reads;
mod renewal;
mod revisions;
mod transaction;
mod waiting;

pub use harness::{Blocker, BlockerEnd, Database, Harness, RawRow};
pub use report::{Outcome, Report};
pub use suite::{Suite, run, run_matching};

use suite::Case;

/// Every case of the suite, in the order in which it runs.
fn all_cases<D: Database>() -> Vec<Case<D>> {
    [
        handover::cases(),
        overlap::cases(),
        waiting::cases(),
        acquisition::cases(),
        renewal::cases(),
        publication::cases(),
        ending::cases(),
        ledger::cases(),
        expiry::cases(),
        delay::cases(),
        revisions::cases(),
        epochs::cases(),
        advance::cases(),
        batch::cases(),
        operators::cases(),
        limits::cases(),
        budgets::cases(),
        reads::cases(),
        transaction::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
