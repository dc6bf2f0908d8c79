//! Datagrams that are larger than the MTU, between our host and the kernel.

use crate::kernel::{KERNEL, OURS, assert_content, open};
use linerate_link::namespace::{Network, isolated_test};
use linerate_link::{Impair, KernelInterface, Readiness, Tap, TapConfig};
use linerate_sockets::{Net, Route, StackConfig};
use linerate_stack::Link;
use linerate_units::Bytes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::{fs, thread};

const KERNEL_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const OURS_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// The addresses of the kernel and of our host.
const VERSIONS: [[IpAddr; 2]; 2] =
    [[IpAddr::V4(KERNEL), IpAddr::V4(OURS)], [IpAddr::V6(KERNEL_IPV6), IpAddr::V6(OURS_IPV6)]];

/// The addresses of the router and of the receiver, on the veth pair behind the kernel.
const BEHIND: [[IpAddr; 2]; 2] = [
    [IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2))],
    [
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2)),
    ],
];

/// Number of datagrams of each size.
const COUNT: u32 = 100;

/// Number of small datagrams after each large one. The first small datagram that arrives ends the
/// receiver's wait for the large one. With a loss of 1 %, it is practically certain that at least
/// one of them arrives.
const MARKERS: usize = 12;

/// Returns a network of both IP versions. `around` makes its link from a TAP device.
fn network<L: Link + Readiness + Send + 'static>(around: impl FnOnce(Tap) -> L) -> Option<Net> {
    let tap = open(&TapConfig { offloads: false, ..TapConfig::default() })?;
    let interface = tap.interface();
    interface.add_address(KERNEL, 24).unwrap();
    interface.add_address(KERNEL_IPV6, 64).unwrap();
    interface.set_up().unwrap();
    let mac = "02:00:00:00:00:02".parse().unwrap();
    let mut config = StackConfig::new(mac, format!("{OURS}/24").parse().unwrap());
    config.addresses.push(format!("{OURS_IPV6}/64").parse().unwrap());
    config.routes.push(Route::via("10.9.0.0/24".parse().unwrap(), KERNEL));
    config.routes.push(Route::via("2001:db8:9::/64".parse().unwrap(), KERNEL_IPV6));
    Some(Net::builder(around(tap), config).start().unwrap())
}

/// Returns a datagram that begins with its number.
fn datagram(number: u32, size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..size).map(|at| (at ^ (at >> 8) ^ number as usize).to_le_bytes()[0]).collect();
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Sends numbered datagrams of `size` bytes, each followed by datagrams that have only its number.
/// Returns how many arrived, and checks that they are complete.
fn exchange(size: usize, send: impl Fn(&[u8]), mut receive: impl FnMut(&mut [u8]) -> usize) -> u32 {
    let mut bytes = vec![0; 65_536];
    let mut arrived = 0;
    for number in 0..COUNT {
        let sent = datagram(number, size);
        send(&sent);
        (0..MARKERS).for_each(|_| send(&sent[..4]));
        loop {
            let length = receive(&mut bytes);
            let received = &bytes[..length];
            if length == 4 {
                if received == &sent[..4] {
                    break;
                }
                continue;
            }
            assert!(received == sent, "datagram {number} of {size} bytes is damaged");
            arrived += 1;
        }
    }
    arrived
}

/// Exchanges datagrams of 8 kB and 60 kB in both directions. Returns for each size the percentage
/// that arrived, in the direction in which fewer arrived.
fn exchange_in_both_directions(net: &Net, [kernel, own]: [IpAddr; 2]) -> [u32; 2] {
    let kernels = UdpSocket::bind((kernel, 0)).unwrap();
    let ours = net.bind_udp((own, 0)).unwrap();
    let (to_kernel, to_us) = (kernels.local_addr().unwrap(), ours.local_addr().unwrap());
    let send_from_us = |size| {
        exchange(
            size,
            |bytes| {
                ours.send_to(bytes, to_kernel).unwrap();
            },
            |bytes| kernels.recv_from(bytes).unwrap().0,
        )
    };
    // These small datagrams make the kernel learn our MAC address. Without it, a large datagram
    // would wait for ARP, and the markers sent after it could overtake it. A marker tells the
    // receiver to wait no longer for the datagram, which would count as lost.
    send_from_us(100);
    [8_000, 60_000].map(|size| {
        let from_kernel = exchange(
            size,
            |bytes| {
                kernels.send_to(bytes, to_us).unwrap();
            },
            |bytes| ours.recv_from(bytes).unwrap().0,
        );
        let from_us = send_from_us(size);
        println!("{size} bytes to {kernel}: {from_us} of {COUNT} whole, from it {from_kernel}");
        from_us.min(from_kernel) * 100 / COUNT
    })
}

#[test]
fn large_datagrams_arrive_in_both_directions() {
    isolated_test(|| {
        let Some(net) = network(|tap| tap) else { return };
        for addresses in VERSIONS {
            assert_eq!(exchange_in_both_directions(&net, addresses), [100, 100]);
        }
        let counted = net.counters().unwrap().ip;
        assert_eq!((counted.reassembly_failures, counted.fragmentation_failures), (0, 0));
        assert_content();
    });
}

/// A datagram is missing if one of its fragments is lost. With a loss of 1 %, all 6 fragments of 8
/// kB arrive with a probability of 94 %, and all 41 fragments of 60 kB with 66 %. The limits below
/// are lower, to leave room for chance.
#[test]
fn datagrams_whose_fragments_are_lost_are_missing_and_the_others_are_whole() {
    isolated_test(|| {
        let impaired = |tap| Impair::new(tap, "loss=1%".parse().unwrap(), 1988);
        let Some(net) = network(impaired) else { return };
        for addresses in VERSIONS {
            let [medium, large] = exchange_in_both_directions(&net, addresses);
            assert!(medium > 75 && large > 35, "{medium} and {large} %");
        }
        let counted = net.counters().unwrap().ip;
        assert!(counted.reassembly_ok < counted.reassembly_required);
        assert_eq!(counted.reassembly_overlaps, 0);
        assert_content();
    });
}

/// Creates a veth pair between the kernel, which becomes a router, and a new network namespace.
/// Returns the kernel's end of the pair, and the namespace.
fn veth_behind_the_kernel() -> (KernelInterface, Network) {
    let network = Network::new().unwrap();
    let (near, far) = KernelInterface::create_veth("near", "far").unwrap();
    far.move_to_process(network.id()).unwrap();
    for [router, _] in BEHIND {
        near.add_address(router, if router.is_ipv4() { 24 } else { 64 }).unwrap();
    }
    near.set_up().unwrap();
    for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap();
    }
    network.run(|| {
        let far = KernelInterface::named("far").unwrap();
        for [_, own] in BEHIND {
            far.add_address(own, if own.is_ipv4() { 24 } else { 64 }).unwrap();
        }
        far.set_up().unwrap();
        for ([router, _], [kernel, _]) in BEHIND.into_iter().zip(VERSIONS) {
            let prefix_length = if kernel.is_ipv4() { 24 } else { 64 };
            let destination = match kernel {
                IpAddr::V4(_) => Ipv4Addr::new(10, 0, 0, 0).into(),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0)),
            };
            far.add_route(destination, prefix_length, Some(router)).unwrap();
        }
    });
    (near, network)
}

/// When the MTU behind the router shrinks, the router drops one datagram and reports the new MTU.
/// Later datagrams must arrive.
#[test]
fn datagrams_are_sent_in_smaller_fragments_when_the_path_mtu_shrinks() {
    isolated_test(|| {
        let Some(net) = network(|tap| tap) else { return };
        let (near, network) = veth_behind_the_kernel();
        for [_, behind] in BEHIND {
            near.set_mtu(Bytes::new(1_500)).unwrap();
            let receiver = network.run(move || UdpSocket::bind((behind, 0)).unwrap());
            let ours = net.bind_udp(if behind.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
            ours.connect(receiver.local_addr().unwrap()).unwrap();
            let mut bytes = vec![0; 65_536];
            for size in [1_400, 8_000] {
                ours.send(&datagram(1, size)).unwrap();
                let length = receiver.recv(&mut bytes).unwrap();
                assert!(bytes[..length] == datagram(1, size), "{size} bytes to {behind}");
            }
            assert_eq!(ours.path_mtu().unwrap(), 1_500);
            near.set_mtu(Bytes::new(1_300)).unwrap();
            ours.send(&datagram(2, 1_400)).unwrap();
            while ours.path_mtu().unwrap() == 1_500 {
                thread::yield_now();
            }
            assert_eq!(ours.path_mtu().unwrap(), 1_300);
            for size in [1_400, 8_000, 60_000] {
                ours.send(&datagram(3, size)).unwrap();
                let length = receiver.recv(&mut bytes).unwrap();
                assert!(bytes[..length] == datagram(3, size), "{size} bytes to {behind}");
            }
        }
        assert_content();
    });
}
