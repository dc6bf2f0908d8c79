//! The flow cache: a frame with the link header, addresses and ports of the frame before is for the same
//! connection.
//!
//! What was checked of these headers for one frame holds for the next, so they are compared and not judged
//! again, and lead straight to the connection. What differs from frame to frame is checked as ever: lengths,
//! fragmentation, both checksums. Nothing is changed before a frame is known to be good. Any frame can also
//! take the way of exceptions, through the parsers; tests give every frame to a twin that knows no other.

use crate::demux::Flow;
use crate::ip::Arrived;
use crate::link::arrival::Arrival;
use crate::link::{RxChecksum, RxFrame};
use crate::rx::coalesce::Coalesced;
use crate::rx::flow_cache::LinkHeader;
use crate::stack::Stack;
use crate::tcp::Owner;
use crate::tcp::settle::{Settled, concerned};
use linerate_tcp::{DataRun, Run, State};
use linerate_wire::{Ecn, NextAck, PlainPacket, Segment};

impl Stack {
    /// Finds the packet in a frame of the cached flow, and the number of its connection.
    #[inline(always)]
    pub(super) fn find_cached_flow<'a>(&self, bytes: &'a [u8]) -> Option<(u32, PlainPacket<'a>)> {
        let packet = self.packet_on_known_link(bytes)?;
        if self.flow_cache.hosts != Some(packet.addresses()) || !self.flow_cache.is_enabled {
            return None;
        }
        Some((self.flows.last(Flow::of_packet(&packet.ends()))?, packet))
    }

    /// Handles a packet of the cached flow in the frame `bytes`, which has no metadata, and which is long
    /// enough for its data to be summed while they are copied. Predicted data are written to their place
    /// before the checksum is known to be right, and count only if it is.
    #[inline(never)]
    pub(super) fn handle_cached_data(&mut self, bytes: &[u8], index: u32, packet: PlainPacket<'_>) {
        if packet.type_of_service().ecn() == Ecn::NotEct
            && self.coalesced.is_none()
            && let Some((handle, socket)) = self.sockets.awake_entry(index)
            && !matches!(socket.owner, Owner::HalfOpen(_))
            && let Ok(segment) = Segment::parse(packet.segment())
            && let Some(place) = DataRun::place_of_first(&mut socket.connection, &segment)
        {
            let Some(data) = packet.copy_intact(place) else {
                return self.handle_exception(&RxFrame::plain(bytes, self.now));
            };
            self.flow_cache.hits += 1;
            self.memory.supply(socket);
            self.coalesced = Coalesced::begin_data(&self.memory, (handle, socket), &packet, data);
            if self.coalesced.is_some() {
                return;
            }
            // Parsed once more: the first parse would have to be kept across the sum.
            let Ok(segment) = Segment::parse(packet.segment()) else { return };
            let run = Run::Data(DataRun::begin(&socket.connection, segment.payload.len()));
            let _ = socket.connection.handle_run(self.now, run, &segment);
            if concerned!(self).settle(index, socket) == Settled::Not {
                self.follow(index);
            }
            return;
        }
        self.handle_cached_flow(bytes, None, index, packet);
    }

    /// Handles a packet of the cached flow in the frame `bytes`. `frame` has its metadata, if there are any.
    /// If anything is unusual about it, it takes the way of exceptions.
    #[inline(never)]
    pub(super) fn handle_cached_flow(
        &mut self,
        bytes: &[u8],
        frame: Option<&RxFrame<'_>>,
        index: u32,
        packet: PlainPacket<'_>,
    ) {
        let is_verified = frame.is_some_and(|frame| frame.checksum != RxChecksum::Unverified);
        if (!is_verified && !packet.is_intact()) || !self.is_for_open_connection(index, &packet) {
            return match frame {
                Some(frame) => self.handle_exception(frame),
                None => self.handle_exception(&RxFrame::plain(bytes, self.now)),
            };
        }
        self.flow_cache.hits += 1;
        let Ok(mut segment) = Segment::parse(packet.segment()) else { return };
        let memory = frame.and_then(|frame| frame.memory);
        segment.joined = frame.and_then(|frame| frame.segment);
        if self.may_be_withheld(index, &segment) {
            return;
        }
        let ecn = packet.type_of_service().ecn();
        let may_wait = segment.payload.is_empty() && ecn == Ecn::NotEct;
        if may_wait && self.coalesce_ack(index, || NextAck::after(&packet), &segment) {
            return;
        }
        if !may_wait {
            self.flush_coalesced();
        }
        if segment.joined.is_some() {
            self.counted.tcp.in_segments += u64::from(segment.count() - 1);
        }
        let _ = self.give_segment(index, &segment, ecn, memory);
    }

    /// Is the connection awake and not in TIME-WAIT, and the packet a segment?
    #[inline(always)]
    fn is_for_open_connection(&mut self, index: u32, packet: &PlainPacket<'_>) -> bool {
        // A compact connection is unpacked on the way of exceptions.
        let Some(socket) = self.sockets.awake_at(index) else { return false };
        socket.state != State::TimeWait && Segment::parse(packet.segment()).is_ok()
    }

    /// Is the connection half open, and does its listener not let the segment complete the handshake?
    #[inline(always)]
    fn may_be_withheld(&mut self, index: u32, segment: &Segment<'_>) -> bool {
        let owner = self.sockets.awake_at(index).map(|socket| socket.owner);
        let Some(Owner::HalfOpen(listener)) = owner else { return false };
        !self.may_complete(self.now, (index, listener), segment)
    }

    /// Handles a frame of another flow than the cached one. If its packet goes between the same two hosts,
    /// link header and addresses need not be checked.
    #[inline(never)]
    pub(super) fn handle_other_flow(&mut self, frame: &RxFrame<'_>) {
        let is_between =
            |packet: &PlainPacket<'_>| self.flow_cache.hosts == Some(packet.addresses());
        let Some(packet) = self.packet_on_known_link(frame.bytes).filter(is_between) else {
            return self.handle_exception(frame);
        };
        let arrival = Arrival::of(frame, self.now);
        if !self.flow_cache.is_enabled
            || frame.segment.is_some()
            || (!arrival.verified && !packet.is_intact())
        {
            return self.handle_exception(frame);
        }
        let Ok(segment) = Segment::parse(packet.segment()) else {
            return self.handle_exception(frame);
        };
        self.counted.receive.packets += 1;
        self.counted.ip.in_receives += 1;
        self.counted.tcp.in_segments += 1;
        let bytes = &frame.bytes[self.interface.capabilities.medium.header_length()..];
        let (header, payload) = (packet.header(), packet.segment());
        self.handle_flow(
            &Arrived { arrival, header, payload, bytes, to_everyone: false },
            &segment,
        );
        self.counted.ip.in_delivers += 1;
    }

    /// Returns the packet in a frame with the link header of the frame before.
    #[inline(always)]
    fn packet_on_known_link<'a>(&self, bytes: &'a [u8]) -> Option<PlainPacket<'a>> {
        let medium = self.interface.capabilities.medium;
        let link = LinkHeader::of(medium, self.flow_cache.link_header.as_ref())?;
        link.strip(bytes).and_then(PlainPacket::read)
    }
}
