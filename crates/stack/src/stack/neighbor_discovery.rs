//! Handling of Neighbour Discovery messages (RFC 4861): solicitations, advertisements and
//! redirects. The messages are valid, because the parser has checked them (§6.1, §7.1, §8.1).

use crate::ethernet::neighbor::{Advertised, NeighborRequest};
use crate::ip::Arrived;
use crate::ip::address::AddressState;
use crate::ip::route::{Route, RouteOrigin};
use crate::link::Medium;
use crate::link::arrival::is_possible_sender;
use crate::stack::Stack;
use core::net::{IpAddr, Ipv6Addr};
use linerate_wire::{
    EtherType, Icmpv6Message, IpCidr, Ipv6Header, MacAddress, NdMessage, ipv6_multicast,
};

impl Stack {
    /// Handles a valid Neighbour Discovery message. Router solicitations are ignored, because this
    /// host is not a router (RFC 4861 §6.2.6).
    pub(super) fn handle_neighbor_discovery(
        &mut self,
        arrived: &Arrived<'_>,
        header: &Ipv6Header,
        message: &NdMessage<'_>,
    ) {
        self.interface.neighbors.counters_mut().in_packets += 1;
        match *message {
            NdMessage::NeighborSolicitation { target, source_mac } => {
                self.handle_solicitation(arrived, header.source, target, source_mac);
            }
            NdMessage::NeighborAdvertisement {
                target,
                target_mac,
                is_router,
                is_solicited,
                is_override,
            } => {
                let mac = target_mac;
                let advertised = Advertised { mac, is_router, is_solicited, is_override };
                self.handle_advertisement(arrived, target, &advertised);
            }
            NdMessage::RouterAdvertisement(ref advertisement) => {
                self.handle_router_advertisement(arrived, header.source, advertisement);
            }
            NdMessage::Redirect { target, destination, target_mac, .. } => {
                self.handle_redirect(arrived, header.source, (destination, target), target_mac);
            }
            NdMessage::RouterSolicitation { .. } => {}
        }
        self.schedule_replies();
    }

    fn handle_solicitation(
        &mut self,
        arrived: &Arrived<'_>,
        source: Ipv6Addr,
        target: Ipv6Addr,
        source_mac: Option<MacAddress>,
    ) {
        let Some(own) = self.interface.addresses.get(target.into()) else { return };
        match own.state {
            AddressState::Preferred | AddressState::Deprecated => {}
            // A solicitation from the unspecified address is a probe: another host wants to use
            // this tentative address too. A solicitation from any other address is an attempt to
            // resolve the address, which must not be answered while it is tentative (RFC 4862
            // §5.4.3).
            AddressState::Tentative if source.is_unspecified() => {
                return self.handle_conflict(target.into());
            }
            AddressState::Tentative | AddressState::Duplicated => return,
        }
        if let Some(mac) = source_mac {
            self.learn_neighbor(arrived, source, mac, false);
        }
        // On a host of several shards, every shard receives the solicitation. Only the first shard
        // answers it, so that there is one answer.
        if self.shard.is_first() {
            self.advertise(source, target);
        }
    }

    fn handle_advertisement(
        &mut self,
        arrived: &Arrived<'_>,
        target: Ipv6Addr,
        advertised: &Advertised,
    ) {
        if let Some(own) = self.interface.addresses.get(target.into()) {
            // The advertisement is for an address of this interface. If it contains another MAC
            // address, another host claims the address (RFC 4862 §5.4.4). If the address is
            // tentative, any advertisement means this, because this interface advertises only
            // assigned addresses.
            let is_ours = advertised.mac == Some(self.interface.mac);
            if own.state == AddressState::Tentative || (advertised.mac.is_some() && !is_ours) {
                self.handle_conflict(target.into());
            }
            return;
        }
        let is_possible = advertised.mac.is_none_or(is_possible_sender);
        if !is_possible || !self.is_neighbor(target) {
            return;
        }
        if self.interface.neighbors.advertise(arrived.arrival.at, target.into(), advertised)
            && self.interface.discovery.routers.remove(target)
        {
            self.update_default_route();
            self.schedule_discovery();
        }
    }

    /// Handles a redirect, which names a better first hop for one destination (RFC 4861 §8.3). A
    /// redirect is accepted only from the current first hop to the destination, and only if router
    /// discovery has found this router. So a host that ignores router advertisements ignores all
    /// redirects, because it finds no routers. The number of redirects is limited, and each expires
    /// after ten minutes.
    fn handle_redirect(
        &mut self,
        arrived: &Arrived<'_>,
        source: Ipv6Addr,
        (destination, target): (Ipv6Addr, Ipv6Addr),
        target_mac: Option<MacAddress>,
    ) {
        self.counted.icmp.in_redirects += 1;
        let now = arrived.arrival.at;
        let route = self.routes.lookup(destination.into());
        let is_first_hop = route.is_some_and(|route| route.gateway == Some(source.into()));
        let is_trusted =
            self.interface.discovery.routers.all().iter().any(|known| known.address == source);
        if !is_first_hop
            || !is_trusted
            || self.is_ours(target.into())
            || self.is_ours(destination.into())
        {
            self.counted.neighbor_discovery.refused_redirects += 1;
            return;
        }
        let is_router = target != destination;
        let network = IpCidr::single(destination.into());
        let mtu = self.interface.discovery.mtu;
        let route = if is_router { Route::via(network, target) } else { Route::direct(network) };
        let interface = Some(self.served());
        self.routes.insert(RouteOrigin::Redirect, Route { mtu, interface, ..route });
        if let Some(replaced) = self.interface.discovery.redirects.insert(now, network, target) {
            self.withdraw(replaced, RouteOrigin::Redirect);
        }
        if let Some(mac) = target_mac.filter(|&mac| is_possible_sender(mac)) {
            self.interface.neighbors.note_sender(now, target.into(), mac, is_router);
        }
        self.schedule_discovery();
    }

    /// Records the MAC address of a neighbour, unless `address` cannot be a neighbour's address or
    /// `mac` is not a valid source MAC address.
    pub(super) fn learn_neighbor(
        &mut self,
        arrived: &Arrived<'_>,
        address: Ipv6Addr,
        mac: MacAddress,
        is_router: bool,
    ) {
        if self.is_neighbor(address) && is_possible_sender(mac) {
            self.interface.neighbors.note_sender(
                arrived.arrival.at,
                address.into(),
                mac,
                is_router,
            );
        }
    }

    /// Can `address` belong to another host on the link of this interface?
    fn is_neighbor(&self, address: Ipv6Addr) -> bool {
        let address = IpAddr::from(address);
        let is_on_link = self.interface.is_on_link(address)
            || self.interface.discovery.routers.is_on_link(address);
        let is_redirected = || self.interface.discovery.redirects.leads_to(address);
        (is_on_link || is_redirected()) && self.interface.is_possible_source(address)
    }

    /// Answers a solicitation for `target` by an advertisement of our MAC address. `source` is the
    /// source of the solicitation, to which the advertisement is sent. If it is the unspecified
    /// address, the advertisement is sent to all nodes (RFC 4861 §7.2.4).
    fn advertise(&mut self, source: Ipv6Addr, target: Ipv6Addr) {
        let is_solicited = !source.is_unspecified();
        let destination = if is_solicited { source } else { ipv6_multicast::ALL_NODES };
        let message = NdMessage::NeighborAdvertisement {
            is_router: false,
            is_solicited,
            is_override: true,
            target,
            target_mac: self.own_mac(),
        };
        let header = NdMessage::header(target, destination);
        let kept = self.send_icmpv6(header, &Icmpv6Message::NeighborDiscovery(message));
        self.interface.neighbors.counters_mut().out_replies += u64::from(kept);
    }

    /// Returns the MAC address of the interface; `None` if its link has no MAC addresses.
    pub(super) fn own_mac(&self) -> Option<MacAddress> {
        let has_macs = self.interface.capabilities.medium == Medium::Ethernet;
        has_macs.then_some(self.interface.mac)
    }

    /// Writes a frame with a Neighbour Solicitation for `address`, and returns the length of the
    /// frame in bytes.
    pub(super) fn write_solicitation(
        &self,
        request: &NeighborRequest,
        address: Ipv6Addr,
        frame: &mut [u8],
    ) -> usize {
        let source = match self.interface.source_towards(address.into(), address.into()) {
            Some(IpAddr::V6(source)) => source,
            _ => Ipv6Addr::UNSPECIFIED,
        };
        let group = ipv6_multicast::solicited_node(address);
        let (destination, mac) = match request.mac {
            Some(mac) => (address, mac),
            None => (group, MacAddress::of_ipv6_multicast(group)),
        };
        let message = Icmpv6Message::NeighborDiscovery(NdMessage::NeighborSolicitation {
            target: address,
            source_mac: Some(self.interface.mac).filter(|_| !source.is_unspecified()),
        });
        let header = NdMessage::header(source, destination);
        let mut at = self.emit_ethernet(mac, EtherType::IPV6, frame);
        at += header.emit(message.length(), &mut frame[at..]);
        at + message.emit(&header, &mut frame[at..])
    }
}
