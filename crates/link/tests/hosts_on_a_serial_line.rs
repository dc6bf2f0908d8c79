//! Tests of two hosts on a serial line. All data must arrive, even if the line loses and damages
//! bytes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_link::{MonotonicClock, NoLink, Readiness, SerialConfig, SerialLink, Waiter};
use linerate_stack::{
    ConnectOptions, Error, Event, Host, ListenHandle, ListenOptions, Stack, StackConfig, TcpHandle,
};
use linerate_units::{Clock, Instant};
use linerate_wire::{Ipv4Cidr, MacAddress};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

const BYTES: usize = 60_000;
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 9);

fn config(header_compression: bool) -> SerialConfig {
    SerialConfig { header_compression, ..SerialConfig::new(2_000_000) }
}

/// Returns the byte at offset `place` of the transfer. SLIP must escape many of these bytes.
fn pattern(place: usize) -> u8 {
    match place % 7 {
        0 => 0o300,
        1 => 0o333,
        _ => (place ^ (place >> 8)).to_le_bytes()[0],
    }
}

fn host(last_octet: u8, link: SerialLink) -> Host<SerialLink> {
    let address = Ipv4Cidr::new(Ipv4Addr::new(10, 0, 0, last_octet), 24).unwrap();
    let mut config = StackConfig::new(MacAddress::ZERO, address.into());
    config.count_packets = true;
    config.tcp.timestamps = false;
    Host::new(Stack::new(config, [last_octet; 32]), link)
}

/// A transfer between two hosts, which one thread drives.
struct Transfer {
    client: Host<SerialLink>,
    server: Host<SerialLink>,
    listener: ListenHandle,
    sending: TcpHandle,
    receiving: Option<TcpHandle>,
    written: usize,
    read: usize,
    is_over: bool,
}

impl Transfer {
    fn new([near, far]: [SerialLink; 2]) -> Self {
        let (mut client, mut server) = (host(1, near), host(2, far));
        let listener = server.stack_mut().tcp_listen(SERVER, &ListenOptions::default()).unwrap();
        let options = ConnectOptions::default();
        let now = MonotonicClock.now();
        let sending = client.stack_mut().tcp_connect(now, SERVER, &options).unwrap();
        let (receiving, is_over) = (None, false);
        Self { client, server, listener, sending, receiving, written: 0, read: 0, is_over }
    }

    /// Transfers all data. If there are two lines with a relay between them, `between` carries
    /// bytes from one line to the other. It returns the number of these bytes.
    fn run(&mut self, mut between: impl FnMut() -> usize) {
        let mut waiter = Waiter::new().unwrap();
        while !self.is_over {
            let now = MonotonicClock.now();
            let theirs = self.server.turn(now).unwrap();
            let ours = self.client.turn(now).unwrap();
            let moved = self.write(now) | self.read(now) | (between() > 0);
            if !moved && !ours.more && !theirs.more && ours.received + theirs.received == 0 {
                let lines =
                    self.client.link().next_deadline().min(self.server.link().next_deadline());
                let next = ours.next.min(theirs.next).min(lines);
                assert!(next < Instant::NEVER, "the transfer is stuck at {}", self.read);
                waiter.wait(&mut NoLink::new().unwrap(), next).unwrap();
            }
        }
    }

    fn write(&mut self, now: Instant) -> bool {
        let stack = self.client.stack_mut();
        while stack.poll_event().is_some() {}
        let piece: Vec<_> = (self.written..BYTES.min(self.written + 1_024)).map(pattern).collect();
        let before = self.written;
        match stack.tcp_write(now, self.sending, &piece) {
            Ok(count) => self.written += count,
            Err(Error::WouldBlock) => {}
            // `WouldBlock` is possible at any time. Other errors are permitted only before the
            // handshake is complete, when nothing is written yet, and after the shutdown for
            // writing, when everything is written.
            Err(error) => assert!(before == 0 || before == BYTES, "{error}"),
        }
        if self.written == BYTES && before < BYTES {
            stack.tcp_shutdown_write(now, self.sending).unwrap();
        }
        self.written > before
    }

    fn read(&mut self, now: Instant) -> bool {
        let stack = self.server.stack_mut();
        while let Some(event) = stack.poll_event() {
            if event == Event::Incoming(self.listener) {
                self.receiving = stack.tcp_accept(self.listener).map(|(handle, _)| handle);
            }
        }
        let Some(receiving) = self.receiving else { return false };
        let mut bytes = [0; 1_024];
        let Ok(count) = stack.tcp_read(now, receiving, &mut bytes) else { return false };
        self.is_over = count == 0;
        for (at, &byte) in bytes[..count].iter().enumerate() {
            assert_eq!(byte, pattern(self.read + at), "at byte {}", self.read + at);
        }
        self.read += count;
        true
    }
}

/// Returns the controlling end of a new pseudo-terminal, and a link at its terminal end.
fn terminal(config: &SerialConfig) -> (OwnedFd, SerialLink) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let near = openpt(flags).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    rustix::io::ioctl_fionbio(&near, true).unwrap();
    let path = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
    let link = SerialLink::open(&path, config).unwrap();
    (near, link)
}

/// Carries bytes from `from` to `to`, and returns how many it has read. With `is_bad`, it loses or
/// damages about one byte in 3,000.
fn relay(from: &OwnedFd, to: &OwnedFd, random: &mut oorandom::Rand32, is_bad: bool) -> usize {
    let mut bytes = [0; 512];
    let Ok(count) = rustix::io::read(from, &mut bytes) else { return 0 };
    let mut line = Vec::new();
    for &byte in &bytes[..count] {
        match random.rand_range(0..6_000) {
            0 if is_bad => {}
            1 if is_bad => line.push(byte ^ 0x10),
            _ => line.push(byte),
        }
    }
    assert_eq!(rustix::io::write(to, &line), Ok(line.len()), "the terminal has room");
    count
}

#[test]
fn all_data_arrives_with_and_without_header_compression() {
    for header_compression in [true, false] {
        let mut transfer = Transfer::new(SerialLink::pair(&config(header_compression)).unwrap());
        transfer.run(|| 0);
        assert_eq!(transfer.read, BYTES);
        let (sent, received) = (transfer.client.link().counters(), transfer.server.link());
        assert_eq!((received.counters().errors, received.counters().tossed), (0, 0));
        let compressed = sent.sent.compressed * 10 > sent.sent.packets * 9;
        assert_eq!(compressed, header_compression, "{sent:?}");
        assert_eq!(sent.sent.packet_bytes > sent.sent.compressed_bytes, header_compression);
    }
}

/// With header compression, one lost or damaged byte can spoil the decompressor's state. The
/// checksums of all later packets of the connection then fail, until a retransmission arrives. Its
/// uncompressed headers restore the state (RFC 1144 §4.2).
#[test]
fn all_data_arrives_over_a_line_that_loses_and_damages_bytes() {
    for header_compression in [true, false] {
        let config = config(header_compression);
        let [(left, near), (right, far)] = [terminal(&config), terminal(&config)];
        let mut random = oorandom::Rand32::new(1_144);
        let mut transfer = Transfer::new([near, far]);
        transfer.run(|| {
            relay(&left, &right, &mut random, true) + relay(&right, &left, &mut random, true)
        });
        assert_eq!(transfer.read, BYTES);
        let statistics = transfer.server.stack().counters().tcp;
        let damaged = transfer.server.link().counters().errors + statistics.in_checksum_errors;
        assert!(damaged > 0, "the line was bad");
        transfer.client.stack().check();
        transfer.server.stack().check();
    }
}
