//! The engine with linerate's TCP at both ends of a serial line, which is a pseudo-terminal. The
//! two hosts have a thread each.
//!
//! The links send at the bit rate of the line, so a run takes as long as on real hardware. Each run
//! has new hosts and a new line, so that no run affects another.

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::engines::own_tcp::{Rules, WrappedLink, Wrapping};
use crate::plan::{Plan, PlanError};
use linerate_ends::Interrupt;
use linerate_evidence::{BenchFacts, EndCounters, Floor, Framing, LineRate, RunOutcome};
use linerate_link::capture_file::CaptureWriter;
use linerate_link::serial::SerialError;
use linerate_link::{OpenError, SerialConfig, SerialLink};

/// Number of bytes in the compressed header of a data packet (RFC 1144 §3.2.2). In a one-way
/// transfer, only a change mask of one byte and the TCP checksum of two bytes are sent.
const COMPRESSED_HEADER: u32 = 3;
/// Number of bytes that SLIP adds at the end of a packet (RFC 1055).
const END: u32 = 1;

/// The bench for linerate's TCP at both ends of a serial line.
#[derive(Debug)]
pub struct SerialBench {
    rules: Rules,
    /// Configuration of the line: rate, MTU, queue and header compression.
    line: SerialConfig,
    /// The impairments and the capture file with which the sender's end of the line is wrapped.
    wrapping: Wrapping,
}

impl SerialBench {
    /// Creates the bench for `plan`. If `capture` is given, all packets are written to the capture
    /// file.
    ///
    /// # Errors
    /// The plan is for another engine, names an unknown profile or congestion control, or has
    /// impossible sizes. Or the system provides no pseudo-terminal.
    pub fn new(plan: &Plan, capture: Option<CaptureWriter>) -> Result<Self, BenchError> {
        let line = plan.serial_line().ok_or(BenchError::Plan(PlanError::NoBaud))?;
        let rules = Rules::new(plan, plan.congestion.as_deref())?;
        SerialLink::pair(&line).map_err(no_line)?;
        let wrapping = Wrapping::new(rules.impairments(), capture);
        Ok(Self { rules, line, wrapping })
    }
}

/// Returns the framing of full segments on a serial line, with `options` bytes of TCP options in
/// each segment. The framing excludes SLIP's escape characters, whose number depends on the data.
pub(crate) fn framing(options: u32, header_compression: bool) -> Framing {
    let whole = Framing::ip_in_memory(options);
    let (name, headers) = match header_compression {
        true => ("SLIP with header compression", COMPRESSED_HEADER + options),
        false => ("SLIP", whole.headers),
    };
    let (name, acknowledgement) = (name.to_owned(), headers + END);
    Framing { name, headers, overhead: END, minimum: 0, acknowledgement, ..whole }
}

/// Returns the rate of data bits on a serial line of `baud`. A byte takes ten bit times, of which
/// eight are data.
pub(crate) fn line_rate(baud: u32) -> LineRate {
    let bits_per_second = u64::from(baud) * 8 / 10;
    LineRate { bits_per_second, source: format!("ten bit times a byte at {baud} baud") }
}

/// Converts an error that occurred while the line was opened to a bench error.
fn no_line(error: SerialError) -> BenchError {
    BenchError::Open(OpenError::Serial(error))
}

/// Adds the counters of the serial line to `counters`, the sender's counters.
fn note_line(link: &SerialLink, counters: &mut EndCounters) {
    let line = link.counters();
    for (name, count) in [
        ("line_packets_sent", line.sent.packets),
        ("line_bytes_sent", line.sent.line_bytes),
        ("line_headers_compressed", line.sent.compressed),
        ("line_bytes_received", line.received.line_bytes),
        ("line_errors", line.errors),
        ("line_tossed", line.tossed),
    ] {
        counters.set(name, count);
    }
}

impl Bench for SerialBench {
    fn facts(&self) -> BenchFacts {
        let SerialConfig { baud, header_compression, queue, .. } = self.line;
        let compression = if header_compression { "on" } else { "off" };
        let mut settings = self.rules.settings();
        for (name, value) in [
            ("link.header_compression", compression.to_owned()),
            ("link.queue_bytes", queue.to_string()),
        ] {
            settings.insert(name.to_owned(), value);
        }
        BenchFacts {
            description: format!(
                "linerate's TCP at both ends of a serial line of {baud} baud, over a \
                 pseudo-terminal, header compression {compression}"
            ),
            segment_payload: self.rules.payload(),
            framing: framing(self.rules.options(), header_compression),
            line_rate: Some(line_rate(baud)),
            settings,
        }
    }

    fn floor(&mut self, _: &RunRequest, _: &Interrupt) -> Result<Option<Floor>, BenchError> {
        // There is no floor, because the bit rate of the line is the theoretical maximum.
        Ok(None)
    }

    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError> {
        let [near, far] = SerialLink::pair(&self.line).map_err(no_line)?;
        let near: WrappedLink<SerialLink> = self.wrapping.wrap(near, request.seed);
        let (mut outcome, near) = self.rules.carry(near, far, request, interrupt)?;
        note_line(&self.wrapping.unwrap_link(near)?, &mut outcome.counters.sender);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::BufferRequest;
    use crate::plan::Draft;
    use linerate_evidence::names;
    use linerate_units::Duration;
    use std::num::NonZeroU32;

    fn bench(change: impl FnOnce(&mut Draft)) -> SerialBench {
        // At this high rate in baud, a run takes little real time.
        let mut draft = Draft::of_serial(NonZeroU32::new(1_000_000).unwrap());
        change(&mut draft);
        SerialBench::new(&Plan::new(draft).unwrap(), None).unwrap()
    }

    fn request(bytes: u64) -> RunRequest {
        let buffer = BufferRequest { packets: None, bytes: 2_048 };
        RunRequest {
            send_buffer: buffer,
            receive_buffer: buffer,
            bytes,
            max_time: Duration::from_secs(60),
            write_size: 1_000,
            read_size: 700,
            verify: true,
            seed: 7,
            congestion: None,
        }
    }

    #[test]
    fn all_data_crosses_a_line_with_and_without_header_compression() {
        for wanted in [true, false] {
            let mut bench = bench(|draft| draft.header_compression = Some(wanted));
            let outcome = bench.run(&request(20_480), &Interrupt::default()).unwrap();
            assert!(outcome.complete);
            assert_eq!((outcome.bytes, outcome.verified), (20_480, Some(true)));
            let sender = &outcome.counters.sender;
            let sent = sender.get("line_packets_sent").unwrap();
            let compressed = sender.get("line_headers_compressed").unwrap();
            if wanted {
                assert!(compressed * 2 > sent, "{compressed} of {sent}");
            } else {
                assert_eq!(compressed, 0);
            }
        }
    }

    #[test]
    fn all_data_arrives_over_a_bad_line() {
        let impair = "loss=3%,corrupt=2%".to_owned();
        let mut bench = bench(|draft| draft.impair = Some(impair));
        let outcome = bench.run(&request(20_480), &Interrupt::default()).unwrap();
        assert_eq!((outcome.complete, outcome.verified), (true, Some(true)));
        assert!(outcome.counters.sender.get(names::RETRANSMITTED_SEGMENTS) > Some(0));
    }

    #[test]
    fn a_full_packet_takes_ten_bit_times_a_byte() {
        let facts = bench(|_| ()).facts();
        assert_eq!(facts.segment_payload, 256);
        assert_eq!(facts.framing.on_wire(256), 260);
        assert_eq!(facts.line_rate.unwrap().bits_per_second, 800_000);
        let plain = bench(|draft| draft.header_compression = Some(false)).facts();
        // Without header compression, each segment has timestamps, which take 12 of the 256 bytes.
        assert_eq!(plain.segment_payload, 244);
        assert_eq!(plain.framing.on_wire(244), 297);
    }

    #[test]
    fn an_interrupt_ends_a_run() {
        let raised = Interrupt::default();
        raised.raise();
        let result = bench(|_| ()).run(&request(u64::MAX), &raised);
        assert!(matches!(result, Err(BenchError::Interrupted)));
    }
}
