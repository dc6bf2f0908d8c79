//! Tests of a host on a TAP device, with the kernel as its peer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_link::capture_file::{CaptureReader, CaptureWriter};
use linerate_link::namespace::{isolated_test, skip_test};
use linerate_link::tap::TapError;
use linerate_link::{Capture, MonotonicClock, Tap, TapConfig, Waiter};
use linerate_stack::{Event, Host, Stack, StackConfig, UdpEvent, UdpOptions};
use linerate_testkit::tshark;
use linerate_units::Clock;
use linerate_wire::{IpCidr, MacAddress};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV6, UdpSocket};
use std::path::Path;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const KERNEL_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const OURS_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// A host that sends every received datagram back, and records the data of received echo replies.
struct EchoHost {
    host: Host<Capture<Tap>>,
    waiter: Waiter,
    datagrams: usize,
    replies: Vec<Vec<u8>>,
}

impl EchoHost {
    fn new(tap: Tap, path: &Path) -> Self {
        Self::at(OURS.into(), 24, tap, path)
    }

    fn at(own: IpAddr, prefix_length: u8, tap: Tap, path: &Path) -> Self {
        let cidr = IpCidr::new(own, prefix_length).unwrap();
        let mut stack =
            Stack::new(StackConfig::new(MacAddress::new([2, 0, 0, 0, 0, 2]), cidr), [7; 32]);
        stack.udp_bind((own, 7), &UdpOptions::default()).unwrap();
        let link = Capture::new(tap, "lr0", CaptureWriter::create(path).unwrap());
        let waiter = Waiter::new().unwrap();
        Self { host: Host::new(stack, link), waiter, datagrams: 0, replies: Vec::new() }
    }

    /// Runs the host until `done` returns true.
    fn run(&mut self, done: impl Fn(&Self) -> bool) {
        loop {
            let now = MonotonicClock.now();
            let turn = self.host.turn(now).unwrap();
            self.serve();
            if done(self) && !self.host.stack().wants_transmit() {
                return;
            }
            if !turn.more && !self.host.stack().wants_transmit() {
                self.waiter.wait(self.host.link_mut(), turn.next).unwrap();
            }
        }
    }

    fn serve(&mut self) {
        let now = MonotonicClock.now();
        let stack = self.host.stack_mut();
        while let Some(event) = stack.poll_event() {
            match event {
                Event::Udp(socket, UdpEvent::Readable) => {
                    let mut bytes = vec![0; 65_536];
                    while let Ok((length, from)) = stack.udp_receive_from(socket, &mut bytes) {
                        stack.udp_send_to(now, socket, from, &bytes[..length]).unwrap();
                        self.datagrams += 1;
                    }
                }
                Event::EchoReply(reply) => self.replies.push(reply.data),
                _ => {}
            }
        }
    }
}

fn tap() -> Option<Tap> {
    let tap = open()?;
    tap.interface().disable_ipv6().unwrap();
    tap.interface().add_address(KERNEL, 24).unwrap();
    tap.interface().set_up().unwrap();
    Some(tap)
}

fn open() -> Option<Tap> {
    // The device has no offloads, so all captured frames have complete checksums.
    match Tap::open(&TapConfig { offloads: false, ..TapConfig::default() }) {
        Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
            skip_test(&error);
            None
        }
        opened => Some(opened.unwrap()),
    }
}

#[test]
fn datagrams_and_echoes_are_exchanged_without_malformed_packets() {
    isolated_test(|| {
        let Some(tap) = tap() else { return };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.pcapng");
        let mut ours = EchoHost::new(tap, &path);
        let kernel = UdpSocket::bind((KERNEL, 0)).unwrap();
        kernel.connect((OURS, 7)).unwrap();
        for size in 0..=1_472 {
            let sent: Vec<_> = (0..size).map(|at: usize| at.to_le_bytes()[0]).collect();
            kernel.send(&sent).unwrap();
            ours.run(|host| host.datagrams == size + 1);
            let mut back = [0; 2_000];
            let length = kernel.recv(&mut back).unwrap();
            assert_eq!(back[..length], sent);
        }
        for sequence in 0..3 {
            let now = MonotonicClock.now();
            ours.host.stack_mut().echo_send(now, KERNEL, 1, sequence, &[5; 56]).unwrap();
            ours.run(|host| host.replies.len() == usize::from(sequence) + 1);
        }
        assert_eq!(ours.replies, vec![vec![5; 56]; 3]);
        let (_, link) = ours.host.into_parts();
        link.into_parts().1.finish().unwrap();
        check_capture(&path, 2 * 1_473 + 6 + 2);
    });
}

#[test]
fn datagrams_and_echoes_are_exchanged_over_ipv6_without_malformed_packets() {
    isolated_test(|| {
        let Some(tap) = open() else { return };
        tap.interface().add_address(KERNEL_IPV6, 64).unwrap();
        tap.interface().set_up().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.pcapng");
        let mut ours = EchoHost::at(OURS_IPV6.into(), 64, tap, &path);
        let kernel = UdpSocket::bind((KERNEL_IPV6, 0)).unwrap();
        kernel.connect((OURS_IPV6, 7)).unwrap();
        for (count, size) in (1..).zip([0, 1, 2, 500, 1_451, 1_452]) {
            let sent: Vec<_> = (0..size).map(|at: usize| at.to_le_bytes()[0]).collect();
            kernel.send(&sent).unwrap();
            ours.run(|host| host.datagrams == count);
            let mut back = [0; 2_000];
            let length = kernel.recv(&mut back).unwrap();
            assert_eq!(back[..length], sent);
        }
        for sequence in 0..3 {
            let now = MonotonicClock.now();
            ours.host.stack_mut().echo_send(now, KERNEL_IPV6, 1, sequence, &[5; 56]).unwrap();
            ours.run(|host| host.replies.len() == usize::from(sequence) + 1);
        }
        assert_eq!(ours.replies, vec![vec![5; 56]; 3]);
        ping_from_the_kernel(&mut ours, 4);
        let (_, link) = ours.host.into_parts();
        link.into_parts().1.finish().unwrap();
        check_capture(&path, 2 * 6 + 2 * 4);
    });
}

#[test]
fn large_datagrams_and_echoes_are_exchanged_in_fragments() {
    isolated_test(|| {
        for (own, kernel, prefix_length) in
            [(IpAddr::V4(OURS), IpAddr::V4(KERNEL), 24), (OURS_IPV6.into(), KERNEL_IPV6.into(), 64)]
        {
            let Some(tap) = open() else { return };
            tap.interface().add_address(kernel, prefix_length).unwrap();
            tap.interface().set_up().unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("host.pcapng");
            let mut ours = EchoHost::at(own, prefix_length, tap, &path);
            let kernels = UdpSocket::bind((kernel, 0)).unwrap();
            kernels.connect((own, 7)).unwrap();
            for (count, size) in (1..).zip([1_473, 8_000, 60_000]) {
                let sent: Vec<_> = (0..size).map(|at: usize| at.to_le_bytes()[0]).collect();
                kernels.send(&sent).unwrap();
                ours.run(|host| host.datagrams == count);
                let mut back = vec![0; 65_536];
                let length = kernels.recv(&mut back).unwrap();
                assert!(back[..length] == sent, "{size} bytes from {own}");
                let now = MonotonicClock.now();
                let stack = ours.host.stack_mut();
                stack.echo_send(now, kernel, 1, 1, &sent).unwrap();
                ours.run(|host| host.replies.len() == count);
                assert!(ours.replies[count - 1] == sent, "an echo of {size} bytes from {kernel}");
            }
            if own.is_ipv6() {
                ping_from_the_kernel(&mut ours, 60_000);
            }
            let (_, link) = ours.host.into_parts();
            link.into_parts().1.finish().unwrap();
            check_capture(&path, 4 * (2 + 6 + 41));
        }
    });
}

/// Sends an echo request with `size` bytes of data from the kernel to the host, and waits for the
/// reply.
fn ping_from_the_kernel(ours: &mut EchoHost, size: usize) {
    let mut request = vec![128, 0, 0, 0, 0, 7, 0, 1];
    request.resize(8 + size, 9);
    let raw = socket(AddressFamily::INET6, SocketType::RAW, Some(ipproto::ICMPV6)).unwrap();
    let destination = SocketAddrV6::new(OURS_IPV6, 0, 0, 0);
    sendto(&raw, &request, SendFlags::empty(), &destination).unwrap();
    ours.run(|host| host.host.stack().counters().icmp.out_echo_replies == 1);
    let mut bytes = vec![0; 65_536];
    // The socket receives all ICMPv6 messages, also those of Neighbour Discovery. The loop ignores
    // them and waits for the echo reply (type 129), which it compares with the request.
    loop {
        let (_, length) = recv(&raw, bytes.as_mut_slice(), RecvFlags::empty()).unwrap();
        if bytes[0] == 129 {
            assert_eq!(bytes[4..length], request[4..]);
            return;
        }
    }
}

/// Checks that the capture contains at least `least` frames, and that tshark accepts it.
fn check_capture(path: &Path, least: usize) {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut packets = 0;
    while reader.next_packet().unwrap().is_some() {
        packets += 1;
    }
    assert!(packets >= least, "{packets}");
    tshark::assert_accepts(path, "_ws.expert.severity >= \"Warning\"", &[]);
}
