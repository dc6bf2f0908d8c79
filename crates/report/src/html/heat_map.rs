//! The page's heat map, which is an HTML table, so that it can be read without colours or scripts
//! and by screen readers.
//!
//! Radio buttons select the layer that is shown: rates, limits or spreads. The style sheet hides
//! the other layers.

use super::elements::{details, paragraph, table};
use crate::heat_map::{Sign, UNKNOWN, sign};
use crate::paint::shade;
use crate::report::Report;
use crate::unit::Unit;
use crate::xml::escaped;
use linerate_evidence::stats::Prediction;
use linerate_evidence::{BufferSize, Cell, notation};
use linerate_verdict::CellSummary;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Maximum number of rows, and maximum number of columns, of the heat map. If there are more buffer
/// sizes, only every n-th size is shown.
const MOST: usize = 64;
/// Maximum number of rows in the table of all cells.
const MOST_CELLS: usize = 4_096;

/// Returns the HTML content of the section with the heat map and the table of all cells.
pub(crate) fn content(report: &Report<'_>) -> String {
    let best = report.best();
    if report.table.iter().next().is_none() {
        return paragraph("No run is complete, so there is no cell to show.");
    }
    let map = Map {
        report,
        best,
        unit: Unit::up_to(best),
        sends: thinned(report.table.sends()),
        receives: thinned(report.table.receives()),
    };
    format!("{}{}{}", map.introduction(), map.map(), map.cells())
}

/// Returns at most [`MOST`] sizes: all sizes, or every n-th size if there are more than [`MOST`].
fn thinned(sizes: &[BufferSize]) -> Vec<BufferSize> {
    sizes.iter().copied().step_by(sizes.len().div_ceil(MOST).max(1)).collect()
}

/// The heat map: the sizes of its rows and columns, and the unit of its rates.
struct Map<'a> {
    report: &'a Report<'a>,
    /// The highest median of any cell in bytes per second, which is 100 %.
    best: f64,
    unit: Unit,
    sends: Vec<BufferSize>,
    receives: Vec<BufferSize>,
}

impl Map<'_> {
    /// Returns the paragraph that explains the map.
    fn introduction(&self) -> String {
        let (sends, receives) =
            (self.report.table.sends().len(), self.report.table.receives().len());
        let thinned = if self.sends.len() < sends || self.receives.len() < receives {
            " Not all rows and columns are shown."
        } else {
            ""
        };
        let predicted = if self.report.predictions.is_some() {
            " Rates with a tilde and a dashed frame are predicted and were not measured."
        } else {
            ""
        };
        paragraph(&format!(
            "A row for each send buffer, a column for each receive buffer. The rate is the median \
             of a cell's runs in per cent of the best cell, {} {}; the limit is what held a cell, \
             where that is known; the spread is how far the fastest run of a cell is above the \
             slowest.{predicted}{thinned}",
            self.unit.figure(self.best),
            self.unit.short,
        ))
    }

    /// Returns the radio buttons, the map and the legends. Between map and legends is an empty
    /// paragraph, in which the script of the page describes the selected cell.
    fn map(&self) -> String {
        let packets =
            |sizes: &[BufferSize]| sizes.first().is_some_and(|size| size.packets().is_some());
        let unit = |sizes| if packets(sizes) { ", packets" } else { "" };
        let limits = if self.report.limits.is_empty() { "" } else { LIMIT_LAYER };
        let mut text = format!(
            "<div class=\"map\"><fieldset class=\"layers\"><legend>Layer</legend>\
             <label><input type=\"radio\" name=\"layer\" value=\"rate\" checked> Rate</label>\
             {limits}<label><input type=\"radio\" name=\"layer\" value=\"spread\"> \
             Spread</label></fieldset>\n"
        );
        let columns: String = self
            .receives
            .iter()
            .map(|size| format!("<th scope=\"col\">{}</th>", escaped(&size.to_string())))
            .collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "<div class=\"wide\" role=\"region\" aria-label=\"Heat map\" tabindex=\"0\"><table \
             class=\"heat\" id=\"heat\"><caption>Heat map: send buffer{} ↓, receive buffer{} \
             →</caption>\n<thead><tr><th scope=\"col\">send \\ receive</th>{columns}</tr></thead>\n\
             <tbody>\n",
            unit(&self.sends),
            unit(&self.receives),
        );
        for &send in &self.sends {
            let _ = write!(text, "<tr><th scope=\"row\">{}</th>", escaped(&send.to_string()));
            for &receive in &self.receives {
                text.push_str(&match self.report.table.get(send, receive) {
                    Some(cell) => self.cell(cell),
                    None => match self.report.predicted(send, receive) {
                        Some(prediction) => self.predicted(Cell { send, receive }, prediction),
                        None => "<td class=\"none\"></td>".to_owned(),
                    },
                });
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody></table></div>\n");
        text.push_str("<p class=\"told\" id=\"told\" aria-live=\"polite\"></p>\n");
        text.push_str(&legend());
        text.push_str(&self.limits_legend());
        text + "</div>\n"
    }

    /// Returns the table cell of a measured cell. It contains the texts of all layers (rate, limit
    /// and spread), of which the style sheet shows one.
    fn cell(&self, cell: &CellSummary<'_>) -> String {
        let share = if self.best > 0.0 { cell.median() / self.best } else { 0.0 };
        let spread = spread(cell);
        let sign = self.sign(cell);
        let limit =
            sign.map_or_else(String::new, |(letter, _)| format!("<b class=\"limit\">{letter}</b>"));
        format!(
            "<td class=\"r{} s{} {}\" title=\"{}\"><b class=\"rate\">{:.0}</b>{limit}<b \
             class=\"spread\">{}</b></td>",
            shade(share),
            spread_shade(spread),
            sign.map_or_else(String::new, class_of),
            escaped(&self.told(cell)),
            share * 100.0,
            spread_text(spread),
        )
    }

    /// Returns the table cell of a predicted cell, which has a tilde and a dashed frame.
    fn predicted(&self, cell: Cell, prediction: Prediction) -> String {
        let share = if self.best > 0.0 { prediction.rate / self.best } else { 0.0 };
        let figure = |rate| self.unit.figure(rate);
        format!(
            "<td class=\"r{} predicted\" title=\"{}: predicted {} {} ({}–{}), not measured\"><b \
             class=\"rate\">~{:.0}</b></td>",
            shade(share),
            escaped(&notation::cell(cell)),
            figure(prediction.rate),
            self.unit.short,
            figure(prediction.low),
            figure(prediction.high),
            share * 100.0,
        )
    }

    /// Describes a measured cell as one line of text.
    fn told(&self, cell: &CellSummary<'_>) -> String {
        let figure = |rate| self.unit.figure(rate);
        let limit =
            self.sign(cell).map_or_else(String::new, |(_, name)| format!(", limit: {name}"));
        format!(
            "{}: {} {} ({}–{}), {}{limit}",
            notation::cell(cell.cell),
            figure(cell.median()),
            self.unit.short,
            figure(cell.interval.low),
            figure(cell.interval.high),
            notation::plural(cell.runs.len() as u64, "run"),
        )
    }

    /// Returns the letter and the name of the factor that limits the rate of a cell; `None` if the
    /// report has no limits.
    fn sign(&self, cell: &CellSummary<'_>) -> Option<Sign> {
        let limits = &self.report.limits;
        let found = limits.iter().find(|limit| limit.cell == cell.cell);
        (!limits.is_empty()).then(|| found.map_or(UNKNOWN, sign))
    }

    /// Returns the legend of the limits that occur in the map; empty if the report has no limits.
    fn limits_legend(&self) -> String {
        let signs: BTreeSet<Sign> = self.report.limits.iter().map(sign).collect();
        let entry = |&(letter, name): &Sign| {
            format!("<li class=\"{}\">{letter} {}</li>", class_of((letter, name)), escaped(name))
        };
        let entries: String = signs.iter().map(entry).collect();
        if entries.is_empty() {
            return entries;
        }
        format!("<ul class=\"shades limit\" aria-label=\"Letters of the limits\">{entries}</ul>\n")
    }

    /// Returns the table that lists at most [`MOST_CELLS`] cells, with all their values as numbers.
    fn cells(&self) -> String {
        let maximum = self.report.start.maximum.bytes_per_second();
        let row = |cell: &CellSummary<'_>| {
            let rates = cell.rates.values();
            let limit = self.sign(cell).map_or("–", |(_, name)| name);
            let figure = |rate| self.unit.figure(rate);
            vec![
                notation::cell(cell.cell),
                figure(cell.median()),
                format!("{}–{}", figure(cell.interval.low), figure(cell.interval.high)),
                format!("{}–{}", figure(rates[0]), figure(cell.rates.max())),
                cell.runs.len().to_string(),
                maximum.map_or_else(
                    || "–".to_owned(),
                    |maximum| notation::percent(cell.median() / maximum),
                ),
                limit.to_owned(),
            ]
        };
        let rows: Vec<_> = self.report.table.iter().take(MOST_CELLS).map(row).collect();
        let unit = self.unit.short;
        let median = format!("median, {unit}");
        let head = [
            "send × receive",
            &median,
            "95 % interval",
            "slowest–fastest",
            "runs",
            "of maximum",
            "limit",
        ];
        details("Table of all cells", &table("All cells in figures", &head, &rows))
    }
}

/// The HTML of the radio button that selects the layer of limits.
const LIMIT_LAYER: &str =
    "<label><input type=\"radio\" name=\"layer\" value=\"limit\"> Limit</label>";

/// Returns the style class of a limit. Related limits have a common class, and therefore the same
/// colour.
fn class_of((letter, _): Sign) -> String {
    let group = match letter {
        'S' => 0,
        'R' => 1,
        'B' => 2,
        'w' | 'r' => 3,
        's' | 'c' => 4,
        'L' | 'g' | 't' | 'o' | 'm' => 5,
        'q' | 'l' | 'd' => 6,
        '!' => 7,
        '-' => 8,
        _ => 9,
    };
    format!("l{group}")
}

/// Returns the relative difference between the fastest and the slowest run of a cell. Returns
/// `None` if the cell has only one run or the slowest rate is zero.
fn spread(cell: &CellSummary<'_>) -> Option<f64> {
    let slowest = *cell.rates.values().first()?;
    (slowest > 0.0 && cell.rates.values().len() > 1).then(|| cell.rates.max() / slowest - 1.0)
}

/// Formats a spread in per cent: a dash if it is not known, and `>999` above 999 %.
fn spread_text(spread: Option<f64>) -> String {
    match spread {
        None => "–".to_owned(),
        Some(spread) if spread >= 9.995 => ">999".to_owned(),
        Some(spread) => format!("{:.0}", spread * 100.0),
    }
}

/// Returns the shade for the spread of a cell's runs. The shades 0 to 6 are for spreads up to 1, 2,
/// 5, 10, 20, 50 and 100 %, and shade 7 is for larger spreads. An unknown spread, as of a single
/// run, has shade 0.
fn spread_shade(spread: Option<f64>) -> usize {
    const BOUNDS: [f64; 7] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];
    spread.map_or(0, |spread| BOUNDS.iter().filter(|&&bound| spread > bound).count())
}

/// Returns the legends of the shades of rates and of spreads.
fn legend() -> String {
    let rate: String = (0..10)
        .map(|step| format!("<li class=\"r{step}\">{}–{}</li>", step * 10, step * 10 + 10))
        .collect();
    let spreads = ["≤ 1", "≤ 2", "≤ 5", "≤ 10", "≤ 20", "≤ 50", "≤ 100", "more"];
    let spread: String = spreads
        .iter()
        .enumerate()
        .map(|(step, name)| format!("<li class=\"s{step}\">{name}</li>"))
        .collect();
    format!(
        "<ul class=\"shades rate\" aria-label=\"Shades of the rate, in per cent of the best \
         cell\">{rate}</ul>\n<ul class=\"shades spread\" aria-label=\"Shades of the spread, in per \
         cent\">{spread}</ul>\n"
    )
}
