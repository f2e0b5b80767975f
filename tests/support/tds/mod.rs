//! A server that speaks just enough TDS to say what a real one says only on bad days: any error by its number, a login that is
//! denied, a route to another server, no encryption, nothing at all. It executes nothing: what procedures do is shown on
//! a real server.
//!
//! Written after [MS-TDS], the open specification of the protocol; the sections are named where they are used.
//!
//! ```ignore
//! let server = TdsServer::start(|request| match request {
//!     Request::Login(_) => Reply::Done,
//!     Request::Call(procedure) if procedure.ends_with("LeaseholdPublish") => Reply::Error(SqlError::new(1205, 13)),
//!     _ => Reply::Done,
//! })
//! .await;
//! ```
//!
//! [MS-TDS]: https://learn.microsoft.com/openspecs/windows_protocols/ms-tds
#![allow(dead_code, unreachable_pub, unused_imports)] // Shared by test binaries that each use a part of it.

mod tokens;
mod wire;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

pub use tokens::{SqlError, Tokens, Value};
use wire::{Kind, Message};
pub use wire::{Login, Request};

/// What the server does when it is asked something.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Accepts the login; says that a call or batch is done, without rows.
    Done,
    /// One result set, and done.
    Rows(Vec<&'static str>, Vec<Vec<Value>>),
    /// Fails. After an error of class 20 or above, and after a denied login, the connection is closed, as real servers do.
    Error(SqlError),
    /// Accepts the login but sends the client to another server.
    Route(String, u16),
    /// These tokens as they are.
    Raw(Tokens),
    /// Closes the connection without a word.
    HangUp,
    /// Never answers; the connection stays open.
    Silence,
}

type Script = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// Its tasks and sockets end when it is dropped.
#[derive(Debug)]
pub struct TdsServer {
    addr: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    serving: AbortHandle,
}

impl TdsServer {
    /// Listens on a free port of this machine, without encryption, and does what the script says.
    pub async fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("its own address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let serving = tokio::spawn(accept(listener, Arc::new(script), seen.clone())).abort_handle();
        Self { addr, seen, serving }
    }

    /// A server that accepts logins and answers every call and batch with this error.
    pub async fn failing_with(error: SqlError) -> Self {
        Self::start(move |request| match request {
            Request::Login(_) => Reply::Done,
            _ => Reply::Error(error.clone()),
        })
        .await
    }

    /// A server that answers every login with this.
    pub async fn answering_logins_with(reply: Reply) -> Self {
        Self::start(move |_| reply.clone()).await
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything that it was asked so far, by all clients.
    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("no panic").clone()
    }

    /// How many logins it was asked for.
    pub fn logins(&self) -> usize {
        self.seen().iter().filter(|request| matches!(request, Request::Login(_))).count()
    }
}

impl Drop for TdsServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn accept(listener: TcpListener, script: Script, seen: Arc<Mutex<Vec<Request>>>) {
    let mut clients = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (script, seen) = (script.clone(), seen.clone());
        // A client that breaks off is the client's affair.
        clients.spawn(async move { drop(serve(client, script, seen).await) });
    }
}

async fn serve(mut client: TcpStream, script: Script, seen: Arc<Mutex<Vec<Request>>>) -> io::Result<()> {
    client.set_nodelay(true)?;
    loop {
        let message = Message::read(&mut client).await?;
        if message.kind == Kind::PreLogin {
            Message::tabular(wire::prelogin_without_encryption()).write(&mut client).await?;
            continue;
        }
        let request = Request::of(&message);
        seen.lock().expect("no panic").push(request.clone());
        let (tokens, hang_up) = match script(&request) {
            Reply::HangUp => return Ok(()),
            Reply::Silence => (None, false),
            reply => {
                let hang_up = reply.ends_connection(&request);
                (Some(reply.tokens(&request)), hang_up)
            }
        };
        if let Some(tokens) = tokens {
            Message::tabular(tokens.into_bytes()).write(&mut client).await?;
        }
        if hang_up {
            return Ok(());
        }
    }
}

impl Reply {
    fn ends_connection(&self, request: &Request) -> bool {
        let login = matches!(request, Request::Login(_));
        match self {
            Self::Error(error) => login || error.class >= 20,
            Self::Route(..) => true,
            _ => false,
        }
    }

    fn tokens(self, request: &Request) -> Tokens {
        let tokens = Tokens::default();
        match (self, request) {
            (Self::Raw(tokens), _) => tokens,
            (Self::Error(error), Request::Call(_)) => tokens.error(&error).done_procedure(Tokens::FAILED),
            (Self::Error(error), _) => tokens.error(&error).done(Tokens::FAILED),
            (Self::Route(host, port), _) => tokens.login_ack().route(&host, port).done(Tokens::FINAL),
            (Self::Rows(columns, rows), _) => {
                let tokens = rows.iter().fold(tokens.columns(&columns, &rows), |tokens, row| tokens.row(row));
                tokens.done_in_procedure(Tokens::MORE).return_status(0).done_procedure(Tokens::FINAL)
            }
            (_, Request::Login(_)) => tokens.login_ack().done(Tokens::FINAL),
            (_, Request::Call(_)) => tokens.return_status(0).done_procedure(Tokens::FINAL),
            (_, Request::Attention) => tokens.done(Tokens::ATTENTION),
            (_, Request::Batch(_) | Request::Other(_)) => tokens.done(Tokens::FINAL),
        }
    }
}
