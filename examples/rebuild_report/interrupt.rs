//! Ctrl-C, and SIGTERM where there is one.

use std::future::Future;
use std::io;

use tokio_util::sync::CancellationToken;

/// Whether the user wants this run to end. A second signal ends it at once.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    token: CancellationToken,
}

/// The exit code of an interrupted program, by the shells' convention (128 + SIGINT).
pub(crate) const EXIT_CODE: u8 = 130;

impl Interrupt {
    /// From here on signals are taken note of, and end the process no more by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut signals = Signals::register()?;
        let interrupt = Self { token: CancellationToken::new() };
        let token = interrupt.token.clone();
        tokio::spawn(async move {
            signals.next().await;
            token.cancel();
            signals.next().await;
            eprintln!("Left at once. If a lease was held, it ends with its TTL.");
            std::process::exit(EXIT_CODE.into());
        });
        Ok(interrupt)
    }

    /// Whether it was asked for: one atomic load, for code that cannot await.
    pub(crate) fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Resolves once it was asked for.
    pub(crate) async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// What the future answers; `None`, and the future dropped, if the user interrupts first.
    pub(crate) async fn or<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.token.run_until_cancelled(future).await
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn register() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals {
    ctrl_c: tokio::signal::windows::CtrlC,
}

#[cfg(windows)]
impl Signals {
    fn register() -> io::Result<Self> {
        Ok(Self { ctrl_c: tokio::signal::windows::ctrl_c()? })
    }

    async fn next(&mut self) {
        self.ctrl_c.recv().await;
    }
}
