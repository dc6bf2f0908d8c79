//! A network of ours, and the kernel at the other end of its TAP device.

use linerate_link::namespace::skip_test;
use linerate_link::tap::TapError;
use linerate_link::{KernelInterface, Readiness, Tap, TapConfig};
use linerate_sockets::{Net, StackConfig};
use linerate_stack::Link;
use std::fs;
use std::net::Ipv4Addr;

/// The kernel's address.
pub(crate) const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Ours.
pub(crate) const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// A network on a TAP device, and the kernel's end of it. `None` if this machine has no such devices,
/// which is said aloud.
pub(crate) fn network() -> Option<(Net, KernelInterface)> {
    network_over(|tap| tap)
}

/// A TAP device without offloads whose other end the kernel has taken up: its frames are those of a wire.
pub(crate) fn open_tap() -> Option<Tap> {
    let tap = open(&TapConfig { offloads: false, ..TapConfig::default() })?;
    take_up(&tap, KERNEL);
    Some(tap)
}

/// The same with offloads.
pub(crate) fn open_with_offloads() -> Option<Tap> {
    let tap = open(&TapConfig::default())?;
    take_up(&tap, KERNEL);
    Some(tap)
}

/// A TAP device.
pub(crate) fn open(config: &TapConfig) -> Option<Tap> {
    match Tap::open(config) {
        Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
            skip_test(&error);
            None
        }
        opened => Some(opened.unwrap()),
    }
}

/// The kernel takes up the other end of a device.
pub(crate) fn take_up(tap: &Tap, address: Ipv4Addr) {
    let interface = tap.interface();
    interface.disable_ipv6().unwrap();
    interface.add_address(address, 24).unwrap();
    interface.set_up().unwrap();
}

/// The same, with something around the device.
pub(crate) fn network_over<L: Link + Readiness + Send + 'static>(
    around: impl FnOnce(Tap) -> L,
) -> Option<(Net, KernelInterface)> {
    network_with(around, |_| {})
}

/// The same, with another configuration.
pub(crate) fn network_with<L: Link + Readiness + Send + 'static>(
    around: impl FnOnce(Tap) -> L,
    configure: impl FnOnce(&mut StackConfig),
) -> Option<(Net, KernelInterface)> {
    Some(network_on(open_tap()?, around, configure))
}

/// The same, on a device with offloads: super-frames go whole both ways.
pub(crate) fn network_with_offloads<L: Link + Readiness + Send + 'static>(
    around: impl FnOnce(Tap) -> L,
) -> Option<(Net, KernelInterface)> {
    Some(network_on(open_with_offloads()?, around, |_| {}))
}

/// A network on this device.
pub(crate) fn network_on<L: Link + Readiness + Send + 'static>(
    tap: Tap,
    around: impl FnOnce(Tap) -> L,
    configure: impl FnOnce(&mut StackConfig),
) -> (Net, KernelInterface) {
    let interface = tap.interface().clone();
    let mut config =
        StackConfig::new("02:00:00:00:00:02".parse().unwrap(), "10.0.0.2/24".parse().unwrap());
    configure(&mut config);
    (Net::builder(around(tap), config).start().unwrap(), interface)
}

/// The largest frame of a wire, in bytes.
pub(crate) const WIRE: u64 = 1_514;

/// Bytes in a frame of the link, on the whole: received, and sent. More than [`WIRE`] says that there were
/// super-frames, however fast the machine was.
pub(crate) fn frame_sizes(net: &Net) -> [u64; 2] {
    let counted = net.counters().unwrap();
    let received = counted.receive.bytes / counted.receive.packets;
    [received, counted.transmit.bytes / counted.transmit.packets]
}

/// The kernel has seen nothing malformed and no wrong checksum.
pub(crate) fn assert_content() {
    let snmp = fs::read_to_string("/proc/net/snmp").unwrap();
    for complaint in ["Ip InHdrErrors", "Tcp InCsumErrors", "Udp InCsumErrors", "Icmp InErrors"] {
        assert_eq!(counter(&snmp, complaint), 0, "{complaint}");
    }
    // A SYN that a bad cable has doubled may come when the connection is open. The kernel answers it by a challenge
    // (RFC 5961 §4.2), and counts it in both places.
    let challenges =
        counter(&fs::read_to_string("/proc/net/netstat").unwrap(), "TcpExt TCPSYNChallenge");
    let errors = counter(&snmp, "Tcp InErrs");
    assert!(
        errors <= challenges,
        "Tcp InErrs {errors}, of which {challenges} at most were a second SYN"
    );
}

/// The counter of this protocol and name.
fn counter(snmp: &str, wanted: &str) -> u64 {
    let (protocol, name) = wanted.split_once(' ').unwrap();
    let mut lines =
        snmp.lines().filter_map(|line| line.split_once(": ")).filter(|line| line.0 == protocol);
    let names = lines.next().unwrap().1.split(' ');
    let values = lines.next().unwrap().1.split(' ');
    let (_, value) = names.zip(values).find(|found| found.0 == name).unwrap();
    value.parse().unwrap()
}
