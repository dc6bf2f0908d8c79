//! Transmission of frames: selects the sender of the next frame, and writes the link header of the
//! frame.

use crate::ip::interface::Audience;
use crate::ip::{CachedRoute, is_ipv6};
use crate::link::{Medium, TxFrame, ZeroCopyFrame};
use crate::ready::Sender;
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::stack::tcp::output::SegmentOutcome;
use crate::tx::NextHop;
use crate::tx::Reply;
use crate::tx::ScatterGather;
use crate::tx::TransmitOutcome;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linerate_units::Instant;
use linerate_wire::{EtherType, EthernetHeader, MacAddress, VlanTags};

/// # Host driver: output
impl Stack {
    /// Writes the next frame into `frame`, and returns its length and metadata. `frame` must have
    /// room for the largest frame of the link, and at least for a packet of [`crate::SMALLEST_MTU`]
    /// bytes. Returns `None` if there is no frame to send.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, frame: &mut [u8]) -> Option<TxFrame> {
        self.advance_clock(now);
        if !self.wants_transmit() {
            return None;
        }
        let frame = self.transmit_next(now, frame);
        self.commit_batch();
        frame
    }

    /// Writes the next frame like [`Stack::poll_transmit`], but leaves the data of a large frame in
    /// the send buffer, and returns slices of it. Links with scatter-gather send these slices
    /// without a copy.
    pub fn poll_transmit_zero_copy(
        &mut self,
        now: Instant,
        frame: &mut [u8],
    ) -> Option<ZeroCopyFrame<'_>> {
        self.scatter_gather = ScatterGather::Allowed;
        let frame = self.poll_transmit(now, frame);
        let placement = core::mem::replace(&mut self.scatter_gather, ScatterGather::Off);
        let frame = frame?;
        let rest = match placement {
            ScatterGather::Payload(index, data) => {
                self.sockets.tcp_at(index)?.connection.driver().zero_copy_data(data)
            }
            ScatterGather::Allowed | ScatterGather::Off => [&[][..]; 2],
        };
        let zero_copy_bytes: usize = rest.iter().map(|part| part.len()).sum();
        self.counted.transmit.bytes += zero_copy_bytes as u64;
        Some(ZeroCopyFrame { frame, rest })
    }

    /// Writes the next frame into `frame` like [`Stack::poll_transmit`], but updates the connection
    /// only once for all frames of a batch. After the last call of this method, the caller must
    /// call [`Stack::commit_batch`] before any other method.
    #[inline]
    pub(crate) fn transmit_next(&mut self, now: Instant, frame: &mut [u8]) -> Option<TxFrame> {
        if self.batch.has_next()
            && let Some(length) = self.write_next_of_batch(frame)
        {
            return Some(TxFrame::whole(length));
        }
        self.transmit_next_sender(now, frame)
    }

    #[inline(always)]
    pub(crate) fn transmit_next_sender(
        &mut self,
        now: Instant,
        frame: &mut [u8],
    ) -> Option<TxFrame> {
        if frame.len() < self.interface.frames.least {
            // The buffer `frame` of the link is shorter than the capabilities of the link promise.
            // No frame is written, because it might not fit.
            return None;
        }
        if self.batch.has_owner()
            && let Some(length) = self.continue_batch(now, frame)
        {
            return Some(TxFrame::whole(length));
        }
        loop {
            let sender = self.interface.ready.turn()?;
            let segment = match sender {
                Sender::Socket(index) => self.transmit_common_segment(now, index, frame),
                Sender::Replies => SegmentOutcome::NotReady,
            };
            let frame = match segment {
                SegmentOutcome::Frame(frame) => return Some(self.count_frame(frame)),
                SegmentOutcome::Nothing => self.remove_idle_sender(sender),
                SegmentOutcome::NotReady => self.transmit_from_sender(now, sender, frame),
            };
            if frame.is_some() {
                return frame;
            }
        }
    }

    /// Continues a batch whose segments have all been sent: commits these segments, asks the
    /// connection for further segments, and writes the first of these into `frame`. Returns the
    /// length of the frame in bytes, or `None` if the batch has ended.
    #[inline(never)]
    fn continue_batch(&mut self, now: Instant, frame: &mut [u8]) -> Option<usize> {
        self.commit_batch();
        if self.resume_batch(now, frame.len())
            && let Some(length) = self.write_next_of_batch(frame)
        {
            return Some(length);
        }
        self.batch.forget();
        None
    }

    /// Removes a sender from the ring, because it has no frame to send. Always returns `None`, so
    /// that the caller can use the result as its frame.
    #[inline(never)]
    fn remove_idle_sender(&mut self, sender: Sender) -> Option<TxFrame> {
        self.interface.ready.remove(sender);
        None
    }

    /// Adds the host itself to the ring of senders, if it has a packet to send. Must be called
    /// after an operation that may queue a reply or an address resolution request. Must also be
    /// called after a neighbour may have been resolved, because packets may have waited for this.
    pub(crate) fn schedule_replies(&mut self) {
        if self.interface.has_replies() {
            self.interface.ready.push(Sender::Replies);
        }
    }

    #[inline(always)]
    const fn count_frame(&mut self, frame: TxFrame) -> TxFrame {
        self.counted.transmit.packets += 1;
        self.counted.transmit.bytes += frame.length as u64;
        frame
    }

    /// Writes the next frame of `sender`, if [`Stack::transmit_common_segment`] cannot write it.
    /// Returns `None` if no frame was written.
    #[inline(never)]
    fn transmit_from_sender(
        &mut self,
        now: Instant,
        sender: Sender,
        frame: &mut [u8],
    ) -> Option<TxFrame> {
        if !self.others.is_empty() && self.move_sender(sender) {
            return None;
        }
        let outcome = match sender {
            Sender::Replies => self.transmit_reply(now, frame),
            Sender::Socket(index) => match self.sockets.get(index) {
                Some(Socket::Tcp(_)) => self.transmit_segment(now, index, frame),
                Some(Socket::Udp(_)) => self.transmit_datagram(now, index, frame),
                Some(Socket::Raw(_)) => self.transmit_raw(now, index, frame),
                Some(Socket::Compact(_) | Socket::TimeWait(_) | Socket::Listen(_)) | None => {
                    TransmitOutcome::Nothing
                }
            },
        };
        match outcome {
            TransmitOutcome::Frame(frame) => Some(self.count_frame(frame)),
            TransmitOutcome::QueuedOrDropped => None,
            TransmitOutcome::Nothing => self.remove_idle_sender(sender),
        }
    }

    /// Writes the next frame of the host itself. Fragments of a packet that is being sent come
    /// first, then address resolution requests, then packets whose neighbour was resolved, then
    /// replies.
    fn transmit_reply(&mut self, now: Instant, frame: &mut [u8]) -> TransmitOutcome {
        if self.interface.fragmenter.is_busy() {
            return self.transmit_fragment(frame);
        }
        if let Some(request) = self.interface.neighbors.poll_request() {
            let length = match request.address {
                IpAddr::V4(address) => {
                    let (packet, mac) = self.arp_request(&request, address);
                    let at = self.emit_ethernet(mac, EtherType::ARP, frame);
                    at + packet.emit(&mut frame[at..])
                }
                IpAddr::V6(address) => self.write_solicitation(&request, address, frame),
            };
            return TransmitOutcome::Frame(TxFrame::whole(length));
        }
        if let Some((mac, packet)) = self.interface.neighbors.poll_released() {
            return self.frame_packet(NextHop::Mac(mac), &packet, frame);
        }
        let Some((reply, packet)) = self.interface.replies.pop() else {
            return TransmitOutcome::Nothing;
        };
        let outcome = match reply {
            Reply::Packet => self.route_packet(now, &packet, frame),
            Reply::Arp(mac) => {
                let at = self.emit_ethernet(mac, EtherType::ARP, frame);
                frame[at..at + packet.len()].copy_from_slice(&packet);
                TransmitOutcome::Frame(TxFrame::whole(at + packet.len()))
            }
        };
        self.interface.replies.recycle(packet);
        outcome
    }

    /// Writes a complete IP packet into `frame`, with the link header for its next hop. If the next
    /// hop is not resolved yet, queues the packet instead.
    pub(crate) fn route_packet(
        &mut self,
        now: Instant,
        packet: &[u8],
        frame: &mut [u8],
    ) -> TransmitOutcome {
        let Some(destination) = destination_of(packet) else {
            return TransmitOutcome::QueuedOrDropped;
        };
        let next_hop = self.resolve_next_hop(now, destination);
        self.frame_packet(next_hop, packet, frame)
    }

    /// Looks up the next hop towards `destination`, and returns its MAC address. If the MAC address
    /// is unknown, queues an address resolution request and returns [`NextHop::Resolving`]. On a
    /// link without MAC addresses, returns the zero address, which is not used.
    pub(crate) fn resolve_next_hop(&mut self, now: Instant, destination: IpAddr) -> NextHop {
        if self.interface.capabilities.medium == Medium::Ip {
            return NextHop::Mac(MacAddress::ZERO);
        }
        let route = match (self.cached_route_to(destination), destination) {
            (Some(route), _) => Some(*route),
            (None, IpAddr::V6(group)) if group.is_multicast() => {
                return NextHop::Mac(MacAddress::of_ipv6_multicast(group));
            }
            (None, IpAddr::V4(group)) if group.is_multicast() => {
                return NextHop::Mac(MacAddress::of_ipv4_multicast(group));
            }
            (None, _) if self.audience(destination) == Audience::Broadcast => {
                return NextHop::Mac(MacAddress::BROADCAST);
            }
            (None, _) => self.find_route(destination),
        };
        let Some(CachedRoute { next_hop: neighbor, .. }) = route else { return NextHop::NoRoute };
        let mac = self.interface.neighbors.lookup(now, neighbor);
        self.schedule_replies();
        mac.map_or(NextHop::Resolving(neighbor), NextHop::Mac)
    }

    /// Writes a complete IP packet into `frame`. If the MAC address of its next hop is unknown,
    /// queues the packet until the address is resolved. Drops the packet if there is no route.
    pub(crate) fn frame_packet(
        &mut self,
        next_hop: NextHop,
        packet: &[u8],
        frame: &mut [u8],
    ) -> TransmitOutcome {
        match next_hop {
            NextHop::Mac(mac) => {
                if self.may_need_fragments(packet)
                    && let Some(outcome) = self.begin_fragments(mac, packet, frame)
                {
                    return outcome;
                }
                let at = self.emit_ethernet(mac, ether_type_of(packet), frame);
                let Some(room) = frame.get_mut(at..at + packet.len()) else {
                    // The packet does not fit, because the MTU of the link has decreased since the
                    // packet was queued.
                    self.counted.ip.out_discards += 1;
                    return TransmitOutcome::QueuedOrDropped;
                };
                room.copy_from_slice(packet);
                TransmitOutcome::Frame(TxFrame::whole(at + packet.len()))
            }
            NextHop::Resolving(neighbor) => {
                self.interface.neighbors.enqueue(neighbor, packet);
                TransmitOutcome::QueuedOrDropped
            }
            NextHop::NoRoute => {
                self.counted.ip.out_no_routes += 1;
                TransmitOutcome::QueuedOrDropped
            }
        }
    }

    /// Writes the link header into `frame`, and returns its length in bytes, which is the offset of
    /// the IP packet.
    pub(crate) fn emit_ethernet(
        &self,
        destination: MacAddress,
        ether_type: EtherType,
        frame: &mut [u8],
    ) -> usize {
        match self.interface.capabilities.medium {
            Medium::Ip => 0,
            Medium::Ethernet => {
                let source = self.interface.mac;
                EthernetHeader { destination, source, tags: VlanTags::NONE, ether_type }.emit(frame)
            }
        }
    }
}

/// Returns the destination address of an IPv4 or IPv6 packet; `None` if the packet is too short.
pub(crate) fn destination_of(packet: &[u8]) -> Option<IpAddr> {
    address_at(packet, 16, 24)
}

/// Returns the source address of an IPv4 or IPv6 packet; `None` if the packet is too short.
pub(crate) fn source_of(packet: &[u8]) -> Option<IpAddr> {
    address_at(packet, 12, 8)
}

/// Returns the address at the offset `ipv4` of an IPv4 packet, or at the offset `ipv6` of an IPv6
/// packet.
#[inline]
fn address_at(packet: &[u8], ipv4: usize, ipv6: usize) -> Option<IpAddr> {
    if is_ipv6(packet) {
        let octets: [u8; 16] = *packet.get(ipv6..)?.first_chunk()?;
        Some(Ipv6Addr::from(octets).into())
    } else {
        let octets: [u8; 4] = *packet.get(ipv4..)?.first_chunk()?;
        Some(Ipv4Addr::from(octets).into())
    }
}

/// Returns the EtherType of an IPv4 or IPv6 packet.
pub(crate) fn ether_type_of(packet: &[u8]) -> EtherType {
    if is_ipv6(packet) { EtherType::IPV6 } else { EtherType::IPV4 }
}
