//! One handover: a lane for each worker, with its lease above and its process below, and a lane for the row.

use svg::node::element::{Circle, Group, Rectangle};

use super::scale::{LEFT, RIGHT, Scale};
use super::story::{Late, Story, Tenure};
use super::{MARGIN, WIDTH, marks, text};

pub(super) const HEIGHT: f64 = 344.0;

/// From the panel's top.
const A: f64 = 80.0;
const B: f64 = 178.0;
const ROW: f64 = 268.0;
const AXIS: f64 = 322.0;

const LEASE: f64 = 26.0;
const PROCESS: f64 = 28.0;
const ROW_HEIGHT: f64 = 34.0;

/// Between a lease and its process.
const GAP: f64 = 3.0;

/// Where a bar's label stands in it.
const BASELINE: f64 = 19.0;

/// One scene at a place.
pub(super) struct Panel<'a> {
    pub(super) story: &'a Story,
    pub(super) name: &'static str,
    pub(super) scale: &'a Scale,
    pub(super) top: f64,
}

/// What the panel shows, in words.
pub(super) fn described(story: &Story) -> String {
    match &story.late {
        Late::Refused { said, .. } => {
            format!("With leasehold's fence, A's late write is refused ({said}), and B's report stays.")
        }
        Late::Accepted => "With a plain lease, A's late write is accepted, and B's newer report is gone.".to_owned(),
    }
}

impl Panel<'_> {
    pub(super) fn draw(&self) -> Group {
        let translate = format!("translate(0 {})", self.top);
        let panel = Group::new().set("transform", translate);
        self.late_write(self.row(self.b(self.a(self.frame(panel)))))
    }

    fn x(&self, time: std::time::Duration) -> f64 {
        self.scale.x(time)
    }

    fn frame(&self, panel: Group) -> Group {
        let width = WIDTH - 2.0 * MARGIN;
        let card = Rectangle::new().set("class", "card").set("x", MARGIN).set("width", width).set("height", HEIGHT);
        let mut panel = panel.add(card.set("rx", 10)).add(text::at(MARGIN + 16.0, 32.0, "heading", self.name));
        for (x, time) in self.scale.ticks() {
            panel =
                panel.add(marks::line("grid", x, 52.0, x, AXIS - 14.0)).add(text::around(x, AXIS + 4.0, "axis", time));
        }
        for (y, name, class) in [(A, "A", "a"), (B, "B", "b")] {
            let middle = y + LEASE + GAP / 2.0;
            panel = panel
                .add(Circle::new().set("class", class).set("cx", MARGIN + 34.0).set("cy", middle).set("r", 18))
                .add(text::at(MARGIN + 34.0, middle + 7.0, &format!("initial on-{class}"), name))
                .add(text::ending_at(LEFT - 10.0, y + BASELINE, "part", "lease"))
                .add(text::ending_at(LEFT - 10.0, y + LEASE + GAP + BASELINE, "part", "process"));
        }
        panel.add(text::at(MARGIN + 16.0, ROW + 23.0, "name", "The report")).add(self.badge())
    }

    /// How it ends, in the panel's corner.
    fn badge(&self) -> Group {
        let (class, words, ink) = match self.story.late {
            Late::Refused { .. } => ("badge-good", "\u{2713} B's newer report is kept", "good"),
            Late::Accepted => ("badge-bad", "\u{2717} B's newer report is lost", "bad"),
        };
        let width = 272.0;
        let badge = Rectangle::new().set("class", class).set("x", RIGHT - width).set("y", 11).set("rx", 15);
        Group::new().add(badge.set("width", width).set("height", 30)).add(
            text::around(RIGHT - width / 2.0, 32.0, ink, words).set("font-weight", 700).set("style", "font-size:16px"),
        )
    }

    fn a(&self, panel: Group) -> Group {
        let Story { a, checked, stopped, continued, .. } = self.story;
        let process = A + LEASE + GAP;
        let panel = lease(panel, self.scale, a, A, "A", "a", "renewal");
        let (from, looked, stop, go) = (self.x(a.from), self.x(*checked), self.x(*stopped), self.x(*continued));
        let expired = self.x(a.until);
        let ended = format!("expired at {:.1} s", a.until.as_secs_f64());
        let mut panel = self.deadline(panel);
        if let Some(label) = text::fitting(go - expired - 12.0, &[&ended, "expired"]) {
            panel = panel.add(text::at(expired + 8.0, A + BASELINE, "note muted", label));
        }
        panel = panel.add(marks::bar("a-soft", from, process, stop - from, PROCESS));
        if let Some(label) = text::fitting(looked - from - 12.0, &["builds its report", "builds"]) {
            panel = panel.add(text::at(from + 8.0, process + BASELINE, "inside on-a-soft", label));
        }
        panel = panel.add(marks::stopped(stop, process, go - stop, PROCESS));
        let paused = format!("STOPPED for {:.1} s", (*continued - *stopped).as_secs_f64());
        let middle = f64::midpoint(stop, go);
        let pill = text::bold_width(&paused) + 16.0;
        panel = panel
            .add(marks::bar("pill", middle - pill / 2.0, process + 1.0, pill, PROCESS - 2.0))
            .add(text::around(middle, process + BASELINE, "inside on-hatch", paused))
            .add(marks::bar("a-soft", go, process, 14.0, PROCESS));
        let below = process + PROCESS;
        panel.add(marks::line("look", looked, process, looked, below + 6.0)).add(text::at(
            looked - 5.0,
            below + 21.0,
            "note",
            "last look at its lease: held",
        ))
    }

    /// A plain lease has no margin: its deadline is its expiry.
    fn deadline(&self, panel: Group) -> Group {
        let a = &self.story.a;
        if a.generation.is_none() {
            return panel;
        }
        let (x, said) = (self.x(a.deadline), format!("local deadline {:.1} s", a.deadline.as_secs_f64()));
        let room = x - self.x(a.renewals.last().copied().unwrap_or(a.from)) - 12.0;
        let mut panel = panel.add(marks::line("deadline", x, A - 6.0, x, A + LEASE));
        if let Some(label) = text::fitting(room, &[&said, "local deadline"]) {
            panel = panel.add(text::ending_at(x + 4.0, A - 11.0, "note muted", label));
        }
        panel
    }

    fn b(&self, panel: Group) -> Group {
        let Story { b, b_waits, .. } = self.story;
        let process = B + LEASE + GAP;
        let (waits, from, until) = (self.x(*b_waits), self.x(b.from), self.x(b.until));
        let middle = process + PROCESS / 2.0;
        let mut panel = lease(panel, self.scale, b, B, "B", "b", "renewal-b")
            .add(marks::line("waits", waits + 4.0, middle, from - 8.0, middle))
            .add(marks::bar("b-soft", from, process, until - from, PROCESS));
        if let Some(label) = text::fitting(from - waits - 20.0, &["waits: the lease is A's", "waits"]) {
            panel = panel.add(text::at(waits + 6.0, B + BASELINE, "note muted", label));
        }
        if let Some(label) = text::fitting(until - from - 12.0, &["builds its report", "builds"]) {
            panel = panel.add(text::at(from + 8.0, process + BASELINE, "inside on-b-soft", label));
        }
        let below = process + PROCESS;
        panel.add(marks::accepted("write-b", "head-b", until - 2.0, process, ROW - 1.0)).add(text::ending_at(
            until - 16.0,
            below + 20.0,
            "note",
            "publishes",
        ))
    }

    /// What a reader of the row sees.
    fn row(&self, panel: Group) -> Group {
        let Story { a, b, continued, .. } = self.story;
        let (from, written, go) = (self.x(a.from), self.x(b.until), self.x(*continued));
        let baseline = ROW + 23.0;
        let mut panel = panel
            .add(marks::bar("empty", from, ROW, written - from, ROW_HEIGHT))
            .add(text::at(from + 10.0, baseline, "note muted", "nothing published yet"))
            .add(marks::bar("b", written, ROW, RIGHT - written, ROW_HEIGHT));
        if matches!(self.story.late, Late::Refused { .. }) {
            let named = format!("B's report, {}, stays", generation(b));
            if let Some(label) = text::fitting_bold(RIGHT - written - 20.0, &[&named, "B's report stays"]) {
                panel = panel.add(text::at(written + 10.0, baseline, "inside on-b", label));
            }
            return panel;
        }
        if let Some(label) = text::fitting_bold(go - written - 12.0, &["B's report", "B's"]) {
            panel = panel.add(text::at(written + 8.0, baseline, "inside on-b", label));
        }
        panel
            .add(marks::bar("a", go, ROW, RIGHT - go, ROW_HEIGHT))
            .add(marks::bar("frame-bad", go, ROW, RIGHT - go, ROW_HEIGHT))
            .add(text::at(go + 12.0, baseline, "inside on-a", "A's stale report"))
    }

    /// A goes on, and writes: the point of it all.
    fn late_write(&self, panel: Group) -> Group {
        let go = self.x(self.story.continued);
        let from = A + LEASE + GAP + PROCESS;
        let beside = go + 22.0;
        let mut panel = panel.add(text::at(beside, A + 6.0, "note", "goes on (SIGCONT):"));
        let (mark, believes, sent, ink, verdict, said) = match &self.story.late {
            Late::Refused { loss, said } => {
                let mark = marks::refused(go + 7.0, from, ROW);
                (mark, loss.clone(), "its write is sent anyway:", "loud good", "REFUSED", said.replace(" by ", " by\n"))
            }
            Late::Accepted => {
                let mark = marks::accepted("write-bad", "bad", go + 7.0, from, ROW - 1.0);
                let believes = vec!["its last look at its".to_owned(), "lease said: held".to_owned()];
                let said = "nothing could judge it".to_owned();
                (mark, believes, "its write is sent:", "loud bad", "ACCEPTED", said)
            }
        };
        panel = panel.add(mark);
        for (line, y) in believes.into_iter().zip([A + 27.0, A + 48.0]) {
            panel = panel.add(text::at(beside, y, "note", line));
        }
        panel = panel.add(text::at(beside, B - 8.0, "note", sent)).add(text::at(beside, B + 20.0, ink, verdict));
        for (line, y) in said.lines().zip([B + 42.0, B + 62.0]) {
            panel = panel.add(text::at(beside, y, "note", line));
        }
        panel
    }
}

/// The bar of a lease with its renewals.
fn lease(panel: Group, scale: &Scale, tenure: &Tenure, y: f64, who: &str, class: &str, renewal: &str) -> Group {
    let (from, until) = (scale.x(tenure.from), scale.x(tenure.until));
    let mut panel = panel.add(marks::bar(class, from, y, until - from, LEASE));
    for renewed in &tenure.renewals {
        panel = panel.add(marks::renewal(renewal, scale.x(*renewed), y));
    }
    let (long, short) = (format!("{who}'s lease, {}", generation(tenure)), generation(tenure));
    let plain = format!("{who}'s lease");
    let labels: &[&str] = if tenure.generation.is_some() { &[&long, &short, &plain] } else { &[&plain] };
    if let Some(label) = text::fitting_bold(until - from - 10.0, labels) {
        panel = panel.add(text::at(from + 8.0, y + BASELINE, &format!("inside on-{class}"), label));
    }
    panel
}

fn generation(tenure: &Tenure) -> String {
    tenure.generation.map_or_else(|| "no generation".to_owned(), |generation| format!("generation {generation}"))
}
