//! How it looks: in light, which is also what a renderer shows that knows no media queries, and in dark.

/// A is amber and B is blue, which also the colour-blind tell apart; what is good or bad is said by words and shapes too.
pub(super) const SHEET: &str = "
text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif; \
font-size: 15px; fill: #1f2328; }
.title { font-size: 25px; font-weight: 700; }
.heading { font-size: 18px; font-weight: 700; }
.name { font-size: 17px; font-weight: 700; }
.part { font-size: 15px; fill: #59636e; }
.note { font-size: 15px; paint-order: stroke; stroke: #f6f8fa; stroke-width: 4px; stroke-linejoin: round; }
.inside { font-size: 15px; }
.initial { font-size: 20px; font-weight: 800; text-anchor: middle; }
.muted { fill: #59636e; }
.loud { font-size: 22px; font-weight: 800; }
.axis { font-size: 14px; fill: #59636e; }
.page { fill: #ffffff; }
.card { fill: #f6f8fa; stroke: #d0d7de; }
.rule { stroke: #d0d7de; stroke-width: 1; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.a { fill: #f0a830; } .on-a { fill: #2e1d00; font-weight: 600; }
.a-soft { fill: #fbe2b4; } .on-a-soft { fill: #4a3000; }
.b { fill: #2f6fd0; } .on-b { fill: #ffffff; font-weight: 600; }
.b-soft { fill: #cfe0f8; } .on-b-soft { fill: #0c2f66; }
.hatch { fill: #e4e7eb; } .hatching { stroke: #a3acb6; stroke-width: 3; }
.on-hatch { fill: #1f2328; font-weight: 700; } .pill { fill: #ffffff; }
.renewal { fill: #7a4d00; } .renewal-b { fill: #174a99; }
.look { stroke: #1f2328; stroke-width: 2.5; }
.deadline { stroke: #1f2328; stroke-width: 2; stroke-dasharray: 5 4; }
.empty { fill: none; stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 5 4; }
.waits { stroke: #2f6fd0; stroke-width: 2.5; stroke-dasharray: 2 6; stroke-linecap: round; }
.write-b { stroke: #2f6fd0; stroke-width: 3.5; fill: none; } .head-b { fill: #2f6fd0; }
.good { fill: #1a7f37; } .write-good { stroke: #1a7f37; stroke-width: 3.5; fill: none; }
.bad { fill: #cf222e; } .write-bad { stroke: #cf222e; stroke-width: 3.5; fill: none; }
.badge-good { fill: #dafbe1; stroke: #1a7f37; } .badge-bad { fill: #ffebe9; stroke: #cf222e; }
.cross { stroke: #ffffff; stroke-width: 3.5; stroke-linecap: round; }
.frame-bad { fill: none; stroke: #cf222e; stroke-width: 3.5; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.part, .muted, .axis { fill: #9ea7b1; }
.page { fill: #0d1117; }
.card { fill: #161b22; stroke: #30363d; }
.rule, .grid { stroke: #30363d; }
.a { fill: #e09c2c; } .on-a { fill: #1c1100; }
.a-soft { fill: #5c400f; } .on-a-soft { fill: #ffe4b3; }
.b { fill: #4c8df0; } .on-b { fill: #03112b; }
.b-soft { fill: #1a3f77; } .on-b-soft { fill: #d6e6ff; }
.hatch { fill: #2a3038; } .hatching { stroke: #59636e; }
.on-hatch { fill: #f0f3f6; } .pill { fill: #161b22; }
.renewal { fill: #ffd68a; } .renewal-b { fill: #a9cbff; }
.look { stroke: #1f2328; stroke-width: 2.5; }
.note { stroke: #161b22; }
.look, .deadline { stroke: #e6edf3; }
.empty { stroke: #6e7781; }
.waits { stroke: #6ea4f5; }
.write-b { stroke: #6ea4f5; } .head-b { fill: #6ea4f5; }
.good { fill: #4ac863; } .write-good { stroke: #4ac863; }
.bad { fill: #ff6a61; } .write-bad { stroke: #ff6a61; }
.badge-good { fill: #0f2a17; stroke: #4ac863; } .badge-bad { fill: #3a1418; stroke: #ff6a61; }
.cross { stroke: #0d1117; }
.frame-bad { stroke: #ff6a61; }
}
";
