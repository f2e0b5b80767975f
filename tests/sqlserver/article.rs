//! A table made exactly as in the article, used as in the article, and then upgraded with its rows.

use leasehold::answer::{AcquireAnswer, CloseAnswer, Ending, Forgotten, PublishAnswer, RenewAnswer};
use leasehold::store::sqlserver::tiberius::Row;
use leasehold::store::{CloseRequest, Store};
use leasehold::{Epoch, Fence, Generation, Owner, ReportId};
use uuid::Uuid;

use crate::support::{Schema, batch, rows};
use crate::words::{TTL, acquire, budget, closing, payload, publication, publish, request, unknown_report};

/// The article's text, but for the schema.
pub(crate) async fn create_table(schema: &Schema) {
    let sql = "
        CREATE TABLE dbo.ReportPublication
        (
            ReportId uniqueidentifier NOT NULL
                CONSTRAINT PK_ReportPublication PRIMARY KEY,

            Generation bigint NOT NULL
                CONSTRAINT DF_ReportPublication_Generation DEFAULT (0),

            LeaseOwner uniqueidentifier NULL,
            LeaseUntilUtc datetime2(7) NULL,

            PublishedGeneration bigint NOT NULL
                CONSTRAINT DF_ReportPublication_PublishedGeneration DEFAULT (0),

            Payload nvarchar(max) NULL,
            PublishedAtUtc datetime2(7) NULL
        );";
    schema.change(&in_schema(schema, sql)).await;
}

fn in_schema(schema: &Schema, sql: &str) -> String {
    sql.replace("dbo.", &format!("{}.", schema.quoted()))
}

/// A worker of the article's.
struct Old<'a>(&'a Schema);

impl Old<'_> {
    async fn run(&self, sql: &str, fence: &Fence, payload: &str) -> Vec<Row> {
        let sql = in_schema(self.0, sql)
            .replace("@reportId", "@P1")
            .replace("@owner", "@P2")
            .replace("@generation", "@P3")
            .replace("@payload", "@P4")
            .replace("@leaseSeconds", "@P5");
        let arguments: [&dyn leasehold::store::sqlserver::tiberius::ToSql; 5] =
            [fence.report.as_uuid(), fence.owner.as_uuid(), &fence.generation.get(), &payload, &3_600_i32];
        rows(&mut *self.0.raw.lock().await, &sql, &arguments).await
    }

    async fn provision(&self) -> ReportId {
        let report = unknown_report();
        let sql = format!("INSERT INTO dbo.ReportPublication (ReportId) VALUES ('{report}')");
        self.0.change(&in_schema(self.0, &sql)).await;
        report
    }

    async fn acquire(&self, report: ReportId) -> Fence {
        let owner = Owner::from_uuid(Uuid::new_v4());
        let fence = Fence { report, owner, generation: Generation::new(0), epoch: Epoch::new(0) };
        let sql = "
            UPDATE dbo.ReportPublication
            SET Generation = Generation + 1,
                LeaseOwner = @owner,
                LeaseUntilUtc = DATEADD(second, @leaseSeconds, SYSUTCDATETIME())
            OUTPUT inserted.Generation
            WHERE ReportId = @reportId
              AND (LeaseUntilUtc IS NULL OR LeaseUntilUtc <= SYSUTCDATETIME());";
        let generation = self.run(sql, &fence, "").await[0].get::<i64, _>(0).expect("the lease");
        Fence { generation: Generation::new(generation), ..fence }
    }

    async fn publish(&self, fence: Fence, payload: &str) {
        let sql = "
            UPDATE dbo.ReportPublication
            SET Payload = @payload,
                PublishedGeneration = @generation,
                PublishedAtUtc = SYSUTCDATETIME()
            WHERE ReportId = @reportId
              AND Generation = @generation
              AND LeaseOwner = @owner
              AND LeaseUntilUtc > SYSUTCDATETIME()
              AND PublishedGeneration < @generation;";
        self.run(sql, &fence, payload).await;
    }

    async fn release(&self, fence: Fence) {
        let sql = "
            UPDATE dbo.ReportPublication
            SET LeaseOwner = NULL,
                LeaseUntilUtc = NULL
            WHERE ReportId = @reportId
              AND Generation = @generation
              AND LeaseOwner = @owner;";
        self.run(sql, &fence, "").await;
    }

    async fn expire(&self, fence: Fence) {
        let sql = format!(
            "UPDATE dbo.ReportPublication SET LeaseUntilUtc = DATEADD(second, -1, SYSUTCDATETIME()) WHERE ReportId = '{}'",
            fence.report
        );
        batch(&mut *self.0.raw.lock().await, &in_schema(self.0, &sql)).await;
    }
}

async fn article() -> Schema {
    let schema = Schema::missing().await;
    schema.change(&format!("CREATE SCHEMA {}", schema.quoted())).await;
    create_table(&schema).await;
    schema
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn free_and_expired_rows_of_the_articles_table_can_be_taken_under_the_next_generation() {
    let schema = article().await;
    let old = Old(&schema);
    let free = old.provision().await;
    let expired = old.acquire(old.provision().await).await;
    old.expire(expired).await;
    let store = schema.store();
    store.install(budget()).await.unwrap();
    assert_eq!(acquire(&store, free).await.generation.get(), 1);
    let next = acquire(&store, expired.report).await;
    assert_eq!(next.generation.get(), 2);
    let late = publish(&store, expired, "late").await;
    assert!(matches!(late, PublishAnswer::Refused(_)), "{late:?}");
    assert!(matches!(publish(&store, next, "new").await, PublishAnswer::Published(_)));
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_lease_of_the_articles_table_is_still_held_and_goes_on_or_is_closed() {
    let schema = article().await;
    let old = Old(&schema);
    let (goes_on, closed) = (old.acquire(old.provision().await).await, old.acquire(old.provision().await).await);
    let store = schema.store();
    store.install(budget()).await.unwrap();
    for fence in [goes_on, closed] {
        let answer = store.acquire(request(fence.report), budget()).await.unwrap();
        assert!(matches!(&answer, AcquireAnswer::Busy(busy) if busy.remaining > TTL), "{answer:?}");
    }
    let renewed = store.renew(goes_on, TTL, budget()).await.unwrap();
    assert!(matches!(renewed, RenewAnswer::Renewed { .. }), "{renewed:?}");
    assert!(matches!(publish(&store, goes_on, "new").await, PublishAnswer::Published(_)));
    // Its acquirer died: all that is known of it is what stands in the row.
    let close = CloseRequest { report: closed.report, owner: closed.owner, learned: None };
    assert_eq!(store.close(close, budget()).await.unwrap(), CloseAnswer::Ended(Ending::Closed));
    assert_eq!(acquire(&store, closed.report).await.generation.get(), 2);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn what_was_published_before_the_upgrade_is_readable_and_its_outcome_no_longer_known() {
    let schema = article().await;
    let old = Old(&schema);
    let published = old.acquire(old.provision().await).await;
    old.publish(published, "näher 🙂").await;
    old.release(published).await;
    let again = old.acquire(old.provision().await).await;
    old.publish(again, "first").await;
    old.release(again).await;
    let held = old.acquire(again.report).await;
    let unreleased = old.acquire(old.provision().await).await;
    old.publish(unreleased, "kept").await;
    let store = schema.store();
    store.install(budget()).await.unwrap();

    assert_eq!(payload(&store, published.report).await.as_deref(), Some("näher 🙂"));
    assert_eq!(payload(&store, again.report).await.as_deref(), Some("first"));
    for fence in [published, again, unreleased] {
        let up_to = fence.generation;
        let answer = store.publish(publication(fence, "again"), budget()).await.unwrap();
        assert_eq!(answer, PublishAnswer::NoLongerKnown(Forgotten::Pruned { up_to }), "{fence:?}");
        let answer = store.close(closing(fence), budget()).await.unwrap();
        assert_eq!(answer, CloseAnswer::NoLongerKnown(Forgotten::Pruned { up_to }), "{fence:?}");
    }
    assert_eq!(acquire(&store, published.report).await.generation.get(), 2);
    // What is held now was not published yet.
    assert_eq!(held.generation.get(), 2);
    assert!(matches!(publish(&store, held, "second").await, PublishAnswer::Published(_)));
    assert_eq!(payload(&store, again.report).await.as_deref(), Some("second"));
}
