//! A standby that is promoted without commits which the primary had acknowledged.

use std::time::{Duration, Instant};

use leasehold::answer::{AcquireAnswer, CloseAnswer, EpochAnswer, Forgotten, PublishAnswer, Refusal, RenewAnswer};
use leasehold::store::postgres::{Config, PostgresStore};
use leasehold::store::{AcquireRequest, CloseRequest, Store};
use leasehold::{Epoch, Fence, LeasePolicy, LeaseSupervisor, Outcome, ReportId, Ticket};
use tokio_postgres::Client;

use crate::cluster::Cluster;
use crate::scene::{TTL, acquires, acquiring, budget, publishes, publishing};
use crate::support::{PostgresDatabase, connect};

/// A primary whose asynchronous standby received nothing since the reports were made.
struct Replicated {
    primary: Cluster,
    standby: Cluster,
    db: PostgresDatabase,
    schema: String,
}

fn on(config: &Config, schema: &str) -> PostgresStore {
    PostgresStore::from_config(config.clone()).schema(schema).build().unwrap()
}

async fn wait_for(client: &Client, sql: &str) {
    let began = Instant::now();
    while !client.query_typed(sql, &[]).await.unwrap()[0].get::<_, bool>(0) {
        assert!(began.elapsed() < Duration::from_secs(60), "not within a minute: {sql}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl Replicated {
    async fn with(reports: &[ReportId]) -> Self {
        let primary = Cluster::start(&["wal_level=replica", "max_wal_senders=4"]);
        let db = PostgresDatabase::install(&primary.config()).await;
        for report in reports {
            db.store().provision(*report, budget()).await.unwrap();
        }
        let standby = primary.standby();
        let admin = connect(&primary.config()).await;
        let rows = admin.query_typed("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap();
        let there = connect(&standby.config()).await;
        let caught_up = format!("SELECT pg_last_wal_replay_lsn() >= '{}'::pg_lsn", rows[0].get::<_, String>(0));
        wait_for(&there, &caught_up).await;
        // From here on it hears nothing of the primary.
        there.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").await.unwrap();
        there.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        wait_for(&there, "SELECT count(*) = 0 FROM pg_stat_wal_receiver").await;
        let schema = db.schema.clone();
        Self { primary, standby, db, schema }
    }

    /// The primary is lost, and the standby takes its place.
    fn fail_over(&self) -> PostgresStore {
        self.primary.stop("immediate");
        self.standby.promote();
        on(&self.standby.config(), &self.schema)
    }
}

fn closing(fence: Fence) -> CloseRequest {
    CloseRequest { report: fence.report, owner: fence.owner, learned: Some((fence.generation, fence.epoch)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raising_the_epoch_fences_a_history_that_was_lost() {
    let [open, published] = ["open", "published"].map(ReportId::from_name);
    let cluster = Replicated::with(&[open, published]).await;
    let a = cluster.db.store();
    let lost = acquires(&a, open).await;
    let receipt = publishes(&a, acquires(&a, published).await, "acknowledged and lost").await;
    let late = publishing(lost, "of the lost history");
    let ticket = Ticket { fence: lost, operation: late.operation, next_owner: None };

    let b = cluster.fail_over();
    let epoch = Epoch::new(1);
    let raised = b.advance_recovery_epoch(epoch, budget()).await.unwrap();
    assert_eq!(raised, EpochAnswer::Advanced { from: Epoch::new(0), ended_leases: 0 });

    // The same generation again, in the new history.
    let new = acquires(&b, open).await;
    assert_eq!((new.generation, new.epoch), (lost.generation, epoch));
    let replaced = Forgotten::HistoryReplaced { epoch };
    assert_eq!(b.publish(late.clone(), budget()).await.unwrap(), PublishAnswer::NoLongerKnown(replaced));
    let renewed = b.renew(lost, TTL, budget()).await.unwrap();
    assert_eq!(renewed, RenewAnswer::Refused(Refusal::StaleEpoch { epoch }));
    publishes(&b, new, "of the new history").await;
    assert_eq!(b.publish(late, budget()).await.unwrap(), PublishAnswer::NoLongerKnown(replaced));

    // Tickets of the lost history, also of what was acknowledged there.
    let supervisor = LeaseSupervisor::new(b.clone(), LeasePolicy::builder(TTL).build().unwrap()).unwrap();
    for _ in 0..2 {
        assert_eq!(supervisor.resolve(ticket).await.unwrap(), Outcome::NoLongerKnown(replaced));
    }
    let owner = leasehold::Owner::random();
    let gone = Fence { report: published, owner, generation: receipt.generation, epoch: receipt.epoch };
    assert_eq!(b.close(closing(gone), budget()).await.unwrap(), CloseAnswer::NoLongerKnown(replaced));
    // A client that has seen the new epoch is served by nothing older.
    let stale = AcquireRequest { min_epoch: Epoch::new(2), ..acquiring(open) };
    let answer = b.acquire(stale, budget()).await.unwrap();
    assert_eq!(answer, AcquireAnswer::StaleHistory { epoch });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_one_generation_in_two_histories_at_most_one_publishes_into_the_surviving_one() {
    let reports = ["old first", "new first"].map(ReportId::from_name);
    let cluster = Replicated::with(&reports).await;
    let a = cluster.db.store();
    let lost = [acquires(&a, reports[0]).await, acquires(&a, reports[1]).await];
    let b = cluster.fail_over();
    // Nobody raised the epoch: the generations meet.
    for (lost, old_first) in lost.into_iter().zip([true, false]) {
        let new = acquires(&b, lost.report).await;
        assert_eq!((new.generation, new.epoch), (lost.generation, lost.epoch));
        let old = publishing(lost, "of the lost history");
        if old_first {
            let answer = b.publish(old.clone(), budget()).await.unwrap();
            assert_eq!(answer, PublishAnswer::Refused(Refusal::Superseded { by: new.generation }));
        }
        publishes(&b, new, "of the new history").await;
        let answer = b.publish(old, budget()).await.unwrap();
        assert!(!matches!(answer, PublishAnswer::Published(_) | PublishAnswer::AlreadyPublished(_)), "{answer:?}");
        let found = b.read(lost.report, None, budget()).await.unwrap();
        assert!(
            matches!(found, leasehold::answer::ReadAnswer::Found { payload, .. } if payload == "of the new history")
        );
    }
}
