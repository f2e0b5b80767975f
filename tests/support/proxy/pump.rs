//! Moves the bytes of one connection, as its books say.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::fault::{Action, Direction, Trigger};
use super::line::{Line, Step};

/// How a connection is to end before both its sides have.
enum Ending {
    ByFault(Arc<Trigger>),
    /// One side broke off, and the other is to see it.
    BrokenOff,
}

/// Where a pump stands with its sender.
#[derive(Clone, Copy, PartialEq)]
enum Sender {
    Sends,
    Ended,
    BrokeOff,
}

/// Connects to the server and serves the connection to its end.
pub(super) async fn serve(client: TcpStream, server: SocketAddr, line: Arc<Line>, changed: watch::Sender<()>) {
    let _ended = EndedWhenDropped(line.clone(), changed.clone());
    let Ok(server) = TcpStream::connect(server).await else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = relay(client, server, &line, changed).await;
}

async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    line: &Line,
    changed: watch::Sender<()>,
) -> io::Result<()> {
    // A piece must leave when it is written, not when more has gathered.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    // Borrowed halves: dropping them sends no end, which must not come before a reset.
    let ending = {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let up = pump(Direction::ToServer, &mut from_client, &mut to_server, line, &changed);
        let down = pump(Direction::ToClient, &mut from_server, &mut to_client, line, &changed);
        tokio::try_join!(up, down).err()
    };
    match ending {
        None => Ok(()),
        Some(Ending::BrokenOff) => reset(client, server),
        Some(Ending::ByFault(trigger)) if trigger.fault.action == Action::Reset => {
            let done = reset(client, server);
            trigger.report();
            done
        }
        Some(Ending::ByFault(trigger)) => finish(client, server, &trigger).await,
    }
}

fn reset(client: TcpStream, server: TcpStream) -> io::Result<()> {
    client.set_zero_linger()?;
    server.set_zero_linger()
}

/// Ends both sides cleanly. What still comes is read until they end too: a socket closed over unread bytes would send a reset.
async fn finish(mut client: TcpStream, mut server: TcpStream, trigger: &Trigger) -> io::Result<()> {
    let _ = client.shutdown().await;
    let _ = server.shutdown().await;
    trigger.report();
    let (mut unheard_client, mut unheard_server) = (tokio::io::sink(), tokio::io::sink());
    let _ = tokio::join!(
        tokio::io::copy(&mut client, &mut unheard_client),
        tokio::io::copy(&mut server, &mut unheard_server)
    );
    Ok(())
}

/// Moves the bytes of one direction until its sender has ended.
async fn pump(
    direction: Direction,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    line: &Line,
    changed: &watch::Sender<()>,
) -> Result<(), Ending> {
    let mut changes = changed.subscribe();
    let mut waiting = Vec::new();
    let mut sender = Sender::Sends;
    loop {
        match line.step(direction, waiting.len()) {
            Step::Idle if sender == Sender::Ended => {
                let _ = to.shutdown().await;
                return Ok(());
            }
            Step::Idle if sender == Sender::BrokeOff => return Err(Ending::BrokenOff),
            // A change of the books is a reason to look again; the proxy itself outlives its connections.
            Step::Idle | Step::Held => tokio::select! {
                _ = changes.changed() => {}
                state = receive(from, &mut waiting), if sender == Sender::Sends => {
                    match state {
                        Ok(bytes) => {
                            line.arrived(direction, bytes);
                            changed.send_replace(());
                        }
                        Err(ended) => sender = ended,
                    }
                }
            },
            Step::Pass(bytes) => deliver(direction, to, line, waiting.drain(..bytes).as_slice()).await,
            Step::PassPiece(bytes) => {
                let_others_run().await;
                deliver(direction, to, line, waiting.drain(..bytes).as_slice()).await;
            }
            Step::Discard(bytes) => drop(waiting.drain(..bytes)),
            Step::HalfClose(trigger) => {
                let _ = to.shutdown().await;
                trigger.report();
            }
            Step::End(trigger) => return Err(Ending::ByFault(trigger)),
        }
    }
}

/// Gives the receiver the opportunity to read what it was given before the next piece comes. It hears of it from the runtime's driver,
/// which looks for news between two turns of a task that yields, and is not the only task.
async fn let_others_run() {
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
}

/// Adds what arrives to what waits.
async fn receive(from: &mut (impl AsyncRead + Unpin), waiting: &mut Vec<u8>) -> Result<usize, Sender> {
    waiting.reserve(16 * 1024);
    match from.read_buf(waiting).await {
        Ok(0) => Err(Sender::Ended),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(Sender::BrokeOff),
    }
}

/// A receiver that is gone is no reason to stop: what it sent before may still be on its way in the other direction, and its
/// own pump sees it go.
async fn deliver(direction: Direction, to: &mut (impl AsyncWrite + Unpin), line: &Line, bytes: &[u8]) {
    if to.write_all(bytes).await.is_err() {
        line.discard(direction);
    }
}

/// Says that a connection has ended, also when its task is aborted.
struct EndedWhenDropped(Arc<Line>, watch::Sender<()>);

impl Drop for EndedWhenDropped {
    fn drop(&mut self) {
        self.0.end();
        self.1.send_replace(());
    }
}
