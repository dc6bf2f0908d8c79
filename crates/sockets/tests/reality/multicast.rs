//! Multicast through a bridge of the kernel. The bridge forwards datagrams to a group only to
//! members of the group, which it learns from IGMP and MLD reports. Our host and the kernel send
//! each other datagrams to groups through the bridge.

use crate::captured::Captured;
use crate::kernel::open;
use linerate_link::namespace::{Network, isolated_test, skip_test};
use linerate_link::{KernelInterface, TapConfig};
use linerate_sockets::{Net, StackConfig};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::Command;

const PORT: u16 = 5_000;
const BRIDGE: &str = "bridge0";

/// The addresses that a test uses, all of one IP version.
#[derive(Clone, Copy)]
struct Addresses {
    ours: IpAddr,
    kernels: IpAddr,
    group: IpAddr,
    any: IpAddr,
}

const IPV4: Addresses = Addresses {
    ours: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
    kernels: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)),
    group: IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3)),
    any: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
};
const IPV6: Addresses = Addresses {
    ours: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
    kernels: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 3)),
    group: IpAddr::V6(Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 1, 3)),
    any: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
};

/// Runs a program of iproute2, and returns its output. If the program is not installed, prints that
/// the test is skipped, and returns `None`.
fn run(program: &str, arguments: &str) -> Option<String> {
    let output = match Command::new(program).args(arguments.split(' ')).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip_test(&format!("`{program}` is not installed: it is in the package iproute2"));
            return None;
        }
        output => output.unwrap(),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Creates a bridge with two ports. The bridge is also the multicast querier. One port leads to our
/// host behind a TAP device, the other to the kernel in another namespace. Returns our network, and
/// the other namespace.
fn bridged(captured: &Captured) -> Option<(Net, Network)> {
    let tap = open(&TapConfig { offloads: false, ..TapConfig::default() })?;
    let options =
        "type bridge mcast_snooping 1 mcast_querier 1 mcast_igmp_version 3 mcast_mld_version 2";
    run("ip", &format!("link add {BRIDGE} {options}"))?;
    let bridge = KernelInterface::named(BRIDGE).unwrap();
    bridge.add_address(Ipv4Addr::new(10, 0, 0, 1), 24).unwrap();
    bridge.set_up().unwrap();
    bridge.add_address("fe80::1".parse::<Ipv6Addr>().unwrap(), 64).unwrap();
    let far = Network::new().unwrap();
    let (port, end) = KernelInterface::create_veth("port", "far").unwrap();
    end.move_to_process(far.id()).unwrap();
    for interface in [&port, tap.interface()] {
        interface.disable_ipv6().unwrap();
        run("ip", &format!("link set {} master {BRIDGE}", interface.name()))?;
        interface.set_up().unwrap();
    }
    far.run(|| {
        let end = KernelInterface::named("far").unwrap();
        end.set_up().unwrap();
        end.add_address(IPV4.kernels, 24).unwrap();
        end.add_address(IPV6.kernels, 64).unwrap();
        end.add_route(Ipv4Addr::new(224, 0, 0, 0), 4, None).unwrap();
    });
    let mac = "02:00:00:00:00:02".parse().unwrap();
    let mut config = StackConfig::new(mac, "10.0.0.2/24".parse().unwrap());
    config.addresses.push("2001:db8::2/64".parse().unwrap());
    Some((captured.start(tap, config), far))
}

/// Waits until the bridge lists a member of the group.
fn wait_for_member(group: IpAddr) {
    let wanted = format!("grp {group} ");
    while !run("bridge", "mdb show").unwrap().contains(&wanted) {}
}

fn is_forwarded(addresses: Addresses) {
    let captured = Captured::new();
    let Some((net, far)) = bridged(&captured) else { return };
    let Addresses { ours, kernels, group, any } = addresses;
    let receiver = net.bind_udp((any, PORT)).unwrap();
    let marker = net.bind_udp((ours, 0)).unwrap();
    let marked = marker.local_addr().unwrap();
    let send = move |far: &Network, to: SocketAddr, data: &'static [u8]| {
        far.run(move || UdpSocket::bind((kernels, 0)).unwrap().send_to(data, to).unwrap());
    };
    send(&far, (group, PORT).into(), b"before");
    send(&far, marked, b"marker");
    let mut data = [0; 16];
    // No member has joined yet, so the bridge must not forward the datagram "before" to our host.
    // Packets are not reordered, and `marker` gets a datagram that was sent later. If "before" were
    // forwarded, it would arrive first.
    assert_eq!(marker.recv(&mut data).unwrap(), 6);
    receiver.set_nonblocking(true).unwrap();
    assert_eq!(receiver.recv_from(&mut data).unwrap_err().kind(), ErrorKind::WouldBlock);
    receiver.set_nonblocking(false).unwrap();
    match group {
        IpAddr::V4(group) => receiver.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED).unwrap(),
        IpAddr::V6(group) => receiver.join_multicast_v6(&group, 0).unwrap(),
    }
    wait_for_member(group);
    send(&far, (group, PORT).into(), b"after");
    let (length, from) = receiver.recv_from(&mut data).unwrap();
    assert_eq!((&data[..length], from.ip()), (&b"after"[..], kernels));
    assert!(net.counters().unwrap().groups.out_reports > 0);

    let other = match group {
        IpAddr::V4(_) => IpAddr::from([239, 7, 7, 7]),
        IpAddr::V6(_) => "ff05::7:7:7".parse().unwrap(),
    };
    let socket = far.run(move || {
        let socket = UdpSocket::bind((any, PORT)).unwrap();
        match (other, kernels) {
            (IpAddr::V4(other), IpAddr::V4(own)) => socket.join_multicast_v4(&other, &own),
            (IpAddr::V6(other), _) => socket.join_multicast_v6(&other, 0),
            _ => unreachable!("both are of one version"),
        }
        .unwrap();
        socket
    });
    wait_for_member(other);
    receiver.send_to(b"from us", (other, PORT)).unwrap();
    let (length, from) = socket.recv_from(&mut data).unwrap();
    assert_eq!((&data[..length], from), (&b"from us"[..], (ours, PORT).into()));
    // The capture must contain a query of the bridge for members, and a membership report of our
    // host.
    let messages = match group {
        IpAddr::V4(_) => ["igmp.type == 0x11", "igmp.type == 0x22"],
        IpAddr::V6(_) => ["icmpv6.type == 130", "icmpv6.type == 143"],
    };
    captured.end(&net, &messages.map(str::to_owned));
}

#[test]
fn groups_of_ipv4_are_received_and_reached_through_a_bridge_with_snooping() {
    isolated_test(|| is_forwarded(IPV4));
}

#[test]
fn groups_of_ipv6_are_received_and_reached_through_a_bridge_with_snooping() {
    isolated_test(|| is_forwarded(IPV6));
}
