//! Tests of received resets and SYNs, genuine and forged (RFC 9293 §3.10.7.4, RFC 5961), and of the
//! limits for acknowledgements. Without limits, two endpoints could answer each other's
//! acknowledgements for ever.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{
    Config, Connection, Disposition, Error, Event, ListenVerdict, Refusal, Reset, State,
    judge_listen, judge_unconnected,
};
use linerate_testkit::{Connections, End, Network, Notation, Script};
use linerate_wire::{Segment, SeqNum, TcpFlags, TcpHeader};
use std::cell::Cell;
use std::rc::Rc;

/// Opens a connection with a receive window of exactly 10,000 bytes.
fn established() -> Script {
    Script::established(&Config { receive_buffer: 10_000.into(), ..Config::modern() }, SYN_ACK)
}

#[test]
fn a_reset_at_the_next_number_ends_the_connection() {
    for reset in ["R 1:1(0)", "R. 1:1(0) ack 1", "R. 1:1(0) ack 777777"] {
        let mut host = established();
        assert_eq!(host.judge(reset), Disposition::Accepted);
        assert_eq!(
            (host.connection.state(), host.connection.error()),
            (State::Closed, Some(Error::Reset))
        );
        assert_eq!(host.events(), [Event::Closed]);
        assert_eq!(host.try_write(1), Err(Error::Reset));
        host.expect_silence(secs(600));
    }
}

#[test]
fn data_received_before_a_reset_can_be_read() {
    let mut host = established();
    host.send("P. 1:101(100) ack 1");
    host.send("R 101:101(0)");
    host.read(100);
    assert_eq!(host.read_nothing(), Err(Error::Reset));
}

#[test]
fn a_reset_elsewhere_in_the_window_is_challenged() {
    for seq in [2, 5_000, 10_000] {
        let mut host = established();
        let answer = host.judge(&format!("R {seq}:{seq}(0)"));
        assert_eq!(answer, Disposition::Refused(Refusal::Challenged));
        host.expect(". 1:1(0) ack 1");
        assert_eq!(host.connection.state(), State::Established);
        assert_eq!(host.connection.statistics().challenge_acks, 1);
        // If the reset is genuine, the peer no longer has the connection. It then answers our
        // challenge ACK with another reset, whose sequence number is the acknowledgement number of
        // the challenge ACK. This reset closes the connection.
        host.send("R 1:1(0)");
        assert_eq!(host.connection.state(), State::Closed);
    }
}

#[test]
fn a_reset_outside_the_window_is_ignored() {
    let mut host = established();
    for reset in [
        "R 0:0(0)",
        "R 10001:10001(0)",
        "R 2000000000:2000000000(0)",
        "R 0:50(50)",
        "R. 0:0(0) ack 1",
    ] {
        assert_eq!(host.judge(reset), Disposition::Refused(Refusal::OutsideWindow), "{reset}");
        host.expect_nothing();
        assert_eq!(host.connection.state(), State::Established);
    }
}

#[test]
fn a_reset_at_the_edge_of_a_closed_window_counts() {
    let mut host =
        Script::established(&Config { receive_buffer: 1_000.into(), ..Config::modern() }, SYN_ACK);
    host.send("P. 1:1001(1000) ack 1");
    host.expect(". 1:1(0) ack 1001 win 0");
    host.send("R 1001:1001(0)");
    assert_eq!(host.connection.state(), State::Closed);
}

#[test]
fn challenge_acks_are_limited() {
    let mut host = established();
    for _ in 0..100 {
        host.send("R 500:500(0)");
        host.send("S 500:500(0) win 100");
        host.pass_time(ms(10));
    }
    let answers = host.take_sent().len();
    assert!((8..=11).contains(&answers), "{answers} challenges to 200 forgeries in a second");
}

#[test]
fn a_syn_inside_a_connection_is_challenged_wherever_it_lies() {
    for syn in ["S 1:1(0) win 100", "S 5000:5000(0) win 100", "S 2000000000:2000000000(0) win 100"]
    {
        let mut host = established();
        host.send(syn);
        host.expect(". 1:1(0) ack 1");
        assert_eq!(host.connection.state(), State::Established);
        host.expect_nothing();
    }
}

/// RFC 9293 §3.5.1, figure 9: the peer has restarted and opens the connection anew, but our
/// connection still exists. We answer its SYN by a challenge ACK, and its reset ends our
/// connection.
#[test]
fn a_restarted_peer_can_reset_our_connection() {
    let mut host = established();
    host.send("S 700000:700000(0) win 100");
    host.expect(". 1:1(0) ack 1");
    host.send("R 1:1(0)");
    assert_eq!(host.connection.error(), Some(Error::Reset));
}

#[test]
fn a_repeated_answer_to_our_syn_is_acknowledged_again() {
    let mut host = established();
    host.send(SYN_ACK);
    host.expect(". 1:1(0) ack 1");
    assert_eq!(host.connection.state(), State::Established);
}

#[test]
fn resets_in_closing_states_are_no_errors() {
    let close = |host: &mut Script| {
        host.application(Connection::shutdown_write);
        host.expect("F. 1:1(0) ack 1");
    };
    let mut closing = established();
    close(&mut closing);
    closing.send("F. 1:1(0) ack 1");
    let mut last_ack = established();
    last_ack.send("F. 1:1(0) ack 1");
    last_ack.application(Connection::shutdown_write);
    for mut host in [closing, last_ack] {
        host.send("R 2:2(0)");
        assert_eq!((host.connection.state(), host.connection.error()), (State::Closed, None));
    }
    for waiting in ["", ". 1:1(0) ack 2"] {
        let mut host = established();
        close(&mut host);
        if !waiting.is_empty() {
            host.send(waiting);
        }
        host.send("R 1:1(0)");
        assert_eq!(host.connection.error(), Some(Error::Reset));
    }
}

#[test]
fn a_segment_without_an_acknowledgement_is_refused() {
    let mut host = established();
    assert_eq!(host.judge("P 1:101(100)"), Disposition::Refused(Refusal::NoAck));
    assert_eq!(host.connection.readable_bytes(), 0);
    host.expect_nothing();
}

#[test]
fn an_acknowledgement_of_unsent_data_is_refused() {
    let mut host = established();
    host.write(100);
    host.expect("P. 1:101(100) ack 1");
    assert_eq!(host.judge("P. 1:11(10) ack 102"), Disposition::Refused(Refusal::BadAck));
    host.expect(". 101:101(0) ack 1");
    assert_eq!(
        (host.connection.unacknowledged_bytes(), host.connection.readable_bytes()),
        (100, 0)
    );
}

/// RFC 5961 §5: data with a too old acknowledgement number is refused. So a blind attacker must
/// guess not only the sequence number, but also the acknowledgement number.
#[test]
fn an_old_acknowledgement_is_refused() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 1000 mss 1000");
    for start in (1..9_001).step_by(1_000) {
        host.write(1_000);
        host.expect(&format!("P. {start}:{}(1000) ack 1", start + 1_000));
        host.send(&format!(". 1:1(0) ack {} win 1000", start + 1_000));
    }
    assert_eq!(host.judge("P. 1:11(10) ack 8001"), Disposition::Accepted);
    host.expect(". 9001:9001(0) ack 11");
    assert_eq!(host.judge("P. 11:21(10) ack 8000"), Disposition::Refused(Refusal::BadAck));
    host.expect(". 9001:9001(0) ack 11");
    host.read(10);
}

#[test]
fn segments_that_are_not_acceptable_are_answered() {
    let mut host = established();
    for text in [". 20000:20100(100) ack 1", "F. 20000:20000(0) ack 1", ". 20000:20000(0) ack 1"] {
        assert_eq!(host.judge(text), Disposition::Refused(Refusal::OutsideWindow), "{text}");
        host.expect(". 1:1(0) ack 1");
    }
}

/// An empty segment outside the window is answered by an acknowledgement, which may be outside the
/// peer's window. The peer would answer it in turn, and so on for ever. Such acknowledgements are
/// therefore sent only at intervals.
#[test]
fn empty_segments_outside_the_window_are_answered_at_intervals() {
    let mut host = established();
    for _ in 0..100 {
        host.send(". 20000:20000(0) ack 1");
        host.send(". 1:1(0) ack 5000");
        host.pass_time(ms(10));
    }
    let answers = host.take_sent().len();
    assert!((8..=11).contains(&answers), "{answers} answers to 200 acknowledgements in a second");
}

/// An attacker who knows the sequence numbers sends forged data to both endpoints. Each endpoint
/// acknowledges data that the other has not sent, and the other answers this acknowledgement. The
/// number of these acknowledgements must be limited.
#[test]
fn forged_data_starts_no_storm_of_acknowledgements() {
    let config = Config { timestamps: false, ..Config::modern() };
    let network = Network::clean(ms(1));
    let mut pair = Connections::with_initial_sequences(&config, &config, network, [1_000, 5_000]);
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    pair.set_filter(move |_, _, _| {
        counted.set(counted.get() + 1);
        None
    });
    let mut pair = pair.established();
    let (to_client, to_server) = (forged(5_001, 1_001), forged(1_001, 5_001));
    pair.inject(End::Client, &to_client);
    pair.inject(End::Server, &to_server);
    count.set(0);
    pair.pass_time(secs(10));
    assert!(count.get() <= 250, "{} segments in ten seconds about nothing", count.get());
}

fn forged(seq: u32, ack: u32) -> Vec<u8> {
    let header = TcpHeader {
        seq: SeqNum::new(seq),
        ack: SeqNum::new(ack),
        flags: TcpFlags::ACK,
        window: 1_000,
        ..TcpHeader::default()
    };
    let mut bytes = vec![0xee; TcpHeader::LENGTH + 10];
    header.emit(0, &mut bytes);
    bytes
}

/// RFC 9293 §3.5.2 group 1 and §3.10.7.1: a segment that belongs to no connection is answered by a
/// reset.
#[test]
fn a_segment_of_no_connection_is_reset() {
    for (text, answer) in [
        (". 300:300(0) ack 100", Some((100, None))),
        ("F. 300:310(10) ack 100", Some((100, None))),
        ("S 300:300(0)", Some((0, Some(301)))),
        ("P 300:310(10)", Some((0, Some(310)))),
        ("R 300:300(0)", None),
        ("R. 300:300(0) ack 1", None),
    ] {
        let says = Notation::parse(text);
        let bytes = raw(&says);
        let reset = judge_unconnected(&Segment::parse(&bytes).unwrap());
        let received = reset.map(|reset| {
            let mut bytes = [0; Reset::LONGEST];
            let sent = reset.emit(&mut bytes);
            assert_eq!(sent.length, TcpHeader::LENGTH, "no option without one: {text}");
            let segment = Segment::parse(&bytes[..sent.length]).unwrap();
            let acks = segment.flags().contains(TcpFlags::ACK);
            assert!(segment.flags().contains(TcpFlags::RST));
            (segment.seq.number(), acks.then(|| segment.ack.number()))
        });
        assert_eq!(received, answer, "{text}");
    }
}

/// RFC 9293 §3.10.7.2: in LISTEN, a SYN opens a connection, and an acknowledgement is answered by a
/// reset.
#[test]
fn a_listener_opens_for_a_syn_and_resets_acknowledgements() {
    let judge = |text: &str| judge_listen(&Segment::parse(&raw(&Notation::parse(text))).unwrap());
    assert_eq!(judge("S 300:300(0)"), ListenVerdict::Open);
    assert_eq!(judge("P 300:310(10)"), ListenVerdict::Ignore);
    assert_eq!(judge("R 300:300(0)"), ListenVerdict::Ignore);
    assert_eq!(judge("SR 300:300(0)"), ListenVerdict::Ignore);
    for acknowledges in [". 300:300(0) ack 100", "S. 300:300(0) ack 100", "F. 300:300(0) ack 100"] {
        assert!(matches!(judge(acknowledges), ListenVerdict::Reset(_)), "{acknowledges}");
    }
}

/// Returns the bytes of a segment with the flags, sequence numbers and length of `says`, without
/// options.
fn raw(says: &Notation) -> Vec<u8> {
    let header = TcpHeader {
        seq: SeqNum::new(says.seq),
        ack: SeqNum::new(says.ack.unwrap_or(0)),
        flags: says.flags,
        ..TcpHeader::default()
    };
    let mut bytes = vec![0; TcpHeader::LENGTH + says.length as usize];
    header.emit(0, &mut bytes);
    bytes
}

/// A host that has sent its maximum number of challenge ACKs can withhold further ones. An
/// acknowledgement that is due for another reason is sent nevertheless.
#[test]
fn a_challenge_can_be_withheld_and_an_acknowledgement_that_is_due_cannot() {
    let mut host = established();
    let withhold = |connection: &mut Connection, _| {
        let owes = connection.owes_challenge();
        connection.driver().withhold_challenge();
        owes
    };
    assert_eq!(host.judge("R 50:50(0)"), Disposition::Refused(Refusal::Challenged));
    assert!(host.application(withhold));
    host.expect_nothing();
    host.pass_time(ms(200));
    // A duplicate segment and a forged reset arrive together. One acknowledgement answers both. It
    // is due for the duplicate, so it must not be withheld, although it is also a challenge ACK.
    host.send(". 1:11(10) ack 1");
    host.take_sent();
    host.send_together(&[". 1:11(10) ack 1", "R 50:50(0)"]);
    assert!(!host.application(withhold));
    host.expect(". 1:1(0) ack 11");
}
