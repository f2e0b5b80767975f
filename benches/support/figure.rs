//! Figures: printed in one form, and kept as JSON lines, so that anybody can compare two runs.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Prints a figure and appends it to `figures.jsonl` in the target folder.
pub(crate) fn figure(name: &str, value: f64, unit: &str) {
    println!("figure: {name} = {} {unit}", shown(value));
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let line = serde_json::json!({ "figure": name, "value": value, "unit": unit, "at": at });
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
