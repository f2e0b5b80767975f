//! The schema: its name, the scripts that make it, and installing them.

use std::fmt;

use super::failure::{Effect, Failure};
use super::pool::Connected;
use crate::error::StoreError;

/// The version of the tables and procedures that this build works with.
pub(super) const VERSION: i32 = 1;

/// Tables, then what reads them, then the operations, then who may call them. Batches are separated by lines that say `GO`.
const SCRIPTS: [&str; 13] = [
    include_str!("sql/tables.sql"),
    include_str!("sql/view.sql"),
    include_str!("sql/lock.sql"),
    include_str!("sql/found.sql"),
    include_str!("sql/provision.sql"),
    include_str!("sql/acquire.sql"),
    include_str!("sql/renew.sql"),
    include_str!("sql/renew_many.sql"),
    include_str!("sql/publish.sql"),
    include_str!("sql/ending.sql"),
    include_str!("sql/reading.sql"),
    include_str!("sql/operators.sql"),
    include_str!("sql/roles.sql"),
];

/// Says which version this is, once everything else is there.
const FINISH: &str = "UPDATE $(schema).LeaseholdStore SET SchemaVersion = 1 WHERE Id = 1;";

/// The name of a schema: checked, and quoted wherever it is used.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SchemaName {
    name: String,
}

impl SchemaName {
    /// SQL Server's own limit for an identifier, in UTF-16 units.
    const MAX_UNITS: usize = 128;

    pub(super) fn new(name: &str) -> Result<Self, StoreError> {
        let units = name.encode_utf16().count();
        if units == 0 || units > Self::MAX_UNITS {
            return Err(StoreError::invalid(format!(
                "a schema name has 1 to {} characters, and this one has {units}: choose another",
                Self::MAX_UNITS
            )));
        }
        if name.chars().any(char::is_control) {
            return Err(StoreError::invalid("a schema name has no control characters: choose another"));
        }
        Ok(Self { name: name.to_owned() })
    }

    /// `[name]`, with every `]` doubled.
    pub(super) fn quoted(&self) -> String {
        format!("[{}]", self.name.replace(']', "]]"))
    }

    /// The quoted name for use inside a string literal, with every `'` doubled.
    fn quoted_in_text(&self) -> String {
        self.quoted().replace('\'', "''")
    }

    /// Puts the name into a script.
    fn fill(&self, script: &str) -> String {
        let in_text = self.quoted_in_text();
        let quoted = self.quoted();
        // Apart, so that a schema whose own name looks like a place to fill is not filled.
        script.split("$(schema_text)").map(|part| part.replace("$(schema)", &quoted)).collect::<Vec<_>>().join(&in_text)
    }
}

impl fmt::Debug for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.name, f)
    }
}

/// What makes or mends the schema, batch by batch, inside one transaction.
fn batches(schema: &SchemaName) -> Vec<String> {
    let mut batches = vec![create_schema(schema)];
    let mut scripts = split(SCRIPTS[0]);
    // The table of the version is first; what is newer than this build is left alone.
    let rest = scripts.split_off(2);
    batches.extend(scripts.iter().map(|batch| schema.fill(batch)));
    batches.push(schema.fill(&refuse_newer()));
    batches.extend(rest.iter().map(|batch| schema.fill(batch)));
    let modules: Vec<&str> = SCRIPTS[1..].iter().copied().flat_map(split).collect();
    batches.extend(modules.iter().rev().filter_map(|batch| drop_module(batch)).map(|batch| schema.fill(&batch)));
    batches.extend(modules.iter().map(|batch| schema.fill(batch)));
    batches.push(schema.fill(FINISH));
    batches
}

fn create_schema(schema: &SchemaName) -> String {
    let quoted = schema.quoted();
    let name = schema.name.replace('\'', "''");
    format!("IF SCHEMA_ID(N'{name}') IS NULL EXEC(N'CREATE SCHEMA {}');", quoted.replace('\'', "''"))
}

fn refuse_newer() -> String {
    format!(
        "IF EXISTS (SELECT 1 FROM $(schema).LeaseholdStore WHERE SchemaVersion > {VERSION})\n    \
         THROW 51802, N'this schema was installed by a newer version of leasehold', 1;"
    )
}

/// Splits at lines that say `GO`.
fn split(script: &'static str) -> Vec<&'static str> {
    script.split("\nGO\n").map(str::trim).filter(|batch| !batch.is_empty()).collect()
}

/// What removes the procedure or view that a batch creates; every batch of an older version is replaced.
fn drop_module(batch: &str) -> Option<String> {
    let line = batch.lines().find(|line| line.starts_with("CREATE "))?;
    let mut words = line.split_whitespace().skip(1);
    let (kind, name) = (words.next()?, words.next()?.strip_prefix("$(schema).")?);
    let code = match kind {
        "PROCEDURE" => "P",
        "VIEW" => "V",
        _ => return None,
    };
    Some(format!("IF OBJECT_ID(N'$(schema_text).{name}', N'{code}') IS NOT NULL DROP {kind} $(schema).{name};"))
}

/// The whole script, for a DBA: the same batches as [`install`] runs, in one transaction.
pub(super) fn script(schema: &SchemaName) -> String {
    let mut script = format!(
        "-- leasehold, schema version {VERSION}, for the schema {}. Run it in the database that is to hold the reports, with a login\n\
         -- that may create tables, procedures and roles. It may be run again; rows are kept. If the table comes from the article,\n\
         -- stop its old workers first: what they write goes past the ledger. Then add logins to the roles leasehold_worker and\n\
         -- leasehold_operator.\n\
         SET XACT_ABORT ON;\nSET NOCOUNT ON;\nBEGIN TRANSACTION;\n{LOCK_INSTALLATION}\nGO\n",
        schema.quoted()
    );
    for batch in batches(schema) {
        script.push_str(&batch);
        // After a failure the transaction is gone: nothing that follows may run outside one.
        script.push_str("\nGO\nIF @@TRANCOUNT = 0 SET NOEXEC ON;\nGO\n");
    }
    script.push_str("COMMIT TRANSACTION;\nGO\nSET NOEXEC OFF;\nGO\n");
    script
}

/// Two installations at once would create the same table twice.
const LOCK_INSTALLATION: &str =
    "EXEC sp_getapplock @Resource = N'leasehold.install', @LockMode = N'Exclusive', @LockOwner = N'Transaction';";

/// Runs the batches in one transaction. The connection is used for nothing else afterwards unless it succeeds.
pub(super) async fn install(connection: &mut Connected, schema: &SchemaName) -> Result<(), Failure> {
    run(connection, &format!("SET XACT_ABORT ON; BEGIN TRANSACTION; {LOCK_INSTALLATION}")).await?;
    for batch in batches(schema) {
        run(connection, &batch).await?;
    }
    run(connection, "COMMIT TRANSACTION; SET XACT_ABORT OFF;").await
}

async fn run(connection: &mut Connected, batch: &str) -> Result<(), Failure> {
    let client = connection.client();
    let run = async { client.simple_query(batch).await?.into_results().await.map(drop) };
    run.await.map_err(|error| Failure::of(error, Effect::Writes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(name: &str) -> SchemaName {
        SchemaName::new(name).expect("a schema name")
    }

    #[test]
    fn a_name_is_quoted_whatever_is_in_it() {
        for (name, quoted, in_text) in [
            ("dbo", "[dbo]", "[dbo]"),
            ("o'brien", "[o'brien]", "[o''brien]"),
            ("a]; DROP TABLE x; --", "[a]]; DROP TABLE x; --]", "[a]]; DROP TABLE x; --]"),
            ("報告", "[報告]", "[報告]"),
            ("$(schema)", "[$(schema)]", "[$(schema)]"),
        ] {
            assert_eq!(schema(name).quoted(), quoted);
            assert_eq!(schema(name).fill("$(schema).T N'$(schema_text).T'"), format!("{quoted}.T N'{in_text}.T'"));
        }
    }

    #[test]
    fn a_name_that_no_schema_can_have_is_invalid() {
        for bad in ["", "a\nb", "a\0b", &"x".repeat(129), &"🦀".repeat(65)] {
            assert_eq!(SchemaName::new(bad).unwrap_err().kind(), crate::StoreErrorKind::Invalid, "{bad:?}");
        }
        assert!(SchemaName::new(&"x".repeat(128)).is_ok());
    }

    #[test]
    fn every_place_in_every_script_is_filled() {
        let script = script(&schema("reports"));
        assert!(!script.contains("$("), "a place is left");
        assert!(script.contains("CREATE PROCEDURE [reports].LeaseholdAcquire"));
    }

    #[test]
    fn every_module_is_dropped_before_it_is_created() {
        let created: Vec<&str> = SCRIPTS[1..]
            .iter()
            .copied()
            .flat_map(split)
            .filter(|batch| batch.contains("CREATE PROCEDURE") || batch.contains("CREATE VIEW"))
            .collect();
        assert!(created.len() > 15, "{}", created.len());
        for batch in created {
            assert!(drop_module(batch).is_some(), "{batch}");
        }
    }

    #[test]
    fn the_version_in_the_script_is_this_builds() {
        assert!(FINISH.contains(&format!("SchemaVersion = {VERSION} ")));
    }
}
