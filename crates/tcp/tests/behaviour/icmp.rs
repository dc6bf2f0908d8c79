//! Tests of ICMP reports (RFC 5461, RFC 5927, RFC 1191): the conditions under which a report is
//! accepted, and its effect.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, Error, IcmpReport, State};
use linerate_testkit::Script;

/// Passes to the connection a report that quotes our segment at the sequence number `relative`.
fn report(
    host: &mut Script,
    kind: impl FnOnce(linerate_wire::SeqNum) -> IcmpReport,
    relative: u32,
) {
    let quoted = host.number(relative);
    host.application(|connection, now| connection.driver().handle_icmp(now, kind(quoted)));
}

fn hard(quoted: linerate_wire::SeqNum) -> IcmpReport {
    IcmpReport::HardError { quoted }
}

fn soft(quoted: linerate_wire::SeqNum) -> IcmpReport {
    IcmpReport::SoftError { quoted }
}

fn too_big(mtu_payload: usize) -> impl FnOnce(linerate_wire::SeqNum) -> IcmpReport {
    move |quoted| IcmpReport::PacketTooBig { quoted, mtu_payload }
}

#[test]
fn a_hard_error_about_our_syn_refuses_the_connection() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    report(&mut host, hard, 0);
    assert_eq!(
        (host.connection.state(), host.connection.error()),
        (State::Closed, Some(Error::Refused))
    );
}

#[test]
fn a_soft_error_about_our_syn_is_waited_out() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    report(&mut host, soft, 0);
    assert_eq!(host.connection.state(), State::SynSent);
    host.expect_after(secs(1), "S 0:0(0)");
}

/// RFC 5461 §3, RFC 1122 §4.2.3.9: a soft error does not end the connection. If the connection is
/// given up later, the application gets the soft error as the cause.
#[test]
fn a_soft_error_is_the_reason_when_the_connection_is_given_up() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    report(&mut host, soft, 0);
    host.pass_time(secs(400));
    assert_eq!(host.connection.error(), Some(Error::Unreachable));
}

#[test]
fn a_soft_error_is_cleared_when_the_peer_answers() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(100);
    host.take_sent();
    report(&mut host, soft, 1);
    host.send(". 1:1(0) ack 101");
    host.write(100);
    host.pass_time(secs(1_200));
    assert_eq!(host.connection.error(), Some(Error::TimedOut));
}

/// RFC 5927 §5.2: once the connection is established, no ICMP error ends it. Hard errors are then
/// treated as soft errors.
#[test]
fn no_error_ends_an_established_connection() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(1_000);
    host.expect("P. 1:1001(1000) ack 1");
    report(&mut host, hard, 1);
    report(&mut host, soft, 1);
    assert_eq!(host.connection.state(), State::Established);
}

/// RFC 5927 §4.1: a genuine report quotes data in flight. A report with any other sequence number
/// is forged or outdated, and is ignored.
#[test]
fn a_report_that_quotes_no_data_in_flight_is_ignored() {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    report(&mut host, hard, 1);
    report(&mut host, hard, 1 << 31);
    assert_eq!(host.connection.state(), State::SynSent);
    host.send(SYN_ACK);
    host.expect(". 1:1(0) ack 1");
    host.write(1_460);
    host.expect("P. 1:1461(1460) ack 1");
    report(&mut host, too_big(1_000), 1_461);
    report(&mut host, too_big(1_000), 0);
    assert_eq!(host.connection.effective_mss(), 1_460);
}

/// RFC 1191 §6.4: the data of a segment that is too large for the path is retransmitted at once, in
/// smaller segments.
#[test]
fn a_segment_too_large_for_the_path_is_retransmitted_at_once_in_smaller_ones() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(2_920);
    host.expect(". 1:1461(1460) ack 1");
    host.expect("P. 1461:2921(1460) ack 1");
    let before = host.connection.information();
    report(&mut host, too_big(1_020), 1);
    host.expect(". 1:1001(1000) ack 1");
    host.expect(". 1001:2001(1000) ack 1");
    host.expect("P. 2001:2921(920) ack 1");
    let after = host.connection.information();
    assert_eq!(after.effective_mss, 1_000);
    let segments = [&before, &after].map(|it| it.congestion_window / it.effective_mss);
    assert_eq!(
        segments,
        [10, 10],
        "the window stays constant in segments: there was no congestion"
    );
    host.send(". 1:1(0) ack 2921");
    assert_eq!(host.connection.statistics().retransmission_timeouts, 0);
}

#[test]
fn a_forged_report_cannot_shrink_segments_to_nothing_nor_enlarge_them() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(1_460);
    host.take_sent();
    report(&mut host, too_big(9_000), 1);
    assert_eq!(host.connection.effective_mss(), 1_460);
    host.expect_nothing();
    report(&mut host, too_big(0), 1);
    assert_eq!(host.connection.effective_mss(), 536);
}

/// RFC 1191 §6.4: a burst of segments is too large for the path, and each of them causes a report.
/// The first report causes the retransmission, and the others nothing.
#[test]
fn a_second_report_of_the_same_size_retransmits_nothing() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(2_920);
    host.take_sent();
    report(&mut host, too_big(1_020), 1);
    assert_eq!(host.take_sent().len(), 3);
    report(&mut host, too_big(1_020), 1_461);
    host.expect_nothing();
}

/// Opens a connection with SACK and segments of 1,460 bytes. Two such segments have arrived, so
/// this size is confirmed. Four more are in flight.
fn proven(round_trip: linerate_units::Duration) -> Script {
    let mut host = Script::connect(&Config::modern());
    host.expect("S 0:0(0)");
    host.pass_time(round_trip);
    host.send("S. 0:0(0) ack 1 win 65535 mss 1460 sackOK");
    host.expect(". 1:1(0) ack 1");
    host.write(2_920);
    host.take_sent();
    host.pass_time(round_trip);
    host.send(". 1:1(0) ack 2921");
    host.write(5_840);
    assert_eq!(host.take_sent().len(), 4);
    host
}

/// RFC 5927 §7.2: an attacker who can guess ports and sequence numbers can forge a report. If
/// segments that are larger than the reported MTU arrive, the report is false, and has no effect.
#[test]
fn a_report_has_no_effect_while_larger_segments_arrive() {
    let mut host = proven(ms(10));
    for relative in [2_921, 4_381, 5_841, 7_301] {
        report(&mut host, too_big(1_000), relative);
        report(&mut host, too_big(600), relative);
        host.pass_time(ms(1));
    }
    host.expect_nothing();
    host.pass_time(ms(6));
    host.send(". 1:1(0) ack 5841");
    host.send(". 1:1(0) ack 8761");
    host.pass_time(secs(10));
    assert_eq!(host.connection.effective_mss(), 1_460);
    // Segments larger than the reported MTU have arrived, which disproves the report. It therefore
    // has no effect when another segment is lost later.
    host.write(1_460);
    host.expect("P. 8761:10221(1460) ack 1");
    let counted = host.connection.statistics();
    assert_eq!((counted.reports_held, counted.reports_ignored), (1, 7), "one waits at a time");
    assert_eq!((counted.reports_disproved, counted.reports_applied), (1, 0));
    host.expect_after(ms(200), "P. 8761:10221(1460) ack 1");
}

/// Returns the sequence number and length of each segment sent since the last call.
fn sent(host: &mut Script) -> Vec<(u32, u32)> {
    host.take_sent().iter().map(|sent| (sent.says.seq, sent.says.length)).collect()
}

/// The tail loss probe is smaller than the reported MTU, and arrives. The larger segments before it
/// are therefore lost, including the quoted one, so the report is applied.
#[test]
fn a_report_takes_effect_when_the_segment_that_it_quotes_is_found_lost() {
    let mut host = proven(ms(10));
    let before = host.connection.information();
    report(&mut host, too_big(1_020), 2_921);
    host.pass_time(ms(19));
    host.expect_nothing();
    host.pass_time(ms(1));
    assert_eq!(sent(&mut host), [(7_761, 1_000)], "a small tail probe after two round trips");
    assert_eq!(host.connection.effective_mss(), 1_460, "there is no evidence yet");
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 2921 sack 7761-8761");
    let again = sent(&mut host);
    assert_eq!(again[..3], [(2_921, 1_000), (3_921, 1_000), (4_921, 1_000)]);
    assert_eq!(again.len(), 5);
    let after = host.connection.information();
    assert_eq!((after.effective_mss, after.path_mtu), (1_000, 1_040));
    let segments = [&before, &after].map(|it| it.congestion_window / it.effective_mss);
    assert_eq!(segments[0], segments[1], "no congestion caused this");
    host.send(". 1:1(0) ack 8761");
    let counted = host.connection.statistics();
    assert_eq!((counted.retransmission_timeouts, counted.fast_retransmissions), (0, 0));
    assert_eq!((counted.reports_held, counted.reports_applied), (1, 1));
}

/// A forged report quotes a segment that arrives. The last segments in flight are lost, but their
/// loss is no evidence for the report. It must have no effect.
#[test]
fn the_loss_of_another_segment_is_no_evidence_for_a_report() {
    let mut host = proven(ms(10));
    report(&mut host, too_big(600), 2_921);
    host.pass_time(ms(20));
    assert_eq!(sent(&mut host), [(8_181, 580)]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 5841 sack 8181-8761");
    assert_eq!(sent(&mut host), [(5_841, 1_460), (7_301, 880)]);
    let counted = host.connection.statistics();
    assert_eq!((counted.reports_disproved, counted.reports_applied), (1, 0));
    assert_eq!(host.connection.effective_mss(), 1_460);
}

/// A forged report quotes a segment that was lost because of congestion. Later segments that are
/// also larger than the reported MTU arrive, which disproves the report.
#[test]
fn larger_segments_that_left_later_and_arrive_disprove_a_report() {
    let mut host = proven(ms(10));
    report(&mut host, too_big(600), 2_921);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 2921 sack 4381-5841");
    assert_eq!(host.connection.statistics().reports_disproved, 1);
    // The report arrives again. Larger segments that were sent after the quoted segment have
    // already arrived, so the report is disproved at once.
    report(&mut host, too_big(600), 2_921);
    host.send(". 1:1(0) ack 2921 sack 4381-7301");
    host.send(". 1:1(0) ack 2921 sack 4381-8761");
    assert_eq!(sent(&mut host), [(2_921, 1_460)]);
    let counted = host.connection.statistics();
    assert_eq!((counted.reports_disproved, counted.reports_applied), (2, 0));
}

/// A report waits for evidence about the segment that it quotes. The timeout of another segment is
/// none, so the report continues to wait.
#[test]
fn a_timeout_of_another_segment_leaves_a_report_waiting() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(1_460);
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1461");
    host.write(2_920);
    assert_eq!(sent(&mut host), [(1_461, 1_460), (2_921, 1_460)]);
    report(&mut host, too_big(1_020), 2_921);
    host.expect_after(ms(200), ". 1461:2921(1460) ack 1");
    assert_eq!(host.connection.effective_mss(), 1_460);
    host.send(". 1:1(0) ack 4381");
    host.write(1_460);
    host.expect("P. 4381:5841(1460) ack 1");
    assert_eq!(host.connection.statistics().reports_disproved, 1);
}

/// The report quotes a segment smaller than the reported MTU. This segment cannot have caused the
/// report, so the report is ignored.
#[test]
fn a_report_about_a_segment_that_would_have_fitted_is_ignored() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(500);
    host.expect("P. 1:501(500) ack 1");
    report(&mut host, too_big(600), 1);
    host.expect_nothing();
    assert_eq!(host.connection.effective_mss(), 1_460);
    assert_eq!(host.connection.statistics().reports_ignored, 1);
}

/// Opens a connection with SACK and further `options`. Ten segments are in flight, and none of them
/// has arrived. The timestamp clock has advanced since they were sent.
fn unproven(options: &str) -> Script {
    let mut host = Script::connect(&Config::modern());
    host.take_sent();
    host.pass_time(ms(10));
    host.send(&format!("S. 0:0(0) ack 1 win 65535 mss 1460 sackOK{options}"));
    host.take_sent();
    host.write(14_480);
    host.take_sent();
    host.pass_time(ms(5));
    host
}

/// RFC 3522 §3.2: a report was applied at once, and the segment retransmitted in smaller ones. The
/// echoed timestamp then shows that the original has arrived. The report was false, so segments
/// regain their size.
#[test]
fn a_report_applied_at_once_is_undone_when_the_original_arrives() {
    let mut host = unproven(" ts 100 1");
    let stamp = host.stamp_at(host.now);
    report(&mut host, too_big(600), 1);
    assert_eq!(host.connection.effective_mss(), 568);
    assert!(!host.connection.is_path_mtu_confirmed());
    host.take_sent();
    host.pass_time(ms(5));
    host.send(&format!(". 1:1(0) ack 1449 ts 110 {}", stamp - 5));
    assert_eq!(host.connection.effective_mss(), 1_448);
    assert!(host.connection.is_path_mtu_confirmed());
    // Full segments have arrived by now. Another report therefore has no effect at once. It would
    // be applied if the segment that it quotes were found lost.
    report(&mut host, too_big(600), 1_449);
    assert_eq!(host.connection.effective_mss(), 1_448);
    assert_eq!(host.connection.statistics().reports_disproved, 1);
}

#[test]
fn a_report_applied_at_once_is_confirmed_when_a_smaller_segment_arrives() {
    let mut host = unproven(" ts 100 1");
    let stamp = host.stamp_at(host.now);
    report(&mut host, too_big(600), 1);
    host.take_sent();
    host.pass_time(ms(10));
    host.send(&format!(". 1:1(0) ack 569 ts 110 {stamp}"));
    assert_eq!(host.connection.effective_mss(), 568);
    assert!(host.connection.is_path_mtu_confirmed());
}

/// A report was applied, and all data is acknowledged. Without timestamps, it is unknown whether
/// the large originals or the small retransmissions have arrived. A path MTU probe of the former
/// size therefore tests the report.
#[test]
fn without_timestamps_a_probe_checks_a_report_at_once() {
    for passes in [true, false] {
        let mut host = unproven("");
        report(&mut host, too_big(1_000), 1);
        assert_eq!(host.connection.effective_mss(), 980);
        host.take_sent();
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 14481");
        assert!(!host.connection.is_path_mtu_confirmed());
        host.write(980);
        host.expect("P. 14481:15461(980) ack 1");
        host.write(14_480);
        let sent = sent(&mut host);
        assert_eq!(sent[..2], [(15_461, 1_460), (16_921, 980)]);
        host.pass_time(ms(10));
        if passes {
            host.send(". 1:1(0) ack 16921");
        } else {
            host.send(". 1:1(0) ack 15461 sack 16921-19861");
            // The probe is lost, and all data that was sent after it arrives. Its size was
            // therefore the cause, and the report was correct.
            host.write(980);
            host.take_sent();
            host.pass_time(ms(10));
            host.send(". 1:1(0) ack 30921");
        }
        assert_eq!(host.connection.effective_mss(), if passes { 1_460 } else { 980 });
        assert!(host.connection.is_path_mtu_confirmed());
        // RFC 1191 §6.3: within minutes after this probe, no other probe is sent.
        host.take_sent();
        host.pass_time(secs(60));
        host.write(20_000);
        host.take_sent();
        assert_eq!(host.connection.statistics().path_probes, 1);
    }
}

/// Without SACK, a report waits until the segment that it quotes times out, and is then applied.
#[test]
fn without_selective_acknowledgements_a_report_waits_for_the_timeout() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.write(1_460);
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1461");
    host.write(1_460);
    host.take_sent();
    report(&mut host, too_big(1_020), 1_461);
    host.expect_nothing();
    host.expect_after(ms(200), ". 1461:2461(1000) ack 1");
    assert_eq!(host.connection.effective_mss(), 1_000);
}

/// RFC 8200 §5: each IPv6 link carries packets of 1,280 bytes. A report of a smaller MTU is
/// therefore applied as a report of 1,280 bytes.
#[test]
fn over_ipv6_no_report_reduces_packets_below_1280_bytes() {
    let mut host = Script::with_path(&Config::modern(), linerate_tcp::Path::ipv6(1_500));
    host.expect("S 0:0(0)");
    host.send("S. 0:0(0) ack 1 win 65535 mss 1440 sackOK");
    host.expect(". 1:1(0) ack 1");
    host.write(1_440);
    host.take_sent();
    report(&mut host, too_big(500), 1);
    assert_eq!(host.connection.path_mtu(), 1_280);
    assert_eq!(host.connection.effective_mss(), 1_220);
}
