//! The model that separates the speed of the machine from the effects of the buffers: its fit.

use crate::report::Report;
use linerate_evidence::notation;
use linerate_evidence::stats::{Deviation, Sample};
use serde::Serialize;
use std::fmt::Write;

/// The fit of the model. Deviations are those of logarithms of rates.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Model {
    /// Deviation of runs from their cells.
    cells_alone: Deviation,
    /// Deviation from the cells and the speed of the machine.
    with_speed: Deviation,
    /// The slowest and the fastest speed, as ratios to the reference.
    speeds: [f64; 2],
    /// The runs of the baseline, if there is one.
    baseline: Option<Baseline>,
}

/// The fit of the model to the cell of the baseline.
#[derive(Clone, Copy, Debug, Serialize)]
struct Baseline {
    runs: usize,
    /// Deviation of the runs from their median.
    deviation_before: f64,
    /// Deviation at the reference speed.
    deviation_after: f64,
}

impl Model {
    /// Returns the fit; `None` if the machine had a constant speed.
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

/// Returns the section, empty if there is no model.
pub(crate) fn text(report: &Report<'_>) -> String {
    let Some(model) = Model::of(report) else { return String::new() };
    let mut text = format!(
        "Model: log rate = cell + slope(cell) × speed(time) + noise; the speed was {} to {} of the \
         reference\n  {:28}{:>10}{:>12}{:>10}\n",
        notation::percent(model.speeds[0]),
        notation::percent(model.speeds[1]),
        "",
        "deviation",
        "next run",
        "10 later",
    );
    let percent = |deviation: f64| notation::percent(deviation.exp_m1());
    for (name, fit) in [("cells alone", model.cells_alone), ("with the speed", model.with_speed)] {
        // Writing to a string does not fail.
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
