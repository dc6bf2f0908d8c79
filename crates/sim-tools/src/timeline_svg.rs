//! Draws a timeline as a self-contained SVG picture: use of wires, processors and NICs.

use linerate_evidence::stats::as_f64;
use linerate_sim::{Activity, Held, Lane, SegmentLabel, Span, Tick, Timeline, Window};
use std::fmt::Write;

/// Width of the column with the names of lanes, in pixels.
const NAMES: f64 = 170.0;
/// Width in pixels of one line of the picture. Each line shows a part of the time window.
const WIDTH: f64 = 1_200.0;
/// Height of a lane, in pixels.
const LANE: f64 = 16.0;
/// Height of the time scale above a line, in pixels.
const ABOVE: f64 = 22.0;
/// Height of the title and the legend, in pixels.
const TOP: f64 = 56.0;
/// Maximum number of lines of a picture.
const MOST_LINES: u64 = 20;
/// Maximum number of bars. Viewers of SVG become slow with more.
const MOST_BARS: usize = 50_000;
/// Number of intervals into which the time scale above each line is divided.
const DIVISIONS: u64 = 10;

/// The activities, each with its name and its colour.
const LEGEND: [(Activity, &str, &str); 14] = [
    (Activity::Data, "data", "#3b76af"),
    (Activity::Acknowledgement, "ACK", "#79a8d0"),
    (Activity::WindowUpdate, "window update", "#1d4568"),
    (Activity::Frame, "other frame", "#9fb1c4"),
    (Activity::Collision, "collision", "#c33d35"),
    (Activity::Backoff, "backoff", "#f0b8b2"),
    (Activity::Driver, "driver", "#8d5fb0"),
    (Activity::Network, "IP and TCP", "#e08a3c"),
    (Activity::Task, "task", "#58a066"),
    (Activity::Nic, "bus taken by the NIC", "#9a8f85"),
    (Activity::Frames, "frames waiting", "#5c7f99"),
    (Activity::WaitsForAcknowledgement, "waits for ACK", "#e6dcc3"),
    (Activity::WaitsForWindow, "for a window", "#e3c98b"),
    (Activity::WaitsForData, "for data", "#d5e0d0"),
];

/// Returns a timeline as SVG. Errors of `write!` are ignored, because writing to a string cannot
/// fail.
#[must_use]
pub fn timeline_svg(title: &str, window: Window, timeline: &Timeline) -> String {
    let page = Page::new(window, timeline);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"11\" fill=\"#333333\">\n\
         <rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"18\" font-size=\"14\" font-weight=\"600\">{}</text>\n",
        escaped(title),
        w = NAMES + WIDTH + 20.0,
        h = page.height(),
    );
    legend(&mut svg);
    (0..page.lines).for_each(|line| page.grid(&mut svg, line, timeline));
    let bars = timeline.lanes.iter().enumerate();
    let bars = bars.flat_map(|(lane, Lane { held, .. })| held.iter().map(move |held| (lane, held)));
    let bars: Vec<(usize, &Held)> = bars.take(MOST_BARS).collect();
    // Collisions are short, so other bars could cover them. They are therefore drawn after all
    // other bars.
    let (short, long): (Vec<_>, Vec<_>) =
        bars.iter().partition(|(_, held)| held.by == Activity::Collision);
    long.into_iter().chain(short).for_each(|(lane, held)| page.bar(&mut svg, lane, held));
    let spans: usize = timeline.lanes.iter().map(|lane| lane.held.len()).sum();
    let left_out = timeline.left_out + (spans - bars.len()) as u64;
    if left_out > 0 {
        let y = page.height() - 6.0;
        let _ = writeln!(
            svg,
            "<text x=\"8\" y=\"{y:.1}\">{left_out} spans did not fit: take a shorter window</text>"
        );
    }
    svg + "</svg>\n"
}

fn legend(svg: &mut String) {
    let mut x = 8.0;
    for (_, words, colour) in LEGEND {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.0}\" y=\"29\" width=\"12\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"38\">{words}</text>",
            x + 17.0
        );
        x += 17.0 + 6.2 * as_f64(words.len() as u64) + 16.0;
    }
}

/// The layout of the picture. The time window is divided into equal parts, each of which is drawn
/// as one line. The lines are below each other, and each line shows all lanes.
#[derive(Debug)]
struct Page {
    from: Tick,
    until: Tick,
    /// Simulated time that each line shows.
    line: Span,
    lines: u64,
    lanes: u64,
}

impl Page {
    /// Creates the layout for a window. It begins at the start of the window, and ends when the
    /// latest activity of the timeline ends.
    fn new(window: Window, timeline: &Timeline) -> Self {
        let held = timeline.lanes.iter().flat_map(|lane| &lane.held);
        let until = held.map(|held| held.until).max().unwrap_or(window.from);
        let length = until.since(window.from).as_picos().max(1);
        let line = round_up(length.div_ceil(MOST_LINES));
        Self {
            from: window.from,
            until,
            line: Span::from_picos(line),
            lines: length.div_ceil(line),
            lanes: timeline.lanes.len() as u64,
        }
    }

    fn line_height(&self) -> f64 {
        ABOVE + LANE * as_f64(self.lanes)
    }

    fn height(&self) -> f64 {
        TOP + self.line_height() * as_f64(self.lines) + 24.0
    }

    /// Returns the vertical position of a line's first lane, in pixels.
    fn top(&self, line: u64) -> f64 {
        TOP + self.line_height() * as_f64(line) + ABOVE
    }

    /// Draws the names of the lanes, the time scale, and a rule under each lane of a line.
    fn grid(&self, svg: &mut String, line: u64, timeline: &Timeline) {
        let (top, begins) = (self.top(line), self.from + self.line * line);
        let bottom = top + LANE * as_f64(self.lanes);
        for division in 0..=DIVISIONS {
            let x = NAMES + WIDTH * as_f64(division) / as_f64(DIVISIONS);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {:.1}V{bottom:.1}\" stroke=\"#ececec\"/>",
                top - 3.0
            );
            if division < DIVISIONS {
                let at = begins + self.line * division / DIVISIONS;
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"#999999\">{}</text>",
                    top - 6.0,
                    moment(at)
                );
            }
        }
        for (number, lane) in (0..).zip(&timeline.lanes) {
            let y = top + LANE * as_f64(number) + LANE;
            let _ = writeln!(
                svg,
                "<text x=\"8\" y=\"{:.1}\">{}</text>\
                 <path d=\"M8 {y:.1}H{:.1}\" stroke=\"#e4e4e4\"/>",
                y - 4.0,
                escaped(&lane.part),
                NAMES + WIDTH
            );
        }
    }

    /// Draws an activity as a bar. If the activity continues into the time of the next lines, each
    /// of these lines also gets a bar.
    fn bar(&self, svg: &mut String, lane: usize, held: &Held) {
        let (first, last) = (self.line_of(held.from), self.line_of(held.until).min(self.lines - 1));
        for line in first..=last {
            let begins = self.from + self.line * line;
            let pixels =
                |at: Tick| at.since(begins).as_secs_f64() / self.line.as_secs_f64() * WIDTH;
            let (left, right) = (pixels(held.from), pixels(held.until.min(begins + self.line)));
            if right <= left {
                continue;
            }
            let _ = writeln!(
                svg,
                "<rect x=\"{:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\" \
                 fill=\"{}\"{}><title>{}</title></rect>",
                NAMES + left,
                self.top(line) + LANE * as_f64(lane as u64) + 2.0,
                (right - left).max(if held.by == Activity::Collision { 2.5 } else { 0.8 }),
                LANE - 3.0,
                colour(held.by),
                opacity(held),
                words(held)
            );
            if let Some(text) = label(held).filter(|text| fits(text, right - left)) {
                let ink = if is_light(held.by) { "#333333" } else { "#ffffff" };
                let _ = writeln!(
                    svg,
                    "<text x=\"{:.2}\" y=\"{:.1}\" font-size=\"9\" fill=\"{ink}\" \
                     pointer-events=\"none\">{text}</text>",
                    NAMES + left + 3.0,
                    self.top(line) + LANE * as_f64(lane as u64) + 11.5,
                );
            }
        }
    }

    fn line_of(&self, at: Tick) -> u64 {
        at.min(self.until).since(self.from).as_picos() / self.line.as_picos()
    }
}

/// Returns the label of a bar. The bar of a TCP segment has the segment's numbers. The bar of an
/// idle host names the event that the host waits for. Returns `None` for all other activities.
fn label(held: &Held) -> Option<String> {
    let segment = held.segment;
    Some(match held.by {
        Activity::Data => {
            let SegmentLabel { seq, length, .. } = segment?;
            format!("data {seq}:{}", seq.wrapping_add(length))
        }
        Activity::Acknowledgement => format!("ack {}", segment?.ack),
        Activity::WindowUpdate => format!("win {}", segment?.window),
        Activity::WaitsForAcknowledgement => "ACK".to_owned(),
        Activity::WaitsForWindow => "window".to_owned(),
        Activity::WaitsForData => "data".to_owned(),
        _ => return None,
    })
}

/// Returns whether a label fits into a bar of this width.
fn fits(text: &str, width: f64) -> bool {
    /// Width of a character in pixels. The space around a label takes six more pixels.
    const CHARACTER: f64 = 5.2;
    as_f64(text.len() as u64) * CHARACTER + 6.0 <= width
}

/// Returns whether the colour of an activity is so light that its label must be dark.
const fn is_light(by: Activity) -> bool {
    matches!(
        by,
        Activity::Acknowledgement
            | Activity::WaitsForAcknowledgement
            | Activity::WaitsForWindow
            | Activity::WaitsForData
    )
}

fn colour(by: Activity) -> &'static str {
    // A station gives up a frame because of its sixteenth collision. `GivenUp` has no entry in the
    // legend, so it is drawn in the colour of collisions.
    let by = if by == Activity::GivenUp { Activity::Collision } else { by };
    LEGEND.iter().find(|(known, ..)| *known == by).map_or("#000000", |&(_, _, colour)| colour)
}

/// Returns the opacity attribute of a bar. A bar that shows waiting frames is the darker, the more
/// frames wait, up to 16. All other bars are opaque.
fn opacity(held: &Held) -> String {
    match (held.by, held.amount) {
        (Activity::Frames, amount) if amount < 16 => {
            format!(" opacity=\"{:.2}\"", 0.25 + 0.75 * as_f64(amount) / 16.0)
        }
        _ => String::new(),
    }
}

fn words(held: &Held) -> String {
    let (from, amount) = (moment(held.from), held.amount);
    let micros = held.until.since(held.from).as_secs_f64() * 1e6;
    let what = match held.by {
        Activity::Frame => format!("frame, {amount} bytes"),
        Activity::Data | Activity::Acknowledgement | Activity::WindowUpdate => {
            let kind = match held.by {
                Activity::Data => "data",
                Activity::Acknowledgement => "ACK",
                _ => "window update",
            };
            let numbers = held.segment.map_or_else(String::new, |segment| {
                let SegmentLabel { seq, length, ack, window } = segment;
                let end = seq.wrapping_add(length);
                format!(", seq {seq}:{end}, ack {ack}, win {window}")
            });
            format!("{kind}, {amount} bytes{numbers}")
        }
        Activity::Collision => format!("collision, {amount} bytes"),
        Activity::Backoff => "backoff".to_owned(),
        Activity::GivenUp => "given up".to_owned(),
        Activity::Driver => "driver".to_owned(),
        Activity::Network => "IP and TCP".to_owned(),
        Activity::Task => "task".to_owned(),
        Activity::Nic => format!("{amount} % of the bus"),
        Activity::Frames => format!("{amount} waiting"),
        Activity::WaitsForAcknowledgement => "idle, waits for an ACK".to_owned(),
        Activity::WaitsForWindow => "idle, waits for a window".to_owned(),
        Activity::WaitsForData => "idle, waits for data".to_owned(),
    };
    format!("{from}, {micros:.1} us: {what}")
}

/// Formats a simulated time in milliseconds.
fn moment(at: Tick) -> String {
    let millis = at.as_secs_f64() * 1e3;
    let text = format!("{millis:.4}");
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Rounds up to the next of 1, 2, 5, 10, 20, 50 …
fn round_up(picos: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        if let Some(round) = [1, 2, 5]
            .map(|digit| power.saturating_mul(digit))
            .into_iter()
            .find(|&round| round >= picos)
        {
            return round;
        }
        power = power.saturating_mul(10);
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(until: u64) -> Timeline {
        let (from, until) = (Tick::from_picos(2_000_000), Tick::from_picos(until));
        let segment = Some(SegmentLabel { seq: 1, length: 1_460, ack: 1, window: 4_096 });
        let held = vec![Held { from, until, by: Activity::Data, amount: 1_514, segment }];
        Timeline { lanes: vec![Lane { part: "a <b>: wire".to_owned(), held }], left_out: 0 }
    }

    #[test]
    fn a_span_over_two_lines_has_a_bar_in_each_and_names_are_escaped() {
        let window = Window { from: Tick::ZERO, until: Tick::NEVER };
        let svg = timeline_svg("t", window, &lane(20_000_000));
        let title = "0.002 ms, 18.0 us: data, 1514 bytes, seq 1:1461, ack 1, win 4096";
        assert_eq!(svg.matches(title).count(), 18);
        assert_eq!(svg.matches(">data 1:1461</text>").count(), 18, "a label in each bar");
        assert!(svg.contains("a &lt;b&gt;: wire") && !svg.contains("did not fit"));
    }

    #[test]
    fn lines_have_round_durations_and_a_maximum_number() {
        for (picos, round) in [(1, 1), (3, 5), (51, 100), (2_000, 2_000), (u64::MAX, u64::MAX)] {
            assert_eq!(round_up(picos), round);
        }
        let page =
            Page::new(Window { from: Tick::ZERO, until: Tick::NEVER }, &lane(1_000_000_000_000));
        assert_eq!((page.lines, page.line), (20, Span::from_picos(50_000_000_000)));
    }

    #[test]
    fn an_empty_timeline_is_drawn_and_the_number_of_omitted_spans_is_stated() {
        let window = Window { from: Tick::ZERO, until: Tick::NEVER };
        let svg = timeline_svg("t", window, &Timeline { lanes: Vec::new(), left_out: 3 });
        assert!(svg.contains("3 spans did not fit") && svg.ends_with("</svg>\n"));
    }
}
