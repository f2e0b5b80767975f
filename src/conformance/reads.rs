//! Reads: the payload, its version, and who holds what.

use std::collections::BTreeSet;
use std::time::Duration;

use super::answers::{busy, found, published};
use super::harness::Database;
use super::scene::{Scene, unknown_report};
use super::suite::cases;
use super::worker::{TTL, Worker, acquiring, budget, holder, publishing_revision};
use crate::answer::{Metadata, ReadAnswer, Version};
use crate::fence::{Generation, ReportId};
use crate::store::{AcquireRequest, ListRequest, Store};

cases![
    an_unknown_report_is_missing_in_every_read,
    a_report_without_a_publication_is_unpublished,
    a_read_gives_the_payload_with_its_version,
    a_read_sends_only_what_is_newer,
    metadata_says_what_the_row_says,
    inspect_shows_the_lease,
    inspect_shows_a_free_report_without_a_lease,
    inspect_shows_an_expired_lease_only_while_its_delay_keeps_it,
    a_list_gives_every_report_once_page_by_page,
    a_list_of_leases_leaves_free_reports_out,
    a_list_of_nothing_left_is_empty,
    a_store_has_no_problems,
    a_store_for_another_runtime_sees_the_same,
];

async fn read_newer<S: Store>(a: &Worker<S>, report: ReportId, than: Version) -> ReadAnswer {
    a.store.read(report, Some(than), budget()).await.expect("read")
}

async fn metadata<S: Store>(a: &Worker<S>, report: ReportId) -> Metadata {
    a.store.metadata(report, budget()).await.expect("metadata").expect("the row")
}

async fn an_unknown_report_is_missing_in_every_read<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let unknown = unknown_report();
    assert_eq!(a.read(unknown).await, ReadAnswer::Missing);
    let version = Version { epoch: scene.row().await.epoch, generation: Generation::new(1) };
    assert_eq!(read_newer(&a, unknown, version).await, ReadAnswer::Missing);
    assert_eq!(a.store.metadata(unknown, budget()).await.expect("metadata"), None);
    assert_eq!(a.store.inspect(unknown, budget()).await.expect("inspect"), None);
}

async fn a_report_without_a_publication_is_unpublished<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    assert_eq!(a.read(scene.report).await, ReadAnswer::Unpublished);
    a.acquires(scene.report).await;
    assert_eq!(a.read(scene.report).await, ReadAnswer::Unpublished);
    assert_eq!(metadata(&a, scene.report).await.visible, None);
}

async fn a_read_gives_the_payload_with_its_version<D: Database>(scene: Scene<D>) {
    let (a, reader) = scene.two_workers().await;
    for round in 1..=3 {
        let text = format!("report {round}");
        let receipt = a.acquires_and_publishes(scene.report, &text, Some(round)).await;
        let ReadAnswer::Found { visible, payload } = reader.read(scene.report).await else { panic!("no payload") };
        assert_eq!(payload, text);
        assert_eq!(visible.version, Version { epoch: receipt.epoch, generation: receipt.generation });
        assert_eq!((visible.revision, visible.published_at), (receipt.revision, receipt.published_at));
    }
}

async fn a_read_sends_only_what_is_newer<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    a.acquires_and_publishes(scene.report, "old", None).await;
    let receipt = a.acquires_and_publishes(scene.report, "new", None).await;
    let current = Version { epoch: receipt.epoch, generation: receipt.generation };
    let older = Version { generation: Generation::new(receipt.generation.get() - 1), ..current };
    let newer = Version { generation: Generation::new(receipt.generation.get() + 1), ..current };
    assert_eq!(found(read_newer(&a, scene.report, older).await), "new");
    for known in [current, newer] {
        match read_newer(&a, scene.report, known).await {
            ReadAnswer::NotNewer(visible) => assert_eq!(visible.version, current),
            other => panic!("{known:?} is known: {other:?}"),
        }
    }
    a.acquires_and_publishes(scene.report, "newest", None).await;
    assert_eq!(found(read_newer(&a, scene.report, current).await), "newest");
}

async fn metadata_says_what_the_row_says<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let row = scene.row().await;
    let unpublished = Metadata {
        generation: Generation::new(0),
        epoch: row.epoch,
        visible: None,
        revision_floor: None,
        pruned_up_to: Generation::new(0),
    };
    assert_eq!(metadata(&a, scene.report).await, unpublished);
    a.require_revision(scene.report, 2).await;
    let fence = a.acquires(scene.report).await;
    let receipt = published(a.send(&publishing_revision(fence, "a report", 7)).await).receipt;
    let fence = a.acquires(scene.report).await;
    let metadata = metadata(&a, scene.report).await;
    assert_eq!((metadata.generation, metadata.epoch), (fence.generation, fence.epoch));
    assert_eq!(metadata.revision_floor.map(|floor| floor.get()), Some(2));
    let visible = metadata.visible.expect("what is published");
    assert_eq!(visible.version, Version { epoch: receipt.epoch, generation: receipt.generation });
    assert_eq!((visible.revision, visible.published_at), (receipt.revision, receipt.published_at));
    assert_eq!(a.inspect(scene.report).await.metadata, metadata);
}

async fn inspect_shows_the_lease<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let takeover_delay = Duration::from_millis(12_345);
    let request = AcquireRequest { holder: holder("host/1/A"), takeover_delay, ..acquiring(scene.report) };
    let fence = a.acquires_as(request).await.fence;
    let status = b.inspect(scene.report).await;
    assert_eq!((status.report, status.forced), (scene.report, None));
    let lease = status.lease.expect("a lease");
    assert_eq!((lease.owner, lease.holder.as_str()), (Some(fence.owner), "host/1/A"));
    assert_eq!(lease.takeover_delay, takeover_delay);
    assert!(lease.remaining <= TTL && lease.remaining > TTL / 2, "{lease:?}");
    assert_eq!(busy(b.acquire(acquiring(scene.report)).await).since, lease.since);
}

async fn inspect_shows_a_free_report_without_a_lease<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    assert_eq!(a.inspect(scene.report).await.lease, None);
    let fence = a.acquires_with_delay(scene.report, TTL).await;
    a.release(fence).await;
    assert_eq!(a.inspect(scene.report).await.lease, None);
    let fence = a.acquires_with_delay(scene.report, TTL).await;
    a.publishes(fence, "a report").await;
    assert_eq!(a.inspect(scene.report).await.lease, None);
}

async fn inspect_shows_an_expired_lease_only_while_its_delay_keeps_it<D: Database>(scene: Scene<D>) {
    let (a, b) = scene.two_workers().await;
    let fence = a.acquires_with_delay(scene.report, TTL).await;
    scene.expire().await;
    let unseen = a.inspect(scene.report).await.lease.expect("a lease within its delay");
    assert_eq!((unseen.owner, unseen.remaining), (Some(fence.owner), Duration::ZERO));
    assert_eq!(scene.row().await.owner, Some(fence.owner), "inspect takes no lock and ends no lease");
    busy(b.acquire(acquiring(scene.report)).await);
    let seen = a.inspect(scene.report).await.lease.expect("a lease within its delay");
    assert_eq!((seen.owner, seen.remaining), (None, Duration::ZERO));
    let delay = i64::try_from(TTL.as_millis()).expect("a delay");
    scene.db.set_expiry(scene.report, -delay - 1).await;
    assert_eq!(a.inspect(scene.report).await.lease, None);
}

async fn list<S: Store>(a: &Worker<S>, after: Option<ReportId>, limit: usize, leased_only: bool) -> Vec<ReportId> {
    let request = ListRequest { after, limit, leased_only };
    let page = a.store.list(request, budget()).await.expect("list");
    page.into_iter().map(|status| status.report).collect()
}

async fn a_list_gives_every_report_once_page_by_page<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let mut reports = BTreeSet::from([scene.report]);
    for _ in 0..8 {
        reports.insert(scene.another_report().await);
    }
    let whole = list(&a, None, 1_000, false).await;
    assert_eq!(whole.iter().copied().collect::<BTreeSet<_>>(), reports);
    for limit in [1, 2, 4, 9, 10] {
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let page = list(&a, after, limit, false).await;
            assert!(page.len() <= limit, "{} rows instead of {limit}", page.len());
            let Some(last) = page.last() else { break };
            after = Some(*last);
            paged.extend(page);
        }
        assert_eq!(paged, whole, "pages of {limit}");
    }
}

async fn a_list_of_leases_leaves_free_reports_out<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let mut reports = Vec::new();
    for _ in 0..5 {
        reports.push(scene.another_report().await);
    }
    let [held, kept, expired, released, free] = reports[..] else { unreachable!("five reports") };
    a.acquires(held).await;
    a.acquires_with_delay(kept, TTL).await;
    scene.db.set_expiry(kept, -1).await;
    a.acquires(expired).await;
    scene.db.set_expiry(expired, -1).await;
    let fence = a.acquires(released).await;
    a.release(fence).await;
    let leased: BTreeSet<_> = list(&a, None, 100, true).await.into_iter().collect();
    assert_eq!(leased, BTreeSet::from([held, kept]));
    assert!(list(&a, None, 100, false).await.contains(&free));
    let first = list(&a, None, 1, true).await;
    let second = list(&a, Some(first[0]), 1, true).await;
    assert_eq!(BTreeSet::from([first[0], second[0]]), leased, "free rows use no page up");
}

async fn a_list_of_nothing_left_is_empty<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let last = list(&a, None, 10, false).await;
    assert_eq!(last, [scene.report]);
    assert_eq!(list(&a, Some(scene.report), 10, false).await, []);
    assert_eq!(list(&a, None, 10, true).await, []);
}

async fn a_store_has_no_problems<D: Database>(scene: Scene<D>) {
    let check = scene.worker().await.store.check(budget()).await.expect("check");
    assert_eq!(check.problems, Vec::<String>::new());
    assert_eq!(check.epoch, scene.row().await.epoch);
    assert!(!check.engine.is_empty() && !check.isolation.is_empty(), "{check:?}");
}

async fn a_store_for_another_runtime_sees_the_same<D: Database>(scene: Scene<D>) {
    let a = scene.worker().await;
    let store = a.store.for_runtime(&tokio::runtime::Handle::current());
    let other = Worker { store };
    let fence = a.acquires(scene.report).await;
    super::answers::renewed(other.renew(fence).await);
    other.publishes(fence, "a report").await;
    assert_eq!(found(a.read(scene.report).await), "a report");
}
