//! Our host exchanges data with the kernel over IPv6: transfers in both directions, and datagrams.

use crate::kernel::{WIRE, assert_content, frame_sizes, open};
use crate::setting;
use crate::transfers::{download, impaired_link, upload};
use linerate_link::namespace::isolated_test;
use linerate_link::{Readiness, Tap, TapConfig};
use linerate_sockets::{Net, StackConfig};
use linerate_stack::Link;
use linerate_units::Bytes;
use std::fs;
use std::net::{self, Ipv6Addr, UdpSocket};

const KERNEL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const OURS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

fn bytes() -> u64 {
    setting::<Bytes>("LINERATE_TRANSFER_BYTES", "16MiB").count()
}

/// Returns an IPv6 network. `around` makes its link from a TAP device.
fn network<L: Link + Readiness + Send + 'static>(
    offloads: bool,
    around: impl FnOnce(Tap) -> L,
) -> Option<Net> {
    let tap = open(&TapConfig { offloads, ..TapConfig::default() })?;
    let interface = tap.interface();
    interface.add_address(KERNEL, 64).unwrap();
    interface.set_up().unwrap();
    let config = StackConfig::new("02:00:00:00:00:02".parse().unwrap(), cidr());
    Some(Net::builder(around(tap), config).start().unwrap())
}

fn cidr() -> linerate_sockets::IpCidr {
    format!("{OURS}/64").parse().unwrap()
}

/// Asserts that the kernel received no malformed packet and no wrong checksum over IPv6.
fn assert_ipv6_content() {
    assert_content();
    let text = fs::read_to_string("/proc/net/snmp6").unwrap();
    for complaint in ["Ip6InHdrErrors", "Icmp6InErrors", "Icmp6InCsumErrors", "Udp6InCsumErrors"] {
        let line = text.lines().find_map(|line| line.strip_prefix(complaint));
        assert_eq!(line.map(str::trim), Some("0"), "{complaint}");
    }
}

fn transfer_in_both_directions(net: &Net) {
    let listener = net::TcpListener::bind((KERNEL, 0)).unwrap();
    let ours = net.connect(listener.local_addr().unwrap()).unwrap();
    let (kernels, peer) = listener.accept().unwrap();
    assert_eq!(peer, ours.local_addr().unwrap());
    upload(&ours, &kernels, bytes());
    assert_eq!(ours.statistics().unwrap().bytes_sent, bytes());
    let listener = net.bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let kernels = net::TcpStream::connect((OURS, port)).unwrap();
    let (ours, peer) = listener.accept().unwrap();
    assert_eq!(peer, kernels.local_addr().unwrap());
    download(&ours, &kernels, bytes());
    assert_eq!(ours.statistics().unwrap().bytes_received, bytes());
    assert_ipv6_content();
}

#[test]
fn all_data_is_received_over_ipv6_in_both_directions() {
    isolated_test(|| {
        let Some(net) = network(false, |tap| tap) else { return };
        transfer_in_both_directions(&net);
        assert!(frame_sizes(&net).iter().all(|&size| size <= WIRE));
    });
}

#[test]
fn gso_frames_cross_the_device_over_ipv6_in_both_directions() {
    isolated_test(|| {
        let Some(net) = network(true, |tap| tap) else { return };
        let listener = net::TcpListener::bind((KERNEL, 0)).unwrap();
        let ours = net.connect(listener.local_addr().unwrap()).unwrap();
        let (kernels, _) = listener.accept().unwrap();
        upload(&ours, &kernels, bytes());
        let [_, sent] = frame_sizes(&net);
        assert!(sent > WIRE, "{sent} bytes");
        let listener = net.bind((OURS, 0)).unwrap();
        let kernels = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        let before = net.counters().unwrap().receive;
        download(&ours, &kernels, bytes());
        let after = net.counters().unwrap().receive;
        let received = (after.bytes - before.bytes) / (after.packets - before.packets);
        assert!(received > WIRE, "{received} bytes");
        assert_ipv6_content();
    });
}

#[test]
fn all_data_is_received_over_an_impaired_ipv6_link() {
    isolated_test(|| {
        let Some(net) = network(false, impaired_link) else { return };
        let listener = net::TcpListener::bind((KERNEL, 0)).unwrap();
        let ours = net.connect(listener.local_addr().unwrap()).unwrap();
        let (kernels, _) = listener.accept().unwrap();
        upload(&ours, &kernels, bytes());
        assert!(ours.statistics().unwrap().retransmitted_segments > 0, "no segment was lost");
        assert_ipv6_content();
    });
}

#[test]
fn datagrams_are_exchanged_over_ipv6() {
    isolated_test(|| {
        let Some(net) = network(false, |tap| tap) else { return };
        let kernels = UdpSocket::bind((KERNEL, 0)).unwrap();
        let ours = net.bind_udp("[::]:7").unwrap();
        let mut received = [0; 2_000];
        for size in [0, 1, 100, 1_452] {
            let sent = vec![5; size];
            kernels.send_to(&sent, (OURS, 7)).unwrap();
            let (length, from) = ours.recv_from(&mut received).unwrap();
            assert_eq!((&received[..length], from), (&*sent, kernels.local_addr().unwrap()));
            ours.send_to(&sent, from).unwrap();
            let (length, from) = kernels.recv_from(&mut received).unwrap();
            assert_eq!((&received[..length], from.ip()), (&*sent, OURS.into()));
        }
        assert_ipv6_content();
    });
}
