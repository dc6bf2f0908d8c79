//! The flow cache: delivers a frame with the same headers as the previous one to the same
//! connection, without the parsers. See `rx::flow_cache` for the state.

use crate::ip::Arrived;
use crate::link::arrival::Arrival;
use crate::link::{RxChecksum, RxFrame};
use crate::rx::coalesce::Coalesced;
use crate::rx::flow_cache::{LinkHeader, Version};
use crate::stack::Stack;
use crate::tcp::Owner;
use crate::tcp::dispatch::{Dispatched, step_effects};
use linerate_tcp::{ControlRun, DataRun, Disposition, ShortRun, State};
use linerate_wire::{Ecn, NextAck, PlainPacket, Protocol, Segment, V4, V6};

impl Stack {
    /// Finds the packet in a frame of the cached flow, and the index of its connection.
    #[inline(always)]
    pub(super) fn find_cached_flow<'a, V: Version>(
        &self,
        bytes: &'a [u8],
    ) -> Option<(u32, PlainPacket<'a, V>)> {
        let packet = self.packet_on_known_link(bytes)?;
        if *V::known(&self.interface.flow_cache) != Some(packet.addresses()) {
            return None;
        }
        Some((self.flows.last(&V::flow(&packet.ends()))?, packet))
    }

    /// Handles a packet of the cached flow in the plain frame `bytes`, with enough data to be
    /// summed while it is copied. Predicted data is written to its place before the checksum is
    /// verified, and becomes readable only if the checksum is correct.
    #[inline(never)]
    pub(super) fn handle_cached_data<V: Version>(
        &mut self,
        bytes: &[u8],
        index: u32,
        packet: PlainPacket<'_, V>,
    ) {
        if packet.type_of_service().ecn() == Ecn::NotEct
            && self.coalesced.is_none()
            && let Some((handle, socket)) = self.sockets.full_entry(index)
            && !matches!(socket.owner, Owner::HalfOpen(_))
            && let Ok(segment) = Segment::parse(packet.segment())
            && let Some(place) = DataRun::place_of_first(&mut socket.connection, &segment)
        {
            let Some(data) = packet.copy_intact(place) else {
                return self.handle_exception(&RxFrame::plain(bytes, self.now));
            };
            self.interface.flow_cache.hits += 1;
            self.memory.supply(socket);
            self.coalesced = Coalesced::begin_data(&self.memory, (handle, socket), &packet, data);
            if self.coalesced.is_some() {
                return;
            }
            // The segment is parsed again: keeping the first result across the checksum would write
            // it to memory.
            let Ok(segment) = Segment::parse(packet.segment()) else { return };
            let run = DataRun::begin(&socket.connection, segment.payload.len());
            let _ = socket.connection.driver().handle_run(self.now, run, &segment);
            if step_effects!(self).dispatch(index, socket) == Dispatched::Partly {
                self.dispatch_slowly(index);
            }
            return;
        }
        self.handle_cached_with_data(bytes, index, packet);
    }

    /// Handles a packet of the cached flow with data in the plain frame `bytes`.
    #[inline(never)]
    pub(super) fn handle_cached_with_data<V: Version>(
        &mut self,
        bytes: &[u8],
        index: u32,
        packet: PlainPacket<'_, V>,
    ) {
        self.handle_cached_flow::<V, true>(bytes, index, packet);
    }

    /// Handles a packet of the cached flow without data in the plain frame `bytes`.
    #[inline(never)]
    pub(super) fn handle_cached_without_data<V: Version>(
        &mut self,
        bytes: &[u8],
        index: u32,
        packet: PlainPacket<'_, V>,
    ) {
        self.handle_cached_flow::<V, false>(bytes, index, packet);
    }

    /// Handles a packet of the cached flow in the plain frame `bytes`. Unusual packets are handled
    /// as exceptions.
    ///
    /// Predicted segments are delivered here, with the parsed segment still in registers. Others
    /// are parsed again where they are needed, which costs less than writing the parsed one to
    /// memory. Segments with and without data have a function each, which needs fewer registers.
    #[inline(always)]
    fn handle_cached_flow<V: Version, const HAS_DATA: bool>(
        &mut self,
        bytes: &[u8],
        index: u32,
        packet: PlainPacket<'_, V>,
    ) {
        if !packet.is_intact() {
            return self.handle_plain_exception(bytes);
        }
        // The exception path unpacks a compact connection.
        let Some((handle, socket)) = self.sockets.full_entry(index) else {
            return self.handle_plain_exception(bytes);
        };
        if let Owner::HalfOpen(listener) = socket.owner {
            return self.deliver_to_half_open(bytes, (index, listener), packet);
        }
        if socket.state == State::TimeWait {
            return self.handle_plain_exception(bytes);
        }
        let Ok(segment) = Segment::parse(packet.segment()) else {
            return self.handle_plain_exception(bytes);
        };
        self.interface.flow_cache.hits += 1;
        if packet.type_of_service().ecn() != Ecn::NotEct || self.coalesced.is_some() {
            return self.deliver_unusual(index, &RxFrame::plain(bytes, self.now), packet);
        }
        if !HAS_DATA {
            let next = || NextAck::after(&packet).map(V::next_acks);
            let whose = (handle, &socket.connection);
            // Only a batch is written: the place of a missing one need not be.
            if let Some(acks) = Coalesced::begin_acks(whose, self.now, next, &segment) {
                self.coalesced = Some(acks);
                return;
            }
            self.memory.supply(socket);
            let Some(run) = ControlRun::of(&socket.connection, &segment) else {
                return self.deliver_unpredicted(index, packet);
            };
            let _ = socket.connection.driver().handle_run(self.now, run, &segment);
            // Nearly always the connection is in another state now.
            return self.dispatch_slowly(index);
        }
        self.memory.supply(socket);
        let Some(run) = ShortRun::of(&socket.connection, &segment) else {
            return self.deliver_unpredicted(index, packet);
        };
        let disposition = socket.connection.driver().handle_run(self.now, run, &segment);
        if disposition != Disposition::Accepted {
            self.finish_segment(self.now, index, disposition);
        } else if step_effects!(self).dispatch(index, socket) == Dispatched::Partly {
            self.dispatch_slowly(index);
        }
    }

    /// Handles a packet of the cached flow in `frame`, which has metadata.
    #[inline(never)]
    pub(super) fn handle_cached_flow_with_metadata<V: Version>(
        &mut self,
        frame: &RxFrame<'_>,
        index: u32,
        packet: PlainPacket<'_, V>,
    ) {
        let is_intact = frame.checksum != RxChecksum::Unverified || packet.is_intact();
        let socket = self.sockets.full_at(index).filter(|socket| socket.state != State::TimeWait);
        let is_segment = Segment::parse(packet.segment()).is_ok();
        let Some(owner) = socket.filter(|_| is_intact && is_segment).map(|socket| socket.owner)
        else {
            return self.handle_exception(frame);
        };
        self.interface.flow_cache.hits += 1;
        if self.is_let_in(index, owner, packet) {
            self.deliver_unusual(index, frame, packet);
        }
    }

    /// Handles a frame without metadata as an exception.
    #[cold]
    fn handle_plain_exception(&mut self, bytes: &[u8]) {
        self.handle_exception(&RxFrame::plain(bytes, self.now));
    }

    /// Passes the segment in a frame without metadata to a half-open connection, unless the
    /// listener does not yet permit the end of the handshake.
    #[inline(never)]
    fn deliver_to_half_open<V: Version>(
        &mut self,
        bytes: &[u8],
        (index, listener): (u32, u32),
        packet: PlainPacket<'_, V>,
    ) {
        if Segment::parse(packet.segment()).is_err() {
            return self.handle_plain_exception(bytes);
        }
        self.interface.flow_cache.hits += 1;
        if !self.is_let_in(index, Owner::HalfOpen(listener), packet) {
            return;
        }
        if packet.type_of_service().ecn() != Ecn::NotEct || self.coalesced.is_some() {
            self.deliver_unusual(index, &RxFrame::plain(bytes, self.now), packet);
        } else {
            self.deliver_plain(index, packet);
        }
    }

    /// May the segment be processed? For a half-open connection, the listener decides.
    #[inline(always)]
    fn is_let_in<V: Version>(
        &mut self,
        index: u32,
        owner: Owner,
        packet: PlainPacket<'_, V>,
    ) -> bool {
        let Owner::HalfOpen(listener) = owner else { return true };
        let segment = Segment::parse(packet.segment());
        segment.is_ok_and(|segment| self.may_complete(self.now, (index, listener), &segment))
    }

    /// Passes the segment in `frame` to its connection. The frame has metadata or an ECN codepoint,
    /// or other segments are pending.
    #[inline(never)]
    fn deliver_unusual<V: Version>(
        &mut self,
        index: u32,
        frame: &RxFrame<'_>,
        packet: PlainPacket<'_, V>,
    ) {
        let Ok(mut segment) = Segment::parse(packet.segment()) else { return };
        segment.joined = frame.segment;
        let ecn = packet.type_of_service().ecn();
        let can_coalesce = segment.payload.is_empty() && ecn == Ecn::NotEct;
        if can_coalesce
            && self.coalesce_ack(index, || NextAck::after(&packet).map(V::next_acks), &segment)
        {
            return;
        }
        self.flush_coalesced();
        if segment.joined.is_some() {
            self.counted.tcp.in_segments += u64::from(segment.count() - 1);
        }
        let _ = self.deliver_segment(index, &segment, ecn, frame.memory);
    }

    /// Passes a segment whose data was not predicted to its connection, which is not compact. The
    /// packet has neither metadata nor an ECN codepoint.
    #[inline(never)]
    fn deliver_plain<V: Version>(&mut self, index: u32, packet: PlainPacket<'_, V>) {
        let Ok(segment) = Segment::parse(packet.segment()) else { return };
        let Some(socket) = self.sockets.full_at(index) else { return };
        self.memory.supply(socket);
        if let Some(run) = ControlRun::of(&socket.connection, &segment) {
            let _ = socket.connection.driver().handle_run(self.now, run, &segment);
            // After such a segment the state of the connection has nearly always changed.
            return self.dispatch_slowly(index);
        }
        self.deliver_unpredicted(index, packet);
    }

    /// Passes a segment that was not predicted at all to its connection, which is not compact.
    #[inline(never)]
    fn deliver_unpredicted<V: Version>(&mut self, index: u32, packet: PlainPacket<'_, V>) {
        let Ok(segment) = Segment::parse(packet.segment()) else { return };
        let Some(socket) = self.sockets.full_at(index) else { return };
        let disposition = socket.connection.driver().handle_segment(self.now, &segment);
        if disposition != Disposition::Accepted {
            self.finish_segment(self.now, index, disposition);
        } else if step_effects!(self).dispatch(index, socket) == Dispatched::Partly {
            self.dispatch_slowly(index);
        }
    }

    /// Handles a frame whose flow is not the cached flow. If the frame has the same two addresses
    /// as the previous packet, link header and addresses need not be checked again.
    #[inline(never)]
    pub(super) fn handle_other_flow(&mut self, frame: &RxFrame<'_>) {
        if !self.handle_known_hosts::<V4>(frame) && !self.handle_known_hosts::<V6>(frame) {
            self.handle_exception(frame);
        }
    }

    /// Handles a frame between the hosts of the last packet. Returns false for other frames.
    #[inline(always)]
    fn handle_known_hosts<V: Version>(&mut self, frame: &RxFrame<'_>) -> bool {
        let is_between = |packet: &PlainPacket<'_, V>| {
            *V::known(&self.interface.flow_cache) == Some(packet.addresses())
        };
        let Some(packet) = self.packet_on_known_link(frame.bytes).filter(is_between) else {
            return false;
        };
        let arrival = Arrival::of(frame, self.now);
        if frame.segment.is_some() || (!arrival.is_verified && !packet.is_intact()) {
            return false;
        }
        let Ok(segment) = Segment::parse(packet.segment()) else { return false };
        self.counted.receive.packets += 1;
        self.counted.ip.in_receives += 1;
        self.counted.tcp.in_segments += 1;
        let arrived = Arrived {
            arrival,
            hosts: V::hosts(packet.addresses()),
            protocol: Protocol::TCP,
            type_of_service: packet.type_of_service(),
            ttl: packet.ttl(),
            payload: packet.segment(),
            bytes: &frame.bytes[self.interface.capabilities.medium.header_length()..],
            is_broadcast: false,
        };
        self.handle_flow(&arrived, &segment);
        self.counted.ip.in_delivers += 1;
        true
    }

    /// Returns the packet in a frame with the cached link header.
    #[inline(always)]
    fn packet_on_known_link<'a, V: Version>(&self, bytes: &'a [u8]) -> Option<PlainPacket<'a, V>> {
        let medium = self.interface.capabilities.medium;
        let link = LinkHeader::of(medium, V::link_header(&self.interface.flow_cache))?;
        link.strip(bytes).and_then(PlainPacket::read)
    }
}
