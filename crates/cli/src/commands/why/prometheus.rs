//! The latest verdict in the text format of Prometheus, for the node exporter's textfile collector.

use linerate_report::{MetricKind, Metrics};
use linerate_verdict::diagnosis::{End, Limit, Verdict};

/// Returns the verdict as gauges with the label `path`.
pub(super) fn text(path: &str, verdict: &Verdict) -> String {
    let path = ("path", path);
    let mut metrics = Metrics::new();
    let mut gauge = |name: &str, help: &str, samples: &[(&[(&str, &str)], f64)]| {
        metrics.family(name, MetricKind::Gauge, help);
        for (labels, value) in samples {
            metrics.sample(name, &[&[path], *labels].concat(), *value);
        }
    };
    let rate = verdict.bytes_per_second;
    gauge("linerate_why_bytes_per_second", "Throughput of the plain transfer.", &[(&[], rate)]);
    gauge(
        "linerate_why_confidence",
        "How well the evidence singles the limit out, from 0 to 1.",
        &[(&[], verdict.confidence)],
    );
    let limits = Limit::ALL
        .map(|limit| ([("limit", limit.name())], if limit == verdict.limit { 1.0 } else { 0.0 }));
    let limits: Vec<_> = limits.iter().map(|(labels, value)| (&labels[..], *value)).collect();
    gauge("linerate_why_limit", "1 for the named limit, 0 for all others.", &limits);
    let evidence = verdict.evidence.iter();
    let evidence: Vec<_> = evidence
        .map(|line| ([("counter", line.counter), ("end", name_of(line.end))], line.value))
        .collect();
    let evidence: Vec<_> = evidence.iter().map(|(labels, value)| (&labels[..], *value)).collect();
    gauge("linerate_why_evidence", "The figures that decided.", &evidence);
    metrics.text()
}

const fn name_of(end: End) -> &'static str {
    match end {
        End::Sender => "sender",
        End::Receiver => "receiver",
        End::Both => "both",
    }
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
            skipped: Vec::new(),
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
