//! Times for people: `2025-06-01T12:34:56.789Z` in a TEXT column, as the `sqlite3` shell shows it.
//!
//! Of fixed width, so that texts sort as times do. No lease is decided by one.

use std::time::{Duration, SystemTime};

/// The last millisecond of the year 9999, which the fixed width still holds.
const LAST_MILLI: u64 = 253_402_300_799_999;

/// Writes a time, in whole milliseconds; a time before 1970 or after 9999 becomes the nearest within.
pub(super) fn to_text(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let millis = u64::try_from(since.as_millis()).unwrap_or(LAST_MILLI).min(LAST_MILLI);
    let (days, in_day) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1_000 % 60, in_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Reads what [`to_text`] wrote.
pub(super) fn from_text(text: &str) -> Option<SystemTime> {
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if bytes.len() != 24 || separators.iter().any(|&(at, separator)| bytes[at] != separator) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok())?
    };
    let days = days(number(0..4)?, number(5..7)?, number(8..10)?)?;
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(number(20..23)?))
}

/// Year, month and day of a day since 1970, by Howard Hinnant's `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, in_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The day since 1970 of a date that exists.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let year_from_march = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (year_from_march / 400, year_from_march % 400);
    let in_year = (153 * from_march + 2) / 5 + day - 1;
    let in_era = of_era * 365 + of_era / 4 - of_era / 100 + in_year;
    let days = (era * 146_097 + in_era).checked_sub(719_468)?;
    (civil(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_and_sqlite_read_them() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        assert_eq!(to_text(at(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(to_text(at(951_782_400_123)), "2000-02-29T00:00:00.123Z");
        assert_eq!(to_text(at(1_767_225_599_999)), "2025-12-31T23:59:59.999Z");
        assert_eq!(to_text(at(u64::MAX)), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_of_six_centuries_reads_back_and_sorts() {
        let mut before = String::new();
        for day in 0..365 * 600 {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400 + 86_399) + Duration::from_millis(7);
            let text = to_text(time);
            assert_eq!(from_text(&text), Some(time), "{text}");
            assert!(before < text);
            before = text;
        }
    }

    #[test]
    fn what_is_no_time_reads_as_none() {
        for bad in [
            "",
            "now",
            "2025-02-29T00:00:00.000Z",
            "2025-13-01T00:00:00.000Z",
            "2025-01-01T24:00:00.000Z",
            "2025-01-01 00:00:00.000Z",
            "2025-01-01T00:00:00.0000",
            "+025-01-01T00:00:00.000Z",
            "1969-12-31T00:00:00.000Z",
        ] {
            assert_eq!(from_text(bad), None, "{bad:?}");
        }
    }
}
