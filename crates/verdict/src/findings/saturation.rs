//! The finding about saturation: the buffer size at which throughput saturates. If the buffers at
//! both ends are made larger than this size, throughput rises hardly or not at all.

use crate::finding::{Finding, FindingKind};
use crate::log_ratio::logarithm;
use crate::sweep::Sweep;
use crate::table::CellSummary;
use linerate_evidence::notation;
use linerate_evidence::stats::interval;

/// Minimum ratio of two rates that counts as a gain.
const GAIN: f64 = 1.05;

/// Minimum number of cells on the diagonal of the table for saturation to be recognised.
const FEWEST: usize = 3;

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let diagonal = sweep.table.diagonal();
    let seed = sweep.design.seed;
    if diagonal.len() < FEWEST {
        return Vec::new();
    }
    let enough = (0..diagonal.len() - 1).find(|&index| {
        diagonal[index + 1..].iter().all(|larger| !gains(larger, diagonal[index], seed))
    });
    let payload = sweep.start.facts.bench.segment_payload;
    let finding = match enough.map(|index| diagonal[index]) {
        Some(cell) => Finding::new(FindingKind::Saturation, saturated(cell, &diagonal))
            .about([cell.cell], payload),
        None => Finding::new(FindingKind::Saturation, unsaturated(&diagonal)),
    };
    vec![finding]
}

fn saturated(cell: &CellSummary<'_>, diagonal: &[&CellSummary<'_>]) -> String {
    let higher = |other: &&&CellSummary<'_>| {
        other.cell.send > cell.cell.send && other.median() > cell.median() * GAIN
    };
    let reserve = match diagonal.iter().find(higher) {
        Some(_) => " by more than chance would",
        None => "",
    };
    format!(
        "With equal buffers, throughput saturates at {}, {} KB/s: no larger buffer gains more \
         than 5 %{reserve}.",
        notation::buffer(cell.cell.send),
        notation::kilobytes(cell.median()),
    )
}

fn unsaturated(diagonal: &[&CellSummary<'_>]) -> String {
    let last = diagonal[diagonal.len() - 1];
    format!(
        "With equal buffers, throughput does not saturate: even {}, the largest, gain more than 5 \
         % over the size before.",
        notation::buffer(last.cell.send),
    )
}

/// Is the cell `larger` faster than the cell `smaller` by more than 5 % and by more than chance?
fn gains(larger: &CellSummary<'_>, smaller: &CellSummary<'_>, seed: u64) -> bool {
    let ratio = |medians: &[f64]| logarithm(medians[0]) - logarithm(medians[1]);
    larger.median() > smaller.median() * GAIN
        && interval(&[&larger.rates, &smaller.rates], seed, ratio).is_above(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of;
    use linerate_evidence::Cell;
    use linerate_evidence::sample_data::noise;
    use linerate_evidence::stats::as_f64;

    fn of_diagonal(rate: impl Fn(f64) -> f64) -> String {
        let noisy = |cell: Cell, repeat| {
            let smaller = cell.send.min(cell.receive).packets().unwrap();
            rate(f64::from(smaller)) * noise(cell, repeat, 0.02)
        };
        findings_of(8, noisy, findings).remove(0).text
    }

    #[test]
    fn the_knee_of_the_diagonal_is_found() {
        let text = of_diagonal(|packets| 1_024_000.0 * packets.min(4.0));
        assert!(
            text.starts_with("With equal buffers, throughput saturates at 4 packets, 4,018 KB/s"),
            "{text}"
        );
    }

    #[test]
    fn a_diagonal_that_still_rises_has_no_knee() {
        let text = of_diagonal(|packets| 1e6 * packets);
        assert!(text.contains("does not saturate: even 8 packets"), "{text}");
    }

    #[test]
    fn an_insignificant_gain_does_not_move_the_knee() {
        let rate = |cell: Cell, repeat: u32| {
            let smaller = as_f64(cell.send.min(cell.receive).bytes(1));
            let lucky = smaller == 7.0 && repeat > 1;
            1e6 * smaller.min(4.0) * if lucky { 1.5 } else { noise(cell, repeat, 0.01) }
        };
        let text = findings_of(8, rate, findings).remove(0).text;
        assert!(
            text.starts_with("With equal buffers, throughput saturates at 4 packets"),
            "{text}"
        );
        assert!(
            text.ends_with("no larger buffer gains more than 5 % by more than chance would."),
            "{text}"
        );
        let text = of_diagonal(|packets| 1e6 * packets.min(4.0));
        assert!(text.ends_with("no larger buffer gains more than 5 %."), "{text}");
    }
}
