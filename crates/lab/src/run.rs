//! One run as it is kept: the line of `runs.jsonl`, and an element of `runs` in the JSON report.

use crate::bench::{BenchFacts, BufferRequest, Counters, RunOutcome, RunRequest};
use crate::sweep::{Cell, PlannedRun};
use serde::{Deserialize, Serialize};

/// What was asked for and what came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Place in the shuffled order, from 0.
    pub order: u32,
    /// Which measurement of its cell, from 0.
    pub repeat: u32,
    /// The sender's socket buffer.
    pub send_buffer: BufferRecord,
    /// The receiver's socket buffer.
    pub receive_buffer: BufferRecord,
    /// Bytes that the sink has read.
    pub bytes: u64,
    /// From the first write to the last read.
    pub seconds: f64,
    /// What one task gets to the other in a second.
    pub bytes_per_second: f64,
    /// What the wire carries for it in a second, framing included.
    pub wire_bits_per_second: f64,
    /// Did all bytes arrive within the time?
    pub complete: bool,
    /// Were they the right bytes? `None` if nobody looked.
    pub verified: Option<bool>,
    /// What both ends counted.
    pub counters: Counters,
}

/// One socket buffer: as counted in the plan, as asked for, as granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferRecord {
    /// Packets of one MSS, if the plan counts in packets.
    pub packets: Option<u32>,
    /// Bytes asked for.
    pub requested_bytes: u64,
    /// Bytes granted.
    pub granted_bytes: u64,
}

impl RunRecord {
    /// The record of a run that has been made.
    #[must_use]
    pub fn new(
        run: &PlannedRun,
        request: &RunRequest,
        outcome: RunOutcome,
        facts: &BenchFacts,
    ) -> Self {
        let seconds = outcome.time.as_secs_f64();
        let bytes_per_second = if seconds > 0.0 { as_f64(outcome.bytes) / seconds } else { 0.0 };
        Self {
            order: run.order,
            repeat: run.repeat,
            send_buffer: BufferRecord::new(request.send_buffer, outcome.send_granted),
            receive_buffer: BufferRecord::new(request.receive_buffer, outcome.receive_granted),
            bytes: outcome.bytes,
            seconds,
            bytes_per_second,
            wire_bits_per_second: bytes_per_second
                * facts.framing.bits_per_byte(facts.segment_payload),
            complete: outcome.complete,
            verified: outcome.verified,
            counters: outcome.counters,
        }
    }

    /// Is this the record of that run?
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
    const fn new(request: BufferRequest, granted_bytes: u64) -> Self {
        Self { packets: request.packets, requested_bytes: request.bytes, granted_bytes }
    }
}

/// An amount as a figure.
#[allow(clippy::cast_precision_loss, reason = "53 bits are plenty for figures that people read")]
pub(crate) const fn as_f64(amount: u64) -> f64 {
    amount as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Draft, Plan};
    use crate::sweep::schedule;
    use crate::testing::{record, small_plan};

    #[test]
    fn a_run_in_another_place_for_another_time_or_of_another_cell_is_another_run() {
        for list in ["1..2", "4KiB,8KiB"] {
            let buffers: crate::buffers::BufferList = list.parse().unwrap();
            let draft = Draft {
                send_buffers: buffers.clone(),
                receive_buffers: buffers,
                ..small_plan().into()
            };
            let runs = schedule(&Plan::new(draft).unwrap());
            let first = runs[0];
            let made = record(&first, 1e6);
            assert!(made.is_of(&first));
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
    fn what_took_no_time_has_no_rate() {
        let record = record(&schedule(&small_plan())[0], f64::INFINITY);
        assert_eq!(
            (record.seconds, record.bytes_per_second, record.wire_bits_per_second),
            (0.0, 0.0, 0.0)
        );
    }
}
