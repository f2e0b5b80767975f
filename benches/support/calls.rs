//! Calls of a store, and what renewals cost on any.

use std::time::{Duration, Instant};

use leasehold::answer::{AcquireAnswer, BatchRenewal, PublishAnswer, RenewAnswer};
use leasehold::store::{AcquireRequest, Budget, Payload, PublishRequest, Store};
use leasehold::{Epoch, Fence, Holder, OperationId, Owner, ReportId};

use super::figure::Figures;
use super::samples::Samples;

const TTL: Duration = Duration::from_secs(3_600);
pub(crate) const KIB: usize = 1 << 10;
pub(crate) const MIB: usize = 1 << 20;

/// `cargo bench --bench … -- publish` measures that part alone.
pub(crate) fn is_asked(part: &str) -> bool {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    asked.is_empty() || asked.iter().any(|name| part.contains(name.as_str()))
}

/// Never spent.
pub(crate) fn budget() -> Budget {
    Budget::within(Duration::from_secs(300))
}

pub(crate) fn payload(size: usize, text: &str) -> Payload {
    Payload::new(text.repeat(size), usize::MAX).expect("a payload")
}

pub(crate) async fn acquire(store: &impl Store, report: ReportId) -> Fence {
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

pub(crate) async fn publish(store: &impl Store, fence: Fence, payload: &Payload) -> Duration {
    let request = PublishRequest { fence, operation: OperationId::random(), payload: payload.clone(), revision: None };
    let started = Instant::now();
    let answer = store.publish(request, budget()).await.expect("an answer");
    let took = started.elapsed();
    assert!(matches!(answer, PublishAnswer::Published(_)));
    took
}

async fn renew(store: &impl Store, fence: Fence) -> Duration {
    let started = Instant::now();
    let answer = store.renew(fence, TTL, budget()).await.expect("an answer");
    let took = started.elapsed();
    assert!(matches!(answer, RenewAnswer::Renewed { .. }));
    took
}

/// Of two reports in one database, so that they differ in nothing but their payload.
pub(crate) async fn renew_over_payload(figures: &Figures, store: &impl Store) {
    let small = with_payload(store, 0).await;
    let large = with_payload(store, 16 * MIB).await;
    let (mut of_small, mut of_large) = (Samples::default(), Samples::default());
    for pair in 0..400 {
        if pair % 2 == 0 {
            of_small.push_micros(renew(store, small).await);
            of_large.push_micros(renew(store, large).await);
        } else {
            of_large.push_micros(renew(store, large).await);
            of_small.push_micros(renew(store, small).await);
        }
    }
    let (of_small, of_large) = (of_small.median(), of_large.median());
    println!("renewed in {of_small:.0} µs without a payload, in {of_large:.0} µs with one of 16 MiB (medians of 400)");
    figures.print("renew.micros", of_small, "µs");
    figures.print("renew.over_payload_16MiB", of_large / of_small, "ratio");
}

/// The lease of a report with a visible payload of this size.
async fn with_payload(store: &impl Store, size: usize) -> Fence {
    let report = ReportId::from_name(&size.to_string());
    store.provision(report, budget()).await.expect("a row");
    let fence = acquire(store, report).await;
    publish(store, fence, &payload(size, "x")).await;
    acquire(store, report).await
}

/// Of small reports, in turns with single renewals.
pub(crate) async fn renew_many(figures: &Figures, store: &impl Store, rounds: usize) {
    const SIZES: [usize; 4] = [1, 100, 500, 1_000];
    let mut fences = Vec::new();
    for number in 0..1_000 {
        let report = ReportId::from_name(&format!("one of many {number}"));
        store.provision(report, budget()).await.expect("a row");
        fences.push(acquire(store, report).await);
    }
    let (mut alone, mut per_lease): (Samples, [Samples; 4]) = Default::default();
    for _ in 0..rounds {
        alone.push_micros(renew(store, fences[0]).await);
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
    println!("a single renewal took {:.0} µs meanwhile (median of {rounds})", alone.median());
    for (size, samples) in SIZES.into_iter().zip(&per_lease) {
        figures.print(&format!("renew_many.{size}.micros_per_lease"), samples.median(), "µs");
    }
    figures.print("renew_many.500.over_single", per_lease[2].median() / alone.median(), "ratio");
}
