//! The latest verdict in the text format of Prometheus, for a file that its node exporter reads.

use linerate_verdict::diagnosis::{End, Limit, Verdict};
use std::fmt::Write;

/// Returns the verdict as gauges with the label `path`.
pub(super) fn text(path: &str, verdict: &Verdict) -> String {
    let path = escaped(path);
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, lines: &[(String, f64)]| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP linerate_why_{name} {help}");
        let _ = writeln!(text, "# TYPE linerate_why_{name} gauge");
        for (labels, value) in lines {
            let _ = writeln!(text, "linerate_why_{name}{{path=\"{path}\"{labels}}} {value}");
        }
    };
    gauge(
        "bytes_per_second",
        "Throughput of the plain transfer.",
        &[(String::new(), verdict.bytes_per_second)],
    );
    gauge(
        "confidence",
        "How well the evidence singles the limit out, from 0 to 1.",
        &[(String::new(), verdict.confidence)],
    );
    let limits = Limit::ALL.map(|limit| {
        (format!(",limit=\"{limit}\""), if limit == verdict.limit { 1.0 } else { 0.0 })
    });
    gauge("limit", "1 for the named limit, 0 for all others.", &limits);
    let evidence: Vec<(String, f64)> = verdict
        .evidence
        .iter()
        .map(|line| {
            let end = match line.end {
                End::Sender => "sender",
                End::Receiver => "receiver",
                End::Both => "both",
            };
            (format!(",counter=\"{}\",end=\"{end}\"", line.counter), line.value)
        })
        .collect();
    gauge("evidence", "The figures that decided.", &evidence);
    text
}

/// Escapes a value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_verdict::diagnosis::EvidenceLine;

    #[test]
    fn each_limit_is_a_gauge_and_labels_are_escaped() {
        let verdict = Verdict {
            limit: Limit::Writer,
            confidence: 0.5,
            bytes_per_second: 1_250.0,
            evidence: vec![EvidenceLine {
                counter: "out_of_data_share",
                end: End::Sender,
                value: 0.75,
                threshold: None,
                reason: None,
            }],
            interventions: Vec::new(),
            advice: "",
        };
        let text = text("a \"path\" \\ of\ntwo lines", &verdict);
        let path = r#"path="a \"path\" \\ of\ntwo lines""#;
        for line in [
            format!("linerate_why_bytes_per_second{{{path}}} 1250"),
            format!("linerate_why_limit{{{path},limit=\"writer\"}} 1"),
            format!("linerate_why_limit{{{path},limit=\"reader\"}} 0"),
            format!(
                "linerate_why_evidence{{{path},counter=\"out_of_data_share\",end=\"sender\"}} 0.75"
            ),
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("# TYPE").count(), 4);
    }
}
