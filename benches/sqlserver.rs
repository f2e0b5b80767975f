//! What the SQL Server store costs on a real server: round trips, a fenced publication beside a naive overwrite, renewals with a
//! large payload and in batches. What is compared is measured in turns, through the same driver.
//!
//! The server is named by `LEASEHOLD_TEST_SQLSERVER`, as for the tests. Each figure says which engine it is.

mod support {
    pub(crate) mod calls;
    pub(crate) mod figure;
    pub(crate) mod round_trips;
    pub(crate) mod samples;
}
#[path = "../tests/support/proxy/mod.rs"]
mod proxy;
#[allow(dead_code)] // The tests use more of it.
#[path = "../tests/support/sqlserver.rs"]
mod sqlserver;

use std::time::{Duration, Instant};

use leasehold::ReportId;
use leasehold::store::sqlserver::{Client, SqlServerStore};
use leasehold::store::{Payload, Store};
use proxy::Proxy;
use sqlserver::{Schema, batch, config, is_babelfish, raw};
use support::calls::{self, KIB, MIB, acquire, budget, is_asked, payload, publish};
use support::figure::Figures;
use support::round_trips;
use support::samples::Samples;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if std::env::var_os("LEASEHOLD_TEST_SQLSERVER").is_none() {
        println!("!! NOTHING WAS MEASURED ON A SQL SERVER: LEASEHOLD_TEST_SQLSERVER names none");
        return;
    }
    let engine = if is_babelfish(&mut raw("leasehold bench").await).await { "babelfish" } else { "sqlserver" };
    let figures = Figures { store: "sqlserver", engine: Some(engine) };
    // Dropped at the end with all that is in it.
    let schema = Schema::installed().await;
    if is_asked("round_trips") {
        count_round_trips(&figures, &schema).await;
    }
    if is_asked("publish") {
        let mut naive = NaiveReports::new(&schema).await;
        // The headline is a report of an ordinary size.
        for (suffix, size, pairs) in [("", KIB, 400), (".0B", 0, 400), (".64KiB", 64 * KIB, 200), (".1MiB", MIB, 40)] {
            publish_over_naive(&figures, &schema.store(), &mut naive, suffix, size, pairs).await;
        }
    }
    if is_asked("renew") {
        calls::renew_over_payload(&figures, &schema.store()).await;
        calls::renew_many(&figures, &schema.store(), 40).await;
    }
}

/// At a proxy between the store and its server.
async fn count_round_trips(figures: &Figures, schema: &Schema) {
    let mut config = config(&schema.name);
    let server = tokio::net::lookup_host(config.get_addr()).await.expect("the server has an address").next();
    let proxy = Proxy::start(server.expect("the server has an address")).await;
    config.host("127.0.0.1");
    config.port(proxy.addr().port());
    let store = SqlServerStore::builder().config(config).schema(&schema.name).build().expect("a store");
    let mut before = 0;
    round_trips::measure(figures, store, || {
        let so_far = proxy.traffic().round_trips;
        let since = so_far - before;
        before = so_far;
        since as f64
    })
    .await;
}

async fn publish_over_naive(
    figures: &Figures,
    store: &SqlServerStore,
    naive: &mut NaiveReports,
    suffix: &str,
    size: usize,
    pairs: usize,
) {
    const WARM_UP: usize = 4;
    let report = ReportId::from_name(&format!("published {size}"));
    store.provision(report, budget()).await.expect("a row");
    naive.provision(report).await;
    let payloads = ["a", "b"].map(|text| payload(size, text));
    let (mut fenced, mut overwritten) = (Samples::default(), Samples::default());
    for pair in 0..pairs + WARM_UP {
        let payload = &payloads[pair % 2];
        let fence = acquire(store, report).await;
        // In turns of the order too, so that neither always follows the acquisition.
        let (of_fenced, of_naive);
        if pair / 2 % 2 == 0 {
            of_fenced = publish(store, fence, payload).await;
            of_naive = naive.publish(report, payload).await;
        } else {
            of_naive = naive.publish(report, payload).await;
            of_fenced = publish(store, fence, payload).await;
        }
        // The first calls of a connection are prepared on the server.
        if pair >= WARM_UP {
            fenced.push_micros(of_fenced);
            overwritten.push_micros(of_naive);
        }
    }
    let (fenced, overwritten) = (fenced.median(), overwritten.median());
    println!(
        "{size} bytes: published fenced in {fenced:.0} µs, overwritten in {overwritten:.0} µs (medians of {pairs})"
    );
    figures.print(&format!("publish.over_naive{suffix}"), fenced / overwritten, "ratio");
}

/// What a program without leases does: it overwrites the report, in one statement and one commit.
struct NaiveReports {
    client: Client,
    table: String,
}

impl NaiveReports {
    async fn new(schema: &Schema) -> Self {
        let table = format!("{}.NaiveReport", schema.name);
        let mut client = raw(&schema.name).await;
        let columns = "ReportId uniqueidentifier NOT NULL PRIMARY KEY, Payload nvarchar(max) NULL";
        batch(&mut client, &format!("CREATE TABLE {table} ({columns})")).await;
        Self { client, table }
    }

    async fn provision(&mut self, report: ReportId) {
        batch(&mut self.client, &format!("INSERT INTO {} (ReportId) VALUES ('{report}')", self.table)).await;
    }

    async fn publish(&mut self, report: ReportId, payload: &Payload) -> Duration {
        let sql = format!("UPDATE {} SET Payload = @P1 WHERE ReportId = @P2", self.table);
        let started = Instant::now();
        let updated = self.client.execute(sql, &[&payload.as_str(), report.as_uuid()]).await.expect("an update");
        let took = started.elapsed();
        assert_eq!(updated.total(), 1);
        took
    }
}
