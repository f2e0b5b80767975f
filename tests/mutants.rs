//! Proves the conformance suite: a store that makes a mistake fails it, whatever the mistake.
//!
//! The mutants are those of the explicit-state model that the protocol came from, as far as they concern a store, and more.
//! Two of them change nothing as long as generations are unique (publish without the owner clause, publish without
//! `PublishedGeneration <`); the cases that play a restore give a generation away twice, and so catch them alone.
#![cfg(feature = "conformance")]

use std::sync::Arc;
use std::time::Duration;

use leasehold::conformance::{Report, Suite};
use leasehold::testing::{MemoryHarness, Mutant};
use tokio::sync::Semaphore;

/// How many suites run at once. They mostly wait; many more would starve the cases that look at the clock.
const AT_ONCE: usize = 24;

/// How many of the cases that caught a mutant are printed.
const SHOWN: usize = 4;

async fn suite_on(mutants: &'static [Mutant], turns: Arc<Semaphore>) -> Report {
    let _turn = turns.acquire_owned().await.expect("a semaphore that nobody closes");
    // A mutant may well make a case wait for what never comes.
    let suite = Suite::default().hang_limit(Duration::from_secs(25));
    suite.run(&MemoryHarness::default().mutated(mutants)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_catches_every_mutant() {
    std::panic::set_hook(Box::new(|_| {})); // Cases fail by the hundred here, on purpose; the report has their messages.
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let run = |mutants| tokio::spawn(suite_on(mutants, Arc::clone(&turns)));
    // The right store, at the same time and under the same load: what a mutant fails is then the mutant's doing.
    let control = run(&[]);
    let runs: Vec<_> = Mutant::ALL.iter().map(|mutant| (mutant, run(std::slice::from_ref(mutant)))).collect();
    let control = control.await.expect("the suite catches the panics of its cases");
    let (mut killed, mut survivors) = (0, Vec::new());
    for (mutant, run) in runs {
        let report = run.await.expect("the suite catches the panics of its cases");
        let cases: Vec<_> = report.failed().collect();
        if cases.is_empty() {
            survivors.push(mutant.sentence());
            continue;
        }
        let shown = cases[..cases.len().min(SHOWN)].join(", ");
        let more = cases.len().saturating_sub(SHOWN);
        println!("mutant: {} killed by {shown}{}", mutant.sentence(), and_more(more));
        killed += 1;
    }
    drop(std::panic::take_hook());
    println!("figure: model.mutants_killed = {killed} count");
    control.assert_passed();
    assert!(survivors.is_empty(), "the suite has no case against: {survivors:#?}");
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}
