//! The bytes that wait to be sent on a serial line, paced by its rate.

use linerate_units::{Duration, Instant};
use std::collections::VecDeque;

/// Bits that the line transmits for a byte: a start bit, eight data bits and a stop bit.
pub(super) const BITS_PER_BYTE: u64 = 10;
/// The time for which bytes of a long packet are collected before they are written together.
const WRITE_EVERY: Duration = Duration::from_millis(20);

/// A queue of bytes that are written to the device at the rate of a line. A byte is written when a
/// real line would have transmitted its stop bit, so that a packet does not arrive earlier than on
/// that line.
#[derive(Debug)]
pub(super) struct LineQueue {
    baud: u32,
    bytes: VecDeque<u8>,
    /// Start of the current busy period of the line. Since then, it has always had bytes to
    /// transmit.
    busy_since: Instant,
    /// Number of bytes written in the current busy period.
    written: u64,
    /// For each packet in the queue, the number of bytes of the busy period up to the end of that
    /// packet.
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

    /// Appends a packet, which already has the framing of SLIP.
    pub(super) fn push(&mut self, now: Instant, packet: impl Iterator<Item = u8>) {
        if self.bytes.is_empty() {
            // All earlier bytes have been written to the device, so a new busy period of the line
            // begins. It begins now, or when the line has transmitted the earlier bytes, if that is
            // later. Idle time must not count, because the next bytes would then leave faster than
            // the line's rate.
            self.busy_since = now.max(self.left_at(self.written));
            self.written = 0;
        }
        self.bytes.extend(packet);
        self.ends.push_back(self.written + self.bytes.len() as u64);
    }

    /// Returns the bytes that are to be written now: those that the line would have transmitted by
    /// `now`. If these bytes wrap around in the ring buffer, returns only the first part. The rest
    /// is returned after [`consume`](Self::consume).
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

    /// Returns the time of the next write: when the line has transmitted the rest of the packet at
    /// the front. If that takes longer than [`WRITE_EVERY`], the next write contains only the bytes
    /// that the line transmits in this interval, at least one. Returns [`Instant::NEVER`] if the
    /// queue is empty.
    pub(super) fn next_write(&self) -> Instant {
        let Some(&end) = self.ends.front() else { return Instant::NEVER };
        let bytes = WRITE_EVERY.as_nanos() * u64::from(self.baud) / BITS_PER_BYTE / 1_000_000_000;
        self.left_at(end.min(self.written + bytes.max(1)))
    }

    /// Returns the time at which the line has transmitted the first `count` bytes of the busy
    /// period. The time is rounded up to nanoseconds.
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

    /// Advances the time from one write to the next until the queue is empty. Returns the time, in
    /// microseconds, and the length of each write.
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
        // The 96 bytes take 100 ms. Nothing is written before 60 ms. By then, the line can have
        // transmitted 57 bytes, so these are due at once. The late write does not delay the line:
        // after 96 more bytes, it has transmitted all 192 at 200 ms.
        assert_eq!(queue.due(at(60_000)).len(), 57);
        queue.consume(57);
        queue.push(at(60_000), std::iter::repeat_n(7, 96));
        assert_eq!(writes(&mut queue).last().unwrap().0, 200_000);
        queue.push(at(5_000_000), std::iter::repeat_n(7, 96));
        assert_eq!(writes(&mut queue).last().unwrap().0, 5_100_000);
    }
}
