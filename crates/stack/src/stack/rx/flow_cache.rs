//! The fast path of the flow cache: a frame with the link header, addresses and ports of the
//! previous frame is delivered to the same connection without the full parsers. The module
//! `rx::flow_cache` contains the cache.

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
    /// Returns the packet in a frame of the cached flow, and the index of its connection. Returns
    /// `None` if the frame belongs to another flow.
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

    /// Handles a packet of the cached flow in `bytes`, a frame without offload metadata. The packet
    /// has so much data that one pass that copies and checksums is faster than two passes.
    /// Therefore the data of a predicted segment is written into the receive buffer before its
    /// checksum is known. The data becomes readable only if the checksum is correct.
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
            // The condition above has already parsed the segment, before its checksum was verified.
            // Parsing it a second time costs less than storing the first result during the
            // verification.
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

    /// Handles a packet of the cached flow with data. `bytes` is the frame of the packet, and must
    /// have arrived without offload metadata.
    #[inline(never)]
    pub(super) fn handle_cached_with_data<V: Version>(
        &mut self,
        bytes: &[u8],
        index: u32,
        packet: PlainPacket<'_, V>,
    ) {
        self.handle_cached_flow::<V, true>(bytes, index, packet);
    }

    /// Handles a packet of the cached flow without data. `bytes` is the frame of the packet, and
    /// must have arrived without offload metadata.
    #[inline(never)]
    pub(super) fn handle_cached_without_data<V: Version>(
        &mut self,
        bytes: &[u8],
        index: u32,
        packet: PlainPacket<'_, V>,
    ) {
        self.handle_cached_flow::<V, false>(bytes, index, packet);
    }

    /// Handles a packet of the cached flow in `bytes`, a frame without offload metadata. Invalid
    /// packets, and packets that this function does not support, go to the exception path.
    ///
    /// Predicted segments are delivered here, while the parsed segment is still in registers. Other
    /// segments are parsed again by the function that handles them, which costs less than writing
    /// the parsed segment to memory. `HAS_DATA` compiles this function once for segments with data
    /// and once for segments without, because each version needs fewer registers.
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
        // A compact connection is handled by the exception path, which converts it to its full
        // form.
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
            // `self.coalesced` is `None` here, and stays so unless `segment` begins an ACK batch.
            // It is assigned only in that case, to save a write to memory.
            if let Some(acks) = Coalesced::begin_acks(whose, self.now, next, &segment) {
                self.coalesced = Some(acks);
                return;
            }
            self.memory.supply(socket);
            let Some(run) = ControlRun::of(&socket.connection, &segment) else {
                return self.deliver_unpredicted(index, packet);
            };
            let _ = socket.connection.driver().handle_run(self.now, run, &segment);
            // The segment opens or closes the connection, so it has nearly always changed the
            // connection's state. The fast path of the dispatch cannot handle a change of state, so
            // it is not tried.
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

    /// Handles a packet of the cached flow in `frame`, which has metadata from the link, such as a
    /// verified checksum.
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

    /// Handles a frame that arrived without offload metadata, by the exception path.
    #[cold]
    fn handle_plain_exception(&mut self, bytes: &[u8]) {
        self.handle_exception(&RxFrame::plain(bytes, self.now));
    }

    /// Passes the segment in a frame without offload metadata to a half-open connection, unless
    /// [`Stack::may_complete`] tells the host to ignore the segment.
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

    /// May the connection at `index` process the segment in `packet`? A half-open connection may
    /// only if [`Stack::may_complete`] permits it; any other connection may.
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

    /// Adds the segment in `frame` to an ACK batch if possible, or else passes it to its
    /// connection. Used for a frame with metadata, for a packet with an ECN codepoint, and while
    /// coalesced segments are pending.
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

    /// Passes the segment in `packet` to its connection, which must not be compact. No coalesced
    /// segments may be pending, and the packet must have neither metadata nor an ECN codepoint.
    #[inline(never)]
    fn deliver_plain<V: Version>(&mut self, index: u32, packet: PlainPacket<'_, V>) {
        let Ok(segment) = Segment::parse(packet.segment()) else { return };
        let Some(socket) = self.sockets.full_at(index) else { return };
        self.memory.supply(socket);
        if let Some(run) = ControlRun::of(&socket.connection, &segment) {
            let _ = socket.connection.driver().handle_run(self.now, run, &segment);
            // The segment opens or closes the connection, so it has nearly always changed the
            // connection's state. The fast path of the dispatch cannot handle a change of state, so
            // it is not tried.
            return self.dispatch_slowly(index);
        }
        self.deliver_unpredicted(index, packet);
    }

    /// Passes a segment to the general segment processing of its connection, which must not be
    /// compact. Used for a segment that no prediction of the connection matches.
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

    /// Handles a frame that does not belong to the cached flow. If the frame has the link header
    /// and the addresses of the previous packet, these were checked for that packet, and are not
    /// checked again.
    #[inline(never)]
    pub(super) fn handle_other_flow(&mut self, frame: &RxFrame<'_>) {
        if !self.handle_known_hosts::<V4>(frame) && !self.handle_known_hosts::<V6>(frame) {
            self.handle_exception(frame);
        }
    }

    /// Handles a frame whose source and destination addresses are those of the previous packet.
    /// Returns false, without handling the frame, if the addresses differ or the packet needs the
    /// full parsers.
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

    /// Returns the packet in a frame whose link header equals the cached link header; `None` for
    /// any other frame.
    #[inline(always)]
    fn packet_on_known_link<'a, V: Version>(&self, bytes: &'a [u8]) -> Option<PlainPacket<'a, V>> {
        let medium = self.interface.capabilities.medium;
        let link = LinkHeader::of(medium, V::link_header(&self.interface.flow_cache))?;
        link.strip(bytes).and_then(PlainPacket::read)
    }
}
