//! A timeline as a picture: who held the wire when. An SVG file that needs nothing else.

use linerate_sim::{Moment, Outcome, Tick, What};
use std::fmt::Write;

/// Pixels of the names, of a lane, of a line of lanes.
const NAMES: f64 = 90.0;
const WIDTH: f64 = 1_200.0;
const LANE: f64 = 22.0;
/// Milliseconds of a line; a longer run goes on in the next one.
const LINE_MS: f64 = 20.0;
/// More lines nobody reads, and no program shows.
const MOST_LINES: usize = 50;

/// The first second of a run as SVG. Writing to a string cannot fail.
#[must_use]
pub fn timeline(outcome: &Outcome) -> String {
    let names: Vec<&String> = outcome.wires.iter().flat_map(|wire| &wire.stations).collect();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of lines")]
    let lines = ((outcome.time.as_secs_f64() * 1e3 / LINE_MS).ceil() as usize).clamp(1, MOST_LINES);
    let line_height = LANE * (as_f64(names.len()) + 1.0);
    let height = line_height * as_f64(lines) + 30.0;
    let width = NAMES + WIDTH + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"system-ui, \
         sans-serif\" font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n<text x=\"{NAMES}\" \
         y=\"16\">Frames on the wire, {LINE_MS} ms a line: long ones blue, short ones green, collisions red</text>\n"
    );
    for line in 0..lines {
        let top = 30.0 + line_height * as_f64(line);
        for (lane, name) in names.iter().enumerate() {
            let y = top + LANE * as_f64(lane);
            let _ = writeln!(svg, "<text x=\"4\" y=\"{:.1}\">{}</text>", y + 12.0, escaped(name));
            let bottom = y + 16.0;
            let _ = writeln!(
                svg,
                "<line x1=\"{NAMES}\" y1=\"{bottom:.1}\" x2=\"{:.1}\" y2=\"{bottom:.1}\" stroke=\"#cccccc\"/>",
                NAMES + WIDTH
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"4\" y=\"{:.1}\" fill=\"#888888\">{:.0} ms</text>",
            top - 4.0,
            as_f64(line) * LINE_MS
        );
    }
    for (begin, end) in pairs(&outcome.moments) {
        bar(&mut svg, begin, end, line_height, lines);
    }
    svg + "</svg>\n"
}

/// Each beginning with its end.
fn pairs(moments: &[Moment]) -> Vec<(&Moment, &Moment)> {
    let mut open = Vec::<&Moment>::new();
    let mut pairs = Vec::new();
    for moment in moments {
        let same = |other: &&Moment| other.wire == moment.wire && other.port == moment.port;
        match moment.what {
            What::Begin => open.push(moment),
            What::Sent | What::Collision | What::GivenUp => {
                if let Some(index) = open.iter().position(same) {
                    pairs.push((open.swap_remove(index), moment));
                }
            }
        }
    }
    pairs
}

fn bar(svg: &mut String, begin: &Moment, end: &Moment, line_height: f64, lines: usize) {
    let ms = |at: Tick| at.as_secs_f64() * 1e3;
    let line = (ms(begin.at) / LINE_MS).floor();
    if line >= as_f64(lines) {
        return;
    }
    let x = NAMES + (ms(begin.at) - line * LINE_MS) / LINE_MS * WIDTH;
    let width = ((ms(end.at) - ms(begin.at)) / LINE_MS * WIDTH).max(1.5).min(NAMES + WIDTH - x);
    let y = 30.0 + line_height * line + LANE * as_f64(begin.port);
    let colour = match (end.what, begin.length) {
        (What::Collision | What::GivenUp, _) => "#d62728",
        (What::Begin | What::Sent, 0..200) => "#2ca02c",
        (What::Begin | What::Sent, _) => "#1f77b4",
    };
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{:.1}\" width=\"{width:.2}\" height=\"12\" fill=\"{colour}\"><title>{:.4} ms, {} bytes</title></rect>",
        y + 3.0,
        ms(begin.at),
        begin.length
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[allow(clippy::cast_precision_loss, reason = "small numbers of lanes and lines")]
const fn as_f64(count: usize) -> f64 {
    count as f64
}
