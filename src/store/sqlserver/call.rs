//! One call of a stored procedure: run to its end, inside its budget, and again if the server rolled it back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use tiberius::{Command, CommandItem, Row};
use tokio::time::timeout;
use uuid::Uuid;

use super::connection::Client;
use super::failure::{Answered, Effect, Failure, unanswered};
use super::pool::{AnyPool, Connected};
use super::{Lane, SqlServerStore};
use crate::error::StoreError;
use crate::store::{Budget, Payload};

/// How long after the budget a call may still be answered. The server was told to stop waiting for locks well before, so an answer
/// that is certain is on its way.
const GRACE: Duration = Duration::from_millis(100);

/// How often a call is run, if it is rolled back each time.
const MAX_ATTEMPTS: usize = 10;

/// A procedure with its arguments.
#[derive(Debug)]
pub(super) struct Call {
    procedure: &'static str,
    effect: Effect,
    arguments: Vec<(&'static str, Argument)>,
}

/// An argument's value. There is no NULL: not every server takes one here, so what is absent is left out.
#[derive(Debug)]
pub(super) enum Argument {
    Id(Uuid),
    Int(i32),
    Long(i64),
    Bit(bool),
    Text(String),
    Payload(Payload),
}

impl Call {
    /// Of a procedure that changes something, and may wait for a lock.
    pub(super) fn writing(procedure: &'static str) -> Self {
        Self { procedure, effect: Effect::Writes, arguments: Vec::new() }
    }

    /// Of a procedure that only reads.
    pub(super) fn reading(procedure: &'static str) -> Self {
        Self { procedure, effect: Effect::Reads, arguments: Vec::new() }
    }

    pub(super) fn with(mut self, name: &'static str, value: Argument) -> Self {
        self.arguments.push((name, value));
        self
    }

    pub(super) fn with_some(self, name: &'static str, value: Option<Argument>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    fn command(&self, schema: &str, budget: Budget) -> Command<'_> {
        let mut command = Command::new(format!("{schema}.{}", self.procedure));
        for (name, value) in &self.arguments {
            match value {
                Argument::Id(id) => command.bind_param(*name, *id),
                Argument::Int(number) => command.bind_param(*name, *number),
                Argument::Long(number) => command.bind_param(*name, *number),
                Argument::Bit(bit) => command.bind_param(*name, *bit),
                Argument::Text(text) => command.bind_param(*name, text.as_str()),
                Argument::Payload(payload) => command.bind_param(*name, payload.as_str()),
            }
        }
        if self.effect == Effect::Writes {
            command.bind_param("@WaitMillis", i32::try_from(budget.remaining().as_millis()).unwrap_or(i32::MAX));
        }
        command
    }

    /// Sends it, and reads its answer to the end: an error may follow the rows.
    pub(super) async fn run(&self, client: &mut Client, schema: &str, budget: Budget) -> Result<Answer, Failure> {
        let command = self.command(schema, budget);
        let mut sets = Vec::new();
        let limit = budget.remaining() + GRACE;
        match timeout(limit, read(command, client, &mut sets)).await {
            Ok(Ok(())) => Ok(Answer(sets)),
            Ok(Err(error)) => Err(Failure::after(error, self.effect, Answer(sets).extent())),
            Err(_) => Err(Failure::Lost(unanswered(self.effect))),
        }
    }
}

/// Reads the result sets as they come, so that an error finds those before it.
async fn read(command: Command<'_>, client: &mut Client, sets: &mut Vec<Vec<Row>>) -> tiberius::Result<()> {
    let mut items = command.exec(client).await?;
    while let Some(item) = items.try_next().await? {
        match item {
            CommandItem::Metadata(_) => sets.push(Vec::new()),
            CommandItem::Row(row) => match sets.last_mut() {
                Some(set) => set.push(row),
                None => sets.push(vec![row]),
            },
            _ => {}
        }
    }
    Ok(())
}

/// The result sets of a call.
#[derive(Debug)]
pub(super) struct Answer(Vec<Vec<Row>>);

impl Answer {
    /// The rows of a result set.
    pub(super) fn rows(&self, set: usize) -> &[Row] {
        self.0.get(set).map_or(&[], Vec::as_slice)
    }

    /// The first row of the last result set: what the call did.
    pub(super) fn outcome(&self) -> Option<&Row> {
        self.0.last().and_then(|rows| rows.first())
    }

    /// How much of an answer this is.
    fn extent(&self) -> Answered {
        let says_what_it_did = |row: &Row| row.columns().iter().any(|column| column.name() == "Applied");
        match self.outcome() {
            Some(row) if says_what_it_did(row) => Answered::WhatItDid,
            _ if self.0.is_empty() => Answered::Nothing,
            _ => Answered::WhatItFound,
        }
    }
}

impl SqlServerStore {
    /// Runs a call in a task of its own, which owns the connection and goes on if this future is dropped.
    pub(super) async fn call(&self, lane: Lane, budget: Budget, call: Call) -> Result<Answer, StoreError> {
        if budget.is_spent() {
            return Err(spent());
        }
        let effect = call.effect;
        let sent = Arc::new(AtomicBool::new(false));
        let task =
            attempts(Arc::clone(self.pool(lane)), Arc::clone(&self.inner.quoted), budget, call, Arc::clone(&sent));
        match self.inner.runtime.spawn(task).await {
            Ok(answer) => answer,
            Err(_) if sent.load(Ordering::Acquire) => Err(unanswered(effect)),
            Err(_) => Err(StoreError::unavailable("the runtime that this store's connections belong to was shut down")),
        }
    }
}

async fn attempts(
    pool: Arc<dyn AnyPool>,
    schema: Arc<str>,
    budget: Budget,
    call: Call,
    sent: Arc<AtomicBool>,
) -> Result<Answer, StoreError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let Ok(connected) = timeout(budget.remaining(), pool.get()).await else {
            return Err(StoreError::unavailable("no connection to the server was had within the budget: try again"));
        };
        let mut connected = connected?;
        if budget.is_spent() {
            connected.keep();
            return Err(spent());
        }
        sent.store(true, Ordering::Release);
        match call.run(connected.client(), &schema, budget).await {
            Ok(answer) => {
                connected.keep();
                return Ok(answer);
            }
            Err(Failure::Again(error)) if attempt == MAX_ATTEMPTS || budget.is_spent() => return Err(error),
            Err(Failure::Again(error)) => {
                // Rolled back, surely: nothing of it is on its way any more.
                sent.store(false, Ordering::Release);
                tracing::debug!(%error, attempt, "running a call again");
                // A connection that does not answer is not waited for beyond the budget; it is thrown away.
                let _ = timeout(budget.remaining(), mend(connected)).await;
            }
            Err(Failure::Refused(error)) => {
                tokio::spawn(mend(connected));
                return Err(error);
            }
            Err(Failure::Lost(error)) => return Err(error),
        }
    }
}

/// How long a connection may take to show that it goes on.
const MENDING: Duration = Duration::from_secs(5);

/// Gives a connection whose last call was refused, or left a transaction open, back to its pool, once it has answered to a call that
/// ends whatever is open; until then nothing says that the old answer was read to its end. If it does not answer well, it is thrown
/// away.
pub(super) async fn mend(mut connected: Connected) {
    let client = connected.client();
    let answered = async {
        client.simple_query("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; SET XACT_ABORT OFF;").await?.into_results().await
    };
    if matches!(timeout(MENDING, answered).await, Ok(Ok(_))) {
        connected.keep();
    }
}

pub(super) fn spent() -> StoreError {
    StoreError::unavailable("the budget was spent before anything was sent")
}
