//! SIGSTOP past the expiry, and SIGCONT: the case that no renewal and no cancellation can help.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::scene::{Row, Scene};
use crate::worker::at;

on_every_store! {
    a_worker_stopped_past_its_lease_finds_it_lost_and_the_database_refuses_its_publication,
    it_is_refused_as_well_while_the_one_that_took_over_still_builds,
}

async fn a_worker_stopped_past_its_lease_finds_it_lost_and_the_database_refuses_its_publication(scene: Scene) {
    let mut a = scene.worker("fenced", "A");
    assert_eq!(a.tells("acquired")["generation"], 1);
    let last_look = a.tells("checked");
    assert!(last_look["remaining_millis"].as_u64() > Some(0), "{last_look}");
    a.stop_outside_a_store_call(&scene).await;
    let expiry = scene.expiry().await;

    let mut b = scene.worker("fenced", "B");
    b.open_gate();
    let taken = b.tells("acquired");
    assert_eq!(taken["generation"], 2);
    assert!(at(&taken) >= expiry, "taken at {:?}, and the lease lasted until {expiry:?}", at(&taken));
    assert_eq!(b.tells("published")["generation"], 2);
    assert_eq!(b.end(), None);

    a.open_gate();
    a.signal(Signal::CONT);
    let lost = a.tells("lost");
    // What it could know by itself; the database's word can only come before that if it was on its way.
    assert!([json!("DeadlinePassed"), json!("Superseded")].contains(&lost["reason"]), "{lost}");
    let millis = |name: &str| Duration::from_millis(lost[name].as_u64().expect("a duration"));
    assert!(millis("past_deadline_millis") > Duration::ZERO, "{lost}");
    assert!(millis("since_confirmed_millis") >= scene.ttl, "it was stopped for longer than its lease lasts: {lost}");
    a.tells("withheld");
    let refused = a.tells("refused");
    assert_eq!(refused["reason"], "Superseded");
    assert_eq!(refused["said"], "superseded by generation 2");
    assert_eq!(a.end(), None);

    let row = Row { generation: 2, payload: "the report as B built it".to_owned() };
    assert_eq!(scene.row().await, Some(row));
    assert_eq!(scene.published_generations().await, [2]);
}

async fn it_is_refused_as_well_while_the_one_that_took_over_still_builds(scene: Scene) {
    let mut a = scene.worker("fenced", "A");
    a.tells("checked");
    a.stop_outside_a_store_call(&scene).await;
    let mut b = scene.worker("fenced", "B");
    // B stands at its gate: it has published nothing.
    b.tells("checked");
    a.open_gate();
    a.signal(Signal::CONT);
    assert_eq!(a.tells("refused")["said"], "superseded by generation 2");
    assert_eq!(a.end(), None);
    assert_eq!(scene.row().await, None);
    b.open_gate();
    assert_eq!(b.tells("published")["generation"], 2);
    assert_eq!(b.end(), None);
    assert_eq!(scene.published_generations().await, [2]);
}
