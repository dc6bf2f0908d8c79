//! Bursts: the transmission of further frames from a header template
//! ([`BurstHeaders`](crate::tcp::burst::BurstHeaders)).
//!
//! While a link takes frame after frame, nothing else can happen to the connection. So its state is
//! updated once for all frames, when the burst is committed.

use crate::link::{FrameSlots, TxFrame};
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tcp::burst::{TCP_OFFSET_ETHERNET, TCP_OFFSET_IP};
use linerate_tcp::Transmit;
use linerate_units::Instant;
use linerate_wire::{TcpHeader, TcpOptions};

impl Stack {
    /// Writes frames of the current burst into `slots`, until either is exhausted. Returns whether
    /// `slots` has room for more.
    #[inline(never)]
    pub(crate) fn fill_from_burst(&mut self, slots: &mut impl FrameSlots) -> bool {
        match self.burst.tcp {
            TCP_OFFSET_ETHERNET => self.fill_from_burst_at::<TCP_OFFSET_ETHERNET>(slots),
            _ => self.fill_from_burst_at::<TCP_OFFSET_IP>(slots),
        }
    }

    /// Writes one frame of the current burst, and returns its length; `None` if the frame has no
    /// room.
    #[inline(never)]
    pub(crate) fn write_next_of_burst(&mut self, frame: &mut [u8]) -> Option<usize> {
        let burst = &mut self.burst;
        let connection = &self.sockets.tcp_at(burst.owner?)?.connection;
        let data = |seq, payload: &mut [u8]| connection.copy_of_burst(seq, payload);
        match burst.tcp {
            TCP_OFFSET_ETHERNET => burst.write::<TCP_OFFSET_ETHERNET>(data, frame),
            _ => burst.write::<TCP_OFFSET_IP>(data, frame),
        }
    }

    #[inline(always)]
    fn fill_from_burst_at<const TCP: usize>(&mut self, slots: &mut impl FrameSlots) -> bool {
        let burst = &mut self.burst;
        let Some(socket) = burst.owner.and_then(|owner| self.sockets.tcp_at(owner)) else {
            return false;
        };
        let connection = &socket.connection;
        while burst.has_next() {
            let data = |seq, payload: &mut [u8]| connection.copy_of_burst(seq, payload);
            if !slots.offer(|frame| burst.write::<TCP>(data, frame).map(TxFrame::whole)) {
                return false;
            }
        }
        true
    }

    /// Asks the connection how many further segments may follow the last one with the same headers.
    /// Returns whether there is one, for frames of `room` bytes.
    pub(crate) fn resume_burst(&mut self, now: Instant, room: usize) -> bool {
        let Some(index) = self.burst.owner else { return false };
        let generation = self.routes.generation() + self.neighbors.generation();
        let Some(socket) = self.sockets.tcp_at(index) else { return false };
        if room < self.burst.tcp + socket.room as usize || socket.next_hop_generation != generation
        {
            return false;
        }
        let Some(next) = socket.connection.poll_burst(now) else { return false };
        let burst = &mut self.burst;
        (burst.number, burst.segment) = (next.seq, next.length);
        burst.frame = burst.length + next.length as usize;
        burst.left = next.segments.min(self.ready.left_to(Sender::Socket(index)));
        burst.left > 0
    }

    /// Begins an ACK batch after an acknowledgement that was `sent` in `frame`. Its further
    /// acknowledgements can be sent without a new decision, until another sender has its turn or a
    /// frame arrives.
    pub(super) fn begin_ack_batch(
        &mut self,
        index: u32,
        sent: &Transmit,
        medium: usize,
        frame: &[u8],
    ) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let is_usual = sent.length == TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;
        let Some(ack_batch) = socket.connection.poll_acks().filter(|_| is_usual) else { return };
        let left = ack_batch.count.min(self.ready.left_to(Sender::Socket(index)));
        if left > 0 {
            let burst = &mut self.burst;
            burst.keep(index, socket, Some(ack_batch), sent, medium, frame);
            (burst.number, burst.left, burst.frame) = (ack_batch.first, left, burst.length);
        }
    }

    /// Updates the connection for the frames of its burst.
    #[inline]
    pub(crate) fn commit_burst(&mut self) {
        if !self.burst.is_committed() {
            self.commit_frames();
        }
    }

    fn commit_frames(&mut self) {
        self.burst.left = 0;
        let frames = core::mem::take(&mut self.burst.uncommitted);
        let is_ack_batch = self.burst.ack_batch.is_some();
        self.ready.count(frames);
        if let Some(index) = self.burst.owner
            && let Some(socket) = self.sockets.tcp_at(index)
        {
            if is_ack_batch {
                socket.connection.note_acks(frames);
            } else {
                socket.connection.note_burst(frames);
                if socket.connection.falls_silent_after_burst(self.now) {
                    // The connection may have a new deadline. Nothing else has changed since the
                    // last dispatch.
                    debug_assert!(
                        socket.connection.events().is_empty(),
                        "the end of a burst causes no events"
                    );
                    socket.arm(index, &mut self.timers);
                    self.ready.remove(Sender::Socket(index));
                    self.burst.forget();
                }
            }
        }
        if is_ack_batch {
            self.burst.forget();
        }
        self.counted.ip.out_requests += u64::from(frames);
        self.counted.tcp.out_segments += u64::from(frames);
        self.counted.transmit.packets += u64::from(frames);
        self.counted.transmit.bytes += u64::from(frames) * self.burst.frame as u64;
    }
}
