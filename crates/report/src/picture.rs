//! The heat map as an SVG file: captions, the map, and a scatter plot of all runs.
//!
//! The picture is readable on light and dark backgrounds, and has room for labels of any length.

use crate::paint::wrapped;
use crate::report::Report;
use crate::unit::Unit;
use crate::xml::escaped;
use linerate_evidence::stats::{Prediction, Sample, as_f64};
use linerate_evidence::{BufferSize, Cell, notation};
use linerate_units::Bytes;
use linerate_verdict::CellSummary;
use std::fmt::Write;

/// Width and height of a cell in pixels.
const CELL: usize = 34;
/// Space around the drawing and between its elements, in pixels.
const GAP: usize = 12;
/// Width of the legend in pixels.
const LEGEND: usize = 118;
/// Minimum width of the picture in pixels, so that captions have room above a small map.
const MIN_WIDTH: usize = 600;
/// Height of a caption line in pixels.
const LINE: usize = 17;
/// Approximate width of a character of captions and labels, in pixels.
const CHARACTER: usize = 7;
/// Height of the scatter plot in pixels.
const SCATTER: usize = 150;
/// Maximum number of marks in the scatter plot. If there are more runs, only every n-th run is
/// drawn.
const MOST_MARKS: usize = 2_000;

/// Colours for the shades of the map, from the lowest value to the highest: dark violet over blue
/// and green to yellow. Brightness increases throughout, so the order is visible in grey and to
/// colour-blind readers.
const COLOURS: [&str; 10] = [
    "#440154", "#482878", "#3e4a89", "#31688e", "#227680", "#1f9e89", "#35b779", "#6ece58",
    "#b5de2b", "#fde725",
];

impl Report<'_> {
    /// Returns the heat map as an SVG file, with a scatter plot of all runs below the map.
    #[must_use]
    pub fn picture(&self) -> String {
        let layout = Layout::new(self);
        let Layout { width, height, left, top, .. } = layout;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"Throughput for \
             every pair of socket buffers\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 \
             {width} {height}\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" \
             font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        svg.push_str(&captions(&layout.captions));
        let (rows, columns) = (self.table.sends(), self.table.receives());
        let best = self.best();
        for (row, &send) in rows.iter().enumerate() {
            svg.push_str(&label(left - 8, middle(top, row) + 4, "end", &send.to_string()));
            for (column, &receive) in columns.iter().enumerate() {
                let corner = (left + column * CELL, top + row * CELL);
                if let Some(summary) = self.table.get(send, receive) {
                    svg.push_str(&cell(corner, summary, best));
                } else if let Some(prediction) = self.predicted(send, receive) {
                    svg.push_str(&predicted(corner, Cell { send, receive }, prediction, best));
                }
            }
        }
        for (column, receive) in columns.iter().enumerate() {
            svg.push_str(&layout.column_label(column, &receive.to_string()));
        }
        svg.push_str(&self.axis_names(&layout));
        svg.push_str(&legend(left + columns.len() * CELL + 2 * GAP, top));
        svg.push_str(&self.scatter(&layout));
        svg + "</svg>\n"
    }

    /// Returns the caption lines above the map for a picture of `width` pixels. The captions say
    /// what was measured, how often and when, and state the main finding.
    fn caption_lines(&self, width: usize) -> Vec<String> {
        let facts = &self.start.facts;
        let unit = Unit::up_to(self.best());
        let (done, all) = (self.runs.len() as u64, self.design.run_count());
        let partial = if done < all {
            format!(", {} of {} made", notation::count(done), notation::count(all))
        } else {
            String::new()
        };
        let mut lines = vec![
            format!("{}; {}", facts.bench.description, facts.cpu.model),
            format!(
                "{} × {} of {}{partial}, begun {}, {}",
                notation::plural(self.design.cell_count(), "cell"),
                notation::plural(self.design.repeat.get().into(), "run"),
                Bytes::new(self.design.bytes.get()),
                facts.started,
                facts.versions.text(),
            ),
        ];
        if self.predictions.is_some() {
            lines.push(
                "Dashed cells, with a tilde, are predicted and were not measured.".to_owned(),
            );
        }
        lines.extend(self.findings.first().map(|finding| finding.text.clone()));
        if let Some(spread) = self.typical_spread() {
            lines.push(format!(
                "The fastest run of a cell is {} above its slowest (median of the cells); all runs \
                 are drawn below, in {}.",
                notation::percent(spread),
                unit.short
            ));
        }
        let room = (width - 2 * GAP) / CHARACTER;
        lines.iter().flat_map(|line| wrapped(line, room)).collect()
    }

    /// Returns the median over all cells of the relative difference between the fastest and the
    /// slowest run of a cell. Returns `None` if no cell has two runs.
    fn typical_spread(&self) -> Option<f64> {
        let spread = |cell: &CellSummary<'_>| {
            let slowest = cell.rates.values()[0];
            (slowest > 0.0 && cell.runs.len() > 1).then(|| cell.rates.max() / slowest - 1.0)
        };
        Some(Sample::new(self.table.iter().filter_map(spread).collect())?.median())
    }

    /// Returns the names of both axes of the map.
    fn axis_names(&self, layout: &Layout) -> String {
        let packets = |size: Option<&BufferSize>| size.is_some_and(|size| size.packets().is_some());
        let unit = |size| if packets(size) { ", packets" } else { "" };
        let receive = format!("receive buffer{} →", unit(self.table.receives().first()));
        let send = format!("send buffer{} ↓", unit(self.table.sends().first()));
        label(layout.left, layout.axis, "start", &receive)
            + &label(GAP, layout.map_end + LINE, "start", &send)
    }

    /// Returns the scatter plot. Each mark is a run: its y value is the rate of the run, and its x
    /// value is the smaller of the two buffers.
    fn scatter(&self, layout: &Layout) -> String {
        let sizes = self.sizes();
        let fastest = self.runs.iter().map(|run| run.bytes_per_second).fold(0.0, f64::max);
        if fastest <= 0.0 {
            return String::new();
        }
        let payload = self.start.facts.bench.segment_payload;
        let (top, bottom) = (layout.scatter, layout.scatter + SCATTER);
        let room = layout.width - layout.left - GAP;
        let step = room.checked_div(sizes.len()).unwrap_or(room).max(1);
        let unit = Unit::up_to(self.best());
        let mut svg = label(layout.left - 8, top + 10, "end", &unit.figure(fastest))
            + &label(layout.left - 8, bottom, "end", "0");
        let end = layout.left + room;
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<path d=\"M{} {top}V{bottom}H{end}\" fill=\"none\" stroke=\"#767680\"/>",
            layout.left
        );
        let mut path = String::new();
        let every = self.runs.len().div_ceil(MOST_MARKS).max(1);
        for run in self.runs.iter().step_by(every) {
            let Cell { send, receive } = run.cell();
            let smaller = if send.bytes(payload) < receive.bytes(payload) { send } else { receive };
            let Some(index) = sizes.iter().position(|&size| size == smaller) else { continue };
            // Marks of runs with the same buffer size are shifted sideways by different distances,
            // so that they do not hide each other.
            let spread = run.order as usize * 7 % step.saturating_sub(4).max(1);
            let x = layout.left + index * step + 2 + spread;
            let y = as_f64(bottom as u64) - run.bytes_per_second / fastest * as_f64(SCATTER as u64);
            let _ = write!(path, "M{x} {y:.1}h0");
        }
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"#31688e\" stroke-opacity=\"0.6\" \
             stroke-width=\"3\" stroke-linecap=\"round\"/>"
        );
        let widest = sizes.iter().map(|size| size.to_string().chars().count()).max().unwrap_or(1);
        let labelled = (widest * CHARACTER + GAP).div_ceil(step).max(1);
        for (index, size) in sizes.iter().enumerate().step_by(labelled) {
            let x = layout.left + index * step + step / 2;
            svg.push_str(&label(x, bottom + LINE, "middle", &size.to_string()));
        }
        let title = format!("every run, {}, by the smaller buffer of its cell", unit.short);
        svg + &label(layout.left, bottom + 2 * LINE, "start", &title)
    }
}

/// The positions of the elements of the drawing, in pixels.
struct Layout {
    width: usize,
    height: usize,
    captions: Vec<String>,
    /// Left edge of the map.
    left: usize,
    /// Top edge of the map.
    top: usize,
    /// Baseline of the text above the map that names the x axis.
    axis: usize,
    /// Bottom edge of the map and its legend.
    map_end: usize,
    /// Top edge of the scatter plot.
    scatter: usize,
    /// Whether column labels are rotated by 90°, because they are wider than a column.
    is_upright: bool,
}

impl Layout {
    fn new(report: &Report<'_>) -> Self {
        let (rows, columns) = (report.table.sends(), report.table.receives());
        let widest = |sizes: &[BufferSize]| {
            let widths = sizes.iter().map(|size| size.to_string().chars().count());
            widths.max().unwrap_or(1) * CHARACTER
        };
        let unit = Unit::up_to(report.best());
        let figure = unit.figure(report.best()).chars().count() * CHARACTER;
        let left = GAP + widest(rows).max(figure).max(28) + 8;
        let width = (left + columns.len() * CELL + 2 * GAP + LEGEND).max(MIN_WIDTH);
        let title =
            format!("Per cent of the best cell, {} KB/s", notation::kilobytes(report.best()));
        let captions: Vec<_> = std::iter::once(title).chain(report.caption_lines(width)).collect();
        let is_upright = widest(columns) > CELL - 4;
        let labels = if is_upright { widest(columns) + 8 } else { LINE };
        let axis = GAP + captions.len() * LINE + 2 * LINE;
        let top = axis + labels + 8;
        // A map of few rows gets the height of the legend beside it, which has ten steps of 18
        // pixels.
        let map_end = top + (rows.len() * CELL).max(180);
        let scatter = map_end + 3 * LINE;
        let height = scatter + SCATTER + 3 * LINE;
        Self { width, height, captions, left, top, axis, map_end, scatter, is_upright }
    }

    /// Returns the label of a column, above the map.
    fn column_label(&self, column: usize, size: &str) -> String {
        let (x, y) = (middle(self.left, column), self.top - 8);
        if !self.is_upright {
            return label(x, y, "middle", size);
        }
        format!(
            "<text transform=\"translate({} {y}) rotate(-90)\" fill=\"#1a1a1a\">{}</text>\n",
            x + 4,
            escaped(size)
        )
    }
}

/// Returns the title, which is the first line, and the other captions below it.
fn captions(lines: &[String]) -> String {
    let line = |(index, line): (usize, &String)| {
        let y = GAP + (index + 1) * LINE;
        if index > 0 {
            return label(GAP, y, "start", line);
        }
        format!(
            "<text x=\"{GAP}\" y=\"{y}\" font-size=\"15\" font-weight=\"600\" \
             fill=\"#1a1a1a\">{}</text>\n",
            escaped(line)
        )
    };
    lines.iter().enumerate().map(line).collect()
}

/// Returns the pixel position of the centre of row or column `number`. `margin` is the position at
/// which the first row or column begins.
const fn middle(margin: usize, number: usize) -> usize {
    margin + number * CELL + CELL / 2
}

/// Returns a measured cell: a rectangle in the colour of its rate, with the rate in per cent of
/// `best`.
fn cell((x, y): (usize, usize), summary: &CellSummary<'_>, best: f64) -> String {
    let share = if best > 0.0 { summary.median() / best } else { 0.0 };
    let shade = crate::paint::shade(share);
    let ink = if shade >= 5 { "#1a1a1a" } else { "#ffffff" };
    let told = format!(
        "{}: {} KB/s ({} … {})",
        notation::cell(summary.cell),
        notation::kilobytes(summary.median()),
        notation::kilobytes(summary.interval.low),
        notation::kilobytes(summary.interval.high)
    );
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" \
         fill=\"{}\"/><text x=\"{}\" \
         y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{ink}\">{:.0}</text></g>",
        escaped(&told),
        CELL - 1,
        CELL - 1,
        COLOURS[shade],
        x + CELL / 2,
        y + CELL / 2 + 4,
        share * 100.0
    );
    text
}

/// Returns a predicted cell: a dashed frame in the colour of its rate, with the rate in per cent of
/// `best`.
fn predicted((x, y): (usize, usize), cell: Cell, prediction: Prediction, best: f64) -> String {
    let share = if best > 0.0 { prediction.rate / best } else { 0.0 };
    let told = format!(
        "{}: predicted {} KB/s ({} … {}), not measured",
        notation::cell(cell),
        notation::kilobytes(prediction.rate),
        notation::kilobytes(prediction.low),
        notation::kilobytes(prediction.high)
    );
    format!(
        "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#ffffff\" \
         stroke=\"{}\" stroke-width=\"3\" stroke-dasharray=\"4 2\"/><text x=\"{}\" y=\"{}\" \
         text-anchor=\"middle\" font-size=\"11\" fill=\"#1a1a1a\">~{:.0}</text></g>\n",
        escaped(&told),
        x + 1,
        y + 1,
        CELL - 4,
        CELL - 4,
        COLOURS[crate::paint::shade(share)],
        x + CELL / 2,
        y + CELL / 2 + 4,
        share * 100.0
    )
}

/// Returns the legend of the colours, in per cent of the best cell.
fn legend(x: usize, top: usize) -> String {
    let mut text = String::new();
    for (step, colour) in COLOURS.iter().enumerate() {
        let y = top + (COLOURS.len() - 1 - step) * 18;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"16\" height=\"17\" fill=\"{colour}\"/>"
        );
        text.push_str(&label(
            x + 24,
            y + 13,
            "start",
            &format!("{}–{} %", step * 10, step * 10 + 10),
        ));
    }
    text
}

/// Returns an SVG text element at this position. `anchor` is the value of its attribute
/// `text-anchor`.
fn label(x: usize, y: usize, anchor: &str, words: &str) -> String {
    format!(
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"#1a1a1a\">{}</text>\n",
        escaped(words)
    )
}
