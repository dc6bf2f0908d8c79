//! Who reaches whom: which media are one network because bridges join them, which addresses there are, and which way
//! leads from network to network. What cannot work is refused here, by the names of the parts.

use super::blueprint::HostPlan;
use super::media::MediumPlan;
use super::relays::{RelayKind, RelayPlan};
use crate::parameter::ParameterError;
use crate::relay::{NETWORK_BITS, Way, network_of};
use linerate_wire::Ipv4Cidr;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Networks are numbered by the second byte of their addresses.
const MOST_NETWORKS: usize = 250;

/// Who reaches whom.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    /// The network of each medium.
    networks: Vec<usize>,
    /// The addresses of all stations: first the hosts', then those of the routers' cards.
    addresses: Vec<Ipv4Addr>,
    /// Bits that the addresses of a network have in common.
    prefix: u8,
    /// The cards of each router.
    routers: Vec<Vec<RouterCard>>,
    /// By where to, and where from: how many routers are between two networks.
    distances: Vec<Vec<Option<usize>>>,
}

#[derive(Clone, Copy, Debug)]
struct RouterCard {
    network: usize,
    station: usize,
}

/// A part that a frame passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Medium(usize),
    Relay(usize),
}

impl Topology {
    pub(super) fn new(
        media: &[MediumPlan],
        hosts: &[HostPlan],
        relays: &[RelayPlan],
    ) -> Result<Self, ParameterError> {
        refuse_one_name_twice(hosts, relays)?;
        refuse_rings(media, relays)?;
        let networks = networks(media.len(), relays);
        let count = networks.iter().max().map_or(0, |most| most + 1);
        if count > MOST_NETWORKS {
            let what = format!(
                "{count} networks are too many: join some by bridges, up to {MOST_NETWORKS}"
            );
            return Err(ParameterError::Topology(what));
        }
        let routers = routers(hosts.len(), relays, &networks)?;
        let stations = hosts.len() + routers.iter().map(Vec::len).sum::<usize>();
        let distances = (0..count).map(|to| distances(to, count, &routers)).collect();
        let prefix = match (count, stations) {
            (2.., _) => NETWORK_BITS,
            (_, ..250) => 24,
            (_, _) => 8,
        };
        let mut topology = Self { networks, addresses: Vec::new(), prefix, routers, distances };
        topology.addresses = topology.choose_addresses(hosts, relays)?;
        Ok(topology)
    }

    /// Every station with its name, its network, and the address that it wants.
    fn stations<'a>(
        &self,
        hosts: &'a [HostPlan],
        relays: &'a [RelayPlan],
    ) -> Vec<(String, usize, Option<Ipv4Addr>)> {
        let hosts = hosts.iter().map(|host| (host.name.clone(), host.seat.medium, host.address));
        let routers = relays.iter().filter(|relay| relay.kind == RelayKind::Router);
        let cards = routers.flat_map(|router| {
            router.cards.iter().map(|card| {
                (
                    format!("the card {} of {}", card.name, router.name),
                    card.seat.medium,
                    card.address,
                )
            })
        });
        hosts.chain(cards).map(|(name, medium, wish)| (name, self.networks[medium], wish)).collect()
    }

    fn choose_addresses(
        &self,
        hosts: &[HostPlan],
        relays: &[RelayPlan],
    ) -> Result<Vec<Ipv4Addr>, ParameterError> {
        let stations = self.stations(hosts, relays);
        let mut taken = BTreeMap::<Ipv4Addr, &str>::new();
        let mut addresses = Vec::with_capacity(stations.len());
        for (number, (name, network, wish)) in stations.iter().enumerate() {
            let address = wish.unwrap_or_else(|| usual_address(*network, number));
            let home = Ipv4Cidr::new(usual_address(*network, number), self.prefix)
                .unwrap_or(Ipv4Cidr::ALL);
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

    /// The address of a station.
    pub(super) fn address(&self, station: usize) -> Ipv4Addr {
        self.addresses[station]
    }

    /// The same, with its network.
    pub(super) fn cidr(&self, station: usize) -> Ipv4Cidr {
        let address = self.address(station);
        Ipv4Cidr::new(address, self.prefix).unwrap_or_else(|| Ipv4Cidr::single(address))
    }

    /// All addresses, and whose they are.
    pub(super) fn neighbours(&self) -> BTreeMap<Ipv4Addr, usize> {
        self.addresses.iter().enumerate().map(|(station, &address)| (address, station)).collect()
    }

    /// The station of a router's card.
    pub(super) fn station(&self, router: usize, card: usize) -> usize {
        self.routers[router][card].station
    }

    /// Are two media one network?
    pub(super) fn is_one_network(&self, one: usize, other: usize) -> bool {
        self.networks[one] == self.networks[other]
    }

    /// Is there a way from one medium to another?
    pub(super) fn reaches(&self, from: usize, to: usize) -> bool {
        self.distances[self.networks[to]][self.networks[from]].is_some()
    }

    /// Whom a station of a medium gives its packets for each of the other networks.
    pub(super) fn routes(&self, medium: usize) -> impl Iterator<Item = (Ipv4Cidr, Ipv4Addr)> {
        let here = self.networks[medium];
        let others = (0..self.distances.len()).filter(move |&to| to != here);
        others.filter_map(move |to| Some((self.network(to)?, self.gateway(here, to)?)))
    }

    fn network(&self, number: usize) -> Option<Ipv4Cidr> {
        Ipv4Cidr::new(usual_address(number, 0), self.prefix)
            .and_then(|cidr| Ipv4Cidr::new(cidr.network(), self.prefix))
    }

    /// The first router from one network towards another: its address on the one.
    fn gateway(&self, from: usize, to: usize) -> Option<Ipv4Addr> {
        let left = self.distances[to][from]?.checked_sub(1)?;
        let leads = |router: &&Vec<RouterCard>| {
            let on_it = |network| router.iter().any(move |card| card.network == network);
            let nearer = router.iter().any(|card| self.distances[to][card.network] == Some(left));
            on_it(from) && nearer
        };
        let router = self.routers.iter().find(leads)?;
        let card = router.iter().find(|card| card.network == from)?;
        Some(self.addresses[card.station])
    }

    /// How a router gets to each network.
    pub(super) fn ways(&self, router: usize) -> BTreeMap<u32, Way> {
        let ways = (0..self.distances.len()).filter_map(|to| {
            let cards = (0..).zip(&self.routers[router]);
            let reach = cards.filter_map(|(number, card)| {
                Some((self.distances[to][card.network]?, number, card))
            });
            let (distance, card, nearest) =
                reach.min_by_key(|&(distance, number, _)| (distance, number))?;
            let gateway =
                if distance == 0 { None } else { Some(self.gateway(nearest.network, to)?) };
            Some((network_of(usual_address(to, 0)), Way { card, gateway }))
        });
        ways.collect()
    }

    /// The media between two, both ends included; bridges and routers are passed without preference.
    pub(super) fn path(&self, from: usize, to: usize, relays: &[RelayPlan]) -> Vec<usize> {
        let map: Map = relays.iter().enumerate().flat_map(edges_of).collect();
        let path = map.walk(Part::Medium(from), Part::Medium(to)).unwrap_or_default();
        path.into_iter().filter_map(Part::medium).collect()
    }
}

impl Part {
    const fn medium(self) -> Option<usize> {
        match self {
            Self::Medium(number) => Some(number),
            Self::Relay(_) => None,
        }
    }
}

/// The address of a station, if nobody says another: its number, in the network with this number.
fn usual_address(network: usize, station: usize) -> Ipv4Addr {
    let [.., second] = network.to_be_bytes();
    let [.., high, low] = (station + 1).to_be_bytes();
    Ipv4Addr::new(10, second, high, low)
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

/// The cards of a machine as pairs of it and a medium.
fn edges_of((number, relay): (usize, &RelayPlan)) -> impl Iterator<Item = (Part, Part)> {
    relay.cards.iter().map(move |card| (Part::Relay(number), Part::Medium(card.seat.medium)))
}

/// Which part is beside which.
#[derive(Debug, Default)]
struct Map {
    beside: BTreeMap<Part, Vec<Part>>,
}

impl Map {
    /// Puts one part beside another.
    fn join(&mut self, (one, other): (Part, Part)) {
        self.beside.entry(one).or_default().push(other);
        self.beside.entry(other).or_default().push(one);
    }

    /// All parts that can be reached, the nearest first, each with the one before it: a way back from each.
    fn reach(&self, from: Part) -> Vec<(Part, Part)> {
        let mut seen = BTreeSet::from([from]);
        let mut reached = vec![(from, from)];
        let mut next = 0;
        while let Some(&(part, _)) = reached.get(next) {
            next += 1;
            let beside = self.beside.get(&part).into_iter().flatten();
            reached.extend(beside.filter(|&&other| seen.insert(other)).map(|&other| (other, part)));
        }
        reached
    }

    /// The shortest way from part to part, both ends included.
    fn walk(&self, from: Part, to: Part) -> Option<Vec<Part>> {
        let before: BTreeMap<Part, Part> = self.reach(from).into_iter().collect();
        let mut way = vec![to];
        while let Some(&last) = way.last().filter(|&&last| last != from) {
            way.push(*before.get(&last)?);
        }
        way.reverse();
        Some(way)
    }
}

impl FromIterator<(Part, Part)> for Map {
    fn from_iter<I: IntoIterator<Item = (Part, Part)>>(pairs: I) -> Self {
        let mut map = Self::default();
        pairs.into_iter().for_each(|pair| map.join(pair));
        map
    }
}

/// A frame to everybody would go round a ring of bridges for ever.
fn refuse_rings(media: &[MediumPlan], relays: &[RelayPlan]) -> Result<(), ParameterError> {
    let bridges = relays.iter().enumerate().filter(|(_, relay)| relay.kind == RelayKind::Bridge);
    let mut map = Map::default();
    for (bridge, medium) in bridges.flat_map(edges_of) {
        if let Some(ring) = map.walk(bridge, medium) {
            let names = ring.iter().map(|part| match *part {
                Part::Medium(number) => media[number].name.as_str(),
                Part::Relay(number) => relays[number].name.as_str(),
            });
            return Err(ParameterError::Topology(format!(
                "{} are a ring, in which a frame to everybody would go round for ever: take one of the bridges out of \
                 it, or make it a router",
                names.collect::<Vec<_>>().join(", ")
            )));
        }
        map.join((bridge, medium));
    }
    Ok(())
}

/// The network of each medium: bridged media are one, and have the number of the first.
fn networks(media: usize, relays: &[RelayPlan]) -> Vec<usize> {
    let bridges = relays.iter().enumerate().filter(|(_, relay)| relay.kind == RelayKind::Bridge);
    let map: Map = bridges.flat_map(edges_of).collect();
    let mut networks = vec![None; media];
    let mut count = 0;
    for medium in 0..media {
        if networks[medium].is_some() {
            continue;
        }
        for joined in
            map.reach(Part::Medium(medium)).into_iter().filter_map(|(part, _)| part.medium())
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
) -> Result<Vec<Vec<RouterCard>>, ParameterError> {
    let mut station = hosts;
    let mut routers = Vec::new();
    for relay in relays.iter().filter(|relay| relay.kind == RelayKind::Router) {
        let mut cards = Vec::<RouterCard>::new();
        for card in &relay.cards {
            let network = networks[card.seat.medium];
            if let Some(other) = cards.iter().position(|other| other.network == network) {
                return Err(ParameterError::Topology(format!(
                    "the cards {} and {} of {} are on one network: a router joins different ones",
                    relay.cards[other].name, card.name, relay.name
                )));
            }
            cards.push(RouterCard { network, station });
            station += 1;
        }
        routers.push(cards);
    }
    Ok(routers)
}

/// How many routers are between each network and this one.
fn distances(to: usize, count: usize, routers: &[Vec<RouterCard>]) -> Vec<Option<usize>> {
    let mut distances = vec![None; count];
    distances[to] = Some(0);
    let mut reached = vec![to];
    while !reached.is_empty() {
        let joins =
            |router: &&Vec<RouterCard>| router.iter().any(|card| reached.contains(&card.network));
        let next = distances[reached[0]].map(|distance| distance + 1);
        let beyond: Vec<usize> =
            routers.iter().filter(joins).flatten().map(|card| card.network).collect();
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
