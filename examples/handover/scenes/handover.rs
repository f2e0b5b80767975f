//! The scene of the article: A is stopped past its lease, B takes over and publishes, A goes on and writes.

use rustix::process::Signal;

use crate::arguments::Task;
use crate::event::{Event, Who};
use crate::evidence;
use crate::failure::Failure;
use crate::narration;
use crate::place::Place;
use crate::plain_lease::PlainLease;
use crate::record::Record;
use crate::row::{self, Row};
use crate::stage::Stage;
use crate::stopping::{self, Lock};

/// With which lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Fenced,
    Plain,
}

/// What came of it.
pub(crate) struct Played {
    pub(crate) record: Record,
    pub(crate) row: Row,
    pub(crate) holds: bool,
}

/// Plays the scene; without `stopped`, A is left alone.
pub(crate) async fn play(place: &Place, kind: Kind, stopped: bool) -> Result<Played, Failure> {
    let (task, title) = match kind {
        Kind::Fenced => (Task::Fenced, "With leasehold: every write carries its fence to the database"),
        Kind::Plain => (Task::Plain, "With a plain lease: whoever believes to hold it writes"),
    };
    narration::heading(title);
    let mut stage = Stage::new(place);
    // Long enough for two renewals.
    let build = place.ttl * 13 / 20;
    let mut a = stage.cast(task, Who::A, build, None)?;
    stage.until(Who::A, "the acquisition", is_acquired).await?;
    let mut b = stage.cast(task, Who::B, build, None)?;
    b.open_gate()?;
    stage.until(Who::B, "waiting", |event| matches!(event, Event::Waiting { .. })).await?;
    stage.until(Who::A, "the last look", |event| matches!(event, Event::Checked { .. })).await?;

    if stopped {
        // Open before, so that nothing but the lock is waited for.
        let lock = match kind {
            Kind::Fenced => Lock::Report(place),
            Kind::Plain => Lock::Plain(PlainLease::open(&place.database, place.report, Who::Director).await?, place),
        };
        stopping::stop(&mut stage, &a, lock).await?;
        let expires = match kind {
            Kind::Fenced => row::expiry(place).await?,
            Kind::Plain => PlainLease::open(&place.database, place.report, Who::Director).await?.expires().await?,
        };
        stage.act(Event::Expiry { expires });
        stage.until(Who::B, "the publication", is_published).await?;
        // So that a person sees one after the other; nothing depends on it.
        tokio::time::sleep(place.ttl * 11 / 20).await;
        a.open_gate()?;
        stage.act(Event::Continued);
        a.signal(Signal::CONT)?;
    } else {
        a.open_gate()?;
    }
    stage.until(Who::A, "an answer", |event| is_published(event) || matches!(event, Event::Refused { .. })).await?;
    stage.until(Who::B, "the publication", is_published).await?;
    a.end().await?;
    b.end().await?;

    let record = stage.record;
    let row = match kind {
        Kind::Fenced => Row::fenced(place).await?,
        Kind::Plain => Row::plain(place).await?,
    };
    let checks = match kind {
        Kind::Fenced => evidence::fenced(&record, &row),
        Kind::Plain => evidence::plain(&record, &row),
    };
    let holds = narration::verdict(&checks);
    Ok(Played { record, row, holds })
}

fn is_acquired(event: &Event) -> bool {
    matches!(event, Event::Acquired { .. })
}

fn is_published(event: &Event) -> bool {
    matches!(event, Event::Published { .. })
}
