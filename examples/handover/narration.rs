//! What the director prints: a line for everything that happens, and in the end the verdicts.

use std::time::Duration;

use crate::event::{At, Entry, Event, Who};
use crate::evidence::Check;

/// A heading above a scene.
pub(crate) fn heading(text: &str) {
    println!("\n{text}\n{}", "=".repeat(text.chars().count()));
}

/// One line of a scene.
pub(crate) fn line(entry: &Entry, began: At) -> String {
    let who = match entry.who {
        Who::A => "A",
        Who::B => "B",
        Who::Director => "",
    };
    format!("{:>8}  {who:1}  {}", seconds(entry.at.since(began)), what(&entry.event, began))
}

/// The claims of a scene, each with what supports it; answers whether all hold.
pub(crate) fn verdict(checks: &[Check]) -> bool {
    println!("\nEvidence");
    for Check { holds, claim, evidence } in checks {
        println!("  [{}] {claim}\n         {evidence}", if *holds { " ok " } else { "FAIL" });
    }
    checks.iter().all(|check| check.holds)
}

/// A time or a duration for people.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn millis(millis: u64) -> String {
    seconds(Duration::from_millis(millis))
}

fn what(event: &Event, began: At) -> String {
    match event {
        Event::Waiting { holder, remaining_millis } => {
            format!("waits: {holder} holds the lease, for {} more unless it renews", millis(*remaining_millis))
        }
        Event::Acquired { generation: Some(generation), .. } => format!("holds the lease, as generation {generation}"),
        Event::Acquired { generation: None, .. } => "holds the lease".to_owned(),
        Event::Renewed { .. } => "renewed its lease".to_owned(),
        Event::Checked { remaining_millis } => {
            format!("has built; a last look says that the lease is held, for {} more", millis(*remaining_millis))
        }
        Event::Lost { said, since_confirmed_millis, past_deadline_millis, .. } => format!(
            "its token trips: {said} (last confirmed {} before; deadline passed by {})",
            millis(*since_confirmed_millis),
            millis(*past_deadline_millis)
        ),
        Event::Withheld { .. } => "its guard does not let the publication out".to_owned(),
        Event::Refused { said, .. } => {
            format!("sends it all the same, with its original fence. The database REFUSES it: {said}")
        }
        Event::Published { generation: Some(generation) } => {
            format!("published: the database accepted it as generation {generation}")
        }
        Event::Published { generation: None } => "wrote its report: the database accepted it".to_owned(),
        Event::TicketWritten { operation } => format!("wrote its ticket to the disk, for operation {operation}"),
        Event::Sent => "sent its publication; the answer will never reach it".to_owned(),
        Event::Resolved { outcome, generation: Some(generation), .. } => {
            format!("a new process asks with the ticket: {outcome}, as generation {generation}")
        }
        Event::Resolved { outcome, .. } => format!("a new process asks with the ticket: {outcome}"),
        Event::Stopped { lock, lock_had_in_micros } => format!(
            "A is stopped (SIGSTOP), outside any store call: another process had {lock} after {lock_had_in_micros} \u{b5}s"
        ),
        Event::Expiry { expires } => {
            format!("A's lease ends at {}, says the database", seconds(expires.since(began)))
        }
        Event::Continued => "A goes on (SIGCONT)".to_owned(),
        Event::Killed => "A is killed (kill -9)".to_owned(),
    }
}
