//! Acknowledgements that come together: one that is predicted waits for the next, which says all that it
//! does.
//!
//! A receiver answers every other segment, and its answers come in batches. Each of them moves the same
//! edge, starts the same timer anew and tells of the same round trip, so the connection is told of the last
//! one and of how many they were. To the sender it is as if the path had lost the others, and its window
//! grows as if it had not.
//!
//! None waits for longer than the batch of frames that it came with, and nothing else happens to its
//! connection in between: any other segment lets it go first.

use crate::sockets::TcpHandle;
use crate::stack::Stack;
use linerate_units::Instant;
use linerate_wire::{Ecn, Segment, SeqNum, TcpOptions};

/// The last of the acknowledgements that wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldAck {
    /// Whose it is. Another connection may get the place of that one.
    handle: TcpHandle,
    /// When it came.
    at: Instant,
    /// How many it stands for, itself counted.
    count: u32,
    ports: (u16, u16),
    seq: SeqNum,
    ack: SeqNum,
    offset_and_flags: u16,
    window: u16,
    options: [u8; TcpOptions::TIMESTAMPS_LENGTH],
    options_length: usize,
}

impl HeldAck {
    /// `segment`, if its options are timestamps or none.
    fn new(handle: TcpHandle, at: Instant, segment: &Segment<'_>) -> Option<Self> {
        let options_length = segment.options.len();
        let mut options = [0; TcpOptions::TIMESTAMPS_LENGTH];
        options.get_mut(..options_length)?.copy_from_slice(segment.options);
        Some(Self {
            handle,
            at,
            count: 1,
            ports: (segment.source_port, segment.destination_port),
            seq: segment.seq,
            ack: segment.ack,
            offset_and_flags: segment.offset_and_flags,
            window: segment.window,
            options,
            options_length,
        })
    }

    fn segment(&self) -> Segment<'_> {
        Segment {
            source_port: self.ports.0,
            destination_port: self.ports.1,
            seq: self.seq,
            ack: self.ack,
            offset_and_flags: self.offset_and_flags,
            window: self.window,
            urgent: 0,
            options: &self.options[..self.options_length],
            payload: &[],
            joined: None,
        }
    }
}

impl Stack {
    /// Keeps a segment back until the batch of frames is over or something else comes for its connection:
    /// true if it is an acknowledgement that may wait. If not, nobody waits any more.
    #[inline]
    pub(super) fn hold_ack(&mut self, now: Instant, ecn: Ecn, index: u32, segment: &Segment<'_>) -> bool {
        if self.held_ack.is_none() && !segment.payload.is_empty() {
            return false;
        }
        self.hold_or_release(now, ecn, index, segment)
    }

    fn hold_or_release(&mut self, now: Instant, ecn: Ecn, index: u32, segment: &Segment<'_>) -> bool {
        let follows =
            self.held_ack.is_some_and(|held| held.handle.index() == index && segment.ack.after(held.ack));
        if !follows {
            self.release_ack();
        }
        let Some(held) = self.may_wait(now, ecn, index, segment) else {
            self.release_ack();
            return false;
        };
        let superseded = self.held_ack.map_or(0, |earlier| earlier.count);
        self.held_ack = Some(HeldAck { count: superseded + 1, ..held });
        true
    }

    /// A predicted acknowledgement, of a connection as it is without those that wait.
    fn may_wait(&mut self, now: Instant, ecn: Ecn, index: u32, segment: &Segment<'_>) -> Option<HeldAck> {
        let socket = self.sockets.tcp_at(index)?;
        if ecn != Ecn::NotEct || !socket.connection.predicts_ack(segment) {
            return None;
        }
        HeldAck::new(self.sockets.tcp_handle(index)?, now, segment)
    }

    /// The connection hears of the acknowledgements that wait for more.
    #[inline]
    pub(crate) fn release_ack(&mut self) {
        if let Some(held) = self.held_ack.take() {
            self.hand_over(&held);
        }
    }

    fn hand_over(&mut self, held: &HeldAck) {
        let index = held.handle.index();
        if self.sockets.tcp_handle(index) != Some(held.handle) {
            return;
        }
        if let Some(socket) = self.sockets.tcp_at(index) {
            let disposition = socket.connection.handle_acks(held.at, &held.segment(), held.count);
            self.follow_segment(held.at, index, disposition);
        }
    }
}
