//! The network topology: the networks into which bridges join media, the addresses of hosts and
//! routers over IPv4 or IPv6, and the routes between networks. Scenarios with contradictions are
//! refused here; the error names the parts that contradict each other.

use super::family::Family;
use super::hosts::HostPlan;
use super::media::MediumPlan;
use super::relays::{RelayKind, RelayPlan};
use crate::parameter::ParameterError;
use crate::relay::{NETWORK_BITS, NETWORK_BITS_IPV6, NetworkNumber, NetworkRoute, network_of};
use linerate_wire::IpCidr;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Upper limit of the number of networks, because an IPv4 address has only its second byte for the
/// number of the network.
const MOST_NETWORKS: usize = 250;

/// The networks, addresses and routers of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    /// The number of the network to which each medium belongs.
    networks: Vec<usize>,
    /// IP address of each NIC, indexed by the number in its MAC address. NICs of hosts come first,
    /// then those of routers.
    addresses: Vec<IpAddr>,
    family: Family,
    /// Prefix length of every network.
    prefix: u8,
    /// The NICs of each router.
    routers: Vec<Vec<RouterNic>>,
    /// Number of routers on the shortest path between two networks; `None` if there is no path. The
    /// first index is the destination network, the second the source network.
    distances: Vec<Vec<Option<usize>>>,
}

#[derive(Clone, Copy, Debug)]
struct RouterNic {
    network: usize,
    mac: usize,
}

/// A node of the graph that media and relays form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Medium(usize),
    Relay(usize),
}

impl Topology {
    pub(super) fn new(
        family: Family,
        media: &[MediumPlan],
        hosts: &[HostPlan],
        relays: &[RelayPlan],
    ) -> Result<Self, ParameterError> {
        refuse_one_name_twice(hosts, relays)?;
        refuse_loops(media, relays)?;
        let networks = networks(media.len(), relays);
        let count = networks.iter().max().map_or(0, |most| most + 1);
        if count > MOST_NETWORKS {
            let what = format!(
                "{count} networks are too many: join some by bridges, up to {MOST_NETWORKS}"
            );
            return Err(ParameterError::Topology(what));
        }
        let routers = routers(hosts.len(), relays, &networks)?;
        let interfaces = hosts.len() + routers.iter().map(Vec::len).sum::<usize>();
        let distances = (0..count).map(|to| distances(to, count, &routers)).collect();
        let prefix = match (family, count, interfaces) {
            (Family::Ipv6, _, _) => NETWORK_BITS_IPV6,
            (Family::Ipv4, 2.., _) => NETWORK_BITS,
            (Family::Ipv4, _, ..250) => 24,
            (Family::Ipv4, _, _) => 8,
        };
        let addresses = Vec::new();
        let mut topology = Self { networks, addresses, family, prefix, routers, distances };
        topology.addresses = topology.choose_addresses(hosts, relays)?;
        Ok(topology)
    }

    /// Returns the interfaces in the order of the numbers in their MAC addresses. Each has its
    /// name, its network, and the IP address that the scenario requests for it.
    fn interfaces<'a>(
        &self,
        hosts: &'a [HostPlan],
        relays: &'a [RelayPlan],
    ) -> Vec<(String, usize, Option<IpAddr>)> {
        let hosts =
            hosts.iter().map(|host| (host.name.clone(), host.attachment.medium, host.address));
        let routers = relays.iter().filter(|relay| relay.kind == RelayKind::Router);
        let nics = routers.flat_map(|router| {
            router.nics.iter().map(|nic| {
                (
                    format!("the NIC {} of {}", nic.name, router.name),
                    nic.attachment.medium,
                    nic.address,
                )
            })
        });
        hosts
            .chain(nics)
            .map(|(name, medium, requested)| (name, self.networks[medium], requested))
            .collect()
    }

    fn choose_addresses(
        &self,
        hosts: &[HostPlan],
        relays: &[RelayPlan],
    ) -> Result<Vec<IpAddr>, ParameterError> {
        let interfaces = self.interfaces(hosts, relays);
        let mut taken = BTreeMap::<IpAddr, &str>::new();
        let mut addresses = Vec::with_capacity(interfaces.len());
        for (number, (name, network, requested)) in interfaces.iter().enumerate() {
            let default = default_address(self.family, *network, number);
            let address = requested.unwrap_or(default);
            let home = self.within(default);
            if !home.contains(address) {
                return Err(ParameterError::Topology(format!(
                    "{name} cannot have the address {address}: its network is {}/{}",
                    home.network(),
                    self.prefix
                )));
            }
            if let Some(other) = taken.insert(address, name) {
                return Err(ParameterError::Topology(format!(
                    "{other} and {name} have one address, {address}: give one of them another"
                )));
            }
            addresses.push(address);
        }
        Ok(addresses)
    }

    /// Returns the IP address of the NIC with this MAC address number.
    pub(super) fn address(&self, mac: usize) -> IpAddr {
        self.addresses[mac]
    }

    /// Returns the IP address of the NIC with this MAC address number, with its prefix length.
    pub(super) fn cidr(&self, mac: usize) -> IpCidr {
        self.within(self.address(mac))
    }

    /// Returns an address with the prefix length of its network.
    fn within(&self, address: IpAddr) -> IpCidr {
        IpCidr::new(address, self.prefix).unwrap_or_else(|| IpCidr::single(address))
    }

    /// Returns the MAC address number of each IP address.
    pub(super) fn macs_by_address(&self) -> BTreeMap<IpAddr, usize> {
        self.addresses.iter().enumerate().map(|(mac, &address)| (address, mac)).collect()
    }

    /// Returns the MAC address number of NIC `nic` of a router.
    pub(super) fn mac(&self, router: usize, nic: usize) -> usize {
        self.routers[router][nic].mac
    }

    /// Returns whether two media belong to the same network, because bridges connect them.
    pub(super) fn is_one_network(&self, one: usize, other: usize) -> bool {
        self.networks[one] == self.networks[other]
    }

    /// Returns whether packets from one medium can reach another.
    pub(super) fn reaches(&self, from: usize, to: usize) -> bool {
        self.distances[self.networks[to]][self.networks[from]].is_some()
    }

    /// Returns the routes of a host on a medium: for each other network that it can reach, the
    /// prefix of the network and the gateway.
    pub(super) fn routes(&self, medium: usize) -> impl Iterator<Item = (IpCidr, IpAddr)> {
        let here = self.networks[medium];
        let others = (0..self.distances.len()).filter(move |&to| to != here);
        others.filter_map(move |to| Some((self.network(to), self.gateway(here, to)?)))
    }

    fn network(&self, number: usize) -> IpCidr {
        let first = default_address(self.family, number, 0);
        self.within(self.within(first).network())
    }

    /// Returns the gateway from network `from` to network `to`: the address, in network `from`, of
    /// the first router on the shortest path. Returns `None` if there is no path or the networks
    /// are equal.
    fn gateway(&self, from: usize, to: usize) -> Option<IpAddr> {
        let left = self.distances[to][from]?.checked_sub(1)?;
        let leads = |router: &&Vec<RouterNic>| {
            let on_it = |network| router.iter().any(move |nic| nic.network == network);
            let nearer = router.iter().any(|nic| self.distances[to][nic.network] == Some(left));
            on_it(from) && nearer
        };
        let router = self.routers.iter().find(leads)?;
        let nic = router.iter().find(|nic| nic.network == from)?;
        Some(self.addresses[nic.mac])
    }

    /// Returns the routes of a router to all networks.
    pub(super) fn routes_of_router(&self, router: usize) -> BTreeMap<NetworkNumber, NetworkRoute> {
        let routes = (0..self.distances.len()).filter_map(|to| {
            let nics = (0..).zip(&self.routers[router]);
            let reach = nics
                .filter_map(|(number, nic)| Some((self.distances[to][nic.network]?, number, nic)));
            let (distance, nic, nearest) =
                reach.min_by_key(|&(distance, number, _)| (distance, number))?;
            let gateway =
                if distance == 0 { None } else { Some(self.gateway(nearest.network, to)?) };
            let network = network_of(default_address(self.family, to, 0));
            Some((network, NetworkRoute { nic, gateway }))
        });
        routes.collect()
    }

    /// Returns the media on the shortest path between two media, both of them included.
    pub(super) fn path(&self, from: usize, to: usize, relays: &[RelayPlan]) -> Vec<usize> {
        let graph: Graph = relays.iter().enumerate().flat_map(edges_of).collect();
        let path = graph.walk(Node::Medium(from), Node::Medium(to)).unwrap_or_default();
        path.into_iter().filter_map(Node::medium).collect()
    }
}

impl Node {
    const fn medium(self) -> Option<usize> {
        match self {
            Self::Medium(number) => Some(number),
            Self::Relay(_) => None,
        }
    }
}

/// Returns the default address of a NIC: a private address (RFC 1918, RFC 4193) that contains the
/// number of its network and the number in its MAC address.
fn default_address(family: Family, network: usize, mac: usize) -> IpAddr {
    let [.., second] = network.to_be_bytes();
    let [.., high, low] = (mac + 1).to_be_bytes();
    match family {
        Family::Ipv4 => Ipv4Addr::new(10, second, high, low).into(),
        Family::Ipv6 => {
            let suffix = u16::from_be_bytes([high, low]);
            Ipv6Addr::new(0xfd00, 0, 0, second.into(), 0, 0, 0, suffix).into()
        }
    }
}

fn refuse_one_name_twice(hosts: &[HostPlan], relays: &[RelayPlan]) -> Result<(), ParameterError> {
    let mut names = BTreeSet::new();
    let all = hosts.iter().map(|host| &host.name).chain(relays.iter().map(|relay| &relay.name));
    for name in all {
        if !names.insert(name) {
            let what = format!("two machines are called {name}: give one of them another name");
            return Err(ParameterError::Topology(what));
        }
    }
    Ok(())
}

/// Returns an edge for each NIC of a relay, between the relay and the NIC's medium.
fn edges_of((number, relay): (usize, &RelayPlan)) -> impl Iterator<Item = (Node, Node)> {
    relay.nics.iter().map(move |nic| (Node::Relay(number), Node::Medium(nic.attachment.medium)))
}

/// The graph whose nodes are media and relays, and whose edges are NICs of relays.
#[derive(Debug, Default)]
struct Graph {
    neighbours: BTreeMap<Node, Vec<Node>>,
}

impl Graph {
    /// Adds an edge between two nodes.
    fn join(&mut self, (one, other): (Node, Node)) {
        self.neighbours.entry(one).or_default().push(other);
        self.neighbours.entry(other).or_default().push(one);
    }

    /// Returns all nodes that can be reached from `from`, the nearest first. Each comes with the
    /// node before it on the shortest path.
    fn reach(&self, from: Node) -> Vec<(Node, Node)> {
        let mut seen = BTreeSet::from([from]);
        let mut reached = vec![(from, from)];
        let mut next = 0;
        while let Some(&(node, _)) = reached.get(next) {
            next += 1;
            let neighbours = self.neighbours.get(&node).into_iter().flatten();
            reached.extend(
                neighbours.filter(|&&other| seen.insert(other)).map(|&other| (other, node)),
            );
        }
        reached
    }

    /// Returns the nodes on the shortest path between two nodes, both of them included, or `None`
    /// if there is no path.
    fn walk(&self, from: Node, to: Node) -> Option<Vec<Node>> {
        let before: BTreeMap<Node, Node> = self.reach(from).into_iter().collect();
        let mut path = vec![to];
        while let Some(&last) = path.last().filter(|&&last| last != from) {
            path.push(*before.get(&last)?);
        }
        path.reverse();
        Some(path)
    }
}

impl FromIterator<(Node, Node)> for Graph {
    fn from_iter<I: IntoIterator<Item = (Node, Node)>>(pairs: I) -> Self {
        let mut graph = Self::default();
        pairs.into_iter().for_each(|pair| graph.join(pair));
        graph
    }
}

/// Refuses loops of bridges, in which a broadcast would circulate for ever.
fn refuse_loops(media: &[MediumPlan], relays: &[RelayPlan]) -> Result<(), ParameterError> {
    let bridges = relays.iter().enumerate().filter(|(_, relay)| relay.kind == RelayKind::Bridge);
    let mut graph = Graph::default();
    for (bridge, medium) in bridges.flat_map(edges_of) {
        if let Some(cycle) = graph.walk(bridge, medium) {
            let names = cycle.iter().map(|node| match *node {
                Node::Medium(number) => media[number].name.as_str(),
                Node::Relay(number) => relays[number].name.as_str(),
            });
            return Err(ParameterError::Topology(format!(
                "{} are a loop, in which a broadcast would circulate for ever: remove one of the \
                bridges, or make it a router",
                names.collect::<Vec<_>>().join(", ")
            )));
        }
        graph.join((bridge, medium));
    }
    Ok(())
}

/// Returns the number of the network to which each medium belongs. Media that bridges connect
/// belong to one network. Networks are numbered in the order in which their first media appear.
fn networks(media: usize, relays: &[RelayPlan]) -> Vec<usize> {
    let bridges = relays.iter().enumerate().filter(|(_, relay)| relay.kind == RelayKind::Bridge);
    let graph: Graph = bridges.flat_map(edges_of).collect();
    let mut networks = vec![None; media];
    let mut count = 0;
    for medium in 0..media {
        if networks[medium].is_some() {
            continue;
        }
        for joined in
            graph.reach(Node::Medium(medium)).into_iter().filter_map(|(node, _)| node.medium())
        {
            networks[joined] = Some(count);
        }
        count += 1;
    }
    networks.into_iter().flatten().collect()
}

fn routers(
    hosts: usize,
    relays: &[RelayPlan],
    networks: &[usize],
) -> Result<Vec<Vec<RouterNic>>, ParameterError> {
    let mut mac = hosts;
    let mut routers = Vec::new();
    for relay in relays.iter().filter(|relay| relay.kind == RelayKind::Router) {
        let mut nics = Vec::<RouterNic>::new();
        for nic in &relay.nics {
            let network = networks[nic.attachment.medium];
            if let Some(other) = nics.iter().position(|other| other.network == network) {
                return Err(ParameterError::Topology(format!(
                    "the NICs {} and {} of {} are on one network: a router joins different ones",
                    relay.nics[other].name, nic.name, relay.name
                )));
            }
            nics.push(RouterNic { network, mac });
            mac += 1;
        }
        routers.push(nics);
    }
    Ok(routers)
}

/// Returns the number of routers on the shortest path from each network to the network `to`; `None`
/// if there is no path.
fn distances(to: usize, count: usize, routers: &[Vec<RouterNic>]) -> Vec<Option<usize>> {
    let mut distances = vec![None; count];
    distances[to] = Some(0);
    let mut reached = vec![to];
    while !reached.is_empty() {
        let joins =
            |router: &&Vec<RouterNic>| router.iter().any(|nic| reached.contains(&nic.network));
        let next = distances[reached[0]].map(|distance| distance + 1);
        let beyond: Vec<usize> =
            routers.iter().filter(joins).flatten().map(|nic| nic.network).collect();
        reached.clear();
        for network in beyond {
            if distances[network].is_none() {
                distances[network] = next;
                reached.push(network);
            }
        }
    }
    distances
}
