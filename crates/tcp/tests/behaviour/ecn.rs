//! Tests of explicit congestion notification (RFC 3168): its negotiation, the segments that are
//! sent as ECN-capable, and the response to marks at the receiver and the sender.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, CongestionName, EcnRule, MissReason, RecoveryState, State};
use linerate_testkit::{Connections, End, Fate, Network, Script};
use linerate_wire::{Ecn, TcpFlags};

const REQUEST: Config = Config { ecn: EcnRule::Request, ..Config::modern() };
const YES: &str = "SE. 0:0(0) ack 1 win 65535 mss 1000";

/// Opens a connection for which our SYN has requested ECN. Its segments have 1,000 bytes.
fn agreed(config: &Config) -> Script {
    let mut host = Script::connect(&Config { ecn: EcnRule::Request, ..*config });
    host.expect("SEW 0:0(0)");
    host.send(YES);
    host.expect(". 1:1(0) ack 1");
    assert!(host.connection.information().ecn);
    host
}

fn window(host: &Script) -> u32 {
    host.connection.information().congestion_window
}

/// Returns the ECN codepoints of the segments that were sent since the last call.
fn codepoints(host: &mut Script) -> Vec<Ecn> {
    host.take_sent().into_iter().map(|sent| sent.ecn).collect()
}

#[test]
fn an_ecn_setup_syn_is_answered_and_the_handshake_is_not_ect() {
    let mut host = Script::accept(&Config::modern(), "SEW 0:0(0) win 65535 mss 1000");
    let answer = host.expect("SE. 0:0(0) ack 1");
    assert_eq!(answer.ecn, Ecn::NotEct);
    host.send(". 1:1(0) ack 1");
    assert!(host.connection.information().ecn);

    let mut host = Script::connect(&REQUEST);
    assert_eq!(host.expect("SEW 0:0(0)").ecn, Ecn::NotEct);
    host.send(YES);
    assert_eq!(host.expect(". 1:1(0) ack 1").ecn, Ecn::NotEct);
}

#[test]
fn ecn_is_off_without_a_request_or_an_acceptance() {
    for (rule, syn) in [
        (EcnRule::Off, "SEW 0:0(0) win 65535 mss 1000"),
        (EcnRule::Accept, "S 0:0(0) win 65535 mss 1000"),
        (EcnRule::Request, "SE 0:0(0) win 65535 mss 1000"),
        (EcnRule::Request, "SW 0:0(0) win 65535 mss 1000"),
    ] {
        let mut host = Script::accept(&Config { ecn: rule, ..Config::modern() }, syn);
        host.expect("S. 0:0(0) ack 1");
        host.send(". 1:1(0) ack 1");
        assert!(!host.connection.information().ecn, "{syn}");
        host.write(3_000);
        assert_eq!(codepoints(&mut host), [Ecn::NotEct; 3], "{syn}");
    }
    for answer in [SYN_ACK, "SW. 0:0(0) ack 1 win 65535", "SEW. 0:0(0) ack 1 win 65535"] {
        let mut host = Script::connect(&REQUEST);
        host.expect("SEW 0:0(0)");
        host.send(answer);
        assert!(!host.connection.information().ecn, "{answer}");
    }
}

/// RFC 3168 §6.1.1.1: some middleboxes drop a SYN with the flags ECE and CWR. If our SYN is not
/// answered, the repeated SYN therefore does not request ECN.
#[test]
fn an_unanswered_syn_is_repeated_without_the_request() {
    let mut host = Script::connect(&REQUEST);
    host.expect("SEW 0:0(0)");
    host.expect_after(secs(1), "S 0:0(0)");
    host.send(YES);
    host.expect(". 1:1(0) ack 1");
    assert!(!host.connection.information().ecn, "our last SYN refuses ECN");
    host.write(1_000);
    assert_eq!(codepoints(&mut host), [Ecn::NotEct]);
    // Our second SYN did not request ECN. The peer has accepted the request of the first, however,
    // and may send ECN-capable segments, so our endpoint echoes marks on them (§6.1.1).
    host.send_marked("P. 1:1001(1000) ack 1001");
    host.expect("E. 1001:1001(0) ack 1001");
}

#[test]
fn a_peer_that_falls_back_gets_no_ecn() {
    let mut host = Script::accept(&Config::modern(), "SEW 0:0(0) win 65535 mss 1000");
    host.expect("SE. 0:0(0) ack 1");
    host.send("S 0:0(0) win 65535 mss 1000");
    host.expect("S. 0:0(0) ack 1");
    host.send(". 1:1(0) ack 1");
    assert_eq!(host.connection.state(), State::Established);
    assert!(!host.connection.information().ecn);
}

/// RFC 3168 §6.1.1: a SYN without the request has refused ECN. The endpoint that sent it must not
/// accept ECN later, here in a simultaneous open.
#[test]
fn a_request_after_our_refusal_is_refused() {
    let mut host = Script::connect(&REQUEST);
    host.expect("SEW 0:0(0)");
    host.expect_after(secs(1), "S 0:0(0)");
    host.send("SEW 0:0(0) win 65535 mss 1000");
    host.expect("S. 0:0(0) ack 1");
}

#[test]
fn ecn_is_negotiated_in_a_simultaneous_open() {
    let mut host = Script::connect(&REQUEST);
    host.expect("SEW 0:0(0)");
    host.send("SEW 0:0(0) win 65535 mss 1000");
    host.expect("SE. 0:0(0) ack 1");
    host.send("SE. 0:0(0) ack 1 win 65535 mss 1000");
    assert_eq!(host.connection.state(), State::Established);
    assert!(host.connection.information().ecn);
}

/// RFC 3168 §6.1.2, §6.1.4, §6.1.5: only new data is sent as ECN-capable. Retransmissions, pure
/// acknowledgements and FINs are Not-ECT.
#[test]
fn new_data_may_be_marked_and_nothing_else() {
    let mut host = agreed(&Config::modern());
    host.write(2_000);
    assert_eq!(codepoints(&mut host), [Ecn::Ect0; 2]);
    host.pass_time(ms(200));
    assert_eq!(codepoints(&mut host), [Ecn::NotEct], "a retransmission");
    host.send("P. 1:1001(1000) ack 2001");
    assert_eq!(codepoints(&mut host), [Ecn::NotEct], "an acknowledgement");
    host.application(linerate_tcp::Connection::shutdown_write);
    assert_eq!(codepoints(&mut host), [Ecn::NotEct], "a FIN alone");
}

/// RFC 3168 §6.1.6: a peer with a closed window discards a window probe, and with it a mark or the
/// CWR flag. The probe is therefore Not-ECT and has no CWR flag, which is sent on the next new
/// data.
#[test]
fn a_window_probe_is_not_ect_and_has_no_cwr() {
    let mut host = agreed(&Config::modern());
    host.write(1_000);
    host.take_sent();
    host.send("E. 1:1(0) ack 1001 win 0");
    host.write(1_000);
    host.pass_time(ms(500));
    let probe = host.expect(". 1001:1002(1) ack 1");
    assert_eq!(probe.ecn, Ecn::NotEct);
    host.take_sent();
    // The byte of the probe is acknowledged. The next segment contains only new data, so it is
    // ECN-capable and carries the postponed CWR.
    host.send(". 1:1(0) ack 1002 win 65535");
    assert_eq!(host.expect("PW. 1002:2001(999) ack 1").ecn, Ecn::Ect0);
}

/// RFC 3168 §6.1.6: a window probe that fits into the window is accepted. A mark on it is then
/// echoed, as on any other data.
#[test]
fn a_marked_probe_that_fits_is_echoed() {
    let mut host = agreed(&Config::modern());
    host.send_marked(". 1:2(1) ack 1");
    host.expect("E. 1:1(0) ack 2");
    host.read(1);
}

#[test]
fn a_mark_is_echoed_at_once_and_until_cwr() {
    let mut host =
        agreed(&Config { acks: linerate_tcp::AckRule::Modern { quick: 0 }, ..Config::modern() });
    host.send_marked(". 1:1001(1000) ack 1");
    host.expect("E. 1:1(0) ack 1001");
    host.send_marked(". 1001:2001(1000) ack 1");
    host.expect_nothing();
    host.send(". 2001:3001(1000) ack 1");
    host.expect("E. 1:1(0) ack 3001");
    host.write(10);
    host.expect("PE. 1:11(10) ack 3001");
    host.send("W. 3001:4001(1000) ack 11");
    host.expect(". 11:11(0) ack 4001");
    host.send_marked("W. 4001:5001(1000) ack 11");
    host.expect("E. 11:11(0) ack 5001");
    assert_eq!(host.connection.statistics().marked_segments, 3);
    // A CWR flag does not change how a segment is acknowledged: pure acknowledgements are never
    // acknowledged.
    host.send("W. 5001:5001(0) ack 11");
    host.expect_nothing();
}

/// RFC 3168 §6.1.5: a mark counts only on data inside the window. Marks on other segments are
/// ignored, because such segments may be forged.
#[test]
fn only_marks_on_data_inside_the_window_count() {
    let mut host = agreed(&Config::modern());
    host.send(". 1:1001(1000) ack 1");
    host.expect(". 1:1(0) ack 1001");
    host.send_marked(". 1:1001(1000) ack 1");
    host.expect(". 1:1(0) ack 1001");
    host.send_marked(". 500001:501001(1000) ack 1");
    host.expect(". 1:1(0) ack 1001");
    host.send_marked(". 1001:1001(0) ack 1");
    host.expect_nothing();
    host.send(". 1001:2001(1000) ack 1");
    host.expect(". 1:1(0) ack 2001");
    assert_eq!(host.connection.statistics().marked_segments, 0);
}

#[test]
fn marks_and_echoes_without_negotiation_are_ignored() {
    let mut refused = Script::connect(&REQUEST);
    refused.expect("SEW 0:0(0)");
    refused.send(SYN_ACK);
    refused.expect(". 1:1(0) ack 1");
    for mut host in [Script::established(&Config::modern(), SYN_ACK), refused] {
        host.send_marked("P. 1:1001(1000) ack 1");
        host.expect(". 1:1(0) ack 1001");
        host.write(1_460);
        host.take_sent();
        let before = window(&host);
        host.send("EW. 1001:1001(0) ack 1461");
        assert!(window(&host) >= before);
        host.write(10);
        host.expect("P. 1461:1471(10) ack 1001");
    }
}

/// RFC 3168 §5: ECT(0) and ECT(1) only declare a packet ECN-capable. They are no marks, so nothing
/// is echoed.
#[test]
fn an_unmarked_ecn_capable_packet_is_not_echoed() {
    let mut host = agreed(&Config::modern());
    for (ecn, start) in [(Ecn::Ect0, 1), (Ecn::Ect1, 1_001)] {
        host.send_bearing(ecn, &format!("P. {start}:{}(1000) ack 1", start + 1_000));
        host.expect(&format!(". 1:1(0) ack {}", start + 1_000));
    }
    assert_eq!(host.connection.statistics().marked_segments, 0);
}

/// RFC 3168 §6.1.2: the window is reduced once per window of data, however many marks and losses
/// occur in it. Here an echo of a mark arrives during a recovery.
#[test]
fn an_echo_during_recovery_does_not_reduce_the_window_again() {
    let mut host = Script::connect(&Config { congestion: CongestionName::NewReno, ..REQUEST });
    host.expect("SEW 0:0(0)");
    host.send(&format!("{YES} sackOK"));
    host.expect(". 1:1(0) ack 1");
    host.write(10_000);
    host.take_sent();
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    let left = host.connection.information().slow_start_threshold;
    host.send("E. 1:1(0) ack 1 sack 1001-5001");
    assert_eq!(host.connection.information().slow_start_threshold, left);
    let statistics = host.connection.statistics();
    assert_eq!((statistics.fast_retransmissions, statistics.mark_reductions), (1, 0));
}

/// RFC 3168 §6.1.2: the window is reduced as after a loss, but nothing is retransmitted. CUBIC
/// keeps seven tenths of the window (RFC 9438 §4.6).
#[test]
fn an_echo_reduces_the_window_like_a_loss_once_per_window() {
    for (congestion, left) in [
        (CongestionName::Tahoe, 5_000),
        (CongestionName::Reno, 5_000),
        (CongestionName::NewReno, 5_000),
        (CongestionName::Cubic, 7_000),
    ] {
        let mut host = agreed(&Config { congestion, initial_window: 10, ..Config::modern() });
        host.write(40_000);
        assert_eq!(host.take_sent().len(), 10, "{congestion}");
        host.send("E. 1:1(0) ack 1001");
        assert_eq!(window(&host), left, "{congestion}");
        host.expect_nothing();
        // Until the peer receives CWR, it repeats its echo. These acknowledgements cover data that
        // was sent before the reduction of the window. They do not reduce it a second time.
        for acked in (2_001..=6_001).step_by(1_000) {
            host.send(&format!("E. 1:1(0) ack {acked}"));
        }
        assert_eq!(window(&host), left, "{congestion}");
        let sent = host.take_sent();
        let reduced: Vec<_> =
            sent.iter().map(|sent| sent.says.flags.contains(TcpFlags::CWR)).collect();
        assert_eq!(reduced.iter().filter(|&&says| says).count(), 1, "{congestion}");
        assert!(reduced[0], "the first new segment carries CWR");
        // This acknowledgement covers data sent after the reduction, so its echo reduces the window
        // again.
        let end = 10_001 + 1_000 * u32::try_from(sent.len()).unwrap();
        host.send(&format!("E. 1:1(0) ack {end}"));
        assert!(window(&host) < left, "{congestion}");
        let statistics = host.connection.statistics();
        assert_eq!((statistics.mark_reductions, statistics.mark_echoes), (2, 7), "{congestion}");
        assert_eq!(statistics.retransmitted_segments, 0, "{congestion}");
    }
}

/// RFC 3168 §6.1.2: after each reduction of the window, here for a loss, the next new data carries
/// CWR. A retransmission never carries CWR.
#[test]
fn the_next_new_data_after_a_loss_carries_cwr() {
    let mut host = agreed(&Config { limited_transmit: false, ..Config::modern() });
    host.write(30_000);
    host.take_sent();
    for _ in 0..3 {
        host.send(". 1:1(0) ack 1");
    }
    host.expect(". 1:1001(1000) ack 1");
    host.send(". 1:1(0) ack 10001");
    let first = host.expect("W. 10001:11001(1000) ack 1");
    assert_eq!(first.ecn, Ecn::Ect0);
    host.expect(". 11001:12001(1000) ack 1");
}

/// RFC 3168 §6.1.2: the congestion window is reduced at most once per window of data. Here a tail
/// loss probe repairs a loss, for which the window would be reduced (RFC 8985 §7.4.2 case 3). If a
/// mark has already reduced the window, the loss does not reduce it again.
#[test]
fn a_loss_repaired_by_a_probe_does_not_reduce_a_window_reduced_by_a_mark() {
    for (echo, again) in [(". 1:1(0) ack 1001", true), ("E. 1:1(0) ack 1001", false)] {
        let config = Config { congestion: CongestionName::NewReno, ..REQUEST };
        let mut host = Script::connect(&config);
        host.expect("SEW 0:0(0)");
        host.pass_time(ms(10));
        host.send(&format!("{YES} sackOK"));
        host.expect(". 1:1(0) ack 1");
        host.write(10_000);
        assert_eq!(host.take_sent().len(), 10);
        host.pass_time(ms(10));
        host.send(echo);
        let left = window(&host);
        host.pass_time(ms(50));
        assert_eq!(host.connection.statistics().tail_probes, 1);
        host.write(1_000);
        host.take_sent();
        host.send(". 1:1(0) ack 10001");
        host.take_sent();
        host.send(". 1:1(0) ack 11001");
        assert_eq!(window(&host) < left, again, "{} after {left}", window(&host));
    }
}

/// RFC 3168 §6.1.2: the congestion window is reduced at most once per window of data. Here a mark
/// reduces it first. Then SACK or three duplicate ACKs reveal a loss in the same window of data,
/// which must not reduce it again.
#[test]
fn a_loss_in_a_window_that_a_mark_has_reduced_does_not_reduce_it_again() {
    for offers in ["", " sackOK"] {
        let mut host = Script::connect(&Config { congestion: CongestionName::NewReno, ..REQUEST });
        host.expect("SEW 0:0(0)");
        host.pass_time(ms(10));
        host.send(&format!("{YES}{offers}"));
        host.expect(". 1:1(0) ack 1");
        host.write(10_000);
        assert_eq!(host.take_sent().len(), 10);
        host.pass_time(ms(10));
        host.send("E. 1:1(0) ack 1001");
        let threshold = |host: &Script| host.connection.information().slow_start_threshold;
        let before = threshold(&host);
        assert_eq!(host.connection.information().recovery, RecoveryState::Reduced);
        for right in [3_001, 4_001, 5_001] {
            let named =
                if offers.is_empty() { String::new() } else { format!(" sack 2001-{right}") };
            host.send(&format!(". 1:1(0) ack 1001{named}"));
        }
        assert_eq!(host.connection.statistics().fast_retransmissions, 1);
        assert_eq!(threshold(&host), before, "{offers}");
        host.send(". 1:1(0) ack 10001");
        assert_eq!(host.connection.information().recovery, RecoveryState::Open);
    }
}

#[test]
fn echoes_take_the_slow_path_and_other_segments_the_fast_one() {
    let mut host = agreed(&Config::modern());
    for start in (1..10_001).step_by(1_000) {
        host.send(&format!(". {start}:{}(1000) ack 1", start + 1_000));
    }
    assert_eq!(host.connection.statistics().prediction.data, 10);
    host.send_marked(". 10001:11001(1000) ack 1");
    assert_eq!(host.connection.statistics().prediction.missed(MissReason::Mark), 1);
    host.send(". 11001:12001(1000) ack 1");
    assert_eq!(host.connection.statistics().prediction.data, 11, "our echo causes no miss");
}

/// RFC 3168 §6.1.1: in TIME-WAIT, ECN is no longer used, so marks are not echoed.
#[test]
fn marks_are_not_echoed_in_time_wait() {
    let mut host = agreed(&Config::modern());
    host.send_marked(". 1:1001(1000) ack 1");
    host.expect("E. 1:1(0) ack 1001");
    host.read(1_000);
    host.application(linerate_tcp::Connection::shutdown_write);
    host.expect("FE. 1:1(0) ack 1001");
    host.send("F. 1001:1001(0) ack 2");
    host.expect(". 2:2(0) ack 1002");
    assert_eq!(host.connection.state(), State::TimeWait);
    assert!(host.connection.information().ecn_seen, "the record is kept");
}

/// A router marks segments instead of dropping them. No segment is lost, and the marks alone keep
/// the congestion window small.
#[test]
fn a_router_that_marks_causes_no_loss() {
    for congestion in CongestionName::ALL {
        let config = Config { congestion, ..REQUEST };
        let network = Network::clean(ms(10));
        let mut pair = Connections::new(&config, &Config::modern(), network, 3).established();
        let mut count = 0;
        pair.set_filter(move |_, from, segment| {
            count += u32::from(from == End::Client && !segment.payload.is_empty());
            (from == End::Client && count % 50 == 49).then_some(Fate::Mark)
        });
        let mut read = 0;
        let mut written = 0;
        let data = [7; 4_096];
        // Marks reduce the window at most once per round trip (§6.1.2). Since this path has no
        // queue, BBR gets at most six marks in the first megabyte, so three megabytes are sent.
        pair.run_until("three megabytes have arrived", |pair| {
            let now = pair.now;
            if written < 3_000_000 {
                written += pair.client.write(now, &data).unwrap();
            }
            read += pair.read_all(End::Server).unwrap().len();
            read >= 3_000_000
        });
        let sender = pair.client.statistics().clone();
        let marked = pair.server().statistics().marked_segments;
        assert!(marked > 5, "{congestion}: {marked}");
        assert!(
            sender.mark_reductions > 3 && sender.mark_reductions <= marked,
            "{congestion}: {sender:?}"
        );
        assert_eq!(
            (sender.retransmitted_segments, sender.retransmission_timeouts),
            (0, 0),
            "{congestion}"
        );
    }
}

/// RFC 3168 §6.1.2: a mark cannot reduce a window of one segment. Instead, the sender waits for one
/// RTO before it sends the next segment.
#[test]
fn an_echo_at_a_window_of_one_segment_delays_the_next_by_one_rto() {
    let mut host = agreed(&Config { initial_window: 1, ..Config::modern() });
    host.write(20_000);
    host.expect(". 1:1001(1000) ack 1");
    host.pass_time(ms(100));
    host.send("E. 1:1(0) ack 1001");
    let timeout = host.connection.information().retransmission_timeout;
    assert_eq!(window(&host), 1_000);
    let next = host.expect_after(timeout, "W. 1001:2001(1000) ack 1");
    assert_eq!(next.ecn, Ecn::Ect0, "it is new, nothing was lost");
    host.send(". 1:1(0) ack 2001");
    host.expect(". 2001:3001(1000) ack 1");
}

/// A mark reduces a window of two segments to one. The wait of one RTO applies only to a mark that
/// arrives when the window is already one segment.
#[test]
fn an_echo_at_a_window_of_two_segments_delays_nothing() {
    let mut host = agreed(&Config { initial_window: 2, ..Config::modern() });
    host.write(20_000);
    assert_eq!(host.take_sent().len(), 2);
    host.pass_time(ms(100));
    host.send("E. 1:1(0) ack 2001");
    host.expect("W. 2001:3001(1000) ack 1");
}
