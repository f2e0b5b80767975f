//! The shapes that mean something: the legend explains the same ones that the panels use.

use svg::node::element::{Circle, Definitions, Group, Line, Path, Pattern, Rectangle};

use super::text::round;

/// What shapes refer to.
pub(super) fn definitions() -> Definitions {
    let stroke = Line::new().set("class", "hatching").set("x1", 0).set("y1", 0).set("x2", 0).set("y2", 12);
    let hatch = Pattern::new()
        .set("id", "stopped")
        .set("width", 12)
        .set("height", 12)
        .set("patternUnits", "userSpaceOnUse")
        .set("patternTransform", "rotate(45)")
        .add(Rectangle::new().set("class", "hatch").set("width", 12).set("height", 12))
        .add(stroke);
    Definitions::new().add(hatch)
}

/// A bar of a class.
pub(super) fn bar(class: &str, x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    let (x, y, width) = (round(x), round(y), round(width.max(2.0)));
    Rectangle::new().set("class", class).set("x", x).set("y", y).set("width", width).set("height", height).set("rx", 4)
}

/// A bar of a process that is stopped.
pub(super) fn stopped(x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    bar("stopped", x, y, width, height).set("fill", "url(#stopped)")
}

pub(super) fn line(class: &str, x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    Line::new().set("class", class).set("x1", round(x1)).set("y1", round(y1)).set("x2", round(x2)).set("y2", round(y2))
}

/// A renewal: a small wedge that points at the lease from above.
pub(super) fn renewal(class: &str, x: f64, y: f64) -> Path {
    let (left, right, top) = (round(x - 6.0), round(x + 6.0), round(y - 10.0));
    Path::new().set("class", class).set("d", format!("M{left} {top} L{right} {top} L{} {} Z", round(x), round(y)))
}

/// A write that the database accepts: an arrow down to the row.
pub(super) fn accepted(stroke: &str, head: &str, x: f64, from: f64, to: f64) -> Group {
    let (left, right, base) = (round(x - 8.0), round(x + 8.0), round(to - 14.0));
    let tip = Path::new()
        .set("class", head)
        .set("d", format!("M{left} {base} L{right} {base} L{} {} Z", round(x), round(to)));
    Group::new().add(line(stroke, x, from, x, to - 12.0)).add(tip)
}

/// A write that the database refuses: it ends at a cross above the row.
pub(super) fn refused(x: f64, from: f64, to: f64) -> Group {
    let (y, reach) = (to - 14.0, 5.0);
    Group::new()
        .add(line("write-good", x, from, x, y - 12.0))
        .add(Circle::new().set("class", "good").set("cx", round(x)).set("cy", round(y)).set("r", 13))
        .add(line("cross", x - reach, y - reach, x + reach, y + reach))
        .add(line("cross", x - reach, y + reach, x + reach, y - reach))
}
