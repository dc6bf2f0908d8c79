//! The CSV file of a sweep: one row for each run, in the order in which the runs were made.

use crate::report::Report;
use linerate_evidence::EndCounters;
use linerate_evidence::RunRecord;
use std::collections::BTreeSet;

/// Names of the columns that every file has. The columns of counters follow after them, and depend
/// on the engine.
const COLUMNS: [&str; 14] = [
    "order",
    "repeat",
    "send_packets",
    "send_requested_bytes",
    "send_granted_bytes",
    "receive_packets",
    "receive_requested_bytes",
    "receive_granted_bytes",
    "bytes",
    "seconds",
    "bytes_per_second",
    "wire_bits_per_second",
    "complete",
    "verified",
];

impl Report<'_> {
    /// Returns the CSV file, which begins with a header line. Each counter that at least one run
    /// has is a column.
    #[must_use]
    pub fn csv(&self) -> String {
        let counters: BTreeSet<String> = self
            .runs
            .iter()
            .flat_map(|run| counters(run).into_iter().map(|(name, _)| name))
            .collect();
        let names = COLUMNS.iter().map(ToString::to_string).chain(counters.iter().cloned());
        let mut text = line(names);
        for run in self.runs {
            let counted = counters_of_row(run, &counters);
            text.push_str(&line(fixed(run).into_iter().chain(counted)));
        }
        text
    }
}

/// Returns the values of a run in the columns [`COLUMNS`], which do not depend on the engine.
/// Unknown values are empty.
fn fixed(run: &RunRecord) -> [String; 14] {
    let optional =
        |packets: Option<u32>| packets.map(|packets| packets.to_string()).unwrap_or_default();
    [
        run.order.to_string(),
        run.repeat.to_string(),
        optional(run.send_buffer.packets),
        run.send_buffer.requested_bytes.to_string(),
        run.send_buffer.granted_bytes.to_string(),
        optional(run.receive_buffer.packets),
        run.receive_buffer.requested_bytes.to_string(),
        run.receive_buffer.granted_bytes.to_string(),
        run.bytes.to_string(),
        run.seconds.to_string(),
        run.bytes_per_second.to_string(),
        run.wire_bits_per_second.to_string(),
        run.complete.to_string(),
        run.verified.map(|right| right.to_string()).unwrap_or_default(),
    ]
}

/// Returns all counters of a run, each with the name of its column.
fn counters(run: &RunRecord) -> Vec<(String, u64)> {
    let of_end = |name: &str, end: &EndCounters| {
        let counts =
            end.counts.iter().map(|(counter, &count)| (format!("{name}.{counter}"), count));
        let path = end.fast_path.iter().flat_map(|path| {
            let misses = path.misses.iter();
            let misses =
                misses.map(|(reason, &count)| (format!("{name}.fast_path_misses.{reason}"), count));
            std::iter::once((format!("{name}.fast_path_hits"), path.hits)).chain(misses)
        });
        counts.chain(path).collect::<Vec<_>>()
    };
    let mut all = of_end("sender", &run.counters.sender);
    all.extend(of_end("receiver", &run.counters.receiver));
    all
}

/// Returns the counters of a run as texts, one for each of `columns` and in their order. The text
/// is empty if the run does not have that counter.
fn counters_of_row(run: &RunRecord, columns: &BTreeSet<String>) -> Vec<String> {
    let counted: std::collections::BTreeMap<String, u64> = counters(run).into_iter().collect();
    let value = |column: &String| counted.get(column).map(ToString::to_string).unwrap_or_default();
    columns.iter().map(value).collect()
}

/// Formats a line of the CSV file. Values with a comma, a quote, a carriage return or a line feed
/// are quoted (RFC 4180 §2).
fn line(values: impl Iterator<Item = String>) -> String {
    let quoted = values.map(|value| {
        if value.contains([',', '"', '\r', '\n']) {
            format!("\"{}\"", value.replace('"', "\"\""))
        } else {
            value
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_evidence::names;
    use linerate_evidence::sample_data::{records, small_design, start};

    #[test]
    fn each_run_is_a_row_and_each_counter_a_column() {
        let (design, start) = (small_design(), start());
        let mut runs = records(&design, |_, _| 1e6);
        runs[1].counters.sender.set(names::RETRANSMITTED_SEGMENTS, 7);
        let csv = Report::new(&design, &start, &runs).csv();
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), runs.len() + 1);
        assert!(lines.iter().all(|line| line.len() == 15));
        assert_eq!(lines[0][14], "sender.retransmitted_segments");
        assert_eq!((lines[1][14], lines[2][14]), ("", "7"));
    }

    #[test]
    fn a_value_with_a_comma_is_quoted() {
        assert_eq!(line(["a,b".to_owned(), "c\"d".to_owned()].into_iter()), "\"a,b\",\"c\"\"d\"\n");
        assert_eq!(line(["a\nb".to_owned(), "c".to_owned()].into_iter()), "\"a\nb\",c\n");
        assert_eq!(line(["a\rb".to_owned(), "c".to_owned()].into_iter()), "\"a\rb\",c\n");
    }
}
