//! The tables as they are: many reports made at once, and the truth about each looked up past the store.

use std::collections::HashMap;
use std::fmt::Write;

use leasehold::ReportId;
use uuid::Uuid;

use crate::sqlserver::{Schema, rows};
use crate::subject::{HELD_FOR_HOURS, Operation, Subject};

/// As many rows as one statement makes.
const CHUNK: usize = 500;

/// Reports as the store leaves them before this operation: provisioned for an acquisition, else held under generation 1. They are
/// made past the store, because thousands are needed.
pub(crate) async fn prepare(schema: &Schema, operation: Operation, count: usize) -> Vec<Subject> {
    let subjects: Vec<Subject> = (0..count).map(|_| Subject::fresh()).collect();
    let held = operation != Operation::Acquire;
    for chunk in subjects.chunks(CHUNK) {
        let mut json = String::new();
        for subject in chunk {
            let separator = if json.is_empty() { '[' } else { ',' };
            write!(json, r#"{separator}{{"r":"{}","w":"{}"}}"#, subject.report, subject.owner).expect("a String");
        }
        json.push(']');
        let lease = if held {
            format!(
                "1, v.w, DATEADD(hour, {HELD_FOR_HOURS}, CAST(SYSUTCDATETIME() AS datetime2(6))), N'at the wire', SYSUTCDATETIME()"
            )
        } else {
            "0, NULL, NULL, NULL, NULL".to_owned()
        };
        let sql = format!(
            "INSERT INTO {}.ReportPublication (ReportId, Generation, LeaseOwner, LeaseUntilUtc, LeaseHolder, LeaseAcquiredAtUtc) \
             SELECT v.r, {lease} FROM OPENJSON(@P1) WITH (r uniqueidentifier '$.r', w uniqueidentifier '$.w') AS v",
            schema.name
        );
        let mut raw = schema.raw.lock().await;
        raw.execute(sql, &[&json.as_str()]).await.expect("rows for the test");
    }
    subjects
}

/// What the tables say about a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) generation: i64,
    pub(crate) owner: Option<Uuid>,
    pub(crate) published_generation: i64,
    pub(crate) payload: Option<String>,
    pub(crate) minutes_left: Option<i64>,
    /// The ledger's rows, each with its owner and operation.
    pub(crate) ledger: Vec<(Uuid, Option<Uuid>)>,
}

/// Everything in the tables.
pub(crate) async fn truth(schema: &Schema) -> HashMap<ReportId, Truth> {
    let mut raw = schema.raw.lock().await;
    let sql = format!(
        "SELECT ReportId, Generation, LeaseOwner, PublishedGeneration, Payload, \
         DATEDIFF_BIG(minute, SYSUTCDATETIME(), LeaseUntilUtc) AS MinutesLeft FROM {}.ReportPublication",
        schema.name
    );
    let mut all = HashMap::new();
    for row in rows(&mut raw, &sql, &[]).await {
        let report = ReportId::from_uuid(row.get("ReportId").expect("a key"));
        let truth = Truth {
            generation: row.get("Generation").expect("a number"),
            owner: row.get("LeaseOwner"),
            published_generation: row.get("PublishedGeneration").expect("a number"),
            payload: row.get::<&str, _>("Payload").map(str::to_owned),
            minutes_left: row.get("MinutesLeft"),
            ledger: Vec::new(),
        };
        all.insert(report, truth);
    }
    let sql = format!("SELECT ReportId, LeaseOwner, OperationId FROM {}.ReportLedger", schema.name);
    for row in rows(&mut raw, &sql, &[]).await {
        let report = ReportId::from_uuid(row.get("ReportId").expect("a report"));
        let entry = (row.get("LeaseOwner").expect("a key"), row.get("OperationId"));
        all.get_mut(&report).expect("a ledger row has its report").ledger.push(entry);
    }
    all
}
