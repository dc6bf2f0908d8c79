//! Handling of ARP packets: learning of neighbours, replies, requests and conflicts (RFC 826, RFC
//! 5227).

use crate::ethernet::neighbor::{NeighborRequest, Witness};
use crate::handle::TcpHandle;
use crate::icmp::Report;
use crate::ip::address::AddressState;
use crate::ip::{CachedRoute, is_ipv6};
use crate::link::arrival::{Arrival, is_possible_sender};
use crate::stack::Stack;
use crate::tx::Reply;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use linerate_units::Instant;
use linerate_wire::{
    ArpOperation, ArpPacket, IcmpError, Icmpv6Error, Icmpv6Unreachable, Ipv6Quote, MacAddress,
    Quote, Unreachable,
};

impl Stack {
    pub(crate) fn handle_arp(&mut self, arrival: Arrival<'_>, bytes: &[u8]) {
        let packet = match ArpPacket::parse(bytes) {
            Ok(packet) if is_possible_sender(packet.sender_mac) => packet,
            _ => {
                self.interface.neighbors.counters_mut().in_errors += 1;
                return;
            }
        };
        self.interface.neighbors.counters_mut().in_packets += 1;
        self.check_dhcp_probe(arrival.at, &packet);
        let sender = IpAddr::from(packet.sender_ip);
        let is_other = packet.sender_mac != self.interface.mac;
        if sender.is_loopback() || self.interface.addresses.get(sender).is_some() {
            if is_other {
                self.handle_conflict(sender);
            }
            return;
        }
        let target = self.interface.addresses.get(packet.target_ip.into());
        if packet.sender_ip.is_unspecified()
            && is_other
            && target.is_some_and(|own| own.state == AddressState::Tentative)
        {
            // The packet is a probe by another host for an address that this host is probing too.
            // So both hosts want the address, which counts as a conflict (RFC 5227 §2.1.1).
            return self.handle_conflict(packet.target_ip.into());
        }
        let asks_for_us = packet.operation == ArpOperation::Request
            && self.interface.is_configured(packet.target_ip.into());
        // This host learns no MAC address from a probe, which has no sender address, nor from a
        // sender outside the networks of this interface.
        if self.interface.is_on_link(packet.sender_ip.into())
            && self.interface.is_possible_source(packet.sender_ip.into())
        {
            self.interface.neighbors.learn(
                arrival.at,
                packet.sender_ip.into(),
                packet.sender_mac,
                asks_for_us,
            );
        }
        // On a host of several shards, every shard receives the request. Only the first shard
        // replies, so that there is one reply.
        if asks_for_us && self.shard.is_first() {
            let reply = packet.reply(self.interface.mac);
            let emit = |bytes: &mut [u8]| {
                reply.emit(bytes);
            };
            let kept = self.interface.replies.push_with(
                Reply::Arp(packet.sender_mac),
                ArpPacket::LENGTH,
                emit,
            );
            self.interface.neighbors.counters_mut().out_replies += u64::from(kept);
            self.counted.transmit.drops += u64::from(!kept);
        }
        self.schedule_replies();
    }

    /// Returns the ARP packet for an address resolution request, and the destination MAC address of
    /// its frame.
    pub(crate) fn arp_request(
        &self,
        request: &NeighborRequest,
        address: Ipv4Addr,
    ) -> (ArpPacket, MacAddress) {
        let source = match self.interface.source_towards(address.into(), address.into()) {
            Some(IpAddr::V4(source)) => source,
            _ => Ipv4Addr::UNSPECIFIED,
        };
        let packet = ArpPacket::request(self.interface.mac, source, address);
        (packet, request.mac.unwrap_or(MacAddress::BROADCAST))
    }

    /// Runs one timer of the neighbour cache, if one is due at `now`, and returns whether a timer
    /// has run. If a neighbour did not answer, the sockets whose packets wait for it get the error
    /// "destination unreachable".
    #[inline]
    pub(crate) fn handle_neighbor_timeout(&mut self, now: Instant) -> bool {
        let Some(index) = self.interface.neighbors.take_due(now) else { return false };
        self.end_neighbor_state(now, index);
        true
    }

    #[inline(never)]
    fn end_neighbor_state(&mut self, now: Instant, index: u32) {
        if self
            .interface
            .neighbors
            .witness(index)
            .is_some_and(|witness| self.has_progressed(&witness))
        {
            return self.interface.neighbors.confirm(now, index);
        }
        let expired = self.interface.neighbors.end_state(now, index);
        if let Some(lost) = expired.lost {
            self.handle_lost_neighbor(now, lost);
        }
        self.report_unresolved(now, &expired.queued);
        self.schedule_replies();
    }

    /// Has the peer acknowledged data since the connection was recorded as the witness of its next
    /// hop? If so, the data has passed the next hop, which is therefore reachable.
    fn has_progressed(&self, witness: &Witness) -> bool {
        self.tcp_progress(witness.connection).is_some_and(|progress| progress != witness.progress)
    }

    /// Returns the number of bytes that the peer of a connection has acknowledged; `None` if the
    /// connection is closed.
    fn tcp_progress(&self, connection: TcpHandle) -> Option<u64> {
        Some(self.tcp(connection)?.statistics().bytes_acknowledged)
    }

    /// Records a connection as the witness of its IPv6 next hop. If the peer of the connection
    /// later acknowledges data, this confirms that the next hop is reachable, without a probe (RFC
    /// 4861 §7.3.1).
    #[inline(never)]
    pub(super) fn witness_next_hop(&mut self, index: u32, peer: IpAddr) {
        let Some(&CachedRoute { next_hop, .. }) = self.cached_route_to(peer) else { return };
        let Some((connection, socket)) = self.sockets.full_entry(index) else { return };
        let progress = socket.connection.statistics().bytes_acknowledged;
        self.interface.neighbors.set_witness(next_hop, || Witness { connection, progress });
    }

    #[inline(never)]
    fn report_unresolved(&mut self, now: Instant, unresolved: &[Vec<u8>]) {
        for packet in unresolved {
            self.counted.ip.out_discards += 1;
            let report = if is_ipv6(packet) {
                let error = Icmpv6Error::Unreachable(Icmpv6Unreachable::Address);
                Ipv6Quote::parse(packet).map(|quote| Report::of_ipv6(error, quote))
            } else {
                let error = IcmpError::Unreachable(Unreachable::Host);
                Quote::parse(packet).map(|quote| Report::of_ipv4(error, quote))
            };
            if let Ok(report) = report {
                self.handle_report(now, report.source(), &report);
            }
        }
    }
}
