//! The section of the text report with the cells whose buffers are equal. Like Van Jacobson's table
//! of 1988, the section has the throughput between the programs and the bit rate on the wire.

use crate::report::Report;
use linerate_evidence::notation;
use linerate_verdict::CellSummary;
use std::fmt::Write;

const HEAD: &str = "\
Equal buffers
    buffer    task KB/s    wire Mb/s    % of maximum
";

/// Returns the section with the cells whose buffers are equal; empty if the plan has no such cells.
pub(crate) fn text(report: &Report<'_>) -> String {
    let diagonal = report.table.diagonal();
    if diagonal.is_empty() {
        return String::new();
    }
    let mut text = HEAD.to_owned();
    for summary in diagonal {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", row(report, summary));
    }
    text
}

/// Formats the line about a cell: its buffer, its throughput, its bit rate and its percentage of
/// the maximum.
fn row(report: &Report<'_>, summary: &CellSummary<'_>) -> String {
    let median = summary.median();
    let bench = &report.start.facts.bench;
    let wire = median * bench.framing.bits_per_byte(bench.segment_payload);
    let share = match report.start.maximum.bytes_per_second() {
        Some(maximum) => notation::percent(median / maximum),
        None => "–".to_owned(),
    };
    let size = summary.cell.send.to_string();
    format!(
        "{size:>10} {:>12} {:>12} {share:>15}",
        notation::kilobytes(median),
        notation::megabits(wire)
    )
}
