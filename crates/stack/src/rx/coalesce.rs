//! The state of coalescing: a pending GRO run of data, or a pending ACK batch.
//!
//! The segments of a GRO run differ only in their sequence numbers and checksums. Their data is
//! written to its place in the receive buffer while the checksums are verified, and the connection
//! processes the run once. The next batch of frames can continue the run, if the connection still
//! expects it.
//!
//! The last acknowledgement of a batch covers all others, so the connection processes only the last
//! one, and their number. It behaves as if the path had lost the others, except that the congestion
//! window grows for all.
//!
//! A pending run is delivered at the end of its batch of frames, and before any frame that does not
//! continue it. So host and connection behave as if each segment had been processed separately.

use crate::handle::TcpHandle;
use crate::tcp::TcpSocket;
use crate::tcp::memory::Memory;
use linerate_tcp::{AckRun, Connection, DataRun};
use linerate_units::Instant;
use linerate_wire::{NextAck, NextPacket, PlainPacket, Segment, Sum};

/// Segments of one connection that are coalesced and not yet delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coalesced {
    /// The connection. Its slot may have been reused.
    pub(crate) handle: TcpHandle,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Data {
        run: DataRun,
        /// The header of the last segment, from which the next is predicted.
        next: NextPacket,
        /// Was the run begun in an earlier batch of frames?
        is_resumed: bool,
    },
    Acks {
        run: AckRun,
        /// The header of the last acknowledgement, from which the next is predicted.
        next: NextAck,
        /// Time of arrival of the last acknowledgement.
        at: Instant,
    },
}

impl Coalesced {
    /// Begins a GRO run with `packet`, which is intact, and whose data with this sum is in the
    /// receive buffer. Returns `None` if no segment could be coalesced with it.
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

    /// Begins an ACK batch with `segment`, which has no data and no congestion mark, and has
    /// arrived at `at`. Returns `None` if no acknowledgement could be coalesced with it. `next`
    /// predicts the header of the next one.
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

    /// Are there segments that were not delivered to the connection?
    #[inline(always)]
    pub(crate) const fn is_pending(&self) -> bool {
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

/// Is there memory for the data of the connection, independent of events before the delivery?
#[inline(always)]
pub(crate) fn has_memory(memory: &Memory, socket: &TcpSocket) -> bool {
    socket.granted.is_final() && !memory.is_awaited()
}
