//! A row's lock held by somebody else, and the calls that wait behind it.

use std::future::Future;

use tokio::task::JoinHandle;

use super::harness::{Blocker, BlockerEnd, Database};
use super::scene::Scene;
use crate::fence::ReportId;

/// Calls that wait for one row's lock, in the order in which they came.
///
/// Which of them the engine lets go first is the engine's affair. A case that races two calls accepts both orders and demands
/// that all answers agree on one.
pub(super) struct Queue<B> {
    blocker: B,
    waiting: usize,
}

/// A call under way.
pub(super) struct Call<T>(JoinHandle<T>);

impl<D: Database> Scene<D> {
    /// Takes the row's lock as somebody else. Nothing may be written to the database behind the store's back until it is let
    /// go: some engines have one lock for everything.
    pub(super) async fn hold(&self, report: ReportId, end: BlockerEnd) -> Queue<D::Blocker> {
        Queue { blocker: self.db.block(report, end).await, waiting: 0 }
    }
}

impl<B: Blocker> Queue<B> {
    /// Sends a call, and returns once it waits for the lock. Each call needs a worker of its own.
    pub(super) async fn call<T: Send + 'static>(&mut self, call: impl Future<Output = T> + Send + 'static) -> Call<T> {
        let call = Call::send(call);
        self.waiting += 1;
        self.blocker.wait_for_waiters(self.waiting).await;
        call
    }

    /// Lets the lock go.
    pub(super) async fn let_go(self) {
        self.blocker.release().await;
    }
}

impl<T: Send + 'static> Call<T> {
    /// Sends a call that need not wait for anything.
    pub(super) fn send(call: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(call))
    }

    /// What it answered; a panic of the call is a panic here.
    pub(super) async fn answer(self) -> T {
        match self.0.await {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => panic!("the call's task ended: {error}"),
            },
        }
    }
}
