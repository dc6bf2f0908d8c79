//! Raw IP sockets: methods of the application, delivery of received packets, and transmission.

use crate::error::Error;
use crate::event::RawEvent;
use crate::handle::RawHandle;
use crate::ip::Arrived;
use crate::ip::egress::Egress;
use crate::ip::interface::Audience;
use crate::raw::{RawOptions, RawPacket, RawSocket};
use crate::ready::Sender;
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::tx::TransmitOutcome;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use linerate_units::Instant;
use linerate_wire::{IpHeader, Protocol, Sum};

/// # Application calls: raw sockets
impl Stack {
    /// Creates a raw socket for the packets of one protocol over IPv4 or IPv6. The socket receives
    /// a copy of each packet of this protocol to this host, even if the host implements the
    /// protocol itself. While a raw socket exists, the host sends no "protocol unreachable" errors
    /// for its protocol.
    ///
    /// # Errors
    /// [`Error::TooManySockets`] if the limit of sockets is reached.
    pub fn raw_open(
        &mut self,
        is_ipv6: bool,
        protocol: Protocol,
        options: &RawOptions,
    ) -> Result<RawHandle, Error> {
        self.sockets.has_room()?;
        let socket = Socket::Raw(Box::new(RawSocket::new(is_ipv6, protocol, options)));
        let key = self.sockets.insert(socket);
        self.raw.push(key.index());
        Ok(RawHandle(key))
    }

    /// Sends an IP packet with `payload` to `destination`. The host builds the IP header. It
    /// computes the checksum of an ICMPv6 message (RFC 3542 §3.1); the caller must compute the
    /// checksum of any other protocol.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the send queue is full. [`Error::MessageTooLong`] if the packet is
    /// larger than the MTU of the path, or than the whole send queue. Otherwise the reason why the
    /// destination is invalid.
    pub fn raw_send_to(
        &mut self,
        now: Instant,
        handle: RawHandle,
        destination: impl Into<IpAddr>,
        payload: &[u8],
    ) -> Result<(), Error> {
        self.advance_clock(now);
        let destination = destination.into();
        let interface = self.interface_towards(destination);
        self.serving(interface, |stack| stack.queue_raw(now, handle, destination, payload))
    }

    fn queue_raw(
        &mut self,
        now: Instant,
        handle: RawHandle,
        destination: IpAddr,
        payload: &[u8],
    ) -> Result<(), Error> {
        let (index, socket) = self.sockets.raw_mut(handle)?;
        let (is_ipv6, protocol) = (socket.is_ipv6, socket.protocol);
        let (hops, type_of_service) = (socket.hops, socket.type_of_service);
        let largest = socket.to_send.largest();
        let invalid = Error::InvalidDestination(SocketAddr::new(destination, 0));
        if destination.is_unspecified() || destination.is_ipv6() != is_ipv6 {
            return Err(invalid);
        }
        let audience = self.audience(destination);
        if audience == Audience::Broadcast && !destination.is_multicast() {
            return Err(Error::BroadcastForbidden(destination));
        }
        let path = self.datagram_path_to(now, destination)?;
        let mut header = IpHeader::new(path.source, destination, protocol).ok_or(invalid)?;
        // The host sends no packet with a TTL of zero (RFC 1122 §3.2.1.7).
        header.set_hops(hops.max(1));
        header.set_type_of_service(type_of_service);
        let limit = path.mtu_payload().min(largest.saturating_sub(header.length()));
        if payload.len() > limit {
            return Err(Error::MessageTooLong { limit });
        }
        let emit = |packet: &mut [u8]| {
            let at = header.emit(payload.len(), packet);
            packet[at..].copy_from_slice(payload);
            if protocol == Protocol::ICMPV6 {
                fill_icmpv6_checksum(&header, &mut packet[at..]);
            }
        };
        let is_local = self.is_ours(destination);
        let interface = self.interface.number;
        let Ok((_, socket)) = self.sockets.raw_mut(handle) else { return Err(Error::Closed) };
        if !is_local && socket.to_send.is_empty() {
            socket.egress = Egress::over(interface);
        }
        let egress = socket.egress;
        let total = header.length() + payload.len();
        let kept = if is_local {
            self.local.push_with(interface, total, emit)
        } else {
            socket.to_send.push_with((), total, emit)
        };
        if !kept && !is_local {
            socket.wants_writable = true;
            return Err(Error::WouldBlock);
        }
        // A packet to this host that does not fit into the queue of local packets is dropped, as on
        // a link whose queue is full.
        self.counted.ip.out_discards += u64::from(!kept);
        self.counted.ip.out_requests += 1;
        if is_local {
            self.local_ready.push(Sender::Replies);
        } else {
            self.ring(egress.interface()).push(Sender::Socket(index));
        }
        Ok(())
    }

    /// Removes the next packet from the receive queue, and copies its payload to `into`. Returns
    /// the number of copied bytes and the header fields of the packet. Bytes that do not fit into
    /// `into` are lost.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the receive queue is empty.
    pub fn raw_receive(
        &mut self,
        handle: RawHandle,
        into: &mut [u8],
    ) -> Result<(usize, RawPacket), Error> {
        let (_, socket) = self.sockets.raw_mut(handle)?;
        let (&packet, payload) = socket.received.front().ok_or(Error::WouldBlock)?;
        let length = payload.len().min(into.len());
        into[..length].copy_from_slice(&payload[..length]);
        socket.received.drop_front();
        Ok((length, packet))
    }

    /// Sets the TTL or hop limit of packets that are sent from now on. The value 0 is sent as 1.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn raw_set_hops(&mut self, handle: RawHandle, hops: u8) -> Result<(), Error> {
        self.sockets.raw_mut(handle)?.1.hops = hops;
        Ok(())
    }

    /// Closes the socket. Discards the packets in its send and receive queues.
    ///
    /// # Errors
    /// [`Error::Closed`] if the socket was already closed.
    pub fn raw_close(&mut self, handle: RawHandle) -> Result<(), Error> {
        let (index, socket) = self.sockets.raw_mut(handle)?;
        let egress = socket.egress;
        self.raw.retain(|&other| other != index);
        self.ring(egress.interface()).remove(Sender::Socket(index));
        self.events.forget(index);
        self.remove_socket(index);
        Ok(())
    }
}

impl Stack {
    /// Copies a received packet to all raw sockets for its protocol. Returns whether there is such
    /// a socket, even if the packet was dropped because the queue of the socket was full.
    #[cold]
    pub(crate) fn deliver_to_raw(&mut self, arrived: &Arrived<'_>) -> bool {
        let packet = RawPacket {
            source: arrived.source(),
            destination: arrived.destination(),
            hops: arrived.ttl,
            type_of_service: arrived.type_of_service,
            arrived: arrived.arrival.at,
        };
        let mut is_found = false;
        for index in self.raw.clone() {
            let Some(socket) = self.sockets.raw_at(index) else { continue };
            if socket.protocol != arrived.protocol || socket.is_ipv6 != packet.source.is_ipv6() {
                continue;
            }
            is_found = true;
            if socket.received.push(packet, arrived.payload) {
                self.events.note(index, RawEvent::Readable.bit());
            } else {
                self.counted.ip.in_discards += 1;
            }
        }
        is_found
    }

    /// Writes the next packet of a raw socket into `frame`.
    pub(crate) fn transmit_raw(
        &mut self,
        now: Instant,
        index: u32,
        frame: &mut [u8],
    ) -> TransmitOutcome {
        let Some(socket) = self.sockets.raw_at(index) else { return TransmitOutcome::Nothing };
        let Some(((), packet)) = socket.to_send.pop() else { return TransmitOutcome::Nothing };
        if core::mem::take(&mut socket.wants_writable) {
            self.events.note(index, RawEvent::Writable.bit());
        }
        if socket.to_send.is_empty() {
            self.interface.ready.remove(Sender::Socket(index));
        }
        let outcome = self.route_packet(now, &packet, frame);
        if let Some(socket) = self.sockets.raw_at(index) {
            socket.to_send.recycle(packet);
        }
        outcome
    }

    /// Checks the invariants of raw sockets. Panics if one is broken.
    pub(super) fn check_raw(&self) {
        let all = self.sockets.iter().filter(|(_, socket)| matches!(socket, Socket::Raw(_)));
        let mut indices: Vec<u32> = all.map(|(index, _)| index).collect();
        let mut listed = self.raw.clone();
        indices.sort_unstable();
        listed.sort_unstable();
        assert_eq!(indices, listed, "each raw socket is in the list");
        for index in listed {
            let Some(Socket::Raw(socket)) = self.sockets.get(index) else { continue };
            socket.received.check();
            socket.to_send.check();
            assert!(
                socket.to_send.is_empty() || self.is_sender(socket.egress.interface(), index),
                "a socket with packets is in the ring"
            );
        }
    }
}

/// Writes the checksum into an ICMPv6 message, if the message is long enough to have a checksum
/// field.
fn fill_icmpv6_checksum(header: &IpHeader, message: &mut [u8]) {
    let pseudo = header.pseudo_header(message.len());
    if let Some(place) = message.get_mut(2..4) {
        place.fill(0);
        let checksum = (pseudo + Sum::of(message)).finish();
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
}
