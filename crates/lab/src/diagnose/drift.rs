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
        interval(&[&first, &second], evidence.plan.seed, |medians| medians[1] - medians[0]);
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
    use crate::plan::{Draft, Plan};
    use crate::run::as_f64;
    use crate::sweep::Cell;
    use crate::testing::{findings_of_runs, made_up_runs, noise, square_plan};

    /// What is said of a sweep of these buffers whose cells are far from each other, and whose second half is `times` as
    /// fast as the first.
    fn drift(buffers: u32, amplitude: f64, times: f64) -> Option<Finding> {
        let plan = square_plan(buffers);
        let rate = |cell: Cell, repeat| {
            1e4 * as_f64(cell.send.bytes(1).pow(3)) * noise(cell, repeat, amplitude)
        };
        let mut runs = made_up_runs(&plan, rate);
        let half = runs.len() / 2;
        runs[half..].iter_mut().for_each(|run| run.bytes_per_second *= times);
        findings_of_runs(&plan, &runs, findings).pop()
    }

    #[test]
    fn a_machine_that_becomes_slower_or_faster_is_noticed_whatever_its_cells_are() {
        for (times, says) in [(0.8, "second half differ by −"), (1.25, "second half differ by +")]
        {
            let found = drift(6, 0.01, times).unwrap();
            assert!(found.text.contains(says), "{}", found.text);
            let percent = found.figures["percent"];
            assert!((percent - (times - 1.0) * 100.0).abs() < 2.5, "{found:?}");
            assert!(
                found.text.contains(&format!("{:.1} % from those of the first", percent.abs())),
                "{found:?}"
            );
        }
    }

    #[test]
    fn what_is_steady_or_changes_by_next_to_nothing_does_not_drift() {
        assert_eq!(drift(6, 0.05, 1.0), None);
        assert_eq!(drift(6, 0.001, 0.98), None);
    }

    #[test]
    fn a_handful_of_runs_cannot_tell() {
        assert_eq!(drift(2, 0.01, 0.8), None);
    }

    #[test]
    fn scatter_alone_is_called_a_drift_no_oftener_than_chance_may_be() {
        let called = (0..20).filter(|&seed| {
            let plan = Plan::new(Draft { seed, ..square_plan(4).into() }).unwrap();
            let runs = made_up_runs(&plan, |cell, repeat| 1e6 * noise(cell, repeat, 0.9));
            !findings_of_runs(&plan, &runs, findings).is_empty()
        });
        assert!(called.count() <= 3);
    }
}
