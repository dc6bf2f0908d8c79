//! The finding about notches: cells that are slower than their neighbours predict.
//!
//! The lines of the table are the diagonal, each row and each column. On every line, the throughput
//! of a cell is compared with a prediction: the geometric mean of the throughput of its two
//! neighbours. If the buffer sizes are not equidistant, as in 3, 4 and 16 packets, the nearer
//! neighbour has a larger weight in this mean. With equal weights, a throughput that is
//! proportional to the buffer size would have a notch at 4 packets.
//!
//! A notch must be significant: the 95 % interval of its depth must exclude zero. It must be deeper
//! than 5 %. It must also be deeper than four times the usual deviation of cells from their
//! neighbours. This deviation is computed separately for the diagonal, for rows and for columns.
//! Without this third condition, a table of hundreds of cells would have a few notches by chance.

use crate::finding::{Finding, FindingKind};
use crate::log_ratio::logarithm;
use crate::sweep::Sweep;
use crate::table::{ALONG_COLUMN, CellSummary};
use linerate_evidence::BufferSize;
use linerate_evidence::notation;
use linerate_evidence::stats::as_f64;
use linerate_evidence::stats::{Interval, Sample, interval};
use std::collections::BTreeMap;

/// Depth up to which a notch is negligible, as the logarithm of a ratio: five per cent.
const NEGLIGIBLE: f64 = 0.05;

/// Minimum depth of a notch, in multiples of the usual deviation of cells from their neighbours.
const DEVIATIONS: f64 = 4.0;

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let mut valleys = BTreeMap::<(&'static str, BufferSize), Vec<Notch<'_>>>::new();
    for notch in notches(sweep) {
        valleys.entry((notch.varies, notch.at())).or_default().push(notch);
    }
    if valleys.is_empty() {
        return none(sweep);
    }
    let payload = sweep.start.facts.bench.segment_payload;
    valleys.values().map(|valley| finding(valley, payload)).collect()
}

/// Returns the finding that there is no notch. Returns an empty list if every line of the table has
/// fewer than three cells, so that no cell can be compared with two neighbours.
fn none(sweep: &Sweep<'_>) -> Vec<Finding> {
    let looked_at = sweep.table.lines().iter().any(|(_, line)| line.len() >= 3);
    let text = "There are no notches: no cell is significantly below what its neighbours predict.";
    looked_at.then(|| Finding::new(FindingKind::Notch, text.to_owned())).into_iter().collect()
}

/// Returns the finding about `valley`: all notches at one buffer size on the diagonal, or in all
/// rows, or in all columns. `payload` is the number of data bytes in a packet.
fn finding(valley: &[Notch<'_>], payload: u32) -> Finding {
    let mut depths: Vec<&Notch<'_>> = valley.iter().collect();
    depths.sort_by(|one, other| one.depth.total_cmp(&other.depth));
    let (deepest, shallowest) = (depths[0], depths[depths.len() - 1]);
    let (low, high) = deepest.neighbours();
    let [_, cell, _] = deepest.cells;
    let text = if valley.len() == 1 {
        format!(
            "There is a notch at {}: {} against what its neighbours at {low} and {high} predict as \
             {} vary (95 %: {} … {}).",
            notation::cell(cell.cell),
            notation::change(deepest.depth),
            deepest.varies,
            notation::change(deepest.interval.low),
            notation::change(deepest.interval.high),
        )
    } else {
        format!(
            "There is a notch at {} in {} cells: {} to {} against what their neighbours at {low} \
             and {high} predict as {} vary.",
            notation::buffer(deepest.at()),
            valley.len(),
            notation::change(shallowest.depth),
            notation::change(deepest.depth),
            deepest.varies,
        )
    };
    Finding::new(FindingKind::Notch, text)
        .about(valley.iter().map(|notch| notch.cells[1].cell), payload)
        .with("percent", deepest.depth.exp_m1() * 100.0)
        .with("percent_low", deepest.interval.low.exp_m1() * 100.0)
        .with("percent_high", deepest.interval.high.exp_m1() * 100.0)
}

/// A cell that is slower than its two neighbours on a line of the table predict.
struct Notch<'a> {
    /// Name of the buffers that vary along the line, such as [`ALONG_COLUMN`].
    varies: &'static str,
    /// The three cells that are compared: the neighbour before the notch, the cell with the notch,
    /// and the neighbour after it.
    cells: [&'a CellSummary<'a>; 3],
    /// Natural logarithm of the ratio of the cell's median rate to the predicted rate; negative.
    depth: f64,
    /// The 95 % interval of `depth`.
    interval: Interval,
}

impl Notch<'_> {
    /// Returns the size of the buffer that varies along the line, at the cell with the notch.
    fn at(&self) -> BufferSize {
        varying(self.varies, self.cells[1])
    }

    /// Returns the sizes of the buffer that varies along the line, at the cells before and after
    /// the notch.
    fn neighbours(&self) -> (BufferSize, BufferSize) {
        (varying(self.varies, self.cells[0]), varying(self.varies, self.cells[2]))
    }
}

/// Returns the size of a cell's send or receive buffer, whichever varies along a line. On the
/// diagonal, both are equal. `varies` is the name of the varying buffers, such as [`ALONG_COLUMN`].
fn varying(varies: &str, summary: &CellSummary<'_>) -> BufferSize {
    if varies == ALONG_COLUMN { summary.cell.send } else { summary.cell.receive }
}

fn notches<'a>(sweep: &'a Sweep<'a>) -> Vec<Notch<'a>> {
    let mut triples = BTreeMap::<&'static str, Vec<[&CellSummary<'_>; 3]>>::new();
    for (varies, line) in sweep.table.lines() {
        let of_line = line.windows(3).filter_map(|cells| <[_; 3]>::try_from(cells).ok());
        triples.entry(varies).or_default().extend(of_line);
    }
    let found = triples.into_iter().flat_map(|(varies, triples)| {
        let usual = usual_deviation(varies, &triples);
        let threshold = -NEGLIGIBLE.max(DEVIATIONS * usual);
        triples.into_iter().zip(0..).filter_map(move |(cells, number)| {
            notch(varies, cells, threshold, sweep.design.seed.wrapping_add(number))
        })
    });
    found.collect()
}

/// Returns the notch at the middle one of three cells. Returns `None` if the depth is above
/// `threshold`, a negative logarithm of a ratio, so that the cell is not slow enough. Also returns
/// `None` if the depth can be due to chance.
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

/// Returns the position of the middle cell between its neighbours: 0 at the first cell, 1 at the
/// third. If the buffer sizes are equidistant, it is ½. Otherwise it is computed from the
/// logarithms of the sizes, so that a throughput proportional to the buffer size has no notch.
fn place(varies: &str, cells: &[&CellSummary<'_>; 3]) -> f64 {
    let [before, at, after] = cells.map(|cell| varying(varies, cell).bytes(1));
    if at - before == after - at {
        return 0.5;
    }
    let [before, at, after] = [before, at, after].map(|size| as_f64(size).ln());
    (at - before) / (after - before)
}

/// Returns the natural logarithm of the ratio of the second median to the rate that the first and
/// the third median predict for the middle cell. `place` is the position of that cell between its
/// neighbours, from 0 to 1.
fn residual(medians: &[f64], place: f64) -> f64 {
    let [before, at, after] = [0, 1, 2].map(|index| logarithm(medians[index]));
    at - (before + (after - before) * place)
}

fn usual_deviation(varies: &str, triples: &[[&CellSummary<'_>; 3]]) -> f64 {
    let residuals =
        triples.iter().map(|cells| residual(&cells.map(CellSummary::median), place(varies, cells)));
    // With fewer than eight residuals, the usual deviation is unknown and counts as 0. A notch must
    // then only be significant and deeper than 5 %.
    match Sample::new(residuals.collect()) {
        Some(sample) if sample.values().len() >= 8 => sample.robust_deviation(),
        _ => as_f64(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::{findings_of, findings_of_runs};
    use linerate_evidence::Cell;
    use linerate_evidence::Design;
    use linerate_evidence::sample_data::{noise, records};

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
    fn proportional_throughput_has_no_notch_at_any_spacing() {
        let proportional = |cell: Cell, repeat| 1e5 * smaller(cell) * noise(cell, repeat, 0.005);
        let with_a_notch = |cell: Cell, repeat| {
            let at = cell.send == cell.receive && cell.send.packets() == Some(16);
            proportional(cell, repeat) * if at { 0.5 } else { 1.0 }
        };
        for list in ["1..8,16,32,64", "1,2,16,1000", "1,2,4,8,16,32,64,128", "1,15,16,17,18"] {
            let mut design = Design::of_1988();
            design.send_buffers = list.parse().unwrap();
            design.receive_buffers = design.send_buffers.clone();
            let text = |rate: &dyn Fn(Cell, u32) -> f64| {
                findings_of_runs(&design, &records(&design, rate), findings).remove(0).text
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
        assert!(
            texts[0].contains("what its neighbours at 2 and 4 predict as both buffers vary"),
            "{texts:?}"
        );
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

    /// Returns the text of the first finding about a made-up sweep of equally fast cells, except
    /// for the cell of 5 × 9 packets. `rates` are the rates of the four runs of this cell, relative
    /// to the rate of the other cells. `amplitude` is the relative noise of the runs of the other
    /// cells.
    fn with_one_cell(amplitude: f64, rates: [f64; 4]) -> String {
        let rate = |cell: Cell, repeat| {
            let is_it = cell.send.packets() == Some(5) && cell.receive.packets() == Some(9);
            1e9 * if is_it { rates[repeat as usize] } else { noise(cell, repeat, amplitude) }
        };
        findings_of(12, rate, findings).remove(0).text
    }

    #[test]
    fn small_or_random_differences_are_no_notch() {
        let little = with_one_cell(0.000_1, [0.97; 4]);
        assert!(little.starts_with("There are no notches"), "{little}");
        let chance = with_one_cell(0.01, [0.3, 0.75, 1.0, 1.1]);
        assert!(chance.starts_with("There are no notches"), "{chance}");
        let found = with_one_cell(0.01, [0.85, 0.87, 0.88, 0.89]);
        assert!(found.starts_with("There is a notch at 5 × 9 packets: −12."), "{found}");
    }

    #[test]
    fn cells_that_all_differ_from_their_neighbours_are_no_notches() {
        let rate = |cell: Cell, repeat| {
            let sum = cell.send.bytes(1) + cell.receive.bytes(1);
            1e9 * if sum.is_multiple_of(2) { 1.0 } else { 0.9 } * noise(cell, repeat, 0.002)
        };
        let found = findings_of(12, rate, findings);
        assert!(found[0].text.starts_with("There are no notches"), "{}", found[0].text);
    }
}
