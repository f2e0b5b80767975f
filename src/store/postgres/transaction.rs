//! The fenced transaction: a user's own statements that are committed with the publication or not at all.

use std::fmt;

use futures::future::join;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::PostgresStore;
use super::call::{Limits, Statement, flight, whole_millis};
use super::connections::{Lane, Lent};
use super::failure::{self, Failure};
use super::publications::{accepted, decision};
use super::rows::Answer;
use crate::answer::PublishAnswer;
use crate::error::StoreError;
use crate::store::decide::Publish;
use crate::store::{Budget, FencedTransaction, PublishRequest};

/// Statements of the user's own, on tables of the user's own in the same database, that are committed together with one
/// publication or not at all.
///
/// They run at once, in a READ COMMITTED transaction on a connection of its own. The report's row is locked only in the final
/// trip, so a client that is stopped before keeps no lease from anybody; what it locked in its own tables is let go by the
/// server after the builder's [`idle_limit`](super::PostgresBuilder::idle_limit). The statements run with the rights of this
/// login, which cannot touch leasehold's own tables.
///
/// They may not end the transaction; a publication after a `COMMIT` of the user's own is refused. Session settings and
/// temporary tables go with the connection, which is thrown away at the end.
///
/// Dropping it applies nothing.
#[must_use = "a transaction that is dropped applies nothing"]
pub struct PostgresTransaction {
    store: PostgresStore,
    /// `None` once a statement's future was dropped, or a statement got no answer.
    lent: Option<Lent>,
    mark: String,
}

impl fmt::Debug for PostgresTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTransaction").field("usable", &self.lent.is_some()).finish_non_exhaustive()
    }
}

pub(super) async fn begin(store: &PostgresStore, budget: Budget) -> Result<PostgresTransaction, StoreError> {
    let pool = store.connections().pool(Lane::Ordinary)?;
    let mark = Uuid::new_v4().to_string();
    let idle = whole_millis(store.settings().idle_limit);
    let sql = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = {idle}; \
         SET LOCAL leasehold_transaction.mark = '{mark}'"
    );
    let work = async move {
        let lent = Lent::from(&pool, budget).await?;
        let client = lent.client().ok_or_else(|| failure::no_answer(false, "the connection was closed"))?;
        match tokio::time::timeout(Limits::of(budget).answer(), client.batch_execute(&sql)).await {
            Ok(Ok(())) => Ok(lent),
            Ok(Err(error)) => Err(failure::of_flight(&error, false).into_error()),
            Err(_) => Err(failure::no_answer(false, "the server began no transaction until the budget ended")),
        }
    };
    let lent = store.connections().run(false, work).await?;
    Ok(PostgresTransaction { store: store.clone(), lent: Some(lent), mark })
}

impl PostgresTransaction {
    /// Runs one statement and says how many rows it changed. Its places `$1`, `$2` … take the values in order.
    ///
    /// ```no_run
    /// # async fn example(store: leasehold::store::postgres::PostgresStore) -> Result<(), leasehold::StoreError> {
    /// use std::time::Duration;
    /// use leasehold::store::{Budget, Store, postgres::Type};
    ///
    /// let budget = || Budget::within(Duration::from_secs(1));
    /// let mut transaction = store.begin(budget()).await?;
    /// let sql = "INSERT INTO invoices (customer, cents) VALUES ($1, $2)";
    /// transaction.execute(sql, &[(&"ACME", Type::TEXT), (&12_50_i64, Type::INT8)], budget()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Rejected`](crate::StoreErrorKind::Rejected) and [`Unavailable`](crate::StoreErrorKind::Unavailable) when the statement
    /// failed: all of the transaction is then rolled back, and every further call on it fails. Never
    /// [`Unknown`](crate::StoreErrorKind::Unknown), because nothing is committed here.
    ///
    /// # Cancel safety
    /// Dropping the future gives the whole transaction up.
    pub async fn execute(
        &mut self,
        sql: &str,
        values: &[(&(dyn ToSql + Sync), Type)],
        budget: Budget,
    ) -> Result<u64, StoreError> {
        self.bounded(budget, async |client| client.execute_typed(sql, values).await).await
    }

    /// Runs one query and gives its rows.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancel safety
    /// As [`execute`](Self::execute).
    pub async fn query(
        &mut self,
        sql: &str,
        values: &[(&(dyn ToSql + Sync), Type)],
        budget: Budget,
    ) -> Result<Vec<Row>, StoreError> {
        self.bounded(budget, async |client| client.query_typed(sql, values).await).await
    }

    /// Runs a statement of the user's within the budget. The connection is put back only after a success.
    async fn bounded<T>(
        &mut self,
        budget: Budget,
        statement: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let lent = self.lent.take().ok_or_else(given_up)?;
        if budget.is_spent() {
            return Err(StoreError::unavailable(
                "the budget was spent before the statement was sent, and the transaction is given up: give a longer one",
            ));
        }
        let client = lent.client().ok_or_else(timed_out)?;
        let limits = Limits::of(budget);
        let limit = {
            // The timer of the connections' runtime: the caller's may have none.
            let _runtime = self.store.connections().runtime().enter();
            tokio::time::sleep(limits.answer())
        };
        let settings = limits.settings();
        let together = join(client.batch_execute(&settings), statement(client));
        let answer = tokio::select! {
            biased;
            answer = together => answer,
            () = limit => return Err(failure::no_answer(false, "the statement was not answered until the budget ended")),
        };
        match answer {
            (Ok(()), Ok(result)) => {
                self.lent = Some(lent);
                Ok(result)
            }
            (Err(error), _) | (_, Err(error)) => Err(of_statement(&error)),
        }
    }
}

/// What an error of a user's own statement means: nothing was committed, whatever it is.
fn of_statement(error: &tokio_postgres::Error) -> StoreError {
    let failed = match error.as_db_error().map(|said| said.code().code().to_owned()).as_deref() {
        // Not the schema of leasehold, nor its rights: the user's own.
        Some(code @ ("42501" | "42883" | "42P01" | "42704" | "3F000" | "23505")) => StoreError::rejected(format!(
            "a statement of the transaction failed (SQLSTATE {code}{})",
            error
                .as_db_error()
                .and_then(|said| said.constraint())
                .map(|name| format!(", constraint {name}"))
                .unwrap_or_default()
        )),
        _ => failure::of_flight(error, false).into_error(),
    };
    StoreError::new(failed.kind(), format!("{failed}; all of the transaction is rolled back"))
}

fn given_up() -> StoreError {
    StoreError::rejected("an earlier statement of the transaction failed or was dropped: begin another transaction")
}

fn timed_out() -> StoreError {
    StoreError::unavailable(
        "the server ended the transaction, and nothing of it was applied: begin it again, and raise idle_limit if it waits long \
         between its statements",
    )
}

impl FencedTransaction for PostgresTransaction {
    async fn publish(self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        let Self { store, lent, mark } = self;
        let lent = lent.ok_or_else(given_up)?;
        if budget.is_spent() {
            return Err(StoreError::unavailable("the budget was spent before anything was sent: give a longer one"));
        }
        let sql = store.function("publish_in_transaction($1, $2, $3, $4, $5, $6, $7, $8)");
        let statement = Statement::writing(sql).with(mark, Type::TEXT).with_publication(&request);
        let publication = request.clone();
        let last_trip = async move {
            let client = lent.client().ok_or_else(timed_out)?;
            let limits = Limits::of(budget);
            match flight(client, &limits.settings(), &statement, limits).await {
                Ok(rows) => {
                    let found = Answer::one(&rows, Some(publication.fence.owner), Some(publication.operation))?;
                    let published = PublishAnswer::Published(accepted(&found, &publication, None));
                    match decision(&found, &publication, None) {
                        Publish::Accept => found.agrees(true, Some(published)),
                        Publish::Answer(_) => Err(failure::disagreement(true)),
                    }
                }
                Err(Failure::NotAccepted) => Ok(None),
                Err(failure) => Err(failure.into_error()),
            }
        };
        match store.connections().run(true, last_trip).await? {
            Some(published) => Ok(published),
            None => judge(&store, request, budget).await,
        }
    }

    async fn rollback(self, budget: Budget) -> Result<(), StoreError> {
        let Some(lent) = self.lent else { return Ok(()) };
        let work = async move {
            // A connection that is closed, or is now, has rolled back as well.
            if let Some(client) = lent.client() {
                let _ = tokio::time::timeout(budget.remaining(), client.batch_execute("ROLLBACK")).await;
            }
            Ok(())
        };
        self.store.connections().run(false, work).await
    }
}

/// Why the publication was not accepted: asked after the rollback, and an expiry that is seen then is recorded.
async fn judge(store: &PostgresStore, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
    // A next owner is an advance's, which a fenced transaction is not.
    let statement = Statement::writing(store.function("judge_publication($1, $2, $3, $4)"))
        .with(*request.fence.report.as_uuid(), Type::UUID)
        .with(*request.fence.owner.as_uuid(), Type::UUID)
        .with(*request.operation.as_uuid(), Type::UUID)
        .with(None::<Uuid>, Type::UUID);
    let mut judged = store
        .call(Lane::Ordinary, statement, budget, move |rows| {
            let found = Answer::one(&rows, Some(request.fence.owner), Some(request.operation))?;
            match decision(&found, &request, None) {
                Publish::Answer(answer) => Ok(Ok(answer)),
                Publish::Accept => Ok(Err(StoreError::unavailable(
                    "the publication was refused and all was rolled back, for a reason that has passed: run the transaction again",
                ))),
            }
        })
        .await;
    if let Err(error) = &mut judged {
        // Of the question only: the publication itself is surely rolled back.
        if error.kind() == crate::StoreErrorKind::Unknown {
            return Err(StoreError::unavailable(
                "the publication was refused and all was rolled back, and the server did not say in time why: run the \
                 transaction again",
            ));
        }
    }
    judged?
}
