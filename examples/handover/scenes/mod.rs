//! The scenes: what the director does, and whether the evidence holds in the end.

mod handover;
mod kill;
mod lost_ack;

use std::path::Path;

use crate::arguments::Scenes;
use crate::failure::Failure;
use crate::narration;
use crate::picture;
use crate::place::Place;
use handover::{Kind, Played};

/// Plays what was asked for; answers whether the evidence holds.
pub(crate) async fn play(scenes: &Scenes, place: &Place) -> Result<bool, Failure> {
    if scenes.kill {
        return kill::play(place).await;
    }
    if scenes.lost_ack {
        return lost_ack::play(place).await;
    }
    if scenes.naive {
        return Ok(handover::play(place, Kind::Plain, true).await?.holds);
    }
    let stopped = !scenes.control;
    let fenced = handover::play(place, Kind::Fenced, stopped).await?;
    if !stopped {
        println!("\nThis was the control experiment: A was never stopped, so the evidence must not hold.");
        return Ok(fenced.holds);
    }
    let plain = handover::play(place, Kind::Plain, stopped).await?;
    side_by_side(&fenced, &plain);
    draw(scenes.svg.as_deref(), &fenced, &plain)?;
    Ok(fenced.holds && plain.holds)
}

/// The argument in four lines.
fn side_by_side(fenced: &Played, plain: &Played) {
    narration::heading("Side by side: the same schedule, twice");
    let row = |played: &Played| played.row.payload.clone().unwrap_or_else(|| "nothing".to_owned());
    let lines = [
        ["", "with leasehold's fence", "with a plain lease"],
        ["A's last look", "held", "held"],
        ["A's late write", "REFUSED by the database", "ACCEPTED by the database"],
        ["in the end", &row(fenced), &row(plain)],
        ["", "B's newer report is kept", "B's newer report is gone"],
    ];
    // What was not proven is not printed.
    if fenced.holds && plain.holds {
        for [name, left, right] in lines {
            println!("  {name:14}  {left:27}  {right}");
        }
    } else {
        println!("  The evidence does not hold: see above.");
    }
}

fn draw(path: Option<&Path>, fenced: &Played, plain: &Played) -> Result<(), Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name("handover.svg"),
    };
    if picture::write(&path, &fenced.record, &plain.record)? {
        println!("\nThe picture of both: {}", path.display());
    } else {
        println!("\nThere is no picture, because what it would show did not happen.");
    }
    Ok(())
}
