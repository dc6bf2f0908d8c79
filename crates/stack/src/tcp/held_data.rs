//! Data that come together: the segments of a train, which differ in nothing but their numbers, are in their places
//! when the connection hears of them, and it hears of all at once.
//!
//! None waits for longer than the batch of frames that it came with, nor for anything that is no part of the train:
//! whatever else comes finds the connection, and the host, as if each segment had been taken in by itself.

use super::TcpSocket;
use super::familiar::packet_between;
use super::settle::{Settled, concerned};
use crate::memory::Memory;
use crate::stack::Stack;
use linerate_tcp::Following;
use linerate_units::Instant;
use linerate_wire::{NextPacket, PlainPacket, Sum};

/// A train of which the connection has not heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldData {
    /// Whose it is.
    index: u32,
    /// Segments in it.
    count: u32,
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
        if !socket.granted.is_for_good() || memory.is_awaited() {
            return None;
        }
        let next = NextPacket::after(packet, data)?;
        Some(Self { index, count: 1, next, following: socket.connection.following(next.length()) })
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

    /// The connection hears of the data that wait.
    #[inline]
    pub(crate) fn release_data(&mut self) {
        if self.held_data.is_some() {
            self.release_held_data();
        }
    }

    #[inline(never)]
    fn release_held_data(&mut self) {
        let Some(held) = &self.held_data else { return };
        let index = held.index;
        let mut settled = Settled::Yes;
        if let Some(last) = held.next.last_segment()
            && let Some(socket) = self.sockets.awake_at(index)
        {
            socket.connection.handle_data_in_place(self.now, &last, held.next.length(), held.count);
            settled = concerned!(self).settle(index, socket);
        }
        self.held_data = None;
        if settled == Settled::Not {
            self.follow(index);
        }
    }
}
