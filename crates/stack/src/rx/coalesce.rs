//! The state of coalescing on receipt: a pending GRO run of data segments, or a pending batch of
//! pure acknowledgements.
//!
//! The headers of the segments of a GRO run differ only in sequence numbers and checksums. The host
//! writes the data of each segment into the receive buffer while it verifies the checksum. The
//! connection then processes the whole run in one step. The next batch of frames can continue the
//! run, if the connection still expects the next sequence number.
//!
//! The final acknowledgement of a batch covers all others, so the connection processes only this
//! acknowledgement and the number of acknowledgements in the batch. The connection behaves as if
//! the path had lost the earlier acknowledgements, except that its congestion window grows for all
//! of them.
//!
//! Pending segments are delivered to the connection at the end of their batch of frames, and before
//! any frame that does not continue them. Coalescing thus never changes the order in which segments
//! are processed.

use crate::handle::TcpHandle;
use crate::rx::flow_cache::Version;
use crate::tcp::TcpSocket;
use crate::tcp::memory::Memory;
use linerate_tcp::{AckRun, Connection, DataRun};
use linerate_units::Instant;
use linerate_wire::{NextAck, NextPacket, PlainPacket, Segment, Sum, V4, V6};

/// Segments of one connection that were coalesced but not yet delivered to the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coalesced {
    /// Handle of the connection. It may be invalid, because the connection may have been closed
    /// meanwhile.
    pub(crate) handle: TcpHandle,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Data {
        run: DataRun,
        /// The headers that the next segment of the run must have, predicted from the headers of
        /// the latest segment.
        next: NextData,
        /// Whether the run was begun in a batch of frames that has ended, and is continued in the
        /// current batch.
        is_resumed: bool,
    },
    Acks {
        run: AckRun,
        /// The headers of the latest acknowledgement, from which the headers of the next
        /// acknowledgement are predicted.
        next: NextAcks,
        /// Time of arrival of the latest acknowledgement.
        at: Instant,
    },
}

/// The predicted headers of the next segment of a GRO run, by IP version.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextData {
    V4(NextPacket<V4>),
    V6(NextPacket<V6>),
}

/// The headers of the latest acknowledgement of an ACK batch, from which those of the next are
/// predicted, by IP version.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextAcks {
    V4(NextAck<V4>),
    V6(NextAck<V6>),
}

impl NextData {
    /// Returns the latest segment of the run, with its header but without its data.
    #[inline(always)]
    pub(crate) fn last_segment(&self) -> Option<Segment<'_>> {
        match self {
            Self::V4(next) => next.last_segment(),
            Self::V6(next) => next.last_segment(),
        }
    }
}

impl NextAcks {
    /// Returns the latest acknowledgement of the batch.
    #[inline(always)]
    pub(crate) fn last_segment(&self) -> Option<Segment<'_>> {
        match self {
            Self::V4(next) => next.last_segment(),
            Self::V6(next) => next.last_segment(),
        }
    }

    /// Creates the value for an acknowledgement of which only the TCP segment `bytes` is known.
    /// Without the IP header, the headers of a next acknowledgement cannot be predicted, so no
    /// acknowledgement is added to the batch after this one.
    pub(crate) fn after_segment(bytes: &[u8]) -> Option<Self> {
        NextAck::after_segment(bytes).map(Self::V4)
    }
}

impl Coalesced {
    /// Begins a GRO run with a valid packet. The data of the packet are already in the receive
    /// buffer, and their checksum is `data`. Returns `None` if no further segment can be coalesced
    /// with this packet.
    #[inline(always)]
    pub(crate) fn begin_data<V: Version>(
        memory: &Memory,
        (handle, socket): (TcpHandle, &TcpSocket),
        packet: &PlainPacket<'_, V>,
        data: Sum,
    ) -> Option<Self> {
        if !has_memory(memory, socket) {
            return None;
        }
        let next = NextPacket::after(packet, data)?;
        let run = DataRun::begin(&socket.connection, next.length());
        let next = V::next_data(next);
        Some(Self { handle, kind: Kind::Data { run, next, is_resumed: false } })
    }

    /// Begins an ACK batch with `segment`, which arrived at `at`: an acknowledgement without data
    /// and without a congestion mark. `next` predicts the headers of the next acknowledgement.
    /// Returns `None` if no further acknowledgement can be coalesced with `segment`.
    #[inline(always)]
    pub(crate) fn begin_acks(
        (handle, connection): (TcpHandle, &Connection),
        at: Instant,
        next: impl Fn() -> Option<NextAcks>,
        segment: &Segment<'_>,
    ) -> Option<Self> {
        let run = AckRun::begin(connection, segment)?;
        Some(Self { handle, kind: Kind::Acks { run, next: next()?, at } })
    }

    /// Returns whether some segments have not yet been delivered to the connection.
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

/// Returns whether the connection is sure to get memory for coalesced data when they are delivered,
/// even if other connections take memory before that.
#[inline(always)]
pub(crate) fn has_memory(memory: &Memory, socket: &TcpSocket) -> bool {
    socket.granted.is_final() && !memory.is_awaited()
}
