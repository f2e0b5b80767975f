//! The tables as they are: many reports made at once, and the truth about each looked up past the store.

use std::collections::HashMap;

use leasehold::ReportId;
use leasehold::store::postgres::Type;
use uuid::Uuid;

use crate::scene::Schema;
use crate::subject::{HELD_FOR_HOURS, Operation, Subject};

/// Reports as the store leaves them before this operation: provisioned for an acquisition, else held under generation 1. They are
/// made past the store, because thousands are needed.
pub(crate) async fn prepare(schema: &Schema, operation: Operation, count: usize) -> Vec<Subject> {
    let subjects: Vec<Subject> = (0..count).map(|_| Subject::fresh()).collect();
    let reports: Vec<Uuid> = subjects.iter().map(|subject| *subject.report.as_uuid()).collect();
    let owners: Vec<Uuid> = subjects.iter().map(|subject| *subject.owner.as_uuid()).collect();
    let lease = if operation == Operation::Acquire {
        "0, NULL, NULL, NULL, NULL".to_owned()
    } else {
        format!("1, owner, clock_timestamp() + interval '{HELD_FOR_HOURS} hours', 'at the wire', clock_timestamp()")
    };
    let sql = format!(
        "INSERT INTO {{s}}.report_publication \
             (report_id, recovery_epoch, generation, lease_owner, lease_until, lease_holder, lease_acquired_at) \
         SELECT report, 0, {lease} FROM unnest($1, $2) AS made(report, owner)"
    );
    schema.database.change(&sql, &[(&reports, Type::UUID_ARRAY), (&owners, Type::UUID_ARRAY)]).await;
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
    let (client, s) = (&schema.database.client, &schema.database.schema);
    let sql = format!(
        "SELECT r.*, p.payload, floor(extract(epoch FROM r.lease_until - clock_timestamp()) / 60)::bigint AS minutes_left \
         FROM {s}.report_publication AS r LEFT JOIN {s}.report_payload AS p USING (report_id)"
    );
    let mut all = HashMap::new();
    for row in client.query_typed(&sql, &[]).await.expect("the rows") {
        let truth = Truth {
            generation: row.get("generation"),
            owner: row.get("lease_owner"),
            published_generation: row.get("published_generation"),
            payload: row.get("payload"),
            minutes_left: row.get("minutes_left"),
            ledger: Vec::new(),
        };
        all.insert(ReportId::from_uuid(row.get("report_id")), truth);
    }
    let sql = format!("SELECT report_id, lease_owner, operation_id FROM {s}.report_ledger");
    for row in client.query_typed(&sql, &[]).await.expect("the ledger") {
        let report = ReportId::from_uuid(row.get("report_id"));
        let entry = (row.get("lease_owner"), row.get("operation_id"));
        all.get_mut(&report).expect("a ledger row has its report").ledger.push(entry);
    }
    all
}
