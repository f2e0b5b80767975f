//! Where a time lies.

use std::time::Duration;

use super::{MARGIN, WIDTH};

/// Where the lanes' names end and time begins.
pub(super) const LEFT: f64 = 156.0;

/// Where everything ends.
pub(super) const RIGHT: f64 = WIDTH - MARGIN - 16.0;

/// The room after the last event, in which is said what it came to.
const AFTER: f64 = 208.0;

/// Seconds to the right.
pub(super) struct Scale {
    per_second: f64,
    pub(super) end: Duration,
}

impl Scale {
    /// One on which this time is the last.
    pub(super) fn up_to(end: Duration) -> Self {
        Self { per_second: (RIGHT - AFTER - LEFT) / end.as_secs_f64().max(0.001), end }
    }

    pub(super) fn x(&self, time: Duration) -> f64 {
        LEFT + time.as_secs_f64() * self.per_second
    }

    /// The times to write at the axis: at most ten.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let end = self.end.as_secs_f64();
        let steps = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0];
        let step = steps.into_iter().find(|step| end / step <= 10.0).unwrap_or(end);
        let decimals = usize::from(step < 1.0);
        let times = (0..=10_u32).map(move |count| f64::from(count) * step).take_while(move |time| *time <= end);
        times.map(move |time| (LEFT + time * self.per_second, format!("{time:.decimals$} s")))
    }
}
