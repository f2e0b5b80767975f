//! A worker that is killed before it hears whether it published.

use std::path::Path;
use std::time::{Duration, Instant};

use leasehold::answer::{PublishAnswer, Refusal};
use leasehold::store::{Budget, Payload, PublishRequest};
use leasehold::{Epoch, Fence, Generation};
use rustix::process::Signal;
use serde_json::Value;

use crate::scene::{Row, Scene, report};
use crate::worker::{LIMIT, Worker};

on_every_store! {
    an_accepted_publication_whose_answer_was_lost_is_resolved_as_published_twice_the_same,
    a_publication_that_was_never_sent_is_resolved_as_not_published_and_never_will_be,
}

async fn an_accepted_publication_whose_answer_was_lost_is_resolved_as_published_twice_the_same(scene: Scene) {
    let ticket = scene.folder().join("ticket");
    let mut a = worker(&scene, "unanswered", &ticket);
    a.open_gate();
    let operation = a.tells("ticket_written")["operation"].clone();
    a.tells("sent");
    let until = Instant::now() + LIMIT;
    while scene.row().await.is_none() {
        assert!(Instant::now() < until, "it was never published");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    a.signal(Signal::KILL);
    assert_eq!(a.end(), Some(Signal::KILL.as_raw()));

    for _ in 0..2 {
        let resolved = resolve(&scene, &ticket);
        assert_eq!(resolved["outcome"], "Published");
        assert_eq!(resolved["generation"], 1);
        assert_eq!(resolved["operation"], operation);
    }
    let row = Row { generation: 1, payload: "the report as A built it".to_owned() };
    assert_eq!(scene.row().await, Some(row));
    assert_eq!(scene.published_generations().await, [1]);
}

async fn a_publication_that_was_never_sent_is_resolved_as_not_published_and_never_will_be(scene: Scene) {
    let ticket = scene.folder().join("ticket");
    let mut a = worker(&scene, "unanswered", &ticket);
    a.tells("ticket_written");
    a.signal(Signal::KILL);
    assert_eq!(a.end(), Some(Signal::KILL.as_raw()));
    assert_eq!(resolve(&scene, &ticket)["outcome"], "NotPublished");

    // As if it had been on its way all the time. Its lease has not expired.
    let late = scene.store.publish(request(&ticket), Budget::within(LIMIT)).await.expect("it answers");
    assert_eq!(late, PublishAnswer::Refused(Refusal::Closed));
    assert_eq!(resolve(&scene, &ticket)["outcome"], "NotPublished");
    assert_eq!(scene.row().await, None);

    // The report is free at once.
    let mut b = scene.worker("fenced", "B");
    b.open_gate();
    assert_eq!(b.tells("published")["generation"], 2);
    assert_eq!(b.end(), None);
}

/// A new process that knows nothing but the ticket.
fn resolve(scene: &Scene, ticket: &Path) -> Value {
    let mut asking = worker(scene, "resolve", ticket);
    let resolved = asking.tells("resolved");
    assert_eq!(asking.end(), None);
    resolved
}

fn worker(scene: &Scene, task: &str, ticket: &Path) -> Worker {
    let ticket = ticket.to_str().expect("a path of this test");
    Worker::start(scene, task, "A", Duration::ZERO, &["--ticket", ticket])
}

/// The publication that the ticket is about.
fn request(ticket: &Path) -> PublishRequest {
    let text = std::fs::read(ticket).expect("the ticket is on the disk");
    let ticket: Value = serde_json::from_slice(&text).expect("a ticket is JSON");
    let text = |name: &str| ticket[name].as_str().expect("text").to_owned();
    let number = |name: &str| ticket[name].as_i64().expect("a number");
    PublishRequest {
        fence: Fence {
            report: report(),
            owner: text("owner").parse().expect("an owner"),
            generation: Generation::new(number("generation")),
            epoch: Epoch::new(number("epoch")),
        },
        operation: text("operation").parse().expect("an operation"),
        payload: Payload::new("late", usize::MAX).expect("a payload"),
        revision: None,
    }
}
