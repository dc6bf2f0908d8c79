//! The section of cells: the median and interval of each, as many in a line as fit.

use crate::paint::Style;
use crate::report::Report;
use linerate_evidence::BufferSize;
use linerate_evidence::notation::{self, KILOBYTE};
use linerate_verdict::CellSummary;
use std::fmt::Write;

/// The unit of the section.
struct Unit {
    name: &'static str,
    bytes: f64,
}

/// Rate in KB/s from which MB/s are used.
const MANY: f64 = 1e5;

pub(crate) fn text(report: &Report<'_>, style: Style) -> String {
    let unit = unit(report);
    let mut text = format!(
        "Each cell: the {} buffer, and after the colon the median and its interval in {}\n",
        if report.design.diagonal { "common" } else { "receive" },
        unit.name
    );
    let entry_width =
        report.table.iter().map(|cell| entry(cell, &unit).chars().count()).max().unwrap_or(0);
    let rows = rows(report);
    let label_width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let per_line = (style.width.saturating_sub(label_width) / (entry_width + 2)).max(1);
    for (label, cells) in rows {
        for (index, line) in cells.chunks(per_line).enumerate() {
            let label = if index == 0 { label.as_str() } else { "" };
            let padded = line.iter().map(|cell| format!("  {:>entry_width$}", entry(cell, &unit)));
            // Writing to a string does not fail.
            let _ = writeln!(text, "{label:>label_width$}{}", padded.collect::<String>());
        }
    }
    text
}

/// Returns a row for each send buffer, or one row for the diagonal.
fn rows<'a>(report: &'a Report<'a>) -> Vec<(String, Vec<&'a CellSummary<'a>>)> {
    if report.design.diagonal {
        return vec![("both".to_owned(), report.table.diagonal())];
    }
    let row = |&send: &BufferSize| {
        let cells =
            report.table.receives().iter().filter_map(|&receive| report.table.get(send, receive));
        (format!("send {send}"), cells.collect())
    };
    report.table.sends().iter().map(row).collect()
}

fn unit(report: &Report<'_>) -> Unit {
    let best = report.table.iter().map(CellSummary::median).fold(0.0, f64::max);
    if best > MANY * KILOBYTE {
        Unit { name: "MB/s (of 1,024 KB)", bytes: KILOBYTE * KILOBYTE }
    } else {
        Unit { name: "KB/s", bytes: KILOBYTE }
    }
}

/// Formats a cell: `12: 1,001 (998–1,004)`.
fn entry(cell: &CellSummary<'_>, unit: &Unit) -> String {
    let figure = |bytes_per_second: f64| short(bytes_per_second / unit.bytes);
    format!(
        "{}: {} ({}–{})",
        cell.cell.receive,
        figure(cell.median()),
        figure(cell.interval.low),
        figure(cell.interval.high)
    )
}

/// Formats a figure with at least three digits.
fn short(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => notation::thousands(value),
    }
}
