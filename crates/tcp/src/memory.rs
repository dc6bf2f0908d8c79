//! The memory of the two socket buffers: how it grows, how much of it the host grants, and how it is
//! given back.

use crate::receive::saturated;
use crate::rest::pack::{Pack, Packer, Unpacker};
use crate::timers::Timer;
use crate::{BufferSize, Connection, LARGEST_BUFFER, State};
use alloc::boxed::Box;
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::Timestamps;

/// A buffer that has been empty for so long gives its memory back.
const IDLE: Duration = Duration::from_secs(1);

/// What the host lets a connection take at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryGrant {
    /// Bytes that its buffers may take beyond what they hold.
    pub room: u32,
    /// Bytes that a buffer may take that holds nothing, if that is more.
    pub least: u32,
    /// Tuned buffers may become larger.
    pub tuning: bool,
    /// Others wait for memory to write into: a send buffer is filled to half of what it holds, so that the
    /// other half comes free as it is acknowledged.
    pub is_awaited: bool,
}

/// As much as there is takes a bit: a host says anew what it grants before each step.
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
    /// As much as the configuration allows.
    pub const UNLIMITED: Self =
        Self { room: u32::MAX, least: u32::MAX, tuning: true, is_awaited: false };
}

impl Connection {
    /// Says how much memory there is, from now on and until this is said again.
    #[inline]
    pub const fn grant_memory(&mut self, grant: MemoryGrant) {
        self.memory = grant;
    }

    /// What was last said by [`Connection::grant_memory`].
    #[must_use]
    pub const fn granted_memory(&self) -> MemoryGrant {
        self.memory
    }

    /// Bytes of memory that the buffers hold.
    #[inline]
    #[must_use]
    pub const fn buffer_memory(&self) -> usize {
        self.receiver.buffer.memory() + self.sender.buffer.memory()
    }

    /// Has the send buffer lie in `memory`, and gives what it lay in for that, if nothing is in it and both are as large.
    #[inline]
    pub fn exchange_send_memory(&mut self, memory: &mut Box<[u8]>) -> bool {
        self.sender.buffer.exchange(memory)
    }

    /// The same of the receive buffer.
    #[inline]
    pub fn exchange_receive_memory(&mut self, memory: &mut Box<[u8]>) -> bool {
        self.receiver.assembler.is_empty() && self.receiver.buffer.exchange(memory)
    }

    /// Bytes that have gone through the buffers: acknowledged by the peer, or read by the application.
    #[inline]
    #[must_use]
    pub const fn moved_bytes(&self) -> u64 {
        let statistics = &self.statistics;
        statistics.bytes_acknowledged + statistics.bytes_received
            - self.receiver.buffer.len() as u64
    }

    /// Bytes that can be in the send buffer.
    #[must_use]
    pub const fn send_buffer(&self) -> usize {
        self.sender.buffer.capacity()
    }

    /// Bytes that can be in the receive buffer.
    #[must_use]
    pub const fn receive_buffer(&self) -> usize {
        self.receiver.buffer.capacity()
    }

    /// Fixes the size of the send buffer (`SO_SNDBUF`), from one byte to [`LARGEST_BUFFER`]. What is in it
    /// stays there.
    pub fn set_send_buffer(&mut self, size: usize) {
        let size = BufferSize::from(size).within(LARGEST_BUFFER);
        self.preferences.send_buffer = size;
        self.sender.buffer.set_capacity(size.initial());
    }

    /// Fixes the size of the receive buffer (`SO_RCVBUF`), from one byte to [`LARGEST_BUFFER`] or the
    /// clamp of the route; the window can say no more of it than the handshake has agreed on. A window
    /// that was offered is not taken back, so a smaller size takes effect as that is used up.
    pub fn set_receive_buffer(&mut self, size: usize) {
        let clamp = self.path.window_clamp.map_or(LARGEST_BUFFER, |clamp| clamp as usize);
        let size = BufferSize::from(size).within(clamp);
        self.preferences.receive_buffer = size;
        self.receiver.autotune.fix();
        self.receiver.buffer.set_capacity(size.initial(), self.rcv.window() as usize);
        self.owe_ack_if_window_grew();
    }

    /// The application has read `count` bytes: should the buffer have another size?
    #[inline]
    pub(crate) fn tune_receive_buffer(&mut self, now: Instant, count: usize) {
        if !self.receiver.autotune.is_on() {
            return self.shrink_receive_buffer();
        }
        if self.receiver.autotune.note_read(now, saturated(count), self.sender.rtt.smoothed()) {
            self.end_reading_round_trip(now);
        }
    }

    /// A round trip has passed since the buffer was last looked at.
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

    /// A buffer whose size the application has chosen comes down to that as it is read.
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

    /// The options of data in order may tell how long a timestamp of ours took to come back. Where they do not, it is not
    /// worth waiting for others: every segment would be looked at for nothing where none ever does.
    #[cold]
    pub(crate) fn measure_receive_round_trip(&mut self, now: Instant, options: &[u8]) {
        let stamps = Timestamps::among(options);
        let round_trip = stamps.and_then(|stamps| self.timestamps.round_trip_of(stamps, now));
        self.receiver.autotune.on_echo(round_trip);
    }

    /// The application has more to write than there is room for: twice the congestion window, so that one
    /// is in flight and another one is ready when its acknowledgements come.
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

    /// A buffer is empty, or nothing has happened yet: if that stays so, memory is given back, and the
    /// connection can rest.
    #[inline]
    pub(crate) fn watch_idle_buffers(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::IdleBuffers) && self.state != State::Closed {
            cold_path();
            self.timers.set(Timer::IdleBuffers, now, IDLE);
        }
    }

    /// Buffers that are empty, and have been for a while, give their memory back.
    pub(crate) fn on_idle_buffers(&mut self, now: Instant) {
        let idle = now.since(self.heard.max(self.sender.last_sent));
        if idle < IDLE {
            self.timers.set(Timer::IdleBuffers, now, IDLE - idle);
            return;
        }
        if self.snd.flight() == 0 {
            // Whatever could have told that the last loss was none has arrived long ago.
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

    /// Makes sure that something can be written, if the host grants memory for it; false if nothing could
    /// be written anyway. What nobody writes into is given back after a while.
    pub fn prepare_to_write(&mut self, now: Instant) -> bool {
        if self.sender.fin() || !self.state.may_write() {
            return false;
        }
        self.watch_idle_buffers(now);
        self.sender.buffer.prepare(&self.memory)
    }

    /// Others wait for memory to write into: gives back what nothing lies in of the send buffer.
    pub fn leave_memory_to_others(&mut self) {
        self.sender.buffer.give_back_free();
    }

    /// The host is getting short of memory: gives back what nothing lies in, nor did of late. If it `must`
    /// be, a tuned receive buffer also goes back to the size that it began with, as the peer uses up the
    /// window that it was offered, and data beyond holes is thrown away: it was never acknowledged. True if
    /// there was any.
    pub fn give_memory_back(&mut self, now: Instant, must: bool) -> bool {
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
