//! A stand-in for the server that answers as leasehold's procedures do, or as the test says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold::store::sqlserver::SqlServerStore;
use leasehold::store::sqlserver::tiberius::{AuthMethod, Config, EncryptionLevel};
use uuid::Uuid;

pub(crate) use crate::scene::short_budget;
use crate::subject::{Operation, Subject};
use crate::tds::{Reply, Request, TdsServer, Tokens, Value};

pub(crate) const PASSWORD: &str = "correct-horse-4711";

/// What is done with a call of one of the protocol's procedures, or with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The name without its schema, and how many such calls came before, of any name.
    Call(&'static str, usize),
    Batch,
}

const PROCEDURES: [&str; 7] = [
    "LeaseholdAcquire",
    "LeaseholdRenew",
    "LeaseholdPublish",
    "LeaseholdClose",
    "LeaseholdRelease",
    "LeaseholdInspect",
    "LeaseholdRead",
];

/// A server without TLS that lets everybody in, has this build's schema, and does with calls and batches what this says.
pub(crate) async fn stand_in(script: impl Fn(Asked) -> Reply + Send + Sync + 'static) -> TdsServer {
    let calls = Arc::new(AtomicUsize::new(0));
    TdsServer::start(move |request| match request {
        Request::Call(name) if name.ends_with("LeaseholdVersion") => version(),
        Request::Call(name) => {
            let known = PROCEDURES.iter().find(|known| name.ends_with(&format!(".{known}")));
            let procedure = known.unwrap_or_else(|| panic!("{name} is called"));
            script(Asked::Call(procedure, calls.fetch_add(1, Ordering::SeqCst)))
        }
        Request::Batch(_) => script(Asked::Batch),
        _ => Reply::Done,
    })
    .await
}

/// One that does this with calls, and every batch.
pub(crate) async fn answering(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> TdsServer {
    stand_in(move |asked| match asked {
        Asked::Call(_, before) => script(before),
        Asked::Batch => Reply::Done,
    })
    .await
}

fn version() -> Reply {
    let columns = vec!["SchemaVersion", "RecoveryEpoch", "NowMicros", "Engine", "Isolation"];
    let text = |text: &str| Value::Text(text.to_owned());
    let row = vec![Value::Int(1), Value::BigInt(0), Value::BigInt(NOW), text("a stand-in"), text("ReadCommitted")];
    Reply::Rows(columns, vec![row])
}

pub(crate) fn config(addr: SocketAddr) -> Config {
    let mut config = Config::new();
    config.host("127.0.0.1");
    config.port(addr.port());
    config.database("reports");
    config.authentication(AuthMethod::sql_server("worker", PASSWORD));
    config.encryption(EncryptionLevel::NotSupported);
    config
}

pub(crate) fn store(addr: SocketAddr) -> SqlServerStore {
    SqlServerStore::builder().config(config(addr)).build().expect("a store")
}

/// How many calls of the protocol's procedures came.
pub(crate) fn calls(server: &TdsServer) -> usize {
    let is_one = |request: &&Request| matches!(request, Request::Call(name) if !name.ends_with("LeaseholdVersion"));
    server.seen().iter().filter(is_one).count()
}

/// The clock of the stand-in, in microseconds since 1970.
pub(crate) const NOW: i64 = 1_800_000_000_000_000;

/// What was found under the lock, as `LeaseholdFound` tells it.
#[derive(Debug, Clone)]
pub(crate) struct Found(Vec<(&'static str, Value)>);

/// What is NULL as long as nothing was published, forced or ended.
const NUMBERS: [&str; 14] = [
    "LeaseAcquiredAtMicros",
    "PublishedAtMicros",
    "SourceRevision",
    "SourceRevisionFloor",
    "ForcedGeneration",
    "ForcedAtMicros",
    "EndedGeneration",
    "EndedEpoch",
    "EndedRevision",
    "EndedAtMicros",
    "UsedGeneration",
    "UsedEpoch",
    "UsedRevision",
    "UsedAtMicros",
];
const IDENTIFIERS: [&str; 6] =
    ["EndedReportId", "EndedOwner", "EndedOperationId", "UsedReportId", "UsedOwner", "UsedOperationId"];

impl Found {
    /// The subject's report, held under its fence, or before an acquisition free.
    pub(crate) fn before(operation: Operation, subject: &Subject) -> Self {
        let id = |uuid: &Uuid| Value::Id(*uuid);
        let held = operation != Operation::Acquire;
        let when_held = |value, or| if held { value } else { or };
        let mut columns = vec![
            ("NowMicros", Value::BigInt(NOW)),
            ("ReportId", id(subject.report.as_uuid())),
            ("Generation", Value::BigInt(i64::from(held))),
            ("LeaseOwner", when_held(id(subject.owner.as_uuid()), Value::NoId)),
            ("LeaseUntilMicros", when_held(Value::BigInt(NOW + 60_000_000), Value::Null)),
            ("LeaseHolder", when_held(Value::Text("at the wire".to_owned()), Value::NoText)),
            ("TakeoverDelayMillis", Value::Int(0)),
            ("RecoveryEpoch", Value::BigInt(0)),
            ("PublishedGeneration", Value::BigInt(0)),
            ("PrunedUpTo", Value::BigInt(0)),
            ("ForcedBy", Value::NoText),
        ];
        columns.extend(NUMBERS.map(|name| (name, Value::Null)));
        columns.extend(IDENTIFIERS.map(|name| (name, Value::NoId)));
        Self(columns)
    }

    /// The same with another value.
    pub(crate) fn with(mut self, name: &'static str, value: Value) -> Self {
        let column = self.0.iter_mut().find(|(column, _)| *column == name);
        column.expect("a column of this name").1 = value;
        self
    }

    /// The same without a column.
    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.0.retain(|(column, _)| *column != name);
        self
    }

    pub(crate) fn tokens(&self) -> Tokens {
        set(Tokens::default(), &self.0)
    }

    /// The whole answer of a procedure that then says how many rows it wrote.
    pub(crate) fn applied(&self, rows: i32) -> Reply {
        Reply::Raw(done(outcome(self.tokens(), rows)))
    }
}

fn set(tokens: Tokens, columns: &[(&'static str, Value)]) -> Tokens {
    let (names, values): (Vec<&str>, Vec<Value>) = columns.iter().cloned().unzip();
    tokens.columns(&names, std::slice::from_ref(&values)).row(&values).done_in_procedure(Tokens::MORE)
}

/// The last result set: what the procedure did.
pub(crate) fn outcome(tokens: Tokens, rows: i32) -> Tokens {
    set(tokens, &[("Applied", Value::Int(rows)), ("Advanced", Value::Int(0))])
}

pub(crate) fn done(tokens: Tokens) -> Tokens {
    tokens.return_status(0).done_procedure(Tokens::FINAL)
}
