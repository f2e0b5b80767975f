//! What the shapes mean.

use svg::node::element::Group;

use super::{MARGIN, WIDTH, marks, text};

pub(super) const HEIGHT: f64 = 56.0;

/// Between a shape and its meaning, and between two of them.
const ROOM: [f64; 2] = [8.0, 26.0];

/// One row after the other, as they fit.
pub(super) fn draw(top: f64) -> Group {
    let mut legend = Group::new();
    let (mut x, mut y) = (MARGIN + 4.0, top);
    for (shape, width, meaning) in shapes() {
        let whole = width + ROOM[0] + text::width(meaning);
        if x + whole > WIDTH - MARGIN {
            (x, y) = (MARGIN + 4.0, y + 32.0);
        }
        legend = legend
            .add(shape.set("transform", format!("translate({} {})", text::round(x), text::round(y))))
            .add(text::at(x + width + ROOM[0], y + 16.0, "inside", meaning));
        x += whole + ROOM[1];
    }
    legend
}

/// Each with its width and its meaning; drawn in a box of 22 in height.
fn shapes() -> [(Group, f64, &'static str); 7] {
    let two = |left: &str, right: &str| {
        Group::new().add(marks::bar(left, 0.0, 2.0, 20.0, 18.0)).add(marks::bar(right, 22.0, 2.0, 20.0, 18.0))
    };
    [
        (two("a", "b"), 42.0, "lease held (A, B)"),
        (two("a-soft", "b-soft"), 42.0, "process runs"),
        (Group::new().add(marks::stopped(0.0, 2.0, 42.0, 18.0)), 42.0, "process stopped"),
        (Group::new().add(marks::renewal("renewal", 8.0, 16.0)), 16.0, "renewal"),
        (Group::new().add(marks::line("deadline", 4.0, 0.0, 4.0, 22.0)), 8.0, "local deadline: its token trips"),
        (Group::new().add(marks::accepted("write-b", "head-b", 8.0, 0.0, 22.0)), 16.0, "write accepted"),
        (Group::new().add(marks::refused(13.0, 0.0, 25.0)), 26.0, "write refused by the database"),
    ]
}
