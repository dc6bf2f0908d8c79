//! The finding about the factors that limit the throughput of the cells.

use crate::cell_limits::{CellLimit, cell_limits};
use crate::diagnosis::Limit;
use crate::finding::{Finding, FindingKind};
use crate::sweep::Sweep;
use linerate_evidence::notation;
use linerate_evidence::stats::as_f64;

/// Minimum share of cells that gain nothing from larger buffers, for the finding to say that
/// neither buffer limits the whole sweep.
const MOST_CELLS: f64 = 0.95;

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let (sends, receives) = (sweep.table.sends().len(), sweep.table.receives().len());
    if sweep.design.diagonal || sends < 2 || receives < 2 {
        return Vec::new();
    }
    let cells = cell_limits(sweep);
    let flat = cells.iter().filter(|cell| cell.is_flat).count();
    let groups = groups(&cells);
    let listed = |groups: &[(String, usize)]| {
        let parts = groups.iter().map(|(name, count)| format!("{name} in {count}"));
        parts.collect::<Vec<_>>().join(", ")
    };
    let count = notation::plural(cells.len() as u64, "cell");
    let text = if as_f64(flat as u64) >= MOST_CELLS * as_f64(cells.len() as u64) {
        let (_, others): (Vec<_>, Vec<_>) =
            groups.iter().cloned().partition(|(name, _)| name == NEITHER || name == NOTHING);
        let others = if others.is_empty() {
            "the counters do not single out another limit".to_owned()
        } else {
            format!("the limit is {}", listed(&others))
        };
        format!("Neither buffer matters: no larger buffer gains more than 5 %; {others}.")
    } else {
        format!("What limits the {count}: {}.", listed(&groups))
    };
    let finding = Finding::new(FindingKind::Limits, text).with("flat_cells", as_f64(flat as u64));
    vec![groups.into_iter().fold(finding, |finding, (name, count)| {
        finding.with(&name.replace([' ', '-'], "_"), as_f64(count as u64))
    })]
}

const BOTH: &str = "both buffers together";
const NEITHER: &str = "neither buffer";
const NOTHING: &str = "not-identified";

/// Returns the name of each limit with the number of cells that have it, the most frequent limit
/// first. Limits that no cell has are omitted.
fn groups(cells: &[CellLimit]) -> Vec<(String, usize)> {
    let name = |cell: &CellLimit| match (cell.limits.as_slice(), cell.is_flat) {
        ([limit], _) => limit.name(),
        ([], true) => NEITHER,
        ([], false) => NOTHING,
        (_, _) => BOTH,
    };
    let names = Limit::ALL.into_iter().map(Limit::name).filter(|&name| name != NOTHING);
    let names = names.chain([BOTH, NEITHER, NOTHING]);
    let groups =
        names.map(|wanted| (wanted, cells.iter().filter(|cell| name(cell) == wanted).count()));
    let mut groups: Vec<(String, usize)> = groups
        .filter(|&(_, count)| count > 0)
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
    groups.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::findings_of;
    use linerate_evidence::sample_data::noise;
    use linerate_evidence::{BufferSize, Cell};

    fn found(rate: impl Fn(f64, f64) -> f64) -> Finding {
        let noisy = |cell: Cell, repeat| {
            let packets = |size: BufferSize| f64::from(size.packets().unwrap());
            rate(packets(cell.send), packets(cell.receive)) * noise(cell, repeat, 0.01)
        };
        findings_of(8, noisy, findings).remove(0)
    }

    #[test]
    fn a_flat_surface_says_that_neither_buffer_matters() {
        let found = found(|_, _| 1e6);
        assert_eq!(
            found.text,
            "Neither buffer matters: no larger buffer gains more than 5 %; the counters do not \
             single out another limit."
        );
        assert_eq!(found.figures["flat_cells"], 64.0);
    }

    #[test]
    fn limits_are_counted() {
        let found = found(|send, receive| 1e6 * send.min(receive).min(4.0));
        // In this sweep, the rate grows with the smaller buffer up to four packets. In 25 cells,
        // both buffers have 4 to 8 packets, so neither buffer is the limit. In three cells, both
        // buffers are equal and have 1, 2 or 3 packets, so only enlarging both together helps.
        assert_eq!(found.figures["neither_buffer"], 25.0, "{}", found.text);
        assert_eq!(found.figures["both_buffers_together"], 3.0, "{}", found.text);
        assert!(found.text.starts_with("What limits the 64 cells: "), "{}", found.text);
    }
}
