//! The fenced transaction: a user's own statements that are committed with the publication or not at all.

use std::fmt;
use std::sync::Arc;

use tiberius::{Row, ToSql};

use super::call::{Argument, mend, spent};
use super::failure::{Effect, Failure, of_own_statement, unanswered};
use super::pool::Connected;
use super::publications::{answered, call};
use super::{Lane, SqlServerStore};
use crate::answer::PublishAnswer;
use crate::error::StoreError;
use crate::store::limit::within;
use crate::store::{Budget, FencedTransaction, PublishRequest};

/// What a user's transaction sees of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// Each statement sees what was committed before it.
    #[default]
    ReadCommitted,
    /// Rows that were read do not change.
    RepeatableRead,
    /// One moment for the whole transaction; the database must allow it.
    Snapshot,
    /// As if alone.
    Serializable,
}

impl Isolation {
    fn sql(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Snapshot => "SNAPSHOT",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// A transaction of the user's own statements that ends in a publication: committed with it, or rolled back.
///
/// Statements run at once, on a connection that this transaction owns, and hold the locks of the user's own rows until the end. The
/// report's row is locked only in the last trip, so that a worker that is stopped in between keeps no other worker from the report.
/// SQL Server has no limit for idle transactions: keep them short, and let TCP keep-alive end those of dead machines.
///
/// Any statement that fails rolls the transaction back (`XACT_ABORT`). A statement may not end the transaction itself.
///
/// Dropping it, or any of its futures, throws the connection away, which rolls back.
#[must_use = "a transaction that is dropped applies nothing"]
pub struct SqlServerTransaction {
    store: SqlServerStore,
    /// Gone once a statement failed or its future was dropped: nothing can be committed any more.
    connected: Option<Connected>,
}

impl fmt::Debug for SqlServerTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlServerTransaction").field("open", &self.connected.is_some()).finish_non_exhaustive()
    }
}

impl SqlServerStore {
    /// [`begin`](crate::store::Store::begin) with an isolation level of your choice for the statements of your own. Under one that
    /// keeps what it read, the publication can find that the row changed meanwhile: the answer is then
    /// [`Unavailable`](crate::StoreErrorKind::Unavailable), and the whole transaction is to be run again.
    ///
    /// # Errors
    /// As [`begin`](crate::store::Store::begin).
    ///
    /// # Cancel safety
    /// Dropping the future begins nothing.
    pub async fn begin_with(&self, isolation: Isolation, budget: Budget) -> Result<SqlServerTransaction, StoreError> {
        SqlServerTransaction::begin(self, isolation, budget).await
    }
}

impl SqlServerTransaction {
    pub(super) async fn begin(
        store: &SqlServerStore,
        isolation: Isolation,
        budget: Budget,
    ) -> Result<Self, StoreError> {
        if budget.is_spent() {
            return Err(spent());
        }
        let pool = Arc::clone(store.pool(Lane::Others));
        let begin = format!(
            "SET XACT_ABORT ON; SET IMPLICIT_TRANSACTIONS OFF; SET TRANSACTION ISOLATION LEVEL {}; \
             IF @@TRANCOUNT > 0 THROW 51800, N'a transaction is open on this connection', 1; BEGIN TRANSACTION;",
            isolation.sql()
        );
        let beginning = async move {
            let mut connected = pool.get().await?;
            let begun = async { connected.client().simple_query(begin).await?.into_results().await.map(drop) };
            begun.await.map_err(|error| Failure::of(error, Effect::Reads).into_error())?;
            Ok(connected)
        };
        let connected = store.bounded(budget, Effect::Reads, beginning).await?;
        Ok(Self { store: store.clone(), connected: Some(connected) })
    }

    /// Runs a statement with its arguments as `@P1`, `@P2` …, and says how many rows it changed.
    ///
    /// ```no_run
    /// # async fn example(store: leasehold::store::sqlserver::SqlServerStore) -> Result<(), leasehold::StoreError> {
    /// use std::time::Duration;
    /// use leasehold::store::{Budget, Store};
    ///
    /// let budget = || Budget::within(Duration::from_secs(5));
    /// let mut transaction = store.begin(budget()).await?;
    /// transaction.execute("UPDATE Invoices SET Paid = 1 WHERE Customer = @P1", &[&"ACME"], budget()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Rejected`](crate::StoreErrorKind::Rejected), with the server's error as its source, if the statement failed;
    /// [`Unavailable`](crate::StoreErrorKind::Unavailable) if it was not answered within the budget. The transaction is over then.
    ///
    /// # Cancel safety
    /// Dropping the future ends the transaction: everything is rolled back.
    pub async fn execute(&mut self, sql: &str, arguments: &[&dyn ToSql], budget: Budget) -> Result<u64, StoreError> {
        // Taken out for as long as it runs: a future that is dropped takes the connection with it.
        let mut connected = self.take()?;
        let executing = connected.client().execute(sql, arguments);
        let changed = own(within(&self.store.inner.runtime, budget.remaining(), executing).await)?;
        self.connected = Some(connected);
        Ok(changed.total())
    }

    /// Runs a query with its arguments as `@P1`, `@P2` …, and gives the rows of its first result set.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancel safety
    /// As [`execute`](Self::execute).
    pub async fn query(&mut self, sql: &str, arguments: &[&dyn ToSql], budget: Budget) -> Result<Vec<Row>, StoreError> {
        let mut connected = self.take()?;
        let queried = async { connected.client().query(sql, arguments).await?.into_first_result().await };
        let rows = own(within(&self.store.inner.runtime, budget.remaining(), queried).await)?;
        self.connected = Some(connected);
        Ok(rows)
    }

    fn take(&mut self) -> Result<Connected, StoreError> {
        self.connected.take().ok_or_else(|| {
            StoreError::rejected(
                "the transaction is over: a statement of it failed, was not answered in time, or was dropped. Nothing of it was \
                 applied; begin another",
            )
        })
    }
}

/// What became of a user's statement.
fn own<T>(result: Option<tiberius::Result<T>>) -> Result<T, StoreError> {
    match result {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(of_own_statement(error)),
        None => Err(StoreError::unavailable(
            "the statement was not answered within its budget, and the transaction was rolled back: begin another",
        )),
    }
}

impl FencedTransaction for SqlServerTransaction {
    async fn publish(mut self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        if budget.is_spent() {
            return Err(spent());
        }
        let mut connected = self.take()?;
        let quoted = Arc::clone(&self.store.inner.quoted);
        let publishing = async move {
            let call = call(&request).with("@InTransaction", Argument::Bit(true));
            let answer = call.run(connected.client(), &quoted, budget).await.map_err(Failure::into_error)?;
            let answered = answered(&answer, &request, None);
            // The procedure left an empty transaction open. The answer does not wait for its end.
            tokio::spawn(mend(connected));
            answered
        };
        match self.store.inner.runtime.spawn(publishing).await {
            Ok(answer) => answer,
            Err(_) => Err(unanswered(Effect::Writes)),
        }
    }

    async fn rollback(mut self, budget: Budget) -> Result<(), StoreError> {
        let Some(connected) = self.connected.take() else { return Ok(()) };
        self.store
            .bounded(budget, Effect::Reads, async {
                mend(connected).await;
                Ok(())
            })
            .await
    }
}
