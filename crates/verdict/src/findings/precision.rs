//! The finding about precision: whether the intervals of the cells are narrow, and if not, why.

use crate::diagnosis::CONTENDED_SHARE;
use crate::finding::{Finding, FindingKind};
use crate::log_ratio::logarithm;
use crate::sweep::Sweep;
use crate::table::CellSummary;
use linerate_evidence::notation;
use linerate_evidence::stats::{Sample, as_f64};

/// Maximum half-width of a narrow interval, as the natural logarithm of a ratio.
const NARROW: f64 = 0.03;
/// Minimum share of cells with narrow intervals in a conclusive sweep. It is also the minimum share
/// of uncontended cells in an uncontended sweep.
const MOST_CELLS: f64 = 0.95;
/// Share of contended runs above which contention is named as the reason for wide intervals.
const MANY_CONTENDED: f64 = 0.1;
/// Factor by which the recommended number of runs exceeds the estimate. With equal numbers of runs,
/// the width of a cell's interval still varies by a fifth, and the number of runs is proportional
/// to the square of the width.
const MARGIN: f64 = 1.5;
/// Minimum ratio between the [deciding half-width](deciding_width) and the median half-width at
/// which single cells, and not the scatter of all, are the reason for wide intervals.
const EXCEPTIONAL: f64 = 2.5;
/// Maximum number of runs of each cell that a finding recommends.
const MOST_REPEATS: f64 = 200.0;

/// Returns the finding that a sweep is contended; `None` if it is not. A run is contended if its
/// threads waited for a processor, or if the hypervisor withheld one. A sweep is contended if more
/// than 5 % of its cells have too few uncontended runs.
pub(super) fn contended(sweep: &Sweep<'_>) -> Option<Finding> {
    let (contended, cells) = (sweep.table.contended_cells(), sweep.table.iter().count());
    let is_too_much = !is_most(cells - contended, cells);
    let text = format!(
        "Contended, nothing is concluded: in {contended} of {} fewer than three runs were fair. In \
         the others a thread waited for a processor for more than {} of its time, or the \
         hypervisor withheld one, and repeated runs were disturbed too. End the other programs of \
         this machine, and measure again.",
        notation::plural(cells as u64, "cell"),
        notation::percent(CONTENDED_SHARE),
    );
    is_too_much.then(|| {
        let finding = Finding::new(FindingKind::Contended, text)
            .with("contended_cells", as_f64(contended as u64))
            .with("cells", as_f64(cells as u64));
        match contended_share(sweep) {
            Some(share) => finding.with("contended_share", share),
            None => finding,
        }
    })
}

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    // The interval of a cell with a single run is computed from the scatter of other cells, so it
    // does not show the cell's own precision. No finding about precision is made if the design has
    // only one run of each cell, or if a time budget left a cell with a single run.
    let is_single = sweep.table.iter().any(|cell| cell.runs.len() < 2);
    if sweep.design.repeat.get() < 2 || sweep.design.budget.is_some() && is_single {
        return Vec::new();
    }
    finding(sweep).into_iter().collect()
}

fn finding(sweep: &Sweep<'_>) -> Option<Finding> {
    let widths = Sample::new(sweep.table.iter().map(half_width).collect())?;
    let cells = widths.values().len();
    let narrow = widths.values().partition_point(|&width| width <= NARROW);
    let contended = contended_share(sweep);
    let bounds = format!("the 95 % interval is within ±{}", notation::percent(NARROW));
    let text = if is_most(narrow, cells) {
        let left_out = match sweep.table.left_out() {
            0 => String::new(),
            runs => format!(
                " {} left out, in which a thread waited for a processor for more than {} of its \
                 time.",
                if runs == 1 { "1 run is".to_owned() } else { format!("{runs} runs are") },
                notation::percent(CONTENDED_SHARE),
            ),
        };
        format!(
            "Conclusive: {bounds} in {narrow} of {}.{left_out}",
            notation::plural(cells as u64, "cell")
        )
    } else {
        format!(
            "Not conclusive: {bounds} in {narrow} of {} only. {}",
            notation::plural(cells as u64, "cell"),
            obstacle(sweep, &widths, contended),
        )
    };
    let finding = Finding::new(FindingKind::Precision, text)
        .with("cells_within", as_f64(narrow as u64))
        .with("cells", as_f64(cells as u64))
        .with("median_half_width", widths.median());
    Some(match contended {
        Some(share) => finding.with("contended_share", share),
        None => finding,
    })
}

/// Returns the last sentence of the finding: the reason why intervals are wide, and a remedy.
/// `widths` are the half-widths of the cells' intervals. `contended` is the share of contended
/// runs; `None` if it is unknown.
fn obstacle(sweep: &Sweep<'_>, widths: &Sample, contended: Option<f64>) -> String {
    if let Some(share) = contended.filter(|&share| share > MANY_CONTENDED) {
        return format!(
            "In {} of the runs a thread waited for a processor for more than {} of its time: end \
             the other programs of this machine, and measure again.",
            notation::percent(share),
            notation::percent(CONTENDED_SHARE),
        );
    }
    let deviation = deviation(sweep);
    let scatter = format!(
        "Equal runs deviate by {} from their cell{}",
        notation::percent(deviation.exp_m1()),
        if sweep.table.epochs().is_some() { ", epochs of the machine subtracted" } else { "" },
    );
    let width = deciding_width(widths);
    if width > EXCEPTIONAL * widths.median() {
        return format!("{scatter}, but some cells do not repeat: see the spread of their runs.");
    }
    if sweep.design.budget.is_some() {
        return format!("{scatter}: try a larger --budget.");
    }
    // The half-width of an interval is inversely proportional to the square root of the number of
    // runs.
    let now = f64::from(sweep.design.repeat.get());
    let repeats = MARGIN * now * (width / NARROW).powi(2);
    if repeats > MOST_REPEATS {
        format!("{scatter}: more runs hardly help, use a quieter machine.")
    } else {
        format!("{scatter}: try --repeat {:.0}.", repeats.ceil())
    }
}

/// Returns the half-width that decides whether a sweep is conclusive: that of the widest interval
/// which must be narrow in a conclusive sweep. Wider intervals are as few as such a sweep may have.
fn deciding_width(widths: &Sample) -> f64 {
    let widths = widths.values();
    let deciding = (1..).zip(widths).find(|&(count, _)| is_most(count, widths.len()));
    deciding.map_or(0.0, |(_, &width)| width)
}

/// Is `some` of `cells` cells at least the share [`MOST_CELLS`]?
fn is_most(some: usize, cells: usize) -> bool {
    as_f64(some as u64) >= MOST_CELLS * as_f64(cells as u64)
}

fn half_width(cell: &CellSummary<'_>) -> f64 {
    (logarithm(cell.interval.high) - logarithm(cell.interval.low)) / 2.0
}

/// Returns the robust standard deviation of the runs from the medians of their cells, as the
/// natural logarithm of a ratio. If the effect of epochs (slow changes of the machine's speed) has
/// been subtracted from the rates, it does not count as deviation.
fn deviation(sweep: &Sweep<'_>) -> f64 {
    if let Some(epochs) = sweep.table.epochs() {
        return epochs.after.deviation;
    }
    let residuals = sweep.table.iter().flat_map(|cell| {
        let median = logarithm(cell.median());
        cell.rates.values().iter().map(move |&rate| logarithm(rate) - median)
    });
    Sample::new(residuals.collect()).map_or(0.0, |sample| sample.robust_deviation())
}

/// Returns the share of contended runs among the runs with known waiting times; `None` if there are
/// no such runs.
fn contended_share(sweep: &Sweep<'_>) -> Option<f64> {
    let shares: Vec<f64> =
        sweep.runs.iter().filter_map(|run| run.counters.contended_share()).collect();
    let contended = shares.iter().filter(|&&share| share > CONTENDED_SHARE).count() as u64;
    (!shares.is_empty()).then(|| as_f64(contended) / as_f64(shares.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of_runs;
    use linerate_evidence::sample_data::{noise, records, square_design};
    use linerate_evidence::{Design, RunRecord, names};

    fn found(repeat: u32, amplitude: f64, change: impl Fn(&mut RunRecord)) -> Option<Finding> {
        let design = Design { repeat: repeat.try_into().unwrap(), ..square_design(6) };
        let mut runs = records(&design, |cell, repeat| 1e6 * noise(cell, repeat, amplitude));
        runs.iter_mut().for_each(change);
        findings_of_runs(&design, &runs, findings).pop()
    }

    fn waiting(run: &mut RunRecord) {
        run.counters.receiver.set(names::THREAD_MICROS, 1_000);
        run.counters.receiver.set(names::CPU_WAIT_MICROS, 21);
    }

    #[test]
    fn narrow_intervals_are_conclusive() {
        let found = found(8, 0.02, |_| ()).unwrap();
        assert_eq!(found.text, "Conclusive: the 95 % interval is within ±3.0 % in 36 of 36 cells.");
        assert_eq!(found.figures["cells_within"], 36.0);
    }

    #[test]
    fn wide_intervals_name_what_prevented_narrow_ones() {
        let scatter = found(8, 0.15, |_| ()).unwrap().text;
        assert!(scatter.starts_with("Not conclusive: ") && scatter.contains("try --repeat "));
        let often = |run: &mut RunRecord| {
            waiting(run);
            if run.repeat >= 4 {
                run.counters.receiver.set(names::CPU_WAIT_MICROS, 0);
            }
        };
        let contended = found(8, 0.2, often).unwrap();
        let text = "50 % of the runs a thread waited for a processor";
        assert!(contended.text.contains(text), "{}", contended.text);
        assert_eq!(contended.figures["contended_share"], 0.5);
        let uneven = found(16, 0.02, |run| {
            if run.send_buffer.packets == run.receive_buffer.packets && run.repeat % 2 == 0 {
                run.bytes_per_second *= 2.0;
            }
        });
        assert!(uneven.unwrap().text.ends_with("do not repeat: see the spread of their runs."));
        let hopeless = found(8, 0.8, |_| ()).unwrap().text;
        assert!(hopeless.contains("use a quieter machine"), "{hopeless}");
    }

    #[test]
    fn the_advised_number_of_runs_makes_the_sweep_conclusive() {
        for amplitude in [0.08, 0.1, 0.12, 0.15] {
            let advice = found(16, amplitude, |_| ()).unwrap().text;
            let repeats = advice.rsplit_once("--repeat ").unwrap().1.trim_end_matches('.');
            let followed = found(repeats.parse().unwrap(), amplitude, |_| ()).unwrap().text;
            assert!(followed.starts_with("Conclusive: "), "{advice} {followed}");
        }
    }

    #[test]
    fn nothing_is_concluded_from_a_contended_sweep() {
        let design = Design { repeat: 8.try_into().unwrap(), ..square_design(6) };
        let mut runs = records(&design, |cell, repeat| 1e6 * noise(cell, repeat, 0.01));
        let quiet = findings_of_runs(&design, &runs, super::super::findings);
        assert!(quiet.iter().any(|finding| finding.kind == FindingKind::Ridge));
        for run in &mut runs {
            waiting(run);
            run.verified = Some(false);
        }
        let found = findings_of_runs(&design, &runs, super::super::findings);
        assert!(found[0].text.starts_with("Contended, nothing is concluded: in 36 of 36 cells"));
        assert_eq!(found[0].figures["contended_share"], 1.0);
        let kinds: Vec<_> = found.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::Contended, FindingKind::Verified], "wrong bytes are facts");
    }

    #[test]
    fn one_run_of_a_cell_has_no_precision() {
        assert_eq!(found(1, 0.01, |_| ()), None);
    }
}
