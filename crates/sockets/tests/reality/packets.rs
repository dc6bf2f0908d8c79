//! Our host shares an interface with the kernel, through a packet socket or AF_XDP. The interface
//! is one end of a veth pair. The other end is in another network namespace, where the kernel is
//! the peer.

use crate::kernel::{KERNEL, OURS, WIRE, frame_sizes};
use crate::pattern;
use linerate_link::namespace::{Network, isolated_test, isolated_test_of_root};
use linerate_link::{KernelInterface, PacketConfig, PacketLink, Readiness, XdpConfig, XdpLink};
use linerate_sockets::{Net, StackConfig};
use linerate_stack::Link;
use linerate_wire::MacAddress;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

const BYTES: u64 = 32 << 20;

/// Creates a veth pair. Our host uses the end `near`. The other end is in the returned namespace,
/// where the kernel uses it.
fn veth_pair() -> Network {
    Network::behind_veth(["near", "far"], KERNEL).unwrap().1
}

/// Starts our host on this link, with this MAC address.
fn network<L: Link + Readiness + Send + 'static>(link: L, mac: [u8; 6]) -> Net {
    let config = StackConfig::new(MacAddress::new(mac), format!("{OURS}/24").parse().unwrap());
    Net::builder(link, config).start().unwrap()
}

fn by_packets(offloads: bool) -> (Net, Network) {
    let kernels = veth_pair();
    let link = PacketLink::open(&PacketConfig { offloads, ..PacketConfig::new("near") }).unwrap();
    let mac = link.mac();
    (network(link, mac), kernels)
}

/// Transfers data from our host to the kernel, and then from the kernel to our host. Returns
/// average frame sizes in bytes: of the frames that our host received in the second transfer, and
/// of those that it sent in the first.
fn transfer_both_directions((net, kernels): (Net, Network)) -> [u64; 2] {
    let listener = kernels.run(|| TcpListener::bind((KERNEL, 0)).unwrap());
    let ours = net.connect(listener.local_addr().unwrap()).unwrap();
    let theirs: TcpStream = listener.accept().unwrap().0;
    thread::scope(|scope| {
        scope.spawn(|| {
            pattern::send(&ours, BYTES);
            ours.shutdown(Shutdown::Write).unwrap();
        });
        pattern::receive(&theirs, BYTES);
    });
    let [_, sent] = frame_sizes(&net);
    let before = net.counters().unwrap().receive;
    thread::scope(|scope| {
        scope.spawn(|| {
            pattern::send(&theirs, BYTES);
            theirs.shutdown(Shutdown::Write).unwrap();
        });
        pattern::receive(&ours, BYTES);
    });
    let counted = net.counters().unwrap();
    assert_eq!((counted.tcp.in_errors, counted.ip.in_header_errors), (0, 0));
    [(counted.receive.bytes - before.bytes) / (counted.receive.packets - before.packets), sent]
}

#[test]
fn with_offloads_gso_frames_pass_in_both_directions() {
    isolated_test(|| {
        let sizes = transfer_both_directions(by_packets(true));
        assert!(sizes.iter().all(|&size| size > WIRE), "{sizes:?}");
    });
}

#[test]
fn without_offloads_no_frame_exceeds_the_mtu() {
    isolated_test(|| {
        let sizes = transfer_both_directions(by_packets(false));
        assert!(sizes[1] <= WIRE, "{sizes:?}");
    });
}

#[test]
fn af_xdp_carries_both_directions_past_the_kernel_on_our_side() {
    isolated_test_of_root(|| {
        let kernels = veth_pair();
        // The far end of the veth pair belongs to the kernel. If checksum offload were enabled
        // there, the kernel would send frames without complete checksums, and a veth pair does not
        // complete them. Our host would drop these frames.
        kernels.run(|| KernelInterface::named("far").unwrap().set_checksum_offload(false).unwrap());
        let link = XdpLink::open(&XdpConfig::new("near", OURS)).unwrap();
        let mac = link.mac();
        let sizes = transfer_both_directions((network(link, mac), kernels));
        assert!(sizes.iter().all(|&size| size <= WIRE), "{sizes:?}");
    });
}
