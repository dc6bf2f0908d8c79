//! Findings that restrict the validity of the measurement.

use crate::finding::{Finding, FindingKind};
use crate::sweep::Sweep;
use linerate_evidence::Cell;
use linerate_evidence::names;
use linerate_evidence::notation;
use linerate_evidence::stats::{FEWEST_RESAMPLED, as_f64};
use linerate_evidence::{BufferRecord, RunRecord};
use std::collections::BTreeSet;

/// Minimum number of runs with which the range of a cell's measured rates is a 95 % interval. With
/// six runs, this range contains the true median in more than 95 % of the cases: 1 − 2·2⁻⁶.
const ENOUGH_RUNS: u32 = 6;

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let questions: [fn(&Sweep<'_>) -> Option<Finding>; 7] =
        [cut_short, verified, damaged, granted, above_maximum, few_runs, debug_build];
    questions.iter().filter_map(|question| question(sweep)).collect()
}

fn cut_short(sweep: &Sweep<'_>) -> Option<Finding> {
    let (runs, cells) = runs_where(sweep, |run| !run.complete);
    let text = format!(
        "{} cut short after {}; their rates are taken from what had arrived.",
        was(runs),
        sweep.design.max_time,
    );
    let payload = sweep.start.facts.bench.segment_payload;
    (runs > 0).then(|| {
        Finding::new(FindingKind::CutShort, text).about(cells, payload).with("runs", as_f64(runs))
    })
}

fn verified(sweep: &Sweep<'_>) -> Option<Finding> {
    let (wrong, cells) = runs_where(sweep, |run| run.verified == Some(false));
    let payload = sweep.start.facts.bench.segment_payload;
    if wrong > 0 {
        let text = format!("WRONG BYTES arrived in {}.", notation::plural(wrong, "run"));
        let finding = Finding::new(FindingKind::Verified, text).about(cells, payload);
        return Some(finding.with("wrong_runs", as_f64(wrong)));
    }
    let (right, _) = runs_where(sweep, |run| run.verified == Some(true));
    let (unseen, _) = runs_where(sweep, |run| run.verified.is_none());
    let text = match (right, unseen) {
        (0, _) => return None,
        (_, 0) => {
            "Every byte of every run was compared with what was sent, and was right.".to_owned()
        }
        (right, unseen) => {
            format!("{} compared and right, {unseen} were not compared.", was(right))
        }
    };
    Some(Finding::new(FindingKind::Verified, text).with("wrong_runs", 0.0))
}

fn damaged(sweep: &Sweep<'_>) -> Option<Finding> {
    let bad = |run: &RunRecord| {
        let ends = [&run.counters.sender, &run.counters.receiver];
        ends.iter().any(|end| end.get(names::BAD_CHECKSUMS).is_some_and(|count| count > 0))
    };
    let (runs, cells) = runs_where(sweep, bad);
    let text =
        format!("In {} segments arrived with a wrong checksum.", notation::plural(runs, "run"));
    let payload = sweep.start.facts.bench.segment_payload;
    (runs > 0).then(|| {
        Finding::new(FindingKind::Caution, text).about(cells, payload).with("runs", as_f64(runs))
    })
}

fn granted(sweep: &Sweep<'_>) -> Option<Finding> {
    let differs = |buffer: &BufferRecord| buffer.granted_bytes != buffer.requested_bytes;
    let doubled = |buffer: &BufferRecord| buffer.granted_bytes == buffer.requested_bytes * 2;
    let (runs, cells) =
        runs_where(sweep, |run| differs(&run.send_buffer) || differs(&run.receive_buffer));
    let buffers = || sweep.runs.iter().flat_map(|run| [run.send_buffer, run.receive_buffer]);
    let other = buffers().find(|buffer| differs(buffer) && !doubled(buffer));
    let text = match (other, buffers().any(|buffer| doubled(&buffer))) {
        (Some(other), _) => format!(
            "In {} a buffer was granted that is not the one asked for, for instance {} bytes \
             instead of {}.",
            notation::plural(runs, "run"),
            notation::count(other.granted_bytes),
            notation::count(other.requested_bytes),
        ),
        (None, true) => {
            "The kernel grants twice the buffer that is asked for, and counts its own overhead \
             against it."
                .to_owned()
        }
        (None, false) => return None,
    };
    let payload = sweep.start.facts.bench.segment_payload;
    let cells = if other.is_some() { cells } else { BTreeSet::new() };
    Some(Finding::new(FindingKind::Granted, text).about(cells, payload).with("runs", as_f64(runs)))
}

fn above_maximum(sweep: &Sweep<'_>) -> Option<Finding> {
    let maximum = sweep.start.maximum.bytes_per_second()?;
    let above = sweep.table.iter().filter(|cell| cell.interval.is_above(maximum)).count() as u64;
    let text = format!(
        "{} significantly above the maximum: it is not the limit that it is taken for, or was \
         measured in a worse \
         hour.",
        if above == 1 { "1 cell is".to_owned() } else { format!("{above} cells are") },
    );
    (above > 0).then(|| {
        Finding::new(FindingKind::Caution, text).with("cells_above_maximum", as_f64(above))
    })
}

fn few_runs(sweep: &Sweep<'_>) -> Option<Finding> {
    let repeat = sweep.design.repeat.get();
    let cells = || sweep.table.iter();
    let few = cells().filter(|cell| !cell.rates.is_resampled()).count();
    let text = if few > 0 {
        format!(
            "{few} of {} have fewer than {FEWEST_RESAMPLED} runs: their intervals assume that \
             their runs scatter like those of the repeated cells, by {}.",
            notation::plural(cells().count() as u64, "cell"),
            notation::percent(sweep.table.repeat_noise()?.exp_m1()),
        )
    } else if repeat >= ENOUGH_RUNS {
        return None;
    } else if cells().all(|cell| cell.rates.values().len() < 2) {
        "With one run a cell there is no telling how sure a figure is: raise --repeat.".to_owned()
    } else {
        format!(
            "Of {repeat} runs a cell, an interval reaches at most from the smallest to the \
             largest: it covers the true median in {} of the cases, not in 95 %; --repeat \
             {ENOUGH_RUNS} is enough.",
            notation::percent(1.0 - 2.0 * 0.5_f64.powf(f64::from(repeat))),
        )
    };
    Some(Finding::new(FindingKind::Caution, text).with("repeat", f64::from(repeat)))
}

fn debug_build(sweep: &Sweep<'_>) -> Option<Finding> {
    let text = "This is a build without full optimisation: measure with `cargo run --release`.";
    let debug = sweep.start.facts.versions.debug_build;
    debug.then(|| Finding::new(FindingKind::Caution, text.to_owned()))
}

/// Returns the number of runs that meet the condition `is_true`, and the cells of these runs.
fn runs_where(sweep: &Sweep<'_>, is_true: impl Fn(&RunRecord) -> bool) -> (u64, BTreeSet<Cell>) {
    let cells: Vec<Cell> =
        sweep.runs.iter().filter(|run| is_true(run)).map(RunRecord::cell).collect();
    (cells.len() as u64, cells.into_iter().collect())
}

fn was(runs: u64) -> String {
    format!("{} {}", notation::plural(runs, "run"), if runs == 1 { "was" } else { "were" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of_runs;
    use crate::table::Table;
    use linerate_evidence::Design;
    use linerate_evidence::sample_data::{noise, records, small_design, square_design, start};

    /// Returns the findings about a made-up sweep of eight runs, of which `change` has modified the
    /// first run and the next `others` runs.
    fn of_changed(others: usize, change: impl Fn(&mut RunRecord)) -> Vec<Finding> {
        let design = small_design();
        let mut runs = records(&design, |_, _| 1e6);
        runs[..=others].iter_mut().for_each(change);
        findings_of_runs(&design, &runs, findings)
    }

    fn texts(change: impl Fn(&mut RunRecord)) -> Vec<String> {
        of_changed(0, change).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn runs_that_were_cut_short_are_counted() {
        let texts = texts(|run| run.complete = false);
        assert_eq!(
            texts[0],
            "1 run was cut short after 10.00 s; their rates are taken from what had arrived."
        );
        let found = of_changed(2, |run| run.complete = false);
        assert!(found[0].text.starts_with("3 runs were cut short"), "{}", found[0].text);
    }

    #[test]
    fn wrong_bytes_are_reported() {
        let texts = texts(|run| run.verified = Some(false));
        assert_eq!(texts[0], "WRONG BYTES arrived in 1 run.");
    }

    #[test]
    fn unverified_runs_are_not_called_right() {
        let right = |run: &mut RunRecord| run.verified = Some(true);
        assert_eq!(
            of_changed(7, right)[0].text,
            "Every byte of every run was compared with what was sent, and was right."
        );
        assert_eq!(
            of_changed(1, right)[0].text,
            "2 runs were compared and right, 6 were not compared."
        );
        assert!(of_changed(0, |_| ()).iter().all(|finding| finding.kind != FindingKind::Verified));
    }

    #[test]
    fn a_clipped_buffer_is_reported_with_its_cell() {
        for change in [
            |run: &mut RunRecord| run.send_buffer.granted_bytes = 1_000,
            |run: &mut RunRecord| run.receive_buffer.granted_bytes = 1_000,
        ] {
            let found = of_changed(0, change).remove(0);
            assert!(
                found.text.starts_with("In 1 run a buffer")
                    && found.text.contains("1,000 bytes instead of ")
            );
            assert_eq!(found.cells.len(), 1, "{found:?}");
        }
    }

    #[test]
    fn cells_above_the_maximum_are_reported() {
        let design = small_design();
        let above = |rate: fn(Cell, u32) -> f64| {
            let found = findings_of_runs(&design, &records(&design, rate), findings);
            found
                .into_iter()
                .map(|finding| finding.text)
                .find(|text| text.contains("above the maximum"))
        };
        // The maximum of the made-up sweep is the throughput of the floor, about 10.6 GB/s. Cells
        // of 10 GB/s are below it, and cells of 20 GB/s are above it.
        assert_eq!(above(|_, _| 1e10), None);
        assert_eq!(above(|_, repeat| if repeat == 0 { 1e10 } else { 2e10 }), None, "by chance");
        let one = above(
            |cell, _| if cell.send.bytes(1) + cell.receive.bytes(1) == 2 { 2e10 } else { 1e10 },
        );
        assert!(one.unwrap().starts_with("1 cell is significantly above the maximum"));
        assert!(
            above(|_, _| 2e10).unwrap().starts_with("4 cells are significantly above the maximum")
        );
    }

    #[test]
    fn the_doubling_of_the_kernel_is_explained() {
        let texts = texts(|run| run.send_buffer.granted_bytes *= 2);
        assert!(texts[0].starts_with("The kernel grants twice the buffer"), "{}", texts[0]);
    }

    #[test]
    fn damaged_segments_are_reported() {
        let texts = texts(|run| run.counters.receiver.set(names::BAD_CHECKSUMS, 2));
        assert_eq!(texts[0], "In 1 run segments arrived with a wrong checksum.");
        let found = of_changed(1, |run| run.counters.sender.set(names::BAD_CHECKSUMS, 1));
        assert_eq!(found[0].text, "In 2 runs segments arrived with a wrong checksum.");
    }

    #[test]
    fn only_a_build_without_optimisation_is_reported() {
        let (design, mut start) = (small_design(), start());
        let runs = records(&design, |_, _| 1e6);
        let table = Table::new(&design, &runs);
        for debug_build in [true, false] {
            start.facts.versions.debug_build = debug_build;
            let found =
                findings(&Sweep { design: &design, start: &start, runs: &runs, table: &table });
            assert_eq!(found.iter().any(|finding| finding.text.contains("--release")), debug_build);
        }
    }

    #[test]
    fn two_runs_of_each_cell_are_reported_as_too_few() {
        let texts = texts(|_| ());
        assert!(
            texts[0].starts_with("Of 2 runs a cell") && texts[0].contains("in 50 % of"),
            "{}",
            texts[0]
        );
    }

    #[test]
    fn cells_with_few_runs_are_reported_with_the_scatter_of_repeated_cells() {
        // The design plans eight runs of each cell, which would be enough for narrow intervals.
        // However, most cells have only one run.
        let design = Design { repeat: 8.try_into().unwrap(), ..square_design(3) };
        let mut runs = records(&design, |cell, repeat| 1e6 * noise(cell, repeat, 0.1));
        // Only the first cell keeps all its runs, as may happen within a time budget.
        let first = runs[0].cell();
        let mut seen = BTreeSet::new();
        runs.retain(|run| run.cell() == first || seen.insert(run.cell()));
        let few_runs = |sweep: &Sweep<'_>| few_runs(sweep).into_iter().collect();
        let found = findings_of_runs(&design, &runs, few_runs).remove(0);
        assert!(
            found.text.starts_with("8 of 9 cells have fewer than 4 runs: ")
                && found.text.contains("of the repeated cells, by "),
            "{}",
            found.text
        );
    }
}
