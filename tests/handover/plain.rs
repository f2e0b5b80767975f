//! The contrast: without a fence the same schedule ends in the stale report.

use rustix::process::Signal;

use crate::scene::Scene;

on_every_store! {
    with_a_plain_lease_the_stopped_worker_overwrites_the_newer_report,
}

async fn with_a_plain_lease_the_stopped_worker_overwrites_the_newer_report(scene: Scene) {
    let mut a = scene.worker("plain", "A");
    // It looked, and it held its lease.
    a.tells("checked");
    a.stop_outside_a_store_call(&scene).await;
    let mut b = scene.worker("plain", "B");
    b.open_gate();
    b.tells("published");
    assert_eq!(b.end(), None);
    assert_eq!(scene.plain_payload().await.as_deref(), Some("the report as B built it"));

    a.open_gate();
    a.signal(Signal::CONT);
    a.tells("published");
    assert_eq!(a.end(), None);
    assert_eq!(scene.plain_payload().await.as_deref(), Some("the report as A built it"));
}
