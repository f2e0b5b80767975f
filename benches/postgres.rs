//! What the PostgreSQL store costs on a server of its own, durable and on a disk: round trips, a fenced publication beside a naive
//! overwrite, renewals with a large payload and in batches, and what a renewal costs the server. What is compared is measured in
//! turns, through the same driver.

mod support {
    pub(crate) mod calls;
    pub(crate) mod figure;
    pub(crate) mod round_trips;
    pub(crate) mod samples;
    pub(crate) mod server;
}
#[allow(dead_code)] // The tests use more of it.
#[path = "../tests/support/postgres_cluster.rs"]
mod cluster;
#[allow(dead_code)] // The tests use more of it.
#[path = "../tests/support/postgres.rs"]
mod postgres;
#[path = "../tests/support/proxy/mod.rs"]
mod proxy;

use std::time::{Duration, Instant};

use leasehold::ReportId;
use leasehold::answer::{BatchRenewal, RenewAnswer};
use leasehold::store::postgres::{Config, PostgresStore};
use leasehold::store::{MAX_BATCH, Payload, Store};
use proxy::Proxy;
use support::calls::{self, KIB, MIB, acquire, budget, is_asked, payload, publish};
use support::figure::Figures;
use support::round_trips;
use support::samples::Samples;
use support::server::{Server, cpu_micros_of, load};
use tokio_postgres::{Client, Statement};

const FIGURES: Figures = Figures { store: "postgres", engine: None };

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let Some(mut server) = Server::start().await else { return };
    if is_asked("round_trips") {
        count_round_trips(&mut server).await;
    }
    if is_asked("publish") {
        let naive = NaiveReports::new(&server).await;
        // The headline is a report of an ordinary size.
        for (suffix, size, pairs) in
            [("", KIB, 1_000), (".0B", 0, 1_000), (".64KiB", 64 * KIB, 300), (".1MiB", MIB, 60)]
        {
            publish_over_naive(&server.store(), &naive, suffix, size, pairs).await;
        }
    }
    if is_asked("renew") {
        calls::renew_over_payload(&FIGURES, &server.store()).await;
        calls::renew_many(&FIGURES, &server.store(), 40).await;
        cost_of_batches(&server).await;
    }
    println!("load at the end: {}", load());
}

/// At a proxy between the store and its server.
async fn count_round_trips(server: &mut Server) {
    let address = ([127, 0, 0, 1], server.cluster.port()).into();
    let proxy = Proxy::start(address).await;
    let direct = std::mem::replace(&mut server.database.reached, through(&proxy, &server.harness.config));
    let mut before = 0;
    round_trips::measure(&FIGURES, server.store(), || {
        let so_far = proxy.traffic().round_trips;
        let since = so_far - before;
        before = so_far;
        since as f64
    })
    .await;
    server.database.reached = direct;
}

fn through(proxy: &Proxy, config: &Config) -> Config {
    let mut through = Config::new();
    through.host("127.0.0.1").port(proxy.addr().port()).ssl_mode(tokio_postgres::config::SslMode::Disable);
    through.dbname(config.get_dbname().expect("a database"));
    through
}

async fn publish_over_naive(store: &PostgresStore, naive: &NaiveReports, suffix: &str, size: usize, pairs: usize) {
    const WARM_UP: usize = 10;
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
        // The first calls of a session make its plans.
        if pair >= WARM_UP {
            fenced.push_micros(of_fenced);
            overwritten.push_micros(of_naive);
        }
    }
    let (fenced, overwritten) = (fenced.median(), overwritten.median());
    println!(
        "{size} bytes: published fenced in {fenced:.0} µs, overwritten in {overwritten:.0} µs (medians of {pairs})"
    );
    FIGURES.print(&format!("publish.over_naive{suffix}"), fenced / overwritten, "ratio");
}

/// What a program without leases does: it overwrites the report, in one prepared statement that is a transaction of its own.
struct NaiveReports {
    client: Client,
    insert: Statement,
    update: Statement,
}

impl NaiveReports {
    async fn new(server: &Server) -> Self {
        let client = server.connect().await;
        let table = "CREATE TABLE public.naive_report (id uuid PRIMARY KEY, payload text NULL)";
        client.batch_execute(table).await.expect("a table");
        let insert = client.prepare("INSERT INTO public.naive_report (id) VALUES ($1)").await.expect("a statement");
        let update =
            client.prepare("UPDATE public.naive_report SET payload = $1 WHERE id = $2").await.expect("a statement");
        Self { client, insert, update }
    }

    async fn provision(&self, report: ReportId) {
        self.client.execute(&self.insert, &[report.as_uuid()]).await.expect("a row");
    }

    async fn publish(&self, report: ReportId, payload: &Payload) -> Duration {
        let started = Instant::now();
        let updated =
            self.client.execute(&self.update, &[&payload.as_str(), report.as_uuid()]).await.expect("an update");
        let took = started.elapsed();
        assert_eq!(updated, 1);
        took
    }
}

/// Of batches of a thousand small reports: time, and what they cost the server in CPU, log and flushes.
async fn cost_of_batches(server: &Server) {
    const BATCHES: usize = 300;
    let store = server.store();
    let mut fences = Vec::new();
    for number in 0..MAX_BATCH {
        let report = ReportId::from_name(&format!("costs {number}"));
        store.provision(report, budget()).await.expect("a row");
        fences.push(acquire(&store, report).await);
    }
    let renew_all = async || {
        let started = Instant::now();
        let answers = store.renew_many(fences.clone(), Duration::from_secs(3_600), budget()).await.expect("answers");
        assert!(answers.iter().all(|one| matches!(one, BatchRenewal::Answered(RenewAnswer::Renewed { .. }))));
        started.elapsed()
    };
    // So that no page is written to the log as a whole for the first time since a checkpoint, and the plan is made.
    for _ in 0..5 {
        renew_all().await;
    }
    let session = format!(
        "SELECT max(pid)::bigint FROM pg_stat_activity WHERE application_name = '{}' AND query <> '' \
         AND state_change = (SELECT max(state_change) FROM pg_stat_activity WHERE application_name = '{}')",
        server.database.schema, server.database.schema
    );
    renew_all().await;
    let session = u32::try_from(server.number(&session).await).expect("a process");
    // From version 18 on they are counted elsewhere.
    let flushes = "SELECT wal_sync FROM pg_stat_wal";
    let counts = server.number("SELECT current_setting('server_version_num')::bigint").await < 180_000;
    // A session tells of its flushes at the end of a transaction, and a second after it last did so at the soonest.
    let flushed = async || {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        renew_all().await;
        if counts { server.number(flushes).await } else { 0 }
    };
    let before = flushed().await;
    let (cpu, wal, began) = (cpu_micros_of(session), server.wal_position().await, Instant::now());
    let mut times = Samples::default();
    for _ in 0..BATCHES {
        times.push(renew_all().await.as_secs_f64());
    }
    let (took, renewals) = (began.elapsed().as_secs_f64(), (BATCHES * MAX_BATCH) as f64);
    let (cpu, wal) = (cpu_micros_of(session) - cpu, server.wal_position().await - wal);
    println!(
        "{BATCHES} batches in {took:.2} s, {:.0} renewals a second of all of it; one batch took {:.1} ms at best",
        renewals / took,
        1e3 * times.quantile(0.0),
    );
    FIGURES.print("renew_many.1000.per_second", MAX_BATCH as f64 / times.median(), "1/s");
    FIGURES.print("renew.server_cpu_micros", cpu / renewals, "µs");
    FIGURES.print("renew.wal_bytes", wal as f64 / renewals, "bytes");
    if counts {
        // One of them is of the look itself.
        let since = flushed().await - before;
        FIGURES.print("renew_many.1000.flushes_per_batch", since as f64 / (BATCHES + 1) as f64, "count");
    }
}
