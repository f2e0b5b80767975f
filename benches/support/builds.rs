//! Four builds as they are in practice, in slices of some milliseconds.

use std::hint::black_box;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, Stream};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// What a build mostly does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Computes, and awaits now and then.
    Cpu,
    /// Asks a server and waits for it.
    Io,
    /// Is polled all the time, for a microsecond each.
    Polls,
    /// Consumes a stream, in pieces of 4 KiB as readers give them.
    Stream,
}

impl Kind {
    pub(crate) const ALL: [(Self, &'static str); 4] =
        [(Self::Cpu, "cpu"), (Self::Io, "io"), (Self::Polls, "polls"), (Self::Stream, "stream")];
}

/// What slices work on.
pub(crate) struct Builds {
    source: Vec<u8>,
    server: Mutex<TcpStream>,
}

impl Builds {
    /// Starts the server that is asked, on this same thread.
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.expect("a client");
            let mut question = [0; 64];
            let answer = vec![7; 16 << 10];
            while client.read_exact(&mut question).await.is_ok() {
                client.write_all(&answer).await.expect("the client reads");
            }
        });
        let server = TcpStream::connect(address).await.expect("the server accepts");
        server.set_nodelay(true).expect("no delay");
        Self { source: (0..64 << 10).map(|number| (number % 251) as u8).collect(), server: Mutex::new(server) }
    }

    /// One slice of a build. Boxed, so that both kinds of slices run the very same code, and not what the compiler makes of each.
    pub(crate) fn slice(&self, kind: Kind) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(self.work(kind))
    }

    /// One slice of a build that is a stream.
    pub(crate) fn stream(&self) -> Pin<Box<dyn Stream<Item = u8> + '_>> {
        Box::pin(stream::iter(self.source.chunks(4 << 10).cycle().take(1_024)).map(digest))
    }

    async fn work(&self, kind: Kind) {
        match kind {
            Kind::Cpu => {
                for _ in 0..64 {
                    digest(&self.source);
                    tokio::task::yield_now().await;
                }
            }
            Kind::Io => {
                let mut server = self.server.lock().await;
                let mut answer = vec![0; 16 << 10];
                for question in 0..128 {
                    server.write_all(&[1; 64]).await.expect("the server reads");
                    server.read_exact(&mut answer).await.expect("the server answers");
                    digest(&answer);
                    if question % 32 == 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
            Kind::Polls => {
                for _ in 0..4_096 {
                    digest(&self.source[..1 << 10]);
                    tokio::task::yield_now().await;
                }
            }
            Kind::Stream => consume(self.stream()).await,
        }
    }
}

/// Takes every item of a stream.
pub(crate) async fn consume(items: impl Stream) {
    let mut items = pin!(items);
    while let Some(item) = items.next().await {
        black_box(item);
    }
}

fn digest(bytes: &[u8]) -> u8 {
    black_box(Sha256::digest(black_box(bytes)))[0]
}
