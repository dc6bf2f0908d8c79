//! The bytes that wait to be sent on a serial line, paced by its rate.

use linerate_units::{Duration, Instant};
use std::collections::VecDeque;

/// Bits that the line transmits for a byte: a start bit, eight data bits and a stop bit.
pub(super) const BITS_PER_BYTE: u64 = 10;
/// Maximum time between two writes while a long packet is being sent.
const WRITE_EVERY: Duration = Duration::from_millis(20);

/// A queue of bytes that leave at the rate of the line. A byte is written at the end of its stop
/// bit, so that a packet arrives as late as on a real line.
#[derive(Debug)]
pub(super) struct LineQueue {
    baud: u32,
    bytes: VecDeque<u8>,
    /// Start of the current busy period, since which the line has not been idle.
    busy_since: Instant,
    /// Number of bytes written in the current busy period.
    written: u64,
    /// End of each packet in the queue, as a number of bytes since the start of the busy period.
    ends: VecDeque<u64>,
}

impl LineQueue {
    pub(super) fn new(baud: u32) -> Self {
        Self {
            baud,
            bytes: VecDeque::new(),
            busy_since: Instant::ZERO,
            written: 0,
            ends: VecDeque::new(),
        }
    }

    /// Returns the number of bytes in the queue.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a packet, already framed.
    pub(super) fn push(&mut self, now: Instant, packet: impl Iterator<Item = u8>) {
        if self.bytes.is_empty() {
            // All earlier bytes have been written to the device, so a new busy period of the line
            // begins: now, or when the line has transmitted those bytes. It does not begin earlier,
            // because idle time must not let the next bytes leave faster.
            self.busy_since = now.max(self.left_at(self.written));
            self.written = 0;
        }
        self.bytes.extend(packet);
        self.ends.push_back(self.written + self.bytes.len() as u64);
    }

    /// Returns bytes that are to be written now, because the line would have transmitted them by
    /// `now`. Bytes behind the wrap-around of the ring buffer are returned only by a second call.
    pub(super) fn due(&self, now: Instant) -> &[u8] {
        let elapsed = u128::from(now.since(self.busy_since).as_nanos());
        let left = elapsed * u128::from(self.baud) / u128::from(BITS_PER_BYTE * 1_000_000_000);
        let due = u64::try_from(left).unwrap_or(u64::MAX).saturating_sub(self.written);
        let (front, _) = self.bytes.as_slices();
        &front[..usize::try_from(due).unwrap_or(usize::MAX).min(front.len())]
    }

    /// Removes `count` bytes, which were written to the device.
    pub(super) fn consume(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.written += count as u64;
        while self.ends.front().is_some_and(|&end| end <= self.written) {
            self.ends.pop_front();
        }
    }

    /// Returns the time of the next write: when the line has transmitted the packet at the front,
    /// but at most [`WRITE_EVERY`] after it has transmitted the bytes written before.
    /// [`Instant::NEVER`] if the queue is empty.
    pub(super) fn next_write(&self) -> Instant {
        let Some(&end) = self.ends.front() else { return Instant::NEVER };
        let bytes = WRITE_EVERY.as_nanos() * u64::from(self.baud) / BITS_PER_BYTE / 1_000_000_000;
        self.left_at(end.min(self.written + bytes.max(1)))
    }

    /// Returns the time at which `count` bytes of the busy period have been transmitted, rounded
    /// up.
    fn left_at(&self, count: u64) -> Instant {
        let nanos = (u128::from(count) * u128::from(BITS_PER_BYTE * 1_000_000_000))
            .div_ceil(u128::from(self.baud.max(1)));
        self.busy_since + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    /// Advances the time from write to write. Returns time and length of each write.
    fn writes(queue: &mut LineQueue) -> Vec<(u64, usize)> {
        let mut writes = Vec::new();
        while queue.next_write() != Instant::NEVER {
            let now = queue.next_write();
            let count = queue.due(now).len();
            assert!(count > 0, "a write has something to write");
            queue.consume(count);
            writes.push((now.as_nanos() / 1_000, count));
        }
        writes
    }

    #[test]
    fn bytes_take_ten_bit_times_each() {
        let mut queue = LineQueue::new(2_400);
        queue.push(at(1_000_000), std::iter::repeat_n(7, 12));
        assert!(queue.due(at(1_004_000)).is_empty(), "the first byte takes 4.17 ms");
        assert_eq!(queue.due(at(1_004_167)).len(), 1);
        assert_eq!(writes(&mut queue).last(), Some(&(1_050_000, 4)), "240 bytes a second");
    }

    #[test]
    fn a_packet_is_complete_at_its_last_stop_bit() {
        let mut queue = LineQueue::new(115_200);
        queue.push(at(0), std::iter::repeat_n(7, 6));
        queue.push(at(0), std::iter::repeat_n(7, 300));
        let writes = writes(&mut queue);
        assert_eq!(writes[0], (520, 6), "the short packet does not wait for the long one");
        assert_eq!(writes.last().unwrap().0, 306 * 10_000_000 / 115_200);
    }

    #[test]
    fn an_idle_line_earns_no_credit_and_a_busy_one_loses_no_time() {
        let mut queue = LineQueue::new(9_600);
        queue.push(at(0), std::iter::repeat_n(7, 96));
        // The 96 bytes take 100 ms. Nothing is written before 60 ms, so the 57 bytes that the line
        // can transmit until then are due at once. This late write does not delay the line: with 96
        // more bytes, it is busy until 200 ms.
        assert_eq!(queue.due(at(60_000)).len(), 57);
        queue.consume(57);
        queue.push(at(60_000), std::iter::repeat_n(7, 96));
        assert_eq!(writes(&mut queue).last().unwrap().0, 200_000);
        queue.push(at(5_000_000), std::iter::repeat_n(7, 96));
        assert_eq!(writes(&mut queue).last().unwrap().0, 5_100_000);
    }
}
