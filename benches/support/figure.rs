//! Figures: printed in one form, and kept as JSON lines, so that anybody can compare two runs.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Prints a figure and appends it to `figures.jsonl` in the target folder.
#[allow(dead_code)] // Of the benches without a server.
pub(crate) fn figure(name: &str, value: f64, unit: &str) {
    keep(name, value, unit, None);
}

/// What is measured on one store: its name begins each figure's, and the engine behind a server is said with it.
#[derive(Debug)]
#[allow(dead_code)] // Of the benches of stores.
pub(crate) struct Figures {
    pub(crate) store: &'static str,
    pub(crate) engine: Option<&'static str>,
}

#[allow(dead_code)]
impl Figures {
    pub(crate) fn print(&self, name: &str, value: f64, unit: &str) {
        keep(&format!("{}.{name}", self.store), value, unit, self.engine);
    }
}

fn keep(name: &str, value: f64, unit: &str, engine: Option<&str>) {
    let said = engine.map(|engine| format!(" engine={engine}")).unwrap_or_default();
    println!("figure: {name} = {} {unit}{said}", shown(value));
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut line = serde_json::json!({ "figure": name, "value": value, "unit": unit, "at": at });
    if let Some(engine) = engine {
        line["engine"] = engine.into();
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder in the target folder");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(target.join("figures.jsonl"))
        .expect("the figures' file opens");
    // One write, so that benches which run at once do not tear each other's lines.
    file.write_all(format!("{line}\n").as_bytes()).expect("the figure is kept");
}

/// Whole numbers whole, others with as many digits as a measurement can have.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}
