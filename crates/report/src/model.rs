//! The section of the text report about changes of the machine's speed during the sweep. It also
//! tells how much of the variation between runs a model of these changes explains.

use crate::report::Report;
use linerate_evidence::notation;
use linerate_evidence::stats::{Deviation, Sample};
use serde::Serialize;
use std::fmt::Write;

/// The fit of the model in which the machine's speed changes during the sweep. All deviations in
/// this module are deviations of the natural logarithm of a rate.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Model {
    /// Deviation of the runs from the simpler model, in which every run of a cell has the median
    /// rate of that cell.
    cells_alone: Deviation,
    /// Deviation of the runs from the full model, in which the rate also depends on the machine's
    /// speed at the time of the run.
    with_speed: Deviation,
    /// The slowest and the fastest speed of the machine, as ratios to its mean speed.
    speeds: [f64; 2],
    /// The fit in the baseline cell; `None` if the design has no baseline cell.
    baseline: Option<Baseline>,
}

/// The fit of the model in the baseline cell, whose runs are distributed over the whole sweep.
#[derive(Clone, Copy, Debug, Serialize)]
struct Baseline {
    /// Number of runs of the baseline cell.
    runs: usize,
    /// Robust deviation of the logarithms of the measured rates from their median.
    deviation_before: f64,
    /// Robust deviation of the logarithms of the corrected rates from their median. A corrected
    /// rate is the rate that the run would have had at the mean speed of the machine.
    deviation_after: f64,
}

impl Model {
    /// Returns the fit of the model; `None` if the machine's speed was constant.
    pub(crate) fn of(report: &Report<'_>) -> Option<Self> {
        let epochs = report.table.epochs()?;
        let speeds = || epochs.speeds.iter().copied();
        let slowest = speeds().fold(f64::INFINITY, f64::min).exp();
        let fastest = speeds().fold(f64::NEG_INFINITY, f64::max).exp();
        Some(Self {
            cells_alone: epochs.before,
            with_speed: epochs.after,
            speeds: [slowest, fastest],
            baseline: baseline(report),
        })
    }
}

/// Returns the fit in the baseline cell; `None` if the cell does not exist or has no complete run.
fn baseline(report: &Report<'_>) -> Option<Baseline> {
    let cell = report.design.baseline()?;
    let summary = report.table.get(cell.send, cell.receive)?;
    let deviation = |rates: &mut dyn Iterator<Item = f64>| {
        Sample::new(rates.map(f64::ln).collect()).map(|sample| sample.robust_deviation())
    };
    Some(Baseline {
        runs: summary.runs.len(),
        deviation_before: deviation(&mut summary.runs.iter().map(|run| run.bytes_per_second))?,
        deviation_after: deviation(&mut summary.rates.values().iter().copied())?,
    })
}

/// Returns the section about the machine's speed; empty if the speed was constant.
pub(crate) fn text(report: &Report<'_>) -> String {
    let Some(model) = Model::of(report) else { return String::new() };
    let mut text = format!(
        "Model: log rate = cell + slope(cell) × speed(time) + noise; the speed was {} to {} of its \
         mean\n  {:28}{:>10}{:>12}{:>10}\n",
        notation::percent(model.speeds[0]),
        notation::percent(model.speeds[1]),
        "",
        "deviation",
        "next run",
        "10 later",
    );
    let percent = |deviation: f64| notation::percent(deviation.exp_m1());
    for (name, fit) in [("cells alone", model.cells_alone), ("with the speed", model.with_speed)] {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {name:28}{:>10}{:>12.2}{:>10.2}",
            percent(fit.deviation),
            fit.lag_1,
            fit.lag_10,
        );
    }
    if let Some(Baseline { runs, deviation_before, deviation_after }) = model.baseline {
        let name = format!("{runs} runs of the baseline");
        let (before, after) = (percent(deviation_before), percent(deviation_after));
        let _ = writeln!(text, "  {name:28}{before:>10}, with the speed {after}");
    }
    text
}
