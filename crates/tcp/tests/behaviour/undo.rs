//! Tests of undoing the reduction of the window after a spurious loss. A loss is found spurious by
//! Eifel detection (RFC 3522), by a D-SACK for each retransmission (RFC 3708), or by F-RTO with
//! SACK (RFC 5682 §3).

use crate::ms;
use crate::recovery::{established, established_with, expect_segments, new_reno, ten_out};
use linerate_tcp::{Config, CongestionName, EcnRule, RecoveryState};
use linerate_testkit::Script;

fn threshold(host: &Script) -> u32 {
    host.connection.information().slow_start_threshold
}

fn undone_recoveries(host: &Script) -> u64 {
    host.connection.statistics().spurious_recoveries
}

/// RFC 3708 §2: each D-SACK shows that one retransmission was needless. Here two segments were
/// retransmitted. A D-SACK for only one of them undoes nothing, because the original of the other
/// may have been lost.
#[test]
fn a_d_sack_for_one_of_two_retransmissions_undoes_nothing() {
    for both in [false, true] {
        let mut host = ten_out(&new_reno());
        host.send(". 1:1(0) ack 1 sack 3001-6001 sack 1001-2001");
        host.send(". 1:1(0) ack 1 sack 3001-10001 sack 1001-2001");
        let sent: Vec<u32> = host.take_sent().iter().map(|sent| sent.says.seq).collect();
        assert!(sent.starts_with(&[1, 2_001]), "{sent:?}");
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 10001 sack 1-1001");
        assert_eq!(undone_recoveries(&host), 0);
        if both {
            host.send(". 1:1(0) ack 10001 sack 2001-3001");
        }
        assert_eq!(undone_recoveries(&host), u64::from(both));
    }
}

/// A D-SACK counts only if it reports a segment that was retransmitted in the recovery. Here it
/// reports a segment that was sent before or after the recovery, and that the network may have
/// duplicated.
#[test]
fn a_d_sack_for_a_segment_outside_the_recovery_undoes_nothing() {
    for other in ["ack 11001 sack 1-1001", "ack 12001 sack 11001-12001"] {
        let mut host = established(&new_reno());
        host.write(1_000);
        host.take_sent();
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 1001");
        host.write(10_000);
        assert_eq!(host.take_sent().len(), 10);
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 1001 sack 2001-11001");
        expect_segments(&mut host, &[1_001]);
        host.write(1_000);
        expect_segments(&mut host, &[11_001]);
        host.pass_time(ms(10));
        host.send(&format!(". 1:1(0) {other}"));
        assert_eq!(host.connection.statistics().duplicates_reported, 1, "{other}");
        assert_eq!((undone_recoveries(&host), threshold(&host)), (0, 5_000), "{other}");
    }
}

/// Returns a connection with timestamps, on which the application has written `segments` segments
/// of 988 bytes. The first ten of them were sent 10 ms ago.
fn timestamped(segments: usize) -> Script {
    let mut host = established_with(&new_reno(), " ts 100 1");
    host.write(988 * segments);
    assert_eq!(host.take_sent().len(), 10);
    host.pass_time(ms(10));
    host
}

/// Returns the sequence number of segment `index`, counted from 0.
const fn at(index: u32) -> u32 {
    1 + 988 * index
}

/// Returns an acknowledgement of the segments before number `ack`. Its SACK block covers the
/// segments from number `left` up to but excluding `right`, and it echoes the timestamp `echo`.
fn acknowledging(ack: u32, left: u32, right: u32, echo: u32) -> String {
    format!(". 1:1(0) ack {} sack {}-{} ts 120 {echo}", at(ack), at(left), at(right))
}

/// RFC 3522 §3.2 steps 3 and 4: the first acknowledgement that advances SND.UNA shows whether the
/// retransmission was spurious. An acknowledgement with only new SACK blocks does not. It echoes
/// the timestamp of the last segment before the missing one (RFC 7323 §4.3).
#[test]
fn new_sack_blocks_do_not_decide_about_a_retransmission() {
    for is_late in [false, true] {
        let mut host = timestamped(12);
        let original = host.stamp_at(host.now - ms(10));
        host.send(&acknowledging(0, 1, 4, original));
        let again =
            host.take_sent().into_iter().find(|sent| sent.says.seq == 1).expect("a retransmission");
        host.pass_time(ms(1));
        host.send(&acknowledging(0, 1, 5, original));
        assert_eq!(undone_recoveries(&host), 0);
        host.pass_time(ms(9));
        let echoed = if is_late { original } else { host.stamp_at(again.at) };
        host.send(&format!(". 1:1(0) ack {} ts 130 {echoed}", at(10)));
        assert_eq!(undone_recoveries(&host), u64::from(is_late));
        assert_eq!(
            host.connection.information().reordering_seen,
            is_late,
            "the original arrived after later segments"
        );
    }
}

/// RFC 3522 §3.2 step 5: an acknowledgement covers all data in flight and echoes the timestamp of
/// the original. It may answer the retransmission, if the acknowledgements of all originals were
/// lost. A peer that sends D-SACKs would then report a duplicate. The retransmission therefore
/// counts as spurious only if the peer has sent a D-SACK before, but none with this
/// acknowledgement.
#[test]
fn an_acknowledgement_of_the_whole_flight_counts_if_the_peer_sends_d_sack() {
    for (reports, duplicate, undone) in [(false, false, 0), (true, false, 1), (true, true, 0)] {
        let mut host = timestamped(10);
        let original = host.stamp_at(host.now - ms(10));
        let first = u32::from(reports);
        if reports {
            host.send(&format!(". 1:1(0) ack {} ts 120 {original}", at(1)));
            host.send(&acknowledging(1, 0, 1, original));
        }
        host.send(&acknowledging(first, first + 1, first + 4, original));
        let again = host.take_one();
        assert_eq!(again.says.seq, at(first));
        host.pass_time(ms(5));
        // The D-SACK reports a segment that was never retransmitted. So RFC 3708 does not find the
        // retransmission spurious either.
        let block = if duplicate { format!(" sack {}-{}", at(7), at(8)) } else { String::new() };
        host.send(&format!(". 1:1(0) ack {}{block} ts 130 {original}", at(10)));
        assert_eq!(undone_recoveries(&host), undone, "{reports} {duplicate}");
    }
}

/// RFC 3522 §3.2: only the retransmission of the oldest outstanding segment is considered. Here the
/// second recovery begins while a retransmission R of the first recovery is in flight. The
/// acknowledgement of R echoes a timestamp older than the retransmission of the second recovery.
/// This is no evidence that the second recovery is spurious, even if the acknowledgement covers
/// both retransmissions.
#[test]
fn a_retransmission_of_the_previous_recovery_proves_nothing() {
    for together in [false, true] {
        let mut host = established_with(&fixed(20), " ts 100 1");
        let original = host.stamp_at(host.now);
        host.write(988 * 60);
        assert_eq!(host.take_sent().len(), 20);
        host.pass_time(ms(10));
        host.send(&acknowledging(0, 1, 4, original));
        expect_retransmission(&mut host, 0);
        host.pass_time(ms(5));
        host.send(&format!("{} sack {}-{}", acknowledging(0, 11, 14, original), at(1), at(10)));
        expect_retransmission(&mut host, 10);
        host.pass_time(ms(5));
        // Segment 20 was sent during the first recovery and is lost. It is therefore retransmitted
        // in the first recovery, and this retransmission is still in flight when the second
        // recovery begins.
        host.send(&format!(
            "{} sack {}-{}",
            acknowledging(10, 21, 25, original + 10),
            at(11),
            at(20)
        ));
        let twentieth = expect_retransmission(&mut host, 20);
        host.pass_time(ms(5));
        host.send(&acknowledging(20, 21, 25, original + 15));
        assert_eq!(
            host.connection.information().recovery,
            RecoveryState::Disorder,
            "the first recovery has ended"
        );
        host.pass_time(ms(1));
        host.send(&format!(
            "{} sack {}-{}",
            acknowledging(20, 26, 30, original + 15),
            at(21),
            at(25)
        ));
        expect_retransmission(&mut host, 25);
        assert_eq!(host.connection.statistics().fast_retransmissions, 2);
        host.pass_time(ms(9));
        let end = if together { 30 } else { 25 };
        host.send(&acknowledging(end, 31, 32, twentieth));
        assert_eq!(
            (undone_recoveries(&host), host.connection.information().recovery),
            (0, RecoveryState::Recovery)
        );
    }
}

/// Expects that segment `index` is retransmitted, and returns the timestamp of the retransmission.
#[track_caller]
fn expect_retransmission(host: &mut Script, index: u32) -> u32 {
    let again = host
        .take_sent()
        .into_iter()
        .find(|sent| sent.says.seq == at(index))
        .expect("a retransmission");
    host.stamp_at(again.at)
}

/// Returns a configuration with a constant congestion window of `segments` segments.
fn fixed(segments: u16) -> Config {
    Config { congestion: CongestionName::Fixed(segments), ..Config::modern() }
}

/// RFC 3708 §2: the network has duplicated a segment that was not retransmitted. The D-SACK for it
/// is no evidence of a needless retransmission.
#[test]
fn a_duplicate_made_by_the_network_undoes_nothing() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-4001");
    expect_segments(&mut host, &[1]);
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 10001");
    host.take_sent();
    for (block, undone) in [("3001-4001", 0), ("1-1001", 1)] {
        host.send(&format!(". 1:1(0) ack 10001 sack {block}"));
        assert_eq!(undone_recoveries(&host), undone, "{block}");
    }
}

/// A D-SACK that arrives after the recovery still undoes the reduction by this recovery, unless the
/// window was reduced again since. Here it is reduced again for a loss that a tail loss probe has
/// repaired (RFC 8985 §7.4.2), or for a congestion mark.
#[test]
fn a_late_d_sack_does_not_undo_later_reductions() {
    for (echo, waits, undone) in [(".", false, 1), (".", true, 0), ("E.", false, 0)] {
        let mut host = Script::connect(&Config { ecn: EcnRule::Request, ..new_reno() });
        host.expect("SEW 0:0(0)");
        host.pass_time(ms(10));
        host.send("SE. 0:0(0) ack 1 win 65535 mss 1000 sackOK");
        host.expect(". 1:1(0) ack 1");
        host.write(10_000);
        host.take_sent();
        host.pass_time(ms(10));
        host.send(". 1:1(0) ack 1 sack 1001-4001");
        expect_segments(&mut host, &[1]);
        host.send(". 1:1(0) ack 10001");
        host.write(3_000);
        assert_eq!(host.take_sent().len(), 3);
        host.pass_time(ms(if waits { 20 } else { 10 }));
        assert_eq!(host.connection.statistics().tail_probes, u64::from(waits));
        host.write(1_000);
        host.take_sent();
        host.send(&format!("{echo} 1:1(0) ack 13001"));
        host.send(". 1:1(0) ack 14001");
        let reduced = threshold(&host);
        host.send(". 1:1(0) ack 14001 sack 1-1001");
        assert_eq!(undone_recoveries(&host), undone, "{echo} {waits}");
        assert_eq!(threshold(&host) > reduced, undone > 0, "{echo} {waits}");
    }
}

/// RFC 4015: if the acknowledgement also reports a congestion mark, the window is not restored.
#[test]
fn a_congestion_mark_prevents_the_undo() {
    for (echo, undone) in [(".", 1), ("E.", 0)] {
        let mut host = Script::connect(&Config { ecn: EcnRule::Request, ..new_reno() });
        host.expect("SEW 0:0(0)");
        host.pass_time(ms(10));
        host.send("SE. 0:0(0) ack 1 win 65535 mss 1000 sackOK ts 100 1");
        host.expect(". 1:1(0) ack 1");
        host.write(988 * 12);
        host.take_sent();
        let original = host.stamp_at(host.now);
        host.pass_time(ms(10));
        host.send(&acknowledging(0, 1, 4, original));
        expect_retransmission(&mut host, 0);
        let reduced = threshold(&host);
        host.pass_time(ms(1));
        host.send(&format!("{echo} 1:1(0) ack {} ts 121 {original}", at(4)));
        assert_eq!(
            (undone_recoveries(&host), threshold(&host) > reduced),
            (undone, undone > 0),
            "{echo}"
        );
    }
}

/// Returns a connection that sent ten segments and a tail loss probe, and retransmitted the first
/// segment after a timeout. The application has written more data, which waits to be sent.
fn timed_out() -> Script {
    timed_out_with(65_535)
}

/// Returns a connection as [`timed_out`] does, with a peer whose receive window is `window` bytes.
fn timed_out_with(window: u32) -> Script {
    let mut host = Script::connect(&new_reno());
    host.expect("S 0:0(0)");
    host.pass_time(ms(10));
    host.send(&format!("S. 0:0(0) ack 1 win {window} mss 1000 sackOK"));
    host.expect(". 1:1(0) ack 1");
    host.write(30_000);
    assert_eq!(host.take_sent().len(), 10);
    host.pass_time(ms(20));
    assert_eq!(host.take_sent().len(), 1, "the probe");
    host.pass_time(ms(200));
    expect_segments(&mut host, &[1]);
    host
}

/// RFC 5682 §3.1 step 3: segments that were sent after the timeout arrive. They do not show that
/// the segments before the timeout arrived, so the timeout is not undone.
#[test]
fn new_data_that_arrive_do_not_make_a_timeout_spurious() {
    let mut host = timed_out();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.send(". 1:1(0) ack 1001 sack 11001-12001");
    assert_eq!(undone_recoveries(&host), 0);
    let next = host.take_one();
    assert_eq!(next.says.seq, 1_001, "the flight before the timeout is lost");
}

/// RFC 5682 §3.1 step 2: neither a duplicate acknowledgement nor data of the peer decides whether
/// the timeout was spurious. New SACK blocks are nevertheless recorded.
#[test]
fn f_rto_waits_for_an_acknowledgement_of_new_data() {
    for other in [". 1:1(0) ack 1", ". 1:1(0) ack 1 sack 2001-3001", "P. 1:101(100) ack 1"] {
        let mut host = timed_out();
        host.send(other);
        host.send(". 1:1(0) ack 1001");
        let data = host.take_sent().into_iter().filter(|sent| sent.says.length > 0);
        assert!(data.map(|sent| sent.says.seq).eq([11_001, 12_001]), "{other}");
        host.send(". 1:1(0) ack 2001");
        assert_eq!(undone_recoveries(&host), 1, "{other}");
    }
}

/// RFC 5682 §3.1 step 3: F-RTO waits for an acknowledgement of new data. A data segment of the peer
/// that acknowledges nothing new leaves it undecided.
#[test]
fn data_without_a_new_acknowledgement_do_not_advance_f_rto() {
    let mut host = timed_out();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.send("P. 1:101(100) ack 1001");
    host.send(". 101:101(0) ack 2001");
    assert_eq!(undone_recoveries(&host), 1);
}

/// RFC 5682 §3.1 step 3 (a): if SACK blocks report segments that were sent after the timeout, the
/// timeout is not undone. This holds even if the blocks report original segments as well. The
/// acknowledgements of the originals may have been lost before the timeout.
#[test]
fn an_acknowledgement_of_new_data_and_originals_confirms_the_timeout() {
    let mut host = timed_out();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.send(". 1:1(0) ack 1001 sack 11001-12001 sack 5001-9001");
    assert_eq!(undone_recoveries(&host), 0);
}

/// RFC 5682 §3.1 step 1: a second timeout during a recovery counts as genuine, and F-RTO is not
/// applied. F-RTO could not tell segments sent before the first timeout from segments sent after
/// it.
#[test]
fn a_second_timeout_during_a_recovery_is_genuine() {
    let mut host = timed_out();
    host.send(". 1:1(0) ack 1001");
    expect_segments(&mut host, &[11_001, 12_001]);
    host.pass_time(ms(400));
    expect_segments(&mut host, &[1_001]);
    host.send(". 1:1(0) ack 2001");
    host.send(". 1:1(0) ack 2001 sack 11001-12001");
    assert_eq!(undone_recoveries(&host), 0);
}

/// RFC 5682 §3.1: F-RTO sends new data. If the peer's window has no room for it, the timeout counts
/// as genuine.
#[test]
fn without_room_for_new_data_a_timeout_is_genuine() {
    let mut host = timed_out_with(11_000);
    host.send(". 1:1(0) ack 1001 win 10000");
    let next = host.take_one();
    assert_eq!(next.says.seq, 1_001);
}

/// RFC 5681 §3.1: if the timer expires repeatedly for one loss, only the first timeout reduces
/// ssthresh.
#[test]
fn a_second_timeout_of_the_same_loss_leaves_the_threshold() {
    let mut host = timed_out();
    let before = threshold(&host);
    host.pass_time(ms(400));
    assert_eq!(host.connection.statistics().retransmission_timeouts, 2);
    assert_eq!(threshold(&host), before);
}

/// RFC 2883 §4: the peer receives out-of-order data a second time. The first block, the D-SACK,
/// reports this data, and the second block contains it.
#[test]
fn a_d_sack_block_beyond_a_hole_lies_in_the_next_block() {
    let mut host = ten_out(&new_reno());
    host.send(". 1:1(0) ack 1 sack 1001-2001");
    host.send(". 1:1(0) ack 1 sack 1001-2001 sack 3001-4001");
    assert_eq!(host.connection.statistics().duplicates_reported, 0);
    host.send(". 1:1(0) ack 1 sack 3001-4001 sack 3001-5001");
    assert_eq!(host.connection.statistics().duplicates_reported, 1);
}
