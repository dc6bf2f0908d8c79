//! The page's section with all runs, in the order in which the runs were made.

use super::chart::{Chart, LARGE};
use super::elements::{details, paragraph, table};
use crate::report::Report;
use crate::unit::Unit;
use linerate_evidence::stats::as_f64;
use linerate_evidence::{RunRecord, notation};

/// Maximum number of marks in a chart. If there are more runs, only every n-th run is drawn.
const MOST: usize = 5_000;
/// Maximum number of rows in the table of runs.
const MOST_ROWS: usize = 2_000;

/// Returns the HTML content of the section with all runs.
pub(crate) fn content(report: &Report<'_>) -> String {
    let runs = report.runs;
    if runs.is_empty() {
        return paragraph("No run is complete.");
    }
    let unit = Unit::up_to(report.best());
    let fastest = runs.iter().map(|run| run.bytes_per_second).fold(0.0, f64::max);
    let mut chart =
        Chart::new(LARGE, [1.0, as_f64(runs.len() as u64)], [0.0, fastest / unit.bytes]);
    chart.y_axis(&format!("rate, {}", unit.short), notation::thousands);
    chart.x_axis("runs in the order in which they were made", notation::thousands);
    let marks = |wanted: bool| {
        let marks = thinned(runs, MOST).filter(move |run| run.complete == wanted);
        marks.map(move |run| (f64::from(run.order) + 1.0, run.bytes_per_second / unit.bytes))
    };
    chart.dots("whole", marks(true));
    chart.dots("cut", marks(false));
    let cut = runs.iter().filter(|run| !run.complete).count() as u64;
    let cut = if cut > 0 {
        format!(
            " {} cut short by the time limit have the second colour.",
            notation::plural(cut, "run")
        )
    } else {
        String::new()
    };
    let thin = if runs.len() > MOST { " Not every run is drawn." } else { "" };
    format!(
        "{}{}{}",
        paragraph(&format!(
            "Each mark is one run. The order is random, so a slope or a step is a change of the \
             machine, and not an effect of a buffer.{cut}{thin}"
        )),
        chart.image("Rates of all runs in the order in which they were made"),
        rows(report, unit)
    )
}

/// Returns at most `most` runs: all runs, or every n-th run if there are more than `most`.
pub(crate) fn thinned(runs: &[RunRecord], most: usize) -> impl Iterator<Item = &RunRecord> {
    runs.iter().step_by(runs.len().div_ceil(most).max(1))
}

/// Returns the table of the first [`MOST_ROWS`] runs.
fn rows(report: &Report<'_>, unit: Unit) -> String {
    let rows: Vec<_> = report
        .runs
        .iter()
        .take(MOST_ROWS)
        .map(|run| {
            vec![
                (run.order + 1).to_string(),
                notation::cell(run.cell()),
                unit.figure(run.bytes_per_second),
                format!("{:.6}", run.seconds),
                notation::count(run.bytes),
                if run.complete { "yes" } else { "no" }.to_owned(),
            ]
        })
        .collect();
    let caption = if rows.len() < report.runs.len() {
        format!("The first {} runs; --csv writes all", notation::count(rows.len() as u64))
    } else {
        "All runs in figures".to_owned()
    };
    let rate = format!("rate, {}", unit.short);
    let head = ["run", "send × receive", &rate, "seconds", "bytes", "complete"];
    details("Table of the runs", &table(&caption, &head, &rows))
}
