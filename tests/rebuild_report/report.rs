//! What is built, published and read; and what is said when it cannot be.

use std::fs;

use super::process::{Run, Scene};

const SHA256_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const SHA256_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn a_small_tree_is_published_and_read_back_with_right_counts_and_hashes() {
    let scene = Scene::new()
        .file("abc", "abc")
        .file("docs/two.txt", "one\ntwo\n")
        .file("docs/THREE.TXT", "one\ntwo\nthree")
        .file("empty.rs", "")
        .file("picture.png", b"\x89PNG\0\n\n\n")
        .file(".gitignore", "*.log\n")
        .file("noise.log", "left out by the .gitignore")
        .file("target/debug/output", "left out")
        .file(".git/HEAD", "left out");
    scene.run::<&str>([]).assert_prints(&["Published generation 1", "6 files, 7 lines, 38 bytes"]);
    let read = scene.run(["--read"]);
    read.assert_prints(&["Generation 1, published ", "6 files, 7 lines, 38 bytes", ".txt", "(none)"]);

    let payload = scene.published();
    assert_eq!(payload["total"], serde_json::json!({ "files": 6, "lines": 7, "bytes": 38 }));
    assert_eq!(payload["extensions"]["txt"], serde_json::json!({ "files": 2, "lines": 5, "bytes": 21 }));
    assert_eq!(payload["largest"][0]["path"], "docs/THREE.TXT");
    assert_eq!(payload["unreadable"], serde_json::json!([]));
    let sha256 = |path: &str| {
        let files = payload["files"].as_array().expect("a list of files");
        files.iter().find(|file| file["path"] == path).expect("the file is listed")["sha256"].clone()
    };
    assert_eq!(sha256("abc"), SHA256_OF_ABC);
    assert_eq!(sha256("empty.rs"), SHA256_OF_NOTHING);
}

#[test]
fn a_database_inside_the_tree_is_not_part_of_the_report() {
    let scene = Scene::with_a_file();
    let database = scene.tree().join("reports.db");
    for generation in [1, 2] {
        let mut command = scene.command();
        command.arg(scene.tree()).arg("--database").arg(&database);
        let published = format!("Published generation {generation}");
        Run::start(command).end().assert_prints(&[&published, "1 file, 2 lines, 8 bytes"]);
    }
}

#[cfg(unix)]
#[test]
fn the_command_that_it_names_reads_the_report() {
    let scene = Scene::with_a_file();
    let built = scene.run(["--name", "it's mine; really"]);
    let (_, command) = built.stdout.split_once("To read it: ").expect("it names a command");
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(command).env_remove("CARGO_MANIFEST_DIR");
    Run::start(shell).end().assert_prints(&["Generation 1, published ", "1 file, 2 lines, 8 bytes"]);
}

#[test]
fn a_revision_that_is_visible_is_not_built_again() {
    let scene = Scene::with_a_file();
    scene.run(["--revision", "7"]).assert_prints(&["Published generation 1 (revision 7)"]);
    for revision in ["7", "6"] {
        let again = scene.run(["--revision", revision]);
        again.assert_prints(&["Nothing was built: generation 1, revision 7, published ", "is visible already"]);
        assert_eq!(again.stderr, "");
    }
    scene.run(["--read"]).assert_prints(&["Generation 1, revision 7, published "]);
    scene.run(["--revision", "8"]).assert_prints(&["(revision 8)"]);
}

#[test]
fn a_report_that_has_revisions_asks_for_one_before_it_builds() {
    let scene = Scene::with_a_file();
    scene.run(["--revision", "7"]).assert_code(0);
    let refused = scene.run::<&str>([]);
    refused.assert_complains(1, &["at least 7 is required", "Nothing was built", "--revision 8"]);
}

#[test]
fn to_read_before_anything_is_published_says_how_to_publish() {
    let scene = Scene::with_a_file();
    let read = scene.run(["--read"]);
    read.assert_complains(1, &["Nothing is published yet", "To build and publish it: "]);
    assert!(!scene.file_of_database().exists(), "a reader made a database");
    scene.run(["--name", "another"]).assert_code(0);
    scene.run(["--read"]).assert_complains(1, &["Nothing is published yet", "To build and publish it: "]);
}

#[test]
fn what_cannot_work_is_said_in_a_sentence() {
    let scene = Scene::with_a_file().file("folder.db/file", "");
    let with_database = |path: &str| {
        let mut command = scene.command();
        command.arg(scene.tree()).arg("--database").arg(scene.tree().join(path));
        Run::start(command).end()
    };
    with_database("folder.db").assert_complains(1, &["folder.db is a folder: give the path of a file in it"]);
    with_database("nowhere/reports.db").assert_complains(1, &["does not exist", "create it first"]);
    with_database("a.txt").assert_complains(1, &["a.txt is not an SQLite database"]);

    scene.run(["--ttl", "0s"]).assert_complains(1, &["a TTL of 0ns cannot work: it must be from 100ms"]);
    scene.run(["--ttl", "soon"]).assert_complains(1, &["invalid value 'soon' for '--ttl"]);
    let late = scene.run(["--ttl", "10s", "--cadence", "9s"]);
    late.assert_complains(1, &["more than the TTL of 10s", "lower one of the three or raise the TTL"]);
    scene.run(["--holder", "two\nlines"]).assert_complains(1, &["--holder: a holder label has no control characters"]);

    for folder in ["nowhere", "a.txt"] {
        let mut command = scene.command();
        command.arg(scene.tree().join(folder)).arg("--database").arg(scene.file_of_database());
        Run::start(command).end().assert_complains(1, &["cannot be taken stock of", "Give a folder"]);
    }
    assert!(!scene.file_of_database().exists(), "a request that cannot work made a database");
}

#[test]
fn a_report_over_the_limit_is_not_published_and_leaves_the_lease_free() {
    let scene = Scene::with_a_file();
    for limit in ["10", "300"] {
        let refused = scene.run(["--ttl", "1h", "--max-payload", limit]);
        refused.assert_complains(1, &["too large", "nothing was published", "raise --max-payload"]);
    }
    scene.run::<&str>([]).assert_prints(&["Published generation 3"]);
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_text_or_would_steer_a_terminal_are_spelled_out() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let scene = Scene::new().file(OsStr::from_bytes(b"caf\xe9.t\xffxt"), "").file("red\u{1b}[31m", "");
    scene.run::<&str>([]).assert_prints(&["2 files"]);
    let payload = scene.published();
    assert_eq!(payload["files"][0]["path"], r"caf\xE9.t\xFFxt");
    assert_eq!(payload["files"][1]["path"], r"red\u{1b}[31m");
    assert_eq!(payload["extensions"][r"t\xffxt"]["files"], 1);
}

#[cfg(unix)]
#[test]
fn unreadable_files_are_listed_and_the_rest_is_published() {
    use std::os::unix::fs::PermissionsExt;

    let scene = Scene::with_a_file().file("secret.txt", "secret").file("closed/file", "");
    for path in ["secret.txt", "closed"] {
        fs::set_permissions(scene.tree().join(path), fs::Permissions::from_mode(0o000)).expect("permissions are taken");
    }
    let built = scene.run::<&str>([]);
    // Or else the folder of the test could not be cleared away.
    fs::set_permissions(scene.tree().join("closed"), fs::Permissions::from_mode(0o700)).expect("they are given back");
    if rustix::process::geteuid().is_root() {
        // Nothing is unreadable for root.
        built.assert_prints(&["3 files"]);
        return;
    }
    built.assert_prints(&["1 file, 2 lines, 8 bytes", "2 paths could not be read:", "  secret.txt: ", "  closed: "]);
    scene.run(["--read"]).assert_prints(&["2 paths could not be read:"]);
}
