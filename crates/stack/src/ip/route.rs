//! The routing table, with longest-prefix match.

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use core::num::NonZeroU32;
use linerate_wire::IpCidr;

/// A route to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destinations.
    pub destination: IpCidr,
    /// The router that forwards the packets; `None` if the destinations are on the link.
    pub gateway: Option<IpAddr>,
    /// The largest window in bytes that connections over this route offer. It protects a machine on
    /// the path with little memory.
    pub window_clamp: Option<u32>,
    /// The initial congestion window of connections over this route, in segments (`initcwnd` of
    /// Linux). `None` uses that of the connection's configuration.
    pub initial_window: Option<NonZeroU32>,
    /// The initial receive window of connections over this route, in segments of the announced MSS
    /// (`initrwnd` of Linux). Only receive buffers of a tuned size use it; others offer their size.
    pub initial_receive_window: Option<NonZeroU32>,
    /// The size of the largest IP packet in bytes, if it is smaller than the MTU of the link.
    pub mtu: Option<usize>,
    /// The cost of the route: of several to the same destinations, the one with the lowest metric
    /// is used, and the others replace it when it is removed.
    pub metric: u32,
}

impl Route {
    /// Creates a route to destinations on the link.
    #[must_use]
    pub const fn direct(destination: IpCidr) -> Self {
        Self {
            destination,
            gateway: None,
            window_clamp: None,
            initial_window: None,
            initial_receive_window: None,
            mtu: None,
            metric: 0,
        }
    }

    /// Creates a route to destinations behind a router. A router of the other IP version never
    /// resolves.
    #[must_use]
    pub fn via(destination: IpCidr, gateway: impl Into<IpAddr>) -> Self {
        Self { gateway: Some(gateway.into()), ..Self::direct(destination) }
    }

    /// Creates the default route by way of a router: to all addresses of the router's IP version.
    #[must_use]
    pub const fn default_via(gateway: IpAddr) -> Self {
        let destination = match gateway {
            IpAddr::V4(_) => IpCidr::ALL_IPV4,
            IpAddr::V6(_) => IpCidr::ALL_IPV6,
        };
        Self { gateway: Some(gateway), ..Self::direct(destination) }
    }

    /// Returns the windows of connections over the route.
    pub(crate) const fn windows(&self) -> RouteWindows {
        let &Self { window_clamp, initial_window, initial_receive_window, .. } = self;
        RouteWindows { clamp: window_clamp, initial_window, initial_receive_window }
    }

    /// Returns the neighbour to which packets for `destination` are sent.
    #[must_use]
    pub fn next_hop(&self, destination: IpAddr) -> IpAddr {
        self.gateway.unwrap_or(destination)
    }
}

/// The windows of connections over a route, where it determines them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteWindows {
    /// The largest window in bytes that a connection offers.
    pub(crate) clamp: Option<u32>,
    /// The initial congestion window in segments.
    pub(crate) initial_window: Option<NonZeroU32>,
    /// The initial receive window in segments.
    pub(crate) initial_receive_window: Option<NonZeroU32>,
}

/// The routing table of a host.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The routes by prefix length and network: of each, the one with the lowest metric.
    routes: BTreeMap<(u8, IpAddr), Route>,
    /// Routes to destinations with one of a lower metric, which are not used, by metric.
    higher: BTreeMap<(u8, IpAddr, u32), Route>,
    /// The prefix lengths of IPv4 and of IPv6 that occur, so that a lookup tries no others.
    prefix_lengths: [PrefixLengths; 2],
    generation: u64,
}

/// A set of prefix lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PrefixLengths {
    /// A bit for each length from 1 to 128.
    bits: u128,
    /// Is there a default route: a prefix without bits?
    has_default: bool,
}

impl PrefixLengths {
    const fn set(&mut self, length: u8, is_there: bool) {
        match length.checked_sub(1) {
            None => self.has_default = is_there,
            Some(place) if is_there => self.bits |= 1 << place,
            Some(place) => self.bits &= !(1 << place),
        }
    }

    /// Removes and returns the longest.
    fn pop(&mut self) -> Option<u8> {
        if let Some(place) = self.bits.checked_ilog2() {
            self.bits &= !(1 << place);
            #[allow(clippy::cast_possible_truncation, reason = "at most 127")]
            return Some(place as u8 + 1);
        }
        core::mem::take(&mut self.has_default).then_some(0)
    }
}

/// Returns the index of an IP version.
const fn version(address: IpAddr) -> usize {
    address.is_ipv6() as usize
}

impl Routes {
    /// Adds a route, which replaces one to the same destinations with the same metric.
    pub(crate) fn insert(&mut self, route: Route) {
        let (prefix_length, network) =
            (route.destination.prefix_length(), route.destination.network());
        let key = (prefix_length, network);
        match self.routes.get(&key).map(|known| known.metric) {
            Some(metric) if metric < route.metric => {
                self.higher.insert((prefix_length, network, route.metric), route);
                return;
            }
            Some(metric) if metric > route.metric => {
                if let Some(known) = self.routes.get(&key) {
                    self.higher.insert((prefix_length, network, metric), *known);
                }
            }
            _ => {}
        }
        self.routes.insert(key, route);
        self.prefix_lengths[version(network)].set(prefix_length, true);
        self.generation += 1;
    }

    /// Removes the route to exactly these destinations with the lowest metric.
    pub(crate) fn remove(&mut self, destination: IpCidr) -> Option<Route> {
        let (prefix_length, network) = (destination.prefix_length(), destination.network());
        let removed = self.routes.remove(&(prefix_length, network))?;
        let of_network = (prefix_length, network, 0)..=(prefix_length, network, u32::MAX);
        let next = self.higher.range(of_network).next().map(|(&key, _)| key);
        if let Some(next) = next.and_then(|key| self.higher.remove(&key)) {
            self.routes.insert((prefix_length, network), next);
        }
        let is_like = |&(length, other): &(u8, IpAddr)| {
            length == prefix_length && version(other) == version(network)
        };
        if !self.routes.keys().any(is_like) {
            self.prefix_lengths[version(network)].set(prefix_length, false);
        }
        self.generation += 1;
        Some(removed)
    }

    /// Returns the route to exactly these destinations.
    pub(crate) fn get(&self, destination: IpCidr) -> Option<&Route> {
        self.routes.get(&(destination.prefix_length(), destination.network()))
    }

    /// Makes the users of earlier lookups repeat them, because something else that they depend on
    /// has changed.
    pub(crate) const fn invalidate(&mut self) {
        self.generation += 1;
    }

    /// Returns the route with the longest prefix that contains `destination`.
    pub(crate) fn lookup(&self, destination: IpAddr) -> Option<&Route> {
        let mut untried = self.prefix_lengths[version(destination)];
        while let Some(prefix_length) = untried.pop() {
            let network = IpCidr::new(destination, prefix_length)?.network();
            if let Some(route) = self.routes.get(&(prefix_length, network)) {
                return Some(route);
            }
        }
        None
    }

    /// Returns a number that grows whenever a lookup may have another result.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        let mut known = [PrefixLengths::default(); 2];
        for &(prefix_length, network) in self.routes.keys() {
            known[version(network)].set(prefix_length, true);
        }
        assert_eq!(self.prefix_lengths, known, "the prefix lengths are those of the routes");
        for (&(prefix_length, network, metric), route) in &self.higher {
            let lower = self.routes.get(&(prefix_length, network));
            assert!(lower.is_some_and(|lower| lower.metric < metric), "a lower metric is used");
            assert_eq!(route.metric, metric, "routes are ordered by their metric");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    fn via(destination: &str, gateway: u8) -> Route {
        Route::via(destination.parse().unwrap(), Ipv4Addr::new(10, 0, 0, gateway))
    }

    fn gateway(routes: &Routes, destination: [u8; 4]) -> Option<u8> {
        routes.check();
        let route = routes.lookup(destination.into())?;
        let IpAddr::V4(next_hop) = route.next_hop(destination.into()) else { return None };
        Some(next_hop.octets()[3])
    }

    #[test]
    fn the_longest_prefix_wins() {
        let mut routes = Routes::default();
        for (destination, next_hop_generation) in
            [("0.0.0.0/0", 1), ("192.0.2.0/24", 2), ("192.0.2.128/25", 3)]
        {
            routes.insert(via(destination, next_hop_generation));
        }
        assert_eq!(gateway(&routes, [192, 0, 2, 200]), Some(3));
        assert_eq!(gateway(&routes, [192, 0, 2, 100]), Some(2));
        assert_eq!(gateway(&routes, [198, 51, 100, 1]), Some(1));
    }

    #[test]
    fn changes_increase_the_generation_and_removal_uncovers_a_shorter_prefix() {
        let mut routes = Routes::default();
        routes.insert(via("0.0.0.0/0", 1));
        routes.insert(via("192.0.2.0/24", 2));
        let before = routes.generation();
        assert!(routes.remove("192.0.2.9/24".parse().unwrap()).is_some());
        assert!(routes.generation() > before);
        assert_eq!(gateway(&routes, [192, 0, 2, 100]), Some(1));
        assert!(routes.remove(IpCidr::ALL_IPV4).is_some());
        assert_eq!(gateway(&routes, [192, 0, 2, 100]), None);
        assert_eq!(routes.remove(IpCidr::ALL_IPV4), None);
    }

    #[test]
    fn the_lowest_metric_is_used_and_its_removal_uncovers_the_next_one() {
        let mut routes = Routes::default();
        let with = |gateway, metric| Route { metric, ..via("192.0.2.0/24", gateway) };
        for (next_hop, metric) in [(2, 200), (1, 100), (3, 300), (4, 200)] {
            routes.insert(with(next_hop, metric));
        }
        let network = "192.0.2.0/24".parse().unwrap();
        for expected in [1, 4, 3] {
            assert_eq!(gateway(&routes, [192, 0, 2, 9]), Some(expected));
            assert_eq!(
                routes.remove(network).map(|route| route.metric),
                Some(match expected {
                    1 => 100,
                    4 => 200,
                    _ => 300,
                })
            );
        }
        assert_eq!((gateway(&routes, [192, 0, 2, 9]), routes.remove(network)), (None, None));
    }

    #[test]
    fn removal_keeps_other_routes_of_equal_and_longer_prefixes() {
        let mut routes = Routes::default();
        for (destination, next_hop_generation) in
            [("192.0.2.0/24", 1), ("198.51.100.0/24", 2), ("192.0.2.128/25", 3)]
        {
            let before = routes.generation();
            routes.insert(via(destination, next_hop_generation));
            assert!(routes.generation() > before, "a new route may be more specific");
        }
        assert!(routes.remove("192.0.2.0/24".parse().unwrap()).is_some());
        assert_eq!(gateway(&routes, [198, 51, 100, 1]), Some(2));
        assert!(routes.remove("198.51.100.0/24".parse().unwrap()).is_some());
        assert_eq!(gateway(&routes, [192, 0, 2, 200]), Some(3));
    }

    #[test]
    fn a_destination_on_the_link_is_its_own_next_hop() {
        let mut routes = Routes::default();
        routes.insert(Route::direct("192.0.2.0/24".parse().unwrap()));
        assert_eq!(gateway(&routes, [192, 0, 2, 100]), Some(100));
    }

    #[test]
    fn the_routes_of_each_version_are_its_own() {
        let mut routes = Routes::default();
        let find = |routes: &Routes, destination: &str| {
            routes.check();
            routes.lookup(destination.parse().unwrap()).map(|route| route.destination)
        };
        let networks = ["::/0", "2001:db8::/32", "2001:db8::7/128", "192.0.2.0/24"];
        for network in networks {
            routes.insert(Route::direct(network.parse().unwrap()));
        }
        for (destination, network) in [
            ("2001:db8::7", Some("2001:db8::7/128")),
            ("2001:db8::8", Some("2001:db8::/32")),
            ("::1", Some("::/0")),
            ("192.0.2.1", Some("192.0.2.0/24")),
            ("198.51.100.1", None),
        ] {
            assert_eq!(find(&routes, destination), network.map(|text| text.parse().unwrap()));
        }
        assert!(routes.remove(IpCidr::ALL_IPV6).is_some());
        assert_eq!(find(&routes, "::1"), None);
        assert_eq!(routes.remove(IpCidr::ALL_IPV4), None);
    }
}
