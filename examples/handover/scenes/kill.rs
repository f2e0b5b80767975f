//! `--kill`: A is killed while it holds the lease. Nobody releases it; B has it as soon as it expires.

use std::time::Duration;

use rustix::process::Signal;

use crate::arguments::Task;
use crate::event::{Event, Who};
use crate::evidence::{Check, generation, in_order, time};
use crate::failure::Failure;
use crate::narration::{self, seconds};
use crate::place::Place;
use crate::row::{self, Row};
use crate::stage::Stage;
use crate::worker::payload_of;

pub(crate) async fn play(place: &Place) -> Result<bool, Failure> {
    narration::heading("A is killed while it holds the lease");
    let ttl = place.ttl;
    let mut stage = Stage::new(place);
    // Its build would take for ever.
    let a = stage.cast(Task::Fenced, Who::A, Duration::from_secs(3600), None)?;
    stage.until(Who::A, "the acquisition", |event| matches!(event, Event::Acquired { .. })).await?;
    let mut b = stage.cast(Task::Fenced, Who::B, Duration::ZERO, None)?;
    b.open_gate()?;
    stage.until(Who::B, "waiting", |event| matches!(event, Event::Waiting { .. })).await?;
    for _ in 0..2 {
        stage.next(Who::A, "a renewal", |event| matches!(event, Event::Renewed { .. })).await?;
    }
    // In the middle between two renewals, as a death is likely to come.
    tokio::time::sleep(ttl * 3 / 20).await;
    a.signal(Signal::KILL)?;
    stage.act(Event::Killed);
    let signal = a.end().await?;
    let expires = row::expiry(place).await?;
    stage.act(Event::Expiry { expires });
    stage.until(Who::B, "the publication", |event| matches!(event, Event::Published { .. })).await?;
    b.end().await?;

    let record = stage.record;
    let row = Row::fenced(place).await?;
    let killed = record.time(Who::Director, |event| matches!(event, Event::Killed));
    let (expired, taken) = (record.expired(), record.acquired(Who::B));
    let within = matches!((expired, taken), (Some(expired), Some(taken)) if taken <= expired + ttl);
    let since = |then: Option<Duration>| taken.zip(then).map(|(taken, then)| taken.saturating_sub(then));
    let checks = [
        Check::new(
            signal == Some(Signal::KILL.as_raw()),
            "A is dead, and released nothing",
            format!("killed at {} by signal {}", time(killed), signal.unwrap_or_default()),
        ),
        Check::new(
            in_order(&[killed, expired, taken]) && within,
            "B took over when the lease expired: not sooner, and within one TTL",
            format!(
                "{} after the kill, {} after the lease's end; the TTL is {}",
                time(since(killed)),
                time(since(expired)),
                seconds(ttl)
            ),
        ),
        Check::new(
            row.payload.as_deref() == Some(&payload_of(Who::B)) && row.generation == generation(&record, Who::B),
            "the row is B's",
            format!("{:?}", row.payload.as_deref().unwrap_or("nothing")),
        ),
    ];
    Ok(narration::verdict(&checks))
}
