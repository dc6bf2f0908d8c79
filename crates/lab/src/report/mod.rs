//! What is shown of a sweep: text for a terminal, a picture, JSON with everything, CSV with a row for
//! each run.

mod cells;
mod csv;
mod diagonal;
mod fast_path;
mod heading;
mod heat_map;
mod json;
mod paint;
mod picture;

pub use paint::Style;

use crate::diagnose::{self, Evidence, Finding};
use crate::plan::Plan;
use crate::run::RunRecord;
use crate::store::{Start, Store};
use crate::table::Table;
use std::fmt::Write;

/// A sweep that has been made, and what it means.
#[derive(Debug)]
pub struct Report<'a> {
    plan: &'a Plan,
    start: &'a Start,
    runs: &'a [RunRecord],
    table: Table<'a>,
    findings: Vec<Finding>,
}

impl<'a> Report<'a> {
    /// The report of what is in a store, unless nothing has been measured yet.
    #[must_use]
    pub fn of(store: &'a Store) -> Option<Self> {
        Some(Self::new(store.plan(), store.start()?, store.runs()))
    }

    /// The report of `runs`, which are the first of the plan's schedule.
    #[must_use]
    pub fn new(plan: &'a Plan, start: &'a Start, runs: &'a [RunRecord]) -> Self {
        let table = Table::new(plan, runs);
        let findings = diagnose::findings(&Evidence { plan, start, runs, table: &table });
        Self { plan, start, runs, table, findings }
    }

    /// The table by cells.
    #[must_use]
    pub const fn table(&self) -> &Table<'a> {
        &self.table
    }

    /// What the table means.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Runs whose bytes were not those that had been sent.
    #[must_use]
    pub fn wrong_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.verified == Some(false)).count()
    }

    /// The report for people.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let sections = [
            heading::text(self),
            cells::text(self, style),
            diagonal::text(self),
            heat_map::text(self, style),
            fast_path::text(self),
            findings_text(&self.findings, style),
        ];
        let sections = sections.into_iter().filter(|section| !section.is_empty());
        sections.collect::<Vec<_>>().join("\n")
    }
}

/// The findings as a list of sentences.
fn findings_text(findings: &[Finding], style: Style) -> String {
    let mut text = "What it means\n".to_owned();
    for finding in findings {
        for (index, line) in
            paint::wrapped(&finding.text, style.width.saturating_sub(4)).iter().enumerate()
        {
            let bullet = if index == 0 { "•" } else { " " };
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {bullet} {line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{FastPath, LineRate, names};
    use crate::maximum::Maximum;
    use crate::sweep::Cell;
    use crate::testing::{made_up_runs, noise, square_plan, start};
    use std::collections::BTreeMap;

    /// A sweep from 1 to 8 packets that has a ridge, a notch at 3 packets and one slow cell.
    fn rate(cell: Cell, repeat: u32) -> f64 {
        let column = [337.0, 575.0, 600.0, 718.0, 720.0, 719.0, 718.0, 718.0];
        let (send, receive) = (cell.send.packets().unwrap(), cell.receive.packets().unwrap());
        let apart = f64::from(send.abs_diff(receive));
        let slow = if (send, receive) == (8, 1) { 0.01 } else { 1.0 };
        column[send.min(receive) as usize - 1] * 1_024.0 / (1.0 + 0.05 * apart)
            * slow
            * noise(cell, repeat, 0.003)
    }

    fn runs(plan: &Plan) -> Vec<RunRecord> {
        let mut runs = made_up_runs(plan, rate);
        for run in &mut runs {
            let slow = (run.send_buffer.packets, run.receive_buffer.packets) == (Some(8), Some(1));
            run.counters.receiver.set(names::DELAYED_ACK_TIMEOUTS, if slow { 5_793 } else { 0 });
            run.counters.sender.set(names::RETRANSMISSION_TIMEOUTS, 0);
            run.verified = Some(true);
            let path = |hits| FastPath {
                hits,
                misses: BTreeMap::from([("closing".to_owned(), 2), ("syn".to_owned(), 1)]),
            };
            run.counters.sender.fast_path = Some(path(2_896));
            run.counters.receiver.fast_path = Some(path(5_793));
        }
        runs
    }

    /// What goes with the made-up runs: the wire of 1988 with one acknowledgement for two packets.
    fn ethernet() -> Start {
        let mut start = start();
        let line_rate = LineRate { bits_per_second: 10_000_000, source: "IEEE 802.3".to_owned() };
        let bench = &mut start.facts.bench;
        bench.framing.half_duplex = true;
        start.maximum = Maximum::of_line_rate(line_rate, &bench.framing, bench.segment_payload);
        start
    }

    #[test]
    fn a_report_on_paper() {
        let plan = square_plan(8);
        insta::assert_snapshot!(Report::new(&plan, &ethernet(), &runs(&plan)).text(Style::PLAIN));
    }

    #[test]
    fn a_report_in_colours() {
        let plan = square_plan(3);
        let style = Style { colour: true, width: 80 };
        insta::assert_snapshot!(Report::new(&plan, &start(), &runs(&plan)).text(style));
    }

    #[test]
    fn a_report_on_a_narrow_terminal() {
        let plan = square_plan(17);
        let runs = made_up_runs(&plan, |cell, repeat| {
            1e9 * f64::from(cell.send.min(cell.receive).packets().unwrap())
                * noise(cell, repeat, 0.02)
        });
        let start = start();
        let report = Report::new(&plan, &start, &runs);
        insta::assert_snapshot!(heat_map::text(&report, Style { colour: false, width: 30 }));
        insta::assert_snapshot!(heat_map::text(&report, Style { colour: false, width: 16 }));
    }

    #[test]
    fn a_report_of_bytes_on_the_diagonal() {
        let mut draft = crate::plan::Draft::of_1988(crate::plan::BenchKind::Kernel);
        draft.send_buffers = "16KiB..64KiB/16KiB".parse().unwrap();
        draft.receive_buffers = draft.send_buffers.clone();
        draft.diagonal = true;
        draft.repeat = 6.try_into().unwrap();
        let plan = Plan::new(draft).unwrap();
        let runs = made_up_runs(&plan, |cell, repeat| {
            cell.send.bytes(1) as f64 * 1e5 * noise(cell, repeat, 0.01)
        });
        insta::assert_snapshot!(Report::new(&plan, &start(), &runs).text(Style::PLAIN));
    }

    #[test]
    fn a_picture_has_a_rectangle_for_each_cell() {
        let plan = square_plan(3);
        let svg = Report::new(&plan, &start(), &runs(&plan)).picture();
        assert_eq!(svg.matches("<title>").count(), 9);
        assert!(svg.contains("<title>3 × 3 packets: 600 KB/s (599 … 601)</title>"), "{svg}");
        assert!(svg.contains("Per cent of the best cell, 600 KB/s") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn runs_with_wrong_bytes_are_counted() {
        let plan = square_plan(2);
        let mut wrong = runs(&plan);
        wrong[3].verified = Some(false);
        wrong[4].verified = None;
        let start = start();
        assert_eq!(Report::new(&plan, &start, &wrong).wrong_runs(), 1);
    }

    #[test]
    fn a_night_that_carried_nothing_is_reported_without_a_figure_that_is_none() {
        let plan = square_plan(3);
        let mut runs = runs(&plan);
        for run in &mut runs {
            (run.bytes, run.bytes_per_second, run.wire_bits_per_second) = (0, 0.0, 0.0);
        }
        let start = start();
        let report = Report::new(&plan, &start, &runs);
        let texts =
            [Style::PLAIN, Style { colour: true, width: 80 }].map(|style| report.text(style));
        for text in texts.into_iter().chain([report.json(), report.csv(), report.picture()]) {
            let mut words = text.split(|c: char| !c.is_alphanumeric());
            assert!(words.all(|word| !["NaN", "inf"].contains(&word)), "{text}");
        }
    }

    #[test]
    fn the_commonest_misses_are_named_and_the_others_summed() {
        let plan = square_plan(1);
        let mut runs = made_up_runs(&plan, rate);
        let misses = [
            ("a", 9),
            ("b", 8),
            ("c", 7),
            ("d", 6),
            ("e", 5),
            ("f", 4),
            ("g", 2),
            ("h", 1),
            ("i", 0),
        ];
        let misses = misses.map(|(reason, count)| (reason.to_owned(), count)).into();
        runs[0].counters.sender.fast_path = Some(FastPath { hits: 58, misses });
        runs[0].counters.receiver.fast_path =
            Some(FastPath { hits: 1, misses: [("a".to_owned(), 0)].into() });
        let text = Report::new(&plan, &start(), &runs).text(Style::PLAIN);
        let sender =
            "sender: 58.00 % of 100 segments; misses: 9 a, 8 b, 7 c, 6 d, 5 e, 4 f, 3 others\n";
        assert!(
            text.contains(sender)
                && text.contains("receiver: 100.00 % of 1 segments; misses: none\n"),
            "{text}"
        );
    }

    #[test]
    fn the_document_has_the_names_that_were_promised() {
        let plan = square_plan(2);
        let json = Report::new(&plan, &ethernet(), &runs(&plan)).json();
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        let keys = |value: &serde_json::Value| {
            value.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(
            keys(&document),
            ["cells", "facts", "fast_path", "findings", "maximum", "plan", "runs"]
        );
        for name in [
            "order",
            "repeat",
            "bytes",
            "seconds",
            "bytes_per_second",
            "wire_bits_per_second",
            "verified",
            "counters",
        ] {
            assert!(document["runs"][0].get(name).is_some(), "{name}");
        }
        for buffer in ["send_buffer", "receive_buffer"] {
            assert_eq!(
                keys(&document["runs"][0][buffer]),
                ["granted_bytes", "packets", "requested_bytes"]
            );
        }
        for name in
            ["send_packets", "receive_packets", "median", "low", "high", "percent_of_maximum"]
        {
            assert!(document["cells"][0].get(name).is_some(), "{name}");
        }
        for name in ["machine", "kernel", "cpu", "versions", "options"] {
            assert!(document["facts"].get(name).is_some(), "{name}");
        }
        insta::assert_snapshot!(json);
    }
}
