//! The report as text.

use std::cmp::Reverse;

use leasehold::answer::Visible;

use crate::inventory::{Inventory, Size, Sums, Unreadable};
use crate::wording;

/// The whole report.
pub(crate) fn inventory(inventory: &Inventory, visible: &Visible) -> String {
    let mut text = format!("Inventory of {}\n{}\n", inventory.folder, capitalised(&version(visible)));
    text += &format!("{}\n\n", sums(&inventory.total));
    text += &table(inventory);
    text += &largest(&inventory.largest);
    text += &unreadable(&inventory.unreadable, None);
    text += "The SHA-256 of every file: add --json.\n";
    text
}

/// Which publication it is.
pub(crate) fn version(visible: &Visible) -> String {
    let mut text = format!("generation {}", visible.version.generation);
    if let Some(revision) = visible.revision {
        text += &format!(", revision {revision}");
    }
    text + &format!(", published {}", wording::time(visible.published_at))
}

/// Sums in a sentence.
pub(crate) fn sums(sums: &Sums) -> String {
    [(sums.files, "file"), (sums.lines, "line"), (sums.bytes, "byte")]
        .map(|(count, one)| wording::count(count, one))
        .join(", ")
}

/// What could not be read, up to a limit; nothing if there is nothing.
pub(crate) fn unreadable(unreadable: &[Unreadable], limit: Option<usize>) -> String {
    if unreadable.is_empty() {
        return String::new();
    }
    let mut text = format!("{} could not be read:\n", wording::count(unreadable.len() as u64, "path"));
    let shown = limit.unwrap_or(unreadable.len());
    for Unreadable { path, why } in unreadable.iter().take(shown) {
        text += &format!("  {path}: {why}\n");
    }
    if unreadable.len() > shown {
        text += &format!("  and {} more\n", wording::number((unreadable.len() - shown) as u64));
    }
    text
}

/// The sums per extension, the most bytes first.
fn table(inventory: &Inventory) -> String {
    let mut rows: Vec<(&str, &Sums)> = inventory.extensions.iter().map(|(name, sums)| (name.as_str(), sums)).collect();
    rows.sort_by_key(|(_, sums)| Reverse(sums.bytes));
    let shown = |name: &str| if name.is_empty() { "(none)".to_owned() } else { format!(".{name}") };
    let width = rows.iter().map(|(name, _)| shown(name).chars().count()).max().unwrap_or(0).max("extension".len());
    let mut text = format!("{:width$} {:>9} {:>12} {:>16}\n", "extension", "files", "lines", "bytes");
    for (name, sums) in rows {
        let [files, lines, bytes] = [sums.files, sums.lines, sums.bytes].map(wording::number);
        text += &format!("{:width$} {files:>9} {lines:>12} {bytes:>16}\n", shown(name));
    }
    text + "\n"
}

fn largest(largest: &[Size]) -> String {
    let mut text = "The largest files:\n".to_owned();
    for Size { bytes, path } in largest {
        text += &format!("{:>16}  {path}\n", wording::number(*bytes));
    }
    text + "\n"
}

/// A sentence that begins with this.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
