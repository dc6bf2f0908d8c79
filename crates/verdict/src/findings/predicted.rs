//! The finding about cells that a sweep did not measure within its time budget, and about the
//! accuracy of their predictions.

use crate::finding::{Finding, FindingKind};
use crate::predictions::Predictions;
use crate::sweep::Sweep;
use linerate_evidence::notation;
use linerate_evidence::stats::as_f64;

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let Some(budget) = sweep.design.budget else { return Vec::new() };
    let (measured, all) = (sweep.table.iter().count() as u64, sweep.design.cell_count());
    if measured == all {
        return Vec::new();
    }
    let counted = format!(
        "{} of {} cells were measured within the budget of {budget}",
        notation::count(measured),
        notation::count(all),
    );
    let Some(predictions) = Predictions::of(sweep) else {
        let text = format!("{counted}, too few to predict the others.");
        return vec![Finding::new(FindingKind::Predicted, text)];
    };
    let model = predictions.model;
    let score = predictions.score.map_or_else(String::new, |score| {
        format!(
            " Of {} measured cells, each predicted without itself, {} are within the 95 % \
             intervals; the median error is {}.",
            score.cells,
            score.within,
            notation::percent(score.median_error)
        )
    });
    let text = format!(
        "{counted}; the others are predicted, with a capacity of {} KB/s and {:.3} ms from a byte \
         to the acknowledgement that makes room for another.{score}",
        notation::kilobytes(model.capacity),
        model.round_trip * 1e3,
    );
    vec![
        Finding::new(FindingKind::Predicted, text)
            .with("measured_cells", as_f64(measured))
            .with("predicted_cells", as_f64(all - measured)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of_runs;
    use linerate_evidence::Design;
    use linerate_evidence::sample_data::{records, square_design};
    use linerate_units::Duration;

    #[test]
    fn measured_and_predicted_cells_are_counted() {
        let budget = Some(Duration::from_secs(60));
        let design = Design { budget, ..square_design(6) };
        let rate = |packets: u32| 1e6 * f64::from(packets.min(4));
        let runs = records(&design, |cell, _| rate(cell.send.min(cell.receive).packets().unwrap()));
        let of = |count: usize| findings_of_runs(&design, &runs[..count], findings);
        assert!(of(runs.len()).is_empty());
        let few = &of(2)[0].text;
        assert!(
            few.ends_with("within the budget of 60.00 s, too few to predict the others."),
            "{few}"
        );
        let some = &of(40)[0];
        assert!(
            some.text.contains("the others are predicted, with a capacity of"),
            "{}",
            some.text
        );
        assert!(some.text.contains("each predicted without itself"), "{}", some.text);
        assert_eq!(some.figures["measured_cells"] + some.figures["predicted_cells"], 36.0);
    }
}
