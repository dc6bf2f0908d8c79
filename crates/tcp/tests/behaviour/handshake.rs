//! Tests of the handshake (RFC 9293 §3.5): active, passive and simultaneous opens, losses of its
//! segments, and the negotiation of options.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{
    Config, Connection, Disposition, Error, Event, Offload, Path, Refusal, Seeds, State,
};
use linerate_testkit::{Connections, End, Fate, Network, Script};
use linerate_units::Instant;
use linerate_wire::{Segment, SeqNum, TcpFlags};
use std::cell::Cell;
use std::num::NonZeroU32;
use std::rc::Rc;

#[test]
fn an_active_open_takes_three_segments() {
    let mut host = Script::connect(&Config::modern());
    let syn = host.expect("S 0:0(0) win 65535 mss 1460 wscale 7 sackOK");
    let stamp = syn.says.options.timestamps.expect("timestamps are offered");
    assert_eq!((stamp.value, stamp.echo), (host.stamp_at(host.now), 0));
    assert_eq!(host.connection.state(), State::SynSent);
    host.send("S. 0:0(0) ack 1 win 1000 mss 1460 wscale 7 sackOK ts 5000 1");
    host.expect(". 1:1(0) ack 1");
    assert_eq!(host.connection.state(), State::Established);
    assert_eq!(host.events(), [Event::Connected, Event::Writable]);
    assert!(!host.connection.is_passive());
    host.expect_silence(secs(3_600));
}

#[test]
fn a_passive_open_answers_and_waits_for_the_third_segment() {
    let mut host =
        Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1400 wscale 2 sackOK ts 77 0");
    let answer = host.expect("S. 0:0(0) ack 1 win 65535 mss 1460 wscale 7 sackOK");
    assert_eq!(answer.says.options.timestamps.map(|stamp| stamp.echo), Some(77));
    assert_eq!((host.connection.state(), host.events()), (State::SynReceived, vec![]));
    host.send(". 1:1(0) ack 1 win 5840");
    assert_eq!(host.connection.state(), State::Established);
    assert_eq!(host.events(), [Event::Connected, Event::Writable]);
    assert!(host.connection.is_passive());
    host.expect_nothing();
}

#[test]
fn both_ends_can_open_at_the_same_time() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.send("S 0:0(0) win 1000 mss 1460");
    host.expect("S. 0:0(0) ack 1");
    assert_eq!(host.connection.state(), State::SynReceived);
    host.send("S. 0:0(0) ack 1 win 1000 mss 1460");
    assert_eq!(host.connection.state(), State::Established);
    host.write(10);
    host.expect("P. 1:11(10) ack 1");
}

#[test]
fn two_of_us_can_open_at_the_same_time() {
    let now = Instant::ZERO;
    let path = Path::ipv4(1_500);
    let open = |number| {
        let seeds = Seeds { initial_sequence: SeqNum::new(number), timestamp_offset: number };
        Connection::connect(Config::modern(), path, seeds, now)
    };
    let mut ends = [open(100), open(u32::MAX)];
    let mut frames = [[0; 1_480]; 2];
    let mut rounds = 0;
    loop {
        let sent = [0, 1]
            .map(|end| ends[end].driver().poll_transmit(now, Offload::None, &mut frames[end]));
        if sent.iter().all(Option::is_none) {
            break;
        }
        for end in [0, 1] {
            if let Some(sent) = &sent[1 - end] {
                let segment = Segment::parse(&frames[1 - end][..sent.length]).unwrap();
                let _ = ends[end].driver().handle_segment(now, &segment);
                ends[end].check();
            }
        }
        rounds += 1;
        assert!(rounds < 10, "the two ends do not reach ESTABLISHED");
    }
    assert!(ends.iter().all(|end| end.state() == State::Established));
}

#[test]
fn a_lost_syn_is_retransmitted_with_backoff_for_three_minutes() {
    let mut host = Script::connect(&Config::modern());
    let start = host.now;
    host.expect("S 0:0(0)");
    for seconds in [1, 2, 4, 8, 16, 32, 64] {
        host.expect_after(secs(seconds), "S 0:0(0)");
    }
    assert_eq!(host.connection.state(), State::SynSent);
    host.expect_silence(secs(120));
    assert_eq!(host.connection.state(), State::Closed);
    assert!(host.now.since(start) >= secs(180), "RFC 9293 §3.8.3: at least three minutes");
    assert_eq!(host.connection.error(), Some(Error::TimedOut));
    assert_eq!(host.events(), [Event::SoftError, Event::Closed]);
    assert!(host.connection.is_released());
}

#[test]
fn a_lost_syn_ack_is_retransmitted_with_backoff_and_when_the_syn_is_repeated() {
    let mut host = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460");
    host.expect("S. 0:0(0) ack 1");
    host.expect_after(secs(1), "S. 0:0(0) ack 1");
    host.expect_after(secs(2), "S. 0:0(0) ack 1");
    host.pass_time(ms(500));
    host.send("S 0:0(0) win 5840 mss 1460");
    host.expect("S. 0:0(0) ack 1");
    host.send(". 1:1(0) ack 1");
    assert_eq!(host.connection.state(), State::Established);
    host.expect_silence(secs(60));
}

#[test]
fn an_unacknowledged_syn_ack_is_given_up() {
    let mut host = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460");
    let start = host.now;
    host.pass_time(secs(300));
    assert_eq!(host.connection.state(), State::Closed);
    assert_eq!(host.connection.error(), Some(Error::TimedOut));
    let last = host.take_sent().pop().unwrap();
    assert!(last.at.since(start) >= secs(100) && last.says.flags == TcpFlags::SYN | TcpFlags::ACK);
}

/// Opens a connection. The `nth` segment that the endpoint `from` sends is lost. Returns the
/// duration of the handshake.
fn opening_without(from: End, nth: u32) -> linerate_units::Duration {
    let config = Config::modern();
    let mut pair = Connections::new(&config, &config, Network::clean(ms(10)), 1);
    let seen = Rc::new(Cell::new(0));
    pair.set_filter(move |_, side, _| {
        seen.set(seen.get() + u32::from(side == from));
        (side == from && seen.get() == nth).then_some(Fate::Lose)
    });
    let start = pair.now;
    let pair = pair.established();
    pair.now.since(start)
}

#[test]
fn a_lost_segment_of_the_handshake_costs_one_timeout_of_a_second() {
    assert_eq!(opening_without(End::Client, 99), ms(30));
    assert_eq!(opening_without(End::Client, 1), secs(1) + ms(30), "the SYN");
    assert_eq!(opening_without(End::Server, 1), secs(1) + ms(30), "the SYN-ACK");
    // The final ACK is lost. After one second, the server therefore repeats its SYN-ACK, which the
    // client acknowledges.
    assert_eq!(opening_without(End::Client, 2), secs(1) + ms(10) + ms(20), "the final ACK");
}

#[test]
fn after_a_lost_syn_the_timeout_is_three_seconds() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.expect_after(secs(1), "S 0:0(0)");
    host.send(SYN_ACK);
    host.write(10_000);
    assert_eq!(host.take_sent().len(), 7);
    host.expect_after(secs(3), ". 1:1461(1460) ack 1");
}

#[test]
fn a_reset_that_acknowledges_our_syn_refuses_the_connection() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.send("R. 0:0(0) ack 1");
    assert_eq!(
        (host.connection.state(), host.connection.error()),
        (State::Closed, Some(Error::Refused))
    );
    assert_eq!(host.events(), [Event::Closed]);
    assert_eq!(host.try_write(1), Err(Error::Refused));
    assert_eq!(host.read_nothing(), Err(Error::Refused));
    host.expect_silence(secs(60));
}

#[test]
fn a_reset_that_does_not_acknowledge_our_syn_is_ignored() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.send("R 0:0(0)");
    host.send("R. 0:0(0) ack 0");
    host.send("R. 0:0(0) ack 2");
    assert_eq!(host.connection.state(), State::SynSent);
    host.expect_nothing();
}

/// RFC 9293 §3.5.1, figure 9: our host has restarted, but the peer still has the old connection and
/// answers our SYN by an ACK. Our reset ends the old connection, and our next SYN opens a new one.
#[test]
fn an_ack_of_unsent_data_is_reset_and_the_syn_retransmitted() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    assert_eq!(host.judge(". 300:300(0) ack 100"), Disposition::Refused(Refusal::BadAck));
    host.expect("R 100:100(0)");
    host.expect_after(secs(1), "S 0:0(0)");
    host.send(SYN_ACK);
    host.expect(". 1:1(0) ack 1");
}

/// RFC 9293 §3.5, figure 8: our endpoint answers an old duplicate of a SYN. The peer has no such
/// connection, and answers with a reset. Our connection then closes without sending anything.
#[test]
fn an_old_duplicate_syn_is_reset_by_its_sender() {
    let mut host = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460");
    host.expect("S. 0:0(0) ack 1");
    host.send("R 1:1(0)");
    assert_eq!(host.connection.state(), State::Closed);
    host.expect_nothing();
}

#[test]
fn before_the_handshake_ends_a_wrong_acknowledgement_is_answered_by_a_reset() {
    for wrong in ["0", "2"] {
        let mut host = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460");
        host.expect("S. 0:0(0) ack 1");
        host.send(&format!(". 1:1(0) ack {wrong}"));
        host.expect(&format!("R {wrong}:{wrong}(0)"));
        assert_eq!(host.connection.state(), State::SynReceived);
    }
}

#[test]
fn a_wrong_acknowledgement_is_reset_even_if_the_right_one_follows() {
    let mut server = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460 sackOK ts 1 0");
    server.expect("S. 0:0(0) ack 1");
    server.send_together(&[". 1:1(0) ack 2", "P. 1:11(10) ack 1"]);
    server.expect("R 2:2(0)");
    server.expect(". 1:1(0) ack 11");
    server.expect_nothing();

    let mut client = Script::connect(&Config::modern());
    client.expect("S 0:0(0)");
    client.send_together(&[". 7:7(0) ack 3", "S. 0:0(0) ack 1 win 65535 mss 1460 sackOK ts 1 0"]);
    client.expect("R 3:3(0)");
    client.expect(". 1:1(0) ack 1");
    client.expect_nothing();
}

#[test]
fn data_written_early_is_sent_with_the_final_acknowledgement() {
    let mut host = Script::connect(&Config::modern());
    host.write(10);
    host.expect("S 0:0(0)");
    host.expect_nothing();
    host.send(SYN_ACK);
    host.expect("P. 1:11(10) ack 1");
    host.expect_nothing();
}

#[test]
fn data_with_the_final_acknowledgement_is_taken() {
    let mut host = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460");
    host.expect("S. 0:0(0) ack 1");
    host.send("P. 1:11(10) ack 1");
    host.expect(". 1:1(0) ack 11");
    assert_eq!(host.events(), [Event::Connected, Event::Readable, Event::Writable]);
    host.read(10);
}

#[test]
fn data_on_a_syn_without_cookie_is_ignored() {
    let mut host = Script::accept(&Config::modern(), "S 0:10(10) win 5840 mss 1460");
    host.expect("S. 0:0(0) ack 1");
    host.send(". 1:11(10) ack 1");
    host.expect(". 1:1(0) ack 11");
    host.read(10);
}

#[test]
fn the_window_of_a_syn_is_not_scaled_and_later_ones_are() {
    let config = Config { receive_buffer: (1 << 20).into(), ..Config::modern() };
    let mut host = Script::connect(&config);
    host.expect("S 0:0(0) win 65535 wscale 5");
    host.send("S. 0:0(0) ack 1 win 1000 mss 1460 wscale 7");
    host.expect(". 1:1(0) ack 1 win 32768");
    assert_eq!(host.connection.information().send_window, 1_000);
    host.send(". 1:1(0) ack 1 win 1000");
    assert_eq!(host.connection.information().send_window, 128_000);
}

/// A SYN-ACK is due to be sent. Before it is sent, the final ACK of the handshake arrives. The
/// SYN-ACK is then not sent, and its retransmission timer is not started.
#[test]
fn a_syn_ack_is_not_sent_after_its_acknowledgement() {
    let mut host = Script::accept(&Config::modern(), "S 0:0(0) win 5840 mss 1460");
    host.expect("S. 0:0(0) ack 1");
    host.send_together(&["S 0:0(0) win 5840 mss 1460", ". 1:1(0) ack 1"]);
    host.expect_silence(secs(60));

    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.send_together(&["S 0:0(0) win 5840 mss 1460", ". 1:1(0) ack 1"]);
    host.expect(". 1:1(0) ack 1");
    host.expect_silence(secs(60));
    assert_eq!(host.connection.state(), State::Established);
}

/// An option is used only if both endpoints offer it. The test checks this for window scaling,
/// timestamps and SACK.
#[test]
fn an_option_is_on_if_both_offer_it() {
    for bits in 0..64_u32 {
        let side = |shift: u32| Config {
            window_scaling: bits >> shift & 1 == 1,
            timestamps: bits >> (shift + 1) & 1 == 1,
            selective_acks: bits >> (shift + 2) & 1 == 1,
            receive_buffer: (1 << 20).into(),
            ..Config::modern()
        };
        let (client, server) = (side(0), side(3));
        let mut pair = Connections::new(&client, &server, Network::clean(ms(1)), 1).established();
        let scaled = if client.window_scaling && server.window_scaling { 5 } else { 0 };
        let segment = if client.timestamps && server.timestamps { 1_448 } else { 1_460 };
        for end in [End::Client, End::Server] {
            let information = pair.end(end).information();
            assert_eq!(
                (information.send_shift, information.receive_shift),
                (scaled, scaled),
                "{bits:b}"
            );
            assert_eq!(information.effective_mss, segment, "{bits:b}");
        }
    }
}

#[test]
fn sack_blocks_are_sent_only_if_permitted() {
    for (permitted, block) in [("sackOK", " sack 101-201"), ("", "")] {
        let mut host = Script::established(&Config::modern(), &format!("{SYN_ACK} {permitted}"));
        host.send(". 101:201(100) ack 1");
        let sent = host.expect(&format!(". 1:1(0) ack 1{block}"));
        assert_eq!(sent.says.options.sack.is_empty(), block.is_empty());
    }
}

#[test]
fn the_segment_size_is_the_peer_s_or_the_path_s_whichever_is_less() {
    for (offer, segment) in
        [("", 536), ("mss 1460", 1_460), ("mss 9000", 1_460), ("mss 700", 700), ("mss 1", 48)]
    {
        let host =
            Script::established(&Config::modern(), &format!("S. 0:0(0) ack 1 win 65535 {offer}"));
        assert_eq!(host.connection.effective_mss(), segment, "{offer}");
    }
}

#[test]
fn a_shift_beyond_fourteen_is_fourteen() {
    let host =
        Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 1000 mss 1460 wscale 200");
    assert_eq!(host.connection.information().send_shift, 14);
}

#[test]
fn a_route_s_window_clamp_applies_from_the_syn_on() {
    let path = Path { window_clamp: Some(4_096), ..Path::ipv4(1_500) };
    let mut host = Script::with_path(&Config::modern(), path);
    host.expect("S 0:0(0) win 4096 wscale 0");
    host.send(SYN_ACK);
    host.expect(". 1:1(0) ack 1 win 4096");
    // The clamp also limits the growth of the tuned buffer, and a buffer size that the application
    // sets.
    let mut next = 1;
    for _ in 0..200 {
        for _ in 0..4 {
            host.send(&format!(". {next}:{}(1000) ack 1", next + 1_000));
            next += 1_000;
        }
        host.read(4_000);
        host.pass_time(ms(50));
    }
    assert_eq!(host.connection.receive_buffer(), 4_096);
    host.application(|connection, _| connection.set_receive_buffer(1 << 20));
    assert_eq!(host.connection.receive_buffer(), 4_096);
    host.take_sent();
}

#[test]
fn a_route_s_initial_windows_replace_those_of_the_configuration() {
    let path = Path {
        initial_window: NonZeroU32::new(2),
        initial_receive_window: NonZeroU32::new(5),
        ..Path::ipv4(1_500)
    };
    let mut host = Script::with_path(&Config::modern(), path);
    host.expect("S 0:0(0) win 7300");
    host.send(SYN_ACK);
    host.expect(". 1:1(0) ack 1");
    host.write(6_000);
    host.expect(". 1:1461(1460) ack 1");
    host.expect(". 1461:2921(1460) ack 1");
    host.expect_nothing();
    // The initial receive window of the route is limited by the window clamp of the route, and by
    // the maximum of the receive buffer.
    let mut host = Script::with_path(&Config::modern(), Path { window_clamp: Some(4_096), ..path });
    host.expect("S 0:0(0) win 4096");
    let most = NonZeroU32::new(u32::MAX);
    let mut host =
        Script::with_path(&Config::modern(), Path { initial_receive_window: most, ..path });
    host.expect("S 0:0(0) win 65535");
    assert_eq!(host.connection.receive_buffer(), Config::modern().receive_buffer.most());
    // A receive buffer of a fixed size takes precedence over the initial receive window of the
    // route.
    let mut fixed = Config::modern();
    fixed.receive_buffer = 9_000.into();
    Script::with_path(&fixed, path).expect("S 0:0(0) win 9000");
}

/// The smaller of `TCP_MAXSEG` and the route's `advmss` is announced as MSS. It also limits the
/// size of the segments that we send.
#[test]
fn the_largest_segment_is_announced_and_not_exceeded() {
    for (own, route, announced) in [
        (Some(1_000), None, 1_000),
        (Some(9_000), None, 1_460),
        (Some(1_000), Some(900), 900),
        (Some(1), None, 48),
    ] {
        let config = Config { largest_segment: own, ..Config::modern() };
        let path = Path { mss_clamp: route, ..Path::ipv4(1_500) };
        let mut host = Script::with_path(&config, path);
        host.expect(&format!("S 0:0(0) mss {announced}"));
        host.send("S. 0:0(0) ack 1 win 65535 mss 1460");
        host.expect(". 1:1(0) ack 1");
        assert_eq!(host.connection.effective_mss(), announced);
        assert_eq!(host.connection.information().announced_mss, u32::try_from(announced).unwrap());
    }
    // If the peer announces a smaller MSS than our own limit, the peer's MSS applies to the
    // segments that we send.
    let config = Config { largest_segment: Some(1_000), ..Config::modern() };
    let host = Script::established(&config, "S. 0:0(0) ack 1 win 65535 mss 600");
    assert_eq!(host.connection.effective_mss(), 600);
}

/// `TCP_SYNCNT`: the application can change the timeout of the handshake while the SYN is in
/// flight.
#[test]
fn the_handshake_timeout_can_be_shortened_during_the_handshake() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.application(|connection, _| connection.set_handshake_timeout(Some(secs(2))));
    assert_eq!(host.connection.handshake_timeout(), secs(2));
    host.expect_after(secs(1), "S 0:0(0)");
    host.pass_time(secs(2));
    assert_eq!(host.connection.error(), Some(Error::TimedOut));
    host.expect_silence(secs(60));
}

#[test]
fn the_initial_window_of_1988_is_one_segment_and_today_s_ten() {
    for (config, segments) in
        [(Config::bsd_tahoe(), 1), (Config::bsd_reno(), 1), (Config::modern(), 10)]
    {
        let config = Config { send_buffer: 100_000.into(), ..config };
        let mut host = Script::established(&config, SYN_ACK);
        host.write(50_000);
        assert_eq!(host.take_sent().len(), segments);
    }
}

#[test]
fn closing_before_the_peer_has_answered_ends_the_connection() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.application(Connection::close);
    assert_eq!((host.connection.state(), host.connection.error()), (State::Closed, None));
    host.expect_silence(secs(60));
}
