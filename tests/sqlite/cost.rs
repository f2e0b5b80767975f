//! What an operation writes, counted in bytes of the write-ahead log.

use leasehold::answer::{BatchRenewal, PublishAnswer, RenewAnswer};
use leasehold::store::{AcquireRequest, Store};
use leasehold::{Fence, ReportId};

use crate::place::{Place, TTL, budget, publish, request, take};

/// The log's header, and one page with the header of its frame.
const LOG: u64 = 32;
const FRAME: u64 = 24 + 4096;

fn empty_log(place: &Place) {
    let busy: i64 = place.raw().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!((busy, place.wal_bytes()), (0, 0));
}

#[tokio::test]
async fn a_renewal_writes_one_page_however_big_the_payload_is() {
    for size in [0, 16 * 1024 * 1024] {
        let place = Place::new();
        let store = place.open().await;
        let first = take(&store, request(TTL)).await;
        assert!(matches!(publish(&store, first, &"x".repeat(size)).await, PublishAnswer::Published(_)));
        let fence = take(&store, request(TTL)).await;
        empty_log(&place);
        let renewed = store.renew(fence, TTL, budget()).await.unwrap();
        assert!(matches!(renewed, RenewAnswer::Renewed { .. }));
        assert_eq!(place.wal_bytes(), LOG + FRAME, "with a payload of {size} bytes");
    }
}

#[tokio::test]
async fn a_thousand_renewals_are_one_transaction() {
    let place = Place::new();
    let store = place.open().await;
    let mut fences: Vec<Fence> = Vec::new();
    for number in 0..100 {
        fences.push(
            take(&store, AcquireRequest { report: ReportId::from_name(&format!("{number}")), ..request(TTL) }).await,
        );
    }
    let fences: Vec<Fence> = fences.iter().cycle().take(1000).copied().collect();
    empty_log(&place);
    let answers = store.renew_many(fences, TTL, budget()).await.unwrap();
    assert_eq!(answers.len(), 1000);
    let renewed = |answer: &BatchRenewal| matches!(answer, BatchRenewal::Answered(RenewAnswer::Renewed { .. }));
    assert!(answers.iter().all(renewed));
    // Each page once: a hundred small rows fit in some dozen pages.
    assert!(place.wal_bytes() <= LOG + 20 * FRAME, "{} bytes", place.wal_bytes());
}
