//! Tests of two hosts on an impaired link in virtual time. The data must arrive undamaged. The seed
//! must determine the whole capture, and the capture must be valid.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_link::capture_file::CaptureWriter;
use linerate_link::memory::{MemoryConfig, MemoryLink, pair_with_clock};
use linerate_link::{Capture, Impair, ManualClock, Readiness};
use linerate_stack::{
    ConnectOptions, Error, Event, Host, ListenHandle, ListenOptions, Stack, StackConfig, TcpHandle,
};
use linerate_testkit::tshark;
use linerate_units::{Clock, Duration, Instant};
use linerate_wire::{Ipv4Cidr, MacAddress};
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};

const BYTES: usize = 2_000_000;
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 9);
/// The time of day that the capture shows when the test's clock is zero: 2026-01-01 00:00 UTC, as
/// the time since 1970.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);

type Cable = MemoryLink<ManualClock>;
type BadCable<'a> = Capture<Impair<Cable, ManualClock>, &'a mut Vec<u8>, ManualClock>;

/// Returns the byte at offset `place` of the transfer.
fn pattern(place: usize) -> u8 {
    (place ^ (place >> 8) ^ (place >> 16)).to_le_bytes()[0]
}

fn stack(last_octet: u8) -> Stack {
    let address = Ipv4Cidr::new(Ipv4Addr::new(10, 0, 0, last_octet), 24).unwrap();
    Stack::new(
        StackConfig::new(MacAddress::new([2, 0, 0, 0, 0, last_octet]), address.into()),
        [last_octet; 32],
    )
}

/// A transfer from the client to the server.
struct Transfer<'a> {
    clock: ManualClock,
    client: Host<BadCable<'a>>,
    server: Host<Cable>,
    listener: ListenHandle,
    sending: TcpHandle,
    receiving: Option<TcpHandle>,
    written: usize,
    read: usize,
    ended: bool,
}

impl<'a> Transfer<'a> {
    fn new(impairments: &str, seed: u64, file: &'a mut Vec<u8>) -> Self {
        let clock = ManualClock::new(Instant::from_nanos(1_000_000_000));
        let (left, right) = pair_with_clock(MemoryConfig::default(), clock.clone()).unwrap();
        let impaired = Impair::with_clock(left, impairments.parse().unwrap(), seed, clock.clone());
        let link =
            Capture::with_clock(impaired, "client", CaptureWriter::new(file), clock.clone(), EPOCH);
        let mut client = Host::new(stack(1), link);
        let mut server = Host::new(stack(2), right);
        let listener = server.stack_mut().tcp_listen(SERVER, &ListenOptions::default()).unwrap();
        let options = ConnectOptions::default();
        let sending = client.stack_mut().tcp_connect(clock.now(), SERVER, &options).unwrap();
        Self {
            clock,
            client,
            server,
            listener,
            sending,
            receiving: None,
            written: 0,
            read: 0,
            ended: false,
        }
    }

    fn run(&mut self) {
        let mut turns = 0;
        while !self.ended {
            turns += 1;
            assert!(turns < 1_000_000, "no end after {} bytes", self.read);
            let now = self.clock.now();
            let theirs = self.server.turn(now).unwrap();
            let ours = self.client.turn(now).unwrap();
            let moved = self.write(now) | self.read(now);
            let idle = !moved && !theirs.more && !ours.more && ours.received + theirs.received == 0;
            if idle && ours.transmitted + theirs.transmitted == 0 {
                let next = theirs.next.min(ours.next).min(self.client.link().next_deadline());
                assert!(
                    next < now + Duration::from_secs(120),
                    "the transfer is stuck: {}",
                    self.read
                );
                self.clock.advance(next.since(now));
            }
        }
    }

    fn write(&mut self, now: Instant) -> bool {
        let stack = self.client.stack_mut();
        while stack.poll_event().is_some() {}
        let piece: Vec<_> = (self.written..BYTES.min(self.written + 4_096)).map(pattern).collect();
        let before = self.written;
        match stack.tcp_write(now, self.sending, &piece) {
            Ok(count) => self.written += count,
            Err(Error::WouldBlock) => {}
            // `WouldBlock` is possible at any time. Other errors are permitted only before the
            // handshake is complete, when nothing is written yet, and after the shutdown for
            // writing, when everything is written.
            Err(error) => assert!(before == 0 || before == BYTES, "{error}"),
        }
        if self.written == BYTES {
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
        let mut bytes = [0; 4_096];
        match stack.tcp_read(now, receiving, &mut bytes) {
            Ok(count) => {
                self.ended = count == 0;
                for (at, &byte) in bytes[..count].iter().enumerate() {
                    assert_eq!(byte, pattern(self.read + at), "at byte {}", self.read + at);
                }
                self.read += count;
                true
            }
            Err(error) => {
                assert_eq!(error, Error::WouldBlock);
                false
            }
        }
    }
}

/// Transfers all bytes, and returns the capture made at the client.
fn transfer(impairments: &str, seed: u64) -> Vec<u8> {
    let mut file = Vec::new();
    transfer_into(&mut file, impairments, seed);
    file
}

fn transfer_into(file: &mut Vec<u8>, impairments: &str, seed: u64) {
    let mut transfer = Transfer::new(impairments, seed, file);
    transfer.run();
    assert_eq!(transfer.read, BYTES);
    transfer.client.stack().check();
    transfer.server.stack().check();
    let (impaired, writer) = transfer.client.into_parts().1.into_parts();
    assert!(impairments.is_empty() || impaired.transmitted().lost > 0);
    writer.finish().unwrap();
}

#[test]
fn bytes_arrive_intact_despite_all_impairments() {
    transfer("", 1);
    for seed in 0..4 {
        transfer("loss=1%,duplicate=1%,reorder=1%,delay=1ms,jitter=500us", seed);
        transfer("loss=3%,corrupt=1%,duplicate=2%,reorder=5%", seed);
    }
}

#[test]
fn a_seed_determines_every_byte_of_the_capture() {
    let bad = "loss=1%,duplicate=1%,reorder=1%,corrupt=0.1%,delay=1ms,jitter=500us";
    let first = transfer(bad, 5);
    assert!(first.len() > BYTES);
    assert!(first == transfer(bad, 5));
    assert!(first != transfer(bad, 6));
}

/// Checks a capture with tshark. Does nothing if tshark is not installed.
#[test]
fn tshark_accepts_every_captured_frame() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad-cable.pcapng");
    fs::write(&path, transfer("loss=1%,duplicate=1%,reorder=1%,delay=1ms,jitter=500us", 7))
        .unwrap();
    tshark::assert_accepts(&path, "_ws.expert.severity == \"Error\"", &["tcp"]);
}
