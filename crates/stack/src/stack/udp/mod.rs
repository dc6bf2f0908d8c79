//! UDP: receiving and sending datagrams (RFC 768, RFC 1122 §4.1).

mod calls;
mod multicast;
mod segments;

use crate::demux::flow::Hosts;
use crate::demux::{Binding, Flow};
use crate::error::Error;
use crate::event::UdpEvent;
use crate::icmp::{Problem, Report};
use crate::ip::Arrived;
use crate::ip::egress::Egress;
use crate::ip::interface::Audience;
use crate::ip::zone::with_zone;
use crate::ready::Sender;
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::tx::TransmitOutcome;
use crate::udp::Fragmentation;
use crate::udp::UdpOptions;
use crate::udp::UdpSocket;
use crate::udp::{data_limit, largest_datagram};
use core::net::{IpAddr, SocketAddr};
use linerate_units::Instant;
use linerate_wire::dhcp::CLIENT_PORT;
use linerate_wire::{IpHeader, Malformed, Protocol, Sum, UdpDatagram, UdpHeader};

/// The source address of datagrams to one destination, and the limits of their size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    /// The source address of the datagrams.
    source: IpAddr,
    /// Maximum number of data bytes in a datagram that is not fragmented.
    unfragmented: usize,
    /// Maximum number of data bytes in a datagram, whether or not it is fragmented.
    largest: usize,
}

impl Destination {
    /// Returns the maximum number of data bytes in a datagram of a socket whose setting is
    /// `fragmentation`.
    pub(crate) const fn limit(&self, fragmentation: Fragmentation) -> usize {
        match fragmentation {
            Fragmentation::AsNeeded | Fragmentation::ByRouters => self.largest,
            Fragmentation::Never => self.unfragmented,
        }
    }
}

impl Stack {
    pub(crate) fn handle_datagram(&mut self, arrived: &Arrived<'_>) {
        let datagram = match UdpDatagram::parse(arrived.payload) {
            Ok(datagram) => datagram,
            Err(malformed) => return self.count_malformed_datagram(malformed),
        };
        if datagram.has_no_checksum() && matches!(arrived.hosts, Hosts::V6(_)) {
            // The UDP checksum is mandatory over IPv6, whose header has no checksum of its own (RFC
            // 8200 §8.1).
            let malformed = Malformed::Checksum { what: "UDP datagram" };
            return self.count_malformed_datagram(malformed);
        }
        if !arrived.arrival.is_verified {
            let pseudo = arrived.pseudo_header(datagram.length());
            if let Err(malformed) = datagram.verify_checksum(pseudo) {
                return self.count_malformed_datagram(malformed);
            }
        }
        let ports = datagram.header;
        if ports.destination_port == CLIENT_PORT && self.handle_dhcp_datagram(arrived, &datagram) {
            return;
        }
        let flow = Flow::between(arrived.hosts, ports.destination_port, ports.source_port);
        if arrived.is_broadcast && arrived.destination().is_multicast() {
            return self.deliver_to_group(&flow, datagram.payload);
        }
        let found = self.udp_socket_for(&flow);
        let Some(index) = found.or_else(|| self.forward_datagram(arrived, &flow)) else {
            return;
        };
        self.deliver_datagram(index, &flow, datagram.payload);
    }

    /// Adds a datagram to the receive queue of the socket at `index`, or drops the datagram if the
    /// queue is full.
    fn deliver_datagram(&mut self, index: u32, flow: &Flow, data: &[u8]) {
        let from = with_zone(flow.remote(), self.interface.number);
        let Some(socket) = self.sockets.udp_at(index) else { return };
        if socket.received.push(from, data) {
            self.counted.udp.in_datagrams += 1;
            self.events.note(index, UdpEvent::Readable.bit());
            self.note_datagram(index, false);
        } else {
            self.counted.udp.in_errors += 1;
            self.counted.udp.receive_buffer_errors += 1;
        }
    }

    fn count_malformed_datagram(&mut self, malformed: Malformed) {
        self.counted.udp.in_errors += 1;
        self.counted.udp.in_checksum_errors +=
            u64::from(matches!(malformed, Malformed::Checksum { .. }));
    }

    /// Returns the index of the socket that receives a datagram of `flow`. The order of precedence
    /// is: the socket of a forwarded flow, a socket bound to the local address of `flow`, a socket
    /// bound to all addresses of its IP version. A connected socket receives only from its peer.
    fn udp_socket_for(&mut self, flow: &Flow) -> Option<u32> {
        if self.forwarding.udp.len() > 0
            && let Some(index) = self.datagrams.lookup(flow)
        {
            return Some(index);
        }
        let remote = with_zone(flow.remote(), self.interface.number);
        let accepts = |stack: &mut Self, index: &u32| {
            stack.sockets.udp_at(*index).is_some_and(|socket| socket.accepts(remote))
        };
        let exact =
            self.datagrams.lookup(&flow.bound_to_local()).filter(|index| accepts(self, index));
        exact.or_else(|| {
            self.datagrams.lookup(&flow.bound_to_all()).filter(|index| accepts(self, index))
        })
    }

    /// Passes a received ICMP error about a datagram to the socket that sent the datagram, whether
    /// or not the socket is connected (RFC 1122 §4.1.3.3).
    pub(crate) fn handle_datagram_report(&mut self, now: Instant, report: &Report<'_>) {
        let Some(flow) = report.flow() else { return };
        let Some(index) = self.udp_socket_for(&flow) else { return };
        let fragmentation = self.sockets.udp_at(index).map(|socket| socket.fragmentation);
        let error = match report.problem {
            Problem::NoPort => Error::Refused,
            Problem::TooBig { .. } => {
                let Some(mtu) = report.mtu() else { return };
                let destination = flow.hosts.remote();
                self.path_mtus.note_reported(now, destination, mtu);
                if fragmentation != Some(Fragmentation::Never) {
                    // The socket permits fragmentation, so the host sends later datagrams in
                    // fragments that fit the new path MTU. The application need not know, and gets
                    // no error.
                    return;
                }
                Error::MessageTooLong { limit: data_limit(mtu, destination) }
            }
            Problem::NoProtocol | Problem::Other => Error::Unreachable,
        };
        if let Some(socket) = self.sockets.udp_at(index) {
            socket.error = Some(error);
            self.events.note(index, UdpEvent::Error.bit());
        }
    }

    /// Queues a datagram with `data`, whose size the caller has checked. Returns false if the send
    /// queue of the socket is full.
    pub(crate) fn queue_datagram(
        &mut self,
        index: u32,
        to: &Destination,
        remote: SocketAddr,
        data: &[u8],
    ) -> bool {
        let is_local = self.is_ours(remote.ip());
        let interface = self.interface.number;
        let Some(socket) = self.sockets.udp_at(index) else { return false };
        let header = IpHeader::new(to.source, remote.ip(), Protocol::UDP);
        let Some(mut header) = header else { return false };
        if let IpHeader::V4(header) = &mut header {
            header.dont_fragment =
                data.len() <= to.unfragmented && socket.fragmentation != Fragmentation::ByRouters;
        }
        let is_group = remote.ip().is_multicast();
        // A unicast packet with a TTL of zero must not be sent (RFC 1122 §3.2.1.7), so zero counts
        // as one. A multicast datagram with zero stays in this host.
        header.set_hops(if is_group { socket.multicast_hops } else { socket.hops.max(1) });
        header.set_type_of_service(socket.type_of_service);
        let ports = UdpHeader {
            source_port: socket.binding.local().port(),
            destination_port: remote.port(),
        };
        let length = UdpHeader::LENGTH + data.len();
        let emit = |packet: &mut [u8]| {
            let (head, datagram) = packet.split_at_mut(header.length());
            header.emit(length, head);
            ports.emit(data.len(), datagram);
            datagram[UdpHeader::LENGTH..].copy_from_slice(data);
            UdpHeader::fill_checksum(datagram, header.pseudo_header(length), Sum::of(datagram));
        };
        if is_group && socket.multicast_loop && self.interface.groups.contains(remote.ip()) {
            // With multicast loopback, this host also receives the datagram. The copy for this host
            // is dropped if it does not fit into the queue of local packets, as on a link whose
            // queue is full.
            let kept = self.local.push_with(interface, header.length() + length, emit);
            self.counted.ip.out_discards += u64::from(!kept);
            self.local_ready.push(Sender::Replies);
        }
        if is_group && socket.multicast_hops == 0 {
            self.counted.udp.out_datagrams += 1;
            return true;
        }
        if !is_local && socket.to_send.is_empty() {
            socket.egress = Egress::over(interface);
        }
        let egress = socket.egress;
        let total = header.length() + length;
        let kept = if is_local {
            self.local.push_with(interface, total, emit)
        } else {
            socket.to_send.push_with((), total, emit)
        };
        if !kept && !is_local {
            socket.wants_writable = true;
            self.counted.udp.send_buffer_errors += 1;
            return false;
        }
        // A datagram to this host that does not fit into the queue of local packets is dropped, as
        // on a link whose queue is full.
        self.counted.ip.out_discards += u64::from(!kept);
        self.counted.udp.out_datagrams += 1;
        self.counted.ip.out_requests += 1;
        if is_local {
            self.local_ready.push(Sender::Replies);
        } else {
            self.ring(egress.interface()).push(Sender::Socket(index));
        }
        self.note_datagram(index, true);
        true
    }

    /// Writes the next datagram of a socket into `frame`.
    pub(crate) fn transmit_datagram(
        &mut self,
        now: Instant,
        index: u32,
        frame: &mut [u8],
    ) -> TransmitOutcome {
        if self.interface.fragmenter.is_busy() {
            return self.transmit_fragment(frame);
        }
        let Some(socket) = self.sockets.udp_at(index) else { return TransmitOutcome::Nothing };
        let Some(((), packet)) = socket.to_send.pop() else { return TransmitOutcome::Nothing };
        if core::mem::take(&mut socket.wants_writable) {
            self.events.note(index, UdpEvent::Writable.bit());
        }
        if socket.to_send.is_empty() {
            self.interface.ready.remove(Sender::Socket(index));
        }
        let outcome = self.route_packet(now, &packet, frame);
        if let Some(socket) = self.sockets.udp_at(index) {
            socket.to_send.recycle(packet);
        }
        outcome
    }

    /// Checks that a socket with this binding may send to `remote`, which must not be an
    /// IPv4-mapped IPv6 address. Returns the source address and the size limits of datagrams to
    /// `remote`. `broadcast` says whether the socket may send to broadcast addresses.
    /// `is_forwarded` says whether it belongs to a forwarded flow, which may send from addresses of
    /// other hosts.
    pub(crate) fn check_destination(
        &mut self,
        now: Instant,
        binding: &Binding,
        remote: SocketAddr,
        (broadcast, is_forwarded): (bool, bool),
    ) -> Result<Destination, Error> {
        let (bound, address) = (binding.local().ip(), remote.ip());
        binding.check_version(address)?;
        if remote.port() == 0 || address.is_unspecified() {
            return Err(Error::InvalidDestination(remote));
        }
        let is_group = address.is_multicast();
        if self.audience(address) == Audience::Broadcast && !is_group && !broadcast {
            return Err(Error::BroadcastForbidden(address));
        }
        let path = self.datagram_path_to(now, address)?;
        let is_open = bound.is_unspecified() || bound.is_multicast();
        let source = if is_open { path.source } else { bound };
        if !is_forwarded {
            self.check_source(source, address)?;
        }
        let largest = if self.is_ours(address) {
            data_limit(path.mtu, address)
        } else {
            largest_datagram(address)
        };
        Ok(Destination { source, unfragmented: data_limit(path.mtu, address), largest })
    }

    pub(crate) fn check_udp(&self, index: u32, socket: &UdpSocket) {
        socket.received.check();
        socket.to_send.check();
        let is_found = |flow| self.datagrams.get(&flow) == Some(index);
        assert!(socket.flows().all(is_found), "each socket is found by what it is bound to");
        let has_datagrams = !socket.to_send.is_empty();
        assert!(
            !has_datagrams || self.is_sender(socket.egress.interface(), index),
            "a socket with datagrams is in the ring"
        );
    }

    /// Creates a socket with `binding`, which no other socket may have, and returns the index of
    /// the socket.
    fn insert_udp(&mut self, binding: Binding, options: &UdpOptions) -> u32 {
        let socket = Socket::Udp(alloc::boxed::Box::new(UdpSocket::new(binding, options)));
        let index = self.sockets.insert(socket).index();
        for flow in binding.flows() {
            self.datagrams.insert(&flow, index);
        }
        index
    }
}
