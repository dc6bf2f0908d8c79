//! An interface that we share with the kernel, by a packet socket or at its driver: one end of a virtual cable. At
//! the other, in another network, is the kernel.

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

/// One end of a cable is ours and called `near`, and in this network the kernel has the other.
fn cable() -> Network {
    Network::behind_cable(["near", "far"], KERNEL).unwrap().1
}

/// Our host on this link.
fn network<L: Link + Readiness + Send + 'static>(link: L, mac: [u8; 6]) -> Net {
    let config = StackConfig::new(MacAddress::new(mac), format!("{OURS}/24").parse().unwrap());
    Net::builder(link, config).start().unwrap()
}

fn by_packets(offloads: bool) -> (Net, Network) {
    let kernels = cable();
    let link = PacketLink::open(&PacketConfig { offloads, ..PacketConfig::new("near") }).unwrap();
    let mac = link.mac();
    (network(link, mac), kernels)
}

/// Both ways over one connection, one after the other; the bytes that a frame with data has on the whole, received and
/// sent.
fn there_and_back((net, kernels): (Net, Network)) -> [u64; 2] {
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
fn with_offloads_super_frames_go_whole_both_ways() {
    isolated_test(|| {
        let sizes = there_and_back(by_packets(true));
        assert!(sizes.iter().all(|&size| size > WIRE), "{sizes:?}");
    });
}

#[test]
fn without_offloads_each_frame_is_one_that_a_wire_could_carry() {
    isolated_test(|| {
        let sizes = there_and_back(by_packets(false));
        assert!(sizes[1] <= WIRE, "{sizes:?}");
    });
}

#[test]
fn at_its_driver_bytes_go_both_ways_past_the_kernel_on_our_side() {
    isolated_test_of_root(|| {
        let kernels = cable();
        // The kernel would leave its checksums to a cable that completes none.
        kernels.run(|| KernelInterface::named("far").unwrap().set_checksum_offload(false).unwrap());
        let link = XdpLink::open(&XdpConfig::new("near", OURS)).unwrap();
        let mac = link.mac();
        let sizes = there_and_back((network(link, mac), kernels));
        assert!(sizes.iter().all(|&size| size <= WIRE), "{sizes:?}");
    });
}
