//! A connection that ends at every byte of every operation, in both directions.
//!
//! Every position is cut, by a reset and a clean end in turns.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Instant;

use tokio::task::JoinSet;

use crate::neighbours::{Neighbours, cost, neighbours, warm};
use crate::proxy::{Action, Direction, Fault, Traffic};
use crate::scene::{PATIENCE, Schema, Wire};
use crate::subject::{Operation, Subject};
use crate::tables::{prepare, truth};
use crate::verdict::{First, Resolution, Settled};

/// How many cuts are under way at once. What they cost is the server's work for a new connection each.
const WORKERS: usize = 3;

/// One fault, and the report that it befalls.
#[derive(Debug, Clone)]
struct Cut {
    fault: Fault,
    resolution: Resolution,
    subject: Subject,
}

/// Cuts one operation, resolves it, and asks about other reports.
async fn cut(wire: &Wire, operation: Operation, cut: Cut, neighbours: &Neighbours) -> Settled {
    let (connection, _) = wire.in_use();
    let armed = connection.arm(cut.fault);
    let first = First::of(operation, cut.subject.ask(&wire.store, operation).await);
    armed.fired().await;
    let settled = Settled::by(cut.resolution, &wire.store, operation, cut.subject, first).await;
    // A connection that ended with the last byte of an answer is met when its lane is used next.
    let mut may_meet_it = first == First::Applied;
    for subject in neighbours {
        // Unavailable is a server that has no room for another connection now: it is asked again.
        while let Err(error) = subject.look(&wire.store, operation).await {
            if First::of_error(&error) == First::Unknown {
                assert!(may_meet_it, "the store has a connection that works: {error:?}");
                may_meet_it = false;
            }
        }
    }
    connection.ended().await;
    settled
}

fn faults(cost: Traffic) -> Vec<Fault> {
    let mut faults = Vec::new();
    for direction in Direction::BOTH {
        for after in 0..=cost.bytes(direction) {
            let action = if after % 2 == 0 { Action::Reset } else { Action::Finish };
            faults.push(Fault::new(direction, after, action));
        }
    }
    faults
}

/// Cuts this operation at each of these positions, a few at a time, and compares what was told with the tables.
async fn cut_at(
    schema: &Arc<Schema>,
    operation: Operation,
    faults: Vec<Fault>,
    neighbours: &Neighbours,
) -> Vec<Settled> {
    let subjects = prepare(schema, operation, faults.len()).await;
    let cuts = faults.into_iter().zip(subjects).enumerate().map(|(index, (fault, subject))| {
        // Closing is another procedure, which a new connection has to compile: every few times.
        let resolution = if index % 5 == 4 { Resolution::Close } else { Resolution::Again };
        Cut { fault, resolution, subject }
    });
    let queue = Arc::new(Mutex::new(cuts.collect::<Vec<_>>().into_iter()));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(Arc::clone(schema), operation, Arc::clone(&queue), neighbours.clone()));
    }
    let settled: Vec<Settled> = workers.join_all().await.into_iter().flatten().collect();
    let truth = truth(schema).await;
    settled.iter().for_each(|one| one.is_true(&truth));
    settled
}

/// Cuts what is in the queue, through a proxy of its own.
async fn work(
    schema: Arc<Schema>,
    operation: Operation,
    queue: Arc<Mutex<std::vec::IntoIter<Cut>>>,
    neighbours: Neighbours,
) -> Vec<Settled> {
    let wire = Wire::to(&schema).await;
    warm(&wire, operation, &neighbours).await;
    let mut settled = Vec::new();
    loop {
        let next = queue.lock().expect("no panic").next();
        let Some(next) = next else { return settled };
        let case = format!("{operation:?} {next:?}");
        let done = tokio::time::timeout(PATIENCE, cut(&wire, operation, next, &neighbours)).await;
        settled.push(done.unwrap_or_else(|_| panic!("it hangs: {case}")));
    }
}

/// Cuts this operation at every byte. How often that was.
pub(crate) async fn cut_everywhere(operation: Operation) -> usize {
    let began = Instant::now();
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    let cost = cost(&schema, operation, &neighbours).await;
    let settled = cut_at(&schema, operation, faults(cost), &neighbours).await;
    let of = |first| settled.iter().filter(|one| one.first == first).count();
    let (applied, not, unknown) = (of(First::Applied), of(First::SurelyNot), of(First::Unknown));
    println!(
        "{operation:?}: {cost:?}, {} cuts in {:?}: told applied {applied}, surely not {not}, unknown {unknown}",
        settled.len(),
        began.elapsed()
    );
    settled.len()
}
