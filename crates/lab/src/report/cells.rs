//! Each cell's median with its interval, as many beside each other as the line holds.

use super::{Report, Style};
use crate::buffers::BufferSize;
use crate::figures::KILOBYTE;
use crate::table::CellSummary;
use std::fmt::Write;

/// The heading of a list in this unit.
struct Unit {
    name: &'static str,
    bytes: f64,
}

/// Beyond this many KB/s, MB/s read better.
const MANY: f64 = 1e5;

pub(super) fn text(report: &Report<'_>, style: Style) -> String {
    let unit = unit(report);
    let mut text = format!(
        "Each cell: the receive buffer, and after the colon the median and its interval in {}\n",
        unit.name
    );
    let entry_width = report.table.iter().map(|cell| entry(cell, &unit).chars().count()).max().unwrap_or(0);
    let label_width = "send ".len() + widest(report.table.sends());
    let per_line = (style.width.saturating_sub(label_width + 2) / (entry_width + 2)).max(1);
    for &send in report.table.sends() {
        let row = report.table.receives().iter().filter_map(|&receive| report.table.get(send, receive));
        let entries: Vec<String> = row.map(|cell| entry(cell, &unit)).collect();
        for (index, line) in entries.chunks(per_line).enumerate() {
            let label = if index == 0 { format!("send {send}") } else { String::new() };
            let padded: String = line.iter().map(|entry| format!("  {entry:>entry_width$}")).collect();
            // Writing to a string does not fail.
            let _ = writeln!(text, "{label:>label_width$}{padded}");
        }
    }
    text
}

fn unit(report: &Report<'_>) -> Unit {
    let best = report.table.iter().map(CellSummary::median).fold(0.0, f64::max);
    if best > MANY * KILOBYTE {
        Unit { name: "MB/s (of 1,024 KB)", bytes: KILOBYTE * KILOBYTE }
    } else {
        Unit { name: "KB/s", bytes: KILOBYTE }
    }
}

/// `12: 1,001 (998–1,004)`
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

/// Three digits or more.
fn short(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => crate::figures::thousands(value),
    }
}

fn widest(sizes: &[BufferSize]) -> usize {
    sizes.iter().map(|size| size.to_string().chars().count()).max().unwrap_or(0)
}
