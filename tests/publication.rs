//! The one accepted write of a lease: published once, sent again until certain, and never a guess.

mod support;

use leasehold::answer::{Forgotten, Refusal};
use leasehold::store::{FencedTransaction, Store};
use leasehold::testing::{Fault, Gate, Operation};
use leasehold::{
    Epoch, LeaseStatus, LossReason, Outcome, PublishError, ReleaseOutcome, SourceRevision, StoreErrorKind,
};
use support::*;
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn a_publication_ends_the_lease_in_one_call() {
    let scene = scene().await;
    let guard = scene.acquire().await;
    let lease = guard.lease();
    let receipt = guard.publish("first").await.unwrap();
    assert_eq!(receipt.generation.get(), 1);
    assert_eq!(scene.published().await, Some(("first".into(), 1)));
    assert!(scene.is_free().await);
    assert_eq!(lease.checkpoint().unwrap_err().reason(), LossReason::Published);
    no_tasks_left(&scene.supervisor).await;
    assert_eq!((scene.store.calls(Operation::Publish), scene.store.calls(Operation::Release)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_publication_whose_acknowledgement_is_lost_is_sent_again_as_the_same() {
    for fault in [Fault::LoseAnswer, Fault::HangAfterwards] {
        let scene = scene().await;
        scene.store.plan(Operation::Publish, fault);
        let mut publication = scene.acquire().await.publication("once");
        let receipt = publication.send().await.unwrap();
        assert_eq!(receipt.operation, publication.ticket().operation);
        assert_eq!(scene.store.calls(Operation::Publish), 2);
        assert_eq!(scene.published().await, Some(("once".into(), 1)));
        assert_eq!(scene.store.calls(Operation::Close), 0, "while the lease lasts nothing is closed");
        assert_eq!(publication.send().await.unwrap(), receipt, "and it stays so");
        assert_eq!(publication.resolve().await.unwrap(), Outcome::Published(receipt));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unsent_publication_of_a_lost_lease_is_never_sent() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Renew, Fault::Hang);
    let mut publication = scene.acquire().await.publication("late");
    sleep(DEADLINE).await;
    let error = publication.send().await.unwrap_err();
    assert!(matches!(error, PublishError::Lost(loss) if loss.reason() == LossReason::DeadlinePassed));
    assert_eq!(scene.store.calls(Operation::Publish), 0);
}

#[tokio::test(start_paused = true)]
async fn an_accepted_publication_is_a_success_though_the_token_tripped_meanwhile() {
    let scene = scene().await;
    let gate = Gate::new();
    scene.store.plan_always(Operation::Renew, Fault::Hang);
    scene.store.plan(Operation::Publish, Fault::HoldAnswer(gate.clone()));
    let guard = scene.acquire().await;
    let lease = guard.lease();
    sleep(DEADLINE - secs(2)).await;
    let mut publication = guard.publication("in time");
    let (receipt, ()) = tokio::join!(publication.send(), async {
        gate.arrival().await;
        sleep(secs(5)).await;
        assert_eq!(lease.checkpoint().unwrap_err().reason(), LossReason::DeadlinePassed);
        gate.open();
    });
    assert_eq!(receipt.unwrap().generation.get(), 1);
    assert_eq!(scene.published().await, Some(("in time".into(), 1)));
}

#[tokio::test(start_paused = true)]
async fn an_uncertain_publication_is_closed_only_when_the_lease_is_over() {
    for (fault, published) in [(Fault::LoseAnswer, true), (Fault::Fail(StoreErrorKind::Unknown), false)] {
        let scene = scene().await;
        scene.store.plan_always(Operation::Renew, Fault::Hang);
        scene.store.plan_always(Operation::Publish, Fault::Fail(StoreErrorKind::Unknown));
        scene.store.plan(Operation::Publish, fault);
        let guard = scene.acquire().await;
        sleep(DEADLINE - std::time::Duration::from_millis(400)).await; // Less than five attempts take.
        let mut publication = guard.publication("payload");
        let answer = publication.send().await;
        assert!(scene.store.calls(Operation::Publish) >= 2, "it was sent again first");
        assert_eq!(scene.store.calls(Operation::Close), 1);
        if published {
            assert_eq!(answer.unwrap().generation.get(), 1);
        } else {
            assert!(matches!(answer.unwrap_err(), PublishError::Lost(_)), "certainly not published");
            assert_eq!(publication.resolve().await.unwrap(), Outcome::NotPublished);
            assert_eq!(scene.published().await, None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_enough_attempts_the_outcome_is_unresolved_and_the_ticket_resolves_it_elsewhere() {
    let scene = scene().await;
    scene.store.plan(Operation::Publish, Fault::LoseAnswer);
    scene.store.plan_always(Operation::Publish, Fault::Fail(StoreErrorKind::Unavailable));
    let mut publication = scene.acquire().await.publication("payload");
    let PublishError::Unresolved(unresolved) = publication.send().await.unwrap_err() else { panic!("unresolved") };
    let ticket = unresolved.ticket();
    assert_eq!(ticket, publication.ticket());
    // The process crashes; another one asks.
    std::mem::forget(publication);
    let restarted = scene.rival();
    let outcome = restarted.resolve(ticket).await.unwrap();
    assert!(matches!(outcome, Outcome::Published(receipt) if receipt.operation == ticket.operation));
    assert_eq!(restarted.resolve(ticket).await.unwrap(), outcome, "the answer never changes");
}

#[tokio::test(start_paused = true)]
async fn a_resolved_publication_can_be_accepted_no_more() {
    let scene = scene().await;
    let gate = Gate::new();
    scene.store.plan(Operation::Publish, Fault::Hold(gate.clone()));
    let mut publication = scene.acquire().await.publication("late");
    {
        let mut send = Box::pin(publication.send());
        tokio::select! { biased; _ = &mut send => panic!("it is held"), () = gate.arrival() => {} }
    }
    assert_eq!(publication.resolve().await.unwrap(), Outcome::NotPublished);
    gate.open();
    no_tasks_left_after_drop(&scene, publication).await;
    assert_eq!(scene.published().await, None, "the request was on its way and arrived after the close");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_send_can_be_sent_again_whether_or_not_it_was_applied() {
    for applied in [true, false] {
        let scene = scene().await;
        let gate = Gate::new();
        let held = if applied { Fault::HoldAnswer(gate.clone()) } else { Fault::Hold(gate.clone()) };
        scene.store.plan(Operation::Publish, held);
        let mut publication = scene.acquire().await.publication("once");
        {
            let mut send = Box::pin(publication.send());
            tokio::select! { biased; _ = &mut send => panic!("it is held"), () = gate.arrival() => {} }
        }
        let receipt = publication.send().await.unwrap();
        gate.open();
        no_tasks_left_after_drop(&scene, publication).await;
        assert_eq!(receipt.generation.get(), 1);
        assert_eq!(scene.published().await, Some(("once".into(), 1)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_source_is_refused_and_the_lease_goes_on() {
    let scene = scene().await;
    scene.store.inner().require_source_revision(scene.report, SourceRevision::new(5), budget()).await.unwrap();
    let mut publication = scene.acquire().await.publication("old").with_revision(SourceRevision::new(4));
    let error = publication.send().await.unwrap_err();
    let required = SourceRevision::new(5);
    assert!(matches!(error, PublishError::Refused(Refusal::StaleSource { required: r }) if r == required));
    let guard = publication.into_guard().unwrap();
    sleep(secs(300)).await;
    assert!(matches!(guard.status(), LeaseStatus::Held { .. }), "it is renewed as before");
    let receipt = guard.publication("new").with_revision(required).send().await.unwrap();
    assert_eq!(receipt.revision, Some(required));
}

#[tokio::test(start_paused = true)]
async fn an_unfit_payload_is_refused_before_it_is_sent_and_loses_nothing() {
    let scene = scene_with(policy().max_payload(8)).await;
    let mut guard = scene.acquire().await;
    for (payload, hint) in [("nine bytes", "limit is 8"), ("a\0b", "U+0000 at byte 1")] {
        let mut publication = guard.publication(payload);
        let error = publication.send().await.unwrap_err();
        assert!(matches!(&error, PublishError::Invalid(_)) && error.to_string().contains(hint), "{error}");
        assert_eq!(publication.payload(), payload);
        guard = publication.into_guard().unwrap();
    }
    assert_eq!(scene.store.calls(Operation::Publish), 0);
    guard.publish("fits").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_database_is_tried_again_and_then_told_as_not_published() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Publish, Fault::Fail(StoreErrorKind::Unavailable));
    let mut publication = scene.acquire().await.publication("payload");
    assert!(matches!(publication.send().await.unwrap_err(), PublishError::Unavailable(_)));
    assert_eq!(scene.store.calls(Operation::Publish), 5);
    scene.store.plan_always(Operation::Publish, None);
    publication.send().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refused_publication_names_the_generation_that_took_over() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Renew, Fault::Fail(StoreErrorKind::Unavailable));
    let mut publication = scene.acquire().await.publication("old");
    scene.store.inner().clock().step(2 * TTL);
    let theirs = acquire(&scene.rival(), scene.report).await;
    let error = publication.send().await.unwrap_err();
    let by = theirs.lease().fence().generation;
    assert!(matches!(error, PublishError::Refused(Refusal::Superseded { by: b }) if b == by), "{error}");
    theirs.publish("new").await.unwrap();
    assert_eq!(scene.published().await, Some(("new".into(), 2)));
    assert!(matches!(publication.send().await.unwrap_err(), PublishError::Lost(_)), "and it stays refused");
    assert_eq!(scene.store.calls(Operation::Publish), 1);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_advances_publishes_many_times_under_one_guard() {
    let scene = scene().await;
    let mut guard = scene.acquire().await;
    let lease = guard.lease();
    let token = lease.child_token();
    for generation in 1..=3 {
        let mut publication = guard.publication(format!("part {generation}")).and_advance();
        assert_eq!(publication.send().await.unwrap().generation.get(), generation);
        guard = publication.into_guard().unwrap();
        assert_eq!(lease.fence().generation.get(), generation + 1);
        assert_eq!(scene.published().await, Some((format!("part {generation}"), generation)));
        sleep(secs(100)).await;
        assert!(!token.is_cancelled(), "renewed under the new fence");
    }
    assert!(matches!(guard.release().await, ReleaseOutcome::Released));
    no_tasks_left(&scene.supervisor).await;
}

#[tokio::test(start_paused = true)]
async fn an_advance_whose_acknowledgement_is_lost_goes_on_with_what_remains() {
    let scene = scene().await;
    scene.store.plan(Operation::PublishAndAdvance, Fault::HangAfterwards);
    scene.store.plan_always(Operation::Renew, Fault::Hang);
    let mut publication = scene.acquire().await.publication("part").and_advance();
    let sent_at = Instant::now();
    publication.send().await.unwrap();
    let guard = publication.into_guard().unwrap();
    guard.lost().await;
    assert!(sent_at.elapsed() <= TTL, "no TTL was added by sending it again: {:?}", sent_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_uncertain_advance_that_is_given_up_leaves_the_report_to_others() {
    for fault in [Fault::HangAfterwards, Fault::Hang] {
        let scene = scene().await;
        scene.store.plan_always(Operation::PublishAndAdvance, fault);
        let mut publication = scene.acquire().await.publication("part").and_advance();
        let ticket = publication.ticket();
        assert!(tokio::time::timeout(secs(1), publication.send()).await.is_err());
        drop(publication);
        scene.free_within(secs(5)).await;
        let before = scene.supervisor.resolve(ticket).await.unwrap();
        assert_eq!(matches!(before, Outcome::Published(_)), scene.published().await.is_some());
        assert_eq!(scene.supervisor.resolve(ticket).await.unwrap(), before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_resolve_that_stops_half_way_has_freed_the_lease_that_was_advanced_to() {
    let scene = scene().await;
    scene.store.plan(Operation::PublishAndAdvance, Fault::HangAfterwards);
    let mut publication = scene.acquire().await.publication("part").and_advance();
    let ticket = publication.ticket();
    assert!(tokio::time::timeout(secs(1), publication.send()).await.is_err());
    std::mem::forget(publication); // The process crashes.
    let open = Gate::new();
    open.open();
    scene.store.plan(Operation::Close, Fault::HoldAnswer(open));
    scene.store.plan(Operation::Close, Fault::Hang);
    assert!(tokio::time::timeout(secs(1), scene.supervisor.resolve(ticket)).await.is_err());
    assert!(scene.is_free().await, "the next owner is closed first");
    assert!(matches!(scene.supervisor.resolve(ticket).await.unwrap(), Outcome::Published(_)));
}

#[tokio::test(start_paused = true)]
async fn a_ticket_of_a_replaced_history_is_no_longer_known() {
    let scene = scene().await;
    let publication = scene.acquire().await.publication("payload");
    let ticket = publication.ticket();
    let epoch = Epoch::new(100);
    scene.store.inner().advance_recovery_epoch(epoch, budget()).await.unwrap();
    let outcome = scene.supervisor.resolve(ticket).await.unwrap();
    assert_eq!(outcome, Outcome::NoLongerKnown(Forgotten::HistoryReplaced { epoch }));
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_resolve_of_the_ticket_ends_the_lease_here() {
    let scene = scene().await;
    let publication = scene.acquire().await.publication("payload");
    let outcome = scene.rival().resolve(publication.ticket()).await.unwrap();
    assert_eq!(outcome, Outcome::NotPublished);
    let guard = publication.into_guard().unwrap();
    assert_eq!(guard.lost().await.reason(), LossReason::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_fenced_transaction_commits_with_its_publication() {
    let scene = scene().await;
    let mut transaction = scene.store.begin(budget()).await.unwrap();
    let (committed, is_committed) = std::sync::mpsc::channel();
    transaction.on_commit(move || committed.send(()).unwrap());
    let mut publication = scene.acquire().await.publication("with it");
    publication.send_within(transaction).await.unwrap();
    assert!(is_committed.try_recv().is_ok());
    assert_eq!(scene.published().await, Some(("with it".into(), 1)));
}

#[tokio::test(start_paused = true)]
async fn a_fenced_transaction_after_the_publication_is_not_told_as_a_success() {
    let scene = scene().await;
    let mut publication = scene.acquire().await.publication("payload");
    publication.send().await.unwrap();
    let mut transaction = scene.store.begin(budget()).await.unwrap();
    transaction.on_commit(|| panic!("it is not committed"));
    let error = publication.send_within(transaction).await.unwrap_err();
    assert!(matches!(&error, PublishError::Invalid(_)), "{error}");
    assert!(publication.send().await.is_ok(), "the outcome stays what it was");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_on_its_way_is_not_changed_into_another_publication() {
    let scene = scene().await;
    scene.store.inner().require_source_revision(scene.report, SourceRevision::new(4), budget()).await.unwrap();
    let gate = Gate::new();
    scene.store.plan(Operation::Publish, Fault::Hold(gate.clone()));
    let mut publication = scene.acquire().await.publication("five").with_revision(SourceRevision::new(5));
    let ticket = publication.ticket();
    {
        let mut send = Box::pin(publication.send());
        tokio::select! { biased; _ = &mut send => panic!("it is held"), () = gate.arrival() => {} }
    }
    // A stale revision would be refused, as surely not published, while the attempt before can still be accepted.
    let mut publication = publication.with_revision(SourceRevision::new(3)).and_advance();
    assert_eq!(publication.ticket(), ticket, "what a crash would ask for");
    let receipt = publication.send().await.unwrap();
    gate.open();
    no_tasks_left_after_drop(&scene, publication).await;
    assert_eq!(receipt.revision, Some(SourceRevision::new(5)));
    assert_eq!(scene.published().await, Some(("five".into(), 1)));
}

#[tokio::test(start_paused = true)]
async fn a_fenced_transaction_of_a_lost_lease_is_not_sent() {
    let scene = scene().await;
    scene.store.plan_always(Operation::Renew, Fault::Hang);
    let transaction = scene.store.begin(budget()).await.unwrap();
    let mut publication = scene.acquire().await.publication("late");
    sleep(DEADLINE).await;
    assert!(matches!(publication.send_within(transaction).await.unwrap_err(), PublishError::Lost(_)));
    scene.store.begin(budget()).await.unwrap().rollback(budget()).await.unwrap();
}

#[cfg(feature = "serde")]
#[tokio::test(start_paused = true)]
async fn a_ticket_survives_being_written_down() {
    let scene = scene().await;
    let ticket = scene.acquire().await.publication("payload").and_advance().ticket();
    let text = serde_json::to_string(&ticket).unwrap();
    assert_eq!(serde_json::from_str::<leasehold::Ticket>(&text).unwrap(), ticket, "{text}");
    assert!(text.contains(&ticket.operation.to_string()), "readable: {text}");
}

async fn no_tasks_left_after_drop(scene: &Scene, publication: leasehold::Publication) {
    drop(publication);
    no_tasks_left(&scene.supervisor).await;
}
