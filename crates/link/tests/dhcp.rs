//! Tests of the DHCP client of a host on a TAP device, with Debian's dnsmasq as the server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_link::capture_file::CaptureWriter;
use linerate_link::namespace::{isolated_test, skip_test};
use linerate_link::tap::TapError;
use linerate_link::{Capture, MonotonicClock, Tap, TapConfig, Waiter};
use linerate_stack::{DhcpConfig, DhcpLease, Event, Host, Stack, StackConfig};
use linerate_testkit::tshark;
use linerate_units::{Clock, Instant};
use linerate_wire::MacAddress;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// A running dnsmasq. Dropping this value kills it.
struct Server {
    child: Child,
    leases: PathBuf,
}

impl Server {
    /// Starts dnsmasq on the interface, with the additional options `options`. If dnsmasq is not
    /// installed, skips the test and returns `None`.
    fn start(interface: &str, options: &[&str]) -> Option<Self> {
        let leases = std::env::temp_dir().join(format!("linerate-{}.leases", std::process::id()));
        let mut command = Command::new("dnsmasq");
        command
            .args(["--no-daemon", "--conf-file=/dev/null", "--port=0"])
            .args(["--log-facility=-", "--bind-interfaces", "--no-ping"])
            .arg("--dhcp-authoritative")
            .arg("--dhcp-range=10.0.0.50,10.0.0.50,255.255.255.0,2m")
            .arg(format!("--interface={interface}"))
            .arg(format!("--dhcp-leasefile={}", leases.display()))
            .args(options)
            .stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skip_test(&"`dnsmasq` is not installed: it is in the package dnsmasq-base");
                return None;
            }
            spawned => spawned.unwrap(),
        };
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut output = Vec::new();
        // dnsmasq is ready once it has printed its address range. From then on, a thread reads its
        // output, because dnsmasq would block if the pipe were full.
        loop {
            let Some(line) = lines.next() else { panic!("dnsmasq has ended: {output:#?}") };
            output.push(line.unwrap());
            if output.last().is_some_and(|line| line.contains("IP range")) {
                break;
            }
        }
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Some(Self { child, leases })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.leases);
    }
}

/// The name of the capture in its folder.
const CAPTURE: &str = "dhcp.pcapng";

/// A host on a TAP device that gets its address by DHCP.
struct Client {
    host: Host<Capture<Tap>>,
    waiter: Waiter,
    folder: tempfile::TempDir,
}

impl Client {
    fn new(tap: Tap, config: DhcpConfig) -> Self {
        let config = StackConfig::unconfigured(MacAddress::new([2, 0, 0, 0, 0, 2])).dhcp(config);
        let folder = tempfile::tempdir().unwrap();
        let capture = CaptureWriter::create(folder.path().join(CAPTURE)).unwrap();
        let host = Host::new(Stack::new(config, [7; 32]), Capture::new(tap, "lr0", capture));
        Self { host, waiter: Waiter::new().unwrap(), folder }
    }

    /// Completes the capture. Checks that tshark accepts all its frames, and that each display
    /// filter in `expected` matches at least one of them.
    fn end(self, expected: &[&str]) {
        self.host.into_parts().1.into_parts().1.finish().unwrap();
        let unwanted = "_ws.expert.severity >= \"Warning\"";
        tshark::assert_accepts(&self.folder.path().join(CAPTURE), unwanted, expected);
    }

    /// Runs the host until `done` returns true.
    fn run(&mut self, done: impl Fn(&Stack) -> bool) {
        while !done(self.host.stack()) || self.host.stack().wants_transmit() {
            let turn = self.host.turn(MonotonicClock.now()).unwrap();
            if !turn.more && !self.host.stack().wants_transmit() && !done(self.host.stack()) {
                self.waiter.wait(self.host.link_mut(), turn.next).unwrap();
            }
        }
    }

    /// Runs the host until it has a lease that it requested after `time`, and returns this lease.
    fn lease_after(&mut self, time: Instant) -> DhcpLease {
        self.run(|stack| stack.dhcp_lease().is_some_and(|lease| lease.since > time));
        self.host.stack().dhcp_lease().unwrap().clone()
    }
}

/// Opens a TAP device, and gives the server's address to its kernel interface.
fn tap() -> Option<Tap> {
    let tap = match Tap::open(&TapConfig { offloads: false, ..TapConfig::default() }) {
        Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
            skip_test(&error);
            return None;
        }
        opened => opened.unwrap(),
    };
    tap.interface().disable_ipv6().unwrap();
    tap.interface().add_address(SERVER, 24).unwrap();
    tap.interface().set_up().unwrap();
    Some(tap)
}

#[test]
fn dnsmasq_grants_renews_and_takes_back_an_address() {
    isolated_test(|| {
        let Some(tap) = tap() else { return };
        let options = [
            "--dhcp-option=option:dns-server,192.0.2.53,192.0.2.54",
            "--dhcp-option=option:domain-name,example.org",
            "--dhcp-option=option:mtu,1400",
            // Renewal is due after three seconds, the shortest time that dnsmasq accepts.
            "--dhcp-option=option:T1,3",
            "--dhcp-option=option:T2,6",
        ];
        let Some(server) = Server::start(tap.interface().name(), &options) else { return };
        let mut client = Client::new(tap, DhcpConfig::new());
        let lease = client.lease_after(Instant::ZERO);
        assert_eq!((lease.address.to_string(), lease.server), ("10.0.0.50/24".to_owned(), SERVER));
        assert_eq!(lease.expires_at.since(lease.since).as_millis(), 120_000);
        assert_eq!(lease.renew_at.since(lease.since).as_millis(), 3_000);
        let dns: [Ipv4Addr; 2] = [[192, 0, 2, 53].into(), [192, 0, 2, 54].into()];
        assert_eq!((&lease.dns_servers[..], lease.mtu), (&dns[..], Some(1_400)));
        assert_eq!(
            (lease.domain.as_deref(), &lease.routers[..]),
            (Some("example.org"), &[SERVER][..])
        );

        let renewed = client.lease_after(lease.since);
        assert!(renewed.since >= lease.renew_at && renewed.since < lease.rebind_at);
        assert_eq!(renewed.address, lease.address);
        let counters = client.host.stack().counters().dhcp;
        assert_eq!((counters.in_naks, counters.out_declines, counters.in_errors), (0, 0, 0));

        // The echo reply shows that the host can be reached at the leased address.
        client.host.stack_mut().echo_send(MonotonicClock.now(), SERVER, 1, 1, b"data").unwrap();
        client.run(|stack| stack.counters().icmp.in_echo_replies > 0);
        assert_eq!(fs::read_to_string(&server.leases).unwrap().lines().count(), 1);
        client.host.stack_mut().dhcp_release(MonotonicClock.now());
        client.run(|stack| stack.addresses().is_empty());
        // Wait until the server has received the release and removed the lease from its file.
        while !fs::read_to_string(&server.leases).unwrap().is_empty() {}
        let events = std::iter::from_fn(|| client.host.stack_mut().poll_event());
        assert!(events.into_iter().any(|event| event == Event::Dhcp));
        client.end(&["dhcp.option.dhcp == 1", "dhcp.option.dhcp == 3", "dhcp.option.dhcp == 7"]);
    });
}

#[test]
fn dnsmasq_refuses_an_address_of_another_network_and_grants_its_own() {
    isolated_test(|| {
        let Some(tap) = tap() else { return };
        let Some(_server) = Server::start(tap.interface().name(), &[]) else { return };
        let mut config = DhcpConfig::new();
        config.previous = Some(Ipv4Addr::new(192, 0, 2, 77));
        let mut client = Client::new(tap, config);
        let lease = client.lease_after(Instant::ZERO);
        assert_eq!(lease.address.to_string(), "10.0.0.50/24");
        assert_eq!(client.host.stack().counters().dhcp.in_naks, 1);
        client.end(&["dhcp.option.dhcp == 6"]);
    });
}

/// The server can offer only one address. The kernel has this address too, and answers the host's
/// ARP probe for it, so the host must decline the address.
#[test]
fn an_address_that_the_kernel_has_is_declined() {
    isolated_test(|| {
        let Some(tap) = tap() else { return };
        tap.interface().add_address(Ipv4Addr::new(10, 0, 0, 50), 32).unwrap();
        let Some(_server) = Server::start(tap.interface().name(), &[]) else { return };
        let mut client = Client::new(tap, DhcpConfig::new());
        client.run(|stack| stack.counters().dhcp.out_declines > 0);
        assert_eq!(client.host.stack().dhcp_lease(), None);
    });
}
