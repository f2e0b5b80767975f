//! Where a worker waits, between its last look at the lease and its write, until the director says `go`.
//!
//! It is the breakpoint of a debugger: every schedule is forced by it and none by sleeping and hoping. It is also what ends
//! a worker whose director is gone.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, sync_channel};

/// Opens with the line `go` on standard input.
pub(super) struct Gate {
    opened: Receiver<()>,
}

impl Gate {
    /// From here on the process ends if its standard input does.
    pub(super) fn watch() -> Self {
        // A stopped process could not notice a closed pipe.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        let (open, opened) = sync_channel(1);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if line == "go" {
                    let _ = open.try_send(());
                }
            }
            std::process::exit(1);
        });
        Self { opened }
    }

    /// Blocks until it is open.
    pub(super) fn pass(&self) {
        // The sender lives as long as the process.
        let _ = self.opened.recv();
    }
}
