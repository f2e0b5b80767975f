//! The future of every method of the store is dropped at every point at which it waits: the next call is answered rightly, and
//! the connections stay few.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use leasehold::store::Store;

use crate::methods::{Method, all};
use crate::neighbours::{Neighbours, neighbours};
use crate::proxy::{Action, Direction, Fault};
use crate::scene::{Wire, budget, until};
use crate::sqlserver::Schema;
use crate::stand_in::short_budget;
use crate::subject::{Operation, Subject};
use crate::tables::{prepare, truth};

/// What a store may keep: one connection for renewals, and a few for what was under way at once.
const FEW: usize = 4;

/// Polls whenever it is woken, and drops the future when it is pending for the n-th time; `None` then.
async fn drop_when_pending<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left <= 1 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Two other reports, in turns, by both lanes: nobody gets an answer that was another call's.
async fn is_right(wire: &Wire, [one, other]: &Neighbours, case: &str) {
    for subject in [one, other, one] {
        subject.look(&wire.store, Operation::Close).await.unwrap_or_else(|error| panic!("{case}: {error:?}"));
        subject.look(&wire.store, Operation::Renew).await.unwrap_or_else(|error| panic!("{case}: {error:?}"));
    }
}

async fn subject(schema: &Arc<Schema>) -> Subject {
    prepare(schema, Operation::Publish, 1).await.remove(0)
}

/// Whatever was under way came to its end: once, or not at all.
async fn published_at_most_once(schema: &Arc<Schema>) {
    for (report, row) in truth(schema).await {
        let published = row.ledger.iter().filter(|(_, operation)| operation.is_some()).count();
        assert!(published <= 1 && published == usize::from(row.published_generation > 0), "{report}: {row:?}");
        assert_eq!(row.payload.is_some(), published == 1, "{report}: {row:?}");
    }
}

async fn dropped_at_every_pending_poll(wire: &Wire, neighbours: &Neighbours, (name, method): Method) -> usize {
    for times in 1.. {
        let subject = subject(&wire.schema).await;
        let answered = drop_when_pending(method(wire.store.clone(), subject, budget()), times).await;
        let case = format!("{name} dropped when pending for the {times}. time");
        is_right(wire, neighbours, &case).await;
        // One that was thrown away is closed soon.
        until(&format!("few connections after {case}"), async || wire.proxy.open_connections() <= FEW).await;
        if let Some(answered) = answered {
            answered.unwrap_or_else(|error| panic!("{name}: {error:?}"));
            return times - 1;
        }
    }
    unreachable!("a method ends")
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_method_that_is_dropped_wherever_it_waits_leaves_the_store_as_it_was() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    let wire = Wire::to(&schema).await;
    let mut drops = 0;
    for method in all() {
        drops += dropped_at_every_pending_poll(&wire, &neighbours, method).await;
    }
    println!("{drops} drops, {} connections were made", wire.proxy.connections());
    assert!(drops >= all().len(), "each waits at least once");
    published_at_most_once(&schema).await;
}

/// Where a call stands when its future is dropped.
#[derive(Debug, Clone, Copy)]
enum Stands {
    AtItsLogin,
    BeforeItsRequestArrives,
    BeforeItsAnswerArrives,
    InTheMiddleOfItsAnswer,
}

impl Stands {
    const ALL: [Self; 4] =
        [Self::AtItsLogin, Self::BeforeItsRequestArrives, Self::BeforeItsAnswerArrives, Self::InTheMiddleOfItsAnswer];

    fn fault(self) -> Fault {
        let (direction, after) = match self {
            Self::AtItsLogin | Self::BeforeItsRequestArrives => (Direction::ToServer, 0),
            Self::BeforeItsAnswerArrives => (Direction::ToClient, 0),
            Self::InTheMiddleOfItsAnswer => (Direction::ToClient, 10),
        };
        Fault::new(direction, after, Action::Hold).at_next_byte()
    }
}

/// The call stands still there, its future is dropped, the store is used meanwhile, and then the call goes on.
async fn dropped_where_it_stands(
    schema: &Arc<Schema>,
    neighbours: &Neighbours,
    (name, method): Method,
    stands: Stands,
) {
    let case = format!("{name}, {stands:?}");
    let wire = Wire::to(schema).await;
    if !matches!(stands, Stands::AtItsLogin) {
        is_right(&wire, neighbours, &case).await;
    }
    let before = wire.proxy.connections();
    let armed = wire.proxy.arm(stands.fault());
    let subject = subject(schema).await;
    {
        let mut asked = pin!(method(wire.store.clone(), subject, budget()));
        tokio::select! {
            biased;
            answered = &mut asked => panic!("{case}: it does not wait: {answered:?}"),
            () = armed.fired() => {}
        }
    }
    is_right(&wire, neighbours, &case).await;
    assert!(wire.proxy.connections() <= before + 3, "{case}: {} connections were made", wire.proxy.connections());
    armed.go_on();
    is_right(&wire, neighbours, &case).await;
    until(&format!("{case}: the connections are few"), async || wire.proxy.open_connections() <= FEW).await;
    assert!(wire.proxy.connections() <= before + 3, "{case}: {} connections were made", wire.proxy.connections());
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_method_that_is_dropped_while_its_connection_stands_still_gives_nobody_its_answer() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    for method in all() {
        for stands in Stands::ALL {
            dropped_where_it_stands(&schema, &neighbours, method, stands).await;
        }
    }
    published_at_most_once(&schema).await;
}

/// More often than a pool has connections: none is lost to it.
#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn calls_that_are_dropped_use_no_pool_up() {
    let schema = Arc::new(Schema::installed().await);
    let neighbours = neighbours(&schema).await;
    let wire = Wire::with(&schema, |builder| builder.max_connections(1)).await;
    is_right(&wire, &neighbours, "at first").await;
    for round in 0..20 {
        let subject = subject(&schema).await;
        let fault = Fault::new(Direction::ToClient, 0, Action::Swallow).at_next_byte();
        let armed = wire.proxy.arm(fault);
        let publishing = wire.store.publish(subject.publish_request(), short_budget());
        assert!(drop_when_pending(publishing, 1).await.is_none());
        armed.fired().await;
        // The one connection comes back when the dropped call has spent its budget.
        is_right(&wire, &neighbours, &format!("round {round}")).await;
        until("the connections are two again", async || wire.proxy.open_connections() <= 2).await;
    }
    assert!(wire.proxy.connections() <= 2 + 20, "{}", wire.proxy.connections());
}
