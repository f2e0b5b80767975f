//! Numbers, durations and times as people read them.

use std::time::{Duration, SystemTime};

/// A duration without more digits than anybody wants.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{:.1}s", duration.as_secs_f64()).replace(".0s", "s"),
        seconds => humantime::format_duration(Duration::from_secs(seconds)).to_string(),
    }
}

/// A point in time, and how long ago that was by this machine's clock.
pub(crate) fn time(at: SystemTime) -> String {
    let stamp = humantime::format_rfc3339_seconds(at);
    match at.elapsed() {
        Ok(ago) => format!("{stamp} ({} ago)", duration(ago)),
        // The database's clock is ahead of ours.
        Err(_) => stamp.to_string(),
    }
}

/// A number with its thousands apart.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count of things: "1 file", "2 files".
pub(crate) fn count(count: u64, one: &str) -> String {
    format!("{} {one}{}", number(count), if count == 1 { "" } else { "s" })
}
