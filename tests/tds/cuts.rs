//! The stand-in behind the proxy, for every byte of a call: the driver tells an answer only if the whole of it came, and whether
//! the server was asked does not depend on what the driver tells.

use crate::proxy::{Action, Direction, Fault, Proxy};
use crate::tds::{Reply, Request, TdsServer, Value};
use crate::{call, connect_to};

#[tokio::test]
async fn a_call_that_is_cut_at_any_byte_is_told_as_done_only_if_its_whole_answer_came() {
    let server = TdsServer::start(|request| match request {
        Request::Call(_) => Reply::Rows(vec!["Answer"], vec![vec![Value::Text("published".to_owned())]]),
        _ => Reply::Done,
    })
    .await;
    let proxy = Proxy::start(server.addr()).await;
    let calls = || server.seen().iter().filter(|request| matches!(request, Request::Call(_))).count();

    let mut connection = connect_to(proxy.addr()).await.unwrap();
    let before = proxy.traffic();
    call(&mut connection).await.unwrap();
    let cost = proxy.traffic() - before;
    assert_eq!(cost.round_trips, 1);

    for action in [Action::Reset, Action::Finish, Action::Split(1)] {
        for direction in Direction::BOTH {
            for after in 0..=cost.bytes(direction) {
                let case = format!("{action:?} {direction:?} after {after} of {cost:?}");
                let mut connection = connect_to(proxy.addr()).await.unwrap();
                let before = calls();
                let armed = proxy.latest().arm(Fault::new(direction, after, action));
                let told = call(&mut connection).await;
                armed.fired().await;
                drop(connection);
                proxy.latest().ended().await;

                let whole = after == cost.bytes(direction);
                let harmless = matches!(action, Action::Split(_));
                let answered = harmless || (direction == Direction::ToClient && whole);
                assert_eq!(told.is_ok(), answered, "{case}");
                // A cut that comes at once, or with the last byte of the request, races with the server.
                match direction {
                    _ if answered => assert_eq!(calls(), before + 1, "{case}"),
                    Direction::ToServer if !whole => assert_eq!(calls(), before, "{case}"),
                    Direction::ToClient if after > 0 => assert_eq!(calls(), before + 1, "{case}"),
                    _ => {}
                }
            }
        }
    }
}
