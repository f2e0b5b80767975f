//! Numbers, durations and times as people read them.

use std::time::{Duration, SystemTime};

/// A duration without more digits than anybody wants.
pub(crate) fn duration(duration: Duration) -> String {
    let unit = if duration < Duration::from_secs(10) { Duration::from_millis(1) } else { Duration::from_secs(1) };
    let rounded = duration.as_nanos() / unit.as_nanos();
    let rounded = unit.saturating_mul(u32::try_from(rounded).unwrap_or(u32::MAX));
    humantime::format_duration(rounded).to_string()
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
