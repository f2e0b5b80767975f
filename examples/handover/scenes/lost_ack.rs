//! `--lost-ack`: A is killed before it hears whether it published. Its ticket, written to the disk before, tells: a new
//! process learns the truth, and every further one the same.

use std::path::Path;
use std::time::Duration;

use leasehold::answer::{PublishAnswer, Refusal};
use leasehold::store::{Budget, Payload, PublishRequest};
use rustix::process::Signal;

use crate::arguments::Task;
use crate::event::{Event, Who};
use crate::evidence::Check;
use crate::failure::Failure;
use crate::narration;
use crate::place::Place;
use crate::row::Row;
use crate::stage::Stage;
use crate::worker::{payload_of, read_ticket};

/// How long the database may take.
const LIMIT: Duration = Duration::from_secs(10);

pub(crate) async fn play(place: &Place) -> Result<bool, Failure> {
    let accepted = accepted(&place.folder().join("accepted.ticket"), place).await?;
    let never_sent = never_sent(&place.folder().join("never-sent.ticket"), place).await?;
    Ok(accepted && never_sent)
}

/// The database accepted it, and A dies before the answer reaches it.
async fn accepted(ticket: &Path, place: &Place) -> Result<bool, Failure> {
    narration::heading("A is killed after the database accepted its publication, and before A hears of it");
    let mut stage = Stage::new(place);
    let mut a = stage.cast(Task::Unanswered, Who::A, Duration::ZERO, Some(ticket))?;
    a.open_gate()?;
    stage.until(Who::A, "the sending", |event| matches!(event, Event::Sent)).await?;
    let row = published(place).await?;
    a.signal(Signal::KILL)?;
    stage.act(Event::Killed);
    a.end().await?;

    let [first, second] = ask_twice(&mut stage, ticket).await?;
    let operation = operation_of(&stage);
    let truth = Event::Resolved { outcome: "Published".to_owned(), generation: row.generation, operation };
    let checks = [
        Check::new(first == truth, "a new process learned the truth from the ticket", format!("{first:?}")),
        Check::new(second == first, "and one more process the same", format!("{second:?}")),
        Check::new(
            row.payload.as_deref() == Some(&payload_of(Who::A)) && row.publications == 1,
            "it was published, and once",
            format!(
                "{:?}; publications in the ledger: {}",
                row.payload.as_deref().unwrap_or("nothing"),
                row.publications
            ),
        ),
    ];
    Ok(narration::verdict(&checks))
}

/// A dies before the publication was sent. That it was not accepted is made certain: it never will be, even if a request
/// was on its way all the time.
async fn never_sent(ticket: &Path, place: &Place) -> Result<bool, Failure> {
    narration::heading("A is killed after its ticket was written, and before anything was sent");
    let mut stage = Stage::new(place);
    let a = stage.cast(Task::Unanswered, Who::A, Duration::ZERO, Some(ticket))?;
    stage.until(Who::A, "the ticket", |event| matches!(event, Event::TicketWritten { .. })).await?;
    a.signal(Signal::KILL)?;
    stage.act(Event::Killed);
    a.end().await?;

    let before = Row::fenced(place).await?;
    let [first, second] = ask_twice(&mut stage, ticket).await?;
    let truth = Event::Resolved { outcome: "NotPublished".to_owned(), generation: None, operation: None };
    let written = read_ticket(ticket)?;
    let payload = Payload::new(payload_of(Who::A), usize::MAX)?;
    let request = PublishRequest { fence: written.fence, operation: written.operation, payload, revision: None };
    let late = place.store.publish(request, Budget::within(LIMIT)).await?;
    let after = Row::fenced(place).await?;
    let checks = [
        Check::new(first == truth, "a new process learned the truth from the ticket", format!("{first:?}")),
        Check::new(second == first, "and one more process the same", format!("{second:?}")),
        Check::new(
            matches!(late, PublishAnswer::Refused(Refusal::Closed)) && after.publications == before.publications,
            "the very publication, arriving after that, is refused for that reason",
            match late {
                PublishAnswer::Refused(refusal) => format!("the database said: {refusal}"),
                other => format!("{other:?}"),
            },
        ),
    ];
    Ok(narration::verdict(&checks))
}

/// Waits until the database has it.
async fn published(place: &Place) -> Result<Row, Failure> {
    let waiting = async {
        loop {
            let row = Row::fenced(place).await?;
            if row.publications > 0 {
                return Ok(row);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let silent = |_| Failure::Silent { waited_for: "the publication".to_owned(), limit: LIMIT };
    tokio::time::timeout(LIMIT, waiting).await.map_err(silent)?
}

/// Two new processes, one after the other.
async fn ask_twice(stage: &mut Stage, ticket: &Path) -> Result<[Event; 2], Failure> {
    let mut answers = Vec::new();
    for _ in 0..2 {
        let asking = stage.cast(Task::Resolve, Who::B, Duration::ZERO, Some(ticket))?;
        let answer = stage.next(Who::B, "an answer", |event| matches!(event, Event::Resolved { .. })).await?;
        asking.end().await?;
        answers.push(answer.event);
    }
    <[Event; 2]>::try_from(answers).map_err(|_| Failure::Unexpected("not two answers about one ticket".to_owned()))
}

/// Of the ticket that A told of.
fn operation_of(stage: &Stage) -> Option<String> {
    stage.record.of(Who::A).find_map(|entry| match &entry.event {
        Event::TicketWritten { operation } => Some(operation.clone()),
        _ => None,
    })
}
