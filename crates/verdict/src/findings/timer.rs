//! Findings about slow cells, and about the expired timers of the whole sweep. A slow cell waits
//! for a timer, or is slow for another reason that does not affect its neighbours in the table.

use crate::finding::{Finding, FindingKind};
use crate::sweep::Sweep;
use crate::table::CellSummary;
use linerate_evidence::BufferSize;
use linerate_evidence::Cell;
use linerate_evidence::names;
use linerate_evidence::notation;
use linerate_evidence::stats::as_f64;
use linerate_units::Duration;

/// Names of the counters of expired timers, each with the noun for one expiration.
const TIMERS: [(&str, &str); 4] = [
    (names::RETRANSMISSION_TIMEOUTS, "retransmission timeout"),
    (names::DELAYED_ACK_TIMEOUTS, "delayed-ACK timeout"),
    (names::ZERO_WINDOW_PROBES, "zero-window probe"),
    (names::SMALL_WINDOW_TIMEOUTS, "small-window timeout"),
];

/// Ratio of a cell's rate to the rate of its fastest neighbour, below which the cell is slow. A
/// cell with half the buffer may have half the rate, and is not slow. If the neighbour has a larger
/// buffer, its rate is therefore first reduced in proportion to the buffer sizes.
const PART: f64 = 0.1;

/// Minimum share of the total duration of a cell's runs that its expired timers must explain. With
/// a smaller share, they are not named as the limit of the cell. Each timer is assumed to have run
/// for its maximum duration.
const SHARE: f64 = 0.5;

/// Timers with a short maximum duration: the name of the counter and the duration in seconds. They
/// are the timers of delayed ACKs (RFC 9293 §3.8.6.3) and of silly window avoidance (RFC 1122
/// §4.2.3.4).
const SHORT: [(&str, f64); 2] =
    [(names::DELAYED_ACK_TIMEOUTS, 0.5), (names::SMALL_WINDOW_TIMEOUTS, 1.0)];
/// Assumed maximum duration, in seconds, of all timers that are not in `SHORT`.
const LONG: f64 = 60.0;

/// Counters of other events that may explain why a cell is slow, each with the noun for one event.
const CAUSES: [(&str, &str); 5] = [
    (names::ZERO_WINDOWS_RECEIVED, "announcement of a closed window"),
    (names::RETRANSMITTED_SEGMENTS, "retransmission"),
    (names::DROPPED_FRAMES, "dropped frame"),
    (names::SOCKET_DROPS, "socket drop"),
    (names::BAD_CHECKSUMS, "bad checksum"),
];

pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let compared: Vec<Compared<'_>> =
        sweep.table.iter().filter_map(|cell| compare(sweep, cell)).collect();
    let limited = compared.iter().filter(|cell| cell.part * cell.larger < PART);
    let mut findings: Vec<Finding> = limited.map(|cell| cell.finding(sweep)).collect();
    if findings.is_empty() {
        let least = compared.iter().min_by(|one, other| one.part.total_cmp(&other.part));
        findings.extend(least.map(|least| least.harmless(sweep)));
    }
    findings.extend(timers(sweep));
    findings
}

/// The comparison of a cell with the fastest of its neighbours in the table.
struct Compared<'a> {
    cell: &'a CellSummary<'a>,
    /// The fastest of the cell's neighbours in the table.
    neighbour: &'a CellSummary<'a>,
    /// The cell's median rate divided by the neighbour's median rate.
    part: f64,
    /// Ratio of the neighbour's buffer size to the cell's buffer size, for the buffer in which the
    /// two cells differ. It is 1 if the neighbour's buffer is smaller.
    larger: f64,
}

fn compare<'a>(sweep: &'a Sweep<'a>, cell: &'a CellSummary<'a>) -> Option<Compared<'a>> {
    let neighbours = sweep.table.neighbours(cell.cell);
    let neighbour =
        neighbours.into_iter().max_by(|one, other| one.median().total_cmp(&other.median()))?;
    // If the neighbour carried no data, the ratio of the two rates is not defined.
    if neighbour.median() <= 0.0 {
        return None;
    }
    let part = cell.median() / neighbour.median();
    let times = |of: fn(Cell) -> BufferSize| {
        as_f64(of(neighbour.cell).bytes(1)) / as_f64(of(cell.cell).bytes(1))
    };
    let larger = times(|cell| cell.send).max(times(|cell| cell.receive));
    Some(Compared { cell, neighbour, part, larger })
}

impl Compared<'_> {
    /// Returns the finding that the cell is slow, with the cause that its counters show.
    fn finding(&self, sweep: &Sweep<'_>) -> Finding {
        let share = if self.part > 0.0 {
            format!("reaches 1/{} of", notation::thousands(1.0 / self.part))
        } else {
            "carries nothing, unlike".to_owned()
        };
        let text = format!(
            "{} {share} {}: {}.",
            notation::cell(self.cell.cell),
            notation::cell(self.neighbour.cell),
            limit(self.cell, sweep.start.facts.bench.segment_payload),
        );
        self.noted(sweep, Finding::new(FindingKind::Limited, text))
    }

    /// Returns the finding that no cell of the sweep is slow. Must be called on the cell with the
    /// lowest rate relative to its fastest neighbour, because the finding names it as an example.
    fn harmless(&self, sweep: &Sweep<'_>) -> Finding {
        let proportion = if self.part < PART { ", in proportion to the buffers" } else { "" };
        let text = format!(
            "No cell waits for a timer: each reaches at least a tenth of the best of its \
             neighbours{proportion}; the \
             least is {} of {} at {}.",
            notation::percent(self.part),
            notation::cell(self.neighbour.cell),
            notation::cell(self.cell.cell),
        );
        self.noted(sweep, Finding::new(FindingKind::Limited, text))
    }

    fn noted(&self, sweep: &Sweep<'_>, finding: Finding) -> Finding {
        let payload = sweep.start.facts.bench.segment_payload;
        let mut finding =
            finding.about([self.cell.cell, self.neighbour.cell], payload).with("part", self.part);
        for (name, _) in TIMERS.iter().chain(&CAUSES) {
            if let Some(amount) = self.cell.counted(name) {
                finding = finding.with(name, as_f64(amount));
            }
        }
        finding
    }
}

/// Describes why a cell is slow, as far as its counters show a cause.
fn limit(cell: &CellSummary<'_>, payload: u32) -> String {
    let pace = format!("a packet takes {}", time_of_a_packet(cell, payload));
    let timers = events(cell, &TIMERS);
    let causes = events(cell, &CAUSES);
    let went_off = !timers.is_empty();
    let evidence: Vec<String> = timers.into_iter().chain(causes).collect();
    if evidence.is_empty() {
        return format!("no counter says why, {pace}");
    }
    let verdict = match (went_off, timers_may_limit(cell)) {
        (true, true) => "a timer limits it,",
        (true, false) => "its timers went off too seldom to limit it:",
        (false, _) => "no timer went off, but",
    };
    let runs = notation::plural(cell.runs.len() as u64, "run");
    format!("{verdict} {} in {runs}, {pace}", evidence.join(", "))
}

/// Can the expired timers explain at least [`SHARE`] of the total duration of a cell's runs? Each
/// expired timer is assumed to have run for its maximum duration.
fn timers_may_limit(cell: &CellSummary<'_>) -> bool {
    let longest =
        |name: &str| SHORT.iter().find(|(short, _)| *short == name).map_or(LONG, |&(_, time)| time);
    let waits =
        TIMERS.iter().map(|(name, _)| as_f64(cell.counted(name).unwrap_or(0)) * longest(name));
    waits.sum::<f64>() >= SHARE * cell.runs.iter().map(|run| run.seconds).sum::<f64>()
}

/// Returns the mean time that a full segment of `payload` bytes took in the runs of a cell.
fn time_of_a_packet(cell: &CellSummary<'_>, payload: u32) -> Duration {
    let seconds = cell.runs.iter().map(|run| run.seconds).sum::<f64>();
    let bytes = cell.runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.bytes));
    let packets = bytes / u64::from(payload.max(1));
    let each = std::time::Duration::try_from_secs_f64(seconds / as_f64(packets.max(1)));
    each.map_or(Duration::MAX, Duration::from)
}

/// Formats the events that a cell's counters have counted, such as `3 retransmissions`. `kinds`
/// lists the counters with the noun for one event. Counters that are 0 are omitted.
fn events(cell: &CellSummary<'_>, kinds: &[(&str, &str)]) -> Vec<String> {
    let happened = kinds.iter().filter_map(|&(name, noun)| {
        let amount = cell.counted(name).filter(|&amount| amount > 0)?;
        Some(plural_of_noun(amount, noun))
    });
    happened.collect()
}

/// Formats a count with its noun in the singular or plural. In a noun such as
/// `announcement of a closed window`, only the word before `of` gets an `s`.
fn plural_of_noun(amount: u64, noun: &str) -> String {
    match noun.split_once(" of ") {
        Some((head, rest)) => format!("{} of {rest}", notation::plural(amount, head)),
        None => notation::plural(amount, noun),
    }
}

/// Returns the finding about the timers that expired in the whole sweep; `None` if no run counted
/// expired timers.
fn timers(sweep: &Sweep<'_>) -> Option<Finding> {
    let sum = |name: &str| {
        let cells = sweep.table.iter().filter_map(|cell| cell.counted(name));
        cells.reduce(u64::saturating_add)
    };
    let counted: Vec<(&str, &str, u64)> =
        TIMERS.iter().filter_map(|&(name, noun)| Some((name, noun, sum(name)?))).collect();
    if counted.is_empty() {
        return None;
    }
    let busy = |cell: &&CellSummary<'_>| !events(cell, &TIMERS).is_empty();
    let cells = sweep.table.iter().filter(busy).count() as u64;
    let list: Vec<String> = counted
        .iter()
        .filter(|(.., amount)| *amount > 0)
        .map(|&(_, noun, amount)| plural_of_noun(amount, noun))
        .collect();
    let text = if list.is_empty() {
        "No retransmission, delayed-ACK or persist timer went off in any run.".to_owned()
    } else {
        let runs = notation::plural(sweep.runs.len() as u64, "run");
        format!(
            "Timers went off in {}: {} in {runs}.",
            notation::plural(cells, "cell"),
            list.join(", ")
        )
    };
    let finding = Finding::new(FindingKind::Timers, text);
    Some(
        counted
            .iter()
            .fold(finding, |finding, &(name, _, amount)| finding.with(name, as_f64(amount))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_findings::{findings_of, findings_of_runs};
    use linerate_evidence::Design;
    use linerate_evidence::RunRecord;
    use linerate_evidence::sample_data::{records, square_design};

    fn is_slow(cell: Cell) -> bool {
        cell.send.packets() == Some(1) && cell.receive.packets() == Some(3)
    }

    fn with_a_slow_cell(cell: Cell, _: u32) -> f64 {
        if is_slow(cell) { 36_500.0 } else { 1e9 }
    }

    #[test]
    fn a_timer_limited_cell_is_reported_with_its_timer() {
        let design = square_design(3);
        let mut runs = records(&design, with_a_slow_cell);
        for run in &mut runs {
            let slow = run.send_buffer.packets == Some(1) && run.receive_buffer.packets == Some(3);
            run.counters.receiver.set(names::DELAYED_ACK_TIMEOUTS, if slow { 5_746 } else { 0 });
            run.counters.sender.set(names::RETRANSMISSION_TIMEOUTS, 0);
            run.counters.sender.set(names::DROPPED_FRAMES, 0);
        }
        let found = findings_of_runs(&design, &runs, findings);
        assert_eq!(
            found[0].text,
            "1 × 3 packets reaches 1/27,397 of 2 × 3 packets: a timer limits it, 22,984 \
             delayed-ACK timeouts in 4 runs, \
             a packet takes 39.7 ms."
        );
        assert_eq!(
            found[1].text,
            "Timers went off in 1 cell: 22,984 delayed-ACK timeouts in 36 runs."
        );
        assert_eq!(found[0].figures[names::DELAYED_ACK_TIMEOUTS], 22_984.0);
        assert_eq!(found[0].figures[names::DROPPED_FRAMES], 0.0);
    }

    #[test]
    fn a_slow_cell_without_counters_is_reported() {
        let found = findings_of(3, with_a_slow_cell, findings);
        assert!(found[0].text.contains("no counter says why, a packet takes"), "{}", found[0].text);
    }

    #[test]
    fn a_cell_that_carries_nothing_is_reported_as_such() {
        let design = square_design(3);
        let mut runs = records(&design, |_, _| 1e9);
        for run in &mut runs {
            if run.send_buffer.packets == Some(1) && run.receive_buffer.packets == Some(3) {
                (run.bytes, run.bytes_per_second) = (0, 0.0);
            }
        }
        let text = &findings_of_runs(&design, &runs, findings)[0].text;
        let says = "1 × 3 packets carries nothing, unlike ";
        assert!(text.starts_with(says) && !text.contains("1/"), "{text}");
        for run in &mut runs {
            (run.bytes, run.bytes_per_second) = (0, 0.0);
        }
        let found = findings_of_runs(&design, &runs, findings);
        assert!(found.is_empty(), "there is nothing to compare with: {found:?}");
    }

    #[test]
    fn a_single_timeout_does_not_limit_a_long_run() {
        let design = square_design(3);
        let mut runs = records(&design, with_a_slow_cell);
        for run in &mut runs {
            run.counters.receiver.set(names::DELAYED_ACK_TIMEOUTS, 1);
        }
        let seldom = &findings_of_runs(&design, &runs, findings)[0].text;
        let says = "its timers went off too seldom to limit it: 4 delayed-ACK timeouts in 4 \
                    runs, a packet takes";
        assert!(seldom.contains(says), "{seldom}");
        for run in &mut runs {
            run.counters.sender.set(names::RETRANSMISSION_TIMEOUTS, 2);
        }
        let may = &findings_of_runs(&design, &runs, findings)[0].text;
        assert!(
            may.contains("a timer limits it, 8 retransmission timeouts, 4 delayed-ACK timeouts"),
            "{may}"
        );
    }

    #[test]
    fn a_smaller_buffer_may_carry_proportionally_less() {
        let mut design = Design::of_1988();
        design.send_buffers = "4KiB,64KiB,1MiB".parse().unwrap();
        design.receive_buffers = design.send_buffers.clone();
        let rate = |cell: Cell, _| 100.0 * as_f64(cell.send.min(cell.receive).bytes(1));
        let text = |runs: &[RunRecord]| findings_of_runs(&design, runs, findings).remove(0).text;
        let mut runs = records(&design, rate);
        let harmless = text(&runs);
        assert!(harmless.starts_with("No cell waits for a timer"), "{harmless}");
        assert!(
            harmless.contains("in proportion to the buffers; the least is 6.2 % of"),
            "{harmless}"
        );
        for run in runs.iter_mut().filter(|run| run.send_buffer.requested_bytes == 4 << 10) {
            run.bytes_per_second /= 20.0;
        }
        let limited = text(&runs);
        assert!(
            limited.starts_with("4 KiB × 64 KiB reaches 1/320 of 64 KiB × 64 KiB: "),
            "{limited}"
        );
    }

    #[test]
    fn a_table_without_slow_cells_is_reported_as_such() {
        let found = findings_of(3, |cell, _| 1e6 * as_f64(cell.receive.bytes(1)).powi(3), findings);
        assert!(found[0].text.starts_with("No cell waits for a timer"), "{}", found[0].text);
        assert!(
            found[0].text.contains("the least is 12 % of 1 × 2 packets at 1 × 1 packets"),
            "{}",
            found[0].text
        );
    }
}
