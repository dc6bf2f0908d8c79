//! The addresses of the host, which can be added, removed, deprecated and expired at run time.

use crate::error::Error;
use crate::event::Event;
use crate::ip::address::{AddressOptions, AddressOrigin, AddressState, InterfaceAddress};
use crate::ip::addresses::AddressChange;
use crate::ip::interface::link_local_cidr;
use crate::ip::route::{Route, RouteOrigin};
use crate::ip::selection::{Candidate, compare_destinations};
use crate::services::Service;
use crate::sockets::Socket;
use crate::stack::Stack;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_tcp::State;
use linerate_units::Instant;
use linerate_wire::IpCidr;

/// # Addresses
impl Stack {
    /// Returns all addresses of the current interface, in any state, including its link-local
    /// address.
    #[must_use]
    pub fn addresses(&self) -> &[InterfaceAddress] {
        self.interface.addresses.all()
    }

    /// Adds an address to the current interface, or renews its lifetimes if the interface already
    /// has it. The network of the address gets a direct route. With the first IPv6 address, the
    /// interface also gets a link-local address (RFC 4291 §2.1). [`Event::Addresses`] reports the
    /// change.
    ///
    /// Listeners and UDP sockets stay bound to an address that is removed. When the address is
    /// added again, they receive packets to it.
    ///
    /// # Errors
    /// [`Error::UnusableAddress`] for a multicast, broadcast, loopback, unspecified or IPv4-mapped
    /// IPv6 address; [`Error::TooManyAddresses`] if the limit of addresses is reached.
    pub fn add_address(
        &mut self,
        now: Instant,
        address: IpCidr,
        options: &AddressOptions,
    ) -> Result<(), Error> {
        self.advance_clock(now);
        let own = address.address();
        if own.is_multicast()
            || own.is_unspecified()
            || own.is_loopback()
            || own.to_canonical() != own
            || own == IpAddr::V4(core::net::Ipv4Addr::BROADCAST)
        {
            return Err(Error::UnusableAddress(own));
        }
        let limit = self.limits.addresses;
        if self.interface.addresses.get(own).is_none() && self.addresses().len() >= limit {
            return Err(Error::TooManyAddresses { limit });
        }
        if own.is_ipv6() && !self.interface.has_link_local() {
            let link_local = link_local_cidr(self.interface.mac);
            self.insert_address(InterfaceAddress::permanent(link_local, AddressOrigin::LinkLocal));
        }
        self.insert_address(InterfaceAddress::added(self.now, address, options));
        Ok(())
    }

    /// Removes an address of the current interface, and the direct route to its network if no other
    /// address needs the route. Returns the removed address; `None` if the interface does not have
    /// the address. [`Event::Addresses`] reports the change.
    ///
    /// A host must not send from an address that it no longer has (RFC 4862 §5.5.4). Therefore
    /// connections from the address end at once with [`linerate_tcp::Error::AddressRemoved`],
    /// without a reset to the peer. Listeners and UDP sockets stay bound to the address, but
    /// receive nothing until the address is added again.
    pub fn remove_address(&mut self, now: Instant, address: IpAddr) -> Option<InterfaceAddress> {
        self.advance_clock(now);
        let removed = self.interface.addresses.remove(address)?;
        self.interface.detections.end(address);
        self.handle_removal(removed);
        Some(removed)
    }

    /// Can the addresses of all interfaces be used? This requires that no duplicate address
    /// detection is in progress. Also, each interface that forms addresses from router
    /// advertisements must have formed a stable address that is usable.
    #[must_use]
    pub fn is_addressed(&self) -> bool {
        let is_formed =
            |own: &InterfaceAddress| own.origin == AddressOrigin::Stable && own.state.is_usable();
        self.all_interfaces().all(|interface| {
            let addresses = interface.addresses.all();
            let expects_routers = interface.discovery.config.is_some();
            !addresses.iter().any(|own| own.state == AddressState::Tentative)
                && (!expects_routers || addresses.iter().any(is_formed))
        })
    }

    /// Returns the source address that this host uses for packets to `destination`; `None` if there
    /// is no route or no suitable address.
    #[must_use]
    pub fn source_towards(&self, destination: IpAddr) -> Option<IpAddr> {
        self.source_over(self.interface_towards(destination), destination)
    }

    /// Returns the source address of packets to `destination` that leave over the interface
    /// `number`; `None` if there is no route or no suitable address.
    pub(crate) fn source_over(&self, number: u16, destination: IpAddr) -> Option<IpAddr> {
        if self.is_ours(destination) {
            return Some(destination);
        }
        let next_hop = self.routes.lookup(destination)?.next_hop(destination);
        self.interface_numbered(number)?.source_towards(next_hop, destination)
    }

    /// Sorts destination addresses, for example the addresses of a DNS name, by the rules of RFC
    /// 6724 §6. An application should try them in the resulting order. Reachable destinations come
    /// first. Among these, the first ones are those whose scope equals that of the source address
    /// that would be used. Further rules follow; destinations that no rule distinguishes keep their
    /// order.
    pub fn select_destinations(&self, destinations: &mut [IpAddr]) {
        let candidate = |&destination: &IpAddr| {
            let own = self.source_towards(destination).map(|source| {
                let mut interfaces = self.all_interfaces();
                let own = interfaces.find_map(|known| known.addresses.get(source).copied());
                let loopback =
                    InterfaceAddress::permanent(IpCidr::single(source), AddressOrigin::Static);
                own.unwrap_or(loopback)
            });
            Candidate { destination, source: own }
        };
        let mut candidates: Vec<_> = destinations.iter().map(candidate).collect();
        candidates.sort_by(compare_destinations);
        for (place, candidate) in destinations.iter_mut().zip(candidates) {
            *place = candidate.destination;
        }
    }

    pub(crate) fn insert_address(&mut self, added: InterfaceAddress) {
        if self.interface.addresses.insert(added) {
            self.detect_duplicates_of(added.cidr.address());
        }
        if added.covers_link() {
            let interface = Some(self.served());
            let direct = Route { interface, ..Route::direct(added.cidr) };
            self.routes.insert(RouteOrigin::Direct, direct);
        }
        self.handle_address_change();
    }

    /// Updates the host after the address `removed` was removed from the current interface. Ends
    /// the connections of the address. Withdraws the direct route to its network, unless another
    /// address of the interface is in this network.
    #[inline(never)]
    pub(super) fn handle_removal(&mut self, removed: InterfaceAddress) {
        let is_same = |own: &InterfaceAddress| {
            own.covers_link()
                && own.cidr.prefix_length() == removed.cidr.prefix_length()
                && own.cidr.network() == removed.cidr.network()
        };
        let network = removed.cidr;
        self.interface
            .discovery
            .formed
            .retain(|formed| IpAddr::V6(formed.address) != network.address());
        if removed.covers_link() && !self.addresses().iter().any(is_same) {
            self.routes.withdraw(network, RouteOrigin::Direct, self.served());
        }
        self.handle_address_change();
        self.end_connections_of(removed.cidr.address());
    }

    /// Updates the host after any change of addresses: discards cached results that depend on
    /// addresses, joins the solicited-node groups, and notifies the application.
    pub(crate) fn handle_address_change(&mut self) {
        self.all_interfaces_mut().for_each(|interface| interface.flow_cache.forget_hosts());
        self.cached_route = None;
        self.routes.invalidate();
        self.interface.join_solicited_nodes(self.now);
        self.send_group_reports(self.now);
        self.events.note_change(Event::Addresses);
        self.schedule_address_changes();
    }

    /// Ends the connections from `address`, which was removed from an interface. The connections
    /// remain if another interface has the address, or if a forwarder accepts packets to it.
    pub(super) fn end_connections_of(&mut self, address: IpAddr) {
        if self.is_ours(address) || self.forwards_to(address) {
            return;
        }
        let state_if_affected = |socket: &Socket| {
            let socket = socket.as_tcp()?;
            let is_affected = !socket.is_retired && socket.flow().hosts.local() == address;
            is_affected.then_some(socket.state)
        };
        let affected = self.sockets.iter();
        let affected = affected
            .filter_map(|(index, socket)| state_if_affected(socket).map(|state| (index, state)));
        for (index, state) in affected.collect::<Vec<_>>() {
            if state == State::TimeWait {
                self.retire(index);
            } else if let Some(socket) = self.sockets.tcp_at(index) {
                socket.connection.driver().lose_address();
                self.dispatch_step(index);
            }
        }
    }

    /// Performs the address changes that are due at `now`: steps of duplicate address detection,
    /// and ends of lifetimes.
    pub(crate) fn handle_addresses_timeout(&mut self, now: Instant) {
        while let Some(step) = self.interface.detections.step(now) {
            self.perform_detection_step(now, step);
        }
        while let Some(change) = self.interface.addresses.expire(now) {
            match change {
                AddressChange::Deprecated => self.handle_address_change(),
                AddressChange::Expired(expired) => {
                    self.interface.detections.end(expired.cidr.address());
                    self.handle_removal(expired);
                }
            }
        }
        self.schedule_address_changes();
    }

    pub(crate) fn schedule_address_changes(&mut self) {
        let next = self.interface.addresses.next_change().min(self.interface.detections.next());
        self.interface.deadlines.set(Service::Addresses, next);
    }
}
