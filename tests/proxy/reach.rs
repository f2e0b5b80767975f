//! Which connections a fault meets.

use crate::echo::{End, Scene};
use crate::proxy::{Action, Direction, Fault};

const RESET: Fault = Fault::new(Direction::ToServer, 2, Action::Reset);

#[tokio::test]
async fn of_two_connections_at_once_only_the_one_that_is_meant_is_cut() {
    let scene = Scene::start().await;
    let (mut first, mut second) = (scene.warm_client().await, scene.warm_client().await);
    let armed = scene.proxy.connection(0).arm(RESET);
    assert_eq!(second.ask(b"hello").await, b"hello");
    assert!(!armed.has_fired());
    first.send(b"hello").await;
    armed.fired().await;
    assert_eq!(first.rest().await, (Vec::new(), End::Reset));
    assert_eq!(second.ask(b"again").await, b"again");
    assert_eq!((scene.proxy.connections(), scene.proxy.open_connections()), (2, 1));
}

#[tokio::test]
async fn of_all_connections_the_first_to_get_there_is_cut_and_no_other() {
    let scene = Scene::start().await;
    let (mut first, mut second) = (scene.warm_client().await, scene.warm_client().await);
    let armed = scene.proxy.arm(RESET);
    assert_eq!(first.ask(b"1").await, b"1");
    second.send(b"22").await;
    armed.fired().await;
    assert_eq!(second.rest().await.1, End::Reset);
    assert_eq!(first.ask(b"1111").await, b"1111");
    let mut third = scene.client().await;
    assert_eq!(third.ask(b"3333").await, b"3333");
    assert_eq!(armed.times(), 1);
}

#[tokio::test]
async fn of_all_connections_a_new_one_may_be_the_first() {
    let scene = Scene::start().await;
    let mut old = scene.warm_client().await;
    let armed = scene.proxy.arm(RESET);
    let mut new = scene.client().await;
    new.send(b"22").await;
    armed.fired().await;
    assert_eq!(new.rest().await.1, End::Reset);
    assert_eq!(old.ask(b"1111").await, b"1111");
}

#[tokio::test]
async fn the_next_connection_is_cut_and_not_the_one_after_it() {
    let scene = Scene::start().await;
    let mut old = scene.warm_client().await;
    let armed = scene.proxy.arm_next(RESET);
    assert_eq!(old.ask(b"hello").await, b"hello");
    let mut next = scene.client().await;
    next.send(b"hello").await;
    assert_eq!(next.rest().await.1, End::Reset);
    armed.fired().await;
    let mut after = scene.client().await;
    assert_eq!(after.ask(b"hello").await, b"hello");
}

#[tokio::test]
async fn every_new_connection_is_cut_until_that_is_over() {
    let scene = Scene::start().await;
    let armed = scene.proxy.arm_every_new(RESET);
    for _ in 0..3 {
        let mut client = scene.client().await;
        client.send(b"hello").await;
        assert_eq!(client.rest().await.1, End::Reset);
    }
    scene.proxy.latest().ended().await;
    assert_eq!(armed.times(), 3);
    armed.disarm();
    assert_eq!(scene.client().await.ask(b"hello").await, b"hello");
}

#[tokio::test]
async fn a_fault_that_was_disarmed_never_fires() {
    let scene = Scene::start().await;
    let mut client = scene.warm_client().await;
    let armed = scene.proxy.arm(RESET);
    armed.disarm();
    assert_eq!(client.ask(b"hello").await, b"hello");
    assert!(!armed.has_fired());
}
