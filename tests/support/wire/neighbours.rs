//! Reports beside those that a test is about: whether the store mixes answers up is seen by asking about them.

use std::sync::Arc;

use crate::proxy::Traffic;
use crate::scene::{Schema, Wire};
use crate::subject::{Operation, Subject};
use crate::tables::prepare;

/// Two reports that were published before, one acquisition each.
pub(crate) type Neighbours = [Subject; 2];

pub(crate) async fn neighbours(schema: &Arc<Schema>) -> Neighbours {
    let wire = Wire::to(schema).await;
    let made = prepare(schema, Operation::Publish, 2).await;
    for subject in &made {
        subject.ask(&wire.store, Operation::Publish).await.expect("a publication");
    }
    made.try_into().expect("two")
}

/// A connection of the operation's lane that has run the operation before.
pub(crate) async fn warm(wire: &Wire, operation: Operation, neighbours: &Neighbours) {
    for subject in neighbours {
        subject.look(&wire.store, operation).await.expect("the server answers");
    }
}

/// What the operation costs on a warmed connection.
pub(crate) async fn cost(schema: &Arc<Schema>, operation: Operation, neighbours: &Neighbours) -> Traffic {
    let wire = Wire::to(schema).await;
    warm(&wire, operation, neighbours).await;
    let mut costs = Vec::new();
    for subject in prepare(schema, operation, 3).await {
        let (connection, before) = wire.in_use();
        subject.ask(&wire.store, operation).await.expect("it is applied");
        costs.push(connection.traffic() - before);
    }
    assert_eq!(wire.proxy.connections(), 1, "one lane, one connection");
    assert!(costs.iter().all(|cost| cost == &costs[0]), "{costs:?}");
    costs[0]
}
