//! The finding about drift: whether the machine's speed changed during the sweep.
//!
//! The runs have a random order, so drift widens the intervals of all cells, but does not make some
//! cells look faster than others. Drift matters if the sweep is compared with another sweep.
//!
//! To find drift, the first half of the sweep is compared with the second. A slow period in the
//! middle of the sweep slows both halves alike. Shorter parts are therefore also compared with each
//! other.

use crate::finding::{Finding, FindingKind};
use crate::log_ratio::logarithm;
use crate::sweep::Sweep;
use linerate_evidence::notation;
use linerate_evidence::stats::{Sample, as_f64, interval};
use linerate_evidence::{Cell, shuffle};

/// Minimum change of throughput that is reported as drift, as the logarithm of a ratio.
const NEGLIGIBLE: f64 = 0.03;

/// Minimum number of runs of a sweep for drift to be computed.
const FEWEST: usize = 24;

/// Maximum number of parts into which a sweep is divided.
const MOST_PARTS: usize = 8;

/// Minimum number of runs in a part of a sweep.
const FEWEST_OF_PART: usize = 12;

/// Number of times that the runs are shuffled, to find how much the parts of the sweep differ by
/// chance.
const ORDERS: u64 = 400;

/// Maximum share of these random orders in which the parts differ at least as much as in the real
/// order. If the share is larger, the real difference can be due to chance, and is not reported as
/// drift.
const CHANCE: f64 = 0.01;

/// Minimum ratio of the largest difference between two parts to the change from the first half to
/// the second. Above it, the finding is about the parts, otherwise about the halves.
const MORE_THAN_HALVES: f64 = 1.5;

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let residuals = residuals(sweep);
    if residuals.len() < FEWEST {
        return Vec::new();
    }
    let halves = halves(sweep, &residuals);
    let known = halves.as_ref().map_or(0.0, |&(drift, _)| drift.abs());
    let parts = parts(sweep, &residuals).filter(|&(range, _)| range > known * MORE_THAN_HALVES);
    parts.or(halves).map(|(_, finding)| finding).into_iter().collect()
}

/// Returns the change of speed from the first half of the sweep to the second, and the finding
/// about it. Returns `None` if the change is negligible or not significant. `residuals` are the
/// deviations of the runs from the medians of their cells.
fn halves(sweep: &Sweep<'_>, residuals: &[f64]) -> Option<(f64, Finding)> {
    let (first, second) = residuals.split_at(residuals.len() / 2);
    let (first, second) = (Sample::new(first.to_vec())?, Sample::new(second.to_vec())?);
    let drift = second.median() - first.median();
    let interval =
        interval(&[&first, &second], sweep.design.seed, |medians| medians[1] - medians[0]);
    if drift.abs() < NEGLIGIBLE || !(interval.is_below(0.0) || interval.is_above(0.0)) {
        return None;
    }
    let text = format!(
        "Throughput changed by {} between the first and the second half of the sweep (95 %: {} … \
         {}): {}.",
        notation::change(drift),
        notation::change(interval.low),
        notation::change(interval.high),
        consequence(sweep),
    );
    Some((drift, finding(text, drift)))
}

/// Returns the difference between the fastest and the slowest part of the sweep, and the finding
/// about it. Returns `None` if the difference is negligible. It also returns `None` if too many
/// random orders of the runs have an equally large difference. `residuals` are the deviations of
/// the runs from the medians of their cells.
fn parts(sweep: &Sweep<'_>, residuals: &[f64]) -> Option<(f64, Finding)> {
    let count = (residuals.len() / FEWEST_OF_PART).min(MOST_PARTS);
    if count < 2 {
        return None;
    }
    let slowest_and_fastest = |residuals: &[f64]| {
        let medians = (0..count).filter_map(|part| {
            let bounds = [part, part + 1].map(|part| part * residuals.len() / count);
            Some((part, Sample::new(residuals[bounds[0]..bounds[1]].to_vec())?.median()))
        });
        let medians: Vec<(usize, f64)> = medians.collect();
        let by_median = |one: &&(usize, f64), other: &&(usize, f64)| one.1.total_cmp(&other.1);
        Some([*medians.iter().min_by(by_median)?, *medians.iter().max_by(by_median)?])
    };
    let range = |[slowest, fastest]: [(usize, f64); 2]| fastest.1 - slowest.1;
    let found = slowest_and_fastest(residuals)?;
    if range(found) < NEGLIGIBLE {
        return None;
    }
    let mut order = residuals.to_vec();
    let as_wide = (0..ORDERS).filter(|&number| {
        shuffle(&mut order, sweep.design.seed.wrapping_add(number));
        slowest_and_fastest(&order).is_some_and(|ends| range(ends) >= range(found))
    });
    if as_f64(as_wide.count() as u64) > CHANCE * as_f64(ORDERS) {
        return None;
    }
    let [slowest, fastest] = found;
    let change = slowest.1 - fastest.1;
    let text = format!(
        "Throughput varied with time: of {count} equal parts of the sweep, part {} was slower than \
         part {} by {}, more than the order of the runs explains: {}.",
        slowest.0 + 1,
        fastest.0 + 1,
        notation::percent(-change.exp_m1()),
        consequence(sweep),
    );
    Some((range(found), finding(text, change)))
}

/// Returns the last clause of the finding's text, which says whether the drift affects the rates of
/// the cells.
fn consequence(sweep: &Sweep<'_>) -> &'static str {
    match sweep.table.epochs() {
        Some(_) => "the rates of the cells do not contain it",
        None => "treat smaller differences as noise",
    }
}

fn finding(text: String, change: f64) -> Finding {
    Finding::new(FindingKind::Drift, text).with("percent", change.exp_m1() * 100.0)
}

/// Returns the deviation of each run from the median of its cell, as the natural logarithm of the
/// ratio of the two rates. The deviations have the order in which the runs were made.
fn residuals(sweep: &Sweep<'_>) -> Vec<f64> {
    let residuals = sweep.runs.iter().filter_map(|run| {
        let Cell { send, receive } = run.cell();
        let cell = sweep.table.get(send, receive)?;
        Some(logarithm(run.bytes_per_second) - logarithm(cell.median()))
    });
    residuals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of_runs;
    use linerate_evidence::Design;
    use linerate_evidence::sample_data::{noise, records, square_design};
    use linerate_evidence::stats::as_f64;

    /// Returns the finding about a made-up sweep whose second half has `times` the speed of its
    /// first half; `None` if no drift is found. The cells have very different rates and buffers of
    /// 1 to `buffers` packets. `amplitude` is the relative noise of a run.
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
    fn a_slow_epoch_that_leaves_the_halves_alike_is_reported() {
        let design = Design { repeat: 12.try_into().unwrap(), ..square_design(4) };
        let mut runs = records(&design, |cell, repeat| 1e6 * noise(cell, repeat, 0.01));
        let third = runs.len() / 3;
        runs[third..2 * third].iter_mut().for_each(|run| run.bytes_per_second *= 0.7);
        let found = findings_of_runs(&design, &runs, findings).remove(0);
        assert!(found.text.starts_with("Throughput varied with time"), "{}", found.text);
        assert!((found.figures["percent"] + 30.0).abs() < 2.5, "{found:?}");
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
