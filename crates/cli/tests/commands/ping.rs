//! Tests of `linerate ping`. In most tests, linerate's host sends echo requests to the kernel.

use super::support::{Background, linerate, run};
use linerate_link::capture_file::CaptureReader;
use linerate_link::namespace::{
    Isolation, Network, isolated_test, isolated_test_of_root, probe, skip_test,
};
use linerate_link::{KernelInterface, Tap, TapConfig};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Can this machine create a TAP device in a private network? If not, prints that the test is
/// skipped.
fn has_tap() -> bool {
    let device = File::options().read(true).write(true).open("/dev/net/tun");
    if let Err(error) = device {
        skip_test(&format!("/dev/net/tun cannot be opened: {error}"));
        return false;
    }
    if let Err(error) = probe(Isolation::UserAndNetwork) {
        skip_test(&error);
        return false;
    }
    true
}

#[test]
fn the_kernel_answers_in_a_private_network() {
    the_kernel_answers("10.1.2.3");
}

#[test]
fn the_kernel_answers_over_ipv6_in_a_private_network() {
    the_kernel_answers("2001:db8::3");
}

fn the_kernel_answers(address: &str) {
    if !has_tap() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("ping.pcapng");
    let words = ["ping", address, "--count", "5", "--interval", "0", "--size", "1000", "--pcap"];
    let words: Vec<&str> = words.into_iter().chain(pcap.to_str()).collect();
    let (code, stdout, stderr) = run(&words);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let reply = format!("1008 bytes from {address}: icmp_seq=");
    let replies = stdout.lines().filter(|line| line.starts_with(&reply));
    assert_eq!(replies.count(), 5, "{stdout}");
    assert!(stdout.contains("5 packets transmitted, 5 received, 0% packet loss"), "{stdout}");
    assert!(stdout.contains("rtt min/avg/max/mdev = "), "{stdout}");
    let mut reader = CaptureReader::open(&pcap).unwrap();
    let mut packets = 0;
    while reader.next_packet().unwrap().is_some() {
        packets += 1;
    }
    assert!(packets >= 10, "five requests, five replies, and those of the neighbour");
}

#[test]
fn an_endless_ping_ends_with_statistics_on_ctrl_c() {
    if !has_tap() {
        return;
    }
    let mut ping = Background::start(&["ping", "10.1.2.3", "--interval", "1ms"]);
    assert!(
        ping.line().starts_with("PING 10.1.2.3 (10.1.2.3), 56 bytes of data, from 10.1.2.4 on lr0")
    );
    assert!(ping.line().starts_with("64 bytes from 10.1.2.3: icmp_seq=1 ttl=64 time="));
    let (lines, code) = ping.interrupt();
    assert!(lines.iter().any(|line| line.contains("packets transmitted")), "{lines:?}");
    assert_eq!(code, 0);
}

#[test]
fn an_endless_ping_ends_when_its_pipe_is_closed() {
    if !has_tap() {
        return;
    }
    let mut ping =
        linerate(&["ping", "10.1.2.3", "--interval", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    ping.stdout.take().unwrap().read_exact(&mut [0; 4]).unwrap();
    assert_eq!(ping.wait().unwrap().code(), Some(0));
}

#[test]
fn a_destination_without_a_route_needs_a_gateway() {
    isolated_test(|| {
        let _veth = veth_pair();
        let words = ["ping", "192.0.2.1", "--on", "packet:near0", "--address", "10.9.0.7/24"];
        let (code, stdout, stderr) = run(&words);
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert_eq!(
            stderr,
            "error: no route leads to 192.0.2.1: name the router with --gateway ADDR\n"
        );
    });
}

#[test]
fn an_existing_interface_is_used_and_not_changed() {
    isolated_test(|| {
        let Ok(tap) = Tap::open(&TapConfig { name: "lab0".to_owned(), ..TapConfig::default() })
        else {
            return skip_test(&"no TAP device can be made");
        };
        let words =
            ["ping", "10.9.0.1", "--on", "tap:lab0", "--address", "10.9.0.7/24", "--count", "1"];
        let busy = run(&words);
        assert!(busy.0 == 2 && busy.2.contains("in use by another program"), "{busy:?}");
        drop(tap);
        let gone = run(&words);
        assert!(gone.0 == 2 && gone.2.contains("ip tuntap add"), "{gone:?}");
        assert!(KernelInterface::named("lab0").is_err(), "no interface was created");
    });
}

#[test]
fn a_host_takes_its_address_from_a_router() {
    isolated_test(|| {
        let mut ip = Command::new("ip");
        let created = ip.args(["tuntap", "add", "mode", "tap", "name", "lab0"]).status();
        if !created.is_ok_and(|status| status.success()) {
            return skip_test(&"no TAP device can be made with `ip tuntap`");
        }
        let interface = KernelInterface::named("lab0").unwrap();
        interface.add_address("2001:db8:5::1".parse::<Ipv6Addr>().unwrap(), 64).unwrap();
        interface.set_up().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("radvd.conf");
        let text = "interface lab0 { AdvSendAdvert on; IgnoreIfMissing on; MinRtrAdvInterval 3; \
                    MaxRtrAdvInterval 4; prefix 2001:db8:5::/64 {}; };\n";
        fs::write(&config, text).unwrap();
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        let mut radvd = Command::new("radvd");
        radvd.args(["--nodaemon", "--logmethod", "none", "--config"]).arg(config);
        let Ok(mut radvd) = radvd.arg("--pidfile").arg(folder.path().join("pid")).spawn() else {
            return skip_test(&"radvd is not installed: apt-get install radvd");
        };
        let words = ["ping", "2001:db8:5::1", "--on", "tap:lab0", "--autoconf", "--count", "2"];
        let (code, stdout, stderr) = run(&words);
        radvd.kill().unwrap();
        radvd.wait().unwrap();
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        assert!(stdout.contains("2 packets transmitted, 2 received"), "{stdout}");
        assert!(stdout.contains(", from 2001:db8:5:0:"), "{stdout}");
    });
}

/// A DHCP server in the network of the test. The server is killed when this value is dropped.
struct DhcpServer(Child);

impl DhcpServer {
    /// Starts dnsmasq on an interface. If dnsmasq is not installed, prints a message and returns
    /// `None`.
    fn start(interface: &str, folder: &Path) -> Option<Self> {
        let mut command = Command::new("dnsmasq");
        command
            .args(["--no-daemon", "--conf-file=/dev/null", "--port=0", "--log-facility=-"])
            .args(["--bind-interfaces", "--no-ping", "--dhcp-authoritative"])
            .args(["--dhcp-range=10.9.0.50,10.9.0.50,255.255.255.0,2m"])
            .arg("--dhcp-option=option:dns-server,192.0.2.53")
            .arg(format!("--interface={interface}"))
            .arg(format!("--dhcp-leasefile={}", folder.join("leases").display()))
            .stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skip_test(&"`dnsmasq` is not installed: it is in the package dnsmasq-base");
                return None;
            }
            spawned => spawned.unwrap(),
        };
        // When dnsmasq has printed the address range, it serves clients, and the test can begin. A
        // thread reads all later output, because a full pipe would block dnsmasq.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("IP range")), "dnsmasq has ended");
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self(child))
    }
}

impl Drop for DhcpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_host_takes_its_address_from_dnsmasq() {
    isolated_test(|| {
        let mut ip = Command::new("ip");
        let created = ip.args(["tuntap", "add", "mode", "tap", "name", "lab0"]).status();
        if !created.is_ok_and(|status| status.success()) {
            return skip_test(&"no TAP device can be made with `ip tuntap`");
        }
        let interface = KernelInterface::named("lab0").unwrap();
        interface.disable_ipv6().unwrap();
        interface.add_address(Ipv4Addr::new(10, 9, 0, 1), 24).unwrap();
        interface.set_up().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let Some(_server) = DhcpServer::start("lab0", folder.path()) else { return };
        let words = ["ping", "10.9.0.1", "--on", "tap:lab0", "--dhcp", "--count", "2"];
        let (code, stdout, stderr) = run(&[&words[..], &["--interval", "0"]].concat());
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        let lease = "DHCP: 10.9.0.50/24 from 10.9.0.1 for 120 s, router 10.9.0.1, DNS 192.0.2.53\n";
        assert!(stdout.starts_with(lease), "{stdout}");
        assert!(stdout.contains(", from 10.9.0.50 on tap:lab0"), "{stdout}");
        assert!(stdout.contains("2 packets transmitted, 2 received"), "{stdout}");
    });
}

#[test]
fn another_host_answers_on_a_serial_line() {
    for address in ["10.1.2.3", "2001:db8::3"] {
        let words = ["ping", address, "--on", "serial:115200", "--count", "3", "--interval", "0"];
        let (code, stdout, stderr) = run(&words);
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        assert!(stdout.contains("on serial:115200 (a pseudo-terminal with header compression)"));
        assert!(stdout.contains("3 packets transmitted, 3 received"), "{stdout}");
    }
}

#[test]
fn typed_characters_are_measured_with_and_without_header_compression() {
    let words = ["ping", "10.1.2.3", "--on", "serial:115200", "--typed", "--count", "5"];
    let (code, stdout, stderr) = run(&words);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let rows: Vec<_> = stdout.lines().filter(|line| line.starts_with('o')).collect();
    assert!(rows.len() == 2 && rows[0].starts_with("on") && rows[1].starts_with("off"), "{stdout}");
    let (code, stdout, _) = run(&[&words[..], &["--header-compression", "off"]].concat());
    assert!(code == 0 && !stdout.contains("\non "), "{stdout}");
}

#[test]
fn a_device_that_is_no_free_terminal_is_one_line_and_exit_code_2() {
    let ping = |device: &str| {
        let on = format!("serial:{device}@2400");
        let words = ["ping", "10.1.2.3", "--on", &on, "--address", "10.1.2.4/24"];
        let (code, stdout, stderr) = run(&words);
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (2, "", 1), "{stderr}");
        stderr
    };
    assert!(ping("/dev/null").contains("/dev/null is no terminal"));
    assert!(ping("/dev/no-such-tty").contains("there is no device /dev/no-such-tty"));
}

#[test]
fn the_kernel_answers_on_a_tun_device() {
    if !has_tap() {
        return;
    }
    let (code, stdout, stderr) = run(&["ping", "10.1.2.3", "--on", "tun", "--count", "2"]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.contains("2 packets transmitted, 2 received"), "{stdout}");
}

/// On a TUN device, no neighbour discovery precedes the first packet. The kernel must therefore
/// already be able to use its new IPv6 address when that packet arrives, or it would not reply.
#[test]
fn the_first_request_over_ipv6_on_a_tun_device_is_answered() {
    if !has_tap() {
        return;
    }
    for _ in 0..10 {
        let words = ["ping", "2001:db8::3", "--on", "tun", "--count", "1"];
        let (code, stdout, stderr) = run(&words);
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    }
}

/// Creates a veth pair, `near0` and `far0`. The kernel has the address 10.9.0.1 at the far end.
fn veth_pair() -> Network {
    Network::behind_veth(["near0", "far0"], Ipv4Addr::new(10, 9, 0, 1)).unwrap().1
}

/// Sends three echo requests over `link` to the kernel at the far end of the veth pair.
fn ping_over(link: &str) -> (i32, String, String) {
    let words = [
        "ping",
        "10.9.0.1",
        "--on",
        link,
        "--address",
        "10.9.0.7/24",
        "--count",
        "3",
        "--interval",
        "0",
    ];
    run(&words)
}

#[test]
fn an_interface_is_shared_with_the_kernel_through_a_packet_socket() {
    isolated_test(|| {
        let _network = veth_pair();
        let (code, stdout, stderr) = ping_over("packet:near0");
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        assert!(stdout.contains("from 10.9.0.7 on packet:near0 (a packet socket)\n"), "{stdout}");
        assert!(stdout.contains("3 packets transmitted, 3 received"), "{stdout}");
        let (code, _, stderr) = ping_over("packet:none0");
        assert!(code == 2 && stderr.contains("no interface `none0`"), "{stderr}");
    });
}

#[test]
fn an_interface_is_shared_with_the_kernel_through_af_xdp() {
    isolated_test_of_root(|| {
        let _network = veth_pair();
        let (code, stdout, stderr) = ping_over("xdp:near0");
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        assert!(stdout.contains("from 10.9.0.7 on xdp:near0:0 (AF_XDP with copies)\n"), "{stdout}");
        assert!(stdout.contains("3 packets transmitted, 3 received"), "{stdout}");
        let (code, _, stderr) = ping_over("xdp:near0:7");
        assert!(code == 2 && stderr.contains("`near0` has no queue 7"), "{stderr}");
    });
}

/// The command creates the capture file late: the device exists and the requests are built by then.
/// If the file cannot be written, the command must nevertheless print nothing but the error.
#[test]
fn a_capture_that_cannot_be_written_prints_only_the_error() {
    if !has_tap() {
        return;
    }
    let (code, stdout, stderr) = run(&["ping", "10.1.2.3", "--count", "1", "--pcap", "/"]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains("/ cannot be written (Is a directory"), "{stderr}");
}

#[test]
fn the_largest_request_is_sent_in_fragments() {
    if !has_tap() {
        return;
    }
    let (code, stdout, stderr) = run(&["ping", "10.1.2.3", "--count", "1", "--size", "65507"]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.contains("65515 bytes from 10.1.2.3"), "{stdout}");
}

#[test]
fn an_unanswered_ping_has_exit_code_1() {
    if !has_tap() {
        return;
    }
    let words = ["ping", "10.1.2.3", "--address", "10.1.2.9/30", "--count", "1"];
    let (code, _, stderr) = run(&words);
    assert!(code == 2 && stderr.contains("not on the network"), "{stderr}");
    // No reply can arrive within 1 ns, so the request counts as lost.
    let words = ["ping", "10.1.2.3", "--count", "1", "--timeout", "1ns"];
    let output = linerate(&words).stdout(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn invalid_arguments_are_one_line_and_exit_code_2() {
    for (words, expected_text) in [
        (&["ping"][..], "<HOST>"),
        (&["ping", "10.0.0.1", "--on", "eth0"], "write tap, tun or serial:BAUD"),
        (&["ping", "10.0.0.1", "--on", "serial:0"], "`0` is no rate of a serial line"),
        (&["ping", "10.0.0.1", "--on", "serial:/dev/null"], "give --address"),
        (&["ping", "10.0.0.1", "--typed"], "--typed measures a serial line"),
        (&["ping", "10.0.0.1", "--vlan", "5"], "no meaning in a private network"),
        (&["ping", "10.0.0.1", "--on", "serial:2400", "--vlan", "5"], "no VLAN tags"),
        (&["ping", "10.0.0.1", "--on", "serial:2400", "--mtu", "87"], "choose 88 to 1500"),
        (&["ping", "2001:db8::1", "--on", "serial:2400", "--mtu", "576"], "needs an MTU of 1280"),
        (&["ping", "10.0.0.1", "--vlan", "0"], "from 1 to 4094"),
        (&["ping", "10.0.0.1", "--vlan", "4095"], "from 1 to 4094"),
        (&["ping", "10.0.0.1", "--on", "xdp:eth0:x"], "`x` is not a queue"),
        (&["ping", "10.0.0.255"], "cannot be the address of a host"),
        (&["ping", "127.0.0.1"], "cannot be the address of a host"),
        (&["ping", "no-such-host.invalid"], "has no IPv4 address"),
        (&["ping", "fe80::1%nosuch"], "this machine has no interface `nosuch`"),
        (&["ping", "10.0.0.1%lo"], "has no zone"),
        (&["ping", "10.0.0.1", "--on", "tap:none0"], "give --address"),
        (&["ping", "10.0.0.1", "--address", "10.0.0.1/24"], "the address of HOST itself"),
        (&["ping", "10.0.0.1", "--address", "10.0.0.2"], "with its prefix length"),
        (&["ping", "10.0.0.1", "--address", "10.0.0.255/24"], "10.0.0.255 is reserved"),
        (&["ping", "10.0.0.1", "--address", "0.0.0.0/0"], "0.0.0.0 is reserved"),
        (&["ping", "10.0.0.1", "--address", "127.0.0.1/8"], "127.0.0.1 is reserved"),
        (&["ping", "10.0.0.1", "--address", "2001:db8::2/64"], "different IP versions"),
        (&["ping", "2001:db8::1", "--address", "2001:db8::2/129"], "with its prefix length"),
        (&["ping", "2001:db8::1", "--address", "ff02::2/64"], "ff02::2 is reserved"),
        (&["ping", "2001:db8::1", "--gateway", "10.0.0.9"], "different IP versions"),
        (&["ping", "ff02::1"], "cannot be the address of a host"),
        (&["ping", "2001:db8::1", "--dhcp"], "gives an IPv4 address"),
        (&["ping", "10.0.0.1", "--dhcp"], "needs an interface with a DHCP server"),
        (&["ping", "10.0.0.1", "--dhcp", "--on", "tun"], "needs an interface with a DHCP server"),
        (&["ping", "10.0.0.1", "--dhcp", "--on", "tun:lab0"], "tun:lab0 has none"),
        (&["ping", "10.0.0.1", "--dhcp", "--on", "serial:2400"], "an interface with a DHCP server"),
        (&["ping", "10.0.0.1", "--dhcp", "--on", "serial:/dev/null@2400"], "with Ethernet frames"),
        (&["ping", "10.0.0.1", "--dhcp", "--on", "xdp:lo"], "use --on packet:NAME"),
        (&["ping", "10.0.0.1", "--dhcp", "--on", "serial:2400", "--typed"], "with a DHCP server"),
        (&["trace", "10.0.0.1", "--dhcp", "--on", "tun:lab0"], "tun:lab0 has none"),
        (&["ping", "10.0.0.1", "--autoconf"], "gives IPv6 addresses"),
        (&["ping", "2001:db8::1", "--autoconf"], "needs a link with a router"),
        (&["ping", "2001:db8::1", "--autoconf", "--on", "packet:lo"], "a MAC address of its own"),
        (&["ping", "10.0.0.1", "--size", "70000"], "the maximum is 65507"),
        (&["ping", "10.0.0.1", "--count", "0"], "from 1 to"),
    ] {
        let (code, stdout, stderr) = run(words);
        assert_eq!((code, stdout.as_str()), (2, ""), "{words:?}: {stderr}");
        assert!(
            stderr.contains(expected_text) && stderr.trim_end().lines().count() == 1,
            "{words:?}: {stderr}"
        );
    }
}
