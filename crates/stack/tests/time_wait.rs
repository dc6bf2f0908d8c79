//! Tests of TIME-WAIT. When the application has released a connection in TIME-WAIT, a short record
//! replaces its full state, and all records are in a queue. Each connection must end on time,
//! whatever other connections are in the queue, and the invariants of the records must hold.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{ConnectOptions, Error, ListenHandle, RxFrame, TcpHandle};
use linerate_tcp::Config;
use linerate_testkit::transfer::listen;
use linerate_testkit::{Fate, Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{
    IcmpError, IcmpMessage, Ipv4Header, Ipv4Packet, Protocol, Quote, Segment, TcpFlags,
};
use std::cell::RefCell;
use std::net::SocketAddrV4;
use std::rc::Rc;

fn pair() -> Pair {
    Pair::new(&Setup::default(), |_, _| {})
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Returns options for a connection from the port `port` of the left host. Its MSL is `msl`
/// seconds, so TIME-WAIT lasts twice as long.
fn options(port: u16, msl: u64) -> ConnectOptions {
    let config = Some(Config { msl: seconds(msl), ..Config::modern() });
    ConnectOptions {
        local: Some(SocketAddrV4::new(Side::Left.address(), port).into()),
        config,
        ..ConnectOptions::default()
    }
}

/// Opens a connection from the port `port` of the left host to the right host. Returns its handles
/// on the left and on the right host.
fn open(pair: &mut Pair, listener: ListenHandle, port: u16, msl: u64) -> (TcpHandle, TcpHandle) {
    let (now, address) = (pair.now, SocketAddrV4::new(Side::Right.address(), 9));
    let left = pair.stack(Side::Left).tcp_connect(now, address, &options(port, msl)).unwrap();
    pair.run_for(Duration::from_millis(10));
    (left, pair.stack(Side::Right).tcp_accept(listener).unwrap().0)
}

/// Opens a connection from the port `port` of the left host, and brings its left end into
/// TIME-WAIT. If `is_held` is true, the application keeps its handle. Otherwise it has closed the
/// connection.
fn enter_time_wait(
    pair: &mut Pair,
    listener: ListenHandle,
    port: u16,
    msl: u64,
    is_held: bool,
) -> TcpHandle {
    let (left, right) = open(pair, listener, port, msl);
    let now = pair.now;
    if is_held {
        pair.stack(Side::Left).tcp_shutdown_write(now, left).unwrap();
    } else {
        pair.stack(Side::Left).tcp_close(now, left).unwrap();
    }
    pair.run_for(Duration::from_millis(10));
    let now = pair.now;
    pair.stack(Side::Right).tcp_close(now, right).unwrap();
    pair.run_for(Duration::from_millis(10));
    left
}

/// Is the connection from this port still in TIME-WAIT? If it is, no new connection can be opened
/// from the port.
fn is_in_time_wait(pair: &mut Pair, port: u16) -> bool {
    let (now, address) = (pair.now, SocketAddrV4::new(Side::Right.address(), 9));
    match pair.stack(Side::Left).tcp_connect(now, address, &options(port, 30)) {
        Ok(handle) => {
            pair.stack(Side::Left).tcp_abort(now, handle).unwrap();
            false
        }
        Err(error) => {
            assert!(matches!(error, Error::AddressInUse(_)), "{error}");
            true
        }
    }
}

/// Maximum time by which TIME-WAIT of a minute may end late in these tests: a sixteenth, by which
/// the stack may extend it, and a tolerance of one second.
const EXTENSION: Duration = Duration::from_millis(60_000 / 16 + 1_000);

#[test]
fn many_records_end_together() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let ports = 5_000..5_040;
    for port in ports.clone() {
        enter_time_wait(&mut pair, listener, port, 30, false);
    }
    assert!(ports.clone().all(|port| is_in_time_wait(&mut pair, port)));
    pair.run_for(seconds(60) + EXTENSION);
    let left: Vec<u16> = ports.filter(|&port| is_in_time_wait(&mut pair, port)).collect();
    assert_eq!(left, []);
}

/// The connections at the head of the queue end much later than the record behind them. They have
/// their own timers, because the application holds their handles. The record must nevertheless end
/// on time.
#[test]
fn held_connections_do_not_block_the_queue() {
    for held in [1, 40] {
        let mut pair = pair();
        let listener = listen(&mut pair);
        for port in 5_000..5_000 + held {
            enter_time_wait(&mut pair, listener, port, 200, true);
        }
        enter_time_wait(&mut pair, listener, 6_000, 30, false);
        pair.run_for(seconds(59));
        assert!(is_in_time_wait(&mut pair, 6_000) && is_in_time_wait(&mut pair, 5_000));
        pair.run_for(seconds(1) + EXTENSION);
        assert!(
            !is_in_time_wait(&mut pair, 6_000) && is_in_time_wait(&mut pair, 5_000),
            "behind {held}"
        );
    }
}

/// If the application holds the handle of a connection, the connection has its own timer, but is
/// also in the queue of records. It must not make the timer of the queue expire over and over.
#[test]
fn held_connections_cause_no_repeated_expiries() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    for (port, is_held) in (5_000..).zip([false, true, true]) {
        enter_time_wait(&mut pair, listener, port, 30, is_held);
        pair.run_for(seconds(20));
    }
    // In these 120 s, TIME-WAIT ends three times: first for the connection without a handle, and
    // then for the two whose handles the application holds. If a hundred or more timers expire, one
    // of them expires over and over.
    let (mut turns, end) = (0, pair.now + seconds(120));
    while pair.now < end {
        let next = pair.stack(Side::Left).poll_timeout().min(end);
        pair.now = pair.now.max(next);
        let now = pair.now;
        pair.stack(Side::Left).handle_timeout(now, 1);
        turns += 1;
        assert!(turns < 100, "{turns} timers by {now:?}");
    }
    pair.stack(Side::Left).check();
}

/// Creates a record of TIME-WAIT that has just ended, and behind it in the queue forty connections
/// whose handles the application holds. If `is_another_behind` is true, a second record is behind
/// them. Then lets the timer of the queue expire `timers` times. Each time, the queue skips some of
/// the forty connections by moving them to its end.
fn skip_held(timers: usize, is_another_behind: bool) -> (Pair, Vec<TcpHandle>) {
    let mut pair = pair();
    let listener = listen(&mut pair);
    enter_time_wait(&mut pair, listener, 6_000, 30, false);
    let held =
        (5_000..5_040).map(|port| enter_time_wait(&mut pair, listener, port, 40, true)).collect();
    if is_another_behind {
        enter_time_wait(&mut pair, listener, 6_001, 40, false);
    }
    while is_in_time_wait(&mut pair, 6_000) {
        let stack = pair.stack(Side::Left);
        let now = stack.poll_timeout();
        stack.handle_timeout(now, 1);
        pair.now = now;
    }
    let now = pair.now;
    for _ in 0..timers {
        pair.stack(Side::Left).handle_timeout(now, 1);
    }
    (pair, held)
}

#[test]
fn a_connection_released_while_others_are_skipped_ends() {
    for timers in 0..5 {
        let (mut pair, held) = skip_held(timers, false);
        let now = pair.now;
        pair.stack(Side::Left).tcp_close(now, held[0]).unwrap();
        pair.run_for(seconds(20) + EXTENSION);
        assert!(!is_in_time_wait(&mut pair, 5_000), "let go after {timers} timers");
    }
}

/// While the queue skips the forty connections, the application aborts 30 of them. The record
/// behind them must still end.
#[test]
fn a_record_behind_skipped_connections_ends() {
    for timers in 0..5 {
        let (mut pair, held) = skip_held(timers, true);
        let now = pair.now;
        for &handle in &held[..30] {
            pair.stack(Side::Left).tcp_abort(now, handle).unwrap();
        }
        pair.run_for(seconds(20) + EXTENSION);
        assert!(!is_in_time_wait(&mut pair, 6_001), "behind those that end after {timers} timers");
    }
}

/// Brings a connection of the left host into FIN-WAIT-2. The network loses the FIN of the right
/// host, and the function returns the frame with this FIN.
fn fin_under_way(pair: &mut Pair, listener: ListenHandle, msl: u64) -> Vec<u8> {
    let (left, right) = open(pair, listener, 5_000, msl);
    let now = pair.now;
    pair.stack(Side::Left).tcp_close(now, left).unwrap();
    pair.run_for(Duration::from_secs(10));
    let kept = Rc::new(RefCell::new(Vec::new()));
    let keeps = Rc::clone(&kept);
    pair.set_filter(move |_, side, frame| {
        let flags = Segment::parse(Ipv4Packet::parse(&frame[14..]).ok()?.payload).ok()?.flags();
        if side == Side::Left || !flags.contains(TcpFlags::FIN) {
            return None;
        }
        *keeps.borrow_mut() = frame.to_vec();
        Some(Fate::Lose)
    });
    let now = pair.now;
    pair.stack(Side::Right).tcp_close(now, right).unwrap();
    pair.turn();
    kept.take()
}

/// RFC 9293 §3.10.7.4: if the peer retransmits its FIN, the TIME-WAIT of this connection begins
/// anew, and that of no other connection.
#[test]
fn a_retransmitted_fin_restarts_time_wait() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let fin = fin_under_way(&mut pair, listener, 30);
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, fin.clone());
    pair.run_for(Duration::from_millis(10));
    pair.set_filter(|_, _, _| None);
    enter_time_wait(&mut pair, listener, 5_001, 30, false);
    pair.run_for(seconds(30));
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, fin);
    pair.run_for(seconds(30) + EXTENSION);
    assert!(is_in_time_wait(&mut pair, 5_000) && !is_in_time_wait(&mut pair, 5_001));
    pair.run_for(seconds(30));
    assert!(!is_in_time_wait(&mut pair, 5_000));
}

/// Returns a copy of a TCP frame without IP options. Its sequence number is increased by `ahead`,
/// and its checksum is adjusted.
fn moved_ahead(frame: &[u8], ahead: u16) -> Vec<u8> {
    const TCP: usize = 14 + 20;
    let mut moved = frame.to_vec();
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let seq = u32::from(word(TCP + 4)) << 16 | u32::from(word(TCP + 6));
    moved[TCP + 4..TCP + 8].copy_from_slice(&(seq + u32::from(ahead)).to_be_bytes());
    // An increase of the sequence number by `ahead` makes the checksum smaller by `ahead`. This
    // also holds if there is a carry between the two 16-bit words of the number. Such a carry does
    // not change a one's complement sum.
    let checksum = (u32::from(word(TCP + 16)) + 65_535 - u32::from(ahead)) % 65_535;
    moved[TCP + 16..TCP + 18].copy_from_slice(&checksum.to_be_bytes()[2..]);
    moved
}

/// RFC 9293 §3.10.7.4 (first): a segment whose sequence number is beyond the FIN gets an ACK. A
/// record of TIME-WAIT must answer it in this way too, and not only a connection with full state.
#[test]
fn a_segment_beyond_the_fin_is_answered_from_the_time_wait_record() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let fin = fin_under_way(&mut pair, listener, 30);
    let answers = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&answers);
    pair.observe(move |_, side, frame| {
        if side == Side::Left {
            let packet = Ipv4Packet::parse(&frame[14..]).unwrap();
            let segment = Segment::parse(packet.payload).unwrap();
            noted.borrow_mut().push((segment.flags(), segment.seq, segment.ack));
        }
    });
    for ahead in [0, 1, 1_000] {
        let now = pair.now;
        pair.host(Side::Left).link_mut().put(now, moved_ahead(&fin, ahead));
        pair.run_for(seconds(1));
    }
    let answers = answers.take();
    assert_eq!(answers.len(), 3, "the FIN, and two segments beyond it");
    assert!(answers.iter().all(|&answer| answer == answers[0] && answer.0 == TcpFlags::ACK));
}

/// The left host receives a FIN and enters TIME-WAIT, but the link is full, so its ACK cannot be
/// sent. The connection must then keep its full state. It must nevertheless end on time, whether or
/// not another connection in TIME-WAIT ends later.
#[test]
fn time_wait_ends_although_the_ack_cannot_leave() {
    for (before, msl) in [(None, 30), (None, 1), (Some(30), 1)] {
        let mut pair = pair();
        let listener = listen(&mut pair);
        if let Some(longer) = before {
            enter_time_wait(&mut pair, listener, 5_001, longer, false);
        }
        let fin = fin_under_way(&mut pair, listener, msl);
        let (start, stack) = (pair.now, pair.stack(Side::Left));
        stack.handle_frame(start, RxFrame::plain(&fin, start));
        stack.check();
        assert!(stack.wants_transmit());
        let end = start + seconds(2 * msl) + EXTENSION;
        while pair.now < end {
            let stack = pair.stack(Side::Left);
            let now = stack.poll_timeout().min(end);
            stack.handle_timeout(now, 9);
            stack.check();
            pair.now = now;
        }
        assert!(
            !pair.stack(Side::Left).wants_transmit(),
            "an ended connection has nothing to send"
        );
        assert!(!is_in_time_wait(&mut pair, 5_000), "after {before:?}");
    }
}

/// An ICMP error with an MTU that equals the size of the quoted packet is implausible. It must not
/// violate the invariants of a TIME-WAIT record.
#[test]
fn an_icmp_error_keeps_the_invariants_of_a_time_wait_record() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let fin = fin_under_way(&mut pair, listener, 30);
    let last = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&last);
    pair.observe(move |_, side, frame| {
        if side == Side::Left {
            *noted.borrow_mut() = frame.to_vec();
        }
    });
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, fin);
    pair.run_for(Duration::from_secs(10));
    let (quoted, now) = (last.take(), pair.now);
    let error = IcmpError::FragmentationNeeded { next_hop_mtu: 1_500 };
    let report = IcmpMessage::Error { error, quote: Quote::of(&quoted[14..]).unwrap() };
    let mut frame = vec![0; 34 + report.length()];
    frame[..14].copy_from_slice(&quoted[..14]);
    frame[..6].copy_from_slice(&quoted[6..12]);
    frame[6..12].copy_from_slice(&quoted[..6]);
    report.emit(&mut frame[34..]);
    Ipv4Header::new(Side::Right.address(), Side::Left.address(), Protocol::ICMP)
        .emit(report.length(), &mut frame[14..]);
    pair.stack(Side::Left).handle_frame(now, RxFrame::plain(&frame, now));
    pair.stack(Side::Left).check();
}
