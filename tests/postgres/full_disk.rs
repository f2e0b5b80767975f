//! A server whose disk is really full, in a process of its own that has a small file system mounted.

use std::path::{Path, PathBuf};
use std::process::Command;

use leasehold::answer::PublishAnswer;
use leasehold::conformance::Database;
use leasehold::store::Store;
use leasehold::{OperationId, StoreErrorKind};

use crate::cluster::Cluster;
use crate::scene::{Scene, budget, publishing};
use crate::support::PostgresHarness;

const NAME: &str = "full_disk::a_full_disk_loses_and_invents_no_publication";

/// Names the small disk to the process that has it.
const DISK: &str = "LEASEHOLD_TEST_SMALL_DISK";

/// Mounts as the root of one user namespace, and runs as somebody else in another: the server refuses root.
fn with_small_disk(folder: &Path) -> Command {
    let script = "mount -t tmpfs -o size=96m,mode=0777 tmpfs \"$LEASEHOLD_TEST_SMALL_DISK\" && \
                  exec unshare --user --map-user=65534 --map-group=65534 \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", NAME, "--nocapture"])
        .env(DISK, folder);
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_and_invents_no_publication() {
    let Some(disk) = std::env::var_os(DISK).map(PathBuf::from) else {
        let folder = tempfile::tempdir().expect("a folder");
        let output = with_small_disk(folder.path()).output().expect("unshare runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        // Not passed off as passed: `tests/run.sh` leaves it out, and says so, where this cannot be done.
        assert!(said.contains("running 1 test"), "no small disk can be mounted here by unshare: {complained}");
        assert!(output.status.success(), "{said}{complained}");
        return;
    };
    let cluster = Cluster::in_folder(&disk, &["autovacuum=off"]);
    let scene = Scene::on(PostgresHarness::on(cluster.config(), &[]).await).await;
    let fence = scene.acquires().await;
    // What can be taken away later to make room.
    let ballast = disk.join("ballast");
    fill(&ballast);

    // Too big for what is left, and of nothing that can be compressed.
    let secret: String = (0..300_000).map(|_| OperationId::random().to_string()).collect();
    let big = publishing(fence, &secret);
    let error = scene.store.publish(big.clone(), budget()).await.expect_err("the disk is full");
    assert!(!crate::scene::everything(&error).contains(&secret[..36]), "{error}");
    println!("a full disk was told as {error}");
    // A server that cannot write its log crashes: then nobody can know.
    assert!(matches!(error.kind(), StoreErrorKind::Rejected | StoreErrorKind::Unknown), "{error:?}");

    std::fs::remove_file(&ballast).expect("room is made");
    if error.kind() == StoreErrorKind::Unknown {
        cluster.start_again();
    }
    let scene = Scene { db: scene.db.connected_anew().await, ..scene };
    assert_eq!(scene.db.row(fence.report).await.expect("a row").payload, None, "nothing was half written");
    let small = publishing(fence, "small");
    let answer = scene.store.publish(small, budget()).await.expect("there is room again");
    assert!(matches!(answer, PublishAnswer::Published(_)), "{answer:?}");
    assert_eq!(scene.db.row(fence.report).await.expect("a row").payload.as_deref(), Some("small"));
    drop(scene);
}

/// Writes until the disk is full.
fn fill(file: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(file).expect("a file");
    while file.write_all(&[1; 4096]).is_ok() {}
}
