//! Connections that slow publications hold are not those that renewals need.

use std::sync::Arc;

use leasehold::StoreErrorKind;
use leasehold::store::{Budget, Store};

use crate::neighbours::neighbours;
use crate::proxy::{Action, Direction, Fault};
use crate::scene::Wire;
use crate::sqlserver::Schema;
use crate::stand_in::short_budget;
use crate::subject::{Operation, Told};
use crate::tables::prepare;

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_pool_that_slow_publications_have_used_up_keeps_no_renewal_waiting() {
    let schema = Arc::new(Schema::installed().await);
    let [one, other] = neighbours(&schema).await;
    let wire = Wire::with(&schema, |builder| builder.max_connections(2)).await;
    let store = &wire.store;
    // Both of the pool's connections, at once.
    let look = Operation::Publish;
    let (first, second) = tokio::join!(one.look(store, look), other.look(store, look));
    first.and(second).expect("the server answers");
    assert_eq!(wire.proxy.connections(), 2);

    let held = [0, 1].map(|index| {
        let fault = Fault::new(Direction::ToServer, 0, Action::Hold).at_next_byte();
        wire.proxy.connection(index).arm(fault)
    });
    let reports = prepare(&schema, Operation::Publish, 3).await;
    let publications =
        async { tokio::join!(reports[0].ask(store, Operation::Publish), reports[1].ask(store, Operation::Publish)) };
    let meanwhile = async {
        for armed in &held {
            armed.fired().await;
        }
        for _ in 0..3 {
            let renewed = reports[2].ask(store, Operation::Renew).await;
            assert_eq!(renewed.expect("a renewal waits for nobody"), Told::Renewed);
        }
        assert!(held.iter().all(|armed| armed.times() == 1), "the publications stand still");
        let waiting = store.inspect(reports[2].report, short_budget()).await;
        assert_eq!(waiting.expect_err("no connection is left").kind(), StoreErrorKind::Unavailable);
        assert_eq!(wire.proxy.connections(), 3, "two for publications, one for renewals");
        held.iter().for_each(crate::proxy::Armed::go_on);
    };
    let ((first, second), ()) = tokio::join!(publications, meanwhile);
    for told in [first, second] {
        assert_eq!(told.expect("it is published after all"), Told::Published { again: false });
    }
    store.inspect(reports[2].report, Budget::within(crate::scene::PATIENCE)).await.expect("a connection is free again");
    assert_eq!(wire.proxy.connections(), 3);
}
