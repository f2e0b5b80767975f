//! Both handovers as one picture, below each other on the same scale: an SVG that a person understands at a glance.
//!
//! All that lies at a time of the scene is drawn as a shape; text stands in places that are kept free for it, and a label that
//! does not fit where it belongs gives way to a shorter one, so that no timing makes labels overlap.

mod legend;
mod marks;
mod panel;
mod scale;
mod story;
mod style;
mod text;

use std::path::Path;

use svg::Document;
use svg::node::element::{Description, Rectangle, Style, Title};

use self::panel::Panel;
use self::scale::Scale;
use self::story::Story;
use crate::failure::Failure;
use crate::record::Record;

const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 24.0;

/// What the picture says, in one sentence over two lines.
const SENTENCE: [&str; 2] = [
    "Worker A is stopped past its lease, then writes: leasehold's fence",
    "refuses it; a plain lease lets it overwrite the newer report.",
];

/// Draws both and writes the file. Answers `false`, and writes none, if something is missing that it would show.
pub(crate) fn write(path: &Path, fenced: &Record, plain: &Record) -> Result<bool, Failure> {
    let stories = (Story::of(fenced), Story::of(plain));
    let (Some(fenced), Some(plain)) = stories else { return Ok(false) };
    svg::save(path, &draw(&fenced, &plain))?;
    Ok(true)
}

fn draw(fenced: &Story, plain: &Story) -> Document {
    let scale = Scale::up_to(fenced.end().max(plain.end()));
    let first = 104.0;
    let second = first + panel::HEIGHT + 20.0;
    let legend = second + panel::HEIGHT + 22.0;
    let height = legend + legend::HEIGHT + MARGIN;
    let sentence = SENTENCE.join(" ");
    let described = format!("{} {}", panel::described(fenced), panel::described(plain));
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("role", "img")
        .set("aria-label", sentence.clone())
        .add(Title::new(sentence))
        .add(Description::new().add(svg::node::Text::new(described)))
        .add(Style::new(style::SHEET))
        .add(marks::definitions())
        .add(Rectangle::new().set("class", "page").set("width", WIDTH).set("height", height).set("rx", 14));
    for (line, y) in SENTENCE.into_iter().zip([46.0, 78.0]) {
        document = document.add(text::at(MARGIN, y, "title", line));
    }
    let panels = [
        Panel { story: fenced, name: "With leasehold: every write carries its fence", scale: &scale, top: first },
        Panel { story: plain, name: "With a plain lease: nothing judges the write", scale: &scale, top: second },
    ];
    for panel in panels {
        document = document.add(panel.draw());
    }
    document.add(legend::draw(legend))
}
