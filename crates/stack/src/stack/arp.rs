//! ARP packets: what the host learns from them, and its replies (RFC 826, RFC 5227).

use crate::ethernet::neighbor::ArpRequest;
use crate::link::arrival::{Arrival, is_possible_sender};
use crate::stack::Stack;
use crate::tx::Reply;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use linerate_units::Instant;
use linerate_wire::{ArpOperation, ArpPacket, IcmpError, MacAddress, Quote, Unreachable};

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
        if self.interface.is_ours(packet.sender_ip) {
            // Another host claims our address. We defend it only by counting (RFC 5227 §2.4 c).
            self.neighbors.counters_mut().conflicts +=
                u64::from(packet.sender_mac != self.interface.mac);
            return;
        }
        let asks_for_us = packet.operation == ArpOperation::Request
            && self.interface.addresses.iter().any(|own| own.address() == packet.target_ip);
        // A probe has no sender address, and a neighbour must be in one of our networks.
        if self.interface.is_on_link(packet.sender_ip)
            && self.interface.is_possible_source(packet.sender_ip)
        {
            self.neighbors.learn(arrival.at, packet.sender_ip, packet.sender_mac, asks_for_us);
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
    pub(crate) fn arp_request(&self, request: &ArpRequest) -> (ArpPacket, MacAddress) {
        let source =
            self.interface.source_towards(request.address).unwrap_or(Ipv4Addr::UNSPECIFIED);
        let packet = ArpPacket::request(self.interface.mac, source, request.address);
        (packet, request.mac.unwrap_or(MacAddress::BROADCAST))
    }

    /// Runs one timer of the ARP cache, if one is due. Packets to a neighbour that did not answer
    /// are reported to their sockets as unreachable, like a router would.
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
            if let Ok(quote) = Quote::parse(packet) {
                self.handle_report(
                    now,
                    quote.header.source,
                    IcmpError::Unreachable(Unreachable::Host),
                    &quote,
                );
            }
        }
    }
}
