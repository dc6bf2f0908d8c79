//! Which cells wait for a timer, or for something else that their neighbours do not wait for?

use super::Evidence;
use super::finding::{Finding, FindingKind, TIMERS};
use crate::bench::names;
use crate::buffers::BufferSize;
use crate::figures;
use crate::run::as_f64;
use crate::sweep::Cell;
use crate::table::CellSummary;
use linerate_units::Duration;

/// A cell waits for something that reaches less than this part of a neighbour, or, where the neighbour's buffer is
/// larger, of what it would be in proportion to the buffers: half a buffer may well carry half as much.
const PART: f64 = 0.1;

/// A timer limits a cell where it may have run for at least so much of the time.
const SHARE: f64 = 0.5;

/// Timers that run no longer than this each time, by RFC 9293 (an acknowledgement, 3.8.6.3) and by RFC 1122
/// (small segments, 4.2.3.4). Others may run for a minute.
const SHORT: [(&str, f64); 2] =
    [(names::DELAYED_ACK_TIMEOUTS, 0.5), (names::SMALL_WINDOW_TIMEOUTS, 1.0)];
const LONG: f64 = 60.0;

/// What besides timers may keep a cell back, and what a person calls an event of it.
const CAUSES: [(&str, &str); 4] = [
    (names::ZERO_WINDOWS_HEARD, "announcement of a closed window"),
    (names::RETRANSMITTED_SEGMENTS, "retransmission"),
    (names::DROPPED_FRAMES, "dropped frame"),
    (names::BAD_CHECKSUMS, "bad checksum"),
];

pub(super) fn findings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let compared: Vec<Compared<'_>> =
        evidence.table.iter().filter_map(|cell| compare(evidence, cell)).collect();
    let limited = compared.iter().filter(|cell| cell.part * cell.larger < PART);
    let mut findings: Vec<Finding> = limited.map(|cell| cell.finding(evidence)).collect();
    if findings.is_empty() {
        let least = compared.iter().min_by(|one, other| one.part.total_cmp(&other.part));
        findings.extend(least.map(|least| least.harmless(evidence)));
    }
    findings.extend(timers(evidence));
    findings
}

/// A cell beside the best of its neighbours.
struct Compared<'a> {
    cell: &'a CellSummary<'a>,
    neighbour: &'a CellSummary<'a>,
    /// The part of the neighbour's rate that it reaches.
    part: f64,
    /// How many times its buffer the neighbour's is; 1 if that is no larger.
    larger: f64,
}

fn compare<'a>(evidence: &'a Evidence<'a>, cell: &'a CellSummary<'a>) -> Option<Compared<'a>> {
    let neighbours = evidence.table.neighbours(cell.cell);
    let neighbour =
        neighbours.into_iter().max_by(|one, other| one.median().total_cmp(&other.median()))?;
    let part = cell.median() / neighbour.median().max(f64::MIN_POSITIVE);
    let times = |of: fn(Cell) -> BufferSize| {
        as_f64(of(neighbour.cell).bytes(1)) / as_f64(of(cell.cell).bytes(1))
    };
    let larger = times(|cell| cell.send).max(times(|cell| cell.receive));
    Some(Compared { cell, neighbour, part, larger })
}

impl Compared<'_> {
    /// The cell is kept back; what by?
    fn finding(&self, evidence: &Evidence<'_>) -> Finding {
        let text = format!(
            "{} reaches 1/{} of {}: {}.",
            figures::cell(self.cell.cell),
            figures::thousands(1.0 / self.part.max(f64::MIN_POSITIVE)),
            figures::cell(self.neighbour.cell),
            limit(self.cell, evidence.start.facts.bench.segment_payload),
        );
        self.noted(evidence, Finding::new(FindingKind::Limited, text))
    }

    /// No cell is kept back, and this is the one that comes closest to it.
    fn harmless(&self, evidence: &Evidence<'_>) -> Finding {
        let proportion = if self.part < PART { ", in proportion to the buffers" } else { "" };
        let text = format!(
            "No cell waits for a timer: each reaches at least a tenth of the best of its neighbours{proportion}; the \
             least is {} of {} at {}.",
            figures::percent(self.part),
            figures::cell(self.neighbour.cell),
            figures::cell(self.cell.cell),
        );
        self.noted(evidence, Finding::new(FindingKind::Limited, text))
    }

    fn noted(&self, evidence: &Evidence<'_>, finding: Finding) -> Finding {
        let payload = evidence.start.facts.bench.segment_payload;
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

/// What the counters of a slow cell say about it.
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
    let runs = figures::plural(cell.runs.len() as u64, "run");
    format!("{verdict} {} in {runs}, {pace}", evidence.join(", "))
}

/// May timers have run for most of a cell's time?
fn timers_may_limit(cell: &CellSummary<'_>) -> bool {
    let longest =
        |name: &str| SHORT.iter().find(|(short, _)| *short == name).map_or(LONG, |&(_, time)| time);
    let waits =
        TIMERS.iter().map(|(name, _)| as_f64(cell.counted(name).unwrap_or(0)) * longest(name));
    waits.sum::<f64>() >= SHARE * cell.runs.iter().map(|run| run.seconds).sum::<f64>()
}

/// How long the runs took for each full segment of theirs.
fn time_of_a_packet(cell: &CellSummary<'_>, payload: u32) -> Duration {
    let seconds = cell.runs.iter().map(|run| run.seconds).sum::<f64>();
    let bytes = cell.runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.bytes));
    let packets = bytes / u64::from(payload.max(1));
    let each = std::time::Duration::try_from_secs_f64(seconds / as_f64(packets.max(1)));
    each.map_or(Duration::MAX, Duration::from)
}

/// What of `kinds` happened in a cell, in words.
fn events(cell: &CellSummary<'_>, kinds: &[(&str, &str)]) -> Vec<String> {
    let happened = kinds.iter().filter_map(|&(name, noun)| {
        let amount = cell.counted(name).filter(|&amount| amount > 0)?;
        Some(plural_of_noun(amount, noun))
    });
    happened.collect()
}

/// The plural of a noun that may have more words after it: `zero windows`, `advertisements of a …`.
fn plural_of_noun(amount: u64, noun: &str) -> String {
    match noun.split_once(" of ") {
        Some((head, rest)) => format!("{} of {rest}", figures::plural(amount, head)),
        None => figures::plural(amount, noun),
    }
}

/// Which timers went off in the whole sweep, if anybody counted them.
fn timers(evidence: &Evidence<'_>) -> Option<Finding> {
    let sum = |name: &str| {
        let cells = evidence.table.iter().filter_map(|cell| cell.counted(name));
        cells.reduce(u64::saturating_add)
    };
    let counted: Vec<(&str, &str, u64)> =
        TIMERS.iter().filter_map(|&(name, noun)| Some((name, noun, sum(name)?))).collect();
    if counted.is_empty() {
        return None;
    }
    let busy = |cell: &&CellSummary<'_>| !events(cell, &TIMERS).is_empty();
    let cells = evidence.table.iter().filter(busy).count() as u64;
    let list: Vec<String> = counted
        .iter()
        .filter(|(.., amount)| *amount > 0)
        .map(|&(_, noun, amount)| plural_of_noun(amount, noun))
        .collect();
    let text = if list.is_empty() {
        "No retransmission, delayed-ACK or persist timer went off in any run.".to_owned()
    } else {
        let runs = figures::plural(evidence.runs.len() as u64, "run");
        format!(
            "Timers went off in {}: {} in {runs}.",
            figures::plural(cells, "cell"),
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
    use crate::plan::{BenchKind, Draft, Plan};
    use crate::run::RunRecord;
    use crate::testing::{findings_of, findings_of_runs, made_up_runs, square_plan};

    fn is_slow(cell: Cell) -> bool {
        cell.send.packets() == Some(1) && cell.receive.packets() == Some(3)
    }

    fn with_a_slow_cell(cell: Cell, _: u32) -> f64 {
        if is_slow(cell) { 36_500.0 } else { 1e9 }
    }

    #[test]
    fn a_cell_that_a_timer_limits_is_named_with_the_timer() {
        let plan = square_plan(3);
        let mut runs = made_up_runs(&plan, with_a_slow_cell);
        for run in &mut runs {
            let slow = run.send_buffer.packets == Some(1) && run.receive_buffer.packets == Some(3);
            run.counters.receiver.set(names::DELAYED_ACK_TIMEOUTS, if slow { 5_746 } else { 0 });
            run.counters.sender.set(names::RETRANSMISSION_TIMEOUTS, 0);
            run.counters.sender.set(names::DROPPED_FRAMES, 0);
        }
        let found = findings_of_runs(&plan, &runs, findings);
        assert_eq!(
            found[0].text,
            "1 × 3 packets reaches 1/27,397 of 2 × 3 packets: a timer limits it, 22,984 delayed-ACK timeouts in 4 runs, \
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
    fn a_slow_cell_without_a_timer_is_named_with_what_there_is() {
        let found = findings_of(3, with_a_slow_cell, findings);
        assert!(found[0].text.contains("no counter says why, a packet takes"), "{}", found[0].text);
    }

    #[test]
    fn a_timer_that_went_off_once_does_not_limit_minutes() {
        let plan = square_plan(3);
        let mut runs = made_up_runs(&plan, with_a_slow_cell);
        for run in &mut runs {
            run.counters.receiver.set(names::DELAYED_ACK_TIMEOUTS, 1);
        }
        let seldom = &findings_of_runs(&plan, &runs, findings)[0].text;
        let says = "its timers went off too seldom to limit it: 4 delayed-ACK timeouts in 4 runs, a packet takes";
        assert!(seldom.contains(says), "{seldom}");
        for run in &mut runs {
            run.counters.sender.set(names::RETRANSMISSION_TIMEOUTS, 2);
        }
        let may = &findings_of_runs(&plan, &runs, findings)[0].text;
        assert!(
            may.contains("a timer limits it, 8 retransmission timeouts, 4 delayed-ACK timeouts"),
            "{may}"
        );
    }

    #[test]
    fn a_buffer_that_is_a_small_part_of_its_neighbour_may_carry_a_small_part() {
        let mut draft = Draft::of_1988(BenchKind::Stack);
        draft.send_buffers = "4KiB,64KiB,1MiB".parse().unwrap();
        draft.receive_buffers = draft.send_buffers.clone();
        let plan = Plan::new(draft).unwrap();
        let rate = |cell: Cell, _| 100.0 * as_f64(cell.send.min(cell.receive).bytes(1));
        let text = |runs: &[RunRecord]| findings_of_runs(&plan, runs, findings).remove(0).text;
        let mut runs = made_up_runs(&plan, rate);
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
    fn a_table_without_slow_cells_is_said_to_be_so() {
        let found = findings_of(3, |cell, _| 1e6 * as_f64(cell.receive.bytes(1)).powi(3), findings);
        assert!(found[0].text.starts_with("No cell waits for a timer"), "{}", found[0].text);
        assert!(
            found[0].text.contains("the least is 12 % of 1 × 2 packets at 1 × 1 packets"),
            "{}",
            found[0].text
        );
    }
}
