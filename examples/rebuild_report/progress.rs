//! What is seen while the build runs: a bar on a terminal, nothing elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use leasehold::{LeaseStatus, StatusWatch};

use crate::interrupt::Interrupt;
use crate::wording;

/// How often the bar says how long the lease lasts.
const REFRESH: Duration = Duration::from_millis(200);

/// The bar, and the count of renewals. Clones share both.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    renewals: Arc<AtomicU64>,
}

impl Progress {
    /// Shows the bar, and follows a lease until it is over.
    pub(crate) fn start(watch: StatusWatch, interrupt: Interrupt) -> Self {
        let style = ProgressStyle::with_template("{spinner} {pos}/{len} files [{bar:30}] {msg}")
            .expect("the template is a constant")
            .progress_chars("=> ");
        // On standard error; hidden by itself when that is no terminal.
        let bar = ProgressBar::new(0).with_style(style);
        if !bar.is_hidden() {
            bar.enable_steady_tick(REFRESH);
        }
        let progress = Self { bar, renewals: Arc::default() };
        tokio::spawn(progress.clone().follow(watch, interrupt));
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

    /// How often the lease was renewed so far.
    pub(crate) fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::Relaxed)
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    async fn follow(self, mut watch: StatusWatch, interrupt: Interrupt) {
        let mut is_stopping = false;
        loop {
            let status = tokio::select! {
                status = watch.changed() => {
                    if matches!(status, LeaseStatus::Held { .. }) {
                        self.renewals.fetch_add(1, Ordering::Relaxed);
                    }
                    status
                }
                () = tokio::time::sleep(REFRESH) => watch.current(),
                () = interrupt.requested(), if !is_stopping => {
                    is_stopping = true;
                    self.bar.suspend(|| eprintln!("Stopping at the next checkpoint. Once more leaves at once."));
                    watch.current()
                }
            };
            let LeaseStatus::Held { remaining } = status else { return };
            let renewed = wording::count(self.renewals(), "renewal");
            self.bar.set_message(format!("{renewed}, the lease lasts {}", wording::duration(remaining)));
        }
    }
}
