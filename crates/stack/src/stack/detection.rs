//! Duplicate address detection: probes, announcements, conflicts, and the defence of addresses (RFC
//! 4862 §5.4 for IPv6, RFC 5227 §2 for IPv4).

use crate::error::Error;
use crate::ip::address::{AddressOptions, AddressOrigin, AddressState};
use crate::ip::detection::DetectionStep;
use crate::stack::Stack;
use crate::tx::Reply;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linerate_units::{Duration, Instant};
use linerate_wire::{ArpPacket, Icmpv6Message, IpCidr, MacAddress, NdMessage, ipv6_multicast};

/// Minimum time between two defences of addresses of one interface (DEFEND_INTERVAL of RFC 5227
/// §1.1).
const DEFEND_INTERVAL: Duration = Duration::from_secs(10);

impl Stack {
    /// Begins duplicate address detection for a new address, if the detection is enabled. The
    /// address is tentative until the detection has succeeded.
    pub(crate) fn detect_duplicates_of(&mut self, address: IpAddr) {
        if self.interface.detections.is_enabled() {
            self.interface.addresses.suspend(address);
            self.interface.detections.begin(address);
        }
    }

    /// Begins duplicate address detection for all addresses of the current interface.
    pub(super) fn detect_duplicates_of_all(&mut self) {
        let all = self.addresses().iter().map(|own| own.cidr.address());
        all.collect::<Vec<_>>().into_iter().for_each(|own| self.detect_duplicates_of(own));
        self.schedule_address_changes();
    }

    /// Assigns all addresses of the current interface without duplicate address detection, for
    /// links without MAC addresses.
    pub(super) fn assign_without_detection(&mut self) {
        self.interface.detections.disable();
        for own in self.addresses().iter().map(|own| own.cidr.address()).collect::<Vec<_>>() {
            self.interface.addresses.assign(self.now, own);
        }
        self.schedule_address_changes();
    }

    /// Adds a random IPv4 link-local address to the current interface, for a host that gets no
    /// other address (RFC 3927). If duplicate address detection is enabled, the host probes the
    /// address first, and replaces the address if another host has it. Packets from this address
    /// stay on the link.
    ///
    /// # Errors
    /// [`Error::TooManyAddresses`] if the limit of addresses is reached.
    pub fn add_ipv4_link_local(&mut self, now: Instant) -> Result<(), Error> {
        let address = IpAddr::from(self.interface.ipv4_link_local.draw());
        let options =
            AddressOptions { origin: AddressOrigin::LinkLocal, ..AddressOptions::default() };
        let cidr = IpCidr::new(address, 16).unwrap_or_else(|| IpCidr::single(address));
        self.add_address(now, cidr, &options)
    }

    /// Replaces an IPv4 link-local address that another host also has by a new random address (RFC
    /// 3927 §2.2.1, §2.5 b).
    fn replace_ipv4_link_local(&mut self, duplicate: IpAddr) {
        let begin = self.interface.ipv4_link_local.note_conflict(self.now);
        let Some(removed) = self.interface.addresses.remove(duplicate) else { return };
        self.handle_removal(removed);
        // The call fails only if the interface already has the maximum number of addresses. The
        // duplicate address was just removed, so there is room for another.
        let _ = self.add_ipv4_link_local(self.now);
        if let Some(added) = self.addresses().last().map(|own| own.cidr.address()) {
            self.interface.detections.begin_at(added, begin);
        }
        self.schedule_address_changes();
    }

    pub(super) fn perform_detection_step(&mut self, now: Instant, step: DetectionStep) {
        match step {
            DetectionStep::Probe(IpAddr::V6(address)) => self.probe_ipv6(address),
            DetectionStep::Probe(IpAddr::V4(address)) => {
                self.send_arp_request(Ipv4Addr::UNSPECIFIED, address);
            }
            DetectionStep::Announce(IpAddr::V4(address)) => {
                self.send_arp_request(address, address);
            }
            DetectionStep::Announce(IpAddr::V6(_)) => {}
            DetectionStep::Unique(address) => {
                self.interface.addresses.assign(now, address);
                self.handle_address_change();
            }
        }
    }

    /// Sends a Neighbour Solicitation for `address` with the unspecified source, which probes for a
    /// duplicate of the address (RFC 4862 §5.4.2). Only the first shard sends probes, for all
    /// shards of the host.
    fn probe_ipv6(&mut self, address: Ipv6Addr) {
        if !self.shard.is_first() {
            return;
        }
        let message = NdMessage::NeighborSolicitation { target: address, source_mac: None };
        let group = ipv6_multicast::solicited_node(address);
        let header = NdMessage::header(Ipv6Addr::UNSPECIFIED, group);
        self.send_icmpv6(header, &Icmpv6Message::NeighborDiscovery(message));
        self.counted.neighbor_discovery.out_probes += 1;
    }

    /// Broadcasts an ARP request for `target`. The request is a probe if `source` is the
    /// unspecified address, and an announcement if `source` equals `target` (RFC 5227 §1.1). Only
    /// the first shard sends, for all shards of the host.
    pub(super) fn send_arp_request(&mut self, source: Ipv4Addr, target: Ipv4Addr) {
        if !self.shard.is_first() {
            return;
        }
        let packet = ArpPacket::request(self.interface.mac, source, target);
        let emit = |bytes: &mut [u8]| {
            packet.emit(bytes);
        };
        let destination = Reply::Arp(MacAddress::BROADCAST);
        let kept = self.interface.replies.push_with(destination, ArpPacket::LENGTH, emit);
        self.counted.transmit.drops += u64::from(!kept);
        self.counted.neighbor_discovery.out_probes += 1;
        self.schedule_replies();
    }

    /// Handles a conflict: a message shows that another host uses or probes for `address`, which is
    /// an address of this host. The host gives up a tentative address, and keeps an assigned IPv6
    /// address. If duplicate address detection is enabled, it defends an assigned IPv4 address by
    /// an announcement, at most every ten seconds on an interface. A conflict before the ten
    /// seconds have passed is not answered. In this case, the host keeps an address that the
    /// application has configured, and gives up any other address (RFC 5227 §2.4 b and c).
    #[cold]
    pub(crate) fn handle_conflict(&mut self, address: IpAddr) {
        self.interface.neighbors.counters_mut().conflicts += 1;
        let Some(own) = self.interface.addresses.get(address).copied() else { return };
        match own.state {
            AddressState::Tentative => self.give_up_address(own.origin, address),
            AddressState::Preferred | AddressState::Deprecated => self.defend(own.origin, address),
            AddressState::Duplicated => {}
        }
    }

    fn defend(&mut self, origin: AddressOrigin, address: IpAddr) {
        let IpAddr::V4(own) = address else { return };
        if !self.interface.detections.is_enabled() {
            return;
        }
        let is_recent =
            self.interface.defended.is_some_and(|last| self.now < last + DEFEND_INTERVAL);
        match (is_recent, origin) {
            (false, _) => {
                self.interface.defended = Some(self.now);
                self.send_arp_request(own, own);
            }
            (true, AddressOrigin::Static) => {}
            (true, _) => self.give_up_address(origin, address),
        }
    }

    /// Stops using `address`, because another host also has it, and ends its connections. If the
    /// host has chosen the address automatically, tries to replace it by another address.
    fn give_up_address(&mut self, origin: AddressOrigin, address: IpAddr) {
        self.interface.detections.end(address);
        self.interface.addresses.mark_duplicated(address);
        self.counted.neighbor_discovery.duplicates += 1;
        self.handle_address_change();
        self.end_connections_of(address);
        let is_link_local = origin == AddressOrigin::LinkLocal && address.is_ipv4();
        if is_link_local {
            self.replace_ipv4_link_local(address);
        } else {
            self.replace_duplicate(address);
        }
    }
}
