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
    pub fn new(run: &PlannedRun, request: &RunRequest, outcome: RunOutcome, facts: &BenchFacts) -> Self {
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
            wire_bits_per_second: bytes_per_second * facts.framing.bits_per_byte(facts.segment_payload),
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
            && (receive.packets().is_some() || self.receive_buffer.requested_bytes == receive.bytes(0))
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
