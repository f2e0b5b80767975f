//! Samples of one thing, and what is typical of them. Medians, because the machine is shared.

use std::time::Duration;

/// Samples in any unit.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    #[allow(dead_code)] // Of the benches that take the time.
    pub(crate) fn push_micros(&mut self, sample: Duration) {
        self.push(sample.as_secs_f64() * 1e6);
    }

    /// The least sample that at least this share of them does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted[rank.clamp(1, sorted.len()) - 1]
    }

    #[allow(dead_code)] // Of the benches that compare.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}
