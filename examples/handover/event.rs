//! What happens, as one JSON line each: how workers tell the director, and what the picture is drawn from.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use leasehold::{BootClock, Clock, Moment};
use serde::{Deserialize, Serialize};

/// Something that happened, to whom and when.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) who: Who,
    /// By the machine's clock, which all processes share.
    pub(crate) at: At,
    #[serde(flatten)]
    pub(crate) event: Event,
}

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[value(rename_all = "verbatim")]
pub(crate) enum Who {
    A,
    B,
    /// The process that starts, stops and continues the others.
    Director,
}

/// A point in time: nanoseconds since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct At(u64);

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The lease is somebody else's.
    Waiting { holder: String, remaining_millis: u64 },
    /// The lease is held, and the client counts it lost at `deadline` unless it is renewed. A plain lease has no generation.
    Acquired { generation: Option<i64>, deadline: At },
    /// A renewal was confirmed.
    Renewed { deadline: At },
    /// The build is done, and a last look at the lease said: held. Next comes the write, once the gate opens.
    Checked { remaining_millis: u64 },
    /// The worker found its lease over.
    Lost { reason: String, said: String, since_confirmed_millis: u64, past_deadline_millis: u64 },
    /// The guard did not let the publication out.
    Withheld { said: String },
    /// The database refused a publication that was sent to it regardless.
    Refused { reason: String, said: String },
    /// The database accepted the write.
    Published { generation: Option<i64> },
    /// The ticket is on the disk; nothing was sent.
    TicketWritten { operation: String },
    /// The publication is on its way and nobody waits for its answer.
    Sent,
    /// What a ticket came to.
    Resolved { outcome: String, generation: Option<i64>, operation: Option<String> },
    /// The director stopped the worker, and then had this lock for itself, which every writer of the report needs.
    Stopped { lock: String, lock_had_in_micros: u64 },
    /// The director saw in the database when the lease ends.
    Expiry { expires: At },
    /// The director let the worker go on.
    Continued,
    /// The director ended the worker with SIGKILL.
    Killed,
}

impl At {
    pub(crate) fn now() -> Self {
        Self::of(BootClock.now().since(Moment::after_origin(Duration::ZERO)))
    }

    /// The point this long after the machine started.
    pub(crate) fn of(since_boot: Duration) -> Self {
        Self(u64::try_from(since_boot.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self::of(Duration::from_nanos(self.0) + duration)
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::Director => "director",
        })
    }
}

/// In a worker: tells the director. A director that is gone is noticed by the gate.
pub(crate) fn tell(who: Who, event: Event) {
    let line = serde_json::to_string(&Entry { who, at: At::now(), event }).expect("events have text keys");
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A duration as events have it.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The name of a reason without what it carries: `Superseded { by: … }` is `Superseded`.
pub(crate) fn name_of(reason: impl fmt::Debug) -> String {
    let text = format!("{reason:?}");
    text.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default().to_owned()
}
