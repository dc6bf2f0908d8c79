//! Did the machine change in the course of the sweep?
//!
//! The order is random, so that a drift makes intervals wider and not cells different; but whoever
//! compares this sweep with another one wants to know.

use super::Evidence;
use super::finding::{Finding, FindingKind};
use super::ridge::logarithm;
use crate::figures;
use crate::stats::{Sample, interval};
use crate::sweep::schedule;

/// A drift of less is not worth a sentence, as a logarithm of a ratio.
const NEGLIGIBLE: f64 = 0.03;

/// Fewer runs cannot tell.
const FEWEST: usize = 24;

pub(super) fn findings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let residuals = residuals(evidence);
    if residuals.len() < FEWEST || evidence.plan.repeat.get() < 2 {
        return Vec::new();
    }
    let (first, second) = residuals.split_at(residuals.len() / 2);
    let (Some(first), Some(second)) = (Sample::new(first.to_vec()), Sample::new(second.to_vec())) else {
        return Vec::new();
    };
    let drift = second.median() - first.median();
    let interval = interval(&[&first, &second], evidence.plan.seed, |medians| medians[1] - medians[0]);
    if drift.abs() < NEGLIGIBLE || !(interval.is_below(0.0) || interval.is_above(0.0)) {
        return Vec::new();
    }
    let text = format!(
        "The machine drifted: runs of the second half differ by {} from those of the first (95 %: {} … {}).",
        figures::change(drift),
        figures::change(interval.low),
        figures::change(interval.high),
    );
    vec![Finding::new(FindingKind::Drift, text).with("percent", drift.exp_m1() * 100.0)]
}

/// How far each run is from the median of its cell, in the order of the night.
fn residuals(evidence: &Evidence<'_>) -> Vec<f64> {
    let planned = schedule(evidence.plan);
    let residuals = planned.iter().zip(evidence.runs).filter_map(|(planned, run)| {
        let cell = evidence.table.get(planned.cell.send, planned.cell.receive)?;
        Some(logarithm(run.bytes_per_second) - logarithm(cell.median()))
    });
    residuals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{findings_of_runs, made_up_runs, noise, square_plan};

    #[test]
    fn a_machine_that_slows_down_is_noticed_and_noise_is_not() {
        let plan = square_plan(6);
        let steady = made_up_runs(&plan, |cell, repeat| 1e6 * noise(cell, repeat, 0.05));
        assert_eq!(findings_of_runs(&plan, &steady, findings), []);
        let mut slowing = steady;
        let half = slowing.len() / 2;
        for run in &mut slowing[half..] {
            run.bytes_per_second *= 0.8;
        }
        let text = findings_of_runs(&plan, &slowing, findings).remove(0).text;
        assert!(text.contains("second half differ by −"), "{text}");
    }
}
