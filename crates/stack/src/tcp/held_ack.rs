//! Acknowledgements that come together: one that is predicted waits for the next, which says all that it
//! does.
//!
//! A receiver answers every other segment, and its answers come in batches. Each of them moves the same
//! edge, starts the same timer anew and tells of the same round trip, so the connection is told of the last
//! one and of how many they were. To the sender it is as if the path had lost the others, and its window
//! grows as if it had not.
//!
//! None waits for longer than the batch of frames that it came with, and nothing else happens to its
//! connection in between: any other segment, and any other packet, lets it go first.

use super::familiar::Front;
use crate::link::PlainFrame;
use crate::sockets::TcpHandle;
use crate::stack::Stack;
use linerate_tcp::Connection;
use linerate_units::Instant;
use linerate_wire::{Ecn, NextAck, Segment, SeqNum};

/// The last of the acknowledgements that wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldAck {
    /// Whose it is. Another connection may get the place of that one.
    handle: TcpHandle,
    /// How many it stands for, itself counted.
    count: u32,
    ack: SeqNum,
    /// The end of what the connection has sent. It sends nothing while anything waits for it.
    end: SeqNum,
    /// When it came.
    at: Instant,
    /// Its header, and what the next one is like.
    next: NextAck,
}

impl HeldAck {
    /// Does `segment` say more than the one that waits, so that this one may be forgotten?
    #[inline(always)]
    fn may_follow(held: Option<&Self>, index: u32, segment: &Segment<'_>) -> bool {
        held.is_none_or(|held| held.handle.index() == index && segment.ack.after(held.ack))
    }

    /// Keeps `segment` in the place of the one that waits, if it may follow that and is an acknowledgement as predicted,
    /// with a header that is short enough. The connection is as it is without those that wait.
    #[inline(always)]
    pub(super) fn keep(
        held: &mut Option<Self>,
        at: Instant,
        (handle, connection): (TcpHandle, &Connection),
        next: impl FnOnce() -> Option<NextAck>,
        segment: &Segment<'_>,
    ) -> bool {
        if !Self::may_follow(held.as_ref(), handle.index(), segment)
            || !connection.predicts_ack(segment)
        {
            return false;
        }
        let Some(next) = next() else { return false };
        let count = held.map_or(0, |earlier| earlier.count) + 1;
        *held =
            Some(Self { handle, count, ack: segment.ack, end: connection.end_of_sent(), at, next });
        true
    }
}

impl Stack {
    /// Takes in `frame`, and those that come after it, as long as each is an acknowledgement like the one that waits, and
    /// says more: as [`keep`](HeldAck::keep) would, by what that has found. The first that is not.
    #[inline(never)]
    pub(crate) fn go_on_with_acks<'a>(
        &mut self,
        now: Instant,
        frame: PlainFrame<'a>,
        after: &mut impl Iterator<Item = PlainFrame<'a>>,
    ) -> Option<PlainFrame<'a>> {
        let front = Front::of(self.interface.capabilities.medium, self.stations.as_ref());
        let (Some(held), Some(front)) = (&mut self.held_ack, front) else { return Some(frame) };
        let before = held.count;
        let mut time = self.now;
        let PlainFrame { mut bytes, mut arrived } = frame;
        let other = loop {
            if let Some(packet) = front.strip(bytes)
                && let Some(later) = held.next.read(packet)
                && later.ack().after(held.ack)
                && !later.ack().after(held.end)
            {
                held.next.take(later);
                held.ack = later.ack();
                held.count += 1;
                time = time.max(arrived.min(now));
                held.at = time;
                self.counted.receive.bytes += bytes.len() as u64;
            } else {
                break Some(PlainFrame { bytes, arrived });
            }
            match after.next() {
                Some(next) => (bytes, arrived) = (next.bytes, next.arrived),
                None => break None,
            }
        };
        self.predicted_frames += u64::from(held.count - before);
        self.pass_time(time);
        other
    }

    /// Keeps a segment, which lies in `bytes` and whose connection is awake, back until the batch of frames is over or
    /// something else comes for its connection: true if it is an acknowledgement that may wait. If not, nobody waits
    /// any more.
    pub(super) fn holds(
        &mut self,
        now: Instant,
        ecn: Ecn,
        index: u32,
        bytes: &[u8],
        segment: &Segment<'_>,
    ) -> bool {
        if !HeldAck::may_follow(self.held_ack.as_ref(), index, segment) {
            self.release_ack();
        }
        let next = || NextAck::after_segment(bytes);
        if segment.payload.is_empty()
            && ecn == Ecn::NotEct
            && let Some((handle, socket)) = self.sockets.awake_entry(index)
            && HeldAck::keep(&mut self.held_ack, now, (handle, &socket.connection), next, segment)
        {
            return true;
        }
        self.release_ack();
        false
    }

    /// The connection hears of the acknowledgements that wait for more.
    #[inline]
    pub(crate) fn release_ack(&mut self) {
        if self.held_ack.is_some() {
            self.release_held();
        }
    }

    #[inline(never)]
    fn release_held(&mut self) {
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
            let Some(segment) = held.next.last_segment() else { return };
            self.memory.supply(socket);
            let disposition = socket.connection.handle_acks(held.at, &segment, held.count);
            self.follow_segment(held.at, index, disposition);
        }
    }
}
