//! What happened in one scene, in the order in which the director learned of it.

use std::time::Duration;

use crate::event::{At, Entry, Event, Who};

/// The entries of a scene.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) began: At,
    pub(crate) entries: Vec<Entry>,
}

impl Record {
    pub(crate) fn begin() -> Self {
        Self { began: At::now(), entries: Vec::new() }
    }

    /// What this one did, in order.
    pub(crate) fn of(&self, who: Who) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.who == who)
    }

    /// The first of this kind.
    pub(crate) fn first(&self, who: Who, is_it: impl Fn(&Event) -> bool) -> Option<&Entry> {
        self.of(who).find(|entry| is_it(&entry.event))
    }

    /// When it first happened, since the scene began.
    pub(crate) fn time(&self, who: Who, is_it: impl Fn(&Event) -> bool) -> Option<Duration> {
        self.first(who, is_it).map(|entry| self.since_began(entry.at))
    }

    /// A point in time as the time since the scene began.
    pub(crate) fn since_began(&self, at: At) -> Duration {
        at.since(self.began)
    }

    /// How long after the stopped worker went on; zero if it never was.
    pub(crate) fn since_continued(&self, at: At) -> Duration {
        self.continued().map_or(Duration::ZERO, |continued| self.since_began(at).saturating_sub(continued))
    }

    pub(crate) fn acquired(&self, who: Who) -> Option<Duration> {
        self.time(who, |event| matches!(event, Event::Acquired { .. }))
    }

    pub(crate) fn published(&self, who: Who) -> Option<Duration> {
        self.time(who, |event| matches!(event, Event::Published { .. }))
    }

    /// Of the worker that the director stopped.
    pub(crate) fn stopped(&self) -> Option<Duration> {
        self.time(Who::Director, |event| matches!(event, Event::Stopped { .. }))
    }

    pub(crate) fn continued(&self) -> Option<Duration> {
        self.time(Who::Director, |event| matches!(event, Event::Continued))
    }

    /// When the lease ended of the worker that the director stopped or killed, as the database has it.
    pub(crate) fn expired(&self) -> Option<Duration> {
        self.of(Who::Director).find_map(|entry| match entry.event {
            Event::Expiry { expires } => Some(self.since_began(expires)),
            _ => None,
        })
    }
}
