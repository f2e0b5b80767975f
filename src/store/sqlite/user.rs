//! What keeps a user's own statements inside their transaction: no end of it, no write to the protocol's tables, no time
//! beyond the budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::schema::TABLES;
use crate::store::Budget;

/// How many steps of SQLite's machine lie between two looks at the budget: far below a millisecond.
const STEPS_PER_LOOK: i32 = 10_000;

/// Installed on a connection once, because installing an authorizer throws every prepared statement away; it acts only
/// while a user's statement is prepared and run.
#[derive(Debug, Default)]
pub(super) struct UserGuard {
    active: AtomicBool,
    budget: Mutex<Option<Budget>>,
}

impl UserGuard {
    /// Puts one on a connection.
    pub(super) fn install(connection: &mut Connection) -> rusqlite::Result<Arc<Self>> {
        let guard = Arc::new(Self::default());
        let authorizing = guard.clone();
        connection.authorizer(Some(move |context: AuthContext<'_>| authorizing.authorize(&context)))?;
        let limiting = guard.clone();
        connection.progress_handler(STEPS_PER_LOOK, Some(move || limiting.is_over()))?;
        Ok(guard)
    }

    /// Runs `statements` as a user's.
    pub(super) fn enforce<T>(&self, budget: Budget, statements: impl FnOnce() -> T) -> T {
        self.set(Some(budget));
        let result = statements();
        self.set(None);
        result
    }

    fn set(&self, budget: Option<Budget>) {
        self.active.store(budget.is_some(), Ordering::Relaxed);
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner) = budget;
    }

    fn is_over(&self) -> bool {
        self.active.load(Ordering::Relaxed)
            && self
                .budget
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some_and(|budget| budget.remaining() == Duration::ZERO)
    }

    fn authorize(&self, context: &AuthContext<'_>) -> Authorization {
        if self.active.load(Ordering::Relaxed) && !may(context.action) {
            Authorization::Deny
        } else {
            Authorization::Allow
        }
    }
}

/// Whether a user's statement may do this.
fn may(action: AuthAction<'_>) -> bool {
    match action {
        AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::Attach { .. }
        | AuthAction::Detach { .. }
        | AuthAction::Pragma { .. }
        | AuthAction::Unknown { .. } => false,
        // Renamed to a name of ours it would hide our table too, and SQLite does not tell the new name here.
        AuthAction::AlterTable { database_name, .. } if database_name.eq_ignore_ascii_case("temp") => false,
        AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name }
        | AuthAction::DropTable { table_name }
        | AuthAction::AlterTable { table_name, .. }
        | AuthAction::CreateIndex { table_name, .. }
        | AuthAction::DropIndex { table_name, .. }
        | AuthAction::CreateTrigger { table_name, .. }
        | AuthAction::CreateTempTrigger { table_name, .. } => !is_ours(table_name),
        // A temporary table of the same name would hide ours from the protocol's own statements. `temp.Name` makes one too,
        // and SQLite calls that an ordinary table.
        AuthAction::CreateTable { table_name }
        | AuthAction::CreateTempTable { table_name }
        | AuthAction::CreateView { view_name: table_name }
        | AuthAction::CreateTempView { view_name: table_name }
        | AuthAction::CreateVtable { table_name, .. } => !is_ours(table_name),
        _ => true,
    }
}

fn is_ours(table: &str) -> bool {
    TABLES.iter().any(|ours| ours.eq_ignore_ascii_case(table))
}
