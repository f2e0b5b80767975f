//! A worker that is stopped past its lease, and what becomes of its write: with real processes, on one database.
//!
//! ```text
//! cargo run --example handover --features sqlite
//! ```
//!
//! Worker A builds under a lease, looks at it a last time, and is stopped (SIGSTOP) before it writes. Its lease expires; B
//! takes over and publishes; A goes on (SIGCONT) and its write is sent to the database. Once with leasehold's fence, once
//! with a plain lease, by the same schedule. The evidence is printed, and drawn as an SVG. It exits with 1 if the evidence
//! does not hold.
//!
//! It makes an SQLite file of its own; with `--sqlserver CONNECTION_STRING` or `--postgres URL` it uses a server where leasehold is
//! installed.
//!
//! * `--naive`: only the plain lease.
//! * `--kill`: A is killed (kill -9) instead; B takes over within one TTL.
//! * `--lost-ack`: A is killed before it hears whether it published; its ticket tells another process, twice the same.
//! * `--control`: A is not stopped; nothing is refused, and the evidence fails, as it must.
//!
//! Where to look: `worker/fenced.rs` is the use of the library. `scenes/` is what the director does to the workers,
//! `evidence.rs` is what must hold in the end. `worker/plain.rs` and `plain_lease/` are the contrast.

#[cfg(unix)]
mod arguments;
#[cfg(unix)]
#[path = "../database/mod.rs"]
mod database;
#[cfg(unix)]
mod event;
#[cfg(unix)]
mod evidence;
#[cfg(unix)]
mod failure;
#[cfg(unix)]
mod narration;
#[cfg(unix)]
mod picture;
#[cfg(unix)]
mod place;
#[cfg(unix)]
mod plain_lease;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod row;
#[cfg(unix)]
mod scenes;
#[cfg(unix)]
mod stage;
#[cfg(unix)]
mod stopping;
#[cfg(unix)]
mod worker;

use std::process::ExitCode;

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("This shows what becomes of a process that is stopped with SIGSTOP, which this system does not have.");
    ExitCode::FAILURE
}

#[cfg(unix)]
fn main() -> ExitCode {
    use clap::Parser;

    let arguments = match arguments::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Also asked-for help comes this way.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("The asynchronous runtime did not start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match arguments.role {
        Some(arguments::Role::Worker(worker)) => match runtime.block_on(worker::work(&worker)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("worker {}: {failure}", worker.who);
                ExitCode::FAILURE
            }
        },
        None => runtime.block_on(direct(&arguments.scenes)),
    }
}

/// Plays, unless the user ends it: then every process goes with the scene that is dropped, and what was made is cleared away.
#[cfg(unix)]
async fn direct(scenes: &arguments::Scenes) -> ExitCode {
    const INTERRUPTED: u8 = 130;

    let opened = tokio::select! {
        opened = place::Place::open(scenes) => opened,
        _ = tokio::signal::ctrl_c() => return INTERRUPTED.into(),
    };
    let played = match opened {
        Ok(place) => {
            let played = tokio::select! {
                played = scenes::play(scenes, &place) => Some(played),
                _ = tokio::signal::ctrl_c() => None,
            };
            if let Err(failure) = place.clear_away().await {
                eprintln!("What was made for report {} could not be cleared away: {failure}", place.report);
            }
            let Some(played) = played else {
                eprintln!("Interrupted: the workers are killed and what was made is deleted.");
                return INTERRUPTED.into();
            };
            played
        }
        Err(failure) => Err(failure),
    };
    match played {
        Ok(true) => {
            println!("\nThe evidence holds.");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            println!("\nTHE EVIDENCE DOES NOT HOLD.");
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("The scene could not be played to its end: {failure}");
            ExitCode::FAILURE
        }
    }
}
