//! The stored record of one run: a line of `runs.jsonl`, and an element of `runs` in the JSON
//! report.

use crate::bench_facts::BenchFacts;
use crate::buffers::BufferSize;
use crate::cell::Cell;
use crate::counters::Counters;
use crate::run_outcome::RunOutcome;
use crate::schedule::PlannedRun;
use crate::stats::as_f64;
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroU64};

/// The parameters and the result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Position of the run in the order in which all runs are made, from 0.
    pub order: u32,
    /// Number of the run among the runs of its cell, from 0. One cell of a design may have baseline
    /// runs in addition to its ordinary runs; they have the numbers after the ordinary runs.
    pub repeat: u32,
    /// The socket buffer at the sending end.
    pub send_buffer: BufferRecord,
    /// The socket buffer at the receiving end.
    pub receive_buffer: BufferRecord,
    /// Number of bytes that the receiving program read.
    pub bytes: u64,
    /// Time from the first write until the receiving program had read the last byte, in seconds.
    pub seconds: f64,
    /// Throughput between the programs at both ends, in bytes per second; 0 if the run took no
    /// time.
    pub bytes_per_second: f64,
    /// Bit rate of the transfer on the wire in bits per second: that of its data together with the
    /// framing.
    pub wire_bits_per_second: f64,
    /// Whether all requested bytes arrived within the maximum duration of a run.
    pub complete: bool,
    /// Whether the received bytes matched the expected pattern; `None` if they were not compared.
    pub verified: Option<bool>,
    /// Counters of the sending and the receiving end.
    pub counters: Counters,
}

/// The size of a socket buffer in one run: as planned, as requested from the system, and as
/// granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferRecord {
    /// Planned size of the buffer in packets of one MSS; `None` if the plan gives the size in
    /// bytes.
    pub packets: Option<u32>,
    /// Size of the buffer that was requested from the system, in bytes.
    pub requested_bytes: u64,
    /// Size of the buffer that the system granted, in bytes. Linux reports twice the requested
    /// size, because it also counts its own overhead.
    pub granted_bytes: u64,
}

impl RunRecord {
    /// Creates the record of a completed run.
    #[must_use]
    pub fn new(run: &PlannedRun, outcome: RunOutcome, facts: &BenchFacts) -> Self {
        let payload = facts.segment_payload;
        let seconds = outcome.time.as_secs_f64();
        let bytes_per_second = if seconds > 0.0 { as_f64(outcome.bytes) / seconds } else { 0.0 };
        Self {
            order: run.order,
            repeat: run.repeat,
            send_buffer: BufferRecord::new(run.cell.send, payload, outcome.send_granted),
            receive_buffer: BufferRecord::new(run.cell.receive, payload, outcome.receive_granted),
            bytes: outcome.bytes,
            seconds,
            bytes_per_second,
            wire_bits_per_second: bytes_per_second * facts.framing.bits_per_byte(payload),
            complete: outcome.complete,
            verified: outcome.verified,
            counters: outcome.counters,
        }
    }

    /// Returns the cell to which the run belongs: its planned pair of buffer sizes.
    #[must_use]
    pub fn cell(&self) -> Cell {
        Cell { send: self.send_buffer.size(), receive: self.receive_buffer.size() }
    }

    /// Is this the record of the planned `run`? It is if position, repeat and planned buffer sizes
    /// are all equal.
    #[must_use]
    pub fn is_of(&self, run: &PlannedRun) -> bool {
        let Cell { send, receive } = run.cell;
        self.order == run.order
            && self.repeat == run.repeat
            && self.send_buffer.packets == send.packets()
            && self.receive_buffer.packets == receive.packets()
            && (send.packets().is_some() || self.send_buffer.requested_bytes == send.bytes(0))
            && (receive.packets().is_some()
                || self.receive_buffer.requested_bytes == receive.bytes(0))
    }
}

impl BufferRecord {
    fn new(size: BufferSize, payload: u32, granted_bytes: u64) -> Self {
        Self { packets: size.packets(), requested_bytes: size.bytes(payload), granted_bytes }
    }

    /// Returns the buffer size as the plan states it: in packets, or otherwise in bytes.
    fn size(&self) -> BufferSize {
        let bytes = NonZeroU64::new(self.requested_bytes).unwrap_or(NonZeroU64::MIN);
        let packets = self.packets.and_then(NonZeroU32::new);
        packets.map_or(BufferSize::Bytes(bytes), BufferSize::Packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::BufferList;
    use crate::design::Design;
    use crate::sample_data::{record, small_design};
    use crate::schedule::schedule;

    #[test]
    fn records_match_their_run_by_order_repeat_and_cell() {
        for list in ["1..2", "4KiB,8KiB"] {
            let send_buffers: BufferList = list.parse().unwrap();
            let receive_buffers = send_buffers.clone();
            let runs = schedule(&Design { send_buffers, receive_buffers, ..small_design() });
            let first = runs[0];
            let made = record(&first, 1e6);
            assert!(made.is_of(&first));
            assert_eq!(made.cell(), first.cell);
            let send =
                runs.iter().map(|run| run.cell.send).find(|&size| size != first.cell.send).unwrap();
            let receive = runs
                .iter()
                .map(|run| run.cell.receive)
                .find(|&size| size != first.cell.receive)
                .unwrap();
            for another in [
                PlannedRun { order: first.order + 1, ..first },
                PlannedRun { repeat: first.repeat + 1, ..first },
                PlannedRun { cell: Cell { send, ..first.cell }, ..first },
                PlannedRun { cell: Cell { receive, ..first.cell }, ..first },
            ] {
                assert!(!made.is_of(&another), "{another:?}");
            }
        }
    }

    #[test]
    fn a_run_without_duration_has_rate_zero() {
        let record = record(&schedule(&small_design())[0], f64::INFINITY);
        assert_eq!(
            (record.seconds, record.bytes_per_second, record.wire_bits_per_second),
            (0.0, 0.0, 0.0)
        );
    }
}
