//! A call: one statement in a transaction of its own, sent with it in one flight, run to its end in a task of its own.

use std::time::Duration;

use futures::future::join3;
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::PostgresStore;
use super::connections::{Connections, Lane, Lent};
use super::failure::{self, Failure};
use crate::error::StoreError;
use crate::store::Budget;

/// The longest part of a budget that is kept for the way of the server's answer.
const LONGEST_RESERVE: Duration = Duration::from_millis(200);

/// A statement with its values, owned, because the task that sends it outlives its caller.
pub(super) struct Statement {
    sql: String,
    values: Vec<(Box<dyn ToSql + Send + Sync>, Type)>,
    /// Whether it may change something.
    pub(super) writes: bool,
}

impl Statement {
    /// One that may change something.
    pub(super) fn writing(sql: String) -> Self {
        Self { sql, values: Vec::new(), writes: true }
    }

    /// One that only reads.
    pub(super) fn reading(sql: String) -> Self {
        Self { sql, values: Vec::new(), writes: false }
    }

    /// The next value, `$1` first. Types are given, not asked for: no statement is prepared.
    pub(super) fn with(mut self, value: impl ToSql + Send + Sync + 'static, type_: Type) -> Self {
        self.values.push((Box::new(value), type_));
        self
    }

    fn values(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.values.iter().map(|(value, type_)| (&**value as &(dyn ToSql + Sync), type_.clone())).collect()
    }
}

/// How a budget is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    lock: Duration,
    statement: Duration,
    answer: Duration,
}

impl Limits {
    /// The server gives up first, and says so while there is still time for its answer: what it gave up is surely not applied.
    /// The client waits a little beyond the budget for that.
    pub(super) fn of(budget: Budget) -> Self {
        let left = budget.remaining();
        let reserve = (left / 4).min(LONGEST_RESERVE);
        Self { lock: left - reserve, statement: left - reserve / 2, answer: left + reserve }
    }

    /// How long the client waits for the answer.
    pub(super) fn answer(&self) -> Duration {
        self.answer
    }

    /// For how long the session may keep its locks when the COMMIT does not arrive behind the statement. Of a client that was
    /// cut off in between the server would hear nothing until the system gives its connection up, hours later.
    fn idle(&self) -> String {
        format!("SET LOCAL idle_in_transaction_session_timeout = {}", whole_millis(self.statement))
    }

    /// The settings of the transaction; zero would be no limit.
    pub(super) fn settings(&self) -> String {
        format!(
            "SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = {}",
            whole_millis(self.lock),
            whole_millis(self.statement)
        )
    }
}

/// A limit as the server takes it: not zero, which is none, and not beyond its range of a few weeks.
pub(super) fn whole_millis(limit: Duration) -> u128 {
    limit.as_millis().clamp(1, i32::MAX as u128)
}

impl PostgresStore {
    /// Runs a statement in a transaction of its own, again while a passing conflict undoes it, and reads its rows.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        lane: Lane,
        statement: Statement,
        budget: Budget,
        read: impl FnOnce(Vec<Row>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (pool, writes) = (self.connections().pool(lane)?, statement.writes);
        let task = self.connections().runtime().spawn(async move {
            let mut last = None;
            loop {
                if let (true, Some(undone)) = (budget.is_spent(), last.take()) {
                    return Err(undone);
                }
                let lent = Lent::from(&pool, budget).await?;
                match attempt(&lent, &statement, budget).await {
                    Ok(rows) => {
                        lent.give_back();
                        return read(rows);
                    }
                    Err(Failure::Undone(error)) => {
                        // Every part of the flight was answered, so the connection is as it was.
                        lent.give_back();
                        last = Some(error);
                        tokio::time::sleep(pause(budget)).await;
                    }
                    Err(failure) => {
                        if matches!(failure, Failure::Lost(_)) {
                            // What broke this connection (a server that is gone, a network that swallows all) broke the
                            // idle ones too: the next call must not find that out for each of them, budget by budget.
                            pool.retain(|_, _| false);
                        }
                        return Err(failure.into_error());
                    }
                }
            }
        });
        joined(task, writes).await
    }
}

/// A short wait before the next attempt, with jitter, so that two that undo each other do not meet again.
fn pause(budget: Budget) -> Duration {
    Duration::from_millis(10).mul_f64(fastrand::f64()).min(budget.remaining())
}

/// Waits for a task that goes on if this is dropped.
pub(super) async fn joined<T>(task: JoinHandle<Result<T, StoreError>>, writes: bool) -> Result<T, StoreError> {
    task.await.unwrap_or_else(|error| {
        let why = if error.is_panic() { "panicked" } else { "was ended with its runtime" };
        Err(failure::no_answer(writes, &format!("the task of this call {why}")).with_source(error))
    })
}

/// One flight: BEGIN, the statement, COMMIT.
async fn attempt(lent: &Lent, statement: &Statement, budget: Budget) -> Result<Vec<Row>, Failure> {
    let Some(client) = lent.client() else {
        return Err(StoreError::unavailable("the connection was closed before anything was sent: try again").into());
    };
    let limits = Limits::of(budget);
    let before = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}; {}", limits.settings(), limits.idle());
    flight(client, &before, statement, limits).await
}

/// Sends what comes before, the statement and COMMIT together, and waits for all three answers.
///
/// If the statement fails, the transaction is over and the COMMIT rolls it back.
pub(super) async fn flight(
    client: &Client,
    before: &str,
    statement: &Statement,
    limits: Limits,
) -> Result<Vec<Row>, Failure> {
    let values = statement.values();
    // Polled in this order, and each is sent when it is first polled.
    let together = join3(
        client.batch_execute(before),
        client.query_typed(&statement.sql, &values),
        client.batch_execute("COMMIT"),
    );
    let Ok((begun, rows, committed)) = tokio::time::timeout(limits.answer(), together).await else {
        let message = "the server did not answer until the budget ended";
        return Err(Failure::Lost(failure::no_answer(statement.writes, message)));
    };
    if let Err(error) = begun {
        return Err(match rows {
            // Without its BEGIN the statement was a transaction of its own, and it was done.
            Ok(_) => {
                Failure::Lost(failure::no_answer(statement.writes, "the server began no transaction for the statement"))
            }
            // Of several errors the first is the cause.
            Err(_) => failure::of_flight(&error, statement.writes),
        });
    }
    let rows = rows.map_err(|error| failure::of_flight(&error, statement.writes))?;
    committed.map_err(|error| failure::of_flight(&error, statement.writes))?;
    Ok(rows)
}

impl Connections {
    /// Runs other work on the runtime of the connections, to its end.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        writes: bool,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        joined(self.runtime().spawn(work), writes).await
    }
}
