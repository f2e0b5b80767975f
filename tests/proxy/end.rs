//! What is left of a proxy: nothing.

use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::echo::Scene;
use crate::proxy::{Action, Direction, Fault, Proxy};

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Lets the tasks that are being ended end.
async fn wait_until(what: impl Fn() -> bool) {
    let started = Instant::now();
    while !what() {
        assert!(started.elapsed() < Duration::from_secs(20), "it never came true");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_ended_proxy_leaves_no_task_and_no_socket() {
    let before = tasks();
    let scene = Scene::start().await;
    let proxy = Proxy::start(scene.server).await;
    let serving = tasks() - 1;
    let addr = proxy.addr();
    let mut idle = TcpStream::connect(addr).await.unwrap();
    let _held = proxy.latest_when_open().await.arm(Fault::new(Direction::ToServer, 0, Action::HoldBoth));
    scene.server_has(|_| true).await;
    proxy.end().await;
    assert!(TcpStream::connect(addr).await.is_err());
    let read = tokio::io::AsyncReadExt::read(&mut idle, &mut [0]).await;
    assert!(!matches!(read, Ok(1..)));
    assert!(scene.server_end().await.end.is_some());
    wait_until(|| tasks() == serving).await;
    drop(scene);
    wait_until(|| tasks() == before).await;
}

#[tokio::test]
async fn a_dropped_proxy_ends_its_connections() {
    let scene = Scene::start().await;
    let proxy = Proxy::start(scene.server).await;
    let addr = proxy.addr();
    let before = tasks() - 1;
    let _idle = TcpStream::connect(addr).await.unwrap();
    let connection = proxy.latest_when_open().await;
    drop(proxy);
    connection.ended().await;
    wait_until(|| tasks() <= before).await;
    assert!(TcpStream::connect(addr).await.is_err());
}

#[tokio::test]
async fn connections_that_ended_leave_no_task() {
    let scene = Scene::start().await;
    let before = tasks();
    for _ in 0..10 {
        drop(scene.warm_client().await);
    }
    for index in 0..10 {
        scene.proxy.connection(index).ended().await;
    }
    wait_until(|| tasks() == before).await;
    assert_eq!((scene.proxy.connections(), scene.proxy.open_connections()), (10, 0));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_reset() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = Proxy::start(gone).await;
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert!(tokio::io::AsyncReadExt::read(&mut client, &mut [0]).await.is_err());
}
