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

use super::Owner;
use super::input::give_with;
use super::settle::{Settled, concerned};
use crate::demux::Flow;
use crate::link::{Medium, RxChecksum, RxFrame};
use crate::stack::Stack;
use alloc::sync::Arc;
use core::net::SocketAddrV4;
use linerate_tcp::{Disposition, State};
use linerate_units::Instant;
use linerate_wire::{Ecn, EthernetHeader, PlainPacket, Segment};

/// An Ethernet header without tags, as it stands in the frame.
pub(crate) type StationHeader = [u8; EthernetHeader::LENGTH];

impl Stack {
    /// Takes in a frame like the one before it. False, and nothing has happened, if it is not, or if
    /// anything is odd about it.
    pub(crate) fn handle_familiar(&mut self, frame: &RxFrame<'_>) -> bool {
        let Some(packet) = self.familiar_packet(frame.bytes) else { return false };
        let local = SocketAddrV4::new(packet.destination, packet.destination_port);
        let peer = SocketAddrV4::new(packet.source, packet.source_port);
        if self.familiar != Some((packet.source, packet.destination)) {
            return false;
        }
        let Some(index) = self.flows.last(Flow::new(local, peer)) else { return false };
        // One at rest is woken the long way.
        let Some(socket) = self.sockets.awake_at(index) else { return false };
        // A listener has a say in what comes for the one, and may get what comes for the other.
        if matches!(socket.owner, Owner::HalfOpen(_)) || socket.state == State::TimeWait {
            return false;
        }
        let Ok(mut segment) = Segment::parse(packet.segment) else { return false };
        if frame.checksum == RxChecksum::Unverified && !packet.is_intact() {
            return false;
        }
        segment.joined = frame.segment;
        self.flows.count_repeat();
        self.counted.ip.in_receives += 1;
        self.counted.ip.in_delivers += 1;
        self.counted.tcp.in_segments += u64::from(segment.count());
        let (now, ecn) = (self.now, packet.type_of_service.ecn());
        if !self.hold_ack(now, ecn, index, &segment) {
            self.give_familiar(now, ecn, frame.memory, index, &segment);
        }
        true
    }

    /// Gives a segment to its connection, which is awake, and may keep the memory that it lies in.
    #[inline(always)]
    fn give_familiar(
        &mut self,
        now: Instant,
        ecn: Ecn,
        memory: Option<&Arc<[u8]>>,
        index: u32,
        segment: &Segment<'_>,
    ) {
        let Some(socket) = self.sockets.awake_at(index) else { return };
        self.memory.supply(socket);
        let disposition = if ecn == Ecn::NotEct && memory.is_none() {
            socket.connection.handle_segment(now, segment)
        } else {
            self.counted.tcp_extra.marked_segments += u64::from(ecn == Ecn::Ce);
            give_with(&mut socket.connection, now, ecn, memory, segment)
        };
        if let Disposition::Refused(refusal) = disposition {
            self.follow_refusal(now, index, refusal);
        } else if concerned!(self).settle(index, socket) == Settled::Not {
            self.follow(index);
        }
    }

    /// The packet in a frame between the stations of the frame before.
    fn familiar_packet<'a>(&self, bytes: &'a [u8]) -> Option<PlainPacket<'a>> {
        let bytes = match self.interface.capabilities.medium {
            Medium::Ip => bytes,
            Medium::Ethernet => {
                let (header, packet) = bytes.split_first_chunk()?;
                if self.stations.as_ref() != Some(header) {
                    return None;
                }
                packet
            }
        };
        PlainPacket::read(bytes)
    }
}
