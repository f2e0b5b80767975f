//! Connections that end at a byte.

use crate::echo::{End, Scene};
use crate::proxy::{Action, Direction, Fault};

const REQUEST: &[u8] = b"0123456789";
const LEN: u64 = REQUEST.len() as u64;

async fn cut_of_a_request(action: Action, end: End) {
    let scene = Scene::start().await;
    for after in 0..=LEN {
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToServer, after, action));
        client.send(REQUEST).await;
        armed.fired().await;
        let seen = scene.server_end().await;
        assert_eq!(&seen.bytes[4..], &REQUEST[..after as usize], "{action:?} after {after}");
        assert_eq!(seen.end, Some(end), "{action:?} after {after}");
        assert_eq!(client.rest().await, (Vec::new(), end), "{action:?} after {after}");
        drop(client);
        scene.proxy.latest().ended().await;
        assert_eq!(armed.times(), 1);
    }
}

async fn cut_of_an_answer(action: Action, end: End) {
    let scene = Scene::start().await;
    for after in 0..=LEN {
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToClient, after, action).at_next_byte());
        client.send(REQUEST).await;
        if after == LEN {
            // The next byte is that of another answer.
            assert_eq!(client.receive(REQUEST.len()).await, REQUEST);
            assert!(!armed.has_fired());
            client.send(REQUEST).await;
        }
        armed.fired().await;
        let (received, seen) = client.rest().await;
        let expected = if after == LEN { b"" } else { &REQUEST[..after as usize] };
        assert_eq!((received.as_slice(), seen), (expected, end), "{action:?} after {after}");
        drop(client);
        let seen = scene.server_end().await;
        assert!(seen.bytes[4..].starts_with(REQUEST), "the request came whole: {action:?} after {after}");
        assert_eq!(seen.end, Some(end), "{action:?} after {after}");
    }
}

#[tokio::test]
async fn a_reset_of_a_request_is_seen_by_both_at_every_byte() {
    cut_of_a_request(Action::Reset, End::Reset).await;
}

#[tokio::test]
async fn a_clean_end_of_a_request_is_seen_by_both_at_every_byte() {
    cut_of_a_request(Action::Finish, End::Clean).await;
}

#[tokio::test]
async fn a_reset_of_an_answer_is_seen_by_both_at_every_byte() {
    cut_of_an_answer(Action::Reset, End::Reset).await;
}

#[tokio::test]
async fn a_clean_end_of_an_answer_is_seen_by_both_at_every_byte() {
    cut_of_an_answer(Action::Finish, End::Clean).await;
}

#[tokio::test]
async fn a_cut_at_the_end_of_an_answer_comes_with_its_last_byte() {
    for (action, end) in [(Action::Reset, End::Reset), (Action::Finish, End::Clean)] {
        let scene = Scene::start().await;
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToClient, LEN, action));
        client.send(REQUEST).await;
        armed.fired().await;
        assert_eq!(client.rest().await, (REQUEST.to_vec(), end));
    }
}

#[tokio::test]
async fn a_cut_after_nothing_comes_at_once() {
    for action in [Action::Reset, Action::Finish] {
        let scene = Scene::start().await;
        let _client = scene.warm_client().await;
        scene.proxy.arm(Fault::new(Direction::ToServer, 0, action)).fired().await;
        assert!(scene.server_end().await.end.is_some());
    }
}

#[tokio::test]
async fn a_cut_at_the_next_byte_leaves_a_connection_that_looks_healthy_until_it_is_used() {
    let scene = Scene::start().await;
    let mut client = scene.warm_client().await;
    let armed = scene.proxy.arm(Fault::new(Direction::ToServer, 0, Action::Reset).at_next_byte());
    // Another connection is served meanwhile: the proxy had every opportunity.
    let mut other = scene.client().await;
    scene.proxy.connection(0).arm(Fault::new(Direction::ToClient, 0, Action::Split(100))).fired().await;
    assert!(client.hears_nothing() && !armed.has_fired());
    client.send(REQUEST).await;
    armed.fired().await;
    assert_eq!(client.rest().await, (Vec::new(), End::Reset));
    assert_eq!(other.ask(REQUEST).await, REQUEST);
}

#[tokio::test]
async fn a_half_closed_request_is_answered_as_far_as_it_came() {
    let scene = Scene::start().await;
    for after in 0..=LEN {
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToServer, after, Action::HalfClose));
        client.send(REQUEST).await;
        armed.fired().await;
        let part = REQUEST[..after as usize].to_vec();
        assert_eq!(client.rest().await, (part.clone(), End::Clean), "after {after}");
        let seen = scene.server_end().await;
        assert_eq!((&seen.bytes[4..], seen.end), (part.as_slice(), Some(End::Clean)), "after {after}");
    }
}

#[tokio::test]
async fn a_half_closed_answer_leaves_the_requests_alone() {
    let scene = Scene::start().await;
    for after in 0..=LEN {
        let mut client = scene.warm_client().await;
        let armed = scene.proxy.arm(Fault::new(Direction::ToClient, after, Action::HalfClose));
        client.send(REQUEST).await;
        armed.fired().await;
        assert_eq!(client.rest().await, (REQUEST[..after as usize].to_vec(), End::Clean), "after {after}");
        client.send(REQUEST).await;
        scene.server_has(|seen| seen.bytes.len() == 4 + 2 * REQUEST.len()).await;
    }
}
