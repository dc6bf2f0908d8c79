//! A path whose MTU shrinks during a transfer. The transfer must continue with smaller segments,
//! whether routers report the MTU by ICMP messages (RFC 1191) or not (RFC 4821).

use crate::kernel::{KERNEL, assert_content, network_over, network_with};
use crate::pattern;
use crate::transfers::upload;
use linerate_link::namespace::{Network, isolated_test};
use linerate_link::{Impair, KernelInterface};
use linerate_sockets::{Net, StackConfig};
use linerate_stack::Route;
use linerate_units::Bytes;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::{fs, thread};

/// The addresses on the veth pair behind the kernel: that of the router, which is the kernel
/// itself, and that of the receiver.
pub(crate) const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const BEHIND: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

const BYTES: u64 = 16 << 20;

/// Adds a route to the network of this veth pair, through the kernel.
pub(crate) fn route_behind(config: &mut StackConfig) {
    config.routes.push(Route::via("10.9.0.0/24".parse().unwrap(), KERNEL));
}

/// Sends `bytes` bytes to a receiver in a network behind the kernel. During the transfer, the MTU
/// of the veth pair to that network shrinks to 900 bytes.
pub(crate) fn send_through_a_narrowing_path(net: &Net, bytes: u64) {
    let network = Network::new().unwrap();
    let (near, far) = KernelInterface::create_veth("near", "far").unwrap();
    near.disable_ipv6().unwrap();
    far.move_to_process(network.id()).unwrap();
    near.add_address(ROUTER, 24).unwrap();
    near.set_up().unwrap();
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    let listener = network.run(|| {
        let far = KernelInterface::named("far").unwrap();
        far.disable_ipv6().unwrap();
        far.add_address(BEHIND, 24).unwrap();
        far.set_up().unwrap();
        far.add_route(Ipv4Addr::new(10, 0, 0, 0), 24, Some(ROUTER.into())).unwrap();
        TcpListener::bind((BEHIND, 80)).unwrap()
    });
    let ours = net.connect((BEHIND, 80)).unwrap();
    let mut kernels = listener.accept().unwrap().0;
    // At first the whole path carries packets of 1,500 bytes, which the MSS reflects.
    (&ours).write_all(b"hello").unwrap();
    kernels.read_exact(&mut [0; 5]).unwrap();
    assert_eq!(ours.tcp_info().unwrap().effective_mss, 1_448);
    thread::scope(|scope| {
        scope.spawn(|| {
            pattern::send(&ours, bytes);
            ours.shutdown(Shutdown::Write).unwrap();
        });
        // The first data has arrived, but the receiver has not read any. So at most one window of
        // data has been sent when the MTU shrinks. The rest, which is most of the data, must be
        // sent in smaller packets.
        kernels.peek(&mut [0; 1]).unwrap();
        near.set_mtu(Bytes::new(900)).unwrap();
        pattern::receive(&kernels, bytes);
    });
    assert_eq!(ours.tcp_info().unwrap().effective_mss, 900 - 40 - 12);
}

#[test]
fn a_path_mtu_that_shrinks_during_a_transfer_reduces_the_segment_size() {
    isolated_test(|| {
        let Some((net, _)) = network_with(|tap| tap, route_behind) else { return };
        send_through_a_narrowing_path(&net, BYTES);
        assert_content();
    });
}

/// After 3,000 frames, the link drops packets above 1,400 bytes without an ICMP message.
#[test]
fn a_path_mtu_black_hole_during_a_transfer_reduces_the_segment_size() {
    isolated_test(|| {
        let narrow = "tx.longest=1414,tx.longest-after=3000".parse().unwrap();
        let Some((net, _)) = network_over(|tap| Impair::new(tap, narrow, 1)) else { return };
        let listener = TcpListener::bind((KERNEL, 80)).unwrap();
        let ours = net.connect((KERNEL, 80)).unwrap();
        upload(&ours, &listener.accept().unwrap().0, BYTES);
        let counted = ours.statistics().unwrap();
        assert!(counted.black_holes > 0, "{counted:?}");
        // Our host searches for the path MTU with probes, and the result depends on the timing. So
        // the test checks only that it does not exceed the real path MTU.
        let path_mtu = ours.tcp_info().unwrap().path_mtu;
        assert!(path_mtu <= 1_400, "{path_mtu}");
        // The result is cached, and the next connection to this peer starts with it.
        let next = net.connect((KERNEL, 80)).unwrap();
        assert_eq!(next.tcp_info().unwrap().path_mtu, path_mtu);
        assert_content();
    });
}
