//! The floor: the processor time that the data of a transfer take without a protocol.
//!
//! The bytes of each segment are checksummed at both ends, and copied as often as a stack with the
//! same application interface must copy them. A stack that copies and checksums in software can
//! therefore not take less time.

use crate::contender::{Contender, Run, Taken};
use crate::pattern::Pattern;
use crate::stopwatch::Stopwatch;
use crate::work::{BATCH, BUFFER, PIECE, SEGMENT, Work};
use linerate_wire::checksum::copy_and_sum;
use std::hint::black_box;

/// Length of the Ethernet, IP and TCP headers in front of the data, in bytes.
const HEADERS: usize = 54;
/// Number of data bytes in a segment.
const LENGTH: usize = SEGMENT as usize;

/// The floor as a contender.
pub struct Floor;

impl Contender for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn version(&self) -> String {
        "linerate's own copy and sum (AVX-512 or AVX2 where the processor has it)".to_owned()
    }

    fn can(&self, work: Work) -> bool {
        matches!(work, Work::Bulk | Work::BulkAcks | Work::BulkBatch | Work::BulkInPlace)
    }

    fn run(&mut self, run: Run) -> Result<Taken, String> {
        Ok(Memory::new().carry(run.work, run.amount))
    }
}

/// The buffers of a transfer, in the order in which the data pass through them.
struct Memory {
    written: Pattern,
    send_buffer: Vec<u8>,
    frames: Vec<u8>,
    receive_buffer: Vec<u8>,
    read: Vec<u8>,
}

impl Memory {
    fn new() -> Self {
        Self {
            written: Pattern::new(),
            send_buffer: vec![0; BUFFER],
            frames: vec![0; BATCH * (HEADERS + LENGTH)],
            receive_buffer: vec![0; BUFFER],
            read: vec![0; PIECE],
        }
    }

    /// Moves `amount` segments in batches, in the order in which a stack does. All frames of a
    /// batch are filled from the send buffer before the first of them is received. The send buffer
    /// therefore contains the data of a whole batch.
    fn carry(&mut self, work: Work, amount: u64) -> Taken {
        let stopwatch = Stopwatch::start();
        let (mut done, mut place) = (0, 0);
        while done < amount {
            let batch = BATCH.min((amount - done) as usize);
            if place + batch * LENGTH > BUFFER {
                place = 0;
            }
            let whole = place..place + batch * LENGTH;
            if work != Work::BulkInPlace {
                for at in whole.clone().step_by(PIECE) {
                    let length = PIECE.min(whole.end - at);
                    self.send_buffer[at..at + length]
                        .copy_from_slice(self.written.at(at as u64, length as u64));
                }
            }
            for (index, at) in whole.clone().step_by(LENGTH).enumerate() {
                let frame = &mut self.frames[index * (HEADERS + LENGTH) + HEADERS..][..LENGTH];
                black_box(copy_and_sum(&self.send_buffer[at..at + LENGTH], frame));
            }
            for (index, at) in whole.clone().step_by(LENGTH).enumerate() {
                let frame = &self.frames[index * (HEADERS + LENGTH) + HEADERS..][..LENGTH];
                black_box(copy_and_sum(frame, &mut self.receive_buffer[at..at + LENGTH]));
            }
            if work != Work::BulkInPlace {
                for at in whole.clone().step_by(PIECE) {
                    let length = PIECE.min(whole.end - at);
                    self.read[..length].copy_from_slice(&self.receive_buffer[at..at + length]);
                }
                black_box(&mut self.read);
            }
            black_box(&mut self.receive_buffer);
            (done, place) = (done + batch as u64, whole.end);
        }
        Taken::new(stopwatch.elapsed(), amount, [amount, 0])
    }
}
