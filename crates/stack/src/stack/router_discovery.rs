//! Router discovery (RFC 4861 §6.3): router solicitations and advertisements, the default route,
//! and the routes to on-link prefixes.
//!
//! The host accepts advertisements only if it is configured to do so. Everything that an
//! advertisement makes the host store is limited in number, and no advertisement can remove what
//! the application has configured.

use crate::ip::Arrived;
use crate::ip::address::AddressState;
use crate::ip::interface::is_link_local;
use crate::ip::route::{Route, RouteOrigin};
use crate::ip::routers::{DefaultRouter, RouterChange};
use crate::services::Service;
use crate::stack::Stack;
use core::net::{IpAddr, Ipv6Addr};
use linerate_units::{Duration, Instant};
use linerate_wire::{
    Icmpv6Message, IpCidr, NdMessage, NdOption, PrefixInformation, RouterAdvertisement,
    ipv6_multicast,
};

/// Minimum MTU in bytes of a link that carries IPv6 (RFC 8200 §5).
const SMALLEST_IPV6_MTU: usize = 1_280;

impl Stack {
    /// Returns the routers on the link of the current interface that have advertised themselves as
    /// default routers.
    #[must_use]
    pub fn default_routers(&self) -> &[DefaultRouter] {
        self.interface.discovery.routers.all()
    }

    /// Handles a valid router advertisement from the router `source`.
    pub(super) fn handle_router_advertisement(
        &mut self,
        arrived: &Arrived<'_>,
        source: Ipv6Addr,
        advertisement: &RouterAdvertisement<'_>,
    ) {
        self.counted.neighbor_discovery.in_advertisements += 1;
        if self.interface.discovery.config.is_none() || self.is_link_local_duplicated() {
            self.counted.neighbor_discovery.ignored_advertisements += 1;
            return;
        }
        let now = arrived.arrival.at;
        let lifetime = Duration::from_secs(advertisement.lifetime.into());
        let preference = advertisement.preference;
        let listed = self.interface.discovery.routers.advertise(now, source, lifetime, preference);
        self.count_refused_entry(listed.is_err());
        if lifetime > Duration::ZERO {
            self.interface.discovery.solicitations.end();
        }
        self.take_parameters(advertisement);
        if let Some(mac) = advertisement.options.source_mac() {
            self.learn_neighbor(arrived, source, mac, true);
        }
        self.interface.neighbors.mark_router(source.into());
        for option in advertisement.options.iter() {
            match option {
                NdOption::Mtu(mtu) => self.take_mtu(mtu),
                NdOption::Prefix(prefix) => self.take_prefix(now, &prefix),
                _ => {}
            }
        }
        self.update_default_route();
        self.schedule_discovery();
    }

    /// Must the interface ignore router advertisements? It must if it has no link-local address, or
    /// if other hosts also use all its link-local addresses. In these cases, IP operation on the
    /// interface should be disabled (RFC 4862 §5.4.5).
    fn is_link_local_duplicated(&self) -> bool {
        let mut link_local =
            self.addresses().iter().filter(|own| is_link_local(own.cidr.address()));
        link_local.all(|own| own.state == AddressState::Duplicated)
    }

    pub(super) const fn count_refused_entry(&mut self, is_full: bool) {
        self.counted.neighbor_discovery.overflows += is_full as u64;
    }

    /// Sets the reachable time and the retransmission interval of Neighbour Discovery from an
    /// advertisement. A value of zero means that the router does not specify the time (RFC 4861
    /// §6.3.4).
    fn take_parameters(&mut self, advertisement: &RouterAdvertisement<'_>) {
        let time = |millis: u32| (millis > 0).then(|| Duration::from_millis(millis.into()));
        let (reachable, interval) =
            (time(advertisement.reachable_time), time(advertisement.retransmission_timer));
        let interval = self.interface.neighbors.set_timing(reachable, interval);
        self.interface.detections.set_interval(interval);
    }

    /// Sets the MTU of all routes that routers have advertised to `advertised`, the value of an MTU
    /// option in bytes (RFC 4861 §6.3.4). A value below 1280 bytes or above the MTU of the link is
    /// ignored.
    fn take_mtu(&mut self, advertised: u32) {
        let link = self.interface.capabilities.mtu;
        let mtu = usize::try_from(advertised).ok();
        let mtu = mtu.filter(|mtu| (SMALLEST_IPV6_MTU..=link).contains(mtu));
        if mtu.is_none() || mtu == self.interface.discovery.mtu {
            return;
        }
        self.interface.discovery.mtu = mtu;
        for network in self.interface.discovery.routers.prefixes() {
            self.insert_advertised(Route::direct(network));
        }
        // The default route still has the previous MTU. It is removed here, and the caller installs
        // it with the new MTU.
        self.withdraw_default_route();
    }

    fn take_prefix(&mut self, now: Instant, prefix: &PrefixInformation) {
        let Some(network) = IpCidr::new(prefix.prefix.into(), prefix.length) else { return };
        // The link-local prefix is ignored, because it exists on every link (RFC 4861 §6.3.4).
        if is_link_local(network.address()) || prefix.prefix.is_multicast() {
            self.counted.neighbor_discovery.refused_prefixes += 1;
            return;
        }
        if prefix.is_on_link {
            let lifetime = lifetime(prefix.valid_lifetime);
            match self.interface.discovery.routers.set_prefix(now, network, lifetime) {
                Ok(true) => self.insert_advertised(Route::direct(network)),
                Ok(false) => {}
                Err(_) => self.count_refused_entry(true),
            }
        }
        if prefix.is_autonomous {
            self.form_addresses(now, prefix);
        }
    }

    /// Adds a route that a router has advertised, with the advertised MTU. If the application has
    /// configured a route of equal metric to the same network, the route of the application takes
    /// precedence.
    fn insert_advertised(&mut self, route: Route) {
        let (mtu, interface) = (self.interface.discovery.mtu, Some(self.served()));
        self.routes.insert(RouteOrigin::Advertised, Route { mtu, interface, ..route });
    }

    /// Makes the best known default router the next hop of the IPv6 default route. Removes this
    /// route if no default router is known.
    pub(super) fn update_default_route(&mut self) {
        let best = self.interface.discovery.routers.best();
        if best.is_some() && best == self.interface.discovery.installed {
            return;
        }
        self.withdraw_default_route();
        if let Some(router) = best {
            self.insert_advertised(Route::via(IpCidr::ALL_IPV6, router));
            self.interface.discovery.installed = Some(router);
            self.counted.neighbor_discovery.router_changes += 1;
        }
    }

    fn withdraw_default_route(&mut self) {
        if self.interface.discovery.installed.take().is_some() {
            self.withdraw(IpCidr::ALL_IPV6, RouteOrigin::Advertised);
        }
    }

    /// Removes a route to `destination` that the host has learnt on the current interface.
    pub(super) fn withdraw(&mut self, destination: IpCidr, origin: RouteOrigin) {
        self.routes.withdraw(destination, origin, self.served());
    }

    /// Handles a neighbour that does not answer: removes the redirects to it, and if it is a
    /// router, selects another default router if possible (RFC 4861 §7.3.3).
    pub(crate) fn handle_lost_neighbor(&mut self, now: Instant, neighbor: IpAddr) {
        while let Some(destination) = self.interface.discovery.redirects.remove_target(neighbor) {
            self.withdraw(destination, RouteOrigin::Redirect);
        }
        if self.interface.discovery.routers.suspect(now, neighbor) {
            self.update_default_route();
            self.schedule_discovery();
        }
    }

    /// Performs the actions of router discovery that are due at `now`: sends solicitations, removes
    /// expired entries, and replaces temporary addresses.
    pub(crate) fn handle_discovery_timeout(&mut self, now: Instant) {
        if self.interface.discovery.solicitations.take_due(now) {
            self.solicit_routers();
        }
        while let Some(destination) = self.interface.discovery.redirects.expire(now) {
            self.withdraw(destination, RouteOrigin::Redirect);
        }
        while let Some(change) = self.interface.discovery.routers.expire(now) {
            match change {
                RouterChange::Router => {}
                RouterChange::PrefixExpired(network) => {
                    self.withdraw(network, RouteOrigin::Advertised);
                }
            }
        }
        self.update_default_route();
        self.replace_temporary_addresses(now);
        self.schedule_discovery();
    }

    /// Sends a router solicitation, from the link-local address of the interface if that address is
    /// usable. Only the first shard sends solicitations, for all shards of the host.
    fn solicit_routers(&mut self) {
        if !self.shard.is_first() {
            return;
        }
        let own = self.interface.addresses.in_use().iter().map(|own| own.address());
        let link_local = own.filter(|&own| is_link_local(own)).find_map(|own| match own {
            IpAddr::V6(own) => Some(own),
            IpAddr::V4(_) => None,
        });
        // If the source is the unspecified address, the message must not contain a MAC address (RFC
        // 4861 §4.1).
        let source_mac = link_local.and_then(|_| self.own_mac());
        let source = link_local.unwrap_or(Ipv6Addr::UNSPECIFIED);
        let message = NdMessage::RouterSolicitation { source_mac };
        let header = NdMessage::header(source, ipv6_multicast::ALL_ROUTERS);
        self.send_icmpv6(header, &Icmpv6Message::NeighborDiscovery(message));
        self.counted.neighbor_discovery.out_solicitations += 1;
    }

    pub(crate) fn schedule_discovery(&mut self) {
        self.interface.deadlines.set(Service::Routers, self.interface.discovery.next_change());
    }
}

/// Converts an advertised lifetime in seconds; `None` stands for an infinite lifetime.
pub(super) fn lifetime(seconds: u32) -> Option<Duration> {
    (seconds != PrefixInformation::INFINITE).then(|| Duration::from_secs(seconds.into()))
}
