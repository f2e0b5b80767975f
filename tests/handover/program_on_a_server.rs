//! The whole example against a server, with rows of its own that it deletes at the end.

use std::process::{Command, Output, Stdio};

use crate::database::TestDatabase;
use crate::program::{Interrupted, assert_says};
use crate::worker::example;

on_every_server! {
    both_handovers_are_played_and_nothing_is_left,
    a_kill_and_a_lost_answer_hold_too,
    without_the_stop_the_evidence_fails_and_so_does_the_program,
    #[cfg(target_os = "linux")]
    no_worker_shows_the_connection_string_in_the_list_of_processes,
    an_interrupt_clears_away_what_was_made,
}

fn program(database: &TestDatabase, arguments: &[&str]) -> Command {
    let mut command = Command::new(example());
    command.args(["--ttl", "5s"]).args(arguments).current_dir(database.folder()).stdin(Stdio::null());
    database.hand_to(&mut command);
    command
}

fn run(database: &TestDatabase, arguments: &[&str]) -> Output {
    program(database, arguments).output().expect("the example runs")
}

async fn both_handovers_are_played_and_nothing_is_left(database: TestDatabase) {
    let parts = [
        "the row's lock",
        "REFUSED by the database",
        "ACCEPTED by the database",
        "superseded by generation 2",
        "The evidence holds.",
    ];
    assert_says(&run(&database, &["--svg", "picture.svg"]), 0, &parts);
    assert_eq!(database.remains().await, [""; 0]);
}

async fn a_kill_and_a_lost_answer_hold_too(database: TestDatabase) {
    assert_says(&run(&database, &["--kill"]), 0, &["after the kill", "The evidence holds."]);
    assert_says(&run(&database, &["--lost-ack"]), 0, &["Published", "NotPublished", "The evidence holds."]);
    assert_eq!(database.remains().await, [""; 0]);
}

async fn without_the_stop_the_evidence_fails_and_so_does_the_program(database: TestDatabase) {
    let parts = ["[FAIL]", "it was not refused", "THE EVIDENCE DOES NOT HOLD."];
    assert_says(&run(&database, &["--control"]), 1, &parts);
    assert_eq!(database.remains().await, [""; 0]);
}

async fn an_interrupt_clears_away_what_was_made(database: TestDatabase) {
    let mut running = Interrupted::at_the_stop(program(&database, &["--naive"]));
    assert_ne!(database.remains().await, [""; 0], "there is a plain lease while it runs");
    running.interrupt();
    assert_eq!(database.remains().await, [""; 0]);
}

#[cfg(target_os = "linux")]
async fn no_worker_shows_the_connection_string_in_the_list_of_processes(database: TestDatabase) {
    let program = program(&database, &["--naive"]);
    let secrets: Vec<_> = program.get_envs().filter_map(|(_, value)| value?.to_str().map(str::to_owned)).collect();
    assert_eq!(secrets.len(), 1, "the connection string");
    let _running = Interrupted::at_the_stop(program);
    let processes = std::fs::read_dir("/proc").expect("processes are listed").filter_map(Result::ok);
    let commands = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let commands = commands.map(|command| String::from_utf8_lossy(&command).into_owned());
    let workers: Vec<_> = commands.filter(|command| command.contains("\0worker\0plain\0")).collect();
    assert!(!workers.is_empty(), "the workers were not found while they ran");
    assert!(!workers.iter().any(|worker| worker.contains(&secrets[0])), "a connection string is there to see");
}
