//! kill -9: nobody releases the lease.

use rustix::process::Signal;

use crate::scene::{Row, Scene};
use crate::worker::at;

on_every_store! {
    after_a_kill_the_next_takes_over_not_before_the_expiry_and_within_one_ttl_after_it,
}

async fn after_a_kill_the_next_takes_over_not_before_the_expiry_and_within_one_ttl_after_it(scene: Scene) {
    let mut a = scene.worker("fenced", "A");
    a.tells("acquired");
    let mut b = scene.worker("fenced", "B");
    b.open_gate();
    b.tells("waiting");
    a.tells("renewed");
    a.signal(Signal::KILL);
    assert_eq!(a.end(), Some(Signal::KILL.as_raw()));
    let expiry = scene.expiry().await;

    let taken = b.tells("acquired");
    assert_eq!(taken["generation"], 2);
    assert!(at(&taken) >= expiry, "taken {:?} too early", expiry.saturating_sub(at(&taken)));
    assert!(at(&taken) <= expiry + scene.ttl, "taken {:?} after the expiry", at(&taken).saturating_sub(expiry));
    b.tells("published");
    assert_eq!(b.end(), None);
    let row = Row { generation: 2, payload: "the report as B built it".to_owned() };
    assert_eq!(scene.row().await, Some(row));
}
