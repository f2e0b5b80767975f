//! The fence: a number that only grows, and clocks that have no say in it.

use std::time::{Duration, SystemTime};

use leasehold::answer::{AcquireAnswer, PublishAnswer, Refusal, RenewAnswer};
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::sqlite::testing::ManualClock;
use leasehold::store::{AcquireRequest, Store};
use leasehold::testing::{JumpingClock, TokioClock};
use leasehold::{BootClock, Epoch, Holder, LeasePolicy, LeaseStatus, LeaseSupervisor};

use crate::child;
use crate::place::{Place, TTL, budget, publish, report, request, take};
use crate::process::{Worker, hear, say, supervisor};
use crate::support;

const HOUR: Duration = Duration::from_secs(3_600);

/// openzeppelin guardian#301: release deleted the row, and the generation began at 0 again.
#[tokio::test]
async fn case_07_generations_grow_across_releases_restarts_and_clean_up_jobs() {
    if let Some(file) = child::file() {
        return acquire_and_end(&file).await;
    }
    let place = Place::new();
    let mut last = 0;
    for end in ["release", "publish", "advance", "drop", "exit", "release"].repeat(2) {
        let test = "generations::case_07_generations_grow_across_releases_restarts_and_clean_up_jobs";
        let mut worker = Worker::start(test, &place.file());
        worker.say(end);
        let generation: i64 = worker.hear().parse().unwrap();
        assert!(generation > last, "{end}: {generation} after {last}");
        last = generation;
        assert!(worker.ended().success());

        // What operators and their jobs do between two runs.
        let store = place.open().await;
        let aged = "UPDATE ReportLedger SET EndedAtUtc = '2001-01-01T00:00:00.000Z'";
        place.raw().execute(aged, []).unwrap();
        store.prune_ledger(HOUR, budget()).await.unwrap();
        store.require_source_revision(report(), leasehold::SourceRevision::new(0), budget()).await.unwrap();
        store.reset_source_revision(report(), None, budget()).await.unwrap();
        store.force_release(report(), Holder::new("operator").unwrap(), budget()).await.unwrap();
        let epoch = Epoch::new(last);
        store.advance_recovery_epoch(epoch, budget()).await.unwrap();
        let rows: i64 = place.raw().query_row("SELECT count(*) FROM ReportPublication", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1, "{end}: the row stays for ever");
    }
}

/// Acquires, says the generation that it ends with, and ends the lease as it was told.
async fn acquire_and_end(file: &std::path::Path) {
    let end = hear();
    let supervisor = supervisor(&SqliteStore::open(file).await.unwrap(), TTL);
    let guard = supervisor.acquire_or_provision(report(), None).await.unwrap().acquired().unwrap();
    let generation = guard.lease().fence().generation.get();
    let last = if end == "advance" { generation + 1 } else { generation };
    match &*end {
        "release" => drop(guard.release().await),
        "publish" => drop(guard.publish("payload").await.unwrap()),
        "advance" => {
            let mut publication = guard.publication("payload").and_advance();
            publication.send().await.unwrap();
            let guard = publication.into_guard().unwrap();
            assert_eq!(guard.lease().fence().generation.get(), last);
            drop(guard);
        }
        "drop" => drop(guard),
        _ => {
            say(last);
            std::process::exit(0);
        }
    }
    say(last);
}

/// jOOQ#13564, sql-docs#6896: a fence that was a rounded `datetime` did not equal itself.
#[tokio::test]
async fn case_10_the_fence_is_an_integer_and_exact_at_every_size() {
    // 2^53 and 2^62: where a double rounds, and where adding two of them would overflow.
    for generation in [0, 1 << 31, 1 << 32, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, 1 << 62, i64::MAX - 2] {
        let place = Place::new();
        let store = place.open().await;
        store.provision(report(), budget()).await.unwrap();
        place.raw().execute("UPDATE ReportPublication SET Generation = ?1", [generation]).unwrap();
        let fence = take(&store, request(TTL)).await;
        assert_eq!(fence.generation.get(), generation + 1);
        #[cfg(feature = "serde")]
        {
            let text = serde_json::to_string(&fence).unwrap();
            assert_eq!(serde_json::from_str::<leasehold::Fence>(&text).unwrap(), fence, "{text}");
        }
        let neighbour = leasehold::Fence { generation: leasehold::Generation::new(generation), ..fence };
        assert!(matches!(store.renew(neighbour, TTL, budget()).await.unwrap(), RenewAnswer::Refused(_)));
        assert!(matches!(store.renew(fence, TTL, budget()).await.unwrap(), RenewAnswer::Renewed { .. }));
        assert!(matches!(publish(&store, fence, "exact").await, PublishAnswer::Published(_)), "{generation}");
        let columns = "SELECT count(*) FROM ReportPublication WHERE typeof(Generation) <> 'integer' \
                       OR typeof(PublishedGeneration) <> 'integer' OR typeof(RecoveryEpoch) <> 'integer'";
        let rounded: i64 = place.raw().query_row(columns, [], |row| row.get(0)).unwrap();
        assert_eq!(rounded, 0);
    }
}

/// ShedLock#1876 and #91: an hour's change of the wall clock gave leases away, or kept them for an hour.
#[tokio::test]
async fn case_10_no_wall_clock_moves_a_lease() {
    let (place, clock) = (Place::new(), ManualClock::new("boot", HOUR));
    let store = place.open_at(&clock).await;
    let fence = take(&store, request(TTL)).await;
    let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000);
    for utc in [noon + HOUR, noon - HOUR, noon + 24 * 365 * HOUR, SystemTime::UNIX_EPOCH] {
        clock.set_wall_clock(utc);
        let busy = store.acquire(request(TTL), budget()).await.unwrap();
        assert!(matches!(&busy, AcquireAnswer::Busy(busy) if busy.remaining == TTL), "{busy:?}");
    }
    clock.advance(TTL);
    clock.set_wall_clock(noon - HOUR);
    assert_eq!(store.renew(fence, TTL, budget()).await.unwrap(), RenewAnswer::Refused(Refusal::Expired));
    assert_eq!(take(&store, request(TTL)).await.generation.get(), fence.generation.get() + 1);
}

/// ShedLock#1876: workers in different time zones.
#[tokio::test]
async fn case_10_a_workers_time_zone_is_seen_by_nobody() {
    if let Some(file) = child::file() {
        let store = SqliteStore::open(&file).await.unwrap();
        take(&store, AcquireRequest { owner: leasehold::Owner::random(), ..request(TTL) }).await;
        return say("holds");
    }
    // The far ends of the world, and one that is half an hour and a summer away from anything.
    for zone in ["UTC0", "WEST12", "EAST-14", "ODD-9:30ODDS-10:30,M1.1.0,M12.5.0"] {
        let place = Place::new();
        let test = "generations::case_10_a_workers_time_zone_is_seen_by_nobody";
        let mut worker = Worker::start_with(test, &place.file(), |command| command.env("TZ", zone));
        assert_eq!(worker.hear(), "holds");
        let store = place.open().await;
        let lease = store.inspect(report(), budget()).await.unwrap().unwrap().lease.unwrap();
        let age = SystemTime::now().duration_since(lease.since).unwrap_or_default();
        assert!(age < Duration::from_secs(600), "{zone}: {age:?} old");
        assert!(lease.remaining <= TTL, "{zone}: {:?}", lease.remaining);
        let utc: String = place
            .raw()
            .query_row("SELECT LeaseAcquiredAtUtc FROM ReportPublication WHERE LeaseUntilUtc LIKE '%Z'", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert!(utc.ends_with('Z'), "{zone}: {utc}");
    }
}

/// ShedLock#231: a client whose clock was ahead took leases that others held.
#[tokio::test(start_paused = true)]
async fn case_10_a_clients_skewed_clock_decides_nothing() {
    for skew in [Duration::ZERO, HOUR, 24 * 365 * 100 * HOUR] {
        let clock = JumpingClock::new(TokioClock::start());
        clock.jump(skew);
        let scene = support::scene_with_clock(support::policy(), clock).await;
        let guard = scene.acquire().await;
        assert_eq!(guard.lease().remaining(), support::DEADLINE, "{skew:?}");
        assert!(scene.rival().acquire(scene.report, None).await.is_err());
        tokio::time::sleep(10 * support::TTL).await;
        assert!(matches!(guard.status(), LeaseStatus::Held { .. }), "{skew:?}");
        guard.publish("payload").await.unwrap();
    }
}

/// The same on a real file, where the client's clock is hours away from the database's.
#[tokio::test]
async fn case_10_a_clients_skewed_clock_takes_nothing_from_a_database_file() {
    let place = Place::new();
    let store = place.open().await;
    store.provision(report(), budget()).await.unwrap();
    let clock = JumpingClock::new(BootClock);
    clock.jump(100 * HOUR);
    let ahead = LeaseSupervisor::builder(store.clone(), LeasePolicy::builder(TTL).build().unwrap())
        .clock(clock)
        .start()
        .unwrap();
    let held = support::acquire(&supervisor(&store, TTL), report()).await;
    assert!(matches!(ahead.acquire(report(), None).await, Err(leasehold::AcquireError::Busy(_))));
    held.release().await;
    support::acquire(&ahead, report()).await.publish("payload").await.unwrap();
}
