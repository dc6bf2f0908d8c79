//! The heat maps of the text report, with a row for each send buffer and a column for each receive
//! buffer. One map shows the rates of the cells, another map their limits.

use crate::paint::{self, Style};
use crate::paint::{character, coloured, shade};
use crate::report::Report;
use linerate_evidence::BufferSize;
use linerate_evidence::notation;
use linerate_verdict::diagnosis::Limit;
use linerate_verdict::{CellLimit, CellSummary};
use std::fmt::Write;

/// Maximum width of a coloured cell in characters: a space, `100` and a space.
const WIDEST: usize = 5;

/// Minimum width of a cell, in characters, at which the map shows the rate as a number. A narrower
/// cell shows only a shade.
const NARROWEST_FIGURE: usize = 3;

/// Returns the heat map of rates as text. Returns an empty string if the table has fewer than two
/// rows or columns, if only equal buffers were measured, or if no rate is above zero.
pub(crate) fn text(report: &Report<'_>, style: Style) -> String {
    let (sends, receives) = (report.table.sends(), report.table.receives());
    let best = report.best();
    if report.design.diagonal || sends.len() < 2 || receives.len() < 2 || best <= 0.0 {
        return String::new();
    }
    let map = Map::new(report, style, best);
    let mut text = map.title();
    text.push_str(&map.axis());
    let shade = |cell: &CellSummary<'_>| map.cell_text(cell.median() / map.best);
    let predicted = |rate: f64| map.predicted_text(rate / map.best);
    for &send in sends {
        text.push_str(&map.row(send, shade, predicted));
    }
    text.push_str(&map.legend());
    if report.predictions.is_some() {
        let sign = map.predicted_text(0.95);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:1$}{sign} predicted, not measured", "", map.margin);
    }
    text
}

/// Returns the heat map of limits as text; empty if the report has no limits or no rate above zero.
pub(crate) fn limits_text(report: &Report<'_>, style: Style) -> String {
    let best = report.table.iter().map(CellSummary::median).fold(0.0, f64::max);
    if report.limits.is_empty() || best <= 0.0 {
        return String::new();
    }
    let map = Map::new(report, style, best);
    let mut text = "What limits each cell\n".to_owned();
    text.push_str(&map.axis());
    let limit_of = |cell: &CellSummary<'_>| {
        report.limits.iter().find(|limit| limit.cell == cell.cell).map_or(UNKNOWN, sign)
    };
    let letter = |cell: &CellSummary<'_>| map.letter(limit_of(cell).0);
    for &send in report.table.sends() {
        text.push_str(&map.row(send, letter, |_| " ".repeat(map.cell)));
    }
    let mut signs: Vec<Sign> = Vec::new();
    for sign in report.limits.iter().map(sign) {
        if !signs.contains(&sign) {
            signs.push(sign);
        }
    }
    signs.sort_unstable();
    let names = signs.iter().map(|(letter, name)| format!("{letter} {name}"));
    let legend = names.collect::<Vec<_>>().join(", ");
    for line in paint::wrapped(&legend, style.width.saturating_sub(map.margin)) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:1$}{line}", "", map.margin);
    }
    text
}

/// The letter that stands for a limit in the map, and the name of the limit.
pub(crate) type Sign = (char, &'static str);

/// The sign of a cell whose limit is not known.
pub(crate) const UNKNOWN: Sign = ('?', "not identified");

/// Returns the sign of a cell's limit. If a cell has several limits, they are the two buffers, and
/// the sign stands for both together.
pub(crate) fn sign(cell: &CellLimit) -> Sign {
    match (cell.limits.as_slice(), cell.is_flat) {
        ([limit], _) => (letter_of(*limit), limit.name()),
        ([], true) => ('-', "neither buffer"),
        ([], false) => UNKNOWN,
        (_, _) => ('B', "both buffers together"),
    }
}

/// Returns the letter that stands for a limit.
const fn letter_of(limit: Limit) -> char {
    match limit {
        Limit::SendBuffer => 'S',
        Limit::ReceiveBuffer => 'R',
        Limit::Writer => 'w',
        Limit::Reader => 'r',
        Limit::SenderCpu => 's',
        Limit::ReceiverCpu => 'c',
        Limit::LinkRate => 'L',
        Limit::QueueDrop => 'q',
        Limit::RandomLoss => 'l',
        Limit::ReceiveDrop => 'd',
        Limit::RouteWindow => 'o',
        Limit::PathMtu => 'm',
        Limit::CongestionWindow => 'g',
        Limit::RoundTrip => 't',
        Limit::Contended => '!',
        Limit::NotIdentified => '?',
    }
}

/// The layout of a heat map on a terminal.
struct Map<'a> {
    report: &'a Report<'a>,
    style: Style,
    /// The highest median of any cell in bytes per second, which is 100 %.
    best: f64,
    /// Width of the row labels in characters, including the space after them.
    margin: usize,
    /// Width of a cell in characters.
    cell: usize,
    /// The receive buffers that have a column: all of them, or every n-th if the terminal is too
    /// narrow.
    shown: Vec<BufferSize>,
}

impl<'a> Map<'a> {
    fn new(report: &'a Report<'a>, style: Style, best: f64) -> Self {
        let receives = report.table.receives();
        let label = report
            .table
            .sends()
            .iter()
            .map(|size| size.to_string().chars().count())
            .max()
            .unwrap_or(0);
        let margin = label.max("send".len()) + 2;
        let room = style.width.saturating_sub(margin).max(1);
        let every = receives.len().div_ceil(room);
        let shown: Vec<BufferSize> = receives.iter().copied().step_by(every).collect();
        let widest = if style.colour { WIDEST } else { 3 };
        let cell = (room / shown.len()).clamp(1, widest);
        Self { report, style, best, margin, cell, shown }
    }

    /// Returns the title of the map of rates.
    fn title(&self) -> String {
        let skipped = if self.shown.len() < self.report.table.receives().len() {
            "; the terminal is too narrow for all columns"
        } else {
            ""
        };
        format!(
            "All cells, in per cent of the best one ({} KB/s){skipped}\n",
            notation::kilobytes(self.best)
        )
    }

    /// Returns the heading of the map: the name of the horizontal axis, and the labels of the
    /// columns. Only every n-th column is labelled if the labels of all columns would touch.
    fn axis(&self) -> String {
        let labels: Vec<String> = self.shown.iter().map(ToString::to_string).collect();
        let widest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let every = (widest + 1).div_ceil(self.cell).max(1);
        let mut line = String::new();
        for group in labels.chunks(every) {
            let room = self.cell * group.len();
            // If the widest label and a space fit into a column, all labels are right-aligned, like
            // the figures below them. Otherwise, only the first column of a group is labelled, and
            // its label extends over the other columns of the group.
            let label = if self.cell > widest {
                format!("{:>1$}", group[0], self.figure_width())
            } else {
                group[0].clone()
            };
            line.push_str(&format!("{label:<room$}"));
        }
        let unit = match self.shown.first().and_then(|size| size.packets()) {
            Some(_) => "receive buffer, packets",
            None => "receive buffer",
        };
        let margin = self.margin;
        format!("{:margin$}{unit}\n{:<margin$}{}\n", "", "send", line.trim_end())
    }

    /// Returns the row of the map for the send buffer `send`. `cell` formats a measured cell, and
    /// `predicted` formats a predicted rate in bytes per second.
    fn row(
        &self,
        send: BufferSize,
        cell: impl Fn(&CellSummary<'_>) -> String,
        predicted: impl Fn(f64) -> String,
    ) -> String {
        let label_width = self.margin - 2;
        let mut row = format!("{:>label_width$}  ", send.to_string());
        for &receive in &self.shown {
            row.push_str(&match self.report.table.get(send, receive) {
                Some(summary) => cell(summary),
                None => match self.report.predicted(send, receive) {
                    Some(prediction) => predicted(prediction.rate),
                    None => " ".repeat(self.cell),
                },
            });
        }
        row.truncate(row.trim_end().len());
        row.push('\n');
        row
    }

    /// Returns the width of a figure in characters. In a coloured cell of more than
    /// [`NARROWEST_FIGURE`] characters, the figure is one character narrower than the cell, because
    /// a space follows it.
    fn figure_width(&self) -> usize {
        self.cell - usize::from(self.style.colour && self.cell > NARROWEST_FIGURE)
    }

    /// Formats a cell of the map of limits.
    fn letter(&self, letter: char) -> String {
        format!("{:<1$}", format!("{letter:>0$}", self.figure_width()), self.cell)
    }

    /// Formats a measured cell. `share` is the rate of the cell, divided by the best rate.
    fn cell_text(&self, share: f64) -> String {
        let shade = shade(share);
        if !self.style.colour {
            return character(shade).to_string().repeat(self.cell);
        }
        let text = if self.cell >= NARROWEST_FIGURE {
            let width = self.figure_width();
            format!("{:<1$}", format!("{:>width$.0}", share * 100.0), self.cell)
        } else {
            " ".repeat(self.cell)
        };
        coloured(&text, shade)
    }

    /// Formats a predicted cell, with a tilde and without a coloured background. `share` is the
    /// predicted rate, divided by the best rate.
    fn predicted_text(&self, share: f64) -> String {
        let character = character(shade(share)).to_string();
        if self.cell < NARROWEST_FIGURE {
            return format!("{:<1$}", "~", self.cell);
        }
        let width = self.figure_width();
        let text = if self.style.colour {
            format!("{:>width$}", format!("~{:.0}", share * 100.0))
        } else {
            format!("~{}", character.repeat(width - 1))
        };
        format!("{text:<0$}", self.cell)
    }

    /// Returns the line that explains the shades, in per cent of the best rate.
    fn legend(&self) -> String {
        let mut legend = " ".repeat(self.margin);
        for step in 0..10 {
            let range = format!(" {}–{} ", step * 10, step * 10 + 10);
            // Writing to a string cannot fail.
            let _ = if self.style.colour {
                write!(legend, "{}", coloured(&range, step))
            } else {
                write!(legend, "'{}'{range}", character(step))
            };
        }
        format!("{} %\n", legend.trim_end())
    }
}
