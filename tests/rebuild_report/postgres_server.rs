//! What is a PostgreSQL server's own: installing, and a URL that nobody gets to see.

use crate::postgres_schema::{PostgresSchema, url};
use crate::process::{Ended, Run, Scene};

mod on_postgres {
    #[tokio::test]
    async fn a_server_without_the_schema_says_how_to_install_it() {
        super::a_server_without_the_schema_says_how_to_install_it().await;
    }

    #[tokio::test]
    async fn a_url_on_the_command_line_is_not_repeated() {
        super::a_url_on_the_command_line_is_not_repeated().await;
    }

    #[tokio::test]
    async fn the_script_installs_what_install_does() {
        super::the_script_installs_what_install_does().await;
    }
}

/// The example on this schema of the server that the environment names.
fn run(scene: &Scene, schema: &PostgresSchema, more: &[&str]) -> Ended {
    let mut command = scene.command();
    command.arg(scene.tree()).args(["--schema", &schema.name]).args(more).env("LEASEHOLD_POSTGRES", url());
    Run::start(command).end()
}

async fn a_server_without_the_schema_says_how_to_install_it() {
    let (scene, schema) = (Scene::with_a_file(), PostgresSchema::missing().await);
    let run = |more: &[&str]| run(&scene, &schema, more);
    for more in [&[][..], &["--read"]] {
        run(more).assert_complains(1, &["leasehold's schema is not installed", "--install", &schema.name]);
    }
    // Twice: it may be repeated.
    for _ in 0..2 {
        run(&["--install"]).assert_prints(&["leasehold is installed in schema", &schema.name, "leasehold_worker"]);
    }
    run(&[]).assert_prints(&["Published generation 1"]);
    run(&["--install"]).assert_code(0);
    run(&["--read"]).assert_prints(&["Generation 1, published "]);
}

async fn a_url_on_the_command_line_is_not_repeated() {
    let (scene, schema) = (Scene::with_a_file(), PostgresSchema::installed().await);
    let run = |url: &str| -> Ended {
        let mut command = scene.command();
        command.arg(scene.tree()).args(["--schema", &schema.name, "--postgres", url]);
        Run::start(command).end()
    };
    let url = url();
    let built = run(&url);
    built.assert_prints(&["Published generation 1", "--postgres '…as before…'"]);
    // Neither when all is well, nor in a complaint about the URL.
    let more = if url.contains('?') { '&' } else { '?' };
    let broken = run(&format!("{url}{more}password=not-to-be-seen&sslmode=perhaps"));
    broken.assert_complains(1, &["the connection string cannot be read"]);
    for ended in [built, broken] {
        let said = format!("{ended:?}");
        assert!(!said.contains(&url) && !said.contains("not-to-be-seen"), "{ended:#?}");
    }
}

async fn the_script_installs_what_install_does() {
    let (scene, schema) = (Scene::with_a_file(), PostgresSchema::missing().await);
    let script = run(&scene, &schema, &["--install-script"]);
    script.assert_prints(&["CREATE TABLE", &schema.name]);
    schema.raw.batch_execute(&script.stdout).await.expect("the script runs");
    run(&scene, &schema, &[]).assert_prints(&["Published generation 1"]);
}

#[cfg(feature = "sqlserver")]
#[test]
fn two_servers_in_the_environment_are_refused_and_one_on_the_command_line_is_not() {
    let scene = Scene::with_a_file();
    let run = |more: &[&str]| -> Ended {
        let mut command = scene.command();
        command.arg(scene.tree()).args(more).env("LEASEHOLD_SQLSERVER", "neither").env("LEASEHOLD_POSTGRES", "nor");
        Run::start(command).end()
    };
    for more in [&[][..], &["--install"], &["--install-script"]] {
        run(more).assert_complains(1, &["The environment names two databases"]);
    }
    let unreadable = "the connection string cannot be read";
    run(&["--postgres", "this"]).assert_complains(1, &[unreadable, "postgresql://user:password@host"]);
    run(&["--database", "reports.db"]).assert_prints(&["Published generation 1"]);
}
