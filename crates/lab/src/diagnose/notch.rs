//! Which cells are below what their neighbours say?
//!
//! On every line of cells, the diagonal and each row and column, a cell is compared with the geometric
//! mean of the one before and the one after it. Where sizes are unevenly apart, as 3, 4 and 16 are, the nearer of the
//! two weighs more; otherwise a throughput in proportion to the buffer would have a notch at 4. Three things make a notch: the cell is lower by more
//! than chance (its interval), by more than is negligible, and by more than cells usually differ from
//! their neighbours (a robust deviation, over all lines of the same kind), which in a table of hundreds
//! of cells keeps the few that chance alone would find out.

use super::Evidence;
use super::finding::{Finding, FindingKind};
use super::ridge::logarithm;
use crate::buffers::BufferSize;
use crate::figures;
use crate::run::as_f64;
use crate::stats::{Interval, Sample, interval};
use crate::table::{ALONG_COLUMN, CellSummary};
use std::collections::BTreeMap;

/// Less than this is nothing to speak of, as a logarithm of a ratio: five per cent.
const NEGLIGIBLE: f64 = 0.05;

/// A notch is deeper than so many robust deviations.
const DEVIATIONS: f64 = 4.0;

pub(super) fn findings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut valleys = BTreeMap::<(&'static str, BufferSize), Vec<Notch<'_>>>::new();
    for notch in notches(evidence) {
        valleys.entry((notch.varies, notch.at())).or_default().push(notch);
    }
    if valleys.is_empty() {
        return none(evidence);
    }
    let payload = evidence.start.facts.bench.segment_payload;
    valleys.values().map(|valley| finding(valley, payload)).collect()
}

/// Nothing was found, which is worth a sentence if there was something to look at.
fn none(evidence: &Evidence<'_>) -> Vec<Finding> {
    let looked_at = evidence.table.lines().iter().any(|(_, line)| line.len() >= 3);
    let text = "There are no notches: no cell is significantly below what its neighbours say.";
    looked_at.then(|| Finding::new(FindingKind::Notch, text.to_owned())).into_iter().collect()
}

/// The notches at one size of what varies: a single one, or a valley across the table.
fn finding(valley: &[Notch<'_>], payload: u32) -> Finding {
    let mut depths: Vec<&Notch<'_>> = valley.iter().collect();
    depths.sort_by(|one, other| one.depth.total_cmp(&other.depth));
    let (deepest, shallowest) = (depths[0], depths[depths.len() - 1]);
    let (low, high) = deepest.neighbours();
    let [_, cell, _] = deepest.cells;
    let text = if valley.len() == 1 {
        format!(
            "There is a notch at {}: {} against what {low} and {high} say as {} vary (95 %: {} … {}).",
            figures::cell(cell.cell),
            figures::change(deepest.depth),
            deepest.varies,
            figures::change(deepest.interval.low),
            figures::change(deepest.interval.high),
        )
    } else {
        format!(
            "There is a notch at {} in {} cells: {} to {} against what {low} and {high} say as {} vary.",
            figures::buffer(deepest.at()),
            valley.len(),
            figures::change(shallowest.depth),
            figures::change(deepest.depth),
            deepest.varies,
        )
    };
    Finding::new(FindingKind::Notch, text)
        .about(valley.iter().map(|notch| notch.cells[1].cell), payload)
        .with("percent", deepest.depth.exp_m1() * 100.0)
        .with("percent_low", deepest.interval.low.exp_m1() * 100.0)
        .with("percent_high", deepest.interval.high.exp_m1() * 100.0)
}

/// A cell between two neighbours on a line.
struct Notch<'a> {
    varies: &'static str,
    cells: [&'a CellSummary<'a>; 3],
    depth: f64,
    interval: Interval,
}

impl Notch<'_> {
    /// The size of what varies along the line.
    fn at(&self) -> BufferSize {
        varying(self.varies, self.cells[1])
    }

    /// The same of the two neighbours.
    fn neighbours(&self) -> (BufferSize, BufferSize) {
        (varying(self.varies, self.cells[0]), varying(self.varies, self.cells[2]))
    }
}

/// The size of what varies along a line.
fn varying(varies: &str, summary: &CellSummary<'_>) -> BufferSize {
    if varies == ALONG_COLUMN { summary.cell.send } else { summary.cell.receive }
}

fn notches<'a>(evidence: &'a Evidence<'a>) -> Vec<Notch<'a>> {
    let mut triples = BTreeMap::<&'static str, Vec<[&CellSummary<'_>; 3]>>::new();
    for (varies, line) in evidence.table.lines() {
        let of_line = line.windows(3).filter_map(|cells| <[_; 3]>::try_from(cells).ok());
        triples.entry(varies).or_default().extend(of_line);
    }
    let found = triples.into_iter().flat_map(|(varies, triples)| {
        let usual = usual_deviation(varies, &triples);
        let threshold = -NEGLIGIBLE.max(DEVIATIONS * usual);
        triples.into_iter().zip(0..).filter_map(move |(cells, number)| {
            notch(varies, cells, threshold, evidence.plan.seed.wrapping_add(number))
        })
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
    let place = place(varies, &cells);
    let depth = residual(&cells.map(CellSummary::median), place);
    if depth > threshold {
        return None;
    }
    let interval =
        interval(&cells.map(|cell| &cell.rates), seed, |medians| residual(medians, place));
    interval.is_below(0.0).then_some(Notch { varies, cells, depth, interval })
}

/// How far the second of three cells is on its way from the first to the third: half-way if it is as far from both,
/// and otherwise by the logarithms of the sizes, so that in proportion to them nothing is a notch.
fn place(varies: &str, cells: &[&CellSummary<'_>; 3]) -> f64 {
    let [before, at, after] = cells.map(|cell| varying(varies, cell).bytes(1));
    if at - before == after - at {
        return 0.5;
    }
    let [before, at, after] = [before, at, after].map(|size| as_f64(size).ln());
    (at - before) / (after - before)
}

/// How far the second of three medians, of a cell at this place between the others, is from what they say, as a
/// logarithm of a ratio.
fn residual(medians: &[f64], place: f64) -> f64 {
    let [before, at, after] = [0, 1, 2].map(|index| logarithm(medians[index]));
    at - (before + (after - before) * place)
}

fn usual_deviation(varies: &str, triples: &[[&CellSummary<'_>; 3]]) -> f64 {
    let residuals =
        triples.iter().map(|cells| residual(&cells.map(CellSummary::median), place(varies, cells)));
    // Of two or three residuals none is unusual; the interval alone decides then.
    match Sample::new(residuals.collect()) {
        Some(sample) if sample.values().len() >= 8 => sample.robust_deviation(),
        _ => as_f64(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BenchKind, Draft, Plan};
    use crate::sweep::Cell;
    use crate::testing::{findings_of, findings_of_runs, made_up_runs, noise};

    fn smaller(cell: Cell) -> f64 {
        f64::from(cell.send.min(cell.receive).packets().unwrap())
    }

    #[test]
    fn noise_alone_makes_no_notch() {
        for amplitude in [0.005, 0.05, 0.2] {
            let rate =
                |cell: Cell, repeat| 1e6 * smaller(cell).min(4.0) * noise(cell, repeat, amplitude);
            let found = findings_of(12, rate, findings);
            assert!(
                found[0].text.starts_with("There are no notches"),
                "{amplitude}: {}",
                found[0].text
            );
        }
    }

    #[test]
    fn throughput_in_proportion_to_the_buffer_has_no_notch_however_the_sizes_lie() {
        let proportional = |cell: Cell, repeat| 1e5 * smaller(cell) * noise(cell, repeat, 0.005);
        let with_a_notch = |cell: Cell, repeat| {
            let at = cell.send == cell.receive && cell.send.packets() == Some(16);
            proportional(cell, repeat) * if at { 0.5 } else { 1.0 }
        };
        for list in ["1..8,16,32,64", "1,2,16,1000", "1,2,4,8,16,32,64,128", "1,15,16,17,18"] {
            let mut draft = Draft::of_1988(BenchKind::Stack);
            draft.send_buffers = list.parse().unwrap();
            draft.receive_buffers = draft.send_buffers.clone();
            let plan = Plan::new(draft).unwrap();
            let text = |rate: &dyn Fn(Cell, u32) -> f64| {
                findings_of_runs(&plan, &made_up_runs(&plan, rate), findings).remove(0).text
            };
            assert!(
                text(&proportional).starts_with("There are no notches"),
                "{list}: {}",
                text(&proportional)
            );
            let found = text(&with_a_notch);
            assert!(found.starts_with("There is a notch at 16 × 16 packets"), "{list}: {found}");
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
        let texts: Vec<&str> = found.iter().map(|notch| notch.text.as_str()).collect();
        assert!(texts[0].starts_with("There is a notch at 3 × 3 packets: −6."), "{texts:?}");
        assert!(texts[0].contains("what 2 and 4 say as both buffers vary"), "{texts:?}");
    }

    #[test]
    fn a_hole_in_a_plateau_is_found_in_row_and_column() {
        let hole = |cell: Cell| cell.send.packets() == Some(5) && cell.receive.packets() == Some(9);
        let rate = |cell: Cell, repeat| {
            1e9 * if hole(cell) { 0.5 } else { 1.0 } * noise(cell, repeat, 0.02)
        };
        let found = findings_of(12, rate, findings);
        assert_eq!(found.len(), 2, "{found:?}");
        for notch in found {
            assert!(notch.text.contains("at 5 × 9 packets: −"), "{}", notch.text);
            let [low, depth, high] =
                ["percent_low", "percent", "percent_high"].map(|name| notch.figures[name]);
            assert!(
                low < depth && depth < high && (depth + 50.0).abs() < 3.0,
                "{low} {depth} {high}"
            );
        }
    }

    /// The first thing that is said of a plateau on which one cell does something else.
    fn with_one_cell(amplitude: f64, rates: [f64; 4]) -> String {
        let rate = |cell: Cell, repeat| {
            let is_it = cell.send.packets() == Some(5) && cell.receive.packets() == Some(9);
            1e9 * if is_it { rates[repeat as usize] } else { noise(cell, repeat, amplitude) }
        };
        findings_of(12, rate, findings).remove(0).text
    }

    #[test]
    fn a_cell_is_no_notch_that_is_low_by_little_or_by_chance() {
        let little = with_one_cell(0.000_1, [0.97; 4]);
        assert!(little.starts_with("There are no notches"), "{little}");
        let chance = with_one_cell(0.01, [0.3, 0.75, 1.0, 1.1]);
        assert!(chance.starts_with("There are no notches"), "{chance}");
        let found = with_one_cell(0.01, [0.85, 0.87, 0.88, 0.89]);
        assert!(found.starts_with("There is a notch at 5 × 9 packets: −12."), "{found}");
    }

    #[test]
    fn where_every_cell_is_far_from_its_neighbours_none_is_a_notch_for_that() {
        let rate = |cell: Cell, repeat| {
            let sum = cell.send.bytes(1) + cell.receive.bytes(1);
            1e9 * if sum.is_multiple_of(2) { 1.0 } else { 0.9 } * noise(cell, repeat, 0.002)
        };
        let found = findings_of(12, rate, findings);
        assert!(found[0].text.starts_with("There are no notches"), "{}", found[0].text);
    }
}
