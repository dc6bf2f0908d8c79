//! Tests of those requirements of RFC 9293 that the other files do not test. `specs/rfc9293.toml`
//! lists all requirements, with their tests.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{
    AckRule, Config, Connection, Disposition, Error, Event, IcmpReport, Offload, Path, Seeds,
    SoftError, State,
};
use linerate_testkit::Script;
use linerate_units::Instant;
use linerate_wire::{Segment, SeqNum, TcpFlags, TcpHeader};

fn established() -> Script {
    Script::established(&Config::modern(), SYN_ACK)
}

/// A connection, and a peer whose TCP options are written as raw bytes.
struct RawPeer {
    connection: Connection,
    now: Instant,
}

impl RawPeer {
    /// Opens a connection to a peer whose SYN-ACK has these options.
    fn established(options: &[u8]) -> Self {
        let seeds = Seeds { initial_sequence: SeqNum::new(100), timestamp_offset: 0 };
        let path = Path::ipv4(1_500);
        let now = Instant::ZERO + secs(1);
        let connection = Connection::connect(Config::modern(), path, seeds, now);
        let mut peer = Self { connection, now };
        peer.take_sent();
        let _ = peer.send(TcpFlags::SYN | TcpFlags::ACK, 900, options, b"");
        assert_eq!(peer.connection.state(), State::Established, "{options:?}");
        peer.take_sent();
        peer
    }

    fn send(&mut self, flags: TcpFlags, seq: u32, options: &[u8], data: &[u8]) -> Disposition {
        let (seq, ack) = (SeqNum::new(seq), SeqNum::new(101));
        let header = TcpHeader { seq, ack, flags, window: 9_000, ..TcpHeader::default() };
        let mut bytes = vec![0; TcpHeader::LENGTH];
        header.emit(options.len(), &mut bytes);
        bytes.extend_from_slice(options);
        bytes.extend_from_slice(data);
        let segment = Segment::parse(&bytes).expect("a segment");
        let verdict = self.connection.driver().handle_segment(self.now, &segment);
        self.connection.check();
        verdict
    }

    fn take_sent(&mut self) {
        while self
            .connection
            .driver()
            .poll_transmit(self.now, Offload::None, &mut [0; 1_480])
            .is_some()
        {}
    }
}

/// RFC 9293 MUST-5, MUST-6, MUST-7: unknown, invalid and misplaced options are skipped, and the
/// segment is processed.
#[test]
fn segments_with_unknown_illegal_or_misplaced_options_are_processed() {
    let unknown = [254, 4, 1, 2];
    let of_a_syn = [2, 4, 5, 180, 3, 3, 7, 1];
    let of_length_zero = [77, 0, 1, 1];
    let beyond_the_field = [77, 40, 1, 1];
    let nothing_but_its_kind = [1, 1, 1, 77];
    for options in
        [&unknown[..], &of_a_syn, &of_length_zero, &beyond_the_field, &nothing_but_its_kind]
    {
        let mut peer = RawPeer::established(&[2, 4, 5, 180]);
        let before = peer.connection.effective_mss();
        assert_eq!(
            peer.send(TcpFlags::ACK, 901, options, b"data"),
            Disposition::Accepted,
            "{options:?}"
        );
        assert_eq!(peer.connection.readable_bytes(), 4);
        assert_eq!(peer.connection.effective_mss(), before, "only a SYN can change the MSS");
        let fin = peer.send(TcpFlags::FIN | TcpFlags::ACK, 905, options, b"");
        assert_eq!(
            (fin, peer.connection.state()),
            (Disposition::Accepted, State::CloseWait),
            "{options:?}"
        );
        let mut peer = RawPeer::established(options);
        assert_eq!(peer.send(TcpFlags::RST, 901, options, b""), Disposition::Accepted);
        assert_eq!(peer.connection.error(), Some(Error::Reset));
    }
}

/// RFC 9293 MUST-64, MUST-4: options may begin at any byte, after any number of NOPs. Bytes after
/// an end-of-list option are ignored.
#[test]
fn options_are_read_wherever_they_begin() {
    for options in [
        &[2, 4, 2, 188][..],
        &[1, 2, 4, 2, 188, 1, 1, 1],
        &[254, 3, 0, 2, 4, 2, 188, 1],
        &[2, 4, 2, 188, 0, 2, 4, 9],
    ] {
        assert_eq!(RawPeer::established(options).connection.effective_mss(), 700, "{options:?}");
    }
    // On a SYN and on data, the timestamps option is accepted at an odd offset, without the usual
    // padding before it.
    let stamp = |value: u8| [8, 10, 0, 0, 0, value, 0, 0, 0, 0, 1, 0];
    let mut peer = RawPeer::established(&stamp(50));
    assert_eq!(peer.send(TcpFlags::ACK, 901, &stamp(51), b"data"), Disposition::Accepted);
    assert_ne!(
        peer.send(TcpFlags::ACK, 905, &stamp(49), b"data"),
        Disposition::Accepted,
        "from the past"
    );
}

/// RFC 9293 MUST-14, MUST-67, SHLD-5, MAY-3: each SYN announces as MSS the MTU of the path less the
/// IP and TCP headers without options.
#[test]
fn every_syn_announces_the_path_mtu_less_the_fixed_headers() {
    for (mtu_payload, mss) in [(1_480, 1_460), (980, 960), (556, 536), (65_515, 65_495)] {
        let path = Path::ipv4(mtu_payload + 20);
        let mut host = Script::with_path(&Config::bsd_tahoe(), path);
        host.expect(&format!("S 0:0(0) mss {mss}"));
    }
    let mut answer = Script::accept(&Config::bsd_tahoe(), "S 0:0(0) win 5840");
    answer.expect("S. 0:0(0) ack 1 mss 1460");
}

/// RFC 9293 MUST-65: only SYNs carry the MSS option.
#[test]
fn only_a_syn_carries_the_mss_option() {
    let mut host = established();
    host.write(2_000);
    host.send(". 1461:2921(1460) ack 1");
    host.send(". 1:1461(1460) ack 1461");
    host.application(Connection::shutdown_write);
    host.pass_time(secs(2));
    host.application(Connection::abort);
    let sent = host.take_sent();
    let flags = |flag| sent.iter().any(|sent| sent.says.flags.contains(flag));
    assert!(flags(TcpFlags::FIN) && flags(TcpFlags::RST) && flags(TcpFlags::PSH));
    for sent in sent {
        assert_eq!(sent.says.options.mss, None, "{}", sent.says);
    }
}

/// RFC 9293 MUST-1: the window is an unsigned number. A window of 40,000 has its highest bit set,
/// and must not be read as a negative number.
#[test]
fn a_window_with_its_first_bit_set_is_a_large_one() {
    let config = Config { initial_window: 100, ..Config::modern() };
    let mut host = Script::established(&config, "S. 0:0(0) ack 1 win 40000 mss 1000");
    assert_eq!(host.connection.information().send_window, 40_000);
    host.write(50_000);
    let sent: u32 = host.take_sent().iter().map(|sent| sent.says.length).sum();
    assert_eq!(sent, 40_000);
}

/// RFC 9293 MUST-11: a reset arrives before the handshake ends. An application that has opened the
/// connection gets the error "refused". If the peer has opened the connection, it ends as reset.
#[test]
fn a_reset_before_the_handshake_ends_refuses_an_active_open_and_resets_a_passive_one() {
    let mut active = Script::connect(&Config::modern());
    active.expect("S 0:0(0)");
    active.send("S 0:0(0) win 1000 mss 1460");
    active.expect("S. 0:0(0) ack 1");
    let mut passive = Script::accept(&Config::modern(), "S 0:0(0) win 1000 mss 1460");
    passive.expect("S. 0:0(0) ack 1");
    for (mut host, error) in [(active, Error::Refused), (passive, Error::Reset)] {
        assert_eq!(host.connection.state(), State::SynReceived);
        assert_eq!(host.connection.is_passive(), error == Error::Reset);
        host.send("R 1:1(0)");
        assert_eq!(
            (host.connection.state(), host.connection.error()),
            (State::Closed, Some(error))
        );
    }
}

/// RFC 9293 SHLD-2: a reset with data is accepted.
#[test]
fn a_reset_may_bring_data() {
    let mut host = established();
    host.send("R. 1:51(50) ack 1");
    assert_eq!(
        (host.connection.error(), host.connection.readable_bytes()),
        (Some(Error::Reset), 0)
    );
}

/// RFC 9293 MUST-18: RTO is computed as RFC 6298 requires, from a first RTT sample of 999 ms (2.2)
/// and a second one of 1,999 ms (2.3).
#[test]
fn the_timeout_follows_the_measured_round_trips() {
    let mut host = Script::connect(&Config { timestamps: false, ..Config::modern() });
    host.expect("S 0:0(0)");
    host.pass_time(secs(1) - ms(1));
    host.send(SYN_ACK);
    host.expect(". 1:1(0) ack 1");
    let first = host.connection.information();
    assert_eq!(first.smoothed_round_trip, Some(ms(999)));
    assert_eq!(first.retransmission_timeout, ms(999) * 3);
    host.write(100);
    host.expect("P. 1:101(100) ack 1");
    host.pass_time(ms(1_999));
    host.send(". 1:1(0) ack 101");
    let second = host.connection.information();
    // SRTT = 7/8 · 999 + 1/8 · 1999; RTTVAR = 3/4 · 499.5 + 1/4 · 1000.
    assert_eq!(second.smoothed_round_trip, Some(ms(1_124)));
    assert_eq!(second.retransmission_timeout.as_micros(), 1_124_000 + 4 * 624_625);
}

/// RFC 9293 MUST-20 (c), MUST-21, SHLD-11: each connection has its own R2, which is at least 100
/// seconds by default.
#[test]
fn r2_is_set_for_each_connection() {
    for seconds in [5, 100, 10_000] {
        let mut host = Script::established(
            &Config { give_up_after: secs(seconds), ..Config::modern() },
            SYN_ACK,
        );
        host.write(100);
        host.take_sent();
        let start = host.now;
        while host.connection.state() != State::Closed {
            host.pass_time(secs(1));
        }
        let took = host.now.since(start);
        assert!(took >= secs(seconds) && took <= secs(seconds + 121), "{took} for {seconds} s");
        assert_eq!(host.connection.error(), Some(Error::TimedOut));
    }
    assert!(Config::modern().give_up_after >= secs(100));
}

/// RFC 9293 SHLD-9, SHLD-10, MUST-47: the application is informed at R1, after three
/// retransmissions and long before the connection is given up at R2.
#[test]
fn the_application_is_informed_of_a_peer_that_does_not_answer() {
    let mut data = established();
    data.write(100);
    data.expect("P. 1:101(100) ack 1");
    for timeout in [200, 400] {
        data.expect_after(ms(timeout), "P. 1:101(100) ack 1");
        assert_eq!((data.events(), data.connection.soft_error()), (vec![], None));
    }
    data.expect_after(ms(800), "P. 1:101(100) ack 1");
    let received = (data.events(), data.connection.soft_error());
    assert_eq!(received, (vec![Event::SoftError], Some(SoftError::Silent)));
    assert_eq!((data.connection.state(), data.connection.error()), (State::Established, None));
    data.send(". 1:1(0) ack 101");
    assert_eq!(data.connection.soft_error(), None, "it has answered");

    let mut syn = Script::connect(&Config::modern());
    syn.expect("S 0:0(0)");
    for timeout in [1, 2] {
        syn.expect_after(secs(timeout), "S 0:0(0)");
        assert_eq!(syn.events(), []);
    }
    syn.expect_after(secs(4), "S 0:0(0)");
    assert_eq!(syn.events(), [Event::SoftError]);
}

/// RFC 9293 MUST-47, SHLD-25, MUST-56: an ICMP error is reported to the application at once, but
/// does not end the connection.
#[test]
fn the_application_is_informed_of_a_soft_error() {
    let mut opening = Script::connect(&Config::modern());
    opening.expect("S 0:0(0)");
    let mut open = established();
    open.write(100);
    open.expect("P. 1:101(100) ack 1");
    for (mut host, relative, state) in [(opening, 0, State::SynSent), (open, 1, State::Established)]
    {
        let quoted = host.number(relative);
        host.application(|connection, now| {
            connection.driver().handle_icmp(now, IcmpReport::SoftError { quoted });
        });
        assert_eq!((host.connection.state(), host.events()), (state, vec![Event::SoftError]));
        assert_eq!(host.connection.soft_error(), Some(SoftError::Unreachable));
    }
}

/// RFC 9293 MUST-29: a keep-alive probe or its answer may be lost. Therefore a single unanswered
/// probe does not end the connection, even if the configured number of probes is zero or one.
#[test]
fn one_unanswered_probe_ends_no_connection() {
    for probes in [0, 1, 2] {
        let keep_alive = linerate_tcp::KeepAlive { idle: secs(10), interval: secs(3), probes };
        let mut host = established();
        host.application(|connection, now| connection.set_keep_alive(now, Some(keep_alive)));
        host.expect_after(secs(10), ". 0:0(0) ack 1");
        host.expect_after(secs(3), ". 0:0(0) ack 1");
        host.send(". 1:1(0) ack 1");
        host.expect_after(secs(10), ". 0:0(0) ack 1");
        assert_eq!(host.connection.state(), State::Established);
    }
}

/// RFC 9293 MUST-31: 100,000 urgent bytes are sent. Each segment announces urgent data, but the
/// urgent pointer has only 16 bits. It gives the exact end once the distance to the end is small
/// enough.
#[test]
fn urgent_data_can_be_longer_than_the_pointer_reaches() {
    let config = Config { initial_window: 100, ..Config::modern() };
    let mut host = Script::established(&config, "S. 0:0(0) ack 1 win 65535 mss 1000 wscale 7");
    host.send(". 1:1(0) ack 1 win 2000");
    host.write_urgent(100_000);
    let sent = host.take_sent();
    assert_eq!(sent.len(), 100);
    for sent in sent {
        let left = 100_001 - sent.says.seq;
        assert_eq!(sent.says.urgent.map(u32::from), Some(left.min(65_535)), "{}", sent.says);
    }
    // Here the peer sends 100,000 urgent bytes. Our urgent mark moves on with the urgent pointer of
    // each segment.
    let mut host = established();
    for start in (1..100_001_usize).step_by(1_000) {
        let left = (100_001 - start).min(65_535);
        host.send(&format!("U. {start}:{}(1000) ack 1 urg {left}", start + 1_000));
        assert!(host.connection.urgent_distance().is_some_and(|distance| distance >= 1_000));
        host.read(999);
        assert_eq!(host.connection.urgent_distance(), Some(left - 999));
        host.read(1);
    }
    assert_eq!(host.connection.urgent_distance(), None);
}

/// RFC 9293 MUST-66: the peer may announce urgent data while our window is closed.
#[test]
fn urgent_data_is_announced_through_a_closed_window() {
    let mut host =
        Script::established(&Config { receive_buffer: 1_000.into(), ..Config::modern() }, SYN_ACK);
    host.send(". 1:1001(1000) ack 1");
    host.expect(". 1:1(0) ack 1001 win 0");
    host.events();
    host.send("U. 1001:1002(1) ack 1 urg 1");
    assert_eq!(host.events(), [Event::Urgent]);
    assert_eq!(host.connection.urgent_distance(), Some(1_001));
}

/// RFC 9293 SHLD-14: the right edge of the offered window never moves to the left, however late the
/// application reads. With window scaling, the window is rounded down to a multiple of the scale
/// factor (RFC 7323 §2.4). The edge may therefore move to the left by less than this factor.
#[test]
fn the_right_edge_of_the_window_is_never_taken_back() {
    for (buffer, scale, shift) in [(10_000, "", 0), (1 << 20, "wscale 7", 5)] {
        let config = Config { receive_buffer: buffer.into(), ..Config::modern() };
        let mut host = Script::established(&config, &format!("{SYN_ACK} {scale}"));
        let (mut end, mut furthest, mut unread) = (1_usize, 0, 0);
        for round in 0..2_000 {
            let length = (1 + round * 37 % 1_460).min(buffer - unread);
            if length > 0 {
                host.send(&format!(". {end}:{}({length}) ack 1", end + length));
            }
            let taken = host.connection.readable_bytes() - unread;
            (end, unread) = (end + taken, unread + taken);
            if round % 7 > 2 {
                let count = unread.min(round * 53 % 3_000);
                host.read(count);
                unread -= count;
            }
            host.pass_time(ms(50));
            for sent in host.take_sent() {
                let (ack, window) = (sent.says.ack.unwrap(), u32::from(sent.says.window.unwrap()));
                let edge = ack + (window << shift);
                assert!(edge + (1 << shift) > furthest, "{} takes back {furthest}", sent.says);
                furthest = furthest.max(edge);
            }
        }
        assert!(end > 100_000, "only {end} bytes came");
    }
}

/// RFC 9293 SHLD-16: the peer shrinks its window while data is in flight. The part of this data
/// that still fits is retransmitted.
#[test]
fn data_that_fits_a_shrunk_window_is_retransmitted() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 3000 mss 1000");
    host.write(5_000);
    assert_eq!(host.take_sent().len(), 3);
    host.send(". 1:1(0) ack 1 win 1500");
    host.expect_after(ms(200), ". 1:1001(1000) ack 1");
    host.send(". 1:1(0) ack 1001 win 1500");
    host.expect(". 1001:2001(1000) ack 1");
    host.expect(". 2001:2501(500) ack 1");
    host.expect_nothing();
}

/// RFC 9293 SHLD-17, MUST-34, MUST-35: if a window shrinks to zero while data is in flight, window
/// probes are sent. The connection stays open for as long as the peer answers them.
#[test]
fn a_window_shrunk_to_zero_does_not_end_a_connection_whose_peer_answers() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 3000 mss 1000");
    host.write(5_000);
    assert_eq!(host.take_sent().len(), 3);
    host.send(". 1:1(0) ack 1 win 0");
    let (start, mut probes) = (host.now, 0);
    while host.now.since(start) < secs(7_200) {
        host.pass_time(secs(1));
        for sent in host.take_sent() {
            assert!(sent.says.seq == 1 && sent.says.length <= 1, "{}", sent.says);
            probes += 1;
            host.send(". 1:1(0) ack 1 win 0");
        }
    }
    assert!(probes > 100, "{probes}");
    assert_eq!(host.connection.state(), State::Established);
    host.send(". 1:1(0) ack 1 win 3000");
    assert!(!host.take_sent().is_empty());
}

/// RFC 9293 SHLD-29, SHLD-30: the first window probe is sent after one RTO, here 2.7 seconds, and
/// the interval then doubles.
#[test]
fn the_first_probe_waits_for_a_retransmission_timeout() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.pass_time(ms(900));
    host.send("S. 0:0(0) ack 1 win 0 mss 1000");
    host.expect(". 1:1(0) ack 1");
    host.write(100);
    for interval in [2_700, 5_400, 10_800] {
        host.expect_after(ms(interval), ". 1:2(1) ack 1");
        host.send(". 1:1(0) ack 1 win 0");
    }
}

/// RFC 9293 MUST-40: an acknowledgement is delayed by at most half a second, even if a longer delay
/// or a longer tick is configured.
#[test]
fn no_configuration_delays_acknowledgements_for_half_a_second() {
    for (delayed_ack, tick) in [(secs(2), ms(0)), (ms(400), ms(400)), (ms(1), secs(3))] {
        let acks = AckRule::Modern { quick: 0 };
        let config = Config { acks, delayed_ack, delayed_ack_tick: tick, ..Config::modern() };
        let mut host = Script::established(&config, SYN_ACK);
        host.pass_time(ms(3));
        host.send(". 1:101(100) ack 1");
        host.pass_time(ms(499));
        host.expect(". 1:1(0) ack 101");
    }
}

/// RFC 9293 SHLD-4, RFC 6191 §2: a SYN ends TIME-WAIT if its timestamp is later than that of the
/// old connection. If both timestamps are equal, or the SYN has none, the SYN needs a higher
/// sequence number. If the old connection had no timestamps and the SYN has one, it ends TIME-WAIT
/// in any case.
#[test]
fn a_later_timestamp_ends_time_wait_whatever_its_number() {
    let waiting = |syn_ack: &str| {
        let mut host = Script::established(&Config::modern(), syn_ack);
        host.application(Connection::shutdown_write);
        host.expect("F. 1:1(0) ack 1");
        host.send("F. 1:1(0) ack 2");
        host.take_sent();
        assert_eq!(host.connection.state(), State::TimeWait);
        host
    };
    let stamped = format!("{SYN_ACK} ts 1000000 0");
    for (seq, stamp, opens) in [
        (0, Some(1_000_001), true),
        (0, Some(1_000_000), false),
        (1_000, Some(1_000_000), true),
        (1_000, Some(999_999), false),
        (0, None, false),
        (1_000, None, true),
    ] {
        let mut host = waiting(&stamped);
        let words = stamp.map_or_else(|| "bare".to_owned(), |stamp| format!("ts {stamp} 0"));
        let verdict = host.judge(&format!("S {seq}:{seq}(0) win 1000 {words}"));
        assert_eq!(verdict == Disposition::OpenAgain, opens, "{seq} {stamp:?}");
    }
    let mut without = waiting(SYN_ACK);
    assert_eq!(without.judge("S 0:0(0) win 1000 ts 5 0"), Disposition::OpenAgain);
}
