//! The addresses of the host at run time: added, removed, deprecated and expired.

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
    /// Returns the addresses of the interface in every state, including its link-local one.
    #[must_use]
    pub fn addresses(&self) -> &[InterfaceAddress] {
        self.interface.addresses.all()
    }

    /// Adds an address to the interface, or renews the lifetimes of a known one. Its network gets a
    /// direct route. The first IPv6 address brings the link-local one (RFC 4291 §2.1).
    /// [`Event::Addresses`] reports the change.
    ///
    /// Listeners and UDP sockets that were bound to this address while it was absent receive again.
    ///
    /// # Errors
    /// [`Error::UnusableAddress`] for a multicast, loopback or unspecified address;
    /// [`Error::TooManyAddresses`].
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

    /// Removes an address of the interface, and the direct route to its network if no other
    /// address needs it. Returns the removed address, or `None` if the interface does not have it.
    /// [`Event::Addresses`] reports the change.
    ///
    /// A host must not send from an address that is not its own (RFC 4862 §5.5.4). So connections
    /// of the address end at once with [`linerate_tcp::Error::AddressRemoved`], without a reset to
    /// the peer. Listeners and UDP sockets stay bound to it, and receive nothing.
    pub fn remove_address(&mut self, now: Instant, address: IpAddr) -> Option<InterfaceAddress> {
        self.advance_clock(now);
        let removed = self.interface.addresses.remove(address)?;
        self.interface.detections.end(address);
        self.handle_removal(removed);
        Some(removed)
    }

    /// Are the addresses ready: is the detection of duplicates over, and has each interface that
    /// takes addresses from routers at least one?
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

    /// Returns the address from which packets to `destination` are sent; `None` without a route or
    /// an address.
    #[must_use]
    pub fn source_towards(&self, destination: IpAddr) -> Option<IpAddr> {
        self.source_over(self.interface_towards(destination), destination)
    }

    /// Returns the address from which packets to `destination` are sent over an interface.
    pub(crate) fn source_over(&self, number: u16, destination: IpAddr) -> Option<IpAddr> {
        if self.is_ours(destination) {
            return Some(destination);
        }
        let next_hop = self.routes.lookup(destination)?.next_hop(destination);
        self.interface_numbered(number)?.source_towards(next_hop, destination)
    }

    /// Orders destinations, for instance the addresses of a name, so that the first one is to be
    /// tried first (RFC 6724 §6): reachable ones, with sources of the same scope and label, and so
    /// on. Equal ones keep their order.
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

    /// Handles a removed address.
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

    /// Discards the cached results that depend on the addresses, and informs the application.
    pub(crate) fn handle_address_change(&mut self) {
        self.all_interfaces_mut().for_each(|interface| interface.flow_cache.forget_hosts());
        self.cached_route = None;
        self.routes.invalidate();
        self.interface.join_solicited_nodes(self.now);
        self.send_group_reports(self.now);
        self.events.note_change(Event::Addresses);
        self.schedule_address_changes();
    }

    /// Ends the connections of an address that the host no longer has. A forwarder may still accept
    /// its packets.
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

    /// Performs the changes of addresses that are due.
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
