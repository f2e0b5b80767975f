//! The fenced transaction: a user's own statements that are committed with the publication or not at all.

use std::fmt;

use rusqlite::types::ToSqlOutput;
use rusqlite::{ToSql, params_from_iter};

use super::SqliteStore;
use super::failure::{Failure, said, sourced};
use super::publications::{accept, decision};
use super::rows::Tx;
use super::thread::Needs;
use crate::answer::{PublishAnswer, Published};
use crate::error::StoreError;
use crate::store::decide::Publish;
use crate::store::{Budget, FencedTransaction, PublishRequest};

/// A value of a statement's parameter.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// `NULL`.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A 64-bit floating point number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl fmt::Debug for Value {
    /// Shows the kind and the size only: values belong in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Integer(_) => f.write_str("Integer"),
            Self::Real(_) => f.write_str("Real"),
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Blob(bytes) => write!(f, "Blob({} bytes)", bytes.len()),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        use rusqlite::types::ValueRef;
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

struct Statement {
    sql: String,
    values: Vec<Value>,
}

/// Statements of the user's own, on tables of the user's own in the same file, that are committed together with one
/// publication or not at all.
///
/// SQLite has one write lock for the whole file, and a client that is stopped while it holds the lock stops every writer.
/// So the statements are only *collected* here, and run in the final trip, inside the one transaction that publishes. They
/// see each other's changes; they cannot answer rows to the caller, so read beforehand with a connection of your own.
///
/// They may not end the transaction, attach files, set pragmas, or write to leasehold's own tables. Foreign keys are enforced.
///
/// Dropping it applies nothing.
#[must_use = "a transaction that is dropped applies nothing"]
pub struct SqliteTransaction {
    store: SqliteStore,
    statements: Vec<Statement>,
}

impl fmt::Debug for SqliteTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTransaction").field("statements", &self.statements.len()).finish_non_exhaustive()
    }
}

impl SqliteTransaction {
    pub(super) fn new(store: SqliteStore) -> Self {
        Self { store, statements: Vec::new() }
    }

    /// Adds one statement, to be run in the final trip after those added before. Its places `?1`, `?2` … take the values in
    /// order. Whether SQLite accepts it is learned there.
    ///
    /// ```
    /// # async fn example(store: leasehold::store::sqlite::SqliteStore) -> Result<(), leasehold::StoreError> {
    /// use std::time::Duration;
    /// use leasehold::store::{Budget, Store};
    ///
    /// let mut transaction = store.begin(Budget::within(Duration::from_secs(1))).await?;
    /// transaction.execute("INSERT INTO Invoices (Customer, Cents) VALUES (?1, ?2)", ["ACME".into(), 12_50.into()]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn execute(&mut self, sql: impl Into<String>, values: impl IntoIterator<Item = Value>) -> &mut Self {
        self.statements.push(Statement { sql: sql.into(), values: values.into_iter().collect() });
        self
    }
}

impl FencedTransaction for SqliteTransaction {
    async fn publish(self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        let Self { store, statements } = self;
        store
            .thread()
            .call(Needs::WriteLock, budget, move |session| {
                let clock = session.clock().clone();
                session.write(|tx| publish(tx, &request, &statements, budget, || clock.now()))
            })
            .await
    }

    async fn rollback(self, _: Budget) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The fence is checked twice under the one lock. Before the statements, so that a publication sent again is told that it was
/// accepted and not that its statements violate a key; after them, with a fresh clock, because they take time.
fn publish(
    tx: &Tx<'_>,
    request: &PublishRequest,
    statements: &[Statement],
    budget: Budget,
    clock: impl FnOnce() -> super::clock::Now,
) -> Result<PublishAnswer, Failure> {
    if let Publish::Answer(answer) = decision(tx, request, None)? {
        return Ok(answer);
    }
    tx.change("SAVEPOINT Statements", [])?;
    tx.guard.enforce(budget, || run(tx, statements))?;
    let tx = Tx { now: clock(), ..*tx };
    let row = tx.row(request.fence.report)?;
    if row.is_none_or(|row| !row.is_held_by(&request.fence)) {
        // Undo the statements, keep the transaction: that the lease was seen expired is recorded and committed.
        tx.change("ROLLBACK TO Statements", [])?;
        return match decision(&tx, request, None)? {
            Publish::Answer(answer) => Ok(answer),
            Publish::Accept => {
                Err(StoreError::rejected("the clock stepped back within a transaction: try again").into())
            }
        };
    }
    let receipt = accept(&tx, request)?;
    Ok(PublishAnswer::Published(Published { receipt, next: None }))
}

fn run(tx: &Tx<'_>, statements: &[Statement]) -> Result<(), Failure> {
    for (position, statement) in statements.iter().enumerate() {
        match run_one(tx, statement).map_err(Failure::from) {
            Err(Failure::Sql(error)) if is_the_statements_own(&error) => {
                let refused = refused(position, &said(&error));
                return Err(sourced(refused, error).into());
            }
            result => result?,
        }
        if tx.connection.is_autocommit() {
            return Err(refused(position, "it rolled the whole transaction back").into());
        }
    }
    Ok(())
}

/// Not cached: it is prepared under the user's rules each time. Rows it returns are stepped over.
fn run_one(tx: &Tx<'_>, statement: &Statement) -> rusqlite::Result<()> {
    let mut prepared = tx.connection.prepare(&statement.sql)?;
    let mut rows = prepared.query(params_from_iter(&statement.values))?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Not a matter of the disk, the file or the budget, which mean the same in every statement.
fn is_the_statements_own(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseCorrupt, DiskFull, NotADatabase, OperationInterrupted, OutOfMemory, ReadOnly,
        SystemIoFailure,
    };
    !matches!(
        error.sqlite_error_code(),
        Some(
            CannotOpen
                | DatabaseCorrupt
                | DiskFull
                | NotADatabase
                | OperationInterrupted
                | OutOfMemory
                | ReadOnly
                | SystemIoFailure
        )
    )
}

fn refused(position: usize, why: &str) -> StoreError {
    StoreError::rejected(format!(
        "statement {} of the transaction failed, and all of it was rolled back with the publication: mend the statement ({why})",
        position + 1
    ))
}
