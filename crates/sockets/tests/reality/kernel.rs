//! Helpers of the tests that create one of our networks on a TAP device, with the kernel as its
//! peer.

use linerate_link::namespace::skip_test;
use linerate_link::tap::TapError;
use linerate_link::{KernelInterface, Readiness, Tap, TapConfig};
use linerate_sockets::{Net, StackConfig};
use linerate_stack::Link;
use std::fs;
use std::net::Ipv4Addr;

/// The address of the kernel on the TAP device.
pub(crate) const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The address of our host.
pub(crate) const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Returns a network on a TAP device without offloads, and the kernel's interface. Returns `None`,
/// with a message, if this machine has no TAP devices.
pub(crate) fn network() -> Option<(Net, KernelInterface)> {
    network_over(|tap| tap)
}

/// Opens a TAP device without offloads, so that its frames are no longer than Ethernet frames.
/// Configures the kernel's interface of the device.
pub(crate) fn open_tap() -> Option<Tap> {
    let tap = open(&TapConfig { offloads: false, ..TapConfig::default() })?;
    configure_kernel_end(&tap, KERNEL);
    Some(tap)
}

/// Opens a TAP device with offloads, so that its frames can be GSO frames. Configures the kernel's
/// interface of the device.
pub(crate) fn open_with_offloads() -> Option<Tap> {
    let tap = open(&TapConfig::default())?;
    configure_kernel_end(&tap, KERNEL);
    Some(tap)
}

/// Opens a TAP device. If this machine has no TAP devices or forbids them, reports that the test is
/// skipped, and returns `None`.
pub(crate) fn open(config: &TapConfig) -> Option<Tap> {
    match Tap::open(config) {
        Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
            skip_test(&error);
            None
        }
        opened => Some(opened.unwrap()),
    }
}

/// Gives the kernel's interface of a device this address, disables IPv6 on it, and sets it up.
pub(crate) fn configure_kernel_end(tap: &Tap, address: Ipv4Addr) {
    let interface = tap.interface();
    interface.disable_ipv6().unwrap();
    interface.add_address(address, 24).unwrap();
    interface.set_up().unwrap();
}

/// Returns a network, and the kernel's interface. `around` wraps a TAP device without offloads in
/// the link of the network, for example in one with impairments.
pub(crate) fn network_over<L: Link + Readiness + Send + 'static>(
    around: impl FnOnce(Tap) -> L,
) -> Option<(Net, KernelInterface)> {
    network_with(around, |_| {})
}

/// Returns a network, and the kernel's interface. `configure` changes the configuration of the
/// network. `around` wraps a TAP device without offloads in the link of the network.
pub(crate) fn network_with<L: Link + Readiness + Send + 'static>(
    around: impl FnOnce(Tap) -> L,
    configure: impl FnOnce(&mut StackConfig),
) -> Option<(Net, KernelInterface)> {
    Some(network_on(open_tap()?, around, configure))
}

/// Returns a network, and the kernel's interface. `around` wraps a TAP device with offloads in the
/// link of the network. The device carries GSO frames in both directions.
pub(crate) fn network_with_offloads<L: Link + Readiness + Send + 'static>(
    around: impl FnOnce(Tap) -> L,
) -> Option<(Net, KernelInterface)> {
    Some(network_on(open_with_offloads()?, around, |_| {}))
}

/// Returns a network, and the kernel's interface. `around` wraps `tap` in the link of the network,
/// and `configure` changes the configuration of the network.
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

/// Length of the largest frame on an Ethernet cable, in bytes.
pub(crate) const WIRE: u64 = 1_514;

/// Returns the average sizes of received and of sent frames, in bytes. If an average exceeds
/// [`WIRE`], some of the frames were GSO frames. Tests check these sizes instead of the throughput,
/// which depends on the speed of the machine.
pub(crate) fn frame_sizes(net: &Net) -> [u64; 2] {
    let counted = net.counters().unwrap();
    let received = counted.receive.bytes / counted.receive.packets;
    [received, counted.transmit.bytes / counted.transmit.packets]
}

/// Asserts that the kernel received no malformed segment and no wrong checksum.
pub(crate) fn assert_content() {
    let snmp = fs::read_to_string("/proc/net/snmp").unwrap();
    for complaint in ["Ip InHdrErrors", "Tcp InCsumErrors", "Udp InCsumErrors", "Icmp InErrors"] {
        assert_eq!(counter(&snmp, complaint), 0, "{complaint}");
    }
    // `InErrs` counts one kind of valid segment: a duplicate of a SYN, which an impaired link may
    // deliver when the connection is already open. The kernel answers it with a challenge ACK (RFC
    // 5961 §4.2), and also counts it in `TCPSYNChallenge`. So `InErrs` must not exceed
    // `TCPSYNChallenge`.
    let challenges =
        counter(&fs::read_to_string("/proc/net/netstat").unwrap(), "TcpExt TCPSYNChallenge");
    let errors = counter(&snmp, "Tcp InErrs");
    assert!(
        errors <= challenges,
        "Tcp InErrs {errors}, of which at most {challenges} were duplicate SYNs"
    );
}

/// Returns the value of the counter `wanted`, such as `Tcp InErrs`, in the text of a file such as
/// `/proc/net/snmp`.
pub(crate) fn counter(snmp: &str, wanted: &str) -> u64 {
    let (protocol, name) = wanted.split_once(' ').unwrap();
    let mut lines =
        snmp.lines().filter_map(|line| line.split_once(": ")).filter(|line| line.0 == protocol);
    let names = lines.next().unwrap().1.split(' ');
    let values = lines.next().unwrap().1.split(' ');
    let (_, value) = names.zip(values).find(|found| found.0 == name).unwrap();
    value.parse().unwrap()
}
