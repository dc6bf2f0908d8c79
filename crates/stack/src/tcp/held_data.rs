//! Data that come together: the segments of a train, which differ in nothing but their numbers, are in their places
//! when the connection hears of them, and it hears of all at once.
//!
//! The next batch may go on with the train that the one before has brought: then no frame of it is judged from its first
//! byte on, and only the connection is asked whether it still expects what it did.
//!
//! None waits for longer than the batch of frames that it came with, nor for anything that is no part of the train:
//! whatever else comes finds the connection, and the host, as if each segment had been taken in by itself.

use super::TcpSocket;
use super::familiar::packet_between;
use super::settle::{Settled, concerned};
use crate::demux::Flow;
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
    /// Takes in the frame in `bytes`, which has come `at` this time and of which the link says nothing, if it is the next
    /// of the train that waits.
    #[inline(never)]
    pub(crate) fn holds_next(&mut self, at: Instant, bytes: &[u8]) -> bool {
        let Some(held) = &mut self.held_data else { return false };
        let length = held.next.length();
        if at <= self.now
            && let Some(bytes) =
                packet_between(self.interface.capabilities.medium, self.stations.as_ref(), bytes)
            && let Some(packet) = held.next.read(bytes)
            && let Some(socket) = self.sockets.awake_at(held.index)
            && let Some(room) = socket.connection.room_for_following(held.following, length)
            && held.next.take(packet, room)
        {
            held.count += 1;
            held.following.pass(length);
            self.predicted_frames += 1;
            return true;
        }
        false
    }

    /// The same for the first frame of a batch, of which nothing waits: if it is the next of the train that the batches
    /// before it have brought, and would find what the last one of that has found, of the host as of the connection.
    #[inline(never)]
    pub(crate) fn resumes_with(&mut self, at: Instant, bytes: &[u8]) -> bool {
        self.pass_time(at);
        let Some(held) = &mut self.held_data else { return false };
        // Or its place has become another's, or another flow is the one that was looked up last.
        if self.flows.last(Flow::of_packet(&held.next.ends())) == Some(held.index)
            && let Some(socket) = self.sockets.awake_at(held.index)
            && self.memory.has_supplied(socket)
            && may_wait(&self.memory, socket)
            && let Some(following) = socket.connection.going_on(held.next.next_header())
        {
            (held.following, held.is_resumed) = (following, true);
            return self.holds_next(at, bytes);
        }
        false
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
            settled = concerned!(self).settle(index, socket);
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
