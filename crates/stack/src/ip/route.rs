//! The routing table, with longest-prefix match.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::num::NonZeroU32;
use linerate_wire::IpCidr;

/// A route to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The network of destinations to which the route leads.
    pub destination: IpCidr,
    /// The address of the router that forwards the packets; `None` if the destinations are on the
    /// link.
    pub gateway: Option<IpAddr>,
    /// The maximum receive window in bytes that connections over this route offer; `None` for no
    /// limit. A limit protects a device on the path that has little memory.
    pub window_clamp: Option<u32>,
    /// The initial congestion window of connections over this route, in segments (`initcwnd` of
    /// Linux). With `None`, a connection uses the initial window of its configuration.
    pub initial_window: Option<NonZeroU32>,
    /// The initial receive window of connections over this route, in segments of the announced MSS
    /// (`initrwnd` of Linux). With `None`, the connection chooses this window. The value applies
    /// only to connections whose receive buffer is tuned automatically; other connections offer the
    /// size of their receive buffer.
    pub initial_receive_window: Option<NonZeroU32>,
    /// The maximum size of IP packets over this route in bytes, if it is smaller than the MTU of
    /// the link.
    pub mtu: Option<usize>,
    /// The cost of the route. Among routes to equal networks, the host uses the route with the
    /// lowest metric. If this route is removed, the host uses the route with the next higher
    /// metric.
    pub metric: u32,
    /// The number of the interface over which the packets leave. `None` selects the interface with
    /// an address in the network of the gateway, or else the first interface.
    pub interface: Option<u32>,
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
            interface: None,
        }
    }

    /// Creates a route to destinations behind a router. The addresses of the router and of the
    /// destinations must be of one IP version; otherwise no packet can be sent over the route.
    #[must_use]
    pub fn via(destination: IpCidr, gateway: impl Into<IpAddr>) -> Self {
        Self { gateway: Some(gateway.into()), ..Self::direct(destination) }
    }

    /// Creates the default route by way of a router, to all addresses of the router's IP version.
    #[must_use]
    pub const fn default_via(gateway: IpAddr) -> Self {
        let destination = match gateway {
            IpAddr::V4(_) => IpCidr::ALL_IPV4,
            IpAddr::V6(_) => IpCidr::ALL_IPV6,
        };
        Self { gateway: Some(gateway), ..Self::direct(destination) }
    }

    /// Returns the window parameters of connections over the route.
    pub(crate) const fn windows(&self) -> RouteWindows {
        let &Self { window_clamp, initial_window, initial_receive_window, .. } = self;
        RouteWindows { clamp: window_clamp, initial_window, initial_receive_window }
    }

    /// Returns the next hop of packets to `destination`: the gateway, or `destination` itself if it
    /// is on the link.
    #[must_use]
    pub fn next_hop(&self, destination: IpAddr) -> IpAddr {
        self.gateway.unwrap_or(destination)
    }
}

/// The window parameters of connections over a route. `None` means that the route does not
/// determine the parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteWindows {
    /// The maximum receive window in bytes that a connection offers.
    pub(crate) clamp: Option<u32>,
    /// The initial congestion window in segments.
    pub(crate) initial_window: Option<NonZeroU32>,
    /// The initial receive window in segments.
    pub(crate) initial_receive_window: Option<NonZeroU32>,
}

/// The origin of a route. Among routes to a network with equal metrics, the host uses the route
/// whose origin comes first in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RouteOrigin {
    /// A call of the application, or the configuration of the host.
    Static,
    /// The lease of a DHCP server.
    Dhcp,
    /// The advertisement of a router.
    Advertised,
    /// The redirect of a router.
    Redirect,
    /// An address of the host: the network of this address is on the link, so it has a route
    /// without a gateway.
    Direct,
}

/// A route in the table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    route: Route,
    origin: RouteOrigin,
}

impl Entry {
    /// Returns the rank of the route. Among routes to the same network, the route with the lowest
    /// rank is used: the lowest metric, and among equal metrics the first [`RouteOrigin`]. Thus a
    /// learned route is never preferred to a configured route of equal metric.
    const fn rank(&self) -> (u32, RouteOrigin, Option<u32>) {
        (self.route.metric, self.origin, self.route.interface)
    }
}

/// The routing table of a host.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The routes by prefix length and network. The routes to one network are in the order of their
    /// rank. Invariant: no list is empty, and no two routes of a list have equal rank.
    routes: BTreeMap<(u8, IpAddr), Vec<Entry>>,
    /// The prefix lengths that occur in IPv4 and in IPv6 routes. A lookup tries only these lengths.
    prefix_lengths: [PrefixLengths; 2],
    generation: u64,
}

/// A set of prefix lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PrefixLengths {
    /// A bit set of the lengths from 1 to 128. Length `n` has the bit `n - 1`.
    bits: u128,
    /// Whether the set contains the prefix length zero: a default route.
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

    /// Removes and returns the longest prefix length.
    fn pop(&mut self) -> Option<u8> {
        if let Some(place) = self.bits.checked_ilog2() {
            self.bits &= !(1 << place);
            #[allow(clippy::cast_possible_truncation, reason = "at most 127")]
            return Some(place as u8 + 1);
        }
        core::mem::take(&mut self.has_default).then_some(0)
    }
}

/// Returns the index of an address's IP version in `prefix_lengths`.
const fn version(address: IpAddr) -> usize {
    address.is_ipv6() as usize
}

/// Returns the key in the routing table of the routes to `destination`.
fn key(destination: IpCidr) -> (u8, IpAddr) {
    (destination.prefix_length(), destination.network())
}

impl Routes {
    /// Adds a route. It replaces a present route if both have equal networks, metrics, origins and
    /// interfaces.
    pub(crate) fn insert(&mut self, origin: RouteOrigin, route: Route) {
        let (prefix_length, network) = key(route.destination);
        let entry = Entry { route, origin };
        let known = self.routes.entry((prefix_length, network)).or_default();
        match known.binary_search_by_key(&entry.rank(), Entry::rank) {
            Ok(place) => known[place] = entry,
            Err(place) => known.insert(place, entry),
        }
        self.prefix_lengths[version(network)].set(prefix_length, true);
        self.generation += 1;
    }

    /// Removes and returns the route to exactly this network that is in use: the route with the
    /// lowest rank.
    pub(crate) fn remove(&mut self, destination: IpCidr) -> Option<Route> {
        let used = *self.routes.get(&key(destination))?.first()?;
        self.retain(key(destination), |entry| entry.rank() != used.rank());
        Some(used.route)
    }

    /// Removes the routes to exactly this network that have this origin and leave over this
    /// interface.
    pub(crate) fn withdraw(&mut self, destination: IpCidr, origin: RouteOrigin, interface: u32) {
        self.retain(key(destination), |entry| {
            entry.origin != origin || entry.route.interface != Some(interface)
        });
    }

    /// Removes all routes over an interface.
    pub(crate) fn remove_interface(&mut self, interface: u32) {
        for key in self.routes.keys().copied().collect::<Vec<_>>() {
            self.retain(key, |entry| entry.route.interface != Some(interface));
        }
    }

    /// Removes the routes to the network `key` for which `is_kept` returns false.
    fn retain(&mut self, key: (u8, IpAddr), is_kept: impl Fn(&Entry) -> bool) {
        let Some(known) = self.routes.get_mut(&key) else { return };
        let before = known.len();
        known.retain(is_kept);
        let left = known.len();
        self.generation += u64::from(left < before);
        if left > 0 {
            return;
        }
        self.routes.remove(&key);
        let (prefix_length, network) = key;
        let is_like = |&(length, other): &(u8, IpAddr)| {
            length == prefix_length && version(other) == version(network)
        };
        if !self.routes.keys().any(is_like) {
            self.prefix_lengths[version(network)].set(prefix_length, false);
        }
    }

    /// Begins a new generation, so that callers repeat their lookups. Needed after a change that is
    /// not in the table but affects its use, such as a change of an interface's addresses.
    pub(crate) const fn invalidate(&mut self) {
        self.generation += 1;
    }

    /// Returns the route to use for `destination`: among the routes with the longest matching
    /// prefix, the route with the lowest rank.
    pub(crate) fn lookup(&self, destination: IpAddr) -> Option<&Route> {
        let mut untried = self.prefix_lengths[version(destination)];
        while let Some(prefix_length) = untried.pop() {
            let network = IpCidr::new(destination, prefix_length)?.network();
            if let Some(known) = self.routes.get(&(prefix_length, network)) {
                return known.first().map(|used| &used.route);
            }
        }
        None
    }

    /// Returns the generation: a number that grows whenever the result of an earlier lookup may
    /// have changed.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        let mut known = [PrefixLengths::default(); 2];
        for (&(prefix_length, network), entries) in &self.routes {
            known[version(network)].set(prefix_length, true);
            assert!(!entries.is_empty(), "no list of routes is empty");
            assert!(
                entries.is_sorted_by(|one, next| one.rank() < next.rank()),
                "routes are ordered by their rank"
            );
        }
        assert_eq!(self.prefix_lengths, known, "the prefix lengths are those of the routes");
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
        for (destination, next_hop) in
            [("0.0.0.0/0", 1), ("192.0.2.0/24", 2), ("192.0.2.128/25", 3)]
        {
            routes.insert(RouteOrigin::Static, via(destination, next_hop));
        }
        assert_eq!(gateway(&routes, [192, 0, 2, 200]), Some(3));
        assert_eq!(gateway(&routes, [192, 0, 2, 100]), Some(2));
        assert_eq!(gateway(&routes, [198, 51, 100, 1]), Some(1));
    }

    #[test]
    fn changes_increase_the_generation_and_removal_uncovers_a_shorter_prefix() {
        let mut routes = Routes::default();
        routes.insert(RouteOrigin::Static, via("0.0.0.0/0", 1));
        routes.insert(RouteOrigin::Static, via("192.0.2.0/24", 2));
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
            routes.insert(RouteOrigin::Static, with(next_hop, metric));
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
        for (destination, next_hop) in
            [("192.0.2.0/24", 1), ("198.51.100.0/24", 2), ("192.0.2.128/25", 3)]
        {
            let before = routes.generation();
            routes.insert(RouteOrigin::Static, via(destination, next_hop));
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
        routes.insert(RouteOrigin::Static, Route::direct("192.0.2.0/24".parse().unwrap()));
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
            routes.insert(RouteOrigin::Static, Route::direct(network.parse().unwrap()));
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

    #[test]
    fn what_the_host_learns_never_replaces_a_configured_route() {
        let mut routes = Routes::default();
        let over = |gateway, interface| Route { interface, ..via("0.0.0.0/0", gateway) };
        routes.insert(RouteOrigin::Advertised, over(4, Some(1)));
        routes.insert(RouteOrigin::Dhcp, over(3, Some(2)));
        routes.insert(RouteOrigin::Dhcp, over(2, Some(1)));
        routes.insert(RouteOrigin::Static, over(1, None));
        routes.insert(RouteOrigin::Dhcp, over(5, Some(1)));
        assert_eq!(gateway(&routes, [192, 0, 2, 9]), Some(1));
        assert!(routes.remove(IpCidr::ALL_IPV4).is_some());
        assert_eq!(gateway(&routes, [192, 0, 2, 9]), Some(5), "the lease was renewed");
        routes.withdraw(IpCidr::ALL_IPV4, RouteOrigin::Dhcp, 1);
        assert_eq!(gateway(&routes, [192, 0, 2, 9]), Some(3));
        let before = routes.generation();
        routes.withdraw(IpCidr::ALL_IPV4, RouteOrigin::Redirect, 2);
        assert_eq!(routes.generation(), before, "there was none");
        routes.remove_interface(2);
        assert_eq!(gateway(&routes, [192, 0, 2, 9]), Some(4));
        routes.remove_interface(1);
        assert_eq!(gateway(&routes, [192, 0, 2, 9]), None);
    }
}
