//! TIME-WAIT: it ends in its time, whoever stands in the queue before it and whatever happens meanwhile, and is looked
//! after for as long.

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

/// From this port of the left host, by rules with this MSL in seconds.
fn options(port: u16, msl: u64) -> ConnectOptions {
    let config = Some(Config { msl: seconds(msl), ..Config::modern() });
    ConnectOptions {
        local: Some(SocketAddrV4::new(Side::Left.address(), port)),
        config,
        ..ConnectOptions::default()
    }
}

/// Opens a connection from this port: both ends.
fn open(pair: &mut Pair, listener: ListenHandle, port: u16, msl: u64) -> (TcpHandle, TcpHandle) {
    let (now, door) = (pair.now, SocketAddrV4::new(Side::Right.address(), 9));
    let left = pair.stack(Side::Left).tcp_connect(now, door, &options(port, msl)).unwrap();
    pair.run_for(Duration::from_millis(10));
    (left, pair.stack(Side::Right).tcp_accept(listener).unwrap().0)
}

/// A connection from this port is in TIME-WAIT, and its application still holds it, or does not.
fn wait(pair: &mut Pair, listener: ListenHandle, port: u16, msl: u64, is_held: bool) -> TcpHandle {
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

/// Does a connection from this port still wait?
fn waits(pair: &mut Pair, port: u16) -> bool {
    let (now, door) = (pair.now, SocketAddrV4::new(Side::Right.address(), 9));
    match pair.stack(Side::Left).tcp_connect(now, door, &options(port, 30)) {
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

/// How much longer than it has to be TIME-WAIT may be in a queue, and a second.
const LONGER: Duration = Duration::from_millis(60_000 / 16 + 1_000);

#[test]
fn those_who_come_together_end_together_however_many_they_are() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let ports = 5_000..5_040;
    for port in ports.clone() {
        wait(&mut pair, listener, port, 30, false);
    }
    assert!(ports.clone().all(|port| waits(&mut pair, port)));
    pair.run_for(seconds(60) + LONGER);
    let left: Vec<u16> = ports.filter(|&port| waits(&mut pair, port)).collect();
    assert_eq!(left, []);
}

/// They have timers of their own, and stand before those who have not.
#[test]
fn those_who_are_held_for_longer_keep_nobody_behind_them_waiting() {
    for held in [1, 40] {
        let mut pair = pair();
        let listener = listen(&mut pair);
        for port in 5_000..5_000 + held {
            wait(&mut pair, listener, port, 200, true);
        }
        wait(&mut pair, listener, 6_000, 30, false);
        pair.run_for(seconds(59));
        assert!(waits(&mut pair, 6_000) && waits(&mut pair, 5_000));
        pair.run_for(seconds(1) + LONGER);
        assert!(!waits(&mut pair, 6_000) && waits(&mut pair, 5_000), "behind {held}");
    }
}

/// Whom an application still holds stands in the queue, too, and has a timer of its own: nobody turns for it.
#[test]
fn who_is_held_in_time_wait_is_not_asked_again_and_again() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    for (port, is_held) in (5_000..).zip([false, true, true]) {
        wait(&mut pair, listener, port, 30, is_held);
        pair.run_for(seconds(20));
    }
    // The first one's time comes to its end, then those of the others.
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

/// Forty that are held, behind one that has just ended, and so many timers have come due since. Perhaps one stands behind
/// them that does nothing but wait.
fn passing_over(timers: usize, is_another_behind: bool) -> (Pair, Vec<TcpHandle>) {
    let mut pair = pair();
    let listener = listen(&mut pair);
    wait(&mut pair, listener, 6_000, 30, false);
    let held = (5_000..5_040).map(|port| wait(&mut pair, listener, port, 40, true)).collect();
    if is_another_behind {
        wait(&mut pair, listener, 6_001, 40, false);
    }
    while waits(&mut pair, 6_000) {
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
fn who_is_let_go_while_others_are_passed_over_is_not_forgotten() {
    for timers in 0..5 {
        let (mut pair, held) = passing_over(timers, false);
        let now = pair.now;
        pair.stack(Side::Left).tcp_close(now, held[0]).unwrap();
        pair.run_for(seconds(20) + LONGER);
        assert!(!waits(&mut pair, 5_000), "let go after {timers} timers");
    }
}

/// Fewer are left then than were passed over.
#[test]
fn who_stands_behind_many_that_end_while_they_are_passed_over_is_not_forgotten() {
    for timers in 0..5 {
        let (mut pair, held) = passing_over(timers, true);
        let now = pair.now;
        for &handle in &held[..30] {
            pair.stack(Side::Left).tcp_abort(now, handle).unwrap();
        }
        pair.run_for(seconds(20) + LONGER);
        assert!(!waits(&mut pair, 6_001), "behind those that end after {timers} timers");
    }
}

/// The right end of a connection, whose left one has closed it and is not told of the right one's FIN: the frame with that,
/// which the network keeps.
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

/// RFC 9293 §3.10.7.4: its time begins anew, and that of nobody else.
#[test]
fn who_hears_the_fin_again_waits_behind_those_who_have_come_since() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let fin = fin_under_way(&mut pair, listener, 30);
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, fin.clone());
    pair.run_for(Duration::from_millis(10));
    pair.set_filter(|_, _, _| None);
    wait(&mut pair, listener, 5_001, 30, false);
    pair.run_for(seconds(30));
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, fin);
    pair.run_for(seconds(30) + LONGER);
    assert!(waits(&mut pair, 5_000) && !waits(&mut pair, 5_001));
    pair.run_for(seconds(30));
    assert!(!waits(&mut pair, 5_000));
}

/// A frame of TCP without IP options, `ahead` bytes later in the sequence space.
fn moved_ahead(frame: &[u8], ahead: u16) -> Vec<u8> {
    const TCP: usize = 14 + 20;
    let mut moved = frame.to_vec();
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let seq = u32::from(word(TCP + 4)) << 16 | u32::from(word(TCP + 6));
    moved[TCP + 4..TCP + 8].copy_from_slice(&(seq + u32::from(ahead)).to_be_bytes());
    // In one's complement a carry between the words of the number adds what it takes away.
    let checksum = (u32::from(word(TCP + 16)) + 65_535 - u32::from(ahead)) % 65_535;
    moved[TCP + 16..TCP + 18].copy_from_slice(&checksum.to_be_bytes()[2..]);
    moved
}

/// RFC 9293 §3.10.7.4 (first): the TIME-WAIT record answers as a whole connection would.
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

/// The link has no room for it, so that it stays awake: whether it stands in the queue, or would end before others there and
/// has a timer of its own, it ends, also where none of its busy life is left.
#[test]
fn one_whose_acknowledgement_cannot_leave_ends_in_its_time() {
    for (before, msl) in [(None, 30), (None, 1), (Some(30), 1)] {
        let mut pair = pair();
        let listener = listen(&mut pair);
        if let Some(longer) = before {
            wait(&mut pair, listener, 5_001, longer, false);
        }
        let fin = fin_under_way(&mut pair, listener, msl);
        let (start, stack) = (pair.now, pair.stack(Side::Left));
        stack.handle_frame(start, RxFrame::plain(&fin, start));
        stack.check();
        assert!(stack.wants_transmit());
        let end = start + seconds(2 * msl) + LONGER;
        while pair.now < end {
            let stack = pair.stack(Side::Left);
            let now = stack.poll_timeout().min(end);
            stack.handle_timeout(now, 9);
            stack.check();
            pair.now = now;
        }
        assert!(!pair.stack(Side::Left).wants_transmit(), "who is over has nothing to say");
        assert!(!waits(&mut pair, 5_000), "after {before:?}");
    }
}

/// Nothing is kept of it but what TIME-WAIT needs, which is looked at for a report that nobody can believe: the router says
/// that as much as was sent would pass.
#[test]
fn a_report_about_a_connection_in_time_wait_leaves_it_one_that_is_looked_after() {
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
