//! The finding about the best cell, which has the highest median rate. It also contains the number
//! of other cells that are not significantly slower.

use crate::finding::{Finding, FindingKind};
use crate::sweep::Sweep;
use crate::table::CellSummary;
use linerate_evidence::notation;
use linerate_evidence::stats::{as_f64, interval};

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let best = sweep.table.iter().max_by(|one, other| one.median().total_cmp(&other.median()));
    best.map(|best| finding(sweep, best)).into_iter().collect()
}

fn finding(sweep: &Sweep<'_>, best: &CellSummary<'_>) -> Finding {
    let others = sweep.table.iter().filter(|other| other.cell != best.cell);
    let peers = others.filter(|other| !is_worse(other, best, sweep.design.seed)).count() as u64;
    let of_maximum = match sweep.start.maximum.bytes_per_second() {
        Some(maximum) => format!(", {} of the maximum", notation::percent(best.median() / maximum)),
        None => String::new(),
    };
    let peers_text = match peers {
        0 => "every other cell is below it".to_owned(),
        1 => "1 other cell cannot be told from it".to_owned(),
        peers => format!("{peers} other cells cannot be told from it"),
    };
    let text = format!(
        "The best cell is {}: {} KB/s (95 %: {} … {}){of_maximum}; {peers_text}.",
        notation::cell(best.cell),
        notation::kilobytes(best.median()),
        notation::kilobytes(best.interval.low),
        notation::kilobytes(best.interval.high),
    );
    let payload = sweep.start.facts.bench.segment_payload;
    Finding::new(FindingKind::Best, text)
        .about([best.cell], payload)
        .with("median", best.median())
        .with("low", best.interval.low)
        .with("high", best.interval.high)
        .with("indistinguishable", as_f64(peers))
}

/// Is `cell` significantly slower than `best`? If all measured rates of `cell` are below those of
/// `best`, it is. Resampling, which takes much longer, is then not needed. This shortcut is used
/// only if both cells have enough rates for resampling.
fn is_worse(cell: &CellSummary<'_>, best: &CellSummary<'_>, seed: u64) -> bool {
    let are_resampled = cell.rates.is_resampled() && best.rates.is_resampled();
    let apart = are_resampled && cell.rates.max() < best.rates.values()[0];
    apart
        || interval(&[&cell.rates, &best.rates], seed, |medians| medians[0] - medians[1])
            .is_below(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of;
    use linerate_evidence::Cell;

    /// Returns the finding about a made-up sweep of 3 × 3 cells. `rates` returns the rates of the
    /// four runs of a cell in MB/s, from its send and receive buffer in packets.
    fn best(rates: impl Fn(u32, u32) -> [f64; 4]) -> Finding {
        let rate = |cell: Cell, repeat| {
            rates(cell.send.packets().unwrap(), cell.receive.packets().unwrap())[repeat as usize]
                * 1e6
        };
        findings_of(3, rate, findings).remove(0)
    }

    #[test]
    fn the_best_cell_has_the_highest_median() {
        let of_lucky = |lucky: f64| {
            best(move |send, receive| match (send, receive) {
                (2, 3) => [4.9, 5.0, 5.0, 5.1],
                (2, 1) => [1.0, 1.0, 1.0, lucky],
                _ => [1.0, 1.1, 1.2, 1.3],
            })
        };
        let found = of_lucky(9.0);
        assert!(found.text.starts_with("The best cell is 2 × 3 packets: "), "{}", found.text);
        assert!(found.text.ends_with("; 1 other cell cannot be told from it."), "{}", found.text);
        let found = of_lucky(1.0);
        assert!(found.text.starts_with("The best cell is 2 × 3 packets: "), "{}", found.text);
        assert!(found.text.ends_with("; every other cell is below it."), "{}", found.text);
        let [low, median, high] = ["low", "median", "high"].map(|name| found.figures[name]);
        assert!(
            low < median && median < high && (low - 4.9e6).abs() < 1e3,
            "{low} {median} {high}"
        );
    }

    #[test]
    fn indistinguishable_cells_are_counted() {
        let found = best(|send, receive| match (send, receive) {
            (2, 3) => [4.0, 5.0, 5.2, 6.0],
            (2, 2) | (3, 3) => [3.9, 4.9, 5.1, 5.9],
            _ => [1.0, 1.1, 1.2, 1.3],
        });
        assert!(found.text.ends_with("; 2 other cells cannot be told from it."), "{}", found.text);
        let found = best(|send, _| if send == 1 { [1.0; 4] } else { [2.0; 4] });
        assert_eq!(found.figures["indistinguishable"], 5.0);
    }

    #[test]
    fn the_share_of_the_maximum_is_given() {
        // Without TCP, a transfer of the made-up sweep moves 8 MiB in 790 µs. That rate is the
        // maximum, and every cell has half of it.
        let found = best(|_, _| [0.5 * 8.388_608 / 790e-6; 4]);
        assert!(found.text.contains("50 % of the maximum"), "{}", found.text);
    }
}
