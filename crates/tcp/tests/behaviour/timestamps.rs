//! Tests of the timestamps option (RFC 7323): the timestamp that an acknowledgement echoes, and the
//! rejection of segments with old timestamps.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{
    AckRule, Config, Connection, Disposition, Refusal, Reset, State, judge_unconnected,
};
use linerate_testkit::{Script, Sent};
use linerate_wire::{Segment, SeqNum, Sum, TcpFlags, TcpHeader, Timestamps};

/// Opens a connection with timestamps. It delays acknowledgements of all segments, including the
/// first. The TSval of the peer's SYN is 1,000.
fn established() -> Script {
    let config = Config { acks: AckRule::Modern { quick: 0 }, ..Config::modern() };
    Script::established(&config, &format!("{SYN_ACK} ts 1000 0"))
}

fn echo(sent: &Sent) -> u32 {
    sent.says.options.timestamps.expect("a timestamp").echo
}

#[test]
fn every_segment_carries_the_clock_and_the_echo() {
    let mut host = established();
    host.write(100);
    let sent = host.expect("P. 1:101(100) ack 1");
    let stamp = sent.says.options.timestamps.unwrap();
    assert_eq!((stamp.value, stamp.echo), (host.stamp_at(host.now), 1_000));
    host.pass_time(ms(50));
    host.send(". 1:1(0) ack 101 ts 1050 5");
    host.write(100);
    let sent = host.expect("P. 101:201(100) ack 1");
    let stamp = sent.says.options.timestamps.unwrap();
    assert_eq!((stamp.value, stamp.echo), (host.stamp_at(host.now), 1_050));
    assert_eq!(host.connection.effective_mss(), 1_448);
}

/// RFC 7323 §4.3 (A): a delayed acknowledgement echoes the timestamp of the earliest segment that
/// it covers. So the RTT that the peer measures includes the delay of the acknowledgement.
#[test]
fn a_delayed_acknowledgement_echoes_the_earliest_segment() {
    let mut host = established();
    host.send(". 1:101(100) ack 1 ts 1001 5");
    host.pass_time(ms(20));
    host.send(". 101:201(100) ack 1 ts 1021 5");
    let sent = host.expect_after(ms(20), ". 1:1(0) ack 201");
    assert_eq!(echo(&sent), 1_001);
    host.send(". 201:301(100) ack 1 ts 1050 5");
    let sent = host.expect_after(ms(40), ". 1:1(0) ack 301");
    assert_eq!(echo(&sent), 1_050);
}

/// RFC 7323 §4.3: a segment is retransmitted needlessly, because its acknowledgement was lost. The
/// next acknowledgement must echo the timestamp of the retransmission. With that of the original,
/// the peer's RTT sample would include the timeout, and its RTO would grow with each lost
/// acknowledgement.
#[test]
fn the_timestamp_of_a_needless_retransmission_is_echoed() {
    let mut host = established();
    host.send(". 1:101(100) ack 1 ts 1001 5");
    assert_eq!(echo(&host.expect_after(ms(40), ". 1:1(0) ack 101")), 1_001);
    host.pass_time(secs(1));
    host.send(". 1:101(100) ack 1 ts 2001 5");
    assert_eq!(echo(&host.expect(". 1:1(0) ack 101")), 2_001);
    // The duplicate above repeated the data that was acknowledged last, so its timestamp was
    // recorded in TS.Recent. The next duplicate repeats earlier data. Its timestamp must not be
    // recorded.
    host.send(". 101:201(100) ack 1 ts 2010 5");
    host.expect_after(ms(40), ". 1:1(0) ack 201");
    host.send(". 1:101(100) ack 1 ts 3001 5");
    assert_eq!(echo(&host.expect(". 1:1(0) ack 201")), 2_010);
}

/// RFC 7323 §4.3 (B): an acknowledgement of out-of-order data echoes the timestamp of the last
/// segment before the hole.
#[test]
fn beyond_a_hole_the_last_segment_in_order_is_echoed() {
    let mut host = established();
    host.send(". 1:101(100) ack 1 ts 1001 5");
    let sent = host.expect_after(ms(40), ". 1:1(0) ack 101");
    assert_eq!(echo(&sent), 1_001);
    for (start, stamp) in [(201, 1_003), (301, 1_004)] {
        host.send(&format!(". {start}:{}(100) ack 1 ts {stamp} 5", start + 100));
        assert_eq!(echo(&host.expect(". 1:1(0) ack 101")), 1_001);
    }
    // RFC 7323 §4.3 (C): when a segment fills the hole, its acknowledgement echoes the timestamp of
    // this segment, and not of later data.
    host.send(". 101:201(100) ack 1 ts 1010 5");
    assert_eq!(echo(&host.expect(". 1:1(0) ack 401")), 1_010);
}

#[test]
fn a_segment_from_the_past_is_dropped_and_answered() {
    let mut host = established();
    host.send(". 1:101(100) ack 1 ts 2000 5");
    host.expect_after(ms(40), ". 1:1(0) ack 101");
    let verdict = host.judge(". 101:201(100) ack 1 ts 1999 5");
    assert_eq!(verdict, Disposition::Refused(Refusal::OldTimestamp));
    assert_eq!(echo(&host.expect(". 1:1(0) ack 101")), 2_000);
    assert_eq!(host.connection.readable_bytes(), 100);
    assert_eq!(host.connection.statistics().old_timestamps, 1);
    assert_eq!(host.judge(". 101:201(100) ack 1 ts 2000 5"), Disposition::Accepted);
}

#[test]
fn timestamps_are_compared_across_the_wrap_of_the_clock() {
    let mut host = Script::established(&Config::modern(), &format!("{SYN_ACK} ts 4294967290 0"));
    assert_eq!(host.judge(". 1:101(100) ack 1 ts 5 0"), Disposition::Accepted);
    assert_ne!(host.judge(". 101:201(100) ack 1 ts 4294967295 0"), Disposition::Accepted);
    assert_eq!(host.judge(". 101:201(100) ack 1 ts 6 0"), Disposition::Accepted);
}

/// RFC 7323 §5.2: a reset is accepted even if its timestamp is old or missing.
#[test]
fn a_reset_from_the_past_counts() {
    for reset in ["R 1:1(0) ts 1 0", "R 1:1(0) bare"] {
        let mut host = established();
        host.send(reset);
        assert_eq!(host.connection.state(), State::Closed, "{reset}");
    }
}

/// RFC 7323 §5.2: a reset that answers a segment echoes the timestamp of that segment. Its TSval is
/// 0, and not our timestamp clock.
#[test]
fn a_reset_that_answers_a_timestamp_echoes_it_and_has_none_of_its_own() {
    let answered = Timestamps { value: 0, echo: 77 };

    let mut opening = Script::connect(&Config::modern());
    opening.expect("S 0:0(0)");
    opening.send(". 0:0(0) ack 500 ts 77 5");
    assert_eq!(opening.expect("R 500:500(0)").says.options.timestamps, Some(answered));

    let mut closed = established();
    closed.application(Connection::close);
    closed.expect("F. 1:1(0) ack 1");
    closed.send(". 1:101(100) ack 2 ts 1077 5");
    let reset = closed.expect("R. 2:2(0) ack 1");
    assert_eq!(reset.says.options.timestamps, Some(Timestamps { value: 0, echo: 1_077 }));

    let mut bytes = [0; 32];
    let stray = TcpHeader { ack: SeqNum::new(9), flags: TcpFlags::ACK, ..TcpHeader::default() };
    let _ = stray.emit_timestamped(Timestamps { value: 77, echo: 5 }, &mut bytes);
    let reset = judge_unconnected(&Segment::parse(&bytes).unwrap()).unwrap();
    let mut bytes = [0; Reset::LONGEST];
    let sent = reset.emit(&mut bytes);
    let reset = Segment::parse(&bytes[..sent.length]).unwrap();
    assert_eq!((reset.seq, reset.timestamps()), (SeqNum::new(9), Some(answered)));
    assert_eq!(sent.sum.finish(), Sum::of(&bytes[..sent.length]).finish());
}

/// RFC 7323 §5.2: a reset that does not answer a segment, here by an abort, carries our timestamp
/// clock and an echo, like any other segment.
#[test]
fn a_reset_of_our_own_accord_carries_the_clock_and_the_echo() {
    let mut host = established();
    host.pass_time(ms(50));
    host.application(Connection::abort);
    let stamp = host.expect("R. 1:1(0) ack 1").says.options.timestamps.unwrap();
    assert_eq!((stamp.value, stamp.echo), (host.stamp_at(host.now), 1_000));

    let mut without =
        Script::established(&Config { timestamps: false, ..Config::modern() }, SYN_ACK);
    without.application(Connection::abort);
    assert_eq!(without.expect("R. 1:1(0) ack 1").says.options.timestamps, None);
}

/// RFC 7323 §3.2: if timestamps were negotiated, a segment without the option is dropped without an
/// answer.
#[test]
fn a_segment_without_the_option_is_dropped_silently() {
    let mut host = established();
    assert_eq!(host.judge(". 1:101(100) ack 1 bare"), Disposition::Refused(Refusal::OldTimestamp));
    host.expect_silence(secs(60));
    assert_eq!(host.connection.readable_bytes(), 0);
}

#[test]
fn the_option_of_a_peer_that_did_not_offer_it_is_ignored() {
    let mut host = Script::established(&Config { timestamps: false, ..Config::modern() }, SYN_ACK);
    assert_eq!(host.judge(". 1:101(100) ack 1 ts 5 0"), Disposition::Accepted);
    let sent = host.expect(". 1:1(0) ack 101");
    assert_eq!(sent.says.options.timestamps, None);
}

/// RFC 7323 §5.5: if no segment has arrived for 24 days, TS.Recent is outdated. A segment with an
/// apparently older timestamp is then accepted.
#[test]
fn a_month_old_timestamp_is_ignored() {
    let mut host = established();
    host.send(". 1:101(100) ack 1 ts 2000 5");
    host.expect_after(ms(40), ". 1:1(0) ack 101");
    host.expect_silence(secs(25 * 24 * 3_600));
    assert_eq!(host.judge(". 101:201(100) ack 1 ts 1000 5"), Disposition::Accepted);
    let sent = host.expect_after(ms(40), ". 1:1(0) ack 201");
    assert_eq!(echo(&sent), 1_000);
}

/// The timestamp of a segment outside the window must not be recorded in TS.Recent.
#[test]
fn a_segment_outside_the_window_leaves_no_timestamp_behind() {
    let mut host = established();
    host.send(". 1000000:1000100(100) ack 1 ts 9000 5");
    assert_eq!(echo(&host.expect(". 1:1(0) ack 1")), 1_000);
    host.send(". 0:0(0) ack 1 ts 9000 5");
    host.pass_time(ms(200));
    host.take_sent();
    assert_eq!(host.judge(". 1:101(100) ack 1 ts 1001 5"), Disposition::Accepted);
}

/// An echoed timestamp that we have not sent yet gives no RTT sample.
#[test]
fn an_echo_of_the_future_gives_no_rtt_sample() {
    let mut host = established();
    host.write(100);
    host.take_sent();
    host.expect_after(ms(200), "P. 1:101(100) ack 1");
    let before = host.connection.information().smoothed_round_trip;
    let future = host.stamp_at(host.now + secs(100));
    host.send(&format!(". 1:1(0) ack 101 ts 1200 {future}"));
    assert_eq!(host.connection.information().smoothed_round_trip, before);
}

/// RFC 7323 §3.2: TSecr is valid only in segments with the ACK flag. In others, it is sent as zero,
/// and ignored when received.
#[test]
fn a_syn_echoes_nothing_and_its_echo_is_ignored() {
    let mut host = Script::connect(&Config::modern());
    assert_eq!(echo(&host.expect("S 0:0(0)")), 0);
    let config = Config::modern();
    let stamp = Script::connect(&config).clock();
    let mut host = Script::accept(&config, &format!("S 0:0(0) win 65535 mss 1000 ts 77 {stamp}"));
    assert_eq!(echo(&host.expect("S. 0:0(0) ack 1")), 77);
    assert_eq!(host.connection.information().smoothed_round_trip, None);
}

/// RFC 7323 §2.2: only SYNs negotiate the window scale. The option is ignored in later segments.
#[test]
fn a_scale_behind_the_handshake_is_ignored() {
    let mut host =
        Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 65535 mss 1000 wscale 0");
    host.write(20_000);
    host.take_sent();
    host.send(". 1:1(0) ack 1001 win 500 wscale 7");
    host.take_sent();
    host.send(". 1:1(0) ack 10001 win 500");
    assert_eq!(host.connection.information().send_window, 500);
}
