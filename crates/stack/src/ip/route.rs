//! The routing table, with longest-prefix match.

use alloc::collections::BTreeMap;
use core::net::Ipv4Addr;
use linerate_wire::Ipv4Cidr;

/// A route to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destinations.
    pub destination: Ipv4Cidr,
    /// The router that forwards the packets; `None` if the destinations are on the link.
    pub gateway: Option<Ipv4Addr>,
    /// The largest window in bytes that connections over this route offer. It protects a machine on
    /// the path with little memory.
    pub window_clamp: Option<u32>,
    /// The size of the largest IP packet in bytes, if it is smaller than the MTU of the link.
    pub mtu: Option<usize>,
}

impl Route {
    /// Creates a route to destinations on the link.
    #[must_use]
    pub const fn direct(destination: Ipv4Cidr) -> Self {
        Self { destination, gateway: None, window_clamp: None, mtu: None }
    }

    /// Creates a route to destinations behind a router.
    #[must_use]
    pub const fn via(destination: Ipv4Cidr, gateway: Ipv4Addr) -> Self {
        Self { gateway: Some(gateway), ..Self::direct(destination) }
    }

    /// Returns the neighbour to which packets for `destination` are sent.
    #[must_use]
    pub fn next_hop(&self, destination: Ipv4Addr) -> Ipv4Addr {
        self.gateway.unwrap_or(destination)
    }
}

/// The routing table of a host.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The routes by prefix length and network.
    routes: BTreeMap<(u8, u32), Route>,
    /// A bit for each prefix length that occurs, so that a lookup tries no others.
    prefix_lengths: u64,
    generation: u64,
}

impl Routes {
    /// Adds a route, which replaces a route to the same destinations.
    pub(crate) fn insert(&mut self, route: Route) {
        let prefix_length = route.destination.prefix_length();
        self.routes.insert((prefix_length, route.destination.network().to_bits()), route);
        self.prefix_lengths |= 1 << prefix_length;
        self.generation += 1;
    }

    /// Removes the route to exactly these destinations.
    pub(crate) fn remove(&mut self, destination: Ipv4Cidr) -> Option<Route> {
        let prefix_length = destination.prefix_length();
        let removed = self.routes.remove(&(prefix_length, destination.network().to_bits()))?;
        if self.routes.range((prefix_length, 0)..=(prefix_length, u32::MAX)).next().is_none() {
            self.prefix_lengths &= !(1 << prefix_length);
        }
        self.generation += 1;
        Some(removed)
    }

    /// Returns the route with the longest prefix that contains `destination`.
    pub(crate) fn lookup(&self, destination: Ipv4Addr) -> Option<&Route> {
        let mut untried = self.prefix_lengths;
        while let Some(longest) = untried.checked_ilog2() {
            untried &= !(1 << longest);
            #[allow(clippy::cast_possible_truncation, reason = "at most 32")]
            let prefix_length = longest as u8;
            let network = Ipv4Cidr::new(destination, prefix_length)?.network().to_bits();
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
        let bits =
            self.routes.keys().fold(0, |bits, &(prefix_length, _)| bits | 1 << prefix_length);
        assert_eq!(self.prefix_lengths, bits, "the prefix lengths are those of the routes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn via(destination: &str, gateway: u8) -> Route {
        Route::via(destination.parse().unwrap(), Ipv4Addr::new(10, 0, 0, gateway))
    }

    fn gateway(routes: &Routes, destination: [u8; 4]) -> Option<u8> {
        routes.check();
        let route = routes.lookup(destination.into())?;
        Some(route.next_hop(destination.into()).octets()[3])
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
        assert!(routes.remove(Ipv4Cidr::ALL).is_some());
        assert_eq!(gateway(&routes, [192, 0, 2, 100]), None);
        assert_eq!(routes.remove(Ipv4Cidr::ALL), None);
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
}
