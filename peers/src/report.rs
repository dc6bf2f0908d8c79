//! Formats of the results: a table for each workload, JSON, and a row for the table of recorded
//! runs.

use crate::bars::Bar;
use crate::contender::Missing;
use crate::facts::Facts;
use crate::figures::Figure;
use serde::Serialize;
use std::fmt::Write;

/// All results of a benchmark with the circumstances of the run, as the JSON report contains them.
#[derive(Debug, Serialize)]
pub struct Report {
    pub facts: Facts,
    pub missing: Vec<Missing>,
    pub figures: Vec<Figure>,
    /// Remarks of contenders about their runs: the name of the contender, and the remark.
    pub remarks: Vec<(&'static str, String)>,
    pub bars: Vec<Bar>,
}

/// Formats the results of one workload as a table, with its targets below.
pub fn table(title: &str, figures: &[Figure], bars: &[Bar]) -> String {
    let mut text = String::new();
    let Some(first) = figures.first() else { return text };
    let (unit, runs) = (first.unit, first.samples.len());
    let _ =
        writeln!(text, "{title}: ns of processor time a {unit}, both ends; {runs} runs in turn");
    let _ = writeln!(
        text,
        "  {:<15} {:>9} {:>21}   {:>14} {:>17}   {:>14}",
        "", "median", "least … most", "times linerate", "least … most", "frames ⇄"
    );
    for figure in figures {
        let (own, ratio) = (figure.nanoseconds, figure.times_linerate);
        let frames = match figure.frames {
            [0.0, 0.0] => "–".to_owned(),
            [out, back] => format!("{out:.2} ⇄ {back:.2}"),
        };
        let _ = writeln!(
            text,
            "  {:<15} {:>9.1} {:>9.1} … {:>9.1}   {:>14.2} {:>7.2} … {:>7.2}   {frames:>14}",
            figure.contender,
            own.median,
            own.least,
            own.most,
            ratio.median,
            ratio.least,
            ratio.most
        );
    }
    for bar in bars.iter().filter(|bar| bar.work == first.work) {
        let _ = writeln!(text, "  bar: {}", bar.sentence());
    }
    text
}

impl Report {
    /// Formats a row of the table in docs/notebook/bench-runs.md. For each contender, the row
    /// contains the median time in nanoseconds, followed in brackets by the ratio of this time to
    /// linerate's time.
    pub fn line(&self) -> String {
        let mut works: Vec<String> = Vec::new();
        for group in self.figures.chunk_by(|a, b| a.work == b.work) {
            let figure = |figure: &Figure| {
                let (own, ratio) = (figure.nanoseconds.median, figure.times_linerate.median);
                format!("{} {own:.0} ({ratio:.2})", figure.contender)
            };
            let contenders: Vec<String> = group.iter().map(figure).collect();
            works.push(format!("{}: {}", group[0].work, contenders.join(", ")));
        }
        let Facts { date, commit, processor, quick, .. } = &self.facts;
        let length = if *quick { ", quick" } else { "" };
        format!("| {date}{length} | {commit} | {processor} | {} |\n", works.join("; "))
    }
}
