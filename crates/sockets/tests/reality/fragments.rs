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

/// The addresses of the kernel and of our host, for each IP version.
const VERSIONS: [[IpAddr; 2]; 2] =
    [[IpAddr::V4(KERNEL), IpAddr::V4(OURS)], [IpAddr::V6(KERNEL_IPV6), IpAddr::V6(OURS_IPV6)]];

/// For each IP version, the addresses on the veth pair behind the kernel: those of the router,
/// which is the kernel itself, and of the receiver.
const BEHIND: [[IpAddr; 2]; 2] = [
    [IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2))],
    [
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2)),
    ],
];

/// Number of datagrams of each size that are sent in each direction.
const COUNT: u32 = 100;

/// Number of small datagrams, called markers, after each large one. When the first marker arrives
/// without the large datagram, the receiver knows that the large one is lost. With a loss of 1 %,
/// it is practically certain that at least one of the markers arrives.
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

/// Returns a datagram of `size` bytes that begins with its number. The other bytes depend on their
/// position and on the number.
fn datagram(number: u32, size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..size).map(|at| (at ^ (at >> 8) ^ number as usize).to_le_bytes()[0]).collect();
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Sends [`COUNT`] numbered datagrams of `size` bytes. Each is followed by [`MARKERS`] markers,
/// which contain only its number. Checks that each datagram that arrives is complete, and returns
/// how many arrived.
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

/// Sends datagrams of 8 kB and of 60 kB from the kernel to our host and back. For each size,
/// returns the percentage of datagrams that arrived, in the direction in which fewer arrived.
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
    // These datagrams of 100 bytes make the kernel learn our MAC address. If it were unknown, a
    // large datagram would wait for ARP, and the markers after it could overtake it. The receiver
    // would then count the large datagram as lost.
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

/// A datagram is missing if one of its fragments is lost. With a loss of 1 %, all 6 fragments of a
/// datagram of 8 kB arrive with a probability of 94 %. All 41 fragments of a datagram of 60 kB
/// arrive with a probability of 66 %. The assertions demand less than these percentages, to leave
/// room for chance.
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

/// Creates a new network namespace, and a veth pair between it and the kernel. Makes the kernel a
/// router between our host and the namespace. Returns the kernel's end of the pair, and the
/// namespace.
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

/// When the MTU behind the router shrinks, the router drops the next datagram that is too large,
/// and reports the new MTU to our host. Our host must then send smaller fragments, so that later
/// datagrams arrive.
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
