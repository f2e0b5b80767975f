//! What the SQLite store costs: round trips, a fenced publication beside a naive overwrite, renewals with a large payload and
//! in batches. Real files with real fsyncs; what is compared is measured in turns.

mod support {
    pub(crate) mod figure;
    pub(crate) mod naive;
    pub(crate) mod place;
    pub(crate) mod round_trips;
    pub(crate) mod samples;
}

use std::time::{Duration, Instant};

use leasehold::answer::{AcquireAnswer, BatchRenewal, PublishAnswer, RenewAnswer};
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::{AcquireRequest, Budget, Payload, PublishRequest, Store};
use leasehold::{Epoch, Fence, Holder, OperationId, Owner, ReportId};
use support::figure::figure;
use support::naive::NaiveReports;
use support::place::Place;
use support::round_trips;
use support::samples::Samples;

const TTL: Duration = Duration::from_secs(3_600);
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// More than the pages after which SQLite begins its log anew.
const LONG_LOG: usize = 8 * MIB;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // `cargo bench --bench sqlite -- publish` measures that part alone.
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_asked = |part: &str| asked.is_empty() || asked.iter().any(|name| part.contains(name));
    if is_asked("round_trips") {
        round_trips::measure().await;
    }
    if is_asked("publish") {
        // The headline is a report of an ordinary size.
        publish_over_naive("", KIB, 600).await;
        publish_over_naive(".0B", 0, 600).await;
        publish_over_naive(".64KiB", 64 * KIB, 200).await;
        publish_over_naive(".1MiB", MIB, 60).await;
        publish_over_naive(".16MiB", 16 * MIB, 15).await;
    }
    if is_asked("renew") {
        renew_over_payload().await;
        renew_many().await;
    }
}

async fn publish_over_naive(suffix: &str, size: usize, pairs: usize) {
    let (place, naive) = (Place::new(), NaiveReports::new());
    let store = place.open().await;
    let (report, other) = (ReportId::from_name("report"), ReportId::from_name("other"));
    for report in [report, other] {
        naive.provision(report);
        store.provision(report, budget()).await.expect("a row");
    }
    lengthen_log(&store, other).await;
    naive.publish(other, &payload(LONG_LOG, "x")).await;
    // Two in turn, that differ on every page: SQLite writes no page that did not change.
    let payloads = ["a", "b"].map(|text| payload(size, text));
    let [mut fenced, mut overwritten, mut alone] = [(); 3].map(|()| Samples::default());
    for pair in 0..pairs {
        let payload = &payloads[pair % 2];
        let fence = acquire(&store, report).await;
        // In turns of the order too, so that neither always follows the acquisition.
        let fenced_first = pair / 2 % 2 == 0;
        if fenced_first {
            fenced.push_micros(publish(&store, fence, payload).await);
        }
        let (waited, by_itself) = naive.publish(report, payload).await;
        overwritten.push_micros(waited);
        alone.push_micros(by_itself);
        if !fenced_first {
            fenced.push_micros(publish(&store, fence, payload).await);
        }
    }
    let [fenced, overwritten, alone] = [fenced, overwritten, alone].map(|samples| samples.median());
    println!(
        "{size} bytes: published fenced in {fenced:.0} µs, overwritten in {overwritten:.0} µs, of which {alone:.0} µs are the \
         statement's own (medians of {pairs})"
    );
    figure(&format!("sqlite.publish.over_naive{suffix}"), fenced / overwritten, "ratio");
}

/// Makes the file's log as long as that of a database that has been in use for a while. Until then every commit makes it longer,
/// which costs the file system more than to write in place.
async fn lengthen_log(store: &SqliteStore, report: ReportId) {
    let fence = acquire(store, report).await;
    publish(store, fence, &payload(LONG_LOG, "x")).await;
}

fn payload(size: usize, text: &str) -> Payload {
    Payload::new(text.repeat(size), usize::MAX).expect("a payload")
}

async fn publish(store: &SqliteStore, fence: Fence, payload: &Payload) -> Duration {
    let request = PublishRequest { fence, operation: OperationId::random(), payload: payload.clone(), revision: None };
    let started = Instant::now();
    let answer = store.publish(request, budget()).await.expect("an answer");
    let took = started.elapsed();
    assert!(matches!(answer, PublishAnswer::Published(_)));
    took
}

/// Of two reports in one file, so that they differ in nothing but their payload.
async fn renew_over_payload() {
    let place = Place::new();
    let store = place.open().await;
    let small = with_payload(&store, 0).await;
    let large = with_payload(&store, 16 * MIB).await;
    let (mut of_small, mut of_large) = (Samples::default(), Samples::default());
    for pair in 0..400 {
        if pair % 2 == 0 {
            of_small.push_micros(renew(&store, small).await);
            of_large.push_micros(renew(&store, large).await);
        } else {
            of_large.push_micros(renew(&store, large).await);
            of_small.push_micros(renew(&store, small).await);
        }
    }
    let (of_small, of_large) = (of_small.median(), of_large.median());
    println!("renewed in {of_small:.0} µs without a payload, in {of_large:.0} µs with one of 16 MiB (medians of 400)");
    figure("sqlite.renew.over_payload_16MiB", of_large / of_small, "ratio");
}

/// The lease of a report with a visible payload of this size.
async fn with_payload(store: &SqliteStore, size: usize) -> Fence {
    let report = ReportId::from_name(&size.to_string());
    store.provision(report, budget()).await.expect("a row");
    let fence = acquire(store, report).await;
    publish(store, fence, &payload(size, "x")).await;
    acquire(store, report).await
}

async fn renew(store: &SqliteStore, fence: Fence) -> Duration {
    let started = Instant::now();
    let answer = store.renew(fence, TTL, budget()).await.expect("an answer");
    let took = started.elapsed();
    assert!(matches!(answer, RenewAnswer::Renewed { .. }));
    took
}

async fn renew_many() {
    const SIZES: [usize; 4] = [1, 100, 500, 1_000];
    let place = Place::new();
    let store = place.open().await;
    let other = ReportId::from_name("other");
    store.provision(other, budget()).await.expect("a row");
    lengthen_log(&store, other).await;
    let mut fences = Vec::new();
    for number in 0..1_000 {
        let report = ReportId::from_name(&number.to_string());
        store.provision(report, budget()).await.expect("a row");
        fences.push(acquire(&store, report).await);
    }
    let mut per_lease: [Samples; 4] = Default::default();
    for _ in 0..100 {
        for (size, samples) in SIZES.into_iter().zip(&mut per_lease) {
            let batch = fences[..size].to_vec();
            let started = Instant::now();
            let answers = store.renew_many(batch, TTL, budget()).await.expect("answers");
            let took = started.elapsed();
            let renewed = |answer: &BatchRenewal| matches!(answer, BatchRenewal::Answered(RenewAnswer::Renewed { .. }));
            assert!(answers.iter().all(renewed));
            samples.push_micros(took / u32::try_from(size).expect("at most a thousand"));
        }
    }
    for (size, samples) in SIZES.into_iter().zip(&per_lease) {
        figure(&format!("sqlite.renew_many.{size}.micros_per_lease"), samples.median(), "µs");
    }
}

async fn acquire(store: &SqliteStore, report: ReportId) -> Fence {
    let request = AcquireRequest {
        report,
        owner: Owner::random(),
        ttl: TTL,
        holder: Holder::new("bench").expect("a label"),
        min_epoch: Epoch::new(0),
        takeover_delay: Duration::ZERO,
        wanted: None,
    };
    match store.acquire(request, budget()).await.expect("an answer") {
        AcquireAnswer::Acquired(acquired) => acquired.fence,
        other => panic!("acquired, not {other:?}"),
    }
}

/// Never spent.
fn budget() -> Budget {
    Budget::within(Duration::from_secs(300))
}
