//! The finding about the ridge: whether throughput is highest where both buffers are equal.
//!
//! Each cell off the diagonal has a larger and a smaller buffer. It is compared with the diagonal
//! cell in which both buffers have the size of the smaller one. The effect of a larger receive
//! buffer is the mean change over all cells whose receive buffer is the larger one. The effect of a
//! larger send buffer is found likewise. Each effect has an interval. There is a ridge if both
//! effects reduce throughput.

use crate::finding::{Finding, FindingKind};
use crate::log_ratio::logarithm;
use crate::sweep::Sweep;
use crate::table::{CellSummary, Table};
use linerate_evidence::BufferSize;
use linerate_evidence::notation;
use linerate_evidence::stats::as_f64;
use linerate_evidence::stats::{Interval, Sample, interval};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Effect up to which a larger buffer makes no difference in practice, as the logarithm of a ratio:
/// one per cent.
const NEGLIGIBLE: f64 = 0.01;

/// Effect from which on a larger buffer makes a considerable difference, in either direction, as
/// the logarithm of a ratio: five per cent. An effect is called negligible only if its interval
/// excludes considerable effects.
const CONSIDERABLE: f64 = 0.05;

/// Minimum number of cells on the diagonal of the table for a ridge to be recognised.
const FEWEST: usize = 3;

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let table = sweep.table;
    let seed = sweep.design.seed;
    let larger = |side| side_effect(table, side, seed);
    if table.diagonal().len() < FEWEST {
        return Vec::new();
    }
    let (Some(receive), Some(send)) = (larger(Ordering::Less), larger(Ordering::Greater)) else {
        return Vec::new();
    };
    let (ties, rows) = rows_best_on_diagonal(table, seed);
    let text = format!(
        "{}: against equal buffers, a larger receive buffer changes throughput by {}, a larger \
         send buffer by \
         {}; in {ties} of {rows} rows no cell is better than that with equal buffers.",
        verdict(receive.interval, send.interval),
        receive.text(),
        send.text(),
    );
    let finding = Finding::new(FindingKind::Ridge, text)
        .with("rows", as_f64(rows))
        .with("rows_best_at_equal_buffers", as_f64(ties));
    vec![send.noted_in(receive.noted_in(finding, "larger_receive"), "larger_send")]
}

/// The mean change of throughput if one buffer is larger than the other, compared with two equal
/// buffers, as the logarithm of a ratio.
struct Effect {
    mean: f64,
    interval: Interval,
}

impl Effect {
    fn text(&self) -> String {
        let Interval { low, high } = self.interval;
        format!(
            "{} (95 %: {} … {})",
            notation::change(self.mean),
            notation::change(low),
            notation::change(high)
        )
    }

    fn noted_in(&self, finding: Finding, name: &str) -> Finding {
        let percent = |logarithm: f64| logarithm.exp_m1() * 100.0;
        finding
            .with(&format!("{name}_percent"), percent(self.mean))
            .with(&format!("{name}_percent_low"), percent(self.interval.low))
            .with(&format!("{name}_percent_high"), percent(self.interval.high))
    }
}

/// Returns the mean effect of the larger buffer over all cells on one side of the diagonal; `None`
/// if there are no such cells. `side` says which side: with `Greater`, the send buffers are larger
/// than the receive buffers, with `Less` smaller.
fn side_effect(table: &Table<'_>, side: Ordering, seed: u64) -> Option<Effect> {
    let mut samples = Vec::<&Sample>::new();
    let mut diagonal = BTreeMap::<BufferSize, usize>::new();
    for cell in table.diagonal() {
        diagonal.insert(cell.cell.send, samples.len());
        samples.push(&cell.rates);
    }
    let mut pairs = Vec::new();
    for summary in
        table.iter().filter(|summary| summary.cell.send.cmp(&summary.cell.receive) == side)
    {
        if let Some(&equal) = diagonal.get(&summary.cell.send.min(summary.cell.receive)) {
            pairs.push((samples.len(), equal));
            samples.push(&summary.rates);
        }
    }
    if pairs.is_empty() {
        return None;
    }
    let statistic = |medians: &[f64]| {
        let gains =
            pairs.iter().map(|&(cell, equal)| logarithm(medians[cell]) - logarithm(medians[equal]));
        gains.sum::<f64>() / as_f64(pairs.len() as u64)
    };
    let medians: Vec<f64> = samples.iter().map(|sample| sample.median()).collect();
    Some(Effect { mean: statistic(&medians), interval: interval(&samples, seed, statistic) })
}

/// The direction of an effect on throughput.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Loses,
    Gains,
    Nothing,
    /// The interval is too wide: it contains both negligible and considerable effects.
    Unknown,
}

impl Sign {
    fn of(effect: Interval) -> Self {
        if effect.is_below(-NEGLIGIBLE) {
            Self::Loses
        } else if effect.is_above(NEGLIGIBLE) {
            Self::Gains
        } else if effect.is_above(-CONSIDERABLE) && effect.is_below(CONSIDERABLE) {
            Self::Nothing
        } else {
            Self::Unknown
        }
    }
}

fn verdict(receive: Interval, send: Interval) -> &'static str {
    match (Sign::of(receive), Sign::of(send)) {
        (Sign::Loses, Sign::Loses) => "The ridge is where both buffers are equal",
        (Sign::Gains, Sign::Gains) => "There is no ridge, throughput grows with either buffer",
        (Sign::Gains, _) => {
            "The ridge is not at equal buffers, the receive buffer should be the larger one"
        }
        (_, Sign::Gains) => {
            "The ridge is not at equal buffers, the send buffer should be the larger one"
        }
        (Sign::Loses, Sign::Nothing) => {
            "There is half a ridge, only a larger receive buffer does harm"
        }
        (Sign::Nothing, Sign::Loses) => {
            "There is half a ridge, only a larger send buffer does harm"
        }
        (Sign::Nothing, Sign::Nothing) => {
            "There is no ridge, the smaller buffer decides and the larger one does not matter"
        }
        (Sign::Unknown, _) | (_, Sign::Unknown) => {
            "Whether there is a ridge cannot be told, the figures scatter too much"
        }
    }
}

/// Counts the rows of the table that have a cell with equal buffers. Returns two numbers: the rows
/// in which no cell is significantly faster than the cell with equal buffers, and all counted rows.
fn rows_best_on_diagonal(table: &Table<'_>, seed: u64) -> (u64, u64) {
    let diagonal = table.diagonal();
    let ties = diagonal.iter().filter(|equal| {
        let row =
            table.receives().iter().filter_map(|&receive| table.get(equal.cell.send, receive));
        let best = row.max_by(|one, other| one.median().total_cmp(&other.median()));
        best.is_none_or(|best| !is_better(best, equal, seed))
    });
    (ties.count() as u64, diagonal.len() as u64)
}

/// Is `cell` faster than `equal` by more than [`NEGLIGIBLE`], with a confidence of 95 %?
fn is_better(cell: &CellSummary<'_>, equal: &CellSummary<'_>, seed: u64) -> bool {
    let ratio = |medians: &[f64]| logarithm(medians[0]) - logarithm(medians[1]);
    interval(&[&cell.rates, &equal.rates], seed, ratio).is_above(NEGLIGIBLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::{findings_of, findings_of_runs};
    use linerate_evidence::sample_data::{noise, records, square_design};
    use linerate_evidence::{Cell, RunRecord};
    use std::collections::BTreeSet;

    fn verdict_of(rate: impl Fn(f64, f64) -> f64) -> String {
        let noisy = |cell: Cell, repeat| {
            let packets = |size: BufferSize| f64::from(size.packets().unwrap());
            rate(packets(cell.send), packets(cell.receive)) * noise(cell, repeat, 0.03)
        };
        findings_of(6, noisy, findings).remove(0).text
    }

    #[test]
    fn a_ridge_falls_on_both_sides() {
        let text = verdict_of(|send, receive| {
            1e6 * send.min(receive) / (1.0 + 0.1 * (send - receive).abs())
        });
        assert!(text.starts_with("The ridge is where both buffers are equal"), "{text}");
        assert!(
            text.ends_with("in 6 of 6 rows no cell is better than that with equal buffers."),
            "{text}"
        );
    }

    #[test]
    fn a_plateau_is_no_ridge() {
        let text = verdict_of(|send, receive| 1e6 * send.min(receive));
        assert!(text.starts_with("There is no ridge, the smaller buffer decides"), "{text}");
    }

    #[test]
    fn a_ridge_beside_the_diagonal_is_reported() {
        let text = verdict_of(|send, receive| 1e6 * send.min(receive / 2.0));
        assert!(text.contains("the receive buffer should be the larger one"), "{text}");
        assert!(
            text.ends_with("in 1 of 6 rows no cell is better than that with equal buffers."),
            "{text}"
        );
    }

    #[test]
    fn less_than_one_per_cent_is_no_ridge() {
        for slope in [-0.003, 0.003] {
            let rate = |cell: Cell, repeat| {
                let [send, receive] = [cell.send, cell.receive].map(|size| as_f64(size.bytes(1)));
                let larger = f64::from(u8::from(send != receive));
                1e6 * send.min(receive) * (1.0 + slope * larger) * noise(cell, repeat, 0.000_1)
            };
            let found = findings_of(6, rate, findings).remove(0);
            assert!(
                found.text.starts_with("There is no ridge, the smaller buffer decides"),
                "{}",
                found.text
            );
            assert!(found.text.contains("in 6 of 6 rows"), "{}", found.text);
            let figures = ["low", "", "high"].map(|end| {
                let name = if end.is_empty() { end.to_owned() } else { format!("_{end}") };
                found.figures[&format!("larger_send_percent{name}")]
            });
            assert!(figures.is_sorted() && figures[0] < figures[2], "{figures:?}");
            assert!((figures[1] - slope * 100.0).abs() < 0.02, "{figures:?}");
        }
    }

    #[test]
    fn a_cell_with_rate_zero_gives_finite_figures() {
        let design = square_design(4);
        let mut runs = records(&design, |_, _| 1e6);
        for run in runs.iter_mut().filter(|run| run.send_buffer.packets == Some(2)) {
            run.bytes_per_second = 0.0;
        }
        for found in findings_of_runs(&design, &runs, crate::findings::findings) {
            assert!(found.figures.values().all(|figure| figure.is_finite()), "{found:?}");
        }
    }

    #[test]
    fn scattered_figures_give_no_verdict() {
        let rate = |cell: Cell, repeat| 1e6 * noise(cell, repeat, 0.9);
        let text = findings_of(6, rate, findings).remove(0).text;
        assert!(text.starts_with("Whether there is a ridge cannot be told"), "{text}");
    }

    #[test]
    fn an_interval_up_to_nine_per_cent_does_not_show_that_a_buffer_is_unimportant() {
        let effect = |low: f64, high: f64| Interval { low: low.ln_1p(), high: high.ln_1p() };
        let none = effect(-0.001, 0.001);
        for vague in [effect(-0.09, 0.0), effect(0.0, 0.09), effect(-0.06, 0.02)] {
            for text in [verdict(vague, none), verdict(none, vague)] {
                assert!(text.starts_with("Whether there is a ridge cannot be told"), "{text}");
            }
        }
        let text = verdict(effect(-0.04, 0.04), none);
        assert!(text.starts_with("There is no ridge, the smaller buffer decides"), "{text}");
    }

    #[test]
    fn half_a_ridge_is_reported() {
        let text = verdict_of(|send, receive| {
            1e6 * send.min(receive) / (1.0 + 0.1 * (send - receive).max(0.0))
        });
        assert!(text.contains("only a larger send buffer does harm"), "{text}");
    }

    #[test]
    fn cells_with_one_run_show_no_ridge_if_the_repeated_cells_scatter() {
        let design = square_design(6);
        let mut runs = records(&design, |cell, repeat| 1e6 * noise(cell, repeat, 0.5));
        let repeated: BTreeSet<Cell> = runs.iter().map(RunRecord::cell).take(4).collect();
        let mut seen = BTreeSet::new();
        runs.retain(|run| repeated.contains(&run.cell()) || seen.insert(run.cell()));
        let text = findings_of_runs(&design, &runs, findings).remove(0).text;
        assert!(text.starts_with("Whether there is a ridge cannot be told"), "{text}");
    }
}
