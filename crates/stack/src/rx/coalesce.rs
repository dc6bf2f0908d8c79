//! Coalescing of segments that arrive together: GRO of data, and batches of acknowledgements.
//!
//! The segments of a GRO run differ in nothing but their numbers. Their data are written to their place in
//! the receive buffer while the checksums are verified, and the connection is told of all at once. The next
//! batch of frames may continue the run of the one before, after one question to the connection.
//!
//! The last of a batch of acknowledgements says all that the others did, so the connection is given the
//! last one and their number. To the sender it is as if the path had lost the others, and its window grows
//! as if it had not.
//!
//! Nothing waits for longer than the batch of frames it came with, nor for a frame that does not belong to
//! the run: that finds connection and host as if each segment had been handled by itself.

use crate::handle::TcpHandle;
use crate::tcp::TcpSocket;
use crate::tcp::memory::Memory;
use linerate_tcp::{AckRun, Connection, DataRun};
use linerate_units::Instant;
use linerate_wire::{NextAck, NextPacket, PlainPacket, Segment, Sum};

/// Segments of one connection that wait for others of their run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coalesced {
    /// The connection. Its place may become another's.
    pub(crate) handle: TcpHandle,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Data {
        run: DataRun,
        /// The header of the last segment, and of the next.
        next: NextPacket,
        /// The run has begun in an earlier batch of frames.
        is_resumed: bool,
    },
    Acks {
        run: AckRun,
        /// The header of the last one, and of the next.
        next: NextAck,
        /// Time of arrival of the last one.
        at: Instant,
    },
}

impl Coalesced {
    /// Begins a GRO run with `packet`, which is intact, and whose data, with this sum, are in their place.
    /// `None` if no other could be coalesced with it.
    #[inline(always)]
    pub(crate) fn begin_data(
        memory: &Memory,
        (handle, socket): (TcpHandle, &TcpSocket),
        packet: &PlainPacket<'_>,
        data: Sum,
    ) -> Option<Self> {
        if !has_memory(memory, socket) {
            return None;
        }
        let next = NextPacket::after(packet, data)?;
        let run = DataRun::begin(&socket.connection, next.length());
        Some(Self { handle, kind: Kind::Data { run, next, is_resumed: false } })
    }

    /// Begins a batch of acknowledgements with `segment`, an unmarked one without data that has
    /// come at `at`, if others may follow it. `next` makes the header that the next one is compared
    /// with.
    #[inline(always)]
    pub(crate) fn begin_acks(
        (handle, connection): (TcpHandle, &Connection),
        at: Instant,
        next: impl Fn() -> Option<NextAck>,
        segment: &Segment<'_>,
    ) -> Option<Self> {
        let run = AckRun::begin(connection, segment)?;
        Some(Self { handle, kind: Kind::Acks { run, next: next()?, at } })
    }

    /// Does it hold segments that the connection has not been told of?
    #[inline(always)]
    pub(crate) const fn waits(&self) -> bool {
        match &self.kind {
            Kind::Data { run, .. } => run.count() > 0,
            Kind::Acks { .. } => true,
        }
    }

    #[inline(always)]
    pub(crate) const fn is_data(&self) -> bool {
        matches!(self.kind, Kind::Data { .. })
    }
}

/// Is there memory for the data of the connection, whatever comes before it is told of them?
#[inline(always)]
pub(crate) fn has_memory(memory: &Memory, socket: &TcpSocket) -> bool {
    socket.granted.is_final() && !memory.is_awaited()
}
