//! Describes the outcome of a simulated run as text.

use linerate_evidence::notation::{self, count, plural};
use linerate_sim::{
    EgressStatistics, MachineOutcome, MediumStatistics, NicStatistics, Outcome, ProcessorOutcome,
    ProgramReport, RelayOutcome, WireOutcome,
};
use linerate_units::Span;
use std::fmt::Write;

/// Returns the outcome of a run as text. Errors of `write!` are ignored, because writing to a
/// string cannot fail.
#[must_use]
pub fn describe(outcome: &Outcome) -> String {
    let mut text = String::new();
    for program in &outcome.programs {
        describe_program(&mut text, program);
    }
    for machine in &outcome.machines {
        describe_machine(&mut text, outcome, machine);
    }
    for relay in &outcome.relays {
        describe_relay(&mut text, outcome, relay);
    }
    for wire in &outcome.wires {
        describe_wire(&mut text, outcome, wire);
    }
    describe_nics(&mut text, outcome);
    let seconds = outcome.time.as_secs_f64();
    let _ =
        writeln!(text, "\n{seconds:.3} s of the world's time, {} events", count(outcome.events));
    text
}

fn describe_program(text: &mut String, program: &ProgramReport) {
    let rate = program.bytes_per_second().map_or_else(|| "-".to_owned(), notation::kilobytes);
    let end = if program.complete { "" } else { ", not complete" };
    let _ = write!(
        text,
        "{:<24} {:>13} bytes, {rate:>8} KB/s{end}",
        program.name,
        count(program.bytes)
    );
    if let Some(tcp) = &program.tcp {
        let counted = &tcp.statistics;
        let _ = write!(
            text,
            ", {} sent again, {}, {}",
            count(counted.retransmitted_segments),
            plural(counted.retransmission_timeouts, "timeout"),
            plural(counted.delayed_ack_timeouts, "delayed acknowledgement")
        );
    }
    for &(what, number) in &program.counted {
        let _ = write!(text, ", {} {what}", count(number));
    }
    text.push('\n');
}

#[allow(clippy::cast_precision_loss, reason = "a number of processors")]
fn describe_machine(text: &mut String, outcome: &Outcome, machine: &MachineOutcome) {
    let count = machine.processors.len();
    let what = if count == 1 { "processor".to_owned() } else { format!("{count} processors") };
    let time = outcome.time.as_secs_f64() * count as f64;
    let work = work(outcome.idle(machine), machine.levels, time);
    let _ = writeln!(text, "{:<24} {what} {work}", machine.name);
    if count > 1 {
        machine
            .processors
            .iter()
            .enumerate()
            .for_each(|one| describe_processor(text, outcome, one));
    }
}

fn describe_processor(
    text: &mut String,
    outcome: &Outcome,
    (number, one): (usize, &ProcessorOutcome),
) {
    let work = work(outcome.idle_of(one), one.levels, outcome.time.as_secs_f64());
    let _ = write!(text, "{:<24} processor {number} {work}", "");
    let _ = match one.queue {
        Some(queue) => writeln!(
            text,
            "; its queue: {} frames received, {} dropped, {} sent, {} interrupts",
            count(queue.receive_packets),
            count(queue.receive_drops),
            count(queue.transmit_packets),
            count(queue.interrupts)
        ),
        None => writeln!(text, "; it serves no queue of the NIC"),
    };
}

/// Describes how a processor spent its time.
fn work(idle: f64, levels: [Span; 3], time: f64) -> String {
    let [nics, network, tasks] = levels.map(|span| notation::percent(part(span, time)));
    let idle = notation::percent(idle);
    format!("{idle} idle; {nics} for the NIC, {network} for IP and TCP, {tasks} for tasks")
}

/// Returns `span` as a fraction of `seconds` seconds, or 0 if `seconds` is 0.
pub(crate) fn part(span: Span, seconds: f64) -> f64 {
    if seconds > 0.0 { span.as_secs_f64() / seconds } else { 0.0 }
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are plenty")]
fn describe_wire(text: &mut String, outcome: &Outcome, wire: &WireOutcome) {
    let counted = &wire.counted;
    let busy = part(counted.busy, outcome.time.as_secs_f64());
    let _ = writeln!(
        text,
        "{:<24} {} frames, {} of the time in use, {} collisions, {} given up, {:.1} ms in backoff",
        wire.name,
        count(counted.frames),
        notation::percent(busy),
        count(counted.collisions),
        count(counted.given_up),
        counted.backoff.as_secs_f64() * 1e3,
    );
    let &MediumStatistics { passed, waited, longest_wait, dropped, marked, .. } = counted;
    describe_queue(
        text,
        "switch",
        &EgressStatistics { passed, waited, longest_wait, dropped, marked },
    );
    if counted.collisions > 0 {
        let met = counted.attempts.iter().enumerate().filter(|&(_, &frames)| frames > 0);
        let met: Vec<String> =
            met.map(|(times, &frames)| format!("{times}: {}", count(frames))).collect();
        let _ = writeln!(text, "{:<24} frames by collisions  {}", "", met.join("  "));
        let waited = counted.backoffs.iter().enumerate().filter(|&(_, &times)| times > 0);
        let waited: Vec<String> =
            waited.map(|(bits, &times)| format!("{}: {}", slots(bits), count(times))).collect();
        let _ = writeln!(text, "{:<24} backoffs by slots     {}", "", waited.join("  "));
    }
    if counted.discarded > 0 {
        let _ = writeln!(
            text,
            "{:<24} {} frames broken off, and not passed on",
            "",
            count(counted.discarded)
        );
    }
    if counted.impaired > 0 {
        let _ = writeln!(
            text,
            "{:<24} {} frames lost, damaged or late on the way",
            "",
            count(counted.impaired)
        );
    }
}

/// Describes a range of backoffs in slot times: all numbers that have `bits` binary digits, such as
/// 4 to 7 for three digits.
fn slots(bits: usize) -> String {
    match bits {
        0 | 1 => bits.to_string(),
        bits => format!("{} to {}", 1_u64 << (bits - 1), (1_u64 << bits) - 1),
    }
}

/// Describes the counters of a queue, if any frame passed through it.
#[allow(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are plenty")]
fn describe_queue(text: &mut String, name: &str, counted: &EgressStatistics) {
    if counted.passed > 0 {
        let mean = counted.waited.as_secs_f64() * 1e3 / counted.passed as f64;
        let longest = counted.longest_wait.as_secs_f64() * 1e3;
        let _ = writeln!(
            text,
            "{name:<24} {} passed on, {} dropped, {} marked; \
             in a queue for {mean:.2} ms on average, {longest:.2} ms at most",
            count(counted.passed),
            count(counted.dropped),
            count(counted.marked)
        );
    }
}

fn describe_relay(text: &mut String, outcome: &Outcome, relay: &RelayOutcome) {
    let busy = notation::percent(part(relay.busy, outcome.time.as_secs_f64()));
    let counted = &relay.counted;
    let _ = writeln!(
        text,
        "{:<24} processor {busy} busy; {} forwarded, {} answered, {} overrun, {} expired, \
         {} unreachable, {} too long",
        relay.name,
        count(counted.forwarded),
        count(counted.answered),
        count(counted.overrun),
        count(counted.expired),
        count(counted.unreachable),
        count(counted.too_long)
    );
    for nic in &relay.nics {
        describe_queue(text, &format!("{}/{}", relay.name, nic.name), &nic.egress);
    }
}

/// Appends the counters of all NICs. Numbers have no thousands separators, as in /proc/net/dev.
fn describe_nics(text: &mut String, outcome: &Outcome) {
    let machines = outcome.machines.iter().map(|machine| (machine.name.clone(), &machine.nic));
    let relays = outcome.relays.iter().flat_map(|relay| {
        relay.nics.iter().map(|nic| (format!("{}/{}", relay.name, nic.name), &nic.nic))
    });
    let nics: Vec<(String, &NicStatistics)> = machines.chain(relays).collect();
    let rows = nics.iter().map(|(name, nic)| {
        let figures = [
            nic.receive_bytes,
            nic.receive_packets,
            nic.receive_errors,
            nic.receive_drops,
            nic.receive_fifo,
            nic.transmit_bytes,
            nic.transmit_packets,
            nic.transmit_errors,
            nic.transmit_drops,
            nic.transmit_fifo,
            nic.collisions,
        ];
        (name.as_str(), figures.map(|figure| figure.to_string()))
    });
    let rows: Vec<_> =
        std::iter::once(("NIC", NIC_COLUMNS.map(str::to_owned))).chain(rows).collect();
    let name_width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let widths: [usize; 11] = std::array::from_fn(|column| {
        rows.iter().map(|(_, cells)| cells[column].len()).max().unwrap_or(0)
    });
    let together = |columns: &[usize]| columns.iter().map(|width| width + 1).sum::<usize>();
    let (received, sent) = widths.split_at(RECEIVED_COLUMNS);
    let _ = writeln!(
        text,
        "\n{:name_width$}{:>received$}{GAP}{:>sent$}",
        "",
        "received",
        "sent",
        received = together(received),
        sent = together(sent),
    );
    // `rows` begins with the row of column titles. All cells are right-aligned in their columns.
    for (name, cells) in &rows {
        let _ = write!(text, "{name:name_width$}");
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let gap = if column == RECEIVED_COLUMNS { GAP } else { "" };
            let _ = write!(text, "{gap} {cell:>width$}");
        }
        text.push('\n');
    }
}

/// Column titles of [`describe_nics`]: received frames first, then sent ones.
const NIC_COLUMNS: [&str; 11] = [
    "bytes", "packets", "errs", "drop", "fifo", "bytes", "packets", "errs", "drop", "fifo", "colls",
];
const RECEIVED_COLUMNS: usize = 5;
/// Space between the columns of received and of sent frames.
const GAP: &str = "   ";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load;
    use linerate_sim::{Keep, TransferOptions};

    #[test]
    fn a_run_of_no_duration_has_no_load() {
        let blueprint = load("wan-two-routers", &[]).unwrap().blueprint().unwrap();
        let options = TransferOptions { limit: Some(Span::ZERO), ..TransferOptions::default() };
        let text = describe(&blueprint.run(1, &options, Keep::default()));
        assert!(
            text.contains("\n0.000 s of the world's time") && text.contains(" 0.0 % busy"),
            "{text}"
        );
        assert!(!text.contains("NaN"), "{text}");
    }

    #[test]
    fn titles_of_nic_counters_end_where_their_columns_end() {
        let blueprint = load("wan-two-routers", &[]).unwrap().blueprint().unwrap();
        let options = TransferOptions { limit: Some(Span::ZERO), ..TransferOptions::default() };
        let text = describe(&blueprint.run(1, &options, Keep::default()));
        let mut lines = text.lines().skip_while(|line| !line.contains("packets errs"));
        let ends = |line: &str| {
            let bytes = line.as_bytes();
            (0..bytes.len())
                .filter(|&at| bytes[at] != b' ' && bytes.get(at + 1).is_none_or(|&b| b == b' '))
                .skip(1)
                .collect::<Vec<_>>()
        };
        let head = ends(lines.next().expect("a head"));
        assert_eq!(head.len(), 11, "{text}");
        let rows: Vec<_> = lines.take_while(|line| !line.is_empty()).map(ends).collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| *row == head), "{text}");
    }
}
