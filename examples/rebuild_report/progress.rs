//! What is seen while the build runs: a bar on a terminal, nothing elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use leasehold::{Lease, LeaseStatus};

use crate::interrupt::Interrupt;
use crate::wording;

/// How often the bar says how long the lease lasts.
const REFRESH: Duration = Duration::from_millis(200);

/// The bar. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows the bar, and follows a lease until it is over.
    pub(crate) fn start(lease: Lease, interrupt: Interrupt) -> Self {
        let style = ProgressStyle::with_template("{spinner} {pos}/{len} files [{bar:30}] {msg}")
            .expect("the template is a constant")
            .progress_chars("=> ");
        // On standard error; hidden by itself when that is no terminal.
        let bar = ProgressBar::new(0).with_style(style);
        if !bar.is_hidden() {
            bar.enable_steady_tick(REFRESH);
        }
        let progress = Self { bar };
        tokio::spawn(progress.clone().follow(lease, interrupt));
        progress
    }

    /// How many files there are.
    pub(crate) fn expect(&self, files: usize) {
        self.bar.set_length(files as u64);
    }

    /// One more file is done.
    pub(crate) fn one_more(&self) {
        self.bar.inc(1);
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    async fn follow(self, lease: Lease, interrupt: Interrupt) {
        let mut is_stopping = false;
        while let LeaseStatus::Held { remaining } = lease.status() {
            let renewed = wording::count(lease.renewals(), "renewal");
            self.bar.set_message(format!("{renewed}, the lease lasts {}", wording::duration(remaining)));
            tokio::select! {
                () = tokio::time::sleep(REFRESH) => {}
                () = interrupt.requested(), if !is_stopping => {
                    is_stopping = true;
                    self.bar.suspend(|| eprintln!("Stopping at the next checkpoint. Once more leaves at once."));
                }
            }
        }
    }
}
