//! Drift of the machine during the sweep.
//!
//! The order of the runs is random, so a drift widens intervals but does not make cells differ. It
//! matters when this sweep is compared with another.

use crate::finding::{Finding, FindingKind};
use crate::log_ratio::logarithm;
use crate::sweep::Sweep;
use linerate_evidence::notation;
use linerate_evidence::schedule;
use linerate_evidence::stats::{Sample, interval};

/// Smallest drift worth reporting, as a logarithm of a ratio.
const NEGLIGIBLE: f64 = 0.03;

/// Fewest runs that can show a drift.
const FEWEST: usize = 24;

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let residuals = residuals(sweep);
    if residuals.len() < FEWEST {
        return Vec::new();
    }
    let (first, second) = residuals.split_at(residuals.len() / 2);
    let (Some(first), Some(second)) = (Sample::new(first.to_vec()), Sample::new(second.to_vec()))
    else {
        return Vec::new();
    };
    let drift = second.median() - first.median();
    let interval =
        interval(&[&first, &second], sweep.design.seed, |medians| medians[1] - medians[0]);
    if drift.abs() < NEGLIGIBLE || !(interval.is_below(0.0) || interval.is_above(0.0)) {
        return Vec::new();
    }
    let text = format!(
        "Throughput changed by {} between the first and the second half of the sweep (95 %: {} … \
         {}): treat smaller differences as noise.",
        notation::change(drift),
        notation::change(interval.low),
        notation::change(interval.high),
    );
    vec![Finding::new(FindingKind::Drift, text).with("percent", drift.exp_m1() * 100.0)]
}

/// Returns the deviation of each run from the median of its cell, in the order of the runs.
fn residuals(sweep: &Sweep<'_>) -> Vec<f64> {
    let planned = schedule(sweep.design);
    let residuals = planned.iter().zip(sweep.runs).filter_map(|(planned, run)| {
        let cell = sweep.table.get(planned.cell.send, planned.cell.receive)?;
        Some(logarithm(run.bytes_per_second) - logarithm(cell.median()))
    });
    residuals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of_runs;
    use linerate_evidence::Cell;
    use linerate_evidence::Design;
    use linerate_evidence::sample_data::{noise, records, square_design};
    use linerate_evidence::stats::as_f64;

    /// Returns the finding for a sweep with very different cells whose second half is `times` as
    /// fast as the first.
    fn drift(buffers: u32, amplitude: f64, times: f64) -> Option<Finding> {
        let design = square_design(buffers);
        let rate = |cell: Cell, repeat| {
            1e4 * as_f64(cell.send.bytes(1).pow(3)) * noise(cell, repeat, amplitude)
        };
        let mut runs = records(&design, rate);
        let half = runs.len() / 2;
        runs[half..].iter_mut().for_each(|run| run.bytes_per_second *= times);
        findings_of_runs(&design, &runs, findings).pop()
    }

    #[test]
    fn a_change_of_speed_is_reported_as_drift() {
        for (times, says) in [(0.8, "changed by −"), (1.25, "changed by +")] {
            let found = drift(6, 0.01, times).unwrap();
            assert!(found.text.contains(says), "{}", found.text);
            let percent = found.figures["percent"];
            assert!((percent - (times - 1.0) * 100.0).abs() < 2.5, "{found:?}");
            assert!(
                found.text.contains(&format!(
                    "{:.1} % between the first and the second half",
                    percent.abs()
                )),
                "{found:?}"
            );
        }
    }

    #[test]
    fn negligible_changes_are_no_drift() {
        assert_eq!(drift(6, 0.05, 1.0), None);
        assert_eq!(drift(6, 0.001, 0.98), None);
    }

    #[test]
    fn few_runs_show_no_drift() {
        assert_eq!(drift(2, 0.01, 0.8), None);
    }

    #[test]
    fn noise_is_rarely_reported_as_drift() {
        let called = (0..20).filter(|&seed| {
            let design = Design { seed, ..square_design(4) };
            let runs = records(&design, |cell, repeat| 1e6 * noise(cell, repeat, 0.9));
            !findings_of_runs(&design, &runs, findings).is_empty()
        });
        assert!(called.count() <= 3);
    }
}
