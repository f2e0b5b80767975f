//! Connections that stay up: answers in pieces, requests and answers that stand still or vanish.

use std::sync::Arc;

use leasehold::StoreErrorKind;

use crate::neighbours::{Neighbours, cost, neighbours, warm};
use crate::proxy::{Action, Armed, Direction, Fault};
use crate::scene::{PATIENCE, Schema, Wire, short_budget};
use crate::subject::{Operation, Subject};
use crate::tables::{prepare, truth};
use crate::verdict::{First, Resolution, Settled};

/// How far the positions are apart at which an answer stands still for a moment: a prime, so that they fall everywhere.
const BRIEF_STRIDE: usize = 13;

/// How far those are apart that cost a connection and a budget each.
const LOST_STRIDE: usize = 331;

/// An operation whose bytes come one by one is answered.
pub(crate) async fn split_everywhere() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    let mut told = Vec::new();
    for operation in Operation::ALL {
        let wire = Wire::to(&schema).await;
        warm(&wire, operation, &neighbours).await;
        let (connection, _) = wire.in_use();
        for direction in Direction::BOTH {
            connection.arm(Fault::new(direction, 0, Action::Split(1))).fired().await;
        }
        let subject = prepare(&schema, operation, 1).await.remove(0);
        let first = First::of(operation, subject.ask(&wire.store, operation).await);
        assert_eq!(first, First::Applied, "{operation:?}");
        told.push(Settled::by(Resolution::Again, &wire.store, operation, subject, first).await);
        warm(&wire, operation, &neighbours).await;
        assert_eq!(wire.proxy.connections(), 1, "{operation:?}");
    }
    let truth = truth(&schema).await;
    told.iter().for_each(|one| one.is_true(&truth));
}

/// Every so many positions of both directions.
async fn positions(
    schema: &Arc<Schema>,
    operation: Operation,
    neighbours: &Neighbours,
    stride: usize,
) -> Vec<(Direction, u64)> {
    let cost = cost(schema, operation, neighbours).await;
    let of = |direction| (0..cost.bytes(direction)).step_by(stride).map(move |after| (direction, after));
    Direction::BOTH.into_iter().flat_map(of).collect()
}

/// An operation that stands still for a while is answered on the same connection.
pub(crate) async fn stand_still_everywhere() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    for operation in Operation::ALL {
        let wire = Wire::to(&schema).await;
        warm(&wire, operation, &neighbours).await;
        let positions = positions(&schema, operation, &neighbours, BRIEF_STRIDE).await;
        let subjects = prepare(&schema, operation, positions.len()).await;
        let mut settled = Vec::new();
        for ((direction, after), subject) in positions.into_iter().zip(subjects) {
            let (connection, _) = wire.in_use();
            let armed = connection.arm(Fault::new(direction, after, Action::HoldBoth));
            let asked = subject.ask(&wire.store, operation);
            let goes_on = async {
                armed.fired().await;
                armed.go_on();
            };
            let (told, ()) = tokio::join!(asked, goes_on);
            let first = First::of(operation, told);
            assert_eq!(first, First::Applied, "{operation:?} {direction:?} after {after}");
            settled.push(Settled::by(Resolution::Again, &wire.store, operation, subject, first).await);
        }
        assert_eq!(wire.proxy.connections(), 1, "{operation:?}");
        let truth = truth(&schema).await;
        settled.iter().for_each(|one| one.is_true(&truth));
    }
}

/// One operation whose bytes stand still or vanish from here on, told, resolved, and only then let go on.
async fn lose(wire: &Wire, operation: Operation, fault: Fault, subject: Subject, neighbours: &Neighbours) -> Settled {
    let case = format!("{operation:?} {fault:?}");
    warm(wire, operation, neighbours).await;
    let (connection, _) = wire.in_use();
    let armed: Armed = connection.arm(fault);
    let asked = subject.ask_within(short_budget(), &wire.store, operation);
    let told = tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("it hangs: {case}"));
    assert_eq!(told.expect_err(&case).kind(), StoreErrorKind::Unknown, "{case}");
    armed.fired().await;
    let resolution =
        if subject.owner.as_uuid().as_u128().is_multiple_of(2) { Resolution::Again } else { Resolution::Close };
    let settled = Settled::by(resolution, &wire.store, operation, subject, First::Unknown).await;
    for neighbour in neighbours {
        neighbour.look(&wire.store, operation).await.expect("the store has a connection that works");
    }
    assert!(wire.proxy.open_connections() <= 3, "{case}: {} connections are open", wire.proxy.open_connections());
    // What was held arrives after all was settled.
    armed.go_on();
    connection.ended().await;
    settled
}

/// An operation that is lost on a connection that stays up is unknown and resolved.
pub(crate) async fn lose_everywhere() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    for operation in Operation::ALL {
        let wire = Wire::to(&schema).await;
        let positions = positions(&schema, operation, &neighbours, LOST_STRIDE).await;
        let mut settled = Vec::new();
        for action in [Action::Swallow, Action::Hold, Action::HoldBoth, Action::HalfClose] {
            let subjects = prepare(&schema, operation, positions.len()).await;
            for (&(direction, after), subject) in positions.iter().zip(subjects) {
                // A half-closed connection might be found out before anything is sent on it.
                let after = if action == Action::HalfClose { after.max(1) } else { after };
                let fault = Fault::new(direction, after, action);
                settled.push(lose(&wire, operation, fault, subject, &neighbours).await);
            }
        }
        let truth = truth(&schema).await;
        settled.iter().for_each(|one| one.is_true(&truth));
    }
}
