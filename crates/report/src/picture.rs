//! The heat map as a self-contained SVG file, readable on light and dark backgrounds.

use crate::report::Report;
use crate::xml::escaped;
use linerate_evidence::BufferSize;
use linerate_evidence::notation;
use linerate_verdict::CellSummary;
use std::fmt::Write;

/// Size of a cell and of the margins, in pixels.
const CELL: usize = 34;
const LEFT: usize = 76;
const TOP: usize = 84;
const RIGHT: usize = 130;
const BOTTOM: usize = 40;

/// Colours from nothing to all: dark violet over blue and green to yellow. Brightness rises
/// throughout, so that they also read in grey and for colour-blind readers.
const COLOURS: [&str; 10] = [
    "#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58",
    "#b5de2b", "#fde725",
];

impl Report<'_> {
    /// Returns the heat map as SVG.
    #[must_use]
    pub fn picture(&self) -> String {
        let best = self.best();
        let (rows, columns) = (self.table.sends(), self.table.receives());
        let (width, height) =
            (LEFT + columns.len() * CELL + RIGHT, TOP + rows.len() * CELL + BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} \
             {height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
             <rect width=\"{width}\" \
             height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        svg.push_str(&self.captions(best));
        for (row, &send) in rows.iter().enumerate() {
            svg.push_str(&label(LEFT - 10, middle(TOP, row), "end", &send.to_string()));
            for (column, &receive) in columns.iter().enumerate() {
                if let Some(summary) = self.table.get(send, receive) {
                    svg.push_str(&cell(row, column, summary, best));
                }
            }
        }
        for (column, receive) in columns.iter().enumerate() {
            svg.push_str(&label(middle(LEFT, column), TOP - 12, "middle", &receive.to_string()));
        }
        svg.push_str(&legend(LEFT + columns.len() * CELL + 24));
        svg + "</svg>\n"
    }

    /// Returns the title, the bench and the names of the axes.
    fn captions(&self, best: f64) -> String {
        let packets = |size: Option<&BufferSize>| size.is_some_and(|size| size.packets().is_some());
        let unit = |size| if packets(size) { ", packets" } else { "" };
        let title = format!("Per cent of the best cell, {} KB/s", notation::kilobytes(best));
        let bench =
            format!("{}; {}", self.start.facts.bench.description, self.start.facts.cpu.model);
        let receive = format!("receive buffer{} →", unit(self.table.receives().first()));
        let send = format!("send buffer{} ↓", unit(self.table.sends().first()));
        let mut text = format!(
            "<text x=\"12\" y=\"24\" font-size=\"15\" font-weight=\"600\" \
             fill=\"#1a1a1a\">{}</text>\n",
            escaped(&title)
        );
        text.push_str(&label(12, 42, "start", &bench));
        text.push_str(&label(LEFT, TOP - 28, "start", &receive));
        text.push_str(&label(12, TOP + self.table.sends().len() * CELL + 24, "start", &send));
        text
    }
}

/// Returns the middle of the row or column with this number.
const fn middle(margin: usize, number: usize) -> usize {
    margin + number * CELL + CELL / 2
}

fn cell(row: usize, column: usize, summary: &CellSummary<'_>, best: f64) -> String {
    let share = if best > 0.0 { summary.median() / best } else { 0.0 };
    let shade = crate::paint::shade(share);
    let (x, y) = (LEFT + column * CELL, TOP + row * CELL);
    let ink = if shade >= 6 { "#1a1a1a" } else { "#ffffff" };
    let told = format!(
        "{}: {} KB/s ({} … {})",
        notation::cell(summary.cell),
        notation::kilobytes(summary.median()),
        notation::kilobytes(summary.interval.low),
        notation::kilobytes(summary.interval.high)
    );
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" \
         fill=\"{}\"/><text x=\"{}\" \
         y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{ink}\">{:.0}</text></g>",
        escaped(&told),
        CELL - 1,
        CELL - 1,
        COLOURS[shade],
        middle(LEFT, column),
        middle(TOP, row) + 4,
        share * 100.0
    );
    text
}

fn legend(x: usize) -> String {
    let mut text = String::new();
    for (step, colour) in COLOURS.iter().enumerate() {
        let y = TOP + (COLOURS.len() - 1 - step) * 18;
        // Writing to a string does not fail.
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

fn label(x: usize, y: usize, anchor: &str, words: &str) -> String {
    format!(
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"#1a1a1a\">{}</text>\n",
        escaped(words)
    )
}
