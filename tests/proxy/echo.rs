//! A server that sends back what it gets and remembers it, and a client of it, with the proxy between them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::proxy::Proxy;

/// For machines that are busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the peer of a connection was seen to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Clean,
    Reset,
}

/// What the server saw of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) bytes: Vec<u8>,
    /// How often something came.
    pub(crate) reads: usize,
    pub(crate) end: Option<End>,
}

pub(crate) struct Scene {
    pub(crate) proxy: Proxy,
    pub(crate) server: SocketAddr,
    seen: watch::Sender<Vec<Seen>>,
    serving: AbortHandle,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Scene {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let seen = watch::Sender::new(Vec::new());
        let serving = tokio::spawn(serve(listener, seen.clone())).abort_handle();
        Self { proxy: Proxy::start(server).await, server, seen, serving }
    }

    pub(crate) async fn client(&self) -> Client {
        Client { stream: TcpStream::connect(self.proxy.addr()).await.unwrap() }
    }

    /// A client whose connection has already carried something.
    pub(crate) async fn warm_client(&self) -> Client {
        let mut client = self.client().await;
        assert_eq!(client.ask(b"warm").await, b"warm");
        client
    }

    /// Waits until the server has seen this of the connection that it accepted last.
    pub(crate) async fn server_has(&self, what: impl Fn(&Seen) -> bool) -> Seen {
        let mut watch = self.seen.subscribe();
        let seen = watch.wait_for(|all| all.last().is_some_and(&what));
        let seen = tokio::time::timeout(PATIENCE, seen).await;
        let Ok(seen) = seen else { panic!("the server saw only {:?}", self.seen.borrow().last()) };
        seen.unwrap().last().unwrap().clone()
    }

    /// What the server has seen of that connection when it is over.
    pub(crate) async fn server_end(&self) -> Seen {
        self.server_has(|seen| seen.end.is_some()).await
    }
}

/// Serves connections one after another or at once, until aborted.
async fn serve(listener: TcpListener, seen: watch::Sender<Vec<Seen>>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let index = seen.borrow().len();
        seen.send_modify(|all| all.push(Seen::default()));
        let seen = seen.clone();
        connections.spawn(async move {
            let mut buffer = [0; 4096];
            loop {
                let read = stream.read(&mut buffer).await;
                seen.send_modify(|all| match &read {
                    Ok(0) => all[index].end = Some(End::Clean),
                    Ok(bytes) => {
                        all[index].bytes.extend_from_slice(&buffer[..*bytes]);
                        all[index].reads += 1;
                    }
                    Err(_) => all[index].end = Some(End::Reset),
                });
                let Ok(bytes @ 1..) = read else { return };
                if stream.write_all(&buffer[..bytes]).await.is_err() {
                    // Whoever is told of a reset while writing is not told again when reading.
                    seen.send_modify(|all| all[index].end = Some(End::Reset));
                    return;
                }
            }
        });
    }
}

pub(crate) struct Client {
    stream: TcpStream,
}

impl Client {
    /// Sends, if it can: a connection that was cut may refuse already this.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    pub(crate) async fn receive(&mut self, bytes: usize) -> Vec<u8> {
        let mut received = vec![0; bytes];
        let read = tokio::time::timeout(PATIENCE, self.stream.read_exact(&mut received)).await;
        read.expect("an answer in time").expect("the whole answer");
        received
    }

    /// Sends, and takes as many bytes back.
    pub(crate) async fn ask(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.send(bytes).await;
        self.receive(bytes.len()).await
    }

    /// Everything to the end, and how that was.
    pub(crate) async fn rest(&mut self) -> (Vec<u8>, End) {
        let mut received = Vec::new();
        let read = tokio::time::timeout(PATIENCE, self.stream.read_to_end(&mut received)).await;
        let end = if read.expect("an end in time").is_ok() { End::Clean } else { End::Reset };
        (received, end)
    }

    /// Says that it sends no more.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    /// Whether nothing is there to be read, neither bytes nor an end.
    pub(crate) fn hears_nothing(&self) -> bool {
        self.stream.try_read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}
