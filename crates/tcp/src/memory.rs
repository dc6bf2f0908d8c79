//! The memory of both socket buffers: how it grows, what the host grants, and when it is freed.

use crate::compact::pack::{Pack, Packer, Unpacker};
use crate::receive::saturated;
use crate::timers::Timer;
use crate::{BufferSize, Connection, LARGEST_BUFFER, State};
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::Timestamps;

/// The idle time after which an empty buffer frees its memory.
const IDLE: Duration = Duration::from_secs(1);

/// The limits of the host for the memory that a connection may allocate at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryGrant {
    /// The number of bytes that the two buffers together may allocate in addition to the memory
    /// that they have.
    pub room: u32,
    /// The number of bytes that a buffer without memory may allocate, even if `room` is smaller.
    pub least: u32,
    /// Whether buffers with a tuned size may grow.
    pub tuning: bool,
    /// Whether other connections wait for memory. If so, data is written to at most half of a send
    /// buffer's memory. The other half can be freed when data is acknowledged.
    pub is_awaited: bool,
}

/// Packs a grant for a compact connection. An unlimited grant takes only a flag bit, because it is
/// stored as `None`.
impl Pack for MemoryGrant {
    fn pack(&self, into: &mut Packer<'_>) {
        let limited = (*self != Self::UNLIMITED)
            .then_some(((self.room, self.least), (self.tuning, self.is_awaited)));
        limited.pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Option::unpack(from).map_or(Self::UNLIMITED, |((room, least), (tuning, is_awaited))| Self {
            room,
            least,
            tuning,
            is_awaited,
        })
    }
}

impl MemoryGrant {
    /// A grant without a limit: only the configured buffer sizes limit the memory.
    pub const UNLIMITED: Self =
        Self { room: u32::MAX, least: u32::MAX, tuning: true, is_awaited: false };
}

impl Connection {
    /// Returns the current grant of the host.
    #[must_use]
    pub const fn granted_memory(&self) -> MemoryGrant {
        self.memory
    }

    /// Returns the number of bytes of memory that both buffers hold.
    #[inline]
    #[must_use]
    pub const fn buffer_memory(&self) -> usize {
        self.receiver.buffer.memory() + self.sender.buffer.memory()
    }

    /// Returns the number of bytes that have left the two buffers: bytes that the peer has
    /// acknowledged, and bytes that the application has read.
    #[inline]
    #[must_use]
    pub const fn moved_bytes(&self) -> u64 {
        let statistics = &self.statistics;
        statistics.bytes_acknowledged + statistics.bytes_received
            - self.receiver.buffer.len() as u64
    }

    /// Returns the capacity of the send buffer in bytes.
    #[must_use]
    pub const fn send_buffer(&self) -> usize {
        self.sender.buffer.capacity()
    }

    /// Returns the capacity of the receive buffer in bytes.
    #[must_use]
    pub const fn receive_buffer(&self) -> usize {
        self.receiver.buffer.capacity()
    }

    /// Fixes the size of the send buffer (`SO_SNDBUF`), from one byte to [`LARGEST_BUFFER`]. Data
    /// in the buffer is kept.
    pub fn set_send_buffer(&mut self, size: usize) {
        let size = BufferSize::from(size).within(LARGEST_BUFFER);
        self.preferences.send_buffer = size;
        self.sender.buffer.set_capacity(size.initial());
    }

    /// Fixes the size of the receive buffer (`SO_RCVBUF`), from one byte to [`LARGEST_BUFFER`] or
    /// the window limit of the route. The announced window is also limited by the scale that was
    /// negotiated before. An announced window must not shrink, so a smaller size takes effect only
    /// as the peer uses up the window.
    pub fn set_receive_buffer(&mut self, size: usize) {
        let clamp = self.path.window_clamp.map_or(LARGEST_BUFFER, |clamp| clamp as usize);
        let size = BufferSize::from(size).within(clamp);
        self.preferences.receive_buffer = size;
        self.receiver.autotune.fix();
        self.receiver.buffer.set_capacity(size.initial(), self.rcv.window() as usize);
        self.owe_ack_if_window_grew();
    }

    /// Adjusts the size of the receive buffer after the application has read `count` bytes.
    #[inline]
    pub(crate) fn tune_receive_buffer(&mut self, now: Instant, count: usize) {
        if !self.receiver.autotune.is_on() {
            return self.shrink_receive_buffer();
        }
        if self.receiver.autotune.note_read(now, saturated(count), self.sender.rtt.smoothed()) {
            self.end_reading_round_trip(now);
        }
    }

    /// Enlarges the receive buffer at the end of a round trip, if the application has read enough
    /// during that round trip.
    #[inline(never)]
    fn end_reading_round_trip(&mut self, now: Instant) {
        if !self.state.takes_data() {
            return;
        }
        let (segment, stamped) = (self.receiver.largest_segment, self.timestamps.on);
        if let Some(wanted) = self.receiver.autotune.end_round_trip(now, segment, stamped) {
            self.widen_receive_buffer(wanted as usize);
        }
    }

    /// Shrinks the receive buffer towards the fixed size that the application has set. Called when
    /// data is read, because the buffer can shrink only as the peer uses up the window.
    #[inline(never)]
    fn shrink_receive_buffer(&mut self) {
        if let BufferSize::Fixed(size) = self.preferences.receive_buffer
            && self.receiver.buffer.capacity() > size as usize
        {
            self.receiver.buffer.set_capacity(size as usize, self.rcv.window() as usize);
        }
    }

    #[inline(never)]
    fn widen_receive_buffer(&mut self, wanted: usize) {
        if wanted <= self.receiver.buffer.capacity() {
            return;
        }
        if self.memory.tuning {
            self.receiver.buffer.set_capacity(wanted, self.rcv.window() as usize);
        } else {
            self.receiver.autotune.start_over();
        }
    }

    /// Measures the round trip by the timestamp that in-order data echoes. If the peer echoes no
    /// timestamp, the measurement is given up: while one is pending, every segment of the peer
    /// leaves the fast path.
    #[cold]
    pub(crate) fn measure_receive_round_trip(&mut self, now: Instant, options: &[u8]) {
        let stamps = Timestamps::among(options);
        let round_trip = stamps.and_then(|stamps| self.timestamps.round_trip_of(stamps, now));
        self.receiver.autotune.on_echo(round_trip);
    }

    /// Enlarges the send buffer if `more` bytes do not fit. Its new size is twice the congestion
    /// window, so that one window is in flight and the next one is ready when acknowledgements
    /// arrive.
    #[inline]
    pub(crate) fn tune_send_buffer(&mut self, more: usize) {
        if more > self.sender.buffer.free() {
            cold_path();
            self.widen_send_buffer();
        }
    }

    fn widen_send_buffer(&mut self) {
        let BufferSize::Tuned { most, .. } = self.preferences.send_buffer else { return };
        if !self.memory.tuning {
            return;
        }
        let wanted =
            (self.sender.congestion.window().cwnd() as usize).saturating_mul(2).min(most as usize);
        if wanted > self.sender.buffer.capacity() {
            self.sender.buffer.set_capacity(wanted);
        }
    }

    /// Starts the timer after which an idle connection frees its buffers and can be compacted.
    #[inline]
    pub(crate) fn watch_idle_buffers(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::IdleBuffers) && self.state != State::Closed {
            cold_path();
            self.timers.set(Timer::IdleBuffers, now, IDLE);
        }
    }

    /// Frees the memory of empty buffers, if the connection has been idle for [`IDLE`].
    pub(crate) fn on_idle_buffers(&mut self, now: Instant) {
        let idle = now.since(self.last_received.max(self.sender.last_sent));
        if idle < IDLE {
            self.timers.set(Timer::IdleBuffers, now, IDLE - idle);
            return;
        }
        if self.snd.flight() == 0 {
            // During the idle time, no evidence has arrived that the most recent recovery was
            // spurious. None is expected any more, so the state for undoing that recovery is freed.
            self.sender.undo = None;
        }
        if self.receiver.buffer.is_empty() && self.receiver.assembler.is_empty() {
            self.receiver.buffer.give_back();
        }
        if self.sender.buffer.len() == 0 {
            self.sender.buffer.give_back();
            self.tidy_rare_options();
        }
    }

    pub(crate) fn prepare_to_write(&mut self, now: Instant) -> bool {
        if self.sender.fin() || !self.state.may_write() {
            return false;
        }
        self.watch_idle_buffers(now);
        self.sender.buffer.prepare(&self.memory)
    }

    pub(crate) fn give_memory_back(&mut self, now: Instant, must: bool) -> bool {
        let pruned = must && self.slow(|connection| connection.receiver.drop_beyond_holes());
        let initial = self.preferences.receive_buffer.initial();
        if must && self.receiver.buffer.capacity() > initial {
            self.receiver.buffer.set_capacity(initial, self.rcv.window() as usize);
            self.receiver.autotune.start_over();
        }
        self.receiver.give_back_unused(now, &self.rcv);
        self.sender.buffer.give_back_unused(now);
        self.statistics.pruned += u64::from(pruned);
        pruned
    }
}
