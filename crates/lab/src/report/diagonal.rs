//! The table of 1988: what equal buffers at both ends make of the wire.

use super::Report;
use crate::figures;
use crate::table::CellSummary;
use std::fmt::Write;

const HEAD: &str = "\
Equal buffers
    buffer    task KB/s    wire Mb/s    % of maximum
";

/// Nothing, if the plan has no equal buffers.
pub(super) fn text(report: &Report<'_>) -> String {
    let diagonal = report.table.diagonal();
    if diagonal.is_empty() {
        return String::new();
    }
    let mut text = HEAD.to_owned();
    for summary in diagonal {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", row(report, summary));
    }
    text
}

fn row(report: &Report<'_>, summary: &CellSummary<'_>) -> String {
    let median = summary.median();
    let bench = &report.start.facts.bench;
    let wire = median * bench.framing.bits_per_byte(bench.segment_payload);
    let share = match report.start.maximum.bytes_per_second() {
        Some(maximum) => figures::percent(median / maximum),
        None => "–".to_owned(),
    };
    let size = summary.cell.send.to_string();
    format!(
        "{size:>10} {:>12} {:>12} {share:>15}",
        figures::kilobytes(median),
        figures::megabits(wire)
    )
}
