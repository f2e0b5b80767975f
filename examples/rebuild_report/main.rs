//! A report that takes long to build, built under a lease: an inventory of a folder tree.
//!
//! ```text
//! cargo run --example rebuild_report --features sqlite -- [FOLDER]
//! ```
//!
//! It counts the files, lines and bytes of a folder per extension, takes the SHA-256 of every file, and publishes the result
//! through the fence into an SQLite file, or (after `--install`, once) into a SQL Server with `--sqlserver CONNECTION_STRING`, into
//! a PostgreSQL server with `--postgres URL`. Try these in two terminals:
//!
//! * Run it twice at once, with `--slow 200ms`: one works, the other says who does. With `--wait` it takes its turn.
//! * Press Ctrl-C: the build stops, the lease is released, and the next run need not wait for it to expire.
//! * `kill -STOP` the one that works, let the other take over with `--wait`, then `kill -CONT`: the first finds its lease
//!   lost, says on what evidence, and publishes nothing.
//! * `--read` prints what is published; `--revision 7` builds nothing if revision 7 is already visible.
//!
//! Where to look: `job.rs` is the use of the library, from the acquisition to the publication. `inventory/` is the build,
//! which knows of the lease only through `checkpoints.rs`.

mod arguments;
mod checkpoints;
mod command;
#[path = "../database/mod.rs"]
mod database;
mod failure;
mod interrupt;
mod inventory;
mod job;
mod names;
mod opening;
mod progress;
mod reading;
mod rendering;
mod wording;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
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
    let ended = runtime.block_on(run(&arguments));
    // Not by dropping it: that would wait for a build that hangs in the file system.
    runtime.shutdown_background();
    match ended {
        Ok(text) => finish(&text),
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit_code()
        }
    }
}

async fn run(arguments: &Arguments) -> Result<String, Failure> {
    #[cfg(any(feature = "sqlserver", feature = "postgres"))]
    if arguments.install_script {
        return opening::install_script(arguments);
    }
    if arguments.install {
        return opening::install(arguments).await;
    }
    if arguments.read {
        return reading::read(arguments).await;
    }
    let interrupt = Interrupt::listen().map_err(Failure::Signals)?;
    job::rebuild(arguments, &interrupt).await
}

/// Prints what was asked for. Whoever closes the pipe early (`| head`) has seen enough.
fn finish(text: &str) -> ExitCode {
    use std::io::{ErrorKind, Write};

    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("The answer could not be written: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
