//! Which cell is the best one, and which others may just as well be?

use super::Evidence;
use super::finding::{Finding, FindingKind};
use crate::figures;
use crate::stats::interval;
use crate::table::CellSummary;

pub(super) fn findings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let best = evidence.table.iter().max_by(|one, other| one.median().total_cmp(&other.median()));
    best.map(|best| finding(evidence, best)).into_iter().collect()
}

fn finding(evidence: &Evidence<'_>, best: &CellSummary<'_>) -> Finding {
    let others = evidence.table.iter().filter(|other| other.cell != best.cell);
    let peers = others.filter(|other| !is_worse(other, best, evidence.plan.seed)).count() as u64;
    let of_maximum = match evidence.start.maximum.bytes_per_second() {
        Some(maximum) => format!(", {} of the maximum", figures::percent(best.median() / maximum)),
        None => String::new(),
    };
    let peers_text = match peers {
        0 => "every other cell is below it".to_owned(),
        1 => "1 other cell cannot be told from it".to_owned(),
        peers => format!("{peers} other cells cannot be told from it"),
    };
    let text = format!(
        "The best cell is {}: {} KB/s (95 %: {} … {}){of_maximum}; {peers_text}.",
        figures::cell(best.cell),
        figures::kilobytes(best.median()),
        figures::kilobytes(best.interval.low),
        figures::kilobytes(best.interval.high),
    );
    let payload = evidence.start.facts.bench.segment_payload;
    Finding::new(FindingKind::Best, text)
        .about([best.cell], payload)
        .with("median", best.median())
        .with("low", best.interval.low)
        .with("high", best.interval.high)
        .with("indistinguishable", crate::run::as_f64(peers))
}

/// Is `cell` below `best` by more than chance? Where not even the extremes overlap, it need not be
/// drawn for.
fn is_worse(cell: &CellSummary<'_>, best: &CellSummary<'_>, seed: u64) -> bool {
    let apart = cell.rates.values().len() >= 4 && cell.rates.max() < best.rates.values()[0];
    apart || interval(&[&cell.rates, &best.rates], seed, |medians| medians[0] - medians[1]).is_below(0.0)
}
