//! Installs the schema, and brings an older one up to date.

use std::fmt;

use uuid::Uuid;

use super::PostgresStore;
use super::call::{Limits, Statement};
use super::connections::{Lane, Lent, Settings};
use super::failure;
use super::rows::get;
use crate::error::StoreError;
use crate::store::Budget;

/// The version that this build knows.
pub(super) const VERSION: u32 = 1;

/// The namespace of the ids of scripts.
const SCRIPTS: Uuid = Uuid::from_u128(0x2f3c_6f0a_91d4_5c58_8a77_6c65_6173_6502);

/// The script in its order.
const PARTS: [&str; 12] = [
    include_str!("sql/begin.sql"),
    include_str!("sql/tables.sql"),
    include_str!("sql/lock_row.sql"),
    include_str!("sql/provision.sql"),
    include_str!("sql/acquire.sql"),
    include_str!("sql/renew.sql"),
    include_str!("sql/renew_many.sql"),
    include_str!("sql/publish.sql"),
    include_str!("sql/close.sql"),
    include_str!("sql/reading.sql"),
    include_str!("sql/operators.sql"),
    include_str!("sql/rights.sql"),
];

/// The name of a schema or role. Shown in quotation marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name(String);

impl Name {
    /// A name of letters, digits and underscores that PostgreSQL does not cut: nothing in it needs escaping, wherever in the
    /// script it stands.
    pub(super) fn new(what: &str, name: String) -> Result<Self, StoreError> {
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if begins_well && is_plain && name.len() <= 63 && !name.starts_with("pg_") {
            return Ok(Self(name));
        }
        Err(StoreError::invalid(format!(
            "a {what} of leasehold has a name of 1 to 63 ASCII letters, digits and underscores that begins with no digit and \
             not with pg_: choose another"
        )))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

/// The whole script for these names.
pub(super) fn script(settings: &Settings) -> String {
    let Settings { schema, worker, operator, .. } = settings;
    let text = PARTS
        .concat()
        .replace("leasehold.", &format!("{schema}."))
        .replace("{schema}", &schema.to_string())
        .replace("{worker}", &worker.to_string())
        .replace("{operator}", &operator.to_string())
        .replace("{worker_name}", &worker.0)
        .replace("{operator_name}", &operator.0)
        .replace("{version}", &VERSION.to_string());
    let id = Uuid::new_v5(&SCRIPTS, text.as_bytes());
    text.replace("{script}", &id.to_string())
}

/// Which script `text` is.
fn id_of(text: &str) -> &str {
    text.rsplit("script = '").next().and_then(|rest| rest.get(..36)).unwrap_or_default()
}

/// Runs the script, unless it was run last.
pub(super) async fn install(store: &PostgresStore, budget: Budget) -> Result<(), StoreError> {
    let script = script(store.settings());
    if installed(store, budget).await?.is_some_and(|id| id.to_string() == id_of(&script)) {
        return Ok(());
    }
    let pool = store.connections().pool(Lane::Ordinary)?;
    store
        .connections()
        .run(true, async move {
            let lent = Lent::from(&pool, budget).await?;
            let client = lent.client().ok_or_else(|| failure::no_answer(false, "the connection was closed"))?;
            let limits = Limits::of(budget);
            // The settings of the budget go into the script's own transaction.
            let text = script.replacen("SET LOCAL ", &format!("{}; SET LOCAL ", limits.settings()), 1);
            match tokio::time::timeout(limits.answer(), client.batch_execute(&text)).await {
                Ok(Ok(())) => {
                    lent.give_back();
                    Ok(())
                }
                Ok(Err(error)) => Err(failure::of_flight(&error, true).into_error()),
                Err(_) => Err(StoreError::unknown(
                    "the server did not finish the installation until the budget ended: run it again, it does what is missing",
                )),
            }
        })
        .await
}

/// Which script was run last; `None` if none was.
async fn installed(store: &PostgresStore, budget: Budget) -> Result<Option<Uuid>, StoreError> {
    let exists = format!("SELECT to_regclass('{}.leasehold_store') IS NOT NULL AS exists", store.settings().schema);
    let exists = store
        .call(Lane::Ordinary, Statement::reading(exists), budget, |rows| {
            rows.first().map_or(Ok(false), |row| get(row, "exists"))
        })
        .await?;
    if !exists {
        return Ok(None);
    }
    let id = format!("SELECT script FROM {}.leasehold_store", store.settings().schema);
    store
        .call(Lane::Ordinary, Statement::reading(id), budget, |rows| {
            rows.first().map_or(Ok(None), |row| get(row, "script"))
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_need_escaping_is_refused() {
        for good in ["leasehold", "_a1", "Reports"] {
            assert!(Name::new("schema", good.to_owned()).is_ok(), "{good}");
        }
        let long = "a".repeat(64);
        for bad in ["", "1a", "a-b", "a b", "a\"b", "a'b", "a;b", "a$$b", "a.b", "ä", "pg_catalog", &long] {
            let error = Name::new("schema", bad.to_owned()).unwrap_err();
            assert_eq!(error.kind(), crate::StoreErrorKind::Invalid, "{bad}");
        }
    }
}
