//! Data that come together: the segments of a train, which differ in nothing but their numbers, are in their places
//! when the connection hears of them, and it hears of all at once. A link that shows several frames at a time is gone
//! through by one loop, and what cannot change meanwhile is asked before it.
//!
//! The next batch may go on with the train that the one before has brought: then no frame of it is judged from its first
//! byte on, and only the connection is asked whether it still expects what it did.
//!
//! None waits for longer than the batch of frames that it came with, nor for anything that is no part of the train:
//! whatever else comes finds the connection, and the host, as if each segment had been taken in by itself.

use super::TcpSocket;
use super::familiar::Front;
use super::settle::{Settled, concerned};
use crate::demux::Flow;
use crate::link::PlainFrame;
use crate::memory::Memory;
use crate::stack::Stack;
use linerate_tcp::Following;
use linerate_units::Instant;
use linerate_wire::{NextPacket, PlainPacket, Sum};

/// A train, and what has come of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldData {
    /// Whose it is.
    index: u32,
    /// Segments of it of which the connection has not heard. Between two batches it has heard of all.
    count: u32,
    /// Has it begun in a batch before this one?
    is_resumed: bool,
    /// What the next one is like, and where its data would lie.
    next: NextPacket,
    following: Following,
}

impl HeldData {
    /// The train that begins with `packet`, which is intact, and whose connection does not know yet that its data are in
    /// their place. `data` is their sum. `None` if none that follows could be kept back with it.
    #[inline(always)]
    pub(super) fn begin(
        memory: &Memory,
        (index, socket): (u32, &TcpSocket),
        packet: &PlainPacket<'_>,
        data: Sum,
    ) -> Option<Self> {
        if !may_wait(memory, socket) {
            return None;
        }
        let next = NextPacket::after(packet, data)?;
        Some(Self {
            index,
            count: 1,
            is_resumed: false,
            next,
            following: socket.connection.following(next.length()),
        })
    }
}

/// Is there memory for what comes for the connection, whatever comes before it has heard of that?
#[inline(always)]
fn may_wait(memory: &Memory, socket: &TcpSocket) -> bool {
    socket.granted.is_for_good() && !memory.is_awaited()
}

impl HeldData {
    /// Is there anything of which the connection has not heard?
    #[inline(always)]
    pub(crate) const fn waits(&self) -> bool {
        self.count > 0
    }
}

impl Stack {
    /// Takes in `frame`, and those that come after it, as long as each is the next of the train that waits, or that the
    /// batches before have brought. The first that is not: it ends the train.
    #[inline(never)]
    pub(crate) fn go_on_with_train<'a>(
        &mut self,
        now: Instant,
        frame: PlainFrame<'a>,
        after: &mut impl Iterator<Item = PlainFrame<'a>>,
    ) -> Option<PlainFrame<'a>> {
        let other =
            if self.expects_train() { self.hold_train(now, frame, after) } else { Some(frame) };
        if other.is_some() {
            self.end_train();
        }
        other
    }

    /// Does a train wait? Or may the one that the batches before have brought go on: would its next frame find what the
    /// last one has found, of the host as of the connection?
    #[inline(always)]
    fn expects_train(&mut self) -> bool {
        let Some(held) = &mut self.held_data else { return false };
        if held.waits() {
            return true;
        }
        // Or its place has become another's, or another flow is the one that was looked up last.
        if self.flows.last(Flow::of_packet(&held.next.ends())) == Some(held.index)
            && let Some(socket) = self.sockets.awake_at(held.index)
            && self.memory.has_supplied(socket)
            && may_wait(&self.memory, socket)
            && let Some(following) = socket.connection.going_on(held.next.next_header())
        {
            (held.following, held.is_resumed) = (following, true);
            return true;
        }
        false
    }

    /// While data wait nothing happens to the host, so that what is asked of host and connection is asked once, and of
    /// each frame its stations, what differs from the frame before, and its sum.
    #[inline(always)]
    fn hold_train<'a>(
        &mut self,
        now: Instant,
        frame: PlainFrame<'a>,
        after: &mut impl Iterator<Item = PlainFrame<'a>>,
    ) -> Option<PlainFrame<'a>> {
        let medium = self.interface.capabilities.medium;
        let front = Front::of(medium, self.stations.as_ref());
        let (Some(held), Some(front)) = (&mut self.held_data, front) else { return Some(frame) };
        let Some(socket) = self.sockets.awake_at(held.index) else { return Some(frame) };
        let before = held.count;
        let mut room = socket.connection.room_for_following(held.following);
        // All that wait have come at one time, and none after this stamp.
        let until = |time: Instant| if time < now { time } else { Instant::NEVER };
        let mut latest = until(self.now);
        let PlainFrame { mut bytes, mut arrived } = frame;
        let other = loop {
            if arrived > latest && !held.waits() {
                self.now = arrived.min(now);
                latest = until(self.now);
            }
            if arrived <= latest
                && let Some(packet) = front.strip(bytes)
                && let Some(packet) = held.next.read(packet)
                && packet.data.len() <= room.len()
                && let (place, rest) = core::mem::take(&mut room).split_at_mut(packet.data.len())
                && held.next.take(packet, place)
            {
                room = rest;
                held.count += 1;
            } else {
                break Some(PlainFrame { bytes, arrived });
            }
            match after.next() {
                Some(next) => (bytes, arrived) = (next.bytes, next.arrived),
                None => break None,
            }
        };
        let count = held.count - before;
        let frame = medium.header_length() + held.next.packet_length();
        held.following.pass(held.next.length() * count as usize);
        self.predicted_frames += u64::from(count);
        self.counted.receive.bytes += u64::from(count) * frame as u64;
        self.pass_time(self.now);
        other
    }

    /// The connection hears of the data that wait.
    #[inline]
    pub(crate) fn release_data(&mut self) {
        if self.held_data.as_ref().is_some_and(HeldData::waits) {
            self.release_held_data();
        }
    }

    /// The same, and the train is over.
    #[inline]
    pub(crate) fn end_train(&mut self) {
        self.release_data();
        self.held_data = None;
    }

    #[inline(never)]
    fn release_held_data(&mut self) {
        let Some(held) = &mut self.held_data else { return };
        let index = held.index;
        let mut settled = Settled::Yes;
        if let Some(last) = held.next.last_segment()
            && let Some(socket) = self.sockets.awake_at(index)
        {
            socket.connection.handle_data_in_place(self.now, &last, held.next.length(), held.count);
            settled = concerned!(self).settle_predicted(index, socket);
        }
        let is_one = held.count == 1 && !held.is_resumed;
        held.count = 0;
        if is_one {
            // In a dialogue none goes on, and who comes next need not be asked.
            self.held_data = None;
        }
        if settled == Settled::Not {
            self.follow(index);
        }
    }
}
