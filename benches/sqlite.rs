//! What the SQLite store costs: round trips, a fenced publication beside a naive overwrite, renewals with a large payload and
//! in batches. Real files with real fsyncs; what is compared is measured in turns.

mod support {
    pub(crate) mod calls;
    pub(crate) mod figure;
    pub(crate) mod naive;
    pub(crate) mod place;
    pub(crate) mod round_trips;
    pub(crate) mod samples;
}

use leasehold::ReportId;
use leasehold::store::Store;
use leasehold::store::sqlite::SqliteStore;
use leasehold::testing::{FaultyStore, Operation};
use support::calls::{self, KIB, MIB, acquire, budget, is_asked, payload, publish};
use support::figure::Figures;
use support::naive::NaiveReports;
use support::place::Place;
use support::round_trips;
use support::samples::Samples;

const FIGURES: Figures = Figures { store: "sqlite", engine: None };

/// More than the pages after which SQLite begins its log anew.
const LONG_LOG: usize = 8 * MIB;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if is_asked("round_trips") {
        count_round_trips().await;
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
        let place = Place::new();
        calls::renew_over_payload(&FIGURES, &place.open().await).await;
        let place = Place::new();
        let store = place.open().await;
        lengthen_log(&store).await;
        calls::renew_many(&FIGURES, &store, 100).await;
    }
}

/// Calls of the store, or transactions in its log, whichever are more.
async fn count_round_trips() {
    /// Whatever the client may send between an acquisition and its end.
    const OPERATIONS: [Operation; 9] = [
        Operation::Provision,
        Operation::Acquire,
        Operation::Renew,
        Operation::RenewMany,
        Operation::Publish,
        Operation::PublishAndAdvance,
        Operation::Close,
        Operation::Release,
        Operation::Begin,
    ];
    let place = Place::new();
    let store = FaultyStore::new(place.open().await);
    let counted = store.clone();
    let mut before = (0, 0);
    round_trips::measure(&FIGURES, store, || {
        let calls: usize = OPERATIONS.iter().map(|&operation| counted.calls(operation)).sum();
        let so_far = (calls, place.commits());
        let since = (so_far.0 - before.0).max(so_far.1 - before.1);
        before = so_far;
        since as f64
    })
    .await;
}

async fn publish_over_naive(suffix: &str, size: usize, pairs: usize) {
    let (place, naive) = (Place::new(), NaiveReports::new());
    let store = place.open().await;
    let (report, other) = (ReportId::from_name("report"), ReportId::from_name("other"));
    naive.provision(report);
    naive.provision(other);
    store.provision(report, budget()).await.expect("a row");
    lengthen_log(&store).await;
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
    FIGURES.print(&format!("publish.over_naive{suffix}"), fenced / overwritten, "ratio");
}

/// Makes the file's log as long as that of a database that has been in use for a while. Until then every commit makes it longer,
/// which costs the file system more than to write in place.
async fn lengthen_log(store: &SqliteStore) {
    let other = ReportId::from_name("other");
    store.provision(other, budget()).await.expect("a row");
    let fence = acquire(store, other).await;
    publish(store, fence, &payload(LONG_LOG, "x")).await;
}
