//! Requests that reach the server when their client has long given up: a statement that was delayed until after its owner was
//! closed is never accepted, and a duplicate changes nothing.

use std::sync::Arc;

use leasehold::answer::{AcquireAnswer, PublishAnswer, RenewAnswer};
use leasehold::store::{AcquireRequest, Payload, PublishRequest, Store};
use leasehold::{Owner, StoreErrorKind};

use crate::neighbours::{Neighbours, neighbours, warm};
use crate::proxy::{Action, Armed, Connection, Direction, Fault, Traffic};
use crate::scene::{Wire, budget};
use crate::sqlserver::Schema;
use crate::stand_in::short_budget;
use crate::subject::{Operation, RENEWED_FOR, Subject, Told};
use crate::tables::{Truth, prepare, truth};

/// More than the server says about the end of a connection, less than any answer.
const AN_ANSWER: u64 = 1_000;

/// A request that stands still in front of the server.
struct Delayed {
    wire: Wire,
    subject: Subject,
    connection: Connection,
    before: Traffic,
    armed: Armed,
}

impl Delayed {
    /// Sent, kept on the way, and given up by the client.
    async fn by(schema: &Arc<Schema>, operation: Operation, neighbours: &Neighbours) -> Self {
        let wire = Wire::to(schema).await;
        warm(&wire, operation, neighbours).await;
        let subject = prepare(schema, operation, 1).await.remove(0);
        let (connection, before) = wire.in_use();
        let armed = connection.arm(Fault::new(Direction::ToServer, 0, Action::Hold).at_next_byte());
        let told = subject.ask_within(short_budget(), &wire.store, operation).await;
        assert_eq!(told.expect_err("no answer").kind(), StoreErrorKind::Unknown, "{operation:?}");
        armed.fired().await;
        Self { wire, subject, connection, before, armed }
    }

    /// Lets it go on, and waits until the server has answered to it: it has executed it by then. Nobody is there to hear the answer.
    async fn arrive(&self) {
        assert_eq!(self.connection.traffic().to_client, self.before.to_client, "nothing was answered before");
        self.armed.go_on();
        self.connection.arrived(Direction::ToClient, self.before.to_client + AN_ANSWER).await;
        self.connection.ended().await;
    }

    async fn truth(&self) -> Truth {
        truth(&self.wire.schema).await.remove(&self.subject.report).expect("its row")
    }

    fn entry(&self, published: bool) -> (uuid::Uuid, Option<uuid::Uuid>) {
        (*self.subject.owner.as_uuid(), published.then_some(*self.subject.operation.as_uuid()))
    }

    /// Another worker acquires, and publishes another payload.
    async fn succeed(&self) -> (AcquireRequest, String) {
        let acquire = AcquireRequest { owner: Owner::random(), ..self.subject.acquire_request() };
        let store = &self.wire.store;
        let AcquireAnswer::Acquired(acquired) = store.acquire(acquire.clone(), budget()).await.expect("an answer")
        else {
            panic!("the report is free")
        };
        let payload = "a later report".to_owned();
        let request = PublishRequest {
            fence: acquired.fence,
            operation: leasehold::OperationId::random(),
            payload: Payload::new(payload.as_str(), 100).expect("a payload"),
            revision: None,
        };
        let told = store.publish(request, budget()).await.expect("an answer");
        assert!(matches!(told, PublishAnswer::Published(_)), "{told:?}");
        (acquire, payload)
    }
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_delayed_request_is_executed_when_it_arrives_if_nobody_closed_its_owner() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    let delayed = Delayed::by(&schema, Operation::Publish, &neighbours).await;
    assert_eq!(delayed.truth().await.payload, None);
    delayed.arrive().await;
    let truth = delayed.truth().await;
    assert_eq!(truth.payload, Some(delayed.subject.payload()), "this is what the other tests here keep from happening");
    assert_eq!(truth.ledger, vec![delayed.entry(true)]);
    assert_eq!(
        delayed.subject.close(&delayed.wire.store, Operation::Publish).await.unwrap(),
        Told::Published { again: true }
    );
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_request_that_arrives_after_its_owner_was_closed_is_never_accepted() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    for operation in Operation::ALL {
        let delayed = Delayed::by(&schema, operation, &neighbours).await;
        let store = &delayed.wire.store;
        assert_eq!(delayed.subject.close(store, operation).await.expect("an answer"), Told::Closed, "{operation:?}");
        let closed = delayed.truth().await;
        delayed.arrive().await;
        assert_eq!(delayed.truth().await, closed, "{operation:?}");
        assert_eq!((closed.owner, &closed.payload), (None, &None), "{operation:?}");
        assert_eq!(closed.ledger, vec![delayed.entry(false)], "{operation:?}");
        assert_eq!(
            delayed.subject.close(store, operation).await.expect("an answer"),
            Told::Closed,
            "the same for ever"
        );
    }
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_late_duplicate_of_an_accepted_publication_changes_nothing() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    for succeeded in [false, true] {
        let delayed = Delayed::by(&schema, Operation::Publish, &neighbours).await;
        let told = delayed.subject.ask(&delayed.wire.store, Operation::Publish).await.expect("an answer");
        assert_eq!(told, Told::Published { again: false });
        let later = if succeeded { Some(delayed.succeed().await) } else { None };
        let before = delayed.truth().await;
        delayed.arrive().await;
        let truth = delayed.truth().await;
        assert_eq!(truth, before);
        let expected = later.map_or_else(|| delayed.subject.payload(), |(_, payload)| payload);
        assert_eq!(truth.payload, Some(expected));
        assert_eq!(truth.ledger.iter().filter(|entry| **entry == delayed.entry(true)).count(), 1);
    }
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_late_request_of_a_worker_that_was_succeeded_changes_nothing() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    for operation in Operation::ALL {
        let delayed = Delayed::by(&schema, operation, &neighbours).await;
        let store = &delayed.wire.store;
        delayed.subject.close(store, operation).await.expect("an answer");
        let next = AcquireRequest { owner: Owner::random(), ..delayed.subject.acquire_request() };
        let AcquireAnswer::Acquired(acquired) = store.acquire(next, budget()).await.expect("an answer") else {
            panic!("{operation:?}: the report is free")
        };
        let before = delayed.truth().await;
        delayed.arrive().await;
        let after = delayed.truth().await;
        assert_eq!(Truth { minutes_left: None, ..after }, Truth { minutes_left: None, ..before }, "{operation:?}");
        let renewed = store.renew(acquired.fence, RENEWED_FOR, budget()).await.expect("an answer");
        assert!(matches!(renewed, RenewAnswer::Renewed { .. }), "{operation:?}: {renewed:?}");
    }
}
