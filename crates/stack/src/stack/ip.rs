//! IP: handling of received packets (RFC 1122 §3.2.1, RFC 8200), paths to destinations, and sending
//! of packets by the host itself.

use crate::demux::flow::Hosts;
use crate::error::Error;
use crate::ip::Arrived;
use crate::ip::CachedRoute;
use crate::ip::LOCAL_MTU;
use crate::ip::PathInfo;
use crate::ip::interface::Audience;
use crate::ip::path_mtu::SMALLEST_PATH_MTU;
use crate::link::arrival::Arrival;
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tx::Reply;
use core::net::IpAddr;
use linerate_units::Instant;
use linerate_wire::{IpHeader, Ipv4Header, Protocol, Unreachable};

impl Stack {
    /// Handles an IPv4 or IPv6 packet from the link, or from this host itself.
    pub(crate) fn handle_packet(&mut self, arrival: Arrival<'_>, bytes: &[u8]) {
        self.handle_parsed(Arrived::parse(arrival, bytes));
    }

    /// Handles an IPv4 packet from the link.
    pub(crate) fn handle_ipv4_packet(&mut self, arrival: Arrival<'_>, bytes: &[u8]) {
        self.handle_parsed(Arrived::parse_ipv4(arrival, bytes));
    }

    /// Handles an IPv6 packet from the link.
    pub(crate) fn handle_ipv6_packet(&mut self, arrival: Arrival<'_>, bytes: &[u8]) {
        self.handle_parsed(Arrived::parse_ipv6(arrival, bytes));
    }

    #[inline(always)]
    fn handle_parsed(&mut self, parsed: Option<(Arrived<'_>, bool)>) {
        self.counted.ip.in_receives += 1;
        let Some((mut arrived, is_extended)) = parsed else {
            self.counted.ip.in_header_errors += 1;
            return;
        };
        let Some(is_broadcast) = self.check_addresses(&arrived) else { return };
        arrived.is_broadcast = is_broadcast;
        if is_extended {
            return self.handle_extended(&arrived);
        }
        self.deliver(&arrived);
    }

    /// Checks the source and destination addresses of a packet. Returns `Some(true)` if the
    /// destination is a broadcast address or a joined multicast group, and `Some(false)` if it is a
    /// unicast address of this host. Returns `None` if the packet is not for this host or its
    /// addresses are invalid.
    fn check_addresses(&mut self, arrived: &Arrived<'_>) -> Option<bool> {
        let (arrival, hosts) = (&arrived.arrival, &arrived.hosts);
        let is_plain = !arrival.is_local && !arrival.is_link_broadcast;
        // Consecutive packets often belong to one flow. If the addresses equal those in the flow
        // cache, which come from a checked packet, they are valid and need no check.
        if is_plain && self.interface.flow_cache.knows(hosts) {
            return Some(false);
        }
        let (source, destination) = (hosts.remote(), hosts.local());
        // Three kinds of packets may have the unspecified address as source: probes for duplicate
        // IPv6 addresses (RFC 4862 §5.4.2), IGMP queries of bridges without an address (RFC 4541
        // §2.1.1), and MLD reports of hosts without an address (RFC 3590). MLD reports begin with a
        // Hop-by-Hop Options header.
        let is_probe = source.is_unspecified()
            && [Protocol::ICMPV6, Protocol::IGMP, Protocol::HOP_BY_HOP].contains(&arrived.protocol);
        let is_invalid = !arrival.is_local
            && (!(self.interface.is_possible_source(source) || is_probe)
                || self.others_have(source)
                || destination.is_loopback());
        if is_invalid {
            self.counted.ip.in_header_errors += 1;
            return None;
        }
        let mut audience = self.audience(destination);
        if audience == Audience::Others && self.forwards_to(destination) {
            audience = Audience::Us;
        }
        // A packet to a unicast address in a link-layer broadcast frame is silently discarded (RFC
        // 1122 §3.3.6).
        if audience == Audience::Others || (arrival.is_link_broadcast && audience == Audience::Us) {
            self.counted.ip.in_address_errors += 1;
            return None;
        }
        if is_plain && audience == Audience::Us && !is_probe {
            self.interface.flow_cache.learn(hosts);
        }
        Some(audience == Audience::Broadcast)
    }

    pub(crate) fn deliver(&mut self, arrived: &Arrived<'_>) {
        if arrived.protocol != Protocol::TCP {
            // The packet may be an ICMP error about a connection with coalesced ACKs, so these ACKs
            // are delivered first, in the order of arrival.
            self.flush_coalesced();
        }
        let is_raw = !self.raw.is_empty() && self.deliver_to_raw(arrived);
        let is_ipv4 = matches!(arrived.hosts, Hosts::V4(_));
        match arrived.protocol {
            Protocol::TCP => self.handle_tcp(arrived),
            Protocol::UDP => self.handle_datagram(arrived),
            Protocol::ICMP if is_ipv4 => self.handle_icmp(arrived),
            Protocol::ICMPV6 if !is_ipv4 => self.handle_icmpv6(arrived),
            Protocol::IGMP if is_ipv4 => self.handle_igmp(arrived),
            Protocol::NO_NEXT_HEADER if !is_ipv4 => {}
            _ if is_raw => {}
            _ => {
                self.counted.ip.in_unknown_protocols += 1;
                self.answer_with_error(arrived, Unreachable::Protocol);
                return;
            }
        }
        self.counted.ip.in_delivers += 1;
    }

    /// Returns the path to a destination: the local address to send from, the MTU, and the window
    /// parameters of the route. The destination may be this host, a broadcast or multicast address,
    /// or another host.
    #[inline]
    pub(crate) fn path_to(&mut self, now: Instant, destination: IpAddr) -> Result<PathInfo, Error> {
        match self.cached_route_to(destination) {
            Some(route) => self.path_along(now, route),
            None => self.find_path_to(now, destination),
        }
    }

    /// Returns the path to a destination for datagrams. Its MTU takes into account the path MTU
    /// that routers have reported.
    pub(crate) fn datagram_path_to(
        &mut self,
        now: Instant,
        destination: IpAddr,
    ) -> Result<PathInfo, Error> {
        let path = self.path_to(now, destination)?;
        let reported = self.path_mtus.reported(now, destination);
        Ok(PathInfo { mtu: reported.map_or(path.mtu, |mtu| mtu.min(path.mtu)), ..path })
    }

    /// Returns the path to a destination that is not in the route cache. Looks it up with the
    /// interface towards the destination as the current interface.
    #[inline(never)]
    fn find_path_to(&mut self, now: Instant, destination: IpAddr) -> Result<PathInfo, Error> {
        let interface = self.interface_towards(destination);
        self.serving(interface, |stack| stack.find_path_here(now, destination))
    }

    fn find_path_here(&mut self, now: Instant, destination: IpAddr) -> Result<PathInfo, Error> {
        let interface = &self.interface;
        if self.is_ours(destination) {
            return Ok(PathInfo::unlimited(destination, LOCAL_MTU, Audience::Us));
        }
        if destination.is_multicast() || interface.audience(destination) == Audience::Broadcast {
            let source =
                interface.source_towards(destination, destination).ok_or(Error::NoAddress)?;
            let mtu = interface.capabilities.mtu;
            return Ok(PathInfo::unlimited(source, mtu, Audience::Broadcast));
        }
        let route = self.find_route(destination).ok_or(Error::NoRoute(destination))?;
        self.path_along(now, &route)
    }

    #[inline(always)]
    fn path_along(&self, now: Instant, route: &CachedRoute) -> Result<PathInfo, Error> {
        let found = self.path_mtus.found(now, route.destination);
        let link_mtu =
            self.interface.capabilities.mtu.min(route.mtu.unwrap_or(LOCAL_MTU)).min(LOCAL_MTU);
        Ok(PathInfo {
            source: route.source.ok_or(Error::NoAddress)?,
            mtu: found.map_or(link_mtu, |found| found.mtu().min(link_mtu)),
            link_mtu,
            is_estimated: found.is_some_and(|found| found.is_estimated),
            windows: route.windows,
            audience: Audience::Others,
        })
    }

    /// Returns the cached route to `destination`; `None` if the cached route is for another
    /// destination, or if the routing table has changed since. The cache helps because applications
    /// often open several connections to one host in a row, each of which looks up the route twice.
    #[inline]
    pub(crate) fn cached_route_to(&self, destination: IpAddr) -> Option<&CachedRoute> {
        let holds = |route: &&CachedRoute| {
            route.destination == destination && route.routes == self.routes.generation()
        };
        self.cached_route.as_ref().filter(holds)
    }

    /// Returns the route to a destination that is not a broadcast address; `None` if there is no
    /// route. Caches the route if the destination is another host.
    pub(crate) fn find_route(&mut self, destination: IpAddr) -> Option<CachedRoute> {
        let route = self.routes.lookup(destination)?;
        let next_hop = route.next_hop(destination);
        let route = CachedRoute {
            destination,
            routes: self.routes.generation(),
            next_hop,
            source: self.interface.source_towards(next_hop, destination),
            mtu: route.mtu,
            windows: route.windows(),
        };
        if !self.is_ours(destination) {
            self.cached_route = Some(route);
        }
        Some(route)
    }

    /// Queues a packet of the host itself on the interface towards its destination. `write` writes
    /// the `length` bytes of its payload. Returns false if the queue is full.
    pub(crate) fn send_packet(
        &mut self,
        header: &IpHeader,
        length: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> bool {
        let interface = self.interface_towards(header.destination());
        self.serving(interface, |stack| stack.queue_packet(header, length, write))
    }

    fn queue_packet(
        &mut self,
        header: &IpHeader,
        length: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> bool {
        let total = header.length() + length;
        let header = self.fragmentable(*header, total);
        let emit = |bytes: &mut [u8]| {
            let at = header.emit(length, bytes);
            write(&mut bytes[at..]);
        };
        let kept = if self.is_ours(header.destination()) {
            self.local_ready.push(Sender::Replies);
            self.local.push_with(self.interface.number, total, emit)
        } else {
            self.interface.ready.push(Sender::Replies);
            self.interface.replies.push_with(Reply::Packet, total, emit)
        };
        self.counted.ip.out_requests += 1;
        self.counted.ip.out_discards += u64::from(!kept);
        kept
    }

    /// Returns `header` for a packet of `total` bytes. If an IPv4 packet exceeds the MTU of its
    /// path, its DF flag is cleared, so that the packet can be sent in fragments.
    fn fragmentable(&mut self, header: IpHeader, total: usize) -> IpHeader {
        let IpHeader::V4(header) = header else { return header };
        if total <= SMALLEST_PATH_MTU {
            return IpHeader::V4(header);
        }
        let path = self.datagram_path_to(self.now, header.destination.into());
        let dont_fragment = path.is_ok_and(|path| total <= path.mtu);
        IpHeader::V4(Ipv4Header { dont_fragment, ..header })
    }

    /// Handles up to `budget` packets that this host has sent to itself, and returns the number of
    /// handled packets.
    pub fn handle_local(&mut self, now: Instant, budget: usize) -> usize {
        self.advance_clock(now);
        let arrival = Arrival { is_local: true, ..Arrival::of_stored(self.now) };
        if self.unconnected.is_spent() && budget > 0 {
            self.serve_unconnected();
        }
        let steps = (0..budget).take_while(|_| self.handle_next_local(now, arrival)).count();
        if !self.unconnected.is_empty() {
            self.local_ready.push(Sender::Replies);
        }
        self.flush_coalesced();
        steps
    }

    /// Has this host work that does not come from a link: packets from the host to itself, or
    /// queued segments without a connection?
    pub(crate) const fn has_local(&self) -> bool {
        !self.local_ready.is_empty()
    }

    /// Handles one packet from this host to itself. Returns false if there is no such packet.
    fn handle_next_local(&mut self, now: Instant, arrival: Arrival<'_>) -> bool {
        match self.local_ready.turn() {
            Some(Sender::Socket(index)) => self.transmit_local(now, arrival, index),
            Some(Sender::Replies) => self.handle_local_packet(arrival),
            None => return false,
        }
        true
    }

    fn handle_local_packet(&mut self, arrival: Arrival<'_>) {
        let next = self.local.pop();
        if self.local.is_empty() {
            self.local_ready.remove(Sender::Replies);
        }
        if let Some((interface, packet)) = next {
            self.serving(interface, |stack| stack.handle_packet(arrival, &packet));
            self.local.recycle(packet);
        }
    }
}
