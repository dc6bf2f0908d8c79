//! A host with interfaces on two TAP devices. The kernel exchanges data with this host over both
//! interfaces at once, with both IP versions.

use crate::kernel::{assert_content, open};
use crate::transfers::{download, upload};
use linerate_link::namespace::isolated_test;
use linerate_link::{Tap, TapConfig};
use linerate_sockets::{InterfaceConfig, Net, StackConfig};
use std::net::{self, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;

const BYTES: u64 = 8 << 20;

/// Returns the IPv4 and the IPv6 address on a link. `host` is 1 for the kernel, and 2 for our host.
fn addresses(link: u8, host: u8) -> [IpAddr; 2] {
    let (network, last) = (link.into(), host.into());
    [
        Ipv4Addr::new(10, 0, link, host).into(),
        Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, last).into(),
    ]
}

/// Opens the TAP device of a link, and gives the kernel's interface of the device its addresses.
fn tap(link: u8) -> Option<Tap> {
    let tap = open(&TapConfig { offloads: link == 1, ..TapConfig::default() })?;
    let interface = tap.interface();
    for address in addresses(link, 1) {
        interface.add_address(address, if address.is_ipv4() { 24 } else { 64 }).unwrap();
    }
    interface.set_up().unwrap();
    Some(tap)
}

fn config(link: u8) -> InterfaceConfig {
    let mac = format!("02:00:00:00:{link:02x}:02").parse().unwrap();
    let [ipv4, ipv6] = addresses(link, 2);
    let cidrs = [format!("{ipv4}/24"), format!("{ipv6}/64")];
    InterfaceConfig {
        addresses: cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect(),
        ..InterfaceConfig::unconfigured(mac)
    }
}

#[test]
fn the_kernel_reaches_both_interfaces_at_once() {
    isolated_test(|| {
        let (Some(one), Some(other)) = (tap(1), tap(2)) else { return };
        let InterfaceConfig { mac, addresses: own, .. } = config(1);
        let first = StackConfig { addresses: own, ..StackConfig::unconfigured(mac) };
        let net = Net::builder(one, first).interface(config(2), other).start().unwrap();
        thread::scope(|scope| {
            for link in [1, 2] {
                let net = &net;
                scope.spawn(move || {
                    for (kernel, ours) in addresses(link, 1).into_iter().zip(addresses(link, 2)) {
                        let listener = net::TcpListener::bind((kernel, 0)).unwrap();
                        let stream = net.connect(listener.local_addr().unwrap()).unwrap();
                        let (kernels, peer) = listener.accept().unwrap();
                        assert_eq!(peer.ip(), ours, "the source is that of the interface");
                        upload(&stream, &kernels, BYTES);
                        let listener = net.bind((ours, 0)).unwrap();
                        let to = listener.local_addr().unwrap();
                        let kernels = net::TcpStream::connect(to).unwrap();
                        let (stream, peer) = listener.accept().unwrap();
                        assert_eq!(peer, SocketAddr::new(kernel, peer.port()));
                        download(&stream, &kernels, BYTES);
                    }
                });
            }
        });
        assert_content();
    });
}
