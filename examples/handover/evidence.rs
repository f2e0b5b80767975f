//! Whether what happened is what was claimed. Each claim is judged by what is on record, and by the database's own row.

use std::time::Duration;

use crate::event::{Event, Who};
use crate::narration::seconds;
use crate::record::Record;
use crate::row::Row;
use crate::worker::payload_of;

/// One claim.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) holds: bool,
    pub(crate) claim: String,
    pub(crate) evidence: String,
}

impl Check {
    pub(crate) fn new(holds: bool, claim: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self { holds, claim: claim.into(), evidence: evidence.into() }
    }
}

/// Of both handovers: that A was stopped beyond its lease after a last look at it, and that B came in between.
pub(crate) fn schedule(record: &Record) -> Vec<Check> {
    let (stopped, expired, continued) = (record.stopped(), record.expired(), record.continued());
    let (taken, published) = (record.acquired(Who::B), record.published(Who::B));
    let checked = record.time(Who::A, |event| matches!(event, Event::Checked { .. }));
    let lock = record.of(Who::Director).find_map(|entry| match &entry.event {
        Event::Stopped { lock, lock_had_in_micros } => {
            Some(format!("the director had {lock} after {lock_had_in_micros} \u{b5}s"))
        }
        _ => None,
    });
    vec![
        Check::new(
            lock.is_some(),
            "A was stopped outside any store call: the lock that every writer needs was free",
            lock.unwrap_or_else(|| "it was not stopped".to_owned()),
        ),
        Check::new(
            in_order(&[checked, stopped, expired, continued]),
            "A looked at its lease, which was held, and was then stopped until long after the lease's end",
            format!(
                "looked at {}, stopped at {}, lease ended at {} by the database, continued at {}",
                time(checked),
                time(stopped),
                time(expired),
                time(continued)
            ),
        ),
        Check::new(
            in_order(&[expired, taken, published, continued]),
            "B got the lease only after that end, and published before A went on",
            format!("acquired at {}, published at {}", time(taken), time(published)),
        ),
    ]
}

/// Of the fenced handover.
pub(crate) fn fenced(record: &Record, row: &Row) -> Vec<Check> {
    let mut checks = schedule(record);
    let generations = [Who::A, Who::B].map(|who| generation(record, who));
    let next = matches!(generations, [Some(a), Some(b)] if b == a + 1);
    checks.push(Check::new(
        next,
        "B's acquisition raised the generation in the row, which is the fence",
        format!("A: {}, B: {}", number(generations[0]), number(generations[1])),
    ));
    let lost = record.first(Who::A, |event| matches!(event, Event::Lost { .. }));
    checks.push(match lost.map(|entry| &entry.event) {
        Some(Event::Lost { reason, said, since_confirmed_millis, past_deadline_millis }) => Check::new(
            ["DeadlinePassed", "Superseded", "Expired"].contains(&reason.as_str()),
            "A's token tripped as soon as A went on",
            format!(
                "{} ms after SIGCONT: {said}; last confirmed {} before, deadline passed by {}",
                lost.map_or(Duration::ZERO, |entry| record.since_continued(entry.at)).as_millis(),
                seconds(Duration::from_millis(*since_confirmed_millis)),
                seconds(Duration::from_millis(*past_deadline_millis))
            ),
        ),
        _ => Check::new(false, "A's token tripped as soon as A went on", "it did not"),
    });
    checks.push(withheld(record));
    checks.push(refused(record, generations[1]));
    let expected = payload_of(Who::B);
    checks.push(Check::new(
        row.payload.as_deref() == Some(&expected) && row.generation == generations[1] && row.publications == 1,
        "the row is B's, and B's is the only publication in the ledger",
        format!(
            "generation {}: {:?}; publications in the ledger: {}",
            number(row.generation),
            row.payload.as_deref().unwrap_or("nothing"),
            row.publications
        ),
    ));
    checks
}

fn withheld(record: &Record) -> Check {
    let claim = "A's guard did not let its publication out";
    match record.first(Who::A, |event| matches!(event, Event::Withheld { .. })).map(|entry| &entry.event) {
        Some(Event::Withheld { said }) => Check::new(true, claim, said),
        _ => Check::new(false, claim, "it did"),
    }
}

/// Superseded, and by B: not refused for some other reason that happened to be in the way.
fn refused(record: &Record, by: Option<i64>) -> Check {
    let claim = "the same publication, sent to the database with A's original fence, was refused there";
    match record.first(Who::A, |event| matches!(event, Event::Refused { .. })).map(|entry| &entry.event) {
        Some(Event::Refused { reason, said }) => {
            let by_b = by.is_some_and(|by| *said == format!("superseded by generation {by}"));
            Check::new(reason == "Superseded" && by_b, claim, format!("the database said: {said}"))
        }
        _ => Check::new(false, claim, "it was not refused"),
    }
}

/// Of the plain handover, where the claim is that it goes wrong.
pub(crate) fn plain(record: &Record, row: &Row) -> Vec<Check> {
    let mut checks = schedule(record);
    let written = [record.published(Who::B), record.continued(), record.published(Who::A)];
    checks.push(Check::new(
        in_order(&written),
        "A's write, which nothing could judge, was accepted after B's",
        format!("B wrote at {}, A at {}", time(written[0]), time(written[2])),
    ));
    let stale = payload_of(Who::A);
    checks.push(Check::new(
        row.payload.as_deref() == Some(&stale),
        "A overwrote B: the newer report is gone",
        format!("the row: {:?}", row.payload.as_deref().unwrap_or("nothing")),
    ));
    checks
}

/// The generation that a worker acquired.
pub(crate) fn generation(record: &Record, who: Who) -> Option<i64> {
    record.of(who).find_map(|entry| match entry.event {
        Event::Acquired { generation, .. } => generation,
        _ => None,
    })
}

/// Whether all of it happened, one after the other.
pub(crate) fn in_order(times: &[Option<Duration>]) -> bool {
    times.iter().all(Option::is_some) && times.is_sorted()
}

pub(crate) fn time(time: Option<Duration>) -> String {
    time.map_or_else(|| "never".to_owned(), seconds)
}

fn number(number: Option<i64>) -> String {
    number.map_or_else(|| "none".to_owned(), |number| number.to_string())
}
