//! The finding about epochs: slow changes of the machine's speed, which have been subtracted from
//! the rates of the runs.

use crate::finding::{Finding, FindingKind};
use crate::sweep::Sweep;
use linerate_evidence::notation;

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let Some(epochs) = sweep.table.epochs() else { return Vec::new() };
    let (before, after) = (epochs.before, epochs.after);
    let text = format!(
        "The machine changed its speed in epochs, which all cells share: a run deviated by {} from \
         its cell (correlation of successive runs {:.2}, of runs ten apart {:.2}). Rates are those \
         at the machine's mean speed; with the speed that the neighbouring runs show subtracted, a \
         run deviates by {} (correlation {:.2} and {:.2}).",
        notation::percent(before.deviation.exp_m1()),
        before.lag_1,
        before.lag_10,
        notation::percent(after.deviation.exp_m1()),
        after.lag_1,
        after.lag_10,
    );
    let finding = Finding::new(FindingKind::Epochs, text)
        .with("deviation_before", before.deviation)
        .with("lag_1_before", before.lag_1)
        .with("lag_10_before", before.lag_10)
        .with("deviation_after", after.deviation)
        .with("lag_1_after", after.lag_1)
        .with("lag_10_after", after.lag_10);
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of_runs;
    use linerate_evidence::Design;
    use linerate_evidence::sample_data::{noise, records, square_design};

    #[test]
    fn the_fit_is_reported_if_there_are_epochs() {
        let design = Design { repeat: 16.try_into().unwrap(), ..square_design(4) };
        let mut runs = records(&design, |cell, repeat| 1e6 * noise(cell, repeat, 0.01));
        assert_eq!(findings_of_runs(&design, &runs, findings), []);
        let half = runs.len() / 2;
        runs[half..].iter_mut().for_each(|run| run.bytes_per_second *= 0.5);
        let found = findings_of_runs(&design, &runs, findings).remove(0);
        assert!(found.figures["lag_1_before"] > 0.4, "{found:?}");
        assert!(found.figures["deviation_after"] < 0.02, "{found:?}");
        assert!(found.text.contains("in epochs, which all cells share"), "{}", found.text);
    }
}
