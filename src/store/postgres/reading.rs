//! Read, metadata, inspect, list and check: no lock.

use std::time::SystemTime;

use tokio_postgres::types::Type;

use super::PostgresStore;
use super::call::Statement;
use super::connections::Lane;
use super::rows::{Answer, get};
use super::schema::VERSION;
use crate::answer::{CheckReport, ReadAnswer, ReportStatus, Version};
use crate::error::StoreError;
use crate::fence::{Epoch, ReportId};
use crate::store::decide::Row;
use crate::store::{Budget, ListRequest};

impl PostgresStore {
    /// The row without its lock.
    pub(super) async fn look(&self, report: ReportId, budget: Budget) -> Result<Option<Row>, StoreError> {
        let statement = Statement::reading(self.function("look($1)")).with(*report.as_uuid(), Type::UUID);
        self.call(Lane::Ordinary, statement, budget, |rows| {
            rows.first().map_or(Ok(None), |row| Ok(Answer::from(row, None, None)?.row))
        })
        .await
    }

    pub(super) async fn do_read(
        &self,
        report: ReportId,
        newer_than: Option<Version>,
        budget: Budget,
    ) -> Result<ReadAnswer, StoreError> {
        let sql = format!("SELECT (found).*, payload FROM {}.read($1, $2, $3)", self.settings().schema);
        let statement = Statement::reading(sql)
            .with(*report.as_uuid(), Type::UUID)
            .with(newer_than.map(|known| known.epoch.get()), Type::INT8)
            .with(newer_than.map(|known| known.generation.get()), Type::INT8);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let Some(columns) = rows.first() else { return Ok(ReadAnswer::Missing) };
            let Some(row) = Answer::from(columns, None, None)?.row else { return Ok(ReadAnswer::Missing) };
            let Some(visible) = row.visible else { return Ok(ReadAnswer::Unpublished) };
            if newer_than.is_some_and(|known| visible.version <= known) {
                return Ok(ReadAnswer::NotNewer(visible));
            }
            let payload = get::<Option<String>>(columns, "payload")?.ok_or_else(|| {
                StoreError::rejected(format!(
                    "the payload of report {report} is gone from report_payload: look who deleted it"
                ))
            })?;
            Ok(ReadAnswer::Found { visible, payload })
        })
        .await
    }

    pub(super) async fn do_list(&self, request: ListRequest, budget: Budget) -> Result<Vec<ReportStatus>, StoreError> {
        let statement = Statement::reading(self.function("list($1, $2, $3)"))
            .with(request.after.map(|report| *report.as_uuid()), Type::UUID)
            .with(i64::try_from(request.limit).unwrap_or(i64::MAX), Type::INT8)
            .with(request.leased_only, Type::BOOL);
        self.call(Lane::Ordinary, statement, budget, |rows| {
            rows.iter()
                .filter_map(|row| Answer::from(row, None, None).map(|found| Some(found.row?.status())).transpose())
                .collect()
        })
        .await
    }

    pub(super) async fn do_check(&self, budget: Budget) -> Result<CheckReport, StoreError> {
        let schema = &self.settings().schema;
        let sql = format!(
            "SELECT s.schema_version, s.recovery_epoch, s.now, \
                 current_setting('server_version') AS server, \
                 current_setting('server_version_num')::integer AS server_number, \
                 current_setting('transaction_isolation') AS isolation, \
                 current_setting('synchronous_commit') AS synchronous_commit, \
                 current_setting('fsync') AS fsync, \
                 current_setting('full_page_writes') AS full_page_writes, \
                 current_setting('transaction_read_only') AS read_only, \
                 pg_is_in_recovery() AS standby, \
                 has_function_privilege('{schema}.publish(uuid, uuid, bigint, bigint, uuid, text, bigint, uuid, bigint)', \
                                        'EXECUTE') AS worker, \
                 has_function_privilege('{schema}.prune_ledger(bigint)', 'EXECUTE') AS operator \
             FROM {schema}.store_state() AS s"
        );
        let sent = SystemTime::now();
        let statement = Statement::reading(sql);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let Some(row) = rows.first() else { return Err(lost_state()) };
            let set = |name| get::<String>(row, name);
            let schema_version: i32 = get(row, "schema_version")?;
            let mut problems = Vec::new();
            problems.extend(version_problem(schema_version));
            if get::<bool>(row, "standby")? || set("read_only")? == "on" {
                problems.push("the database is read-only here: connect to the primary server".to_owned());
            }
            for (setting, danger) in [
                ("synchronous_commit", "a crash of the server forgets leases and publications that were acknowledged"),
                ("fsync", "a crash of the server's machine can damage everything"),
                ("full_page_writes", "a crash of the server's machine can damage everything"),
            ] {
                if set(setting)? == "off" {
                    problems.push(format!("{setting} is off: {danger}"));
                }
            }
            if !get::<bool>(row, "worker")? {
                problems.push("this login may not publish: grant it the worker's role".to_owned());
            }
            if get::<i32>(row, "server_number")? < 130_000 {
                problems.push("the server is older than PostgreSQL 13, where nothing was tried".to_owned());
            }
            let operator = if get(row, "operator")? { "an operator's" } else { "a worker's" };
            Ok(CheckReport {
                engine: format!("PostgreSQL {}, with {operator} rights", set("server")?),
                schema_version: u32::try_from(schema_version).unwrap_or(0),
                epoch: Epoch::new(get(row, "recovery_epoch")?),
                isolation: format!(
                    "{} (named by each call), synchronous_commit {}",
                    set("isolation")?,
                    set("synchronous_commit")?
                ),
                problems,
                clock_offset_millis: offset(get(row, "now")?, sent),
            })
        })
        .await
    }
}

/// The server's clock minus the middle between the sending of the question and now.
fn offset(server: SystemTime, sent: SystemTime) -> i64 {
    let half_way = SystemTime::now().duration_since(sent).unwrap_or_default() / 2;
    let here = sent + half_way;
    let millis = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    match server.duration_since(here) {
        Ok(ahead) => millis(ahead),
        Err(behind) => -millis(behind.duration()),
    }
}

fn lost_state() -> StoreError {
    StoreError::rejected("the table leasehold_store has lost its row: restore a backup")
}

fn version_problem(installed: i32) -> Option<String> {
    let known = i32::try_from(VERSION).unwrap_or(i32::MAX);
    if installed > known {
        Some(format!(
            "the schema has version {installed}, and this build knows versions up to {known}: update leasehold here"
        ))
    } else if installed < known {
        Some(format!("the schema has version {installed}, and this build needs {known}: run install(), or its script"))
    } else {
        None
    }
}

/// Refuses a database whose schema is not this build's.
pub(super) async fn require_schema(store: &PostgresStore, budget: Budget) -> Result<(), StoreError> {
    let statement = Statement::reading(store.function("store_state()"));
    let installed = store
        .call(Lane::Ordinary, statement, budget, |rows| {
            rows.first().map_or_else(|| Err(lost_state()), |row| get::<Option<i32>>(row, "schema_version"))
        })
        .await?;
    match installed.map(version_problem) {
        None => Err(lost_state()),
        Some(Some(problem)) => Err(StoreError::rejected(problem)),
        Some(None) => Ok(()),
    }
}
