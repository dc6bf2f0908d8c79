//! The metrics of `linerate sink`, for Prometheus.

use linerate_ends::sink::{Event, Served, Service};
use linerate_evidence::stats::as_f64;
use linerate_report::{MetricKind, Metrics};

/// Counters of `linerate sink`, summed over all connections that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SinkMetrics {
    plain: Sum,
    run: Sum,
    sweeps: u64,
    rejected: u64,
    wrong: u64,
    last_run_bytes_per_second: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    connections: u64,
    bytes: u64,
    seconds: f64,
}

impl SinkMetrics {
    /// Counts an event of the sink: a rejected connection, or the end of a connection or of a
    /// sweep.
    pub(super) fn add(&mut self, event: &Event) {
        let served = match event {
            Event::Rejected { .. } => {
                self.rejected += 1;
                return;
            }
            Event::Served(served) => served,
        };
        match served.service {
            Service::Control { .. } => self.sweeps += 1,
            Service::Plain => self.plain.add(served),
            Service::Run { verified, .. } => {
                self.run.add(served);
                self.wrong += u64::from(verified == Some(false));
                let seconds = served.span.as_secs_f64();
                if seconds > 0.0 {
                    self.last_run_bytes_per_second = Some(as_f64(served.bytes) / seconds);
                }
            }
        }
    }

    /// Returns the metrics in the text format of Prometheus.
    pub(super) fn text(&self) -> String {
        let mut metrics = Metrics::new();
        let mut counter = |name: &str, help: &str, samples: &[(Option<&str>, f64)]| {
            metrics.family(name, MetricKind::Counter, help);
            for &(service, value) in samples {
                let label = service.map(|service| ("service", service));
                metrics.sample(name, label.as_slice(), value);
            }
        };
        let by_service = |figure: fn(&Sum) -> f64| {
            [(Some("plain"), figure(&self.plain)), (Some("run"), figure(&self.run))]
        };
        counter(
            "linerate_sink_connections_total",
            "Data connections that have ended: of plain peers, and of the runs of sweeps.",
            &by_service(|sum| as_f64(sum.connections)),
        );
        counter(
            "linerate_sink_bytes_total",
            "Bytes received by data connections that have ended.",
            &by_service(|sum| as_f64(sum.bytes)),
        );
        counter(
            "linerate_sink_seconds_total",
            "Time from the first to the last byte of data connections that have ended.",
            &by_service(|sum| sum.seconds),
        );
        let alone = |value: u64| [(None, as_f64(value))];
        counter("linerate_sink_sweeps_total", "Sweeps that have ended.", &alone(self.sweeps));
        counter("linerate_sink_rejected_total", "Rejected connections.", &alone(self.rejected));
        counter(
            "linerate_sink_wrong_runs_total",
            "Runs whose data was compared, and wrong.",
            &alone(self.wrong),
        );
        if let Some(rate) = self.last_run_bytes_per_second {
            let name = "linerate_sink_last_run_bytes_per_second";
            metrics.family(name, MetricKind::Gauge, "Throughput of the run that ended last.");
            metrics.sample(name, &[], rate);
        }
        metrics.text()
    }
}

impl Sum {
    fn add(&mut self, served: &Served) {
        self.connections += 1;
        self.bytes = self.bytes.saturating_add(served.bytes);
        self.seconds += served.span.as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_ends::Ended;
    use linerate_ends::sink::RunTotals;
    use std::time::Duration;

    #[test]
    fn connections_are_counted_by_service() {
        let mut metrics = SinkMetrics::default();
        let mut served = |service, bytes| {
            let peer = ([127, 0, 0, 1], 5).into();
            let span = Duration::from_millis(500);
            metrics.add(&Event::Served(Served { peer, service, bytes, first: None, span }));
        };
        let run = |verified| Service::Run { receive_granted: 1, ended: Ended::Complete, verified };
        served(run(Some(false)), 1_000);
        served(run(None), 2_000);
        served(Service::Plain, 30);
        served(Service::Control { runs: 2, totals: RunTotals::default() }, 0);
        let text = metrics.text();
        for line in [
            "linerate_sink_bytes_total{service=\"plain\"} 30",
            "linerate_sink_bytes_total{service=\"run\"} 3000",
            "linerate_sink_connections_total{service=\"run\"} 2",
            "linerate_sink_seconds_total{service=\"run\"} 1",
            "linerate_sink_sweeps_total 1",
            "linerate_sink_wrong_runs_total 1",
            "linerate_sink_last_run_bytes_per_second 4000",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
