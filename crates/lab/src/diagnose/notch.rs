//! Which cells are below what their neighbours say?
//!
//! On every line of cells, the diagonal and each row and column, a cell is compared with the geometric
//! mean of the one before and the one after it. Three things make a notch: the cell is lower by more
//! than chance (its interval), by more than is negligible, and by more than cells usually differ from
//! their neighbours (a robust deviation, over all lines of the same kind), which in a table of hundreds
//! of cells keeps the few that chance alone would find out.

use super::Evidence;
use super::finding::{Finding, FindingKind};
use super::ridge::logarithm;
use crate::figures;
use crate::run::as_f64;
use crate::stats::{Interval, Sample, interval};
use crate::table::CellSummary;
use std::collections::BTreeMap;

/// Less than this is nothing to speak of, as a logarithm of a ratio: five per cent.
const NEGLIGIBLE: f64 = 0.05;

/// A notch is deeper than so many robust deviations.
const DEVIATIONS: f64 = 4.0;

/// Notches that the report tells one by one.
const TOLD: usize = 8;

pub(super) fn findings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut notches = notches(evidence);
    notches.sort_by(|one, other| one.depth.total_cmp(&other.depth));
    let payload = evidence.start.facts.bench.segment_payload;
    if notches.is_empty() {
        return none(evidence);
    }
    let more = notches.len().saturating_sub(TOLD) as u64;
    let told = notches.iter().take(TOLD).map(|notch| {
        Finding::new(FindingKind::Notch, notch.text())
            .about([notch.cells[1].cell], payload)
            .with("percent", notch.depth.exp_m1() * 100.0)
            .with("percent_low", notch.interval.low.exp_m1() * 100.0)
            .with("percent_high", notch.interval.high.exp_m1() * 100.0)
    });
    let rest = (more > 0).then(|| {
        let text =
            format!("{} more are not as deep.", figures::plural(more, "notch").replace("notchs", "notches"));
        let cells = notches.iter().skip(TOLD).map(|notch| notch.cells[1].cell);
        Finding::new(FindingKind::Notch, text).about(cells, payload)
    });
    told.chain(rest).collect()
}

/// Nothing was found, which is worth a sentence if there was something to look at.
fn none(evidence: &Evidence<'_>) -> Vec<Finding> {
    let looked_at = evidence.table.lines().iter().any(|(_, line)| line.len() >= 3);
    let text = "There are no notches: no cell is significantly below what its neighbours say.";
    looked_at.then(|| Finding::new(FindingKind::Notch, text.to_owned())).into_iter().collect()
}

/// A cell between two neighbours on a line.
struct Notch<'a> {
    varies: &'static str,
    cells: [&'a CellSummary<'a>; 3],
    depth: f64,
    interval: Interval,
}

impl Notch<'_> {
    fn text(&self) -> String {
        let [before, notch, after] = self.cells.map(|summary| summary.cell);
        let (low, high) = if self.varies == "the send buffer" {
            (before.send, after.send)
        } else {
            (before.receive, after.receive)
        };
        format!(
            "There is a notch at {}: {} against what {low} and {high} say when {} varies (95 %: {} … {}).",
            figures::cell(notch),
            figures::change(self.depth),
            self.varies,
            figures::change(self.interval.low),
            figures::change(self.interval.high),
        )
    }
}

fn notches<'a>(evidence: &'a Evidence<'a>) -> Vec<Notch<'a>> {
    let mut triples = BTreeMap::<&'static str, Vec<[&CellSummary<'_>; 3]>>::new();
    for (varies, line) in evidence.table.lines() {
        let of_line = line.windows(3).filter_map(|cells| <[_; 3]>::try_from(cells).ok());
        triples.entry(varies).or_default().extend(of_line);
    }
    let found = triples.into_iter().flat_map(|(varies, triples)| {
        let usual = usual_deviation(&triples);
        let threshold = -NEGLIGIBLE.max(DEVIATIONS * usual);
        let seeds = evidence.plan.seed..;
        triples.into_iter().zip(seeds).filter_map(move |(cells, seed)| notch(varies, cells, threshold, seed))
    });
    found.collect()
}

/// The middle one of `cells`, if it is lower than `threshold` and lower by more than chance.
fn notch<'a>(
    varies: &'static str,
    cells: [&'a CellSummary<'a>; 3],
    threshold: f64,
    seed: u64,
) -> Option<Notch<'a>> {
    let depth = residual(&cells.map(CellSummary::median));
    if depth > threshold {
        return None;
    }
    let interval = interval(&cells.map(|cell| &cell.rates), seed, residual);
    interval.is_below(0.0).then_some(Notch { varies, cells, depth, interval })
}

/// How far the second of three medians is from what the others say, as a logarithm of a ratio.
fn residual(medians: &[f64]) -> f64 {
    logarithm(medians[1]) - f64::midpoint(logarithm(medians[0]), logarithm(medians[2]))
}

fn usual_deviation(triples: &[[&CellSummary<'_>; 3]]) -> f64 {
    let residuals = triples.iter().map(|cells| residual(&cells.map(CellSummary::median)));
    // Of two or three residuals none is unusual; the interval alone decides then.
    match Sample::new(residuals.collect()) {
        Some(sample) if sample.values().len() >= 8 => sample.robust_deviation(),
        _ => as_f64(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Cell;
    use crate::testing::{findings_of, noise};

    fn smaller(cell: Cell) -> f64 {
        f64::from(cell.send.min(cell.receive).packets().unwrap())
    }

    #[test]
    fn noise_alone_makes_no_notch() {
        for amplitude in [0.005, 0.05, 0.2] {
            let rate = |cell: Cell, repeat| 1e6 * smaller(cell).min(4.0) * noise(cell, repeat, amplitude);
            let found = findings_of(12, rate, findings);
            assert!(found[0].text.starts_with("There are no notches"), "{amplitude}: {}", found[0].text);
        }
    }

    #[test]
    fn the_notch_of_1988_is_found_along_the_diagonal() {
        let column = [337.0, 575.0, 600.0, 718.0, 720.0, 719.0, 718.0, 718.0];
        let rate = |cell: Cell, repeat| {
            let equal = cell.send == cell.receive;
            let index = cell.send.min(cell.receive).packets().unwrap() as usize - 1;
            let ridge = if equal { 1.0 } else { 0.7 };
            column[index] * 1_024.0 * ridge * noise(cell, repeat, 0.003)
        };
        let found = findings_of(8, rate, findings);
        let text = &found[0].text;
        assert!(text.starts_with("There is a notch at 3 × 3 packets: −6."), "{text}");
        assert!(text.contains("what 2 and 4 say when both buffers varies"), "{text}");
    }

    #[test]
    fn a_hole_in_a_plateau_is_found_in_row_and_column() {
        let hole = |cell: Cell| cell.send.packets() == Some(5) && cell.receive.packets() == Some(9);
        let rate = |cell: Cell, repeat| 1e9 * if hole(cell) { 0.5 } else { 1.0 } * noise(cell, repeat, 0.02);
        let found = findings_of(12, rate, findings);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|notch| notch.text.contains("at 5 × 9 packets: −5")), "{found:?}");
    }
}
