//! Tests of accurate ECN (RFC 9768): its negotiation, the ACE field and the option that report
//! congestion marks, and the sender's response to them.

use crate::{ms, secs};
use linerate_tcp::{
    AccurateEcn, Config, CongestionName, Connection, EcnRule, Error, MissReason, Offload, Open,
    Path, Seeds, State,
};
use linerate_testkit::{Connections, End, Fate, Network, Script};
use linerate_wire::{Ecn, Segment, SeqNum, TcpFlags};

/// A configuration that requests AccECN. Timestamps and window scaling are off, so that these
/// options do not take up space in segments.
const REQUEST: Config = Config {
    accurate_ecn: EcnRule::Request,
    timestamps: false,
    window_scaling: false,
    ..Config::modern()
};
const ACCEPT: Config = Config { accurate_ecn: EcnRule::Accept, ..REQUEST };

const SYN: &str = "SEWA 0:0(0) win 65535 mss 1000 sackOK";
/// A SYN-ACK that accepts AccECN. Its ACE field (here the flag CWR) reports that our SYN arrived as
/// Not-ECT. Its AccECN option carries the initial values of all byte counters.
const YES: &str = "SW. 0:0(0) ack 1 win 65535 mss 1000 sackOK ecn0 =1,0,1";

/// Returns a connection that we have opened with AccECN. Its segments have 1,000 bytes.
fn client(config: &Config) -> Script {
    let mut host = Script::connect(config);
    host.expect("SEWA 0:0(0)");
    host.send(YES);
    host.expect("2. 1:1(0) ack 1 ecn0 =1,0,1");
    host
}

/// Returns a connection that the peer has opened with AccECN.
fn server(config: &Config) -> Script {
    let mut host = Script::accept(config, SYN);
    host.expect("2S. 0:0(0) ack 1 ecn0 =1,0,1");
    host.send("2. 1:1(0) ack 1 ecn0 =1,0,1");
    assert_eq!(host.connection.state(), State::Established);
    host
}

fn counts(host: &Script) -> AccurateEcn {
    host.connection.information().accurate_ecn.expect("the accurate mode")
}

fn is_accurate(host: &Script) -> bool {
    host.connection.information().accurate_ecn.is_some()
}

fn window(host: &Script) -> u32 {
    host.connection.information().congestion_window
}

/// Writes `bytes` bytes, and returns the ECN codepoints of the data segments that are sent.
fn sends(host: &mut Script, bytes: u32) -> Vec<Ecn> {
    host.write(bytes as usize);
    host.take_sent().into_iter().filter(|sent| sent.says.length > 0).map(|sent| sent.ecn).collect()
}

/// RFC 9768 §3.1.1: the flags of the SYN and of the SYN-ACK negotiate AccECN.
#[test]
fn accecn_is_on_if_one_end_requests_and_the_other_accepts_it() {
    let mut host = Script::connect(&REQUEST);
    assert_eq!(host.expect("SEWA 0:0(0)").ecn, Ecn::NotEct);
    assert!(!is_accurate(&host), "not before the answer");
    host.send(YES);
    assert_eq!(host.expect("2. 1:1(0) ack 1").ecn, Ecn::NotEct);
    assert!(is_accurate(&host) && host.connection.information().ecn);
    assert_eq!(sends(&mut host, 2_000), [Ecn::Ect0; 2]);

    let mut host = server(&ACCEPT);
    assert!(is_accurate(&host));
    assert_eq!(sends(&mut host, 2_000), [Ecn::Ect0; 2]);
}

/// RFC 9768, tables 2 and 3: the ACE field of a SYN-ACK encodes the ECN codepoint with which the
/// SYN arrived. In the same way, the ACE field of the final ACK encodes the codepoint with which
/// the SYN-ACK arrived.
#[test]
fn the_syn_ack_reports_the_codepoint_of_the_syn_and_the_ack_that_of_the_syn_ack() {
    for (ecn, answer) in [(Ecn::NotEct, 2), (Ecn::Ect1, 3), (Ecn::Ect0, 4), (Ecn::Ce, 6)] {
        let mut host = Script::accept(&ACCEPT, SYN);
        host.connection.driver().note_codepoint_of_syn(ecn);
        host.expect(&format!("{answer}S. 0:0(0) ack 1"));
        host.send_bearing(Ecn::Ect0, SYN);
        host.expect("4S. 0:0(0) ack 1");
        host.send_bearing(ecn, SYN);
        host.expect(&format!("{answer}S. 0:0(0) ack 1"));

        let mut host = Script::connect(&REQUEST);
        host.expect("SEWA 0:0(0)");
        host.send_bearing(ecn, YES);
        host.expect(&format!("{answer}. 1:1(0) ack 1"));
        assert_eq!(counts(&host).received, u32::from(ecn == Ecn::Ce));
    }
}

/// RFC 9768, table 2: a client has requested AccECN. The flags of the SYN-ACK then select AccECN,
/// RFC 3168 or no ECN. Flags that the table does not define select AccECN (§3.1.3).
#[test]
fn every_other_syn_ack_selects_the_mode_of_table_2() {
    for (answer, ecn, accurate) in
        [(0, false, false), (1, true, false), (5, true, true), (7, false, false)]
    {
        let mut host = Script::connect(&REQUEST);
        host.expect("SEWA 0:0(0)");
        host.send(&format!("{answer}S. 0:0(0) ack 1 win 65535 mss 1000"));
        let information = host.connection.information();
        assert_eq!(
            (information.ecn, information.accurate_ecn.is_some()),
            (ecn, accurate),
            "{answer}"
        );
        host.expect(if accurate { "2. 1:1(0) ack 1" } else { ". 1:1(0) ack 1" });
        assert_eq!(
            sends(&mut host, 1_000),
            [if ecn { Ecn::Ect0 } else { Ecn::NotEct }],
            "{answer}"
        );
    }
    for (asked, answer) in [(0, 0), (1, 2), (2, 2), (3, 1), (4, 2), (5, 2), (6, 2), (7, 2)] {
        let mut host = Script::accept(&ACCEPT, &format!("{asked}S 0:0(0) win 65535 mss 1000"));
        host.expect(&format!("{answer}S. 0:0(0) ack 1"));
    }
}

/// RFC 9768 §3.1.2: if the peer accepts only classic ECN (RFC 3168), the connection uses classic
/// ECN, although our SYN requested AccECN.
#[test]
fn an_rfc_3168_peer_gets_rfc_3168_echoes() {
    let mut host = Script::connect(&REQUEST);
    host.expect("SEWA 0:0(0)");
    host.send("SE. 0:0(0) ack 1 win 65535 mss 1000");
    host.expect(". 1:1(0) ack 1");
    host.send_marked(". 1:1001(1000) ack 1");
    host.expect("E. 1:1(0) ack 1001");
    host.write(10);
    host.expect("PE. 1:11(10) ack 1001");
    host.send("EW. 1001:2001(1000) ack 11");
    host.expect(". 11:11(0) ack 2001");
    host.write(10);
    host.expect("PW. 11:21(10) ack 2001");
}

/// RFC 9768 §3.1.4.1: the first two SYNs request AccECN, and later SYNs request no ECN. No SYN
/// requests RFC 3168.
#[test]
fn a_request_is_repeated_once_and_then_omitted() {
    let mut host = Script::connect(&REQUEST);
    host.expect("SEWA 0:0(0)");
    host.expect_after(secs(1), "SEWA 0:0(0)");
    host.expect_after(secs(2), "S 0:0(0)");
    host.expect_after(secs(4), "S 0:0(0)");
    host.send(YES);
    host.expect("2. 1:1(0) ack 1");
    assert!(is_accurate(&host), "the first answer decides");
    assert_eq!(sends(&mut host, 1_000), [Ecn::Ect0], "and a client may still be marked (§3.1.5)");
}

/// RFC 9768 §3.2.3.2.2, §3.1.5: the SYN-ACK is lost twice. Its first repetition omits the AccECN
/// option. The second repetition also omits the ECN flags, and all later data is Not-ECT.
#[test]
fn a_lost_syn_ack_is_repeated_without_the_option_and_then_without_the_flags() {
    let mut host = Script::accept(&ACCEPT, SYN);
    host.expect("2S. 0:0(0) ack 1 ecn0 =1,0,1");
    assert_eq!(host.expect_after(secs(1), "2S. 0:0(0) ack 1").says.options.ecn, None);
    assert_eq!(host.expect_after(secs(2), "S. 0:0(0) ack 1").says.options.ecn, None);
    host.send("2. 1:1(0) ack 1");
    assert!(is_accurate(&host), "the mode does not change");
    assert_eq!(sends(&mut host, 988), [Ecn::NotEct]);
    host.send_marked("5. 1:1001(1000) ack 989");
    host.expect("6. 989:989(0) ack 1001");
}

/// RFC 9768 §3.1.4.2, §3.1.5: the first SYN determines the ECN mode of the connection. A repeated
/// SYN may lack the request, but the SYN-ACK that answers it still has the flags of this mode.
#[test]
fn a_peer_that_falls_back_is_answered_in_accecn_mode_and_data_is_not_ect() {
    let mut host = Script::accept(&ACCEPT, SYN);
    host.expect("2S. 0:0(0) ack 1");
    host.send("S 0:0(0) win 65535 mss 1000 sackOK");
    host.expect("2S. 0:0(0) ack 1");
    host.send("2. 1:1(0) ack 1");
    assert!(is_accurate(&host));
    assert_eq!(sends(&mut host, 1_000), [Ecn::NotEct]);

    // A connection whose first SYN requested no ECN continues without ECN, even if a later SYN
    // requests AccECN.
    let mut host = Script::accept(&ACCEPT, "S 0:0(0) win 65535 mss 1000");
    host.expect("S. 0:0(0) ack 1");
    host.send(SYN);
    host.expect("S. 0:0(0) ack 1");
    host.send(". 1:1(0) ack 1");
    assert!(!host.connection.information().ecn);
}

/// RFC 9768 §3.1.5: a repeated SYN must not request another ECN mode than the first SYN did. If it
/// does, the connection is reset.
#[test]
fn a_peer_that_requests_both_modes_is_reset() {
    for (first, second) in [(SYN, "SEW 0:0(0) win 65535"), ("SEW 0:0(0) win 65535 mss 1000", SYN)] {
        let mut host = Script::accept(&ACCEPT, first);
        host.take_sent();
        host.send(second);
        host.expect("R. 1:1(0) ack 1");
        assert_eq!(host.connection.error(), Some(Error::Contradiction));
    }
    // This host does not support AccECN. It ignores the flag AE, by which a request of AccECN
    // differs from one of classic ECN. So it sees no contradiction, and sends no reset.
    let mut host = Script::accept(&Config::modern(), "SEW 0:0(0) win 65535 mss 1000");
    host.expect("SE. 0:0(0) ack 1");
    host.send(SYN);
    host.expect("SE. 0:0(0) ack 1");
}

/// RFC 9768 §3.1.5: a repeated SYN may have the ECN request of the first SYN, or no ECN request. In
/// neither case is the connection reset.
#[test]
fn a_peer_that_repeats_its_classic_request_or_falls_back_is_answered() {
    for (second, answer) in [("SEW 0:0(0) win 65535", "SE."), ("S 0:0(0) win 65535", "S.")] {
        let mut host = Script::accept(&ACCEPT, "SEW 0:0(0) win 65535 mss 1000");
        host.expect("SE. 0:0(0) ack 1");
        host.send(second);
        host.expect(&format!("{answer} 0:0(0) ack 1"));
        assert_eq!(host.connection.state(), State::SynReceived, "{second}");
    }
}

/// RFC 9768 §3.1.4: `ecn` and `accurate_ecn` are independent settings. Here `ecn` requests RFC
/// 3168, while `accurate_ecn` only accepts the request of a peer.
#[test]
fn a_host_that_only_accepts_accecn_requests_rfc_3168() {
    let mut host = Script::connect(&Config { ecn: EcnRule::Request, ..ACCEPT });
    host.expect("SEW 0:0(0)");
}

/// RFC 9768 §3.1.5: the first SYN-ACK determines the ECN mode. Flags of later SYNs and SYN-ACKs do
/// not change it.
#[test]
fn flags_of_later_syns_are_ignored() {
    let mut host = client(&REQUEST);
    host.send("SE. 0:0(0) ack 1 win 65535");
    assert!(is_accurate(&host));
    host.expect("2. 1:1(0) ack 1");
    host.pass_time(secs(1));
    host.send("S 0:0(0) win 65535");
    assert!(is_accurate(&host));
    assert_eq!(sends(&mut host, 1_000), [Ecn::Ect0]);
}

/// RFC 9768 §3.1.2: in a simultaneous open, each endpoint answers the other's SYN with a SYN-ACK,
/// whose flags accept the request of that SYN.
#[test]
fn both_ends_of_a_simultaneous_open_answer_as_servers() {
    let mut host = Script::connect(&REQUEST);
    host.expect("SEWA 0:0(0)");
    host.send_bearing(Ecn::Ect0, SYN);
    host.expect("4S. 0:0(0) ack 1");
    assert!(is_accurate(&host));
    host.send("2S. 0:0(0) ack 1 win 65535 mss 1000 sackOK");
    assert_eq!(host.connection.state(), State::Established);
    assert_eq!(sends(&mut host, 1_000), [Ecn::Ect0]);

    // In the SYN-ACK, the flags AE, CWR and ECE are no counter of marks (§3.2.2), so no mark is
    // counted.
    assert_eq!(counts(&host).delivered, 0);
    let mut host = Script::connect(&REQUEST);
    host.expect("SEWA 0:0(0)");
    host.send("SEW 0:0(0) win 65535 mss 1000");
    host.expect("SE. 0:0(0) ack 1");
    assert!(!is_accurate(&host));
}

/// RFC 9768 §3.2.2.1: the SYN-ACK is acknowledged by a pure ACK, even if data waits to be sent. The
/// ACE field of this ACK reports only the codepoint of the SYN-ACK. Repeated SYN-ACKs are
/// acknowledged in this way, too.
#[test]
fn the_syn_ack_is_acknowledged_alone_even_if_data_waits() {
    let mut host = Script::connect(&REQUEST);
    host.write(500);
    host.expect("SEWA 0:0(0)");
    host.send_bearing(Ecn::Ect0, YES);
    host.expect("4. 1:1(0) ack 1 ecn0 =1,0,1");
    host.expect("P5. 1:501(500) ack 1 ecn0 =1,0,1");
    host.pass_time(ms(150));
    host.send_bearing(Ecn::Ect1, YES);
    host.expect("3. 501:501(0) ack 1");
    host.send(". 1:1(0) ack 501");
    host.pass_time(ms(150));
    host.send(YES);
    host.expect("2. 501:501(0) ack 1");
}

/// RFC 9768 §3.2.2.2: the SYN-ACK reports a mark on the SYN. If a SYN-ACK and its repetition both
/// arrive with a mark, only one mark is counted.
#[test]
fn marks_on_the_handshake_are_reported_and_counted() {
    let mut host = Script::connect(&REQUEST);
    host.expect("SEWA 0:0(0)");
    host.send_marked(YES);
    host.expect("6. 1:1(0) ack 1");
    host.pass_time(ms(200));
    host.send_marked(YES);
    host.expect("6. 1:1(0) ack 1");
    host.write(10);
    host.expect("P6. 1:11(10) ack 1");
    assert_eq!(counts(&host).received, 1);

    let mut host = Script::accept(&ACCEPT, SYN);
    host.connection.driver().note_codepoint_of_syn(Ecn::Ce);
    host.expect("6S. 0:0(0) ack 1");
    host.send("2. 1:1(0) ack 1");
    host.write(10);
    host.expect("P5. 1:11(10) ack 1");

    // Here the peer reports a mark on our SYN or on our SYN-ACK. In both cases, our endpoint
    // reduces its window. Only the mark on the SYN-ACK is also counted (table 4).
    let mut host = Script::connect(&REQUEST);
    host.expect("SEWA 0:0(0)");
    host.send("6S. 0:0(0) ack 1 win 65535 mss 1000 sackOK");
    host.expect("2. 1:1(0) ack 1");
    assert_eq!((counts(&host).delivered, window(&host)), (0, 7_000));
    let mut host = Script::accept(&ACCEPT, SYN);
    host.expect("2S. 0:0(0) ack 1");
    host.send("6. 1:1(0) ack 1");
    assert_eq!((counts(&host).delivered, window(&host)), (1, 7_000));
}

/// RFC 9768 §3.2.2.3: the path has changed the ECN codepoint of the SYN or SYN-ACK. Our endpoint
/// then sends only Not-ECT. It still reports marks on received segments, and responds to marks that
/// the peer reports.
#[test]
fn a_path_that_changes_codepoints_only_ends_marking() {
    let mut one = Script::connect(&REQUEST);
    one.expect("SEWA 0:0(0)");
    one.send("4S. 0:0(0) ack 1 win 65535 mss 1000 sackOK");
    one.expect("2. 1:1(0) ack 1");
    let mut other = Script::accept(&ACCEPT, SYN);
    other.expect("2S. 0:0(0) ack 1");
    other.send("3. 1:1(0) ack 1");
    for mut host in [one, other] {
        assert!(is_accurate(&host));
        assert_eq!(sends(&mut host, 988), [Ecn::NotEct]);
        assert_eq!(sends(&mut host, 3_000), [Ecn::NotEct; 3]);
        let before = window(&host);
        host.send_marked("6. 1:1001(1000) ack 3989");
        host.expect("6. 3989:3989(0) ack 1001");
        assert!(window(&host) < before);
    }
}

/// RFC 9768 §3.2.2.1, table 4, note 1: the ACK of a SYN-ACK has an ACE field of zero. This value is
/// invalid, so the path has changed the flags. The server then sends Not-ECT and ignores the ACE
/// field, but still reports marks.
#[test]
fn a_zero_ace_field_after_the_handshake_disables_marking_and_ace_but_not_reports() {
    let mut host = Script::accept(&ACCEPT, SYN);
    host.expect("2S. 0:0(0) ack 1");
    host.send(". 1:1(0) ack 1");
    assert_eq!(sends(&mut host, 4_000), [Ecn::NotEct; 4]);
    let before = window(&host);
    host.send_marked("3. 1:1001(1000) ack 4001");
    assert!(window(&host) >= before);
    assert_eq!(counts(&host).delivered, 0);
    host.expect("6. 4001:4001(0) ack 1001");
}

/// RFC 9768 §3.2.2.1: here the handshake ends with a segment that carries data or SACK blocks. The
/// ACE field of such a segment is the counter of marks, and not the codepoint of the SYN-ACK.
#[test]
fn data_that_ends_the_handshake_carries_the_counter() {
    let mut host = Script::accept(&ACCEPT, SYN);
    host.expect("2S. 0:0(0) ack 1");
    host.send("P6. 1:1001(1000) ack 1");
    assert_eq!(host.connection.state(), State::Established);
    assert_eq!(counts(&host).delivered, 1);
    // RFC 9768 §3.2.2.4: on a segment with data, an ACE field of zero is valid, even if it is the
    // first. It is decoded as the counter of marks, which starts at five. Modulo eight, zero means
    // three marks.
    let mut host = Script::accept(&ACCEPT, SYN);
    host.expect("2S. 0:0(0) ack 1");
    host.send("P. 1:1001(1000) ack 1");
    host.take_sent();
    assert_eq!((counts(&host).delivered, sends(&mut host, 1_000)), (3, vec![Ecn::Ect0]));
}

/// RFC 9768 §3.2.2.2: every segment that we send carries the current counter of received marks.
#[test]
fn every_segment_carries_the_current_counter() {
    let mut host = server(&ACCEPT);
    host.write(1_000);
    host.expect("P5. 1:1001(1000) ack 1");
    for (mark, ace) in [(1, 6), (2, 7), (3, 0), (4, 1)] {
        let seq = 1_000 * (mark - 1) + 1;
        host.send_marked(&format!("5. {seq}:{}(1000) ack 1", seq + 1_000));
        host.pass_time(ms(50));
        host.expect(&format!("{ace}. 1001:1001(0) ack {}", seq + 1_000));
    }
    host.pass_time(ms(300));
    host.expect("P1. 1:1001(1000) ack 4001");
    assert_eq!(host.connection.statistics().marked_segments, 4);
    // A segment outside the window is answered by an acknowledgement, which carries the counter
    // like any other segment.
    host.send("5. 900000:900000(0) ack 1");
    host.expect("1. 1001:1001(0) ack 4001");
}

/// RFC 9768 §3.2.2.2: every segment carries the current ACE counter. NICs and kernels clear CWR in
/// all segments of a GSO frame after the first one, so there are no GSO frames while CWR is set in
/// the counter.
#[test]
fn no_gso_frame_is_sent_while_the_counter_contains_cwr() {
    let mut counters_with_frames = Vec::new();
    for marks in 0..8 {
        let mut host = server(&ACCEPT);
        for seq in (0..marks).map(|mark| 1_000 * mark + 1) {
            host.send_marked(&format!("5. {seq}:{}(1000) ack 1", seq + 1_000));
            host.pass_time(ms(50));
        }
        host.take_sent();
        assert_eq!(host.try_write(4_000), Ok(4_000));
        let (now, mut frame) = (host.now, [0; 65_535]);
        let is_gso = std::iter::from_fn(|| {
            host.connection.driver().poll_transmit(now, Offload::Segmentation, &mut frame)
        })
        .any(|sent| sent.cut.is_some());
        if is_gso {
            counters_with_frames.push((5 + marks) % 8);
        }
    }
    assert_eq!(counters_with_frames, [5, 0, 1, 4]);
}

/// RFC 9768 §3.2: a mark is counted only if its segment passes the checks of RFC 9293 and RFC 5961.
/// Marks on acceptable duplicates and pure ACKs count.
#[test]
fn only_packets_that_are_acceptable_are_counted() {
    let mut host = server(&ACCEPT);
    host.send_marked("5. 1:1001(1000) ack 1");
    host.send_marked("5. 1:1001(1000) ack 1");
    host.send_marked("5. 900000:901000(1000) ack 1");
    host.send_marked("5. 1001:1001(0) ack 900");
    host.send_marked("5. 1001:2001(1000) ack 900");
    assert_eq!((counts(&host).received, counts(&host).received_ce_bytes), (1, 1_000));
    host.send_marked("5. 1001:1001(0) ack 1");
    host.send_marked("5. 501:2001(1500) ack 1");
    host.send_marked("5. 4001:5001(1000) ack 1");
    host.send_bearing(Ecn::Ect1, "5. 2001:3001(1000) ack 1");
    host.send_bearing(Ecn::Ect0, "5. 3001:3501(500) ack 1");
    let counts = counts(&host);
    assert_eq!((counts.received, counts.received_ce_bytes), (4, 3_500));
    assert_eq!((counts.received_e0_bytes, counts.received_e1_bytes), (500, 1_000));
    host.take_sent();
}

/// RFC 9768 §3.2.2.5.1: the first mark after unmarked data is acknowledged at once. While further
/// segments are marked, every second mark is acknowledged at once.
#[test]
fn the_first_mark_and_every_second_are_acknowledged_at_once() {
    let mut host = server(&Config { acks: linerate_tcp::AckRule::Modern { quick: 0 }, ..ACCEPT });
    host.send_bearing(Ecn::Ect0, "5. 1:101(100) ack 1");
    host.expect_nothing();
    host.send_marked("5. 101:201(100) ack 1");
    host.expect("6. 1:1(0) ack 201");
    host.send_marked("5. 201:301(100) ack 1");
    host.expect_nothing();
    host.send_marked("5. 301:401(100) ack 1");
    host.expect("0. 1:1(0) ack 401");
}

/// RFC 9768 §3.2.2.5.1: if only pure ACKs are marked, every third mark is acknowledged. This
/// acknowledgement omits SACK blocks, because with them the peer would take it for a duplicate ACK
/// that reports a loss.
#[test]
fn every_third_mark_on_acknowledgements_is_acknowledged_without_blocks() {
    for mut host in [server(&ACCEPT), client(&REQUEST)] {
        host.send("5. 1001:2001(1000) ack 1");
        host.expect("5. 1:1(0) ack 1 sack 1001-2001");
        host.write(3_000);
        let end =
            host.take_sent().iter().map(|sent| sent.says.seq + sent.says.length).max().unwrap();
        for _ in 0..2 {
            host.send_marked("5. 1:1(0) ack 1");
            host.expect_nothing();
        }
        host.send_marked("5. 1:1(0) ack 1");
        let bare = host.expect(&format!("0. {end}:{end}(0) ack 1"));
        assert!(bare.says.options.sack.is_empty());
        host.expect_nothing();
        host.send("5. 2001:3001(1000) ack 1");
        host.expect(&format!("0. {end}:{end}(0) ack 1 sack 1001-3001"));
    }
}

/// RFC 9768 §3.2.3.2.1: pure ACKs with the AccECN option have arrived, but the path may still drop
/// data segments with the option. To test this, our first data segment carries the option.
#[test]
fn the_first_data_tests_the_path_with_the_option() {
    let mut host = client(&REQUEST);
    for (start, tells) in [(1, true), (101, true), (201, false)] {
        host.send_bearing(Ecn::Ect0, &format!("P5. {start}:{}(100) ack 1", start + 100));
        let sent = host.take_one().says;
        assert_eq!((sent.length, sent.options.ecn.is_some()), (0, tells), "{sent}");
    }
    host.write(100);
    host.expect("P5. 1:101(100) ack 301 ecn0 =301");
}

/// RFC 9768 §3.1.5, RFC 3168 §6.1.2: a mark reduces the window as a loss does, at most once per
/// window of data. In contrast to classic ECN, the CWR flag is not set in response.
#[test]
fn a_mark_reduces_the_window_like_a_loss_once_per_window() {
    for (congestion, left) in [
        (CongestionName::Reno, 5_000),
        (CongestionName::NewReno, 5_000),
        (CongestionName::Cubic, 7_000),
    ] {
        let mut host = server(&Config { congestion, ..ACCEPT });
        host.write(40_000);
        assert_eq!(host.take_sent().len(), 10, "{congestion}");
        host.send("6. 1:1(0) ack 1001");
        assert_eq!(window(&host), left, "{congestion}");
        for (ace, acked) in [(7, 2_001), (0, 3_001), (1, 4_001), (3, 6_001)] {
            host.send(&format!("{ace}. 1:1(0) ack {acked}"));
        }
        assert_eq!(window(&host), left, "{congestion}: all in one window");
        assert_eq!(counts(&host).delivered, 6, "{congestion}");
        let sent = host.take_sent();
        assert!(!sent.is_empty());
        assert!(
            sent.iter().all(|sent| sent.says.flags & TcpFlags::ACE == TcpFlags::of_ace(5)),
            "no CWR"
        );
        let end = 10_001 + 1_000 * u32::try_from(sent.len()).unwrap();
        host.send(&format!("4. 1:1(0) ack {end}"));
        assert!(window(&host) < left, "{congestion}: and the next");
        let statistics = host.connection.statistics();
        assert_eq!(
            (statistics.mark_reductions, statistics.marked_deliveries),
            (2, 7),
            "{congestion}"
        );
        assert_eq!(statistics.retransmitted_segments, 0, "{congestion}");
    }
}

/// RFC 9768 §3.2.2.2, appendix A.1: acknowledgements may arrive in another order than they were
/// sent. An acknowledgement that was sent before another, but arrives after it, has a lower
/// counter. This must not be taken for a counter that has wrapped, so it is ignored.
#[test]
fn late_feedback_is_not_mistaken_for_a_wrapped_counter() {
    let mut host = client(&REQUEST);
    host.write(10_000);
    host.take_sent();
    host.send("7. 1:1(0) ack 4001");
    assert_eq!(counts(&host).delivered, 2);
    host.send("6. 1:1(0) ack 2001");
    host.send("5. 1:1(0) ack 4001");
    assert_eq!(counts(&host).delivered, 2);
    host.send("7. 1:1(0) ack 6001");
    assert_eq!(counts(&host).delivered, 2);
    // The acknowledgement number has not advanced. The SACK block is new, however, so this
    // acknowledgement was sent after all others, and its counter is used.
    host.send("0. 1:1(0) ack 6001 sack 8001-9001");
    assert_eq!(counts(&host).delivered, 3);
}

/// If two acknowledgements have equal acknowledgement numbers, the one with the later timestamp was
/// sent later. Its counter is used.
#[test]
fn a_newer_timestamp_marks_new_feedback() {
    let mut host = Script::connect(&Config { timestamps: true, ..REQUEST });
    host.expect("SEWA 0:0(0)");
    host.send("2S. 0:0(0) ack 1 win 65535 mss 1000 sackOK ts 1000000 0");
    host.expect("2. 1:1(0) ack 1");
    host.send("6. 1:1(0) ack 1 ts 1000000 0");
    assert_eq!(counts(&host).delivered, 0);
    host.send("6. 1:1(0) ack 1 ts 1000001 0");
    assert_eq!(counts(&host).delivered, 1);
}

/// RFC 9768 §3.2.2.5.2, §3.2.3.2.3: after a mark, an acknowledgement of eight segments has an
/// unchanged counter. There were no further marks, or eight, so that the counter has wrapped. If
/// the peer's AccECN options arrive, they decide. Otherwise eight marks are assumed.
#[test]
fn without_options_a_counter_that_may_have_wrapped_is_decoded_cautiously() {
    for (answer, told) in [(YES, 0), ("2S. 0:0(0) ack 1 win 65535 mss 1000 sackOK", 8)] {
        let mut host = Script::connect(&Config { initial_window: 40, ..REQUEST });
        host.expect("SEWA 0:0(0)");
        host.send(answer);
        host.expect("2. 1:1(0) ack 1");
        assert_eq!(counts(&host).receives_options, told == 0);
        host.write(40_000);
        host.take_sent();
        host.send("6. 1:1(0) ack 1001");
        host.send("6. 1:1(0) ack 9001");
        assert_eq!(counts(&host).delivered, 1 + told, "{answer}");
        // RFC 9768 §3.2.3.2.3: so far, the segments of the peer may have lacked the option. An
        // option that arrives later is nevertheless used.
        host.send("6. 1:1(0) ack 10001 ecn0 =1,9001,1");
        assert!(counts(&host).receives_options);
        assert_eq!(counts(&host).delivered_ce_bytes, 9_001);
    }
}

/// RFC 9768 §3.2.2.5.2: a mark was reported, and then all data in flight was acknowledged. An
/// acknowledgement of nine later segments has an unchanged counter, which means no mark or eight
/// marks. No mark is more likely, so none is counted.
#[test]
fn an_unchanged_counter_after_answered_marks_means_no_marks() {
    let mut host = Script::connect(&Config { initial_window: 40, ..REQUEST });
    host.expect("SEWA 0:0(0)");
    host.send("2S. 0:0(0) ack 1 win 65535 mss 1000 sackOK");
    host.expect("2. 1:1(0) ack 1");
    host.write(14_988);
    host.take_sent();
    for ack in [1_989, 8_989, 14_989] {
        host.send(&format!("6. 1:1(0) ack {ack}"));
    }
    host.write(9_000);
    assert_eq!(host.take_sent().len(), 9);
    host.send("6. 1:1(0) ack 23989");
    assert_eq!(counts(&host).delivered, 1);
}

/// RFC 9768 §3.2.3.1: the option has a byte counter for each of ECT(0), CE and ECT(1). A counter
/// grows by the number of our bytes that have reached the peer with its codepoint.
#[test]
fn the_byte_counters_of_the_peer_are_processed() {
    let mut host = client(&REQUEST);
    host.write(2_000);
    host.take_sent();
    host.send("5. 1:1(0) ack 1001 ecn1 =701,0,301");
    let counts = counts(&host);
    assert_eq!((counts.delivered_e0_bytes, counts.delivered_e1_bytes), (300, 700));
}

/// RFC 9768 §3.2.3.2.4: the counters of ECT(0) and ECT(1) start at one. If one of them is zero in
/// the first option, a middlebox has cleared the option, so the peer's options are ignored.
#[test]
fn zeroed_options_are_ignored_and_other_first_values_are_not() {
    for zeroed in ["0,0,1", "1,0,0"] {
        let mut host = Script::connect(&REQUEST);
        host.expect("SEWA 0:0(0)");
        host.send(&format!("2S. 0:0(0) ack 1 win 65535 mss 1000 sackOK ecn0 ={zeroed}"));
        host.expect("2. 1:1(0) ack 1");
        host.write(2_000);
        host.take_sent();
        host.send("6. 1:1(0) ack 1001 ecn0 =1,1000,1");
        assert!(!counts(&host).receives_options);
        assert_eq!((counts(&host).delivered, counts(&host).delivered_ce_bytes), (1, 0));
    }

    let mut host = Script::accept(&ACCEPT, SYN);
    host.expect("2S. 0:0(0) ack 1");
    host.send("2. 1:1(0) ack 1 ecn1 =77,0,99");
    assert!(counts(&host).receives_options);
    assert_eq!(
        (counts(&host).delivered_e1_bytes, counts(&host).delivered_e0_bytes),
        (0, 0),
        "not counted yet"
    );
}

/// RFC 9768 §3.2.3.2.5: the option reports bytes that arrived with a mark, but the ACE field
/// reports no mark. The feedback is unreliable, so all further data is sent as Not-ECT.
#[test]
fn an_option_and_a_counter_that_contradict_each_other_end_marking() {
    let mut host = server(&ACCEPT);
    assert_eq!(sends(&mut host, 2_000), [Ecn::Ect0; 2]);
    host.send("5. 1:1(0) ack 2001 ecn0 =1001,1000");
    assert_eq!(sends(&mut host, 2_000), [Ecn::NotEct; 2]);
}

/// RFC 9768 §3.2.3.2.1: a SYN must not carry the option. We send none on a SYN, and ignore one on a
/// received SYN.
#[test]
fn the_option_is_on_each_segment_of_the_handshake_except_the_syn() {
    let mut host = Script::connect(&REQUEST);
    assert_eq!(host.expect("SEWA 0:0(0)").says.options.ecn, None);
    let mut host = Script::accept(&ACCEPT, &format!("{SYN} ecn0 =0,0,0"));
    host.expect("2S. 0:0(0) ack 1 ecn0 =1,0,1");
    host.send("2. 1:1(0) ack 1 ecn0 =1,0,1");
    assert!(counts(&host).receives_options);

    let mut host = client(&REQUEST);
    host.write(3_000);
    // The first data segment carries the option, which leaves 12 bytes less for data. The second
    // segment has no option.
    host.expect("5. 1:989(988) ack 1 ecn0 =1,0,1");
    assert_eq!(host.expect("5. 989:1989(1000) ack 1").says.options.ecn, None);
}

/// RFC 9768 §3.2.3.2.2: a middlebox may drop data segments that carry the option. If our first data
/// segment with the option is lost, its retransmission and all later segments omit the option.
#[test]
fn lost_first_data_is_retransmitted_without_the_option_which_stays_disabled() {
    let mut host = client(&REQUEST);
    host.write(100);
    host.expect("P5. 1:101(100) ack 1 ecn0 =1,0,1");
    host.pass_time(ms(1_500));
    let again = host.take_sent().pop().expect("a retransmission");
    assert_eq!((again.says.seq, again.says.options.ecn), (1, None));
    host.send_bearing(Ecn::Ect0, "P5. 1:101(100) ack 101");
    assert_eq!(host.expect("5. 101:101(0) ack 101").says.options.ecn, None);
    assert!(!counts(&host).sends_options);
    // From now on, we send no options. Options that the peer sends are still processed.
    host.write(100);
    host.take_sent();
    host.send("5. 101:101(0) ack 201 ecn0 =101");
    assert_eq!(counts(&host).delivered_e0_bytes, 100);

    // Here the first data segment with the option has arrived. If a later segment is lost, the
    // option is therefore not the cause, and we still send options.
    let mut host = client(&REQUEST);
    sends(&mut host, 5_000);
    host.send("5. 1:1(0) ack 989");
    host.pass_time(ms(1_500));
    assert!(counts(&host).sends_options);
}

/// RFC 9768 §3.2.3.2.2: if the SYN-ACK with the option was lost, the server sends the option again
/// on its first data. If that data is also lost, the server stops sending the option.
#[test]
fn a_server_whose_syn_ack_was_lost_repeats_the_option_on_data() {
    let mut host = Script::accept(&ACCEPT, SYN);
    host.expect("2S. 0:0(0) ack 1 ecn0 =1,0,1");
    host.expect_after(secs(1), "2S. 0:0(0) ack 1");
    host.send("2. 1:1(0) ack 1");
    host.write(100);
    host.expect("P5. 1:101(100) ack 1 ecn0 =1,0,1");
    host.pass_time(ms(3_500));
    host.take_sent();
    assert!(!counts(&host).sends_options);
}

/// RFC 9768 §3.2.3.3: when a byte counter begins to grow, the next two acknowledgements carry the
/// option. While the counter continues to grow, only some acknowledgements carry it. If the counter
/// of CE bytes grows, however, every acknowledgement carries it.
#[test]
fn byte_counters_are_reported_when_they_change_and_then_regularly() {
    let mut host = server(&ACCEPT);
    let mut seq = 1;
    let mut told = |host: &mut Script, ecn, times: u32| -> Vec<bool> {
        (0..times)
            .map(|_| {
                host.send_bearing(ecn, &format!("P5. {seq}:{}(1000) ack 1", seq + 1_000));
                seq += 1_000;
                host.read(1_000);
                host.pass_time(ms(100));
                host.take_sent().pop().expect("an acknowledgement").says.options.ecn.is_some()
            })
            .collect()
    };
    let unmarked = told(&mut host, Ecn::Ect0, 20);
    let expected: Vec<_> = (0..20).map(|index| matches!(index, 0 | 1 | 17)).collect();
    assert_eq!(unmarked, expected);
    assert_eq!(told(&mut host, Ecn::Ce, 5), [true; 5]);
    assert_eq!(told(&mut host, Ecn::NotEct, 3), [false; 3]);
    assert_eq!(told(&mut host, Ecn::Ect0, 4), [true, true, false, false]);
    assert_eq!(told(&mut host, Ecn::Ect1, 3), [true, true, false]);
    host.expect_nothing();
}

/// RFC 9768 §3.2.3.3: if space for TCP options is short, the AccECN option replaces the third SACK
/// block. The first two SACK blocks are always sent.
#[test]
fn the_option_leaves_room_for_two_sack_blocks_and_displaces_the_third() {
    for timestamps in [false, true] {
        let config = Config { timestamps, ..ACCEPT };
        let stamp = if timestamps { " ts 1000000 0" } else { "" };
        let mut host = Script::accept(&config, &format!("{SYN}{stamp}"));
        host.expect("2S. 0:0(0) ack 1");
        host.send("2. 1:1(0) ack 1");
        let mut last = None;
        for (hole, ecn) in [(1, Ecn::Ect0), (3, Ecn::Ect0), (5, Ecn::Ce), (7, Ecn::Ce)] {
            let seq = 1_000 * hole + 1;
            host.send_bearing(ecn, &format!("5. {seq}:{}(1000) ack 1", seq + 1_000));
            let sent = host.take_sent();
            assert_eq!(sent.len(), 1, "each is acknowledged once");
            last = sent.into_iter().next();
        }
        let options = last.expect("an acknowledgement").says.options;
        let told = options.ecn.expect("marks are always reported");
        assert_eq!((told.e0b(), told.ceb()), (Some(2_001), Some(2_000)));
        assert_eq!(options.sack.as_slice().len(), if timestamps { 2 } else { 3 });
        // Beside timestamps, there is no room for three counters and two SACK blocks. The counter
        // of ECT(0) has not changed, so it is omitted.
        host.send_bearing(Ecn::Ect1, "5. 9001:10001(1000) ack 1");
        let options = host.take_sent().pop().expect("an acknowledgement").says.options;
        let told = options.ecn.expect("another codepoint is reported");
        assert_eq!(
            (told.e1b(), told.ceb(), told.count()),
            (Some(1_001), Some(2_000), if timestamps { 2 } else { 3 })
        );
        assert!(options.sack.as_slice().len() >= 2);
    }
}

/// If the AccECN option leaves no room for all SACK blocks, a second acknowledgement is sent with
/// the blocks that did not fit.
#[test]
fn sack_blocks_displaced_by_the_option_are_reported_later() {
    let mut host =
        Script::accept(&Config { timestamps: true, ..ACCEPT }, &format!("{SYN} ts 1000000 0"));
    host.expect("2S. 0:0(0) ack 1");
    host.send("2. 1:1(0) ack 1");
    host.send_marked("5. 1001:2001(1000) ack 1");
    host.take_sent();
    host.send_together(&[
        "5. 3001:4001(1000) ack 1",
        "5. 5001:6001(1000) ack 1",
        "5. 7001:8001(1000) ack 1",
        "5. 9001:10001(1000) ack 1",
    ]);
    let named: Vec<_> = host
        .take_sent()
        .iter()
        .flat_map(|sent| sent.says.options.sack.as_slice().to_vec())
        .collect();
    for left in [3_001, 5_001, 7_001, 9_001] {
        assert!(named.iter().any(|block| block.left == SeqNum::new(left)), "{left}");
    }
}

/// Header prediction expects the ACE field of the previous segment. A new value causes one miss,
/// and further segments with this value hit. A CE mark on received data also causes only one miss.
#[test]
fn header_prediction_expects_the_ace_field() {
    let mut host = client(&REQUEST);
    host.write(60_000);
    host.take_sent();
    host.send("5. 1:1(0) ack 989");
    host.send("5. 1:1(0) ack 1989");
    assert_eq!(host.connection.statistics().prediction.acks, 2);
    host.send("7. 1:1(0) ack 2989");
    let prediction = &host.connection.statistics().prediction;
    assert_eq!((prediction.acks, prediction.missed(MissReason::Flags)), (2, 1));
    host.send("7. 1:1(0) ack 3989");
    assert_eq!(host.connection.statistics().prediction.acks, 3);

    let mut host = server(&ACCEPT);
    for start in (1..10_001).step_by(1_000) {
        host.send_bearing(Ecn::Ect0, &format!("5. {start}:{}(1000) ack 1", start + 1_000));
    }
    assert_eq!(host.connection.statistics().prediction.data, 10);
    assert_eq!(counts(&host).received_e0_bytes, 10_000);
    host.send_marked("5. 10001:11001(1000) ack 1");
    host.send_bearing(Ecn::Ect0, "5. 11001:12001(1000) ack 1");
    assert_eq!(host.connection.statistics().prediction.data, 11);
    assert!(host.connection.information().ecn_seen);
}

/// RFC 9768 §3.1.2, RFC 3168 §6.1.1: in TIME-WAIT, ECN is no longer used, so marks are not counted.
#[test]
fn marks_are_not_counted_in_time_wait() {
    let mut host = server(&ACCEPT);
    host.application(Connection::shutdown_write);
    host.expect("F5. 1:1(0) ack 1");
    host.send_marked("F5. 1:1(0) ack 2");
    assert_eq!(host.connection.state(), State::TimeWait);
    host.expect(". 2:2(0) ack 2");
    assert!(!is_accurate(&host));
}

/// RFC 9768 §3.2.3.2.1, §5.2: the byte counters and the counter of marks do not include data on a
/// SYN.
#[test]
fn data_on_a_syn_is_not_counted() {
    let mut host = Script::accept_fast(
        &ACCEPT,
        "SEWA 0:100(100) win 65535 mss 1000 sackOK tfo 0123456789abcdef",
    );
    host.connection.driver().note_codepoint_of_syn(Ecn::Ce);
    host.read(100);
    host.write(100);
    host.expect("6S. 0:0(0) ack 101 ecn0 =1,0,1");
    // Data is Not-ECT until the final ACK of the handshake arrives. This ACK shows that the client
    // uses AccECN.
    assert_eq!(host.expect("P5. 1:101(100) ack 101").ecn, Ecn::NotEct);
    host.send("5. 101:101(0) ack 101");
    assert_eq!((counts(&host).received, counts(&host).received_ce_bytes), (0, 0));
    assert_eq!(sends(&mut host, 1_000), [Ecn::Ect0]);
}

/// RFC 9768 §5.1: a connection that is restored from a SYN cookie uses AccECN like any other
/// connection.
#[test]
fn a_connection_from_a_syn_cookie_has_the_mode_of_its_first_acknowledgement() {
    for (ace, delivered) in [(2, 0), (6, 1)] {
        let segment = |flags: TcpFlags, seq, ack| Segment {
            source_port: 1,
            destination_port: 2,
            seq: SeqNum::new(seq),
            ack: SeqNum::new(ack),
            offset_and_flags: 0x5000 | flags.bits(),
            window: 65_535,
            urgent: 0,
            options: &[],
            payload: &[],
            joined: None,
        };
        let syn = segment(TcpFlags::SYN | TcpFlags::ACE, 7, 0);
        let ack = segment(TcpFlags::ACK | TcpFlags::of_ace(ace), 8, 101);
        let seeds = Seeds { initial_sequence: SeqNum::new(100), timestamp_offset: 0 };
        let now = linerate_units::Instant::ZERO + secs(1);
        let mut opened =
            Connection::open(ACCEPT.into(), Path::ipv4(1_500), seeds, Open::Passive, now);
        opened.driver().learn_from_cookie(&syn, &ack, Ecn::NotEct, now);
        assert_eq!(opened.state(), State::Established);
        assert_eq!(
            opened.information().accurate_ecn.map(|counts| counts.delivered),
            Some(delivered)
        );
    }
}

/// A peer that sends absurd counters makes this connection slower, and has no other effect.
#[test]
fn absurd_counters_and_options_only_slow_the_connection_down() {
    let mut host = client(&REQUEST);
    host.write(60_000);
    host.take_sent();
    let before = window(&host);
    for (index, option) in ["ecn0 =16777215,16777215,16777215", "ecn1 =0,0,0", "ecn0 =", "ecn1 =5"]
        .into_iter()
        .cycle()
        .take(60)
        .enumerate()
    {
        let ack = 1 + 500 * u32::try_from(index / 8).unwrap();
        host.send(&format!("{}. 1:1(0) ack {ack} {option}", index % 8));
        assert!(window(&host) <= before);
    }
    assert!(window(&host) < before);
}

/// A router marks segments instead of dropping them. No segment is lost, and the counters of the
/// sender include every mark.
#[test]
fn every_mark_of_a_router_is_reported() {
    for congestion in CongestionName::ALL {
        let config = Config { accurate_ecn: EcnRule::Request, congestion, ..Config::modern() };
        let network = Network::clean(ms(10));
        let mut pair = Connections::new(&config, &config, network, 3).established();
        let mut count = 0;
        pair.set_filter(move |_, from, segment| {
            count += u32::from(from == End::Client && !segment.payload.is_empty());
            (from == End::Client && count % 50 == 49).then_some(Fate::Mark)
        });
        let (mut read, mut written) = (0, 0);
        let data = [7; 4_096];
        pair.run_until("three megabytes have arrived", |pair| {
            let now = pair.now;
            if written < 3_000_000 {
                written += pair.client.write(now, &data).unwrap();
            }
            read += pair.read_all(End::Server).unwrap().len();
            read >= 3_000_000
        });
        let sender = pair.client.statistics().clone();
        assert_eq!(
            (sender.retransmitted_segments, sender.retransmission_timeouts),
            (0, 0),
            "{congestion}"
        );
        // The server delays its final acknowledgements. After a second they have arrived, so the
        // counters of both endpoints must be equal.
        pair.pass_time(secs(1));
        let received = pair.client.information().accurate_ecn.expect("the accurate mode");
        let seen = pair.server().information().accurate_ecn.expect("the accurate mode");
        assert!(seen.received > 5, "{congestion}: {seen:?}");
        assert_eq!(
            (received.delivered, received.delivered_ce_bytes),
            (seen.received, seen.received_ce_bytes)
        );
        assert!(seen.received_e0_bytes > 2_000_000, "{congestion}: {seen:?}");
        assert!(sender.mark_reductions > 3, "{congestion}: {sender:?}");
        let hits = pair.server().statistics().prediction.data;
        assert!(
            hits * 10 > 9 * pair.server().statistics().segments_received,
            "{congestion}: {hits}"
        );
    }
}

/// RFC 9768 §3.2.3.2.3: the path may drop options in one direction only. We therefore send options
/// even if none arrive from the peer.
#[test]
fn options_are_sent_to_a_peer_that_sends_none() {
    let mut host = Script::accept(&ACCEPT, SYN);
    host.expect("2S. 0:0(0) ack 1");
    host.send("2. 1:1(0) ack 1");
    assert!(!counts(&host).receives_options);
    host.send_bearing(Ecn::Ect0, "5. 1:1001(1000) ack 1");
    host.expect("5. 1:1(0) ack 1001 ecn0 =1001");
}

/// RFC 9768 §3.2.3.2.4: a middlebox has cleared the peer's options, so they are useless. The ACE
/// field is then decoded as if the peer had sent no options: a counter that may have wrapped is
/// assumed to have wrapped.
#[test]
fn zeroed_options_make_the_counter_ambiguous() {
    let mut host = Script::connect(&Config { initial_window: 40, ..REQUEST });
    host.expect("SEWA 0:0(0)");
    host.send("2S. 0:0(0) ack 1 win 65535 mss 1000 sackOK ecn0 =0,0,0");
    host.expect("2. 1:1(0) ack 1");
    host.write(40_000);
    host.take_sent();
    host.send("6. 1:1(0) ack 1001 ecn0 =0,0,0");
    host.send("6. 1:1(0) ack 9001 ecn0 =0,0,0");
    assert_eq!(counts(&host).delivered, 9);
}

/// RFC 9768 §3.2.2.5.1: GRO has coalesced several marked segments. Each of them counts as a mark,
/// but together they cause only one acknowledgement.
#[test]
fn coalesced_segments_count_individually() {
    let mut host = server(&ACCEPT);
    let _ = host.send_joined_bearing(Ecn::Ce, "5. 1:3501(3500) ack 1", 1_000);
    assert_eq!((counts(&host).received, counts(&host).received_ce_bytes), (4, 3_500));
    host.expect("1. 1:1(0) ack 3501 ecn0 =1,3500");
    host.expect_nothing();
}
