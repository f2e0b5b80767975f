//! The contrast: without a fence the same schedule ends in the stale report.

use rustix::process::Signal;

use crate::scene::Scene;

#[tokio::test]
async fn with_a_plain_lease_the_stopped_worker_overwrites_the_newer_report() {
    let scene = Scene::new().await;
    let mut a = scene.worker("plain", "A");
    // It looked, and it held its lease.
    a.tells("checked");
    a.stop_outside_a_store_call(&scene).await;
    let mut b = scene.worker("plain", "B");
    b.open_gate();
    b.tells("published");
    assert_eq!(b.end(), None);
    assert_eq!(payload(&scene), "the report as B built it");

    a.open_gate();
    a.signal(Signal::CONT);
    a.tells("published");
    assert_eq!(a.end(), None);
    assert_eq!(payload(&scene), "the report as A built it");
}

fn payload(scene: &Scene) -> String {
    scene.raw().query_row("SELECT Payload FROM PlainReport", [], |row| row.get(0)).expect("a report")
}
