//! Text, and how much room it takes.

use svg::node::element::Text;

/// The average width of letters in the widest of the fonts that may be used, in ems.
const EM: f64 = 0.52;
const BOLD_EM: f64 = 0.6;

/// The size of labels.
const SIZE: f64 = 15.0;

/// Text that begins here.
pub(super) fn at(x: f64, y: f64, class: &str, content: impl Into<String>) -> Text {
    Text::new(content).set("x", round(x)).set("y", round(y)).set("class", class)
}

/// Text that ends here.
pub(super) fn ending_at(x: f64, y: f64, class: &str, content: impl Into<String>) -> Text {
    at(x, y, class, content).set("text-anchor", "end")
}

/// Text around this point.
pub(super) fn around(x: f64, y: f64, class: &str, content: impl Into<String>) -> Text {
    at(x, y, class, content).set("text-anchor", "middle")
}

/// How wide a label may become.
pub(super) fn width(label: &str) -> f64 {
    letters(label) * SIZE * EM
}

/// The same in bold.
pub(super) fn bold_width(label: &str) -> f64 {
    letters(label) * SIZE * BOLD_EM
}

/// The first of these that fits.
pub(super) fn fitting<'a>(room: f64, labels: &[&'a str]) -> Option<&'a str> {
    labels.iter().copied().find(|label| width(label) <= room)
}

/// The first of these that fits in bold.
pub(super) fn fitting_bold<'a>(room: f64, labels: &[&'a str]) -> Option<&'a str> {
    labels.iter().copied().find(|label| bold_width(label) <= room)
}

fn letters(label: &str) -> f64 {
    f64::from(u32::try_from(label.chars().count()).unwrap_or(u32::MAX))
}

/// A tenth of a pixel is enough, and the file stays readable.
pub(super) fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
