//! A statement that is delayed at the server until everything about it is over.

use std::time::Duration;

use leasehold::answer::{CloseAnswer, Ending, EpochAnswer, ProvisionAnswer, PublishAnswer, Refusal};
use leasehold::conformance::Database;
use leasehold::store::postgres::Type;
use leasehold::store::{CloseRequest, Store};
use leasehold::{Epoch, Fence, ReportId, StoreErrorKind};

use crate::scene::{Scene, acquires, budget, fails, publishes, publishing};
use crate::support::connect;

/// Sends the function's call in a statement that began, with its snapshot taken, before a gate which the test holds shut; and
/// returns once it waits there. The task ends with whether the function wrote.
async fn delayed(scene: &Scene, call: String) -> (tokio_postgres::Client, tokio::task::JoinHandle<bool>) {
    let gate = connect(&scene.db.config).await;
    gate.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
    let late = connect(&scene.db.config).await;
    let sql =
        format!("SELECT applied FROM (SELECT pg_advisory_xact_lock(1)) AS gate, LATERAL {}.{call}", scene.db.schema);
    let task = tokio::spawn(async move { late.query_typed(&sql, &[]).await.unwrap()[0].get::<_, bool>(0) });
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while gate.query_typed(waiting, &[]).await.unwrap()[0].get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (gate, task)
}

/// How many calls of the scene's stores wait for a lock.
async fn waiters(scene: &Scene) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    scene.db.client.query_typed(sql, &[(&scene.db.schema, Type::TEXT)]).await.unwrap()[0].get(0)
}

async fn until_waiting(scene: &Scene, calls: i64) {
    while waiters(scene).await < calls {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn publish(Fence { report, owner, generation, epoch }: Fence) -> String {
    let operation = leasehold::OperationId::random();
    format!("publish('{report}', '{owner}', {generation}, {epoch}, '{operation}', 'late', NULL, NULL, NULL)")
}

#[tokio::test]
async fn a_publication_that_is_delayed_until_after_its_close_is_not_accepted() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let (gate, late) = delayed(&scene, publish(fence)).await;
    let close =
        CloseRequest { report: fence.report, owner: fence.owner, learned: Some((fence.generation, fence.epoch)) };
    assert_eq!(scene.store.close(close, budget()).await.unwrap(), CloseAnswer::Ended(Ending::Closed));
    gate.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    assert!(!late.await.unwrap(), "the late publication was accepted");
    assert_eq!(scene.db.row(scene.report).await.unwrap().payload, None);
    assert_eq!(scene.store.close(close, budget()).await.unwrap(), CloseAnswer::Ended(Ending::Closed));
}

#[tokio::test]
async fn an_acquisition_that_is_delayed_until_after_its_close_takes_nothing() {
    let scene = Scene::new().await;
    let owner = leasehold::Owner::random();
    let call = format!("acquire('{}', '{owner}', 600000, 'late', 0, 0, NULL)", scene.report);
    let (gate, late) = delayed(&scene, call).await;
    let close = CloseRequest { report: scene.report, owner, learned: None };
    assert_eq!(scene.store.close(close, budget()).await.unwrap(), CloseAnswer::Ended(Ending::Closed));
    gate.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    assert!(!late.await.unwrap(), "the late acquisition was granted");
    assert_eq!(scene.db.row(scene.report).await.unwrap().owner, None);
}

#[tokio::test]
async fn a_publication_that_is_delayed_until_after_its_successors_is_not_accepted() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let (gate, late) = delayed(&scene, publish(fence)).await;
    scene.db.set_expiry(scene.report, -1).await;
    let successor = scene.acquires().await;
    publishes(&scene.store, successor, "the successor's").await;
    gate.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    assert!(!late.await.unwrap(), "the late publication was accepted");
    assert_eq!(scene.db.row(scene.report).await.unwrap().payload.as_deref(), Some("the successor's"));
    let again = scene.store.publish(publishing(fence, "again"), budget()).await.unwrap();
    assert_eq!(again, PublishAnswer::Refused(Refusal::Superseded { by: successor.generation }));
}

#[tokio::test]
async fn a_call_at_another_isolation_is_refused_by_every_function_that_locks() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    let (report, owner) = (fence.report, fence.owner);
    let client = connect(&scene.db.config).await;
    for isolation in ["REPEATABLE READ", "SERIALIZABLE"] {
        for call in [
            publish(fence),
            format!("acquire('{report}', '{owner}', 600000, 'late', 0, 0, NULL)"),
            format!("renew('{report}', '{owner}', 1, 0, 1000)"),
            format!("renew_many('{{{report}}}', '{{{owner}}}', '{{1}}', '{{0}}', 1000)"),
            format!("close('{report}', '{owner}', 1, 0)"),
            format!("release('{report}', '{owner}', 1, 0)"),
            format!("force_release('{report}', 'me')"),
            format!("require_source_revision('{report}', 1)"),
            format!("reset_source_revision('{report}', 1)"),
            "advance_recovery_epoch(1)".to_owned(),
            "prune_ledger(1)".to_owned(),
        ] {
            client.batch_execute(&format!("BEGIN ISOLATION LEVEL {isolation}")).await.unwrap();
            let sql = format!("SELECT {}.{call}", scene.db.schema);
            let error = client.batch_execute(&sql).await.expect_err(&call);
            assert_eq!(error.code().map(|code| code.code()), Some("LH001"), "{isolation}: {call}");
            client.batch_execute("ROLLBACK").await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_a_server_says_of_its_full_disk_is_rejected_and_nothing_is_half_written() {
    let scene = Scene::new().await;
    let fence = scene.acquires().await;
    // Not a real one: what the server says when a table cannot grow, at the last statement of a publication.
    let sql = format!(
        "CREATE FUNCTION {s}.full_disk() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'no space, and Failing row contains (secret)' USING ERRCODE = '53100'; END $$; \
         CREATE TRIGGER full_disk BEFORE INSERT ON {s}.report_ledger FOR EACH ROW EXECUTE FUNCTION {s}.full_disk()",
        s = scene.db.schema
    );
    scene.db.client.batch_execute(&sql).await.unwrap();
    let before = scene.db.row(scene.report).await.unwrap();
    let error = fails(
        scene.store.publish(publishing(fence, "a report"), budget()).await,
        StoreErrorKind::Rejected,
        "the server's disk is full",
    );
    assert!(!crate::scene::everything(&error).contains("secret"), "{error:?}");
    let after = scene.db.row(scene.report).await.unwrap();
    assert_eq!(
        (after.owner, after.payload, after.published_generation),
        (before.owner, None, before.published_generation)
    );
    scene.db.change("DROP TRIGGER full_disk ON {s}.report_ledger", &[]).await;
    publishes(&scene.store, fence, "a report").await;
}

#[tokio::test]
async fn a_report_that_is_provisioned_while_the_epoch_advances_is_in_the_new_one() {
    let scene = Scene::new().await;
    let report = ReportId::from_name("another");
    // Somebody is about to insert the same row: a provision that has read the epoch waits for that.
    let other = connect(&scene.db.config).await;
    let insert = format!(
        "INSERT INTO {}.report_publication (report_id, recovery_epoch) VALUES ('{report}', 0)",
        scene.db.schema
    );
    other.batch_execute(&format!("BEGIN; {insert}")).await.unwrap();
    let store = scene.store.clone();
    let provision = tokio::spawn(async move { store.provision(report, budget()).await });
    until_waiting(&scene, 1).await;
    let (store, to) = (scene.store.clone(), Epoch::new(1));
    let advance = tokio::spawn(async move { store.advance_recovery_epoch(to, budget()).await });
    while !advance.is_finished() && waiters(&scene).await < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(provision.await.unwrap().unwrap(), ProvisionAnswer::Created);
    assert!(matches!(advance.await.unwrap().unwrap(), EpochAnswer::Advanced { .. }));
    for report in [scene.report, report] {
        assert_eq!(scene.db.row(report).await.unwrap().epoch, to, "a row was left in the old epoch");
    }
}

#[tokio::test]
async fn an_operation_that_another_report_publishes_at_this_moment_is_decided_by_its_end() {
    for commits in [true, false] {
        let scene = Scene::new().await;
        let first = scene.acquires().await;
        let report = ReportId::from_name("another");
        scene.store.provision(report, budget()).await.unwrap();
        let second = publishing(acquires(&scene.store, report).await, "the second");
        let other = connect(&scene.db.config).await;
        let Fence { report, owner, generation, epoch } = first;
        let call = format!(
            "publish('{report}', '{owner}', {generation}, {epoch}, '{}', 'x', NULL, NULL, NULL)",
            second.operation
        );
        other.batch_execute(&format!("BEGIN; SELECT {}.{call}", scene.db.schema)).await.unwrap();
        let (store, request) = (scene.store.clone(), second.clone());
        let publication = tokio::spawn(async move { store.publish(request, budget()).await });
        until_waiting(&scene, 1).await;
        other.batch_execute(if commits { "COMMIT" } else { "ROLLBACK" }).await.unwrap();
        let answer = publication.await.unwrap().unwrap();
        if commits {
            assert_eq!(answer, PublishAnswer::Refused(Refusal::OperationReused { generation }));
        } else {
            assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
        }
    }
}
