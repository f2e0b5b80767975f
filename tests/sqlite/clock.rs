//! Time since boot decides; the wall clock does not.

use std::time::{Duration, SystemTime};

use leasehold::answer::{AcquireAnswer, PublishAnswer, Refusal, RenewAnswer};
use leasehold::store::sqlite::testing::ManualClock;
use leasehold::store::{AcquireRequest, Store};

use crate::place::{Place, TTL, budget, publication, publish, report, request, take};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_lease_of_another_boot_is_over_and_no_takeover_delay_of_it_is_left() {
    let (place, clock) = (Place::new(), ManualClock::new("first", HOUR));
    let store = place.open_at(&clock).await;
    let old = take(&store, AcquireRequest { takeover_delay: HOUR, ..request(TTL) }).await;

    // Less time since the boot than the old expiry says: the number alone would keep the lease for an hour.
    clock.reboot("second", Duration::from_secs(1));
    assert_eq!(store.inspect(report(), budget()).await.unwrap().unwrap().lease, None);
    let refused = RenewAnswer::Refused(Refusal::Expired);
    assert_eq!(store.renew(old, TTL, budget()).await.unwrap(), refused);
    let new = take(&store, request(TTL)).await;
    assert_eq!(new.generation.get(), old.generation.get() + 1);
    let answer = publish(&store, old, "late").await;
    assert_eq!(answer, PublishAnswer::Refused(Refusal::Superseded { by: new.generation }));
}

#[tokio::test]
async fn a_publication_after_a_reboot_is_refused_though_nobody_took_the_lease() {
    let (place, clock) = (Place::new(), ManualClock::new("first", HOUR));
    let store = place.open_at(&clock).await;
    let fence = take(&store, request(TTL)).await;
    clock.reboot("second", Duration::ZERO);
    assert_eq!(publish(&store, fence, "late").await, PublishAnswer::Refused(Refusal::Expired));
}

#[tokio::test]
async fn a_clock_that_steps_back_revives_nothing_that_was_seen_expired() {
    for seen_by in ["renew", "acquire", "publish", "release", "close", "require"] {
        let (place, clock) = (Place::new(), ManualClock::new("boot", HOUR));
        let store = place.open_at(&clock).await;
        // With a takeover delay, so that whoever sees it expired finds it busy and takes nothing.
        let fence = take(&store, AcquireRequest { takeover_delay: HOUR, ..request(TTL) }).await;
        clock.advance(TTL);
        match seen_by {
            "renew" => {
                let _ = store.renew(fence, TTL, budget()).await.unwrap();
            }
            "acquire" => {
                let answer = store.acquire(request(TTL), budget()).await.unwrap();
                assert!(matches!(answer, AcquireAnswer::Busy(_)), "{answer:?}");
            }
            "publish" => {
                let _ = publish(&store, fence, "late").await;
            }
            "release" => {
                let _ = store.release(fence, budget()).await.unwrap();
            }
            "close" => {
                let stranger = leasehold::store::CloseRequest {
                    report: report(),
                    owner: leasehold::Owner::random(),
                    learned: None,
                };
                let _ = store.close(stranger, budget()).await.unwrap();
            }
            _ => {
                let revision = leasehold::SourceRevision::new(0);
                let _ = store.require_source_revision(report(), revision, budget()).await.unwrap();
            }
        }
        clock.step_back(TTL);
        let renewed = store.renew(fence, TTL, budget()).await.unwrap();
        assert_eq!(renewed, RenewAnswer::Refused(Refusal::Expired), "seen expired by {seen_by}");
        let answer = publish(&store, fence, "revived").await;
        assert!(matches!(answer, PublishAnswer::Refused(_)), "seen expired by {seen_by}: {answer:?}");
    }
}

#[tokio::test]
async fn a_step_of_the_wall_clock_moves_no_lease() {
    let (place, clock) = (Place::new(), ManualClock::new("boot", HOUR));
    let store = place.open_at(&clock).await;
    let fence = take(&store, request(TTL)).await;
    for utc in [SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000)] {
        clock.set_wall_clock(utc);
        let renewed = store.renew(fence, TTL, budget()).await.unwrap();
        assert_eq!(renewed, RenewAnswer::Renewed { remaining: TTL });
    }
    assert!(matches!(publish(&store, fence, "in time").await, PublishAnswer::Published(_)));
}

#[tokio::test]
async fn a_lease_ends_at_its_very_expiry_and_not_before() {
    let (place, clock) = (Place::new(), ManualClock::new("boot", HOUR));
    let store = place.open_at(&clock).await;
    let fence = take(&store, request(TTL)).await;
    clock.advance(TTL - Duration::from_nanos(1));
    let busy = store.acquire(request(TTL), budget()).await.unwrap();
    assert!(matches!(&busy, AcquireAnswer::Busy(busy) if busy.remaining.is_zero()), "{busy:?}");
    clock.advance(Duration::from_nanos(1));
    let renewed = store.renew(fence, TTL, budget()).await.unwrap();
    assert_eq!(renewed, RenewAnswer::Refused(Refusal::Expired));
}

#[tokio::test]
async fn an_expired_lease_is_kept_from_others_until_its_takeover_delay_ends() {
    let (place, clock) = (Place::new(), ManualClock::new("boot", HOUR));
    let store = place.open_at(&clock).await;
    let first = take(&store, AcquireRequest { takeover_delay: HOUR, ..request(TTL) }).await;
    clock.advance(TTL + Duration::from_secs(60));
    let AcquireAnswer::Busy(busy) = store.acquire(request(TTL), budget()).await.unwrap() else { panic!("taken") };
    assert_eq!(busy.remaining, HOUR - Duration::from_secs(60));
    clock.advance(HOUR - Duration::from_secs(60));
    assert_eq!(take(&store, request(TTL)).await.generation.get(), first.generation.get() + 1);
}

#[tokio::test]
async fn the_ledger_is_pruned_by_the_wall_clock_and_remembers_up_to_where() {
    let (place, clock) = (Place::new(), ManualClock::new("boot", HOUR));
    let store = place.open_at(&clock).await;
    let fence = take(&store, request(TTL)).await;
    let request_sent = publication(fence, "one");
    let sent = store.publish(request_sent.clone(), budget()).await.unwrap();
    assert!(matches!(sent, PublishAnswer::Published(_)));
    clock.advance(HOUR);
    assert_eq!(store.prune_ledger(HOUR, budget()).await.unwrap(), 0, "of the current generation nothing is pruned");
    let next = take(&store, request(TTL)).await;
    assert_eq!(store.prune_ledger(2 * HOUR, budget()).await.unwrap(), 0, "too young");
    assert_eq!(store.prune_ledger(HOUR, budget()).await.unwrap(), 1);
    let again = store.publish(request_sent, budget()).await.unwrap();
    let up_to = fence.generation;
    assert_eq!(again, PublishAnswer::NoLongerKnown(leasehold::answer::Forgotten::Pruned { up_to }));
    assert!(matches!(publish(&store, next, "two").await, PublishAnswer::Published(_)));
}
