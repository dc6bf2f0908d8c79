//! The page's section about counters, which draws the counters that differ between runs.

use super::chart::{Chart, SMALL};
use super::elements::{details, marks_legend, paragraph, table};
use super::scatter::thinned;
use crate::report::Report;
use linerate_evidence::stats::as_f64;
use linerate_evidence::{EndCounters, RunRecord, names, notation};
use std::collections::BTreeSet;

/// Counters that are drawn before all other counters, the most informative first.
const FIRST: [&str; 11] = [
    names::RETRANSMITTED_SEGMENTS,
    names::RETRANSMISSION_TIMEOUTS,
    names::DELAYED_ACK_TIMEOUTS,
    names::ZERO_WINDOW_PROBES,
    names::SMALL_WINDOW_TIMEOUTS,
    names::ZERO_WINDOWS_RECEIVED,
    names::DROPPED_FRAMES,
    names::SOCKET_DROPS,
    names::BAD_CHECKSUMS,
    names::RECEIVE_WINDOW_LIMITED_MICROS,
    names::SEND_BUFFER_LIMITED_MICROS,
];
/// Maximum number of counters that are drawn as charts.
const MOST: usize = 12;
/// Maximum number of marks for the sender, and also for the receiver, in the chart of a counter. If
/// there are more runs, only every n-th run is drawn.
const MARKS: usize = 1_000;

/// Returns the HTML content of the section about counters.
pub(crate) fn content(report: &Report<'_>) -> String {
    let names = names_of(report.runs);
    let (varying, constant): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| varies(report.runs, name));
    if varying.is_empty() && constant.is_empty() {
        return paragraph("The engine has no counters.");
    }
    let drawn = varying.len().min(MOST);
    let charts: String = varying[..drawn].iter().map(|name| chart(report, name)).collect();
    let rows: Vec<_> = varying.iter().chain(&constant).map(|name| row(report.runs, name)).collect();
    let head = [
        "counter",
        "sender: least",
        "sender: most",
        "sender: sum",
        "receiver: least",
        "receiver: most",
        "receiver: sum",
    ];
    let summary = table("Counters of both ends, by run", &head, &rows);
    format!(
        "{}{}{}{}",
        paragraph(&format!(
            "The value of each run, in the order in which they were made; {drawn} of {} counters \
             that vary are drawn. The table has all of them, and the CSV file every value.",
            varying.len()
        )),
        marks_legend(&[("c0", "sender"), ("c2", "receiver")]),
        format_args!("<div class=\"multiples\">{charts}</div>\n"),
        details("Table of all counters", &summary)
    )
}

/// Returns the names of all counters that at least one run has. The names in [`FIRST`] come first.
fn names_of(runs: &[RunRecord]) -> Vec<String> {
    let ends = runs.iter().flat_map(|run| [&run.counters.sender, &run.counters.receiver]);
    let names: BTreeSet<&str> =
        ends.flat_map(|end| end.counts.keys().map(String::as_str)).collect();
    let first = FIRST.into_iter().filter(|name| names.contains(name));
    let rest = names.iter().copied().filter(|name| !FIRST.contains(name));
    first.chain(rest).map(str::to_owned).collect()
}

/// Returns the values of a counter at one end, each with the position of its run in the order in
/// which the runs were made.
fn values<'a>(
    runs: impl Iterator<Item = &'a RunRecord> + 'a,
    name: &'a str,
    end: End,
) -> impl Iterator<Item = (u32, u64)> + 'a {
    runs.filter_map(move |run| Some((run.order, end(run).get(name)?)))
}

/// A function that selects the counters of one end of a run.
type End = fn(&RunRecord) -> &EndCounters;

/// The two ends of a run, each with the style class of its marks.
const ENDS: [(&str, End); 2] =
    [("c0", |run| &run.counters.sender), ("c2", |run| &run.counters.receiver)];

/// Does the counter have different values in different runs, at the sender or at the receiver?
fn varies(runs: &[RunRecord], name: &str) -> bool {
    ENDS.iter().any(|&(_, end)| {
        let mut values = values(runs.iter(), name, end).map(|(_, value)| value);
        let first = values.next();
        values.any(|value| Some(value) != first)
    })
}

/// Returns a chart of the counter. The x axis shows the runs in the order in which they were made.
/// The two kinds of marks are the sender's and the receiver's values.
fn chart(report: &Report<'_>, name: &str) -> String {
    let runs = report.runs;
    let ends = ENDS.iter().flat_map(|&(_, end)| values(runs.iter(), name, end));
    let highest = ends.map(|(_, value)| value).max().unwrap_or(0);
    let mut chart = Chart::new(SMALL, [1.0, as_f64(runs.len() as u64)], [0.0, as_f64(highest)]);
    let words = name.replace('_', " ");
    chart.y_axis("per run", compact);
    chart.x_axis("run", notation::thousands);
    for (class, end) in ENDS {
        let marks = values(thinned(runs, MARKS), name, end);
        chart.dots(class, marks.map(|(order, value)| (f64::from(order) + 1.0, as_f64(value))));
    }
    format!(
        "<figure><figcaption>{words}</figcaption>{}</figure>\n",
        chart.image(&format!("{words} of both ends, by run"))
    )
}

/// Formats a number for an axis label. Large numbers are scaled and get a suffix, such as `1.5M`.
fn compact(value: f64) -> String {
    let scaled = |divisor: f64, suffix: &str| {
        let text = format!("{:.1}", value / divisor);
        format!("{}{suffix}", text.trim_end_matches(".0"))
    };
    match value {
        ..1e4 => scaled(1.0, ""),
        ..1e6 => scaled(1e3, "k"),
        ..1e9 => scaled(1e6, "M"),
        ..1e12 => scaled(1e9, "G"),
        _ => scaled(1e12, "T"),
    }
}

/// Returns the table row of the counter: minimum, maximum and sum at each end.
fn row(runs: &[RunRecord], name: &str) -> Vec<String> {
    let figures = ENDS.iter().flat_map(|&(_, end)| {
        let values: Vec<u64> = values(runs.iter(), name, end).map(|(_, value)| value).collect();
        let shown = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), notation::count);
        let (least, most) = (values.iter().min().copied(), values.iter().max().copied());
        let sum = values.iter().copied().reduce(u64::saturating_add);
        [shown(least), shown(most), shown(sum)]
    });
    std::iter::once(name.replace('_', " ")).chain(figures).collect()
}
