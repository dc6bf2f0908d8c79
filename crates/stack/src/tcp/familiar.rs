//! Header prediction one layer down: a frame with the header of the frame before it is for the same
//! connection.
//!
//! In a train of segments stations, addresses and ports repeat. What was found good of them for one frame is
//! good for the next, so they are compared and not judged again, and lead straight to the connection.
//! What differs from frame to frame is looked at as it always is: lengths, fragments, both checksums.
//!
//! As header prediction does, this touches nothing before it is sure, and whatever it can answer the long
//! way through `receive`, `ipv4` and `input` can answer, too; every frame of a test is given to a twin that
//! takes that way only.

use super::input::give_with;
use super::settle::{Settled, concerned};
use super::{HeldAck, HeldData, Owner};
use crate::demux::Flow;
use crate::ipv4::Arrived;
use crate::link::{Medium, RxChecksum, RxFrame};
use crate::receive::Arrival;
use crate::stack::Stack;
use alloc::sync::Arc;
use core::num::NonZeroU16;
use linerate_tcp::{Disposition, State};
use linerate_wire::{Ecn, EthernetHeader, NextAck, PlainPacket, Segment};

/// An Ethernet header without tags, as it stands in the frame.
pub(crate) type StationHeader = [u8; EthernetHeader::LENGTH];

impl Stack {
    /// The packet in a frame like the one before it, and the number of its connection.
    #[inline(always)]
    pub(crate) fn find_familiar<'a>(&self, bytes: &'a [u8]) -> Option<(u32, PlainPacket<'a>)> {
        let packet = self.familiar_packet(bytes)?;
        if self.familiar != Some(packet.addresses()) {
            return None;
        }
        Some((self.flows.last(Flow::of_packet(&packet.ends()))?, packet))
    }

    /// Takes in a packet that [`find_familiar`](Self::find_familiar) has found in the frame `bytes`, of which nothing else
    /// is known, and that is so long that it has data which are worth being summed while they are copied: what is data as
    /// predicted is written to where it belongs before anybody knows whether it is intact, and is there, or is not, with
    /// the answer to that.
    #[inline(never)]
    pub(crate) fn handle_familiar_data(
        &mut self,
        bytes: &[u8],
        index: u32,
        packet: PlainPacket<'_>,
    ) {
        if packet.type_of_service().ecn() == Ecn::NotEct
            && self.held_ack.is_none()
            && let Some(socket) = self.sockets.awake_at(index)
            && !matches!(socket.owner, Owner::HalfOpen(_))
            && let Ok(segment) = Segment::parse(packet.segment())
            && let Some(room) = socket.connection.room_for_predicted(&segment)
        {
            let Some(data) = packet.copy_intact(room) else {
                return self.handle_unfamiliar_bytes(bytes);
            };
            self.predicted_frames += 1;
            self.memory.supply(socket);
            self.held_data = HeldData::begin(&self.memory, (index, socket), &packet, data);
            if self.held_data.is_some() {
                return;
            }
            // Read once more: what stands in registers would have to be put aside for the sum.
            let Ok(segment) = Segment::parse(packet.segment()) else { return };
            socket.connection.handle_data_in_place(self.now, &segment, segment.payload.len(), 1);
            if concerned!(self).settle_predicted(index, socket) == Settled::Not {
                self.follow(index);
            }
            return;
        }
        self.handle_familiar(bytes, index, packet);
    }

    /// Takes in a packet that [`find_familiar`](Self::find_familiar) has found in the frame `bytes`, of which nothing else is
    /// known, and which is judged from its first byte on if there is anything odd about it. What is called on the way,
    /// besides the sum and the copy, is called last: so all that is known of the packet stays in registers.
    #[inline(never)]
    pub(crate) fn handle_familiar(&mut self, bytes: &[u8], index: u32, packet: PlainPacket<'_>) {
        if !packet.is_intact() {
            return self.handle_unfamiliar_bytes(bytes);
        }
        // One at rest is woken the long way.
        let Some((handle, socket)) = self.sockets.awake_entry(index) else {
            return self.handle_unfamiliar_bytes(bytes);
        };
        // A listener has a say in what comes for the one, and may get what comes for the other.
        if let Owner::HalfOpen(listener) = socket.owner {
            return self.handle_half_open(
                &RxFrame::plain(bytes, self.now),
                (index, listener),
                packet,
            );
        }
        if socket.state == State::TimeWait {
            return self.handle_unfamiliar_bytes(bytes);
        }
        let Ok(segment) = Segment::parse(packet.segment()) else {
            return self.handle_unfamiliar_bytes(bytes);
        };
        self.predicted_frames += 1;
        if packet.type_of_service().ecn() != Ecn::NotEct {
            return self.give_familiar(index, packet, None, None);
        }
        if segment.payload.is_empty() {
            let whose = (handle, &socket.connection);
            if HeldAck::keep(
                &mut self.held_ack,
                self.now,
                whose,
                || NextAck::after(&packet),
                &segment,
            ) {
                return;
            }
            return self.give_control(index, packet);
        }
        if self.held_ack.is_some() {
            return self.give_familiar(index, packet, None, None);
        }
        self.memory.supply(socket);
        let Some(disposition) = socket.connection.handle_predicted_data(self.now, &segment) else {
            return self.give_unpredicted(index, packet);
        };
        if disposition != Disposition::Accepted
            || concerned!(self).settle_predicted(index, socket) == Settled::Not
        {
            self.follow_segment(self.now, index, disposition);
        }
    }

    /// The same for a frame of which the link has something to say.
    #[inline(never)]
    pub(crate) fn handle_familiar_bearing(
        &mut self,
        frame: &RxFrame<'_>,
        index: u32,
        packet: PlainPacket<'_>,
    ) {
        if frame.checksum == RxChecksum::Unverified && !packet.is_intact() {
            return self.handle_unfamiliar(frame);
        }
        let Some(socket) = self.sockets.awake_at(index) else {
            return self.handle_unfamiliar(frame);
        };
        if let Owner::HalfOpen(listener) = socket.owner {
            return self.handle_half_open(frame, (index, listener), packet);
        }
        if socket.state == State::TimeWait || Segment::parse(packet.segment()).is_err() {
            return self.handle_unfamiliar(frame);
        }
        self.predicted_frames += 1;
        self.give_familiar(index, packet, frame.segment, frame.memory);
    }

    /// Takes in a frame that is not like the one before it. If its packet goes between the same two hosts all the same,
    /// it is judged no further than that: it is of another flow, or of one that begins.
    #[inline(never)]
    pub(crate) fn handle_other_flow(&mut self, frame: &RxFrame<'_>) {
        let is_between = |packet: &PlainPacket<'_>| self.familiar == Some(packet.addresses());
        let Some(packet) = self.familiar_packet(frame.bytes).filter(is_between) else {
            return self.handle_unfamiliar(frame);
        };
        let arrival = Arrival::of(frame, self.now);
        if !self.predicts_frames
            || frame.segment.is_some()
            || (!arrival.verified && !packet.is_intact())
        {
            return self.handle_unfamiliar(frame);
        }
        let Ok(segment) = Segment::parse(packet.segment()) else {
            return self.handle_unfamiliar(frame);
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

    /// Takes in a packet, like the one before it, for a connection that is half open.
    #[cold]
    fn handle_half_open(
        &mut self,
        frame: &RxFrame<'_>,
        (index, listener): (u32, u32),
        packet: PlainPacket<'_>,
    ) {
        let Ok(segment) = Segment::parse(packet.segment()) else {
            return self.handle_unfamiliar(frame);
        };
        self.predicted_frames += 1;
        if !self.may_complete(listener, segment.flags()) {
            return;
        }
        let is_plain = packet.type_of_service().ecn() == Ecn::NotEct
            && frame.segment.is_none()
            && frame.memory.is_none();
        if is_plain && segment.payload.is_empty() {
            self.give_control(index, packet);
        } else {
            self.give_familiar(index, packet, frame.segment, frame.memory);
        }
    }

    /// Gives a segment without data to its connection, which is awake: it may be one of those that open and close it. Its
    /// packet is neither marked nor a super-frame.
    #[inline(never)]
    fn give_control(&mut self, index: u32, packet: PlainPacket<'_>) {
        if self.held_ack.is_some() {
            return self.give_familiar(index, packet, None, None);
        }
        let Some(socket) = self.sockets.awake_at(index) else { return };
        if socket.state == State::SynSent {
            return self.give_answer(index, packet);
        }
        let Ok(segment) = Segment::parse(packet.segment()) else { return };
        self.memory.supply(socket);
        if socket.connection.handle_control(self.now, &segment) {
            // Nearly always it is in another state now.
            return self.follow(index);
        }
        self.give_unpredicted(index, packet);
    }

    /// The same for what comes to a connection that has sent its SYN.
    #[inline(never)]
    fn give_answer(&mut self, index: u32, packet: PlainPacket<'_>) {
        let Ok(segment) = Segment::parse(packet.segment()) else { return };
        let Some(socket) = self.sockets.awake_at(index) else { return };
        self.memory.supply(socket);
        match socket.connection.handle_answer(self.now, &segment) {
            Disposition::Refused(refusal) => self.follow_refusal(self.now, index, refusal),
            Disposition::Accepted | Disposition::OpenAgain => self.follow(index),
        }
    }

    /// The same for any other segment. It is read once more: then nothing of it need be kept in memory for what comes before.
    #[inline(never)]
    fn give_unpredicted(&mut self, index: u32, packet: PlainPacket<'_>) {
        let Ok(segment) = Segment::parse(packet.segment()) else { return };
        let Some(socket) = self.sockets.awake_at(index) else { return };
        let disposition = socket.connection.handle_segment(self.now, &segment);
        if disposition != Disposition::Accepted
            || concerned!(self).settle(index, socket) == Settled::Not
        {
            self.follow_segment(self.now, index, disposition);
        }
    }

    /// Gives a segment to its connection, which is awake, whatever it is, with what the link says of it: whether it is
    /// several, and the memory that it lies in, if it may be kept there.
    #[inline(never)]
    fn give_familiar(
        &mut self,
        index: u32,
        packet: PlainPacket<'_>,
        joined: Option<NonZeroU16>,
        memory: Option<&Arc<[u8]>>,
    ) {
        let Ok(mut segment) = Segment::parse(packet.segment()) else { return };
        let (now, ecn) = (self.now, packet.type_of_service().ecn());
        if self.holds(now, ecn, index, packet.segment(), &segment) {
            return;
        }
        let Some(socket) = self.sockets.awake_at(index) else { return };
        segment.joined = joined;
        if segment.joined.is_some() {
            self.counted.tcp.in_segments += u64::from(segment.count() - 1);
        }
        self.counted.tcp_extra.marked_segments += u64::from(ecn == Ecn::Ce);
        self.memory.supply(socket);
        let disposition = give_with(&mut socket.connection, now, ecn, memory, &segment);
        if let Disposition::Refused(refusal) = disposition {
            self.follow_refusal(now, index, refusal);
        } else if concerned!(self).settle(index, socket) == Settled::Not {
            self.follow(index);
        }
    }

    /// The packet in a frame between the stations of the frame before.
    fn familiar_packet<'a>(&self, bytes: &'a [u8]) -> Option<PlainPacket<'a>> {
        let front = Front::of(self.interface.capabilities.medium, self.stations.as_ref())?;
        front.strip(bytes).and_then(PlainPacket::read)
    }
}

/// The header of the medium that frames like the one before begin with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Front<'a> {
    /// No header.
    None,
    /// This one.
    Stations(&'a StationHeader),
}

impl<'a> Front<'a> {
    /// `None` if no frame has come before.
    #[inline(always)]
    pub(super) const fn of(medium: Medium, stations: Option<&'a StationHeader>) -> Option<Self> {
        match (medium, stations) {
            (Medium::Ip, _) => Some(Self::None),
            (Medium::Ethernet, Some(stations)) => Some(Self::Stations(stations)),
            (Medium::Ethernet, None) => None,
        }
    }

    /// What follows it in a frame, if the frame begins with that.
    #[inline(always)]
    pub(super) fn strip(self, bytes: &[u8]) -> Option<&[u8]> {
        let Self::Stations(known) = self else { return Some(bytes) };
        let (header, packet) = bytes.split_first_chunk()?;
        is_same(known, header).then_some(packet)
    }
}

/// Are both the same? As slices they are compared in two words that overlap.
#[inline(always)]
fn is_same(one: &StationHeader, other: &StationHeader) -> bool {
    one.as_slice() == other.as_slice()
}
