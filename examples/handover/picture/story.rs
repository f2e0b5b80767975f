//! What the picture tells of one scene: everything in it happened, or there is no picture.

use std::time::Duration;

use crate::event::{At, Event, Who};
use crate::evidence::generation;
use crate::record::Record;

/// One handover, in times since its beginning.
pub(crate) struct Story {
    pub(crate) a: Tenure,
    pub(crate) b: Tenure,
    pub(crate) b_waits: Duration,
    pub(crate) checked: Duration,
    pub(crate) stopped: Duration,
    pub(crate) continued: Duration,
    pub(crate) late: Late,
}

/// One worker's lease.
pub(crate) struct Tenure {
    /// A plain lease has none.
    pub(crate) generation: Option<i64>,
    pub(crate) from: Duration,
    pub(crate) renewals: Vec<Duration>,
    /// When the client counts it lost.
    pub(crate) deadline: Duration,
    /// When it ended: by its expiry, or by its publication.
    pub(crate) until: Duration,
}

/// What became of A's late write.
pub(crate) enum Late {
    /// With what tripped the token, and what the database said.
    Refused {
        loss: Vec<String>,
        said: String,
    },
    Accepted,
}

impl Story {
    pub(crate) fn of(record: &Record) -> Option<Self> {
        Some(Self {
            a: tenure(record, Who::A, record.expired()?)?,
            b: tenure(record, Who::B, record.published(Who::B)?)?,
            b_waits: record.time(Who::B, |event| matches!(event, Event::Waiting { .. }))?,
            checked: record.time(Who::A, |event| matches!(event, Event::Checked { .. }))?,
            stopped: record.stopped()?,
            continued: record.continued()?,
            late: late(record)?,
        })
    }

    /// The last that happened.
    pub(crate) fn end(&self) -> Duration {
        self.continued.max(self.b.until)
    }
}

fn tenure(record: &Record, who: Who, until: Duration) -> Option<Tenure> {
    let renewal = |event: &Event| matches!(event, Event::Renewed { .. });
    let renewals = record.of(who).filter(|entry| renewal(&entry.event)).map(|entry| record.since_began(entry.at));
    Some(Tenure {
        generation: generation(record, who),
        from: record.acquired(who)?,
        // One more may be confirmed between the stop of another worker and the drawing.
        renewals: renewals.filter(|renewed| *renewed <= until).collect(),
        deadline: record.since_began(deadline(record, who)?),
        until,
    })
}

fn deadline(record: &Record, who: Who) -> Option<At> {
    let deadlines = record.of(who).filter_map(|entry| match entry.event {
        Event::Acquired { deadline, .. } | Event::Renewed { deadline } => Some(deadline),
        _ => None,
    });
    deadlines.last()
}

fn late(record: &Record) -> Option<Late> {
    if record.published(Who::A).is_some() {
        return Some(Late::Accepted);
    }
    let said = record.of(Who::A).find_map(|entry| match &entry.event {
        Event::Refused { said, .. } => Some(said.clone()),
        _ => None,
    })?;
    let loss = record.of(Who::A).find_map(|entry| match &entry.event {
        Event::Lost { reason, past_deadline_millis, .. } if reason == "DeadlinePassed" => {
            let ago = Duration::from_millis(*past_deadline_millis).as_secs_f64();
            Some(vec!["its token trips: its local".to_owned(), format!("deadline was {ago:.1} s ago")])
        }
        Event::Lost { said, .. } => Some(vec!["its token trips:".to_owned(), said.clone()]),
        _ => None,
    })?;
    Some(Late::Refused { loss, said })
}
