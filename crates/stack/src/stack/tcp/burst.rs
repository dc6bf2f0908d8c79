//! The frames of a burst after its first: the headers of that one with another number, and the checksum that
//! follows from it. So are the acknowledgements of a row, whose window differs as well. They are kept once for the host,
//! because one connection sends at a time.
//!
//! While a link asks for frame after frame nothing else can happen to the connection, so it is told once, at the
//! end, of all that have left.

use crate::link::{FrameSlots, TxFrame};
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tcp::burst::{BEHIND_NONE, BEHIND_STATIONS};
use linerate_tcp::Transmit;
use linerate_units::Instant;
use linerate_wire::{TcpHeader, TcpOptions};

impl Stack {
    /// Writes frames of the burst, which [goes on](BurstHeaders::goes_on), into `slots` as long as there are both: is
    /// there room for more?
    #[inline(never)]
    pub(crate) fn fill_with_burst(&mut self, slots: &mut impl FrameSlots) -> bool {
        match self.burst.tcp {
            BEHIND_STATIONS => self.fill_with_burst_behind::<BEHIND_STATIONS>(slots),
            _ => self.fill_with_burst_behind::<BEHIND_NONE>(slots),
        }
    }

    /// The same for one frame: how long it is. `None` if it has no room.
    #[inline(never)]
    pub(crate) fn next_of_burst(&mut self, frame: &mut [u8]) -> Option<usize> {
        let burst = &mut self.burst;
        let connection = &self.sockets.tcp_at(burst.owner?)?.connection;
        let data = |seq, payload: &mut [u8]| connection.copy_of_burst(seq, payload);
        match burst.tcp {
            BEHIND_STATIONS => burst.write::<BEHIND_STATIONS>(data, frame),
            _ => burst.write::<BEHIND_NONE>(data, frame),
        }
    }

    #[inline(always)]
    fn fill_with_burst_behind<const TCP: usize>(&mut self, slots: &mut impl FrameSlots) -> bool {
        let burst = &mut self.burst;
        let Some(socket) = burst.owner.and_then(|owner| self.sockets.tcp_at(owner)) else {
            return false;
        };
        let connection = &socket.connection;
        while burst.goes_on() {
            let data = |seq, payload: &mut [u8]| connection.copy_of_burst(seq, payload);
            if !slots.offer(|frame| burst.write::<TCP>(data, frame).map(TxFrame::whole)) {
                return false;
            }
        }
        true
    }

    /// Finds out how many frames like the last one may follow it in the same turn, with nothing new but their
    /// numbers: is there one, for frames of which each has `room`?
    pub(crate) fn resume_burst(&mut self, now: Instant, room: usize) -> bool {
        let Some(index) = self.burst.owner else { return false };
        let generation = self.routes.generation() + self.neighbors.generation();
        let Some(socket) = self.sockets.tcp_at(index) else { return false };
        if room < self.burst.tcp + socket.room as usize || socket.hop != generation {
            return false;
        }
        let Some(next) = socket.connection.poll_burst(now) else { return false };
        let burst = &mut self.burst;
        (burst.number, burst.segment) = (next.seq, next.length);
        burst.frame = burst.length + next.length as usize;
        burst.left = next.segments.min(self.ready.left_to(Sender::Socket(index)));
        burst.left > 0
    }

    /// The connection with this number has `sent` an acknowledgement in `frame`: those of the same row may follow it
    /// without a question, as long as nobody else has his turn, and nothing comes in.
    pub(super) fn begin_row(&mut self, index: u32, sent: &Transmit, medium: usize, frame: &[u8]) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let is_usual = sent.length == TcpHeader::LENGTH + TcpOptions::TIMESTAMPS_LENGTH;
        let Some(row) = socket.connection.poll_acks().filter(|_| is_usual) else { return };
        let left = row.count.min(self.ready.left_to(Sender::Socket(index)));
        if left > 0 {
            let burst = &mut self.burst;
            burst.keep(index, socket, Some(row), sent, medium, frame);
            (burst.number, burst.left, burst.frame) = (row.first, left, burst.length);
        }
    }

    /// Tells the connection of what has left of its burst.
    #[inline]
    pub(crate) fn tell_of_burst(&mut self) {
        if !self.burst.is_told() {
            self.tell_of_frames();
        }
    }

    fn tell_of_frames(&mut self) {
        self.burst.left = 0;
        let frames = core::mem::take(&mut self.burst.untold);
        let is_row = self.burst.row.is_some();
        self.ready.count(frames);
        if let Some(index) = self.burst.owner
            && let Some(socket) = self.sockets.tcp_at(index)
        {
            if is_row {
                socket.connection.note_acks(frames);
            } else {
                socket.connection.note_burst(frames);
                if socket.connection.falls_silent_after_burst(self.now) {
                    // It may have a deadline, and is otherwise what it was before the burst.
                    debug_assert!(
                        socket.connection.events().is_empty(),
                        "nobody has to hear of a silence"
                    );
                    socket.arm(index, &mut self.timers);
                    self.ready.remove(Sender::Socket(index));
                    self.burst.forget();
                }
            }
        }
        if is_row {
            self.burst.forget();
        }
        self.counted.ip.out_requests += u64::from(frames);
        self.counted.tcp.out_segments += u64::from(frames);
        self.counted.transmit.packets += u64::from(frames);
        self.counted.transmit.bytes += u64::from(frames) * self.burst.frame as u64;
    }
}
