//! The section of the text report with all cells: the median and its interval for each cell, with
//! several cells in a line.

use crate::paint::Style;
use crate::report::Report;
use crate::unit::Unit;
use linerate_evidence::BufferSize;
use linerate_verdict::CellSummary;
use std::fmt::Write;

/// Returns the section with all cells. Lines have at most the width of `style`, unless a single
/// cell is wider.
pub(crate) fn text(report: &Report<'_>, style: Style) -> String {
    let unit = Unit::up_to(report.best());
    let mut text = format!(
        "Each cell: the {} buffer, and after the colon the median and its interval in {}\n",
        if report.design.diagonal { "common" } else { "receive" },
        unit.name
    );
    let entry_width =
        report.table.iter().map(|cell| entry(cell, unit).chars().count()).max().unwrap_or(0);
    let rows = rows(report);
    let label_width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let per_line = (style.width.saturating_sub(label_width) / (entry_width + 2)).max(1);
    for (label, cells) in rows {
        for (index, line) in cells.chunks(per_line).enumerate() {
            let label = if index == 0 { label.as_str() } else { "" };
            let padded = line.iter().map(|cell| format!("  {:>entry_width$}", entry(cell, unit)));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{label:>label_width$}{}", padded.collect::<String>());
        }
    }
    text
}

/// Returns the table of cells as rows, each with a label. A row contains the cells of one send
/// buffer. If only cells with equal buffers were measured, they all form a single row.
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

/// Formats the receive buffer, the median and the interval of a cell: `12: 1,001 (998–1,004)`.
fn entry(cell: &CellSummary<'_>, unit: Unit) -> String {
    format!(
        "{}: {} ({}–{})",
        cell.cell.receive,
        unit.figure(cell.median()),
        unit.figure(cell.interval.low),
        unit.figure(cell.interval.high)
    )
}
