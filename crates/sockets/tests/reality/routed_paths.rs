//! A path MTU that falls during a transfer behind two routers, over both IP versions: the kernel
//! routes in two networks, and is the peer in a third one. With the reports of the routers
//! (RFC 1191, RFC 8201) and without them (RFC 4821), the transfer continues in smaller segments.

use crate::kernel::{KERNEL, OURS, assert_content, counter};
use crate::pattern;
use crate::transfers::download;
use linerate_link::namespace::{Network, isolated_test, skip_test};
use linerate_link::tap::TapError;
use linerate_link::{KernelInterface, Tap, TapConfig};
use linerate_sockets::{Net, Route, StackConfig, TcpStream};
use linerate_units::Bytes;
use std::net::{self, IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener};
use std::process::Command;
use std::{fs, thread};

const BYTES: u64 = 16 << 20;

/// The path MTU after it has fallen, in bytes. It must be at least 1,280 bytes, the minimum MTU of
/// IPv6.
const NARROW: usize = 1_300;

/// Maximum number of retransmission timeouts until a transfer detects the smaller path MTU. Three
/// consecutive timeouts indicate a black hole and cause a reduction. Two reductions suffice for any
/// path, which makes six timeouts. The limit is twice that number.
const MOST_TIMEOUTS: u64 = 12;

/// The networks of the path: our host's network, the routers' network, and the peer's network.
const NETWORKS: [u8; 3] = [0, 1, 2];

/// Returns the IPv4 and the IPv6 address of a host in one of these networks.
fn addresses(network: u8, host: u8) -> [IpAddr; 2] {
    let (network_ipv6, host_ipv6) = (network.into(), host.into());
    [
        Ipv4Addr::new(10, network, 0, host).into(),
        Ipv6Addr::new(0x2001, 0xdb8, network_ipv6, 0, 0, 0, 0, host_ipv6).into(),
    ]
}

const fn prefix_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 64 }
}

/// A path of our host, two routers and a peer, in this order.
struct RoutedPath {
    net: Net,
    /// The second router. The first one is in the network namespace of the test.
    router: Network,
    peer: Network,
}

impl RoutedPath {
    /// Returns a path with an MTU of 1,500 bytes; `None`, with a message, if this machine has no
    /// TAP devices.
    fn new() -> Option<Self> {
        Self::with_shards(1)
    }

    /// Returns a path with an MTU of 1,500 bytes, on which our host has this number of shards.
    fn with_shards(count: usize) -> Option<Self> {
        let [ours, between, theirs] = NETWORKS;
        let mut queues = open_queues(count)?.into_iter();
        let tap = queues.next().unwrap();
        tap.interface().set_up().unwrap();
        give(tap.interface(), addresses(ours, 1));
        let (router, peer) = (Network::new().unwrap(), Network::new().unwrap());
        connect_by_veth(["first", "second"], &router);
        router.run({
            let id = peer.id();
            move || {
                let (near, far) = KernelInterface::create_veth("third", "fourth").unwrap();
                far.move_to_process(id).unwrap();
                near.set_up().unwrap();
            }
        });
        peer.run(move || {
            let fourth = KernelInterface::named("fourth").unwrap();
            fourth.set_up().unwrap();
            give(&fourth, addresses(theirs, 2));
            route(&fourth, ours, addresses(theirs, 1));
            route(&fourth, between, addresses(theirs, 1));
        });
        let first = KernelInterface::named("first").unwrap();
        give(&first, addresses(between, 1));
        router.run(move || {
            let second = KernelInterface::named("second").unwrap();
            give(&second, addresses(between, 2));
            route(&second, ours, addresses(between, 1));
            give(&KernelInterface::named("third").unwrap(), addresses(theirs, 1));
            forward();
        });
        route(&first, theirs, addresses(between, 2));
        forward();
        let mac = "02:00:00:00:00:02".parse().unwrap();
        let mut config = StackConfig::new(mac, format!("{OURS}/24").parse().unwrap());
        let [_, own_ipv6] = addresses(ours, 2);
        config.addresses.push(format!("{own_ipv6}/64").parse().unwrap());
        config.routes.extend(addresses(ours, 1).map(Route::default_via));
        assert_eq!(addresses(ours, 1)[0], IpAddr::V4(KERNEL));
        let net = Net::builder(tap, config).queues(queues).start().unwrap();
        Some(Self { net, router, peer })
    }

    /// Sets the MTU of an interface of the second router, towards the peer or towards our host.
    fn set_mtu(&self, interface: &'static str, mtu: usize) {
        self.router.run(move || {
            KernelInterface::named(interface).unwrap().set_mtu(Bytes::new(mtu as u64)).unwrap();
        });
    }

    /// Drops the packets that the second router itself sends to us, which are its ICMP reports, but
    /// not the packets that it forwards. Returns false, with a message, if this machine cannot do
    /// that.
    fn drop_reports(&self) -> bool {
        let rule_of = |version: &str, to: &str| {
            let mut ip = Command::new("ip");
            ip.args([version, "rule", "add", "blackhole", "iif", "lo", "to", to]);
            ip.status().is_ok_and(|status| status.success())
        };
        let is_done = self
            .router
            .run(move || rule_of("-4", "10.0.0.0/24") && rule_of("-6", "2001:db8:0::/64"));
        if !is_done {
            skip_test(&"`ip rule` fails: it needs iproute2, and a kernel with several tables");
        }
        is_done
    }

    /// Returns the number of packets of each IP version that the second router has reported as too
    /// big.
    fn reports(&self) -> [u64; 2] {
        self.router.run(|| {
            let snmp = fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
            let snmp_ipv6 = fs::read_to_string("/proc/thread-self/net/snmp6").unwrap();
            let ipv6 = snmp_ipv6.lines().find_map(|line| line.strip_prefix("Icmp6OutPktTooBigs"));
            [counter(&snmp, "Icmp OutDestUnreachs"), ipv6.unwrap().trim().parse().unwrap()]
        })
    }

    /// Connects to the peer over one IP version. The path carries packets of 1,500 bytes at first.
    fn connect(&self, version: usize) -> (TcpStream, net::TcpStream) {
        let address = addresses(NETWORKS[2], 2)[version];
        let listener = self.peer.run(move || TcpListener::bind((address, 0)).unwrap());
        let ours = self.net.connect(listener.local_addr().unwrap()).unwrap();
        let theirs = listener.accept().unwrap().0;
        assert_eq!(ours.tcp_info().unwrap().path_mtu, 1_500);
        (ours, theirs)
    }
}

/// Opens a TAP device with `count` queues, or reports that the test is skipped.
fn open_queues(count: usize) -> Option<Vec<Tap>> {
    match Tap::open_queues(&TapConfig { offloads: false, ..TapConfig::default() }, count) {
        Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
            skip_test(&error);
            None
        }
        opened => Some(opened.unwrap()),
    }
}

/// Creates a veth pair between the network namespace of the test and another one.
fn connect_by_veth([near, far]: [&str; 2], network: &Network) {
    let (near, end) = KernelInterface::create_veth(near, far).unwrap();
    end.move_to_process(network.id()).unwrap();
    near.set_up().unwrap();
    let far = far.to_owned();
    network.run(move || KernelInterface::named(&far).unwrap().set_up().unwrap());
}

fn give(interface: &KernelInterface, addresses: [IpAddr; 2]) {
    for address in addresses {
        interface.add_address(address, prefix_length(address)).unwrap();
    }
}

/// Adds routes of both IP versions to a network.
fn route(interface: &KernelInterface, network: u8, gateways: [IpAddr; 2]) {
    for (destination, gateway) in addresses(network, 0).into_iter().zip(gateways) {
        interface.add_route(destination, prefix_length(destination), Some(gateway)).unwrap();
    }
}

fn forward() {
    for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap();
    }
}

/// Returns the effective MSS for this path MTU: without IP header, TCP header and timestamps.
const fn effective_mss(mtu: usize, version: usize) -> usize {
    mtu - if version == 0 { 20 } else { 40 } - 20 - 12
}

/// Sends data to the peer. The path MTU falls as soon as the first data has arrived. So most of the
/// data is sent over the path with the smaller MTU.
fn upload_through_a_falling_path(path: &RoutedPath, ours: &TcpStream, theirs: &net::TcpStream) {
    thread::scope(|scope| {
        scope.spawn(|| {
            pattern::send(ours, BYTES);
            ours.shutdown(Shutdown::Write).unwrap();
        });
        theirs.peek(&mut [0; 1]).unwrap();
        path.set_mtu("third", NARROW);
        pattern::receive(theirs, BYTES);
    });
}

#[test]
fn a_report_of_the_second_router_reduces_the_segment_size() {
    isolated_test(|| {
        let Some(path) = RoutedPath::new() else { return };
        for version in [0, 1] {
            path.set_mtu("third", 1_500);
            let (ours, theirs) = path.connect(version);
            upload_through_a_falling_path(&path, &ours, &theirs);
            let (information, counted) = (ours.tcp_info().unwrap(), ours.statistics().unwrap());
            assert_eq!(information.effective_mss as usize, effective_mss(NARROW, version));
            assert!(counted.reports_applied > 0 && counted.black_holes == 0, "{counted:?}");
            assert!(path.reports()[version] > 0);
        }
        assert_content();
    });
}

#[test]
fn a_fall_without_a_report_is_found_within_a_few_timeouts() {
    isolated_test(|| {
        let Some(path) = RoutedPath::new() else { return };
        if !path.drop_reports() {
            return;
        }
        for version in [0, 1] {
            path.set_mtu("third", 1_500);
            let (ours, theirs) = path.connect(version);
            upload_through_a_falling_path(&path, &ours, &theirs);
            let (information, counted) = (ours.tcp_info().unwrap(), ours.statistics().unwrap());
            assert!(information.path_mtu as usize <= NARROW, "{information:?}");
            assert_eq!(counted.reports_applied, 0);
            assert!(counted.black_holes > 0, "{counted:?}");
            assert!(counted.retransmission_timeouts <= MOST_TIMEOUTS, "{counted:?}");
        }
        assert_content();
    });
}

#[test]
fn we_receive_all_data_from_a_sender_whose_path_falls() {
    isolated_test(|| {
        let Some(path) = RoutedPath::new() else { return };
        for version in [0, 1] {
            path.set_mtu("second", 1_500);
            let (ours, theirs) = path.connect(version);
            thread::scope(|scope| {
                scope.spawn(|| {
                    pattern::send(&theirs, BYTES);
                    theirs.shutdown(Shutdown::Write).unwrap();
                });
                ours.peek(&mut [0; 1]).unwrap();
                path.set_mtu("second", NARROW);
                pattern::receive(&ours, BYTES);
            });
            assert!(path.reports()[version] > 0, "the second router has reported the fall");
        }
        assert_content();
    });
}

/// The sender does not search for the path MTU, so the second router fragments its segments. The
/// first shard reassembles the fragments of all connections, and must hand each segment over to the
/// shard of its connection.
#[test]
fn segments_that_a_router_fragments_reach_the_shards_of_their_connections() {
    const SHARDS: usize = 3;
    const EACH: u64 = 256 << 10;
    isolated_test(|| {
        let Some(path) = RoutedPath::with_shards(SHARDS) else { return };
        path.peer.run(|| fs::write("/proc/sys/net/ipv4/ip_no_pmtu_disc", "1").unwrap());
        path.set_mtu("second", NARROW);
        for _ in 0..2 * SHARDS {
            let (ours, theirs) = path.connect(0);
            download(&ours, &theirs, EACH);
        }
        let counted = path.net.counters().unwrap();
        assert!(counted.ip.reassembly_ok > 0, "{:?}", counted.ip);
        let handed_over: u64 = path.net.handovers().iter().map(|shard| shard.given).sum();
        assert!(handed_over > 0);
        assert_eq!((counted.tcp.in_errors, counted.tcp.out_resets), (0, 0));
    });
}
