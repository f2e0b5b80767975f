//! What is a server's own: installing, and a connection string that nobody gets to see.

use crate::process::{Ended, Run, Scene};
use crate::sqlserver::{Schema, connection_string};

mod on_sqlserver {
    #[tokio::test]
    #[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
    async fn a_server_without_the_tables_says_how_to_install_them() {
        super::a_server_without_the_tables_says_how_to_install_them().await;
    }

    #[tokio::test]
    #[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
    async fn a_connection_string_on_the_command_line_is_not_repeated() {
        super::a_connection_string_on_the_command_line_is_not_repeated().await;
    }
}

async fn a_server_without_the_tables_says_how_to_install_them() {
    let (scene, schema) = (Scene::with_a_file(), Schema::missing().await);
    let run = |more: &[&str]| -> Ended {
        let mut command = scene.command();
        command.arg(scene.tree()).args(["--schema", &schema.name]).args(more);
        command.env("LEASEHOLD_SQLSERVER", connection_string());
        Run::start(command).end()
    };
    for more in [&[][..], &["--read"]] {
        run(more).assert_complains(1, &["tables and procedures are missing", "--install", &schema.name]);
    }
    // Twice: it may be repeated.
    for _ in 0..2 {
        run(&["--install"]).assert_prints(&["leasehold is installed in schema", &schema.name, "leasehold_worker"]);
    }
    run(&[]).assert_prints(&["Published generation 1"]);
    run(&["--install"]).assert_code(0);
    run(&["--read"]).assert_prints(&["Generation 1, published "]);
}

async fn a_connection_string_on_the_command_line_is_not_repeated() {
    let (scene, schema) = (Scene::with_a_file(), Schema::installed().await);
    let run = |string: &str| -> Ended {
        let mut command = scene.command();
        command.arg(scene.tree()).args(["--schema", &schema.name, "--sqlserver", string]);
        Run::start(command).end()
    };
    let string = connection_string();
    let built = run(&string);
    built.assert_prints(&["Published generation 1", "--sqlserver '…as before…'"]);
    // Neither when all is well, nor in a complaint about the string.
    let broken = run(&format!("{string};Encrypt=perhaps"));
    broken.assert_complains(1, &["the connection string can not be read"]);
    for ended in [built, broken] {
        assert!(!format!("{ended:?}").contains(&string), "{ended:#?}");
    }
}
