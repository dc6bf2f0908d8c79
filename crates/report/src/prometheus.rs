//! Metrics in the text format of Prometheus (version 0.0.4).

use std::fmt::Write;

/// The type of a metric in Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only increases, whose name ends in `_total`.
    Counter,
    /// A number that increases and decreases.
    Gauge,
}

/// A text of metrics in Prometheus' format, one family of samples after the other.
///
/// ```
/// use linerate_report::{MetricKind, Metrics};
///
/// let mut metrics = Metrics::new();
/// metrics.family("linerate_sink_bytes_total", MetricKind::Counter, "Bytes received.");
/// metrics.sample("linerate_sink_bytes_total", &[("service", "plain")], 1_500.0);
/// let text = metrics.text();
/// assert!(text.starts_with("# HELP linerate_sink_bytes_total Bytes received."));
/// assert!(text.ends_with("linerate_sink_bytes_total{service=\"plain\"} 1500\n"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metrics(String);

impl Metrics {
    /// The content type of the text format in an HTTP response.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Creates an empty set of metrics.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a family of samples: the metric `name`, with its type and help text.
    pub fn family(&mut self, name: &str, kind: MetricKind, help: &str) {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample of the metric `name`. The most recent call of [`family`](Self::family) must
    /// have had this name.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{before}{label}=\"{value}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = match value {
            f64::INFINITY => writeln!(self.0, "{end} +Inf"),
            f64::NEG_INFINITY => writeln!(self.0, "{end} -Inf"),
            value => writeln!(self.0, "{end} {value}"),
        };
    }

    /// Returns all metrics as text.
    #[must_use]
    pub fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_help_are_escaped() {
        let mut metrics = Metrics::new();
        metrics.family("a", MetricKind::Gauge, "one\\\ntwo");
        metrics.sample("a", &[("x", "\"\\\n"), ("y", "")], f64::INFINITY);
        metrics.sample("a", &[], 0.5);
        metrics.sample("a", &[], f64::NAN);
        let text = "# HELP a one\\\\\\ntwo\n# TYPE a gauge\n\
                    a{x=\"\\\"\\\\\\n\",y=\"\"} +Inf\na 0.5\na NaN\n";
        assert_eq!(metrics.text(), text);
    }
}
