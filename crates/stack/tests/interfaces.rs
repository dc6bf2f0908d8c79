//! Tests of hosts with several interfaces, which are added and removed at run time.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    AddressState, Budget, Capabilities, ConnectOptions, Error, Event, FIRST_INTERFACE,
    InterfaceConfig, InterfaceLink, ListenHandle, ListenOptions, Medium, Route, Stack, StackConfig,
    TcpHandle, Turn, UdpHandle, UdpOptions,
};
use linerate_tcp::Error as TcpError;
use linerate_testkit::TestLink;
use linerate_units::{Duration, Instant};
use linerate_wire::{EtherType, EthernetFrame, IpCidr, Ipv4Packet, MacAddress, Protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

const SECOND: Duration = Duration::from_secs(1);
const ETHERNET: Capabilities = Capabilities::new(Medium::Ethernet, 1_500);

/// A host, and the links to which its interfaces are attached.
struct Node {
    stack: Stack,
    links: Vec<InterfaceLink<TestLink>>,
}

impl Node {
    fn turn(&mut self, now: Instant) -> Turn {
        let turn = self.stack.turn_on_links(&mut self.links, Budget::default(), now);
        self.stack.check();
        turn.unwrap()
    }

    fn link(&mut self, interface: u32) -> &mut TestLink {
        &mut self.links.iter_mut().find(|known| known.interface == interface).unwrap().link
    }
}

/// An end of a wire: the index of a host, and the number of one of its interfaces.
type Plug = (usize, u32);

/// Hosts, and wires between their interfaces.
struct Network {
    now: Instant,
    nodes: Vec<Node>,
    wires: Vec<[Plug; 2]>,
    /// All frames that were sent, with the interface that sent them.
    seen: Vec<(Plug, Vec<u8>)>,
}

fn mac(last: u8) -> MacAddress {
    MacAddress::new([2, 0, 0, 0, 0, last])
}

fn cidr(text: &str) -> IpCidr {
    text.parse().unwrap()
}

fn end(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn link() -> TestLink {
    TestLink::new(ETHERNET, 256)
}

impl Network {
    fn new() -> Self {
        let now = Instant::ZERO + Duration::from_secs(1_000);
        Self { now, nodes: Vec::new(), wires: Vec::new(), seen: Vec::new() }
    }

    /// Adds a host with one interface, and returns its index.
    fn host(&mut self, last: u8, addresses: &[&str]) -> usize {
        let addresses = addresses.iter().map(|own| cidr(own)).collect();
        let config = StackConfig { addresses, ..StackConfig::unconfigured(mac(last)) };
        let mut stack = Stack::new(config, [last; 32]);
        stack.attach(ETHERNET);
        let first = InterfaceLink { interface: FIRST_INTERFACE, link: link() };
        self.nodes.push(Node { stack, links: vec![first] });
        self.nodes.len() - 1
    }

    /// Adds an interface to a host, and returns its number.
    fn interface(&mut self, node: usize, config: &InterfaceConfig) -> u32 {
        let Node { stack, links } = &mut self.nodes[node];
        let interface = stack.add_interface(self.now, config, ETHERNET).unwrap();
        links.push(InterfaceLink { interface, link: link() });
        interface
    }

    fn remove(&mut self, node: usize, interface: u32) {
        let Node { stack, links } = &mut self.nodes[node];
        stack.remove_interface(self.now, interface).unwrap();
        links.retain(|known| known.interface != interface);
        self.wires.retain(|wire| !wire.contains(&(node, interface)));
    }

    fn stack(&mut self, node: usize) -> &mut Stack {
        &mut self.nodes[node].stack
    }

    /// Runs all hosts for the time `span`, and carries their frames.
    fn run_for(&mut self, span: Duration) {
        let limit = self.now + span;
        for _ in 0..100_000 {
            let turns: Vec<_> = self.nodes.iter_mut().map(|node| node.turn(self.now)).collect();
            let has_carried = self.carry();
            if has_carried || turns.iter().any(|turn| turn.more) {
                continue;
            }
            let next = turns.iter().map(|turn| turn.next).min().unwrap_or(Instant::NEVER);
            if next > limit {
                self.now = limit;
                return;
            }
            self.now = self.now.max(next);
        }
        panic!("the network never comes to rest");
    }

    /// Carries all frames that the hosts have sent. Returns true if there were any.
    fn carry(&mut self) -> bool {
        let mut has_carried = false;
        for wire in self.wires.clone() {
            for (from, to) in [(wire[0], wire[1]), (wire[1], wire[0])] {
                while let Some(frame) = self.nodes[from.0].link(from.1).fetch() {
                    has_carried = true;
                    self.seen.push((from, frame.clone()));
                    self.nodes[to.0].link(to.1).put(self.now, frame);
                }
            }
        }
        has_carried
    }

    fn listen(&mut self, node: usize, local: &str) -> ListenHandle {
        self.stack(node).tcp_listen(end(local), &ListenOptions::default()).unwrap()
    }

    fn connect(&mut self, node: usize, remote: SocketAddr, local: Option<&str>) -> TcpHandle {
        let options = ConnectOptions { local: local.map(end), ..ConnectOptions::default() };
        let now = self.now;
        let client = self.stack(node).tcp_connect(now, remote, &options).unwrap();
        self.run_for(SECOND);
        client
    }

    /// Sends 5,000 bytes on a connection from the end `from`. Returns the number of bytes that the
    /// end `to` has received after a second.
    fn transfer(&mut self, from: (usize, TcpHandle), to: (usize, TcpHandle)) -> usize {
        let now = self.now;
        self.stack(from.0).tcp_write(now, from.1, &[7; 5_000]).unwrap();
        self.run_for(SECOND);
        let (now, mut into) = (self.now, [0; 6_000]);
        self.stack(to.0).tcp_read(now, to.1, &mut into).unwrap()
    }

    fn receive(&mut self, node: usize, socket: UdpHandle) -> Vec<SocketAddr> {
        let stack = self.stack(node);
        std::iter::from_fn(|| stack.udp_receive_from(socket, &mut [0; 9]).ok())
            .map(|(_, from)| from)
            .collect()
    }

    /// Returns the number of IPv4 packets of this protocol that an interface has sent.
    fn sent(&self, from: Plug, protocol: Protocol) -> usize {
        let is_it = |frame: &[u8]| {
            let frame = EthernetFrame::parse(frame).unwrap();
            frame.header.ether_type == EtherType::IPV4
                && Ipv4Packet::parse(frame.payload).unwrap().header.protocol == protocol
        };
        self.seen.iter().filter(|(plug, frame)| *plug == from && is_it(frame)).count()
    }
}

/// Creates a host with two interfaces (index 0), and a second host on each of its two links.
fn star() -> Network {
    let mut network = Network::new();
    let center = network.host(1, &["10.0.1.1/24", "2001:db8:1::1/64"]);
    let addresses = ["10.0.2.1/24", "2001:db8:2::1/64"].map(cidr).to_vec();
    let config = InterfaceConfig { addresses, ..InterfaceConfig::unconfigured(mac(2)) };
    assert_eq!(network.interface(center, &config), 2);
    // Both outer hosts have the same MAC address, and so the same link-local address.
    let left = network.host(9, &["10.0.1.2/24", "2001:db8:1::2/64"]);
    let right = network.host(9, &["10.0.2.2/24", "2001:db8:2::2/64"]);
    network.wires = vec![[(center, 1), (left, 1)], [(center, 2), (right, 1)]];
    for leaf in [left, right] {
        let router: IpAddr = if leaf == left { [10, 0, 1, 1] } else { [10, 0, 2, 1] }.into();
        network.stack(leaf).add_route(Route::default_via(router));
    }
    network
}

const CENTER: usize = 0;
const LEFT: usize = 1;
const RIGHT: usize = 2;
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 9);

fn zoned(zone: u32, port: u16) -> SocketAddr {
    SocketAddrV6::new(LINK_LOCAL, port, 0, zone).into()
}

#[test]
fn each_connection_leaves_over_the_interface_of_its_route() {
    for [left, right] in
        [["10.0.1.2:80", "10.0.2.2:80"], ["[2001:db8:1::2]:80", "[2001:db8:2::2]:80"]]
    {
        let mut network = star();
        for (leaf, to) in [(LEFT, left), (RIGHT, right)] {
            let listener = network.listen(leaf, to);
            let client = network.connect(CENTER, end(to), None);
            let (server, peer) = network.stack(leaf).tcp_accept(listener).unwrap();
            assert_eq!(network.stack(CENTER).tcp_local_addr(client), Ok(peer));
            assert_eq!(network.transfer((CENTER, client), (leaf, server)), 5_000);
            assert_eq!(network.transfer((leaf, server), (CENTER, client)), 5_000);
        }
        assert_eq!(network.stack(CENTER).counters().ip.out_no_routes, 0);
    }
}

#[test]
fn a_listener_at_all_addresses_serves_all_interfaces() {
    let mut network = star();
    let listener = network.listen(CENTER, "[::]:80");
    for (leaf, to) in [(LEFT, "10.0.1.1:80"), (RIGHT, "[2001:db8:2::1]:80")] {
        let client = network.connect(leaf, end(to), None);
        let (server, _) = network.stack(CENTER).tcp_accept(listener).unwrap();
        assert_eq!(network.transfer((CENTER, server), (leaf, client)), 5_000);
        assert_eq!(network.transfer((leaf, client), (CENTER, server)), 5_000);
    }
    // This host follows the weak host model (RFC 1122 §3.3.4.2): it accepts packets for the address
    // of one of its interfaces, even if they arrive on another interface.
    let client = network.connect(RIGHT, end("10.0.1.1:80"), None);
    let (server, _) = network.stack(CENTER).tcp_accept(listener).unwrap();
    assert_eq!(network.transfer((RIGHT, client), (CENTER, server)), 5_000);
    // This does not apply to a link-local address: the host accepts packets for it only on the
    // interface that has the address.
    let own = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 1);
    let now = network.now;
    let to = SocketAddr::new(own.into(), 80);
    let client = network.stack(RIGHT).tcp_connect(now, to, &ConnectOptions::default()).unwrap();
    network.run_for(SECOND);
    assert!(!network.stack(RIGHT).tcp(client).unwrap().state().is_synchronized());
}

#[test]
fn datagrams_of_one_socket_leave_over_different_interfaces() {
    let mut network = star();
    let options = UdpOptions::default();
    let socket = network.stack(CENTER).udp_bind(end("0.0.0.0:7"), &options).unwrap();
    let leaves = [(LEFT, "10.0.1.2:9"), (RIGHT, "10.0.2.2:9")];
    let receivers =
        leaves.map(|(leaf, at)| network.stack(leaf).udp_bind(end(at), &options).unwrap());
    for round in 0..20 {
        let now = network.now;
        for (_, to) in leaves.iter().cycle().skip(round % 2).take(5) {
            network.stack(CENTER).udp_send_to(now, socket, end(to), b"datagram").unwrap();
        }
        network.run_for(SECOND);
    }
    let [left, right] = [(LEFT, receivers[0]), (RIGHT, receivers[1])]
        .map(|(leaf, receiver)| network.receive(leaf, receiver));
    assert_eq!((left.len(), right.len()), (50, 50));
    assert!(left.iter().all(|from| *from == end("10.0.1.1:7")));
    assert!(right.iter().all(|from| *from == end("10.0.2.1:7")));
    let now = network.now;
    network.stack(CENTER).udp_send_to(now, socket, end(leaves[1].1), b"last").unwrap();
    network.stack(CENTER).udp_close(socket).unwrap();
    network.run_for(SECOND);
    assert_eq!(network.receive(RIGHT, receivers[1]).len(), 1, "also after the socket was closed");
}

#[test]
fn the_zone_of_a_link_local_address_selects_the_interface() {
    let mut network = star();
    let now = network.now;
    let options = ConnectOptions::default();
    let refused = |network: &mut Network, zone| {
        network.stack(CENTER).tcp_connect(now, zoned(zone, 80), &options).unwrap_err()
    };
    assert_eq!(refused(&mut network, 0), Error::MissingZone(LINK_LOCAL));
    let unknown = |zone| Error::UnknownZone { address: LINK_LOCAL, zone };
    assert_eq!(refused(&mut network, 3), unknown(3));
    assert_eq!(refused(&mut network, u32::MAX), unknown(u32::MAX));
    for (zone, leaf) in [(2, RIGHT), (1, LEFT)] {
        let listener = network.listen(leaf, "[::]:80");
        let client = network.connect(CENTER, zoned(zone, 80), None);
        let (server, _) = network.stack(leaf).tcp_accept(listener).unwrap();
        assert_eq!(network.stack(CENTER).tcp_peer_addr(client), Ok(zoned(zone, 80)));
        assert_eq!(network.transfer((CENTER, client), (leaf, server)), 5_000);

        let udp = UdpOptions::default();
        let receiver = network.stack(leaf).udp_bind(end("[::]:9"), &udp).unwrap();
        let socket = network.stack(CENTER).udp_bind(end("[::]:0"), &udp).unwrap();
        let now = network.now;
        network.stack(CENTER).udp_connect(now, socket, zoned(zone, 9)).unwrap();
        network.stack(CENTER).udp_send(now, socket, b"datagram").unwrap();
        network.run_for(SECOND);
        let (now, from) = (network.now, network.receive(leaf, receiver));
        network.stack(leaf).udp_send_to(now, receiver, from[0], b"answer").unwrap();
        network.run_for(SECOND);
        assert_eq!(network.receive(CENTER, socket), [zoned(zone, 9)]);
    }
    // The host can connect to its own link-local address.
    let own = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 2);
    let own = SocketAddr::from(SocketAddrV6::new(own, 84, 0, 2));
    let listener = network.stack(CENTER).tcp_listen(own, &ListenOptions::default()).unwrap();
    let client = network.connect(CENTER, own, None);
    let (server, peer) = network.stack(CENTER).tcp_accept(listener).unwrap();
    assert_eq!(network.stack(CENTER).tcp_local_addr(client), Ok(peer));
    assert_eq!(network.transfer((CENTER, client), (CENTER, server)), 5_000);
    let receiver = network.stack(CENTER).udp_bind(own, &UdpOptions::default()).unwrap();
    let now = network.now;
    network.stack(CENTER).udp_send_to(now, receiver, own, b"to itself").unwrap();
    network.run_for(SECOND);
    assert_eq!(network.receive(CENTER, receiver), [own]);
    // A host with one interface accepts the zone 0 for this interface. If an address is not
    // link-local, its zone is ignored.
    let other = SocketAddrV6::new("2001:db8:1::1".parse().unwrap(), 81, 0, 9);
    let now = network.now;
    let listen = |address: SocketAddr| {
        network.stack(LEFT).tcp_listen(address, &ListenOptions::default()).err()
    };
    assert_eq!([zoned(0, 82), zoned(1, 83)].map(listen), [None, None]);
    assert_eq!(network.stack(LEFT).tcp_connect(now, other, &options).err(), None);
}

#[test]
fn echoes_and_errors_take_the_interface_of_their_route() {
    let mut network = star();
    for to in ["10.0.1.2", "10.0.2.2", "2001:db8:2::2"] {
        let (now, to): (_, IpAddr) = (network.now, to.parse().unwrap());
        network.stack(CENTER).echo_send(now, to, 7, 1, b"there?").unwrap();
        network.run_for(SECOND);
        let stack = network.stack(CENTER);
        let mut events = std::iter::from_fn(|| stack.poll_event());
        assert!(events.any(|event| matches!(event, Event::EchoReply(reply) if reply.source == to)));
    }
    assert_eq!(network.sent((CENTER, 1), Protocol::ICMP), 1);
    assert_eq!(network.sent((CENTER, 2), Protocol::ICMP), 1);
}

/// Creates two hosts that are connected by two links. The second host also has an address that
/// belongs to neither link's network.
fn parallel() -> Network {
    let mut network = Network::new();
    for (host, last) in [(1, 1), (3, 2)] {
        let node = network.host(host, &[&format!("10.0.1.{last}/24")]);
        let second = cidr(&format!("10.0.2.{last}/24"));
        network.interface(node, &InterfaceConfig::new(mac(host + 1), second));
    }
    let now = network.now;
    let service = cidr("192.0.2.9/32");
    network.stack(1).add_address(now, service, &Default::default()).unwrap();
    network.wires = vec![[(0, 1), (1, 1)], [(0, 2), (1, 2)]];
    network
}

fn via(last: [u8; 4]) -> Route {
    Route::via(cidr("192.0.2.9/32"), Ipv4Addr::from(last))
}

#[test]
fn a_connection_follows_a_change_of_routes_to_another_interface() {
    let mut network = parallel();
    network.stack(0).add_route(via([10, 0, 1, 2]));
    let listener = network.listen(1, "192.0.2.9:80");
    // The route of the first host uses the first link, but the address of the client belongs to the
    // network of the second link. So the first host sends on the first link, and the second host
    // answers on the second link.
    let client = network.connect(0, end("192.0.2.9:80"), Some("10.0.2.1:0"));
    let (server, _) = network.stack(1).tcp_accept(listener).unwrap();
    assert_eq!(network.transfer((0, client), (1, server)), 5_000);
    assert_eq!(network.sent((1, 1), Protocol::TCP), 0);
    assert_eq!(network.sent((0, 2), Protocol::TCP), 0);
    let before = network.sent((0, 1), Protocol::TCP);
    network.stack(0).remove_route(cidr("192.0.2.9/32"));
    network.stack(0).add_route(via([10, 0, 2, 2]));
    for _ in 0..3 {
        assert_eq!(network.transfer((0, client), (1, server)), 5_000);
    }
    assert_eq!(network.sent((0, 1), Protocol::TCP), before);
    assert!(network.sent((0, 2), Protocol::TCP) >= 12);
}

#[test]
fn a_removed_interface_takes_its_addresses_and_routes_along() {
    let mut network = parallel();
    network.stack(0).add_route(via([10, 0, 1, 2]));
    network.stack(0).add_route(Route { metric: 1, ..via([10, 0, 2, 2]) });
    let listener = network.listen(1, "192.0.2.9:80");
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    for local in ["10.0.1.1:0", "10.0.2.1:0"] {
        clients.push(network.connect(0, end("192.0.2.9:80"), Some(local)));
        servers.push(network.stack(1).tcp_accept(listener).unwrap().0);
    }
    // The interface of the first link is removed while data of a connection waits to be sent on
    // this link. The data must then be sent on the other link.
    let now = network.now;
    network.stack(0).tcp_write(now, clients[1], &[7; 20_000]).unwrap();
    network.remove(0, 1);
    network.stack(0).check();
    let client = clients[0];
    let mut read = [0; 9];
    let lost = network.stack(0).tcp_read(now, client, &mut read);
    assert_eq!(lost, Err(Error::Tcp(TcpError::AddressRemoved)));
    network.stack(0).remove_route(cidr("192.0.2.9/32"));
    network.run_for(Duration::from_secs(10));
    let (now, mut read) = (network.now, vec![0; 30_000]);
    assert_eq!(network.stack(1).tcp_read(now, servers[1], &mut read), Ok(20_000));

    assert_eq!(network.stack(0).interfaces().collect::<Vec<_>>(), [2]);
    assert_eq!(network.stack(0).addresses()[0].cidr, cidr("10.0.2.1/24"));
    assert_eq!(network.stack(0).interface_with(Ipv4Addr::new(10, 0, 2, 1).into()), Some(2));
    assert_eq!(network.stack(0).on(1, |_| ()), Err(Error::UnknownInterface(1)));
    let now = network.now;
    assert_eq!(network.stack(0).remove_interface(now, 2), Err(Error::OnlyInterface));
    assert_eq!(network.stack(0).remove_interface(now, 1), Err(Error::UnknownInterface(1)));
    let unreached = network.stack(0).tcp_connect(now, end("10.0.1.2:80"), &Default::default());
    assert_eq!(unreached, Err(Error::NoRoute(Ipv4Addr::new(10, 0, 1, 2).into())));
    // The number of the removed interface can be used once more. The new interface gets this
    // number, and connections over it work.
    let again = network.interface(0, &InterfaceConfig::new(mac(1), cidr("10.0.1.1/24")));
    assert_eq!(again, 1);
    network.wires.push([(0, 1), (1, 1)]);
    let client = network.connect(0, end("192.0.2.9:80"), Some("10.0.1.1:0"));
    let (server, _) = network.stack(1).tcp_accept(listener).unwrap();
    assert_eq!(network.transfer((0, client), (1, server)), 5_000);
}

#[test]
fn groups_are_joined_on_one_interface() {
    let mut network = star();
    let options = UdpOptions { multicast_hops: 1, ..UdpOptions::default() };
    let group = Ipv4Addr::new(239, 1, 2, 3);
    let to = SocketAddr::new(group.into(), 9);
    let member = network.stack(CENTER).udp_bind(end("0.0.0.0:9"), &options).unwrap();
    let now = network.now;
    let joined = network.stack(CENTER).on(2, |stack| stack.udp_join(now, member, group, None));
    assert_eq!(joined, Ok(Ok(())));
    network.run_for(SECOND);
    assert!(network.sent((CENTER, 2), Protocol::IGMP) > 0);
    assert_eq!(network.sent((CENTER, 1), Protocol::IGMP), 0);
    for leaf in [LEFT, RIGHT] {
        let now = network.now;
        let sender = network.stack(leaf).udp_bind(end("0.0.0.0:9"), &options).unwrap();
        network.stack(leaf).udp_send_to(now, sender, to, b"to all").unwrap();
        network.stack(leaf).udp_join(now, sender, group, None).unwrap();
        network.run_for(SECOND);
        network.receive(leaf, sender);
    }
    assert_eq!(network.receive(CENTER, member), [end("10.0.2.2:9")]);

    // A sender that chooses no interface for multicast packets sends them over the first. It can
    // choose the second, but no interface that does not exist.
    for (chosen, interface) in [(None, 1), (Some(2), 2)] {
        network.stack(CENTER).udp_set_multicast_interface(member, chosen.unwrap_or(0)).unwrap();
        assert_eq!(network.stack(CENTER).udp_multicast_interface(member), Ok(chosen));
        let (now, before) = (network.now, network.sent((CENTER, interface), Protocol::UDP));
        network.stack(CENTER).udp_send_to(now, member, to, b"to all").unwrap();
        network.run_for(SECOND);
        assert_eq!(network.sent((CENTER, interface), Protocol::UDP), before + 1);
    }
    let unknown = network.stack(CENTER).udp_set_multicast_interface(member, 3_u32);
    assert_eq!(unknown, Err(Error::UnknownInterface(3)));
    let leaves = network.sent((CENTER, 2), Protocol::IGMP);
    network.stack(CENTER).udp_close(member).unwrap();
    network.run_for(SECOND);
    assert!(network.sent((CENTER, 2), Protocol::IGMP) > leaves, "the membership has ended");
}

#[test]
fn the_timers_of_all_interfaces_run() {
    let mut network = star();
    let config = InterfaceConfig {
        dad_transmits: 1,
        ..InterfaceConfig::new(mac(3), cidr("2001:db8:3::1/64"))
    };
    assert_eq!(network.interface(CENTER, &config), 3);
    assert!(!network.stack(CENTER).is_addressed(), "the new address is probed");
    let leaf = network.host(4, &["2001:db8:3::1/64", "2001:db8:3::2/64"]);
    network.wires.push([(CENTER, 3), (leaf, 1)]);
    network.run_for(Duration::from_secs(5));
    assert!(network.stack(CENTER).is_addressed());
    let addresses = network.stack(CENTER).on(3, |stack| stack.addresses().to_vec()).unwrap();
    let of = |address: &str| {
        let address: IpAddr = address.parse().unwrap();
        addresses.iter().find(|own| own.cidr.address() == address).unwrap().state
    };
    assert_eq!(of("2001:db8:3::1"), AddressState::Duplicated);
    assert_eq!(of("fe80::ff:fe00:3"), AddressState::Preferred);
}

#[test]
fn the_number_of_interfaces_is_limited() {
    let mut config = StackConfig::new(mac(1), cidr("10.0.0.1/24"));
    config.limits.interfaces = 3;
    let mut stack = Stack::new(config, [1; 32]);
    stack.attach(ETHERNET);
    let now = Instant::ZERO;
    let mut add =
        |last| stack.add_interface(now, &InterfaceConfig::unconfigured(mac(last)), ETHERNET);
    assert_eq!([2, 3, 4].map(&mut add), [Ok(2), Ok(3), Err(Error::TooManyInterfaces { limit: 3 })]);
}

#[test]
fn an_accepted_connection_has_the_mtu_of_the_interface_of_its_answers() {
    let mut network = parallel();
    let narrow = Capabilities::new(Medium::Ethernet, 600);
    let config = InterfaceConfig::new(mac(5), cidr("10.0.3.1/24"));
    let Node { stack, links } = &mut network.nodes[0];
    let interface = stack.add_interface(network.now, &config, narrow).unwrap();
    links.push(InterfaceLink { interface, link: TestLink::new(narrow, 256) });
    let third = InterfaceConfig::new(mac(6), cidr("10.0.3.2/24"));
    assert_eq!(network.interface(1, &third), interface);
    network.wires.push([(0, interface), (1, interface)]);
    // The client's segments arrive on the first link, but the answers leave on the third link. The
    // MTU of the third link (600 bytes) must therefore limit the segments of this connection.
    network.stack(0).add_route(via([10, 0, 3, 2]));
    let listener = network.listen(0, "10.0.1.1:80");
    let client = network.connect(1, end("10.0.1.1:80"), Some("192.0.2.9:0"));
    let (server, _) = network.stack(0).tcp_accept(listener).unwrap();
    assert_eq!(network.transfer((0, server), (1, client)), 5_000);
    assert_eq!(network.transfer((1, client), (0, server)), 5_000);
    assert_eq!(network.sent((0, 1), Protocol::TCP), 0);
    assert!(network.sent((0, interface), Protocol::TCP) > 10, "its segments are small");
}
