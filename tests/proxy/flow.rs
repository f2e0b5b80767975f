//! Bytes that are counted, held, cut small or lost while the connection stays up.

use crate::echo::{End, Scene};
use crate::proxy::{Action, Direction, Fault, Traffic};

const REQUEST: &[u8] = b"0123456789";
const LEN: usize = REQUEST.len();

#[tokio::test]
async fn bytes_and_round_trips_are_counted_for_each_connection_and_for_all() {
    let scene = Scene::start().await;
    let mut client = scene.warm_client().await;
    let before = scene.proxy.traffic();
    for _ in 0..3 {
        client.ask(REQUEST).await;
    }
    let cost = scene.proxy.traffic() - before;
    assert_eq!(cost, Traffic { to_server: 30, to_client: 30, round_trips: 3 });
    let mut other = scene.client().await;
    other.ask(b"hi").await;
    assert_eq!(scene.proxy.latest().traffic(), Traffic { to_server: 2, to_client: 2, round_trips: 1 });
    assert_eq!(scene.proxy.connection(0).traffic(), Traffic { to_server: 34, to_client: 34, round_trips: 4 });
    assert_eq!(scene.proxy.traffic().bytes(Direction::ToClient), 36);
    assert_eq!((scene.proxy.connections(), scene.proxy.open_connections()), (2, 2));
}

#[tokio::test]
async fn a_request_in_many_pieces_is_one_round_trip() {
    let scene = Scene::start().await;
    let mut client = scene.client().await;
    let connection = scene.proxy.latest_when_open().await;
    let armed = connection.arm(Fault::new(Direction::ToServer, 0, Action::Hold));
    for (index, piece) in REQUEST.chunks(2).enumerate() {
        client.send(piece).await;
        connection.arrived(Direction::ToServer, 2 * (index as u64 + 1)).await;
    }
    armed.go_on();
    assert_eq!(client.receive(LEN).await, REQUEST);
    assert_eq!(connection.traffic(), Traffic { to_server: 10, to_client: 10, round_trips: 1 });
}

#[tokio::test]
async fn a_held_request_goes_on_when_told_to() {
    let scene = Scene::start().await;
    for after in 0..=LEN {
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToServer, after as u64, Action::Hold));
        client.send(REQUEST).await;
        armed.fired().await;
        assert_eq!(client.receive(after).await, &REQUEST[..after], "what came before is answered");
        let seen = scene.server_has(|_| true).await;
        assert_eq!(&seen.bytes[4..], &REQUEST[..after], "after {after}");
        armed.go_on();
        assert_eq!(client.receive(LEN - after).await, &REQUEST[after..]);
        assert_eq!(client.ask(b"more").await, b"more", "nothing is held any more");
    }
}

#[tokio::test]
async fn a_held_request_arrives_late_although_its_client_is_gone() {
    for reset in [false, true] {
        let scene = Scene::start().await;
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToServer, 3, Action::Hold));
        client.send(REQUEST).await;
        armed.fired().await;
        // Otherwise a reset may overtake the request in the client's own socket.
        scene.proxy.latest().arrived(Direction::ToServer, 4 + LEN as u64).await;
        client.receive(3).await;
        if reset {
            client.reset();
        } else {
            drop(client);
        }
        armed.go_on();
        let seen = scene.server_end().await;
        assert_eq!(&seen.bytes[4..], REQUEST, "reset: {reset}");
    }
}

#[tokio::test]
async fn a_held_answer_goes_on_when_told_to() {
    let scene = Scene::start().await;
    for after in 0..=LEN {
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToClient, after as u64, Action::Hold));
        client.send(REQUEST).await;
        assert_eq!(client.receive(after).await, &REQUEST[..after]);
        armed.fired().await;
        client.send(b"more").await;
        scene.server_has(|seen| seen.bytes.ends_with(b"more")).await;
        assert!(client.hears_nothing(), "after {after}");
        armed.go_on();
        assert_eq!(client.receive(LEN - after + 4).await, [&REQUEST[after..], b"more"].concat());
    }
}

#[tokio::test]
async fn a_partition_holds_both_directions() {
    let scene = Scene::start().await;
    for direction in Direction::BOTH {
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(direction, 4, Action::HoldBoth));
        client.send(REQUEST).await;
        armed.fired().await;
        let before = scene.proxy.latest().traffic();
        client.send(b"more").await;
        scene.proxy.latest().arrived(Direction::ToServer, before.to_server + 4).await;
        let reached_server = if direction == Direction::ToServer { 4 } else { LEN };
        let seen = scene.server_has(|seen| seen.bytes.len() >= 4 + reached_server).await;
        assert_eq!(seen.bytes.len(), 4 + reached_server, "{direction:?}");
        armed.go_on();
        assert_eq!(client.receive(LEN + 4).await, [REQUEST, b"more"].concat());
    }
}

#[tokio::test]
async fn a_split_request_comes_in_many_reads_and_whole() {
    let scene = Scene::start().await;
    for (after, piece) in [(0, 1), (0, 3), (5, 1), (LEN, 1)] {
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToServer, after as u64, Action::Split(piece)));
        assert_eq!(client.ask(REQUEST).await, REQUEST);
        armed.fired().await;
        let seen = scene.server_has(|seen| seen.bytes.len() == 4 + LEN).await;
        let whole = usize::from(after > 0);
        assert_eq!(seen.reads, 1 + whole + (LEN - after).div_ceil(piece), "{after} {piece}");
    }
}

#[tokio::test]
async fn a_swallowed_answer_never_comes_but_its_request_did() {
    let scene = Scene::start().await;
    for after in 0..=LEN {
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToClient, after as u64, Action::Swallow));
        client.send(REQUEST).await;
        armed.fired().await;
        client.send(b"more").await;
        client.finish().await;
        assert_eq!(client.rest().await, (REQUEST[..after].to_vec(), End::Clean));
        let seen = scene.server_end().await;
        assert_eq!(&seen.bytes[4..], [REQUEST, b"more"].concat());
    }
}

#[tokio::test]
async fn a_swallowed_request_never_comes() {
    let scene = Scene::start().await;
    let mut client = scene.warm_client().await;
    let armed = scene.proxy.arm(Fault::new(Direction::ToServer, 6, Action::Swallow));
    client.send(REQUEST).await;
    armed.fired().await;
    client.finish().await;
    assert_eq!(client.rest().await, (REQUEST[..6].to_vec(), End::Clean));
}

#[tokio::test]
async fn a_split_and_a_cut_work_together() {
    let scene = Scene::start().await;
    let mut client = scene.warm_client().await;
    let split = scene.proxy.arm(Fault::new(Direction::ToServer, 0, Action::Split(2)));
    let cut = scene.proxy.arm(Fault::new(Direction::ToServer, 5, Action::Finish));
    client.send(REQUEST).await;
    split.fired().await;
    cut.fired().await;
    let seen = scene.server_end().await;
    assert_eq!(&seen.bytes[4..], &REQUEST[..5]);
}
