//! A path MTU that falls during a transfer. The path has two routers, which are the kernel in two
//! network namespaces. The peer is the kernel in a third one. The transfer must continue with
//! smaller segments over both IP versions, whether the routers report the MTU (RFC 1191, RFC 8201)
//! or not (RFC 4821).

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

/// The path MTU in bytes after it has fallen. The minimum MTU of IPv6 is 1,280 bytes, so this is
/// not smaller.
const NARROW: usize = 1_300;

/// Maximum number of retransmission timeouts in a transfer whose path MTU falls without a report.
/// Three consecutive timeouts indicate a black hole, and our host then reduces its packet size. Two
/// reductions suffice for any path, so six timeouts should be enough. The limit is twice that
/// number, to leave room for chance.
const MOST_TIMEOUTS: u64 = 12;

/// The numbers of the networks on the path, which are part of their addresses. Network 0 has our
/// host and the first router, network 1 both routers, and network 2 the second router and the peer.
const NETWORKS: [u8; 3] = [0, 1, 2];

/// Returns the IPv4 and the IPv6 address of the host with the number `host` in one of these
/// networks.
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
    /// Creates a path with an MTU of 1,500 bytes. Returns `None`, with a message, if this machine
    /// has no TAP devices.
    fn new() -> Option<Self> {
        Self::with_shards(1)
    }

    /// Creates a path like [`RoutedPath::new`]. Our host has `count` shards.
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

    /// Sets the MTU of an interface of the second router: `second`, which leads to our host, or
    /// `third`, which leads to the peer.
    fn set_mtu(&self, interface: &'static str, mtu: usize) {
        self.router.run(move || {
            KernelInterface::named(interface).unwrap().set_mtu(Bytes::new(mtu as u64)).unwrap();
        });
    }

    /// Makes the second router drop all packets of its own to our host, which are its ICMP reports.
    /// Packets that it forwards are not dropped. Returns false, with a message, if this machine
    /// does not support such a rule.
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

    /// Returns the number of ICMP reports that the second router has sent about packets that were
    /// too big, for each IP version.
    fn reports(&self) -> [u64; 2] {
        self.router.run(|| {
            let snmp = fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
            let snmp_ipv6 = fs::read_to_string("/proc/thread-self/net/snmp6").unwrap();
            let ipv6 = snmp_ipv6.lines().find_map(|line| line.strip_prefix("Icmp6OutPktTooBigs"));
            [counter(&snmp, "Icmp OutDestUnreachs"), ipv6.unwrap().trim().parse().unwrap()]
        })
    }

    /// Connects to the peer, over IPv4 if `version` is 0, and over IPv6 if it is 1. The path MTU is
    /// 1,500 bytes at that time.
    fn connect(&self, version: usize) -> (TcpStream, net::TcpStream) {
        let address = addresses(NETWORKS[2], 2)[version];
        let listener = self.peer.run(move || TcpListener::bind((address, 0)).unwrap());
        let ours = self.net.connect(listener.local_addr().unwrap()).unwrap();
        let theirs = listener.accept().unwrap().0;
        assert_eq!(ours.tcp_info().unwrap().path_mtu, 1_500);
        (ours, theirs)
    }
}

/// Opens a TAP device with `count` queues. If this machine does not have or allow TAP devices,
/// reports that the test is skipped, and returns `None`.
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

/// Adds a route of each IP version to a network, through one of the two gateways.
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

/// Returns the effective MSS for this path MTU: the MTU less the IP header, the TCP header and the
/// timestamps.
const fn effective_mss(mtu: usize, version: usize) -> usize {
    mtu - if version == 0 { 20 } else { 40 } - 20 - 12
}

/// Sends data to the peer. The path MTU falls as soon as the first data has arrived. So most of the
/// data is sent after that.
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

/// The peer sends without DF, so the second router fragments its segments. Most fragments have no
/// ports, so the first shard of our host reassembles those of all connections. It must then hand
/// each segment over to the shard of its connection.
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
