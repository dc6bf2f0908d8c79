//! ARP packets: what the host learns from them, and its replies (RFC 826, RFC 5227).

use crate::ethernet::neighbor::NeighborRequest;
use crate::icmp::Report;
use crate::ip::is_ipv6;
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
                self.neighbors.counters_mut().in_errors += 1;
                return;
            }
        };
        self.neighbors.counters_mut().in_packets += 1;
        if self.interface.is_ours(packet.sender_ip.into()) {
            // Another host claims our address. We defend it only by counting (RFC 5227 §2.4 c).
            self.neighbors.counters_mut().conflicts +=
                u64::from(packet.sender_mac != self.interface.mac);
            return;
        }
        let asks_for_us = packet.operation == ArpOperation::Request
            && self.interface.is_configured(packet.target_ip.into());
        // A probe has no sender address, and a neighbour must be in one of our networks.
        if self.interface.is_on_link(packet.sender_ip.into())
            && self.interface.is_possible_source(packet.sender_ip.into())
        {
            self.neighbors.learn(
                arrival.at,
                packet.sender_ip.into(),
                packet.sender_mac,
                asks_for_us,
            );
        }
        // Every shard receives the request, so only the first one replies.
        if asks_for_us && self.shard.is_first() {
            let reply = packet.reply(self.interface.mac);
            let emit = |bytes: &mut [u8]| {
                reply.emit(bytes);
            };
            let kept =
                self.replies.push_with(Reply::Arp(packet.sender_mac), ArpPacket::LENGTH, emit);
            self.neighbors.counters_mut().out_replies += u64::from(kept);
            self.counted.transmit.drops += u64::from(!kept);
        }
        self.schedule_replies();
    }

    /// Returns the ARP packet of a request, and its destination.
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

    /// Runs one timer of the neighbour cache, if one is due. Packets to a neighbour that did not
    /// answer are reported to their sockets as unreachable, like a router would.
    #[inline]
    pub(crate) fn handle_neighbor_timeout(&mut self, now: Instant) -> bool {
        let Some(unresolved) = self.neighbors.handle_timeout(now) else { return false };
        self.report_unresolved(now, &unresolved);
        self.schedule_replies();
        true
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
