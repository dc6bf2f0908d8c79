//! Tests with floods of forged "fragmentation needed" errors that quote segments in flight (RFC
//! 5927 §7). The attacked flow must keep its rate, and connections that are opened to the same host
//! later must keep their segment size.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{ListenHandle, Medium, TcpHandle};
use linerate_testkit::transfer::{established, listen};
use linerate_testkit::{Fate, Line, Network, Pair, Setup, Side, ipv4_end, pattern};
use linerate_units::{Duration, Rate};
use linerate_wire::{
    IcmpError, IcmpMessage, Ipv4Header, Ipv4Packet, Protocol, Quote, Segment, SeqNum, TcpHeader,
};
use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

/// Number of forged messages in one flood, and the time between two messages.
const MESSAGES: u32 = 100_000;
const INTERVAL: Duration = Duration::from_micros(200);

/// Bytes that the application writes at once. It writes the next burst only when all of them have
/// arrived. So the final segments of a burst can be lost, which makes the sender send a tail loss
/// probe.
const BURST: usize = 400_000;

/// Bytes of data in a full segment over Ethernet, with timestamps.
const FULL: usize = 1_448;

/// The sequence number that a forged message quotes.
#[derive(Clone, Copy, Debug)]
enum Quoted {
    /// Any sequence number in flight.
    Random,
    /// SND.UNA.
    Oldest,
}

/// Returns the ICMP error of a router that says: `packet`, which the left host has sent, exceeds
/// the MTU of the next hop.
fn report(packet: &[u8], next_hop_mtu: u16) -> Vec<u8> {
    let error = IcmpError::FragmentationNeeded { next_hop_mtu };
    let message = IcmpMessage::Error { error, quote: Quote::of(packet).unwrap() };
    let mut report = vec![0; 20 + message.length()];
    let router = Ipv4Addr::new(192, 0, 2, 254);
    Ipv4Header::new(router, Side::Left.address(), Protocol::ICMP)
        .emit(message.length(), &mut report);
    message.emit(&mut report[20..]);
    report
}

/// A flow from the left to the right host. The attacker observes which sequence numbers are in
/// flight.
struct Observed {
    pair: Pair,
    listener: ListenHandle,
    left: TcpHandle,
    right: TcpHandle,
    /// The sequence number of the first byte that the left host has sent, and the sequence number
    /// that follows the last byte. `None` if no byte has been sent.
    sent: Rc<Cell<Option<(SeqNum, SeqNum)>>>,
    /// Number of bytes written on the left host (`written`), and number of bytes read on the right
    /// host (`read`).
    written: usize,
    read: usize,
    random_state: u64,
}

impl Observed {
    fn new(loss: u32) -> Self {
        let line = Line { rate: Rate::from_bits_per_second(200_000_000), queue: 1 << 20 };
        let network =
            Network { line: Some(line), loss, ..Network::clean(Duration::from_millis(2)) };
        let setup = Setup { network, medium: Medium::Ip, ..Setup::default() };
        let mut pair = Pair::new(&setup, |_, config| {
            config.tcp.send_buffer = (1 << 20).into();
            config.tcp.receive_buffer = (1 << 20).into();
        });
        let listener = listen(&mut pair);
        let (left, right) = established(&mut pair, listener);
        let sent = Rc::new(Cell::new(None));
        let seen = Rc::clone(&sent);
        let port = pair.stack(Side::Left).tcp_local_addr(left).unwrap().port();
        pair.observe(move |_, side, packet| {
            let packet = Ipv4Packet::parse(packet).unwrap();
            let Some(segment) = Segment::parse(packet.payload).ok() else { return };
            if side == Side::Left && segment.source_port == port && !segment.payload.is_empty() {
                let end = segment.seq + u32::try_from(segment.payload.len()).unwrap();
                let (first, last) = seen.get().unwrap_or((segment.seq, end));
                seen.set(Some((first, if end.after(last) { end } else { last })));
            }
        });
        Self { pair, listener, left, right, sent, written: 0, read: 0, random_state: 1 }
    }

    /// Returns a number below `limit` (SplitMix64).
    fn below(&mut self, limit: u32) -> u32 {
        self.random_state = self.random_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed =
            (self.random_state ^ (self.random_state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u32::try_from((mixed ^ (mixed >> 31)) % u64::from(limit)).unwrap()
    }

    /// Reads the data that has arrived on the right host. If all written data has been read by
    /// then, writes another burst on the left host.
    fn transfer(&mut self) {
        let (now, mut bytes) = (self.pair.now, [0; 65_536]);
        while let Ok(count @ 1..) =
            self.pair.stack(Side::Right).tcp_read(now, self.right, &mut bytes)
        {
            let is_right =
                bytes[..count].iter().copied().eq((self.read..).take(count).map(pattern));
            assert!(is_right, "wrong bytes after {}", self.read);
            self.read += count;
        }
        if self.read == self.written {
            let burst: Vec<_> = (self.written..self.written + BURST).map(pattern).collect();
            let count = self.pair.stack(Side::Left).tcp_write(now, self.left, &burst).unwrap();
            assert_eq!(count, BURST);
            self.written += BURST;
        }
    }

    /// Opens another connection between both hosts, and asserts that it starts with full segments.
    fn open_another(&mut self) {
        let (left, right) = established(&mut self.pair, self.listener);
        let (now, other) = (self.pair.now, self.pair.stack(Side::Left).tcp(left).unwrap());
        assert_eq!(other.effective_mss(), FULL, "a forged path MTU was remembered");
        for (side, end) in [(Side::Left, left), (Side::Right, right)] {
            self.pair.stack(side).tcp_abort(now, end).unwrap();
        }
    }

    /// Delivers a forged error to the left host. It quotes a segment in flight, and claims an MTU
    /// of 68 bytes.
    fn forge(&mut self, quoted: Quoted) {
        let Some((first, last)) = self.sent.get() else { return };
        let sender = self.pair.stack(Side::Left).tcp(self.left).unwrap();
        let una = first + u32::try_from(sender.statistics().bytes_acknowledged).unwrap();
        let flight = last - una;
        if flight == 0 {
            return;
        }
        let seq = match quoted {
            Quoted::Random => una + self.below(flight),
            Quoted::Oldest => una,
        };
        let from = ipv4_end(self.pair.stack(Side::Left).tcp_local_addr(self.left).unwrap());
        let to = SocketAddrV4::new(Side::Right.address(), 9);
        let mut packet = vec![0; 20 + 20];
        Ipv4Header::new(*from.ip(), *to.ip(), Protocol::TCP).emit(1_480, &mut packet);
        let ports = (from.port(), to.port());
        let header = TcpHeader {
            source_port: ports.0,
            destination_port: ports.1,
            seq,
            ..TcpHeader::default()
        };
        header.emit(0, &mut packet[20..]);
        let report = report(&packet, 68);
        let now = self.pair.now;
        self.pair.host(Side::Left).link_mut().put(now, report);
    }

    /// Runs the flow for the duration of a flood, and repeatedly opens another connection to the
    /// same host. If `flood` is `None`, the flow runs equally long without forged errors. Returns
    /// the number of bytes that were transferred.
    fn run(&mut self, flood: Option<Quoted>) -> usize {
        for number in 0..MESSAGES {
            if number % (MESSAGES / 10) == 0 {
                self.open_another();
            }
            if let Some(quoted) = flood {
                self.forge(quoted);
            }
            self.run_for(INTERVAL);
        }
        self.read
    }

    /// Runs the flow for `span`.
    fn run_for(&mut self, span: Duration) {
        let end = self.pair.now + span;
        while self.pair.now < end {
            self.pair.turn();
            self.transfer();
            self.pair.turn();
            if !self.pair.move_on(end) {
                self.pair.now = end;
            }
        }
    }
}

/// Segments per thousand that the path loses.
const LOSS: u32 = 5;

/// Forged errors may reduce the rate of the flow by at most 5 %. A forged error has an effect only
/// if the loss of a large segment seems to confirm it, as at a timeout. Segments are then smaller
/// until a single probe shows that large segments still pass.
#[test]
fn forged_reports_affect_no_flow_and_no_later_connection() {
    let undisturbed = Observed::new(LOSS).run(None);
    for quoted in [Quoted::Random, Quoted::Oldest] {
        let mut flow = Observed::new(LOSS);
        let read = flow.run(Some(quoted));
        let sender = flow.pair.stack(Side::Left).tcp(flow.left).unwrap();
        let counted = sender.statistics();
        let what = format!("{read} of {undisturbed} bytes, {quoted:?}: {counted:?}");
        assert!(read * 100 >= undisturbed * 95, "{what}");
        let evaluated = counted.reports_held + counted.reports_ignored;
        assert!(evaluated > MESSAGES / 4, "the messages were evaluated: {what}");
        assert!(counted.reports_disproved > 1_000 && counted.reports_applied < 10, "{what}");
        assert_eq!(sender.effective_mss(), FULL, "{what}");
    }
}

/// A router drops large segments, and sends true errors about them. The tail loss probe is small
/// enough to pass. Its acknowledgement shows that the large segments before it are lost, which
/// confirms the error, so the sender need not wait for a timeout.
#[test]
fn a_true_report_shrinks_segments_without_a_timeout() {
    let mut flow = Observed::new(0);
    let reports = Rc::new(RefCell::new(Vec::new()));
    let recorded = Rc::clone(&reports);
    let narrow = flow.pair.now + Duration::from_secs(1);
    flow.pair.set_filter(move |now, side, packet| {
        let is_too_long = side == Side::Left && now >= narrow && packet.len() > 1_200;
        if is_too_long {
            recorded.borrow_mut().push(report(packet, 1_200));
        }
        is_too_long.then_some(Fate::Lose)
    });
    let mut stalled = Duration::ZERO;
    for _ in 0..20_000 {
        let before = flow.read;
        flow.run_for(Duration::from_micros(100));
        let now = flow.pair.now;
        for report in reports.take() {
            flow.pair.host(Side::Left).link_mut().put(now, report);
        }
        if flow.read > before || now < narrow {
            stalled = Duration::ZERO;
        } else {
            stalled += Duration::from_micros(100);
            assert!(stalled < Duration::from_millis(60), "the flow has stalled");
        }
    }
    let sender = flow.pair.stack(Side::Left).tcp(flow.left).unwrap();
    let counted = sender.statistics();
    assert_eq!(sender.path_mtu(), 1_200, "{counted:?}");
    assert_eq!((counted.reports_applied, counted.retransmission_timeouts), (1, 0), "{counted:?}");
    assert_eq!((counted.path_probes, counted.path_probes_failed), (1, 1), "{counted:?}");
    let (next, _) = established(&mut flow.pair, flow.listener);
    let next = flow.pair.stack(Side::Left).tcp(next).unwrap();
    assert_eq!(next.effective_mss(), 1_200 - 52, "the probe has confirmed the report");
}
