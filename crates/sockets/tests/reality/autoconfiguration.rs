//! Tests of IPv6 autoconfiguration: our host gets addresses and routes from radvd, the router
//! advertisement daemon, and answers the kernel's neighbour unreachability detection.

use crate::captured::Captured;
use crate::kernel::open;
use crate::transfers::{download, upload};
use linerate_link::namespace::{isolated_test, skip_test};
use linerate_link::{KernelInterface, TapConfig};
use linerate_sockets::{AddressOrigin, Autoconfiguration, Net, StackConfig};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const KERNEL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 1);
/// An address of the kernel on its loopback interface. Our host reaches it only through the default
/// router.
const BEHIND: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 1);
const DEADLINE: Duration = Duration::from_secs(60);

/// A process of radvd, the router advertisement daemon. It is killed when this value is dropped.
struct Radvd {
    child: Child,
    folder: tempfile::TempDir,
}

impl Radvd {
    /// Starts the daemon; `None` if it is not installed.
    fn start(interface: &KernelInterface) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let [config, process] = ["radvd.conf", "radvd.pid"].map(|name| folder.path().join(name));
        let text = format!(
            "interface {} {{ AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; \
             AdvLinkMTU 1400; prefix 2001:db8:5::/64 {{ AdvOnLink on; AdvAutonomous on; }}; }};\n",
            interface.name()
        );
        fs::write(&config, text).unwrap();
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        let started = Command::new("radvd")
            .args(["--nodaemon", "--logmethod", "stderr", "--config"])
            .arg(config)
            .arg("--pidfile")
            .arg(process)
            .stderr(Stdio::piped())
            .spawn();
        match started {
            Ok(child) => Some(Self { child, folder }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                skip_test(&"radvd is not installed: apt-get install radvd");
                None
            }
            Err(error) => panic!("radvd: {error}"),
        }
    }

    /// Ends the daemon, and returns what it has printed.
    fn end(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut text = String::new();
        let stderr = self.child.stderr.take();
        stderr.map(|mut stderr| stderr.read_to_string(&mut text).unwrap());
        format!("{text} ({})", self.folder.path().display())
    }
}

impl Drop for Radvd {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn network(captured: &Captured) -> Option<(Net, KernelInterface)> {
    let tap = open(&TapConfig { offloads: false, ..TapConfig::default() })?;
    let interface = tap.interface().clone();
    interface.add_address(KERNEL, 64).unwrap();
    interface.set_up().unwrap();
    let loopback = KernelInterface::loopback().unwrap();
    loopback.set_up().unwrap();
    loopback.add_address(BEHIND, 128).unwrap();
    let mac = "02:00:00:00:00:02".parse().unwrap();
    let mut config = StackConfig::new(mac, "10.0.0.2/24".parse().unwrap()).shared_network();
    config.addresses.clear();
    config.ipv6_autoconfiguration = Some(Autoconfiguration::STABLE.with_temporary_addresses());
    Some((captured.start(tap, config), interface))
}

fn address_of(net: &Net, origin: AddressOrigin) -> Ipv6Addr {
    let addresses = net.addresses().unwrap();
    let found = addresses.iter().find(|own| own.origin == origin);
    match found.map(|own| own.cidr.address()) {
        Some(IpAddr::V6(address)) => address,
        _ => panic!("no {origin} address in {addresses:?}"),
    }
}

#[test]
fn a_host_takes_addresses_and_a_router_from_radvd_and_connects_in_both_directions() {
    isolated_test(|| {
        let captured = Captured::new();
        let Some((net, interface)) = network(&captured) else { return };
        let Some(mut radvd) = Radvd::start(&interface) else { return };
        if let Err(error) = net.wait_for_addresses(DEADLINE) {
            panic!("{error}: {:?}, {}", net.addresses(), radvd.end());
        }
        let stable = address_of(&net, AddressOrigin::Stable);
        let temporary = address_of(&net, AddressOrigin::Temporary);
        assert_eq!(stable.segments()[..4], KERNEL.segments()[..4]);
        // The kernel pings our host's stable address, and must resolve its MAC address to do so.
        // Packets of our host come from the temporary address, so they do not give the kernel the
        // MAC address of the stable one. If no `ping` is installed, this check is skipped.
        let mut ping = Command::new("ping");
        ping.args(["-6", "-c", "3", "-i", "0.2", "-W", "9"]).arg(stable.to_string());
        if let Ok(pinged) = ping.output() {
            let text = String::from_utf8_lossy(&pinged.stdout);
            assert!(text.contains(" 0% packet loss"), "{text}");
        }
        for kernel in [KERNEL, BEHIND] {
            let listener = TcpListener::bind((kernel, 0)).unwrap();
            let ours = net.connect(listener.local_addr().unwrap()).unwrap();
            let (kernels, peer) = listener.accept().unwrap();
            assert_eq!(peer.ip(), temporary, "a temporary address is preferred");
            upload(&ours, &kernels, 1 << 20);
            // The router advertises an MTU of 1,400 bytes. The segment size is this MTU less 60
            // bytes of headers and 12 bytes of timestamps.
            assert_eq!(ours.tcp_info().unwrap().effective_mss, 1_400 - 60 - 12);
            let listener = net.bind("[::]:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let kernels = TcpStream::connect((stable, port)).unwrap();
            let (ours, _) = listener.accept().unwrap();
            download(&ours, &kernels, 1 << 20);
        }
        let counters = net.counters().unwrap();
        assert_eq!(counters.neighbor_discovery.duplicates, 0);
        assert_eq!((counters.icmp.in_errors, counters.ip.in_header_errors), (0, 0));
        // The capture must contain router and neighbour solicitations and advertisements, and
        // multicast listener reports.
        captured.end(&net, &[133, 134, 135, 136, 143].map(|kind| format!("icmpv6.type == {kind}")));
    });
}

/// The kernel probes whether its neighbours are reachable, and stops sending to one that does not
/// answer (RFC 4861 §7.3). The test transfers data until our host has answered three probes.
#[test]
fn the_probes_of_the_kernel_are_answered() {
    isolated_test(|| {
        let captured = Captured::new();
        let Some((net, interface)) = network(&captured) else { return };
        // With these settings, the kernel considers a neighbour stale about 10 ms after its last
        // confirmation. A packet to a stale neighbour then causes a probe at once, without the
        // usual delay.
        let folder = format!("/proc/sys/net/ipv6/neigh/{}", interface.name());
        for (name, value) in [("base_reachable_time_ms", "10"), ("delay_first_probe_time", "0")] {
            fs::write(format!("{folder}/{name}"), value).unwrap();
        }
        net.add_address("2001:db8:5::2/64".parse().unwrap(), &Default::default()).unwrap();
        let ours: Ipv6Addr = "2001:db8:5::2".parse().unwrap();
        let deadline = std::time::Instant::now() + DEADLINE;
        let listener = loop {
            match net.bind((ours, 0)) {
                Ok(listener) => break listener,
                Err(error) if std::time::Instant::now() > deadline => panic!("{error}"),
                Err(_) => std::thread::yield_now(),
            }
        };
        let kernels = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let before = net.counters().unwrap().neighbor.out_replies;
        while net.counters().unwrap().neighbor.out_replies < before + 3 {
            (&stream).write_all(&[7; 1_000]).unwrap();
            (&kernels).read_exact(&mut [0; 1_000]).unwrap();
            assert!(std::time::Instant::now() < deadline, "the kernel does not probe");
        }
    });
}
