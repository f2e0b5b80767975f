//! The ends of every range: TTLs, delays, generations, payloads, labels.

use std::time::Duration;

use super::answers::{busy, fails, found, published, renewed};
use super::harness::Database;
use super::scene::Scene;
use super::suite::cases;
use super::worker::{TTL, acquiring, advancing, budget, holder};
use crate::error::StoreErrorKind;
use crate::fence::{Generation, Holder};
use crate::store::{AcquireRequest, AdvanceRequest, MAX_TAKEOVER_DELAY, MAX_TTL, MIN_TTL, Store};

cases![
    a_ttl_out_of_range_is_invalid_and_changes_nothing,
    the_shortest_and_the_longest_ttl_are_accepted,
    a_takeover_delay_out_of_range_is_invalid_and_changes_nothing,
    the_last_generation_can_be_acquired_and_published,
    beyond_the_last_generation_nothing_is_acquired,
    beyond_the_last_generation_operators_are_rejected_too,
    busy_is_answered_before_the_end_of_the_range,
    an_empty_payload_is_a_payload,
    payloads_come_back_byte_by_byte,
    a_payload_of_one_mebibyte_comes_back,
    a_payload_of_sixteen_mebibytes_comes_back,
    a_large_payload_is_sent_again_and_published_once,
    the_longest_label_comes_back,
];

/// Just outside, and far outside, of what a TTL may be.
fn bad_ttls() -> [Duration; 4] {
    let millisecond = Duration::from_millis(1);
    [Duration::ZERO, MIN_TTL - millisecond, MAX_TTL + millisecond, Duration::MAX]
}

async fn a_ttl_out_of_range_is_invalid_and_changes_nothing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    for ttl in bad_ttls() {
        let request = AcquireRequest { ttl, ..acquiring(scene.report) };
        fails(a.store.acquire(request, budget()).await, StoreErrorKind::Invalid);
    }
    assert_eq!(scene.row().await.generation, Generation::new(0));
    let fence = a.acquires(scene.report).await;
    scene.db.set_expiry(scene.report, 60_000).await;
    for ttl in bad_ttls() {
        fails(a.store.renew(fence, ttl, budget()).await, StoreErrorKind::Invalid);
        fails(a.store.renew_many(vec![fence], ttl, budget()).await, StoreErrorKind::Invalid);
        let request = AdvanceRequest { ttl, ..advancing(fence, "a report") };
        fails(a.store.publish_and_advance(request, budget()).await, StoreErrorKind::Invalid);
    }
    let row = scene.row().await;
    assert_eq!((row.owner, row.payload), (Some(fence.owner), None));
    assert!(row.expires_in_millis.is_some_and(|millis| millis <= 60_000));
}

async fn the_shortest_and_the_longest_ttl_are_accepted<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let short = a.acquires_as(AcquireRequest { ttl: MIN_TTL, ..acquiring(scene.report) }).await;
    assert!(short.remaining <= MIN_TTL);
    scene.until_expired(scene.report).await;
    let long = a.acquires_as(AcquireRequest { ttl: MAX_TTL, ..acquiring(scene.report) }).await;
    assert!(long.remaining <= MAX_TTL && long.remaining > MAX_TTL / 2, "{long:?}");
    let remaining = renewed(a.renew_for(long.fence, MIN_TTL).await);
    assert!(remaining <= MAX_TTL && remaining > MAX_TTL / 2, "{remaining:?}");
    let remaining = renewed(a.renew_for(long.fence, MAX_TTL).await);
    assert!(remaining <= MAX_TTL && remaining > MAX_TTL / 2, "{remaining:?}");
    published(a.advance(&AdvanceRequest { ttl: MAX_TTL, ..advancing(long.fence, "a report") }).await);
}

async fn a_takeover_delay_out_of_range_is_invalid_and_changes_nothing<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    for takeover_delay in [MAX_TAKEOVER_DELAY + Duration::from_millis(1), Duration::MAX] {
        let request = AcquireRequest { takeover_delay, ..acquiring(scene.report) };
        fails(a.store.acquire(request, budget()).await, StoreErrorKind::Invalid);
    }
    assert_eq!(scene.row().await.generation, Generation::new(0));
}

async fn the_last_generation_can_be_acquired_and_published<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.db.set_generation(scene.report, Generation::new(i64::MAX - 1)).await;
    let fence = a.acquires(scene.report).await;
    assert_eq!(fence.generation, Generation::new(i64::MAX));
    renewed(a.renew(fence).await);
    assert_eq!(a.publishes(fence, "the last").await.generation, Generation::new(i64::MAX));
    assert_eq!(found(a.read(scene.report).await), "the last");
}

async fn beyond_the_last_generation_nothing_is_acquired<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.db.set_generation(scene.report, Generation::new(i64::MAX)).await;
    let before = scene.row().await;
    fails(a.store.acquire(acquiring(scene.report), budget()).await, StoreErrorKind::Rejected);
    assert_eq!(scene.row().await, before);
}

async fn beyond_the_last_generation_operators_are_rejected_too<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    scene.db.set_generation(scene.report, Generation::new(i64::MAX - 1)).await;
    let fence = a.acquires(scene.report).await;
    fails(a.store.force_release(scene.report, holder("an operator"), budget()).await, StoreErrorKind::Rejected);
    fails(a.store.reset_source_revision(scene.report, None, budget()).await, StoreErrorKind::Rejected);
    let row = scene.row().await;
    assert_eq!((row.owner, row.generation), (Some(fence.owner), Generation::new(i64::MAX)));
    assert_eq!(row.forced_generation, None);
    a.publishes(fence, "the last").await;
}

async fn busy_is_answered_before_the_end_of_the_range<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    scene.db.set_generation(scene.report, Generation::new(i64::MAX - 1)).await;
    a.acquires(scene.report).await;
    busy(b.acquire(acquiring(scene.report)).await);
}

async fn an_empty_payload_is_a_payload<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "", None).await;
    assert_eq!(found(a.read(scene.report).await), "");
    assert_eq!(scene.row().await.payload.as_deref(), Some(""));
}

async fn payloads_come_back_byte_by_byte<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let payloads = [
        "'; DROP TABLE ReportPublication; --",
        "\"double\" `back` $1 ?1 @payload {} %s \\ \\n",
        "  spaces and a tab at both ends\t ",
        "\r\nlines\rand\u{2028}more\n",
        "é and e\u{301} are two texts; ß, ẞ, ı, İ",
        "日本語 العربية עברית 🦀 👩‍👩‍👧‍👦 \u{10FFFF}",
        "\u{FEFF}\u{1}\u{7F}\u{FFFD}",
    ];
    for text in payloads {
        a.acquires_and_publishes(scene.report, text, None).await;
        assert_eq!(found(a.read(scene.report).await), text);
    }
}

/// Text of so many bytes in which every line of a page is another, so that a lost or repeated part shows.
fn long_text(bytes: usize) -> String {
    let filling = "a line of a report ".repeat(200);
    let lines = (0..).map(|line| format!("{line:012} {filling}\n"));
    let mut text: String = lines.take(bytes / filling.len() + 1).collect();
    text.truncate(bytes);
    text
}

async fn comes_back<D: Database>(scene: &Scene<D>, bytes: usize) {
    let a = scene.worker().await;
    let text = long_text(bytes);
    a.acquires_and_publishes(scene.report, &text, None).await;
    assert!(found(a.read(scene.report).await) == text, "another text of {bytes} bytes came back");
}

async fn a_payload_of_one_mebibyte_comes_back<D: Database>(scene: Scene<D>) {
    comes_back(&scene, 1 << 20).await;
}

async fn a_payload_of_sixteen_mebibytes_comes_back<D: Database>(scene: Scene<D>) {
    comes_back(&scene, 16 << 20).await;
}

async fn a_large_payload_is_sent_again_and_published_once<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let request = advancing(a.acquires(scene.report).await, &long_text(1 << 20));
    let first = published(a.advance(&request).await);
    let second = super::answers::already_published(a.advance(&request).await);
    assert_eq!(second.receipt, first.receipt);
    renewed(a.renew_for(super::answers::next(second).fence, TTL).await);
}

async fn the_longest_label_comes_back<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let label = "界".repeat(Holder::MAX_CHARS);
    a.acquires_as(AcquireRequest { holder: holder(&label), ..acquiring(scene.report) }).await;
    assert_eq!(busy(b.acquire(acquiring(scene.report)).await).holder.as_str(), label);
    assert_eq!(a.inspect(scene.report).await.lease.expect("a lease").holder.as_str(), label);
    a.store.force_release(scene.report, holder(&label), budget()).await.expect("force_release");
    assert_eq!(a.inspect(scene.report).await.forced.expect("a record").by.as_str(), label);
}
