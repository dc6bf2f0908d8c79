//! Tests of the path MTU search (RFC 4821). After timeouts, segments become smaller, because the
//! path may drop large packets without a report. To find a larger size, some data segments are sent
//! larger than the others, as probes. When a probe arrives, all segments become as large.

use crate::{ms, secs};
use linerate_tcp::{
    BufferSize, Config, CongestionName, EcnRule, Error, Event, Path, PathSearch, State,
};
use linerate_testkit::{Connections, End, Fate, Network, Script, pattern};
use linerate_wire::{Ecn, Segment};
use std::cell::Cell;
use std::rc::Rc;

const ALWAYS: Config = Config { path_search: PathSearch::Always, ..Config::modern() };

/// Returns the size of the packet that carries `segment`, in bytes.
fn packet(segment: &Segment<'_>, path: Path) -> usize {
    usize::from(path.ip_header) + 20 + segment.options.len() + segment.payload.len()
}

/// Opens a connection over `path`, which drops packets larger than `width` bytes.
fn narrowed(config: &Config, path: Path, width: &Rc<Cell<usize>>) -> Connections {
    let mut pair = Connections::new(config, config, Network::clean(ms(5)), 1).over(config, path);
    let width = Rc::clone(width);
    pair.set_filter(move |_, _, segment| {
        (packet(segment, path) > width.get()).then_some(Fate::Lose)
    });
    pair.established()
}

/// Sends `bytes` bytes from the client to the server, which reads them. `before` is the number of
/// bytes that earlier calls have sent.
fn transfer(pair: &mut Connections, before: usize, bytes: usize) {
    let (mut written, mut read) = (before, before);
    pair.run_until("everything has arrived", |pair| {
        let now = pair.now;
        let part: Vec<u8> =
            (written..(written + 65_536).min(before + bytes)).map(pattern).collect();
        written += pair.client.write(now, &part).expect("the connection is open");
        let received = pair.read_all(End::Server).expect("the connection is open");
        assert!(
            received.iter().copied().eq((read..read + received.len()).map(pattern)),
            "wrong bytes"
        );
        read += received.len();
        read == before + bytes
    });
}

#[test]
fn a_black_hole_is_detected_over_ipv4_and_ipv6() {
    // Over IPv6, segments are first reduced to packets of 1,280 bytes, the minimum MTU of a link.
    // One successful probe then suffices to find the path MTU. Over IPv4, the first reduction leads
    // to smaller packets, so two successful probes are necessary.
    for (path, passed) in [(Path::ipv4(1_500), 2), (Path::ipv6(1_500), 1)] {
        let width = Rc::new(Cell::new(1_410));
        let mut pair = narrowed(&Config::modern(), path, &width);
        transfer(&mut pair, 0, 2_000_000);
        let counted = pair.client.statistics();
        assert_eq!((counted.black_holes, counted.retransmission_timeouts), (1, 3));
        assert_eq!((counted.path_probes_passed, counted.path_probes_failed), (passed, 2));
        assert_eq!(pair.client.path_mtu(), 1_400);
        assert_eq!(pair.client.information().path_mtu, 1_400);
        assert!(
            !pair.client.is_path_mtu_estimated(),
            "the remaining difference is not worth a probe"
        );
        assert!(pair.events(End::Client).contains(&Event::PathMtu));
    }
}

#[test]
fn a_narrowed_path_reduces_segments_until_it_widens() {
    let width = Rc::new(Cell::new(1_500));
    let mut pair = narrowed(&Config::modern(), Path::ipv4(1_500), &width);
    transfer(&mut pair, 0, 300_000);
    assert_eq!((pair.client.path_mtu(), pair.client.statistics().path_probes), (1_500, 0));
    width.set(1_300);
    for part in 3..13 {
        // After a failed probe, no probe is sent for as many round trips as the window has
        // segments. Several transfers give the search enough round trips.
        transfer(&mut pair, part * 100_000, 100_000);
        pair.pass_time(secs(5));
    }
    let narrow = pair.client.path_mtu();
    assert!((1_280..=1_300).contains(&narrow), "{narrow}");
    assert_eq!(pair.client.statistics().black_holes, 1);
    width.set(1_500);
    pair.pass_time(secs(300));
    transfer(&mut pair, 1_300_000, 200_000);
    assert_eq!(pair.client.path_mtu(), narrow, "five minutes are too few");
    pair.pass_time(secs(300));
    let before = pair.client.statistics().retransmitted_segments;
    transfer(&mut pair, 1_500_000, 500_000);
    assert_eq!(pair.client.path_mtu(), 1_500);
    assert_eq!(pair.client.statistics().retransmitted_segments, before);
}

#[test]
fn a_peer_without_sack_gets_small_segments_and_no_probes() {
    let config = Config { selective_acks: false, ..Config::modern() };
    let width = Rc::new(Cell::new(1_200));
    let mut pair = narrowed(&config, Path::ipv4(1_500), &width);
    transfer(&mut pair, 0, 300_000);
    let counted = pair.client.statistics();
    assert_eq!((counted.black_holes, counted.path_probes), (1, 0));
    assert_eq!(pair.client.effective_mss(), 1_024);
}

#[test]
fn without_the_search_a_black_hole_ends_the_connection() {
    let config = Config { path_search: PathSearch::Off, ..Config::modern() };
    let width = Rc::new(Cell::new(1_400));
    let mut pair = narrowed(&config, Path::ipv4(1_500), &width);
    let now = pair.now;
    pair.client.write(now, &[0; 10_000]).unwrap();
    pair.run_until("the client gives up", |pair| pair.client.state() == State::Closed);
    assert_eq!(pair.client.error(), Some(Error::TimedOut));
    assert_eq!(pair.client.statistics().black_holes, 0);
}

/// RFC 4821 §7.7: timeouts first reduce segments to 1,024 bytes of data. If these do not arrive
/// either, further timeouts halve the size.
#[test]
fn a_very_narrow_path_is_found_by_further_timeouts() {
    let config = Config { path_floor: 88, ..Config::modern() };
    let width = Rc::new(Cell::new(300));
    let mut pair = narrowed(&config, Path::ipv4(1_500), &width);
    transfer(&mut pair, 0, 50_000);
    let sizes = pair.client.statistics().black_holes;
    assert_eq!(sizes, 4, "1,024 bytes of data, 512, 256, 128");
    assert!((128..=300).contains(&pair.client.path_mtu()), "{}", pair.client.path_mtu());
}

/// RFC 1122 §3.3.2: hosts accept packets of 576 bytes, so no working path has a smaller MTU. On a
/// path with this MTU, segments must become small enough, with and without timestamps.
#[test]
fn a_path_of_576_bytes_is_found_with_timestamps() {
    for timestamps in [true, false] {
        let width = Rc::new(Cell::new(576));
        let mut pair =
            narrowed(&Config { timestamps, ..Config::modern() }, Path::ipv4(1_500), &width);
        transfer(&mut pair, 0, 50_000);
        assert!((564..=576).contains(&pair.client.path_mtu()), "{}", pair.client.path_mtu());
    }
}

#[test]
fn an_outage_is_distinguished_from_a_narrow_path_by_one_probe() {
    let width = Rc::new(Cell::new(1_500));
    let mut pair = narrowed(&Config::modern(), Path::ipv4(1_500), &width);
    transfer(&mut pair, 0, 100_000);
    let now = pair.now;
    pair.client.write(now, &(100_000..200_000).map(pattern).collect::<Vec<_>>()).unwrap();
    width.set(0);
    pair.pass_time(secs(10));
    assert_eq!(pair.client.effective_mss(), 524);
    width.set(1_500);
    pair.run_until("it has arrived", |pair| pair.client.unacknowledged_bytes() == 0);
    let _ = pair.read_all(End::Server);
    transfer(&mut pair, 200_000, 500_000);
    assert_eq!(pair.client.path_mtu(), 1_500);
    assert_eq!(pair.client.statistics().path_probes, 1);
}

#[test]
fn an_immediate_search_reaches_the_path_mtu_without_losses() {
    for (mtu, found) in [(1_500, 1_500), (9_000, 9_000), (17_914, 17_914)] {
        let width = Rc::new(Cell::new(mtu));
        let size = BufferSize::Fixed(256 << 10);
        let config = Config { send_buffer: size, receive_buffer: size, ..ALWAYS };
        let mut pair = narrowed(&config, Path::ipv4(mtu), &width);
        assert_eq!(pair.client.effective_mss(), 1_024);
        transfer(&mut pair, 0, 4_000_000);
        assert_eq!(pair.client.path_mtu(), found);
        assert_eq!(pair.client.statistics().retransmitted_segments, 0);
    }
}

/// RFC 4821 §7.8: packets alternate between two paths with different MTUs. A probe may arrive by
/// one path, although the other path drops segments of its size. The size is then withdrawn.
#[test]
fn a_size_that_only_some_paths_carry_is_withdrawn() {
    let path = Path::ipv4(1_500);
    let mut pair = Connections::new(&ALWAYS, &ALWAYS, Network::clean(ms(5)), 1).over(&ALWAYS, path);
    let mut large = 0;
    pair.set_filter(move |_, _, segment| {
        large += u32::from(packet(segment, path) > 1_430);
        (packet(segment, path) > 1_430 && large % 2 == 0).then_some(Fate::Lose)
    });
    let mut pair = pair.established();
    transfer(&mut pair, 0, 6_000_000);
    assert!(pair.client.statistics().path_sizes_withdrawn > 0);
    assert!(pair.client.path_mtu() <= 1_430, "{}", pair.client.path_mtu());
    assert_eq!(
        pair.client.effective_mss(),
        pair.client.path_mtu() - 40 - 12,
        "segments are that small, too"
    );
}

/// RFC 4821 §7.8: the size of segments was raised and confirmed long ago. Then packets begin to
/// alternate between two paths, and one of them drops packets of this size. The size is withdrawn.
#[test]
fn a_confirmed_size_is_withdrawn_when_it_stops_passing() {
    let path = Path::ipv4(1_500);
    let mut pair = Connections::new(&ALWAYS, &ALWAYS, Network::clean(ms(5)), 1).over(&ALWAYS, path);
    let every = Rc::new(Cell::new(100));
    let (mut large, turns) = (0, Rc::clone(&every));
    pair.set_filter(move |_, _, segment| {
        large += u32::from(packet(segment, path) > 1_430);
        (packet(segment, path) > 1_430 && large % turns.get() == 0).then_some(Fate::Lose)
    });
    let mut pair = pair.established();
    transfer(&mut pair, 0, 2_000_000);
    pair.pass_time(secs(1));
    transfer(&mut pair, 2_000_000, 2_000_000);
    assert_eq!(pair.client.path_mtu(), 1_500);
    assert!(pair.client.statistics().fast_retransmissions > 5);
    every.set(2);
    transfer(&mut pair, 4_000_000, 4_000_000);
    assert!(pair.client.path_mtu() <= 1_430, "{}", pair.client.path_mtu());
}

/// Opens a connection that searches for the path MTU, beginning with segments of 1,000 bytes. The
/// peer's MSS permits 1,460 bytes.
fn searching(config: &Config) -> Script {
    let config =
        Config { path_search: PathSearch::Always, path_base: 1_000, timestamps: false, ..*config };
    let mut host = Script::connect(&config);
    host.expect("S 0:0(0)");
    host.pass_time(ms(10));
    host.send("S. 0:0(0) ack 1 win 65535 mss 1460 sackOK");
    host.expect(". 1:1(0) ack 1");
    host
}

/// Waits for one round-trip time, and then acknowledges everything that was sent.
fn acknowledge_all(host: &mut Script) {
    host.pass_time(ms(10));
    let sent = host.take_sent();
    if let Some(end) = sent.iter().map(|sent| sent.says.seq + sent.says.length).max() {
        host.send(&format!(". 1:1(0) ack {end}"));
    }
}

/// Returns a connection on which 20,000 bytes were written. It has sent a path MTU probe of 1,240
/// bytes, and then segments of 1,000 bytes.
fn probed(config: &Config) -> Script {
    let mut host = searching(config);
    host.write(20_000);
    host.expect(". 1:1241(1240) ack 1");
    // If the congestion control paces, these segments are sent one by one. The first follow within
    // 10 ms.
    host.pass_time(ms(10));
    let sent: Vec<_> =
        host.take_sent().iter().map(|sent| (sent.says.seq, sent.says.length)).collect();
    assert!(sent.len() >= 3 && sent.iter().all(|&(_, length)| length == 1_000), "{sent:?}");
    host
}

const NEW_RENO: Config = Config { congestion: CongestionName::NewReno, ..Config::modern() };

/// RFC 4821 §7.4: the data that follows a probe shows whether the probe was lost. Without such
/// data, only a timeout would show the loss, so the probe is not sent.
#[test]
fn a_probe_is_sent_only_if_enough_data_can_follow() {
    let mut host = searching(&NEW_RENO);
    host.write(4_239);
    host.expect(". 1:1001(1000) ack 1");
    host.take_sent();
    let mut host = searching(&NEW_RENO);
    host.write(4_240);
    host.expect(". 1:1241(1240) ack 1");
    // Enough data was written for a probe and the data that must follow it. The peer's window is
    // one byte too small for both, so no probe is sent.
    let mut host = searching(&NEW_RENO);
    host.send(". 1:1(0) ack 1 win 4239");
    host.write(10_000);
    host.expect(". 1:1001(1000) ack 1");
    assert_eq!(host.connection.statistics().path_probes, 0);
}

#[test]
fn a_probe_that_arrives_makes_segments_larger_and_the_window_no_larger() {
    let mut host = probed(&NEW_RENO);
    let before = host.connection.information();
    host.send(". 1:1(0) ack 1241");
    let after = host.connection.information();
    assert_eq!((before.effective_mss, after.effective_mss, after.path_mtu), (1_000, 1_240, 1_280));
    let growth = after.congestion_window - before.congestion_window;
    assert_eq!(growth, 1_000, "slow start with the acknowledgement, and nothing for the size");
    assert_eq!(host.connection.statistics().path_probes_passed, 1);
}

/// RFC 4821 §7.6.2, §10.1: a lost probe does not reduce the congestion window, if no other segment
/// is lost. The data of the probe is retransmitted.
#[test]
fn the_loss_of_only_a_probe_reduces_no_window_and_its_data_is_retransmitted_in_pieces() {
    for congestion in [CongestionName::NewReno, CongestionName::Cubic, CongestionName::Bbr] {
        let mut host = probed(&Config { congestion, ..Config::modern() });
        let before = host.connection.information();
        host.send(". 1:1(0) ack 1 sack 1241-4241");
        host.expect(". 1:1001(1000) ack 1");
        host.expect(". 1001:1241(240) ack 1");
        let after = host.connection.information();
        assert!(after.congestion_window >= before.congestion_window, "{congestion}");
        assert_eq!(after.slow_start_threshold, before.slow_start_threshold, "{congestion}");
        assert_eq!(host.connection.statistics().path_probes_failed, 0, "others may be lost, too");
        acknowledge_all(&mut host);
        let counted = host.connection.statistics();
        assert_eq!(
            (counted.path_probes_failed, counted.fast_retransmissions),
            (1, 0),
            "{congestion}"
        );
        assert_eq!(host.connection.information().lost_in_total, 0, "{congestion}");
    }
}

/// RFC 4821 §7.6.4, §4: a probe is lost together with other segments. This is a sign of congestion,
/// so the window is reduced. The loss does not show that the probe was too large.
#[test]
fn a_probe_lost_with_other_segments_is_inconclusive_and_reduces_the_window() {
    let mut host = probed(&NEW_RENO);
    let before = host.connection.information().congestion_window;
    host.send(". 1:1(0) ack 1 sack 2241-5241");
    host.expect(". 1:1001(1000) ack 1");
    let counted = host.connection.statistics();
    assert_eq!((counted.path_probes_failed, counted.fast_retransmissions), (0, 1));
    assert!(host.connection.information().slow_start_threshold <= before / 2);
    host.send(". 1:1(0) ack 9241");
    expect_second_probe(&mut host);
}

/// Expects another probe of the same size, because the loss of the first one was inconclusive (RFC
/// 4821 §7.6.4). The second probe arrives.
#[track_caller]
fn expect_second_probe(host: &mut Script) {
    while host.connection.statistics().path_probes_passed == 0 {
        assert!(host.connection.statistics().path_probes < 3, "another size was probed");
        host.write(5_000);
        acknowledge_all(host);
    }
    assert_eq!(host.connection.effective_mss(), 1_240);
    assert_eq!(host.connection.statistics().path_probes_failed, 0);
}

#[test]
fn a_later_loss_makes_a_lost_probe_inconclusive() {
    let mut host = probed(&NEW_RENO);
    host.send(". 1:1(0) ack 1 sack 1241-4241");
    host.take_sent();
    host.send(". 1:1(0) ack 1 sack 5241-9241 sack 1241-4241");
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 9241");
    let counted = host.connection.statistics();
    assert_eq!((counted.path_probes_failed, counted.fast_retransmissions), (0, 1));
    expect_second_probe(&mut host);
}

#[test]
fn a_late_probe_has_passed() {
    let mut host = probed(&NEW_RENO);
    host.send(". 1:1(0) ack 1 sack 1241-4241");
    host.take_sent();
    host.send(". 1:1(0) ack 9241");
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 9241 sack 1-1001");
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 20001");
    let counted = host.connection.statistics();
    assert_eq!((counted.path_probes_passed, counted.path_probes_failed), (1, 0));
    assert_eq!(host.connection.effective_mss(), 1_240);
}

/// RFC 4821 §7.6.2: after a failed probe, the time until the next probe is as many round trips as
/// the congestion window has segments.
#[test]
fn after_a_failure_no_probe_is_sent_for_as_many_round_trips_as_the_window_has_segments() {
    let mut host = probed(&NEW_RENO);
    host.send(". 1:1(0) ack 1 sack 1241-9241");
    let mut rounds = 0;
    while host.connection.statistics().path_probes == 1 {
        host.write(40_000);
        while host.connection.information().unsent > 10_000 {
            acknowledge_all(&mut host);
            rounds += 1;
        }
        assert!(rounds < 100, "no other probe is sent");
    }
    assert_eq!(host.connection.statistics().path_probes_failed, 1);
    assert!(rounds >= 8, "another probe after {rounds} round trips");
}

/// RFC 4821 §7.6.3: the data of a probe that times out is retransmitted in smaller segments.
#[test]
fn a_probe_that_times_out_is_split_and_counts_as_failed() {
    let mut host = probed(&NEW_RENO);
    host.pass_time(ms(400));
    let counted = host.connection.statistics();
    assert_eq!((counted.path_probes_failed, counted.retransmission_timeouts), (1, 1));
    let again = host.take_sent();
    assert!(again.iter().all(|sent| sent.says.length <= 1_000));
    assert_eq!(host.connection.information().congestion_window, 1_000);
}

/// Passes to the connection an ICMP report about the probe, whose data begins at the sequence
/// number `relative`. The reported MTU allows `mtu_payload` bytes after the IP header.
fn report_of_probe(host: &mut Script, relative: u32, mtu_payload: usize) {
    let quoted = host.number(relative);
    let report = linerate_tcp::IcmpReport::PacketTooBig { quoted, mtu_payload };
    host.application(|connection, now| connection.driver().handle_icmp(now, report));
}

/// RFC 4821 §7.6.2, RFC 5927 §7.2: an ICMP report about a probe is applied only when the probe is
/// found lost. The next probe then has the reported size.
#[test]
fn a_report_about_a_probe_that_is_lost_names_the_next_size() {
    let mut host = probed(&NEW_RENO);
    let before = host.connection.information().congestion_window;
    report_of_probe(&mut host, 1, 1_200);
    host.expect_nothing();
    assert_eq!(host.connection.statistics().path_probes_failed, 0);
    host.send(". 1:1(0) ack 1 sack 1241-9241");
    host.expect(". 1:1001(1000) ack 1");
    host.expect(". 1001:1241(240) ack 1");
    assert!(host.connection.information().congestion_window >= before);
    assert_eq!(
        host.connection.effective_mss(),
        1_000,
        "segments of the confirmed size are still sent"
    );
    while host.connection.statistics().path_probes < 2 {
        host.write(5_000);
        acknowledge_all(&mut host);
    }
    assert_eq!(host.connection.statistics().path_probes_failed, 1);
    acknowledge_all(&mut host);
    assert_eq!(host.connection.path_mtu(), 1_220);
}

#[test]
fn a_forged_report_about_a_probe_that_arrives_has_no_effect() {
    let mut host = probed(&NEW_RENO);
    for mtu_payload in [1_200, 1_025, 500] {
        report_of_probe(&mut host, 1, mtu_payload);
    }
    host.expect_nothing();
    host.send(". 1:1(0) ack 1241");
    assert_eq!(host.connection.effective_mss(), 1_240);
    assert_eq!(host.connection.statistics().path_probes_failed, 0);
}

/// Each time when timeouts make segments smaller, the time until R2 starts again. Segments have a
/// minimum size, so a peer that has vanished is nevertheless given up.
#[test]
fn a_vanished_peer_is_given_up_after_r2() {
    let config = Config { give_up_after: secs(60), ..Config::modern() };
    let mut host = Script::established(&config, "S. 0:0(0) ack 1 win 65535 mss 1460 sackOK");
    host.write(5_000);
    host.pass_time(secs(59));
    assert_eq!(host.connection.state(), State::Established);
    host.pass_time(secs(120));
    assert_eq!(host.connection.error(), Some(Error::TimedOut));
    assert_eq!(host.connection.statistics().black_holes, 2);
}

/// RFC 4821 §7.7: segments become smaller if timeouts have no known cause. An ICMP error that
/// reports the peer as unreachable is such a cause, so segments keep their size.
#[test]
fn segments_to_an_unreachable_peer_do_not_shrink() {
    let mut host =
        Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 65535 mss 1460 sackOK");
    host.write(5_000);
    host.take_sent();
    let quoted = host.number(1);
    let report = linerate_tcp::IcmpReport::SoftError { quoted };
    host.application(|connection, now| connection.driver().handle_icmp(now, report));
    host.pass_time(secs(20));
    assert_eq!(host.connection.statistics().black_holes, 0);
    assert_eq!(host.connection.effective_mss(), 1_460);
}

#[test]
fn lost_small_segments_do_not_indicate_a_black_hole() {
    let mut host =
        Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 65535 mss 1460 sackOK");
    host.write(524);
    host.pass_time(secs(20));
    assert_eq!(host.connection.statistics().black_holes, 0);
}

/// Writes 20,000 bytes, and expects that no path MTU probe is sent.
#[track_caller]
fn expect_no_probe(host: &mut Script) {
    host.write(20_000);
    let sent = host.take_sent();
    assert!(!sent.is_empty() && sent.iter().all(|sent| sent.says.length <= 1_000), "{sent:?}");
    assert_eq!(host.connection.statistics().path_probes, 0);
}

/// RFC 4821 §7.4: while data is missing, the cause of a lost probe would be uncertain: its size or
/// congestion. So no probe is sent.
#[test]
fn no_probe_is_sent_while_data_is_missing() {
    let mut host = searching(&NEW_RENO);
    host.write(3_000);
    host.take_sent();
    host.send(". 1:1(0) ack 1 sack 1001-3001");
    expect_no_probe(&mut host);
}

/// RFC 8985 §7.3: until a tail loss probe is answered, it is uncertain whether the last segments
/// were lost. So no path MTU probe is sent.
#[test]
fn no_path_probe_is_sent_during_a_tail_loss_probe() {
    let mut host = searching(&NEW_RENO);
    host.write(2_000);
    assert_eq!(host.take_sent().len(), 2);
    host.pass_time(ms(25));
    host.expect("P. 1001:2001(1000) ack 1");
    expect_no_probe(&mut host);
}

#[test]
fn urgent_data_is_not_a_probe() {
    let mut host = searching(&NEW_RENO);
    host.write_urgent(20_000);
    host.expect("U. 1:1001(1000) ack 1 urg 20000");
}

/// RFC 2018 §3: while the peer's data has a gap, all our segments carry SACK blocks. The size of a
/// path MTU probe leaves no room for them, so no probe is sent.
#[test]
fn no_probe_is_sent_while_sack_blocks_are_due() {
    let mut host = searching(&NEW_RENO);
    host.send(". 1001:2001(1000) ack 1");
    host.expect(". 1:1(0) ack 1 sack 1001-2001");
    host.write(20_000);
    host.expect(". 1:989(988) ack 1 sack 1001-2001");
}

/// RFC 5482 §3: a probe with the User Timeout option would exceed the probed size, or the MTU of
/// the link. The segment with the option is therefore sent first, in the usual size.
#[test]
fn a_user_timeout_option_precedes_a_probe() {
    let config = Config { user_timeout_option: true, ..NEW_RENO };
    let mut host = searching(&config);
    host.application(|connection, now| connection.set_user_timeout(now, Some(secs(90))));
    host.write(20_000);
    let first = host.take_one().says;
    assert!(first.options.user_timeout.is_some() && first.length == 996, "{first}");
    host.expect(". 997:2237(1240) ack 1");
}

/// RFC 9768 §3.2.3.3: an AccECN option is due. It is sent in a segment of the usual size, and the
/// path MTU probe follows without it.
#[test]
fn an_accecn_option_precedes_a_probe() {
    let config = Config {
        accurate_ecn: EcnRule::Request,
        path_search: PathSearch::Always,
        path_base: 1_000,
        timestamps: false,
        ..NEW_RENO
    };
    let mut host = Script::connect(&config);
    host.expect("SEWA 0:0(0)");
    host.pass_time(ms(10));
    host.send("SW. 0:0(0) ack 1 win 65535 mss 1460 sackOK ecn0 =1,0,1");
    host.expect("2. 1:1(0) ack 1 ecn0 =1,0,1");
    host.send_bearing(Ecn::Ect0, "P5. 1:101(100) ack 1");
    host.write(20_000);
    let first = host.take_one().says;
    assert!(first.options.ecn.is_some() && first.length <= 1_000, "{first}");
}

/// RFC 9293 §3.8.6.1: the peer may have accepted or discarded the byte of a window probe. Until
/// this is known, no path MTU probe is sent.
#[test]
fn no_path_probe_is_sent_right_after_a_window_probe() {
    let mut host = searching(&NEW_RENO);
    host.send(". 1:1(0) ack 1 win 0");
    host.write(20_000);
    host.pass_time(secs(1));
    host.expect(". 1:2(1) ack 1");
    host.take_sent();
    host.send(". 1:1(0) ack 1 win 65535");
    host.expect(". 1:1001(1000) ack 1");
}

/// RFC 4821 §7.4: the congestion window must have room for the probe and the segments that follow
/// it. Otherwise segments of the usual size are sent.
#[test]
fn a_small_congestion_window_prevents_probes() {
    for (segments, length) in [(4, 1_000), (5, 1_240)] {
        let mut host = searching(&Config { initial_window: segments, ..NEW_RENO });
        host.write(20_000);
        assert_eq!(host.take_one().says.length, length, "{segments}");
    }
}

/// RFC 4821 §7.4: enough data for a probe is available, but the congestion window has no room for a
/// probe. The data then waits for this room, and is not sent in smaller segments.
#[test]
fn a_probe_waits_for_room_in_the_congestion_window() {
    let mut host = searching(&NEW_RENO);
    for _ in 0..3 {
        host.write(3_000);
        assert_eq!(host.take_sent().len(), 3);
    }
    host.write(20_000);
    host.expect_nothing();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1001");
    host.expect(". 9001:10241(1240) ack 1");
}

/// RFC 4821 §7.4: data waits until the peer's window has room for a probe and the segments that
/// follow it.
#[test]
fn a_probe_waits_for_room_in_the_peer_s_window() {
    let mut host = searching(&NEW_RENO);
    host.send(". 1:1(0) ack 1 win 7239");
    host.write(3_000);
    assert_eq!(host.take_sent().len(), 3);
    host.write(20_000);
    host.expect_nothing();
    host.send(". 1:1(0) ack 1 win 7240");
    host.expect(". 3001:4241(1240) ack 1");
}

/// RFC 1122 §4.2.3.2: the peer may delay the acknowledgement of a single segment until the next
/// segment arrives. Data waits for a probe only if acknowledgements will soon arrive, that is while
/// at least two segments are in flight.
#[test]
fn a_probe_waits_only_while_two_segments_are_in_flight() {
    let mut host = searching(&NEW_RENO);
    host.send(". 1:1(0) ack 1 win 5000");
    host.write(1_000);
    host.expect("P. 1:1001(1000) ack 1");
    host.write(20_000);
    host.expect(". 1001:2001(1000) ack 1");
    host.expect_nothing();
}

/// If less data was written than a probe and the segments after it need, the data is sent at once,
/// in segments of the usual size.
#[test]
fn little_data_does_not_wait_for_a_probe() {
    let mut host = searching(&NEW_RENO);
    host.write(3_000);
    host.take_sent();
    host.write(1_000);
    host.expect("P. 3001:4001(1000) ack 1");
}

/// Data waits until there is enough for a probe and the segments that follow it. The send buffer
/// must have room for this data in addition to two segments in flight. With a smaller buffer, data
/// does not wait.
#[test]
fn a_probe_waits_for_a_full_send_buffer_if_large_enough() {
    let written = |size| {
        let mut host = searching(&Config { send_buffer: BufferSize::Fixed(size), ..NEW_RENO });
        host.write(2_000);
        assert_eq!(host.take_sent().len(), 2);
        host.write(2_000);
        host
    };
    written(6_239).expect(". 2001:3001(1000) ack 1");
    let mut host = written(6_240);
    host.expect_nothing();
    host.write(2_240);
    host.expect(". 2001:3241(1240) ack 1");
}

#[test]
fn an_application_that_leaves_room_unused_is_not_awaited() {
    let mut host = searching(&Config { send_buffer: BufferSize::Fixed(7_240), ..NEW_RENO });
    host.write(3_000);
    assert_eq!(host.take_sent().len(), 3);
    host.write(1_000);
    host.expect_nothing();
    host.send(". 1:1(0) ack 1000");
    host.expect_nothing();
    host.send(". 1:1(0) ack 1001");
    host.expect("P. 3001:4001(1000) ack 1");
}

fn has_path_event(host: &mut Script) -> bool {
    host.events().contains(&Event::PathMtu)
}

#[test]
fn a_passed_probe_is_reported_once() {
    let mut host = probed(&NEW_RENO);
    assert!(!has_path_event(&mut host));
    host.send(". 1:1(0) ack 1241");
    assert!(has_path_event(&mut host));
    host.take_sent();
    assert!(!has_path_event(&mut host), "the search goes on");
}

/// RFC 4821 §7.3: an event reports to the application that the search has ended, if the path MTU
/// that was found is below the MTU of the link.
#[test]
fn the_end_of_a_search_below_the_limit_is_reported() {
    let mut host = probed(&NEW_RENO);
    // The reported size exceeds the present size by less than eight bytes, which is not worth
    // another probe. When this probe is found lost, the search therefore ends.
    report_of_probe(&mut host, 1, 1_025);
    host.send(". 1:1(0) ack 1 sack 1241-9241");
    host.take_sent();
    assert!(!has_path_event(&mut host), "the size of segments has not changed");
    assert!(host.connection.is_path_mtu_estimated());
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 10241");
    host.take_sent();
    host.pass_time(ms(200));
    host.write(1_000);
    host.take_sent();
    host.send(". 1:1(0) ack 9241");
    host.take_sent();
    assert!(!host.connection.is_path_mtu_estimated());
    assert!(has_path_event(&mut host));
}

#[test]
fn the_end_of_a_complete_search_is_not_reported() {
    let config = Config { path_base: 1_240, ..NEW_RENO };
    let config = Config { path_search: PathSearch::Always, timestamps: false, ..config };
    let mut host = Script::connect(&config);
    host.expect("S 0:0(0)");
    host.pass_time(ms(10));
    host.send("S. 0:0(0) ack 1 win 65535 mss 1360 sackOK");
    host.expect(". 1:1(0) ack 1");
    host.write(7_000);
    host.expect(". 1:1361(1360) ack 1");
    host.take_sent();
    host.pass_time(ms(10));
    host.send(". 1:1(0) ack 1361");
    assert!(has_path_event(&mut host), "a larger size");
    host.take_sent();
    assert!(!host.connection.is_path_mtu_estimated());
    assert!(!has_path_event(&mut host));
}

/// RFC 4821 §7.7: there are two events. The first event reports that timeouts have made segments
/// smaller. The second reports that the smaller segments arrive.
#[test]
fn the_first_acknowledgement_after_a_black_hole_is_reported() {
    let mut host =
        Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 65535 mss 1460 sackOK");
    host.write(5_000);
    while host.connection.statistics().black_holes == 0 {
        assert!(!has_path_event(&mut host));
        host.pass_time(ms(10));
    }
    assert!(has_path_event(&mut host));
    host.send(". 1:1(0) ack 1");
    assert!(!has_path_event(&mut host), "nothing has arrived");
    host.send(". 1:1(0) ack 525");
    assert!(has_path_event(&mut host));
    host.send(". 1:1(0) ack 1049");
    assert!(!has_path_event(&mut host));
}

/// RFC 4821 §7.7: repeated timeouts are taken for a black hole, a path that drops large packets
/// without a report. If full segments have arrived after the missing data, this is unlikely. Twice
/// as many timeouts are then required.
#[test]
fn delivered_large_segments_double_the_detection_time() {
    for (named, time_limit) in [("1461-2920", 3), ("1461-2921", 6)] {
        let mut host =
            Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 65535 mss 1460 sackOK");
        host.write(5_000);
        host.take_sent();
        host.send(&format!(". 1:1(0) ack 1 sack {named}"));
        while host.connection.statistics().black_holes == 0 {
            assert!(host.connection.statistics().retransmission_timeouts < 10, "{named}: never");
            host.pass_time(ms(10));
        }
        assert_eq!(host.connection.statistics().retransmission_timeouts, time_limit, "{named}");
    }
}

#[test]
fn a_peer_with_a_small_window_gets_its_segments_without_delay() {
    let mut host = searching(&NEW_RENO);
    host.send(". 1:1(0) ack 1 win 4239");
    host.write(2_000);
    assert_eq!(host.take_sent().len(), 2);
    host.write(20_000);
    host.expect(". 2001:3001(1000) ack 1");
}

/// While data waits for a path MTU probe, the application is not the limit. The congestion window
/// therefore counts as filled, and grows (RFC 7661 §4.3).
#[test]
fn the_congestion_window_grows_while_data_waits_for_a_probe() {
    let mut host = searching(&Config { send_buffer: BufferSize::Fixed(7_240), ..NEW_RENO });
    host.write(3_000);
    assert_eq!(host.take_sent().len(), 3);
    host.write(1_000);
    host.expect_nothing();
    host.send(". 1:1(0) ack 1000");
    assert_eq!(host.connection.information().congestion_window, 10_999);
}

/// RFC 5681 §3.1: in slow start, each acknowledgement enlarges the congestion window by one
/// segment. After a probe has arrived, the window grows by segments of the probed size.
#[test]
fn after_a_probe_has_arrived_the_window_grows_in_segments_of_its_size() {
    let mut host = probed(&NEW_RENO);
    host.send(". 1:1(0) ack 1241");
    let before = host.connection.information().congestion_window;
    host.send(". 1:1(0) ack 3241");
    assert_eq!(host.connection.information().congestion_window - before, 1_240);
}

/// RFC 4821 §7.7, RFC 9293 §3.8.3: R2, the time after which the peer is given up, starts again when
/// segments become smaller.
#[test]
fn the_time_until_a_peer_is_given_up_begins_anew_with_smaller_segments() {
    // Timeouts occur after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s. The fourth one makes segments as small
    // as possible, so R2 does not start again later.
    let time_limit = secs(11);
    let config = Config { give_up_after: time_limit, ..Config::modern() };
    let mut host = Script::established(&config, "S. 0:0(0) ack 1 win 65535 mss 1460 sackOK");
    host.write(5_000);
    let mut asked = (0, host.now);
    while host.connection.state() == State::Established {
        host.pass_time(ms(10));
        let stops = host.connection.statistics().black_holes;
        if stops > asked.0 {
            asked = (stops, host.now);
        }
    }
    assert_eq!((asked.0, host.connection.error()), (2, Some(Error::TimedOut)));
    assert!(
        host.now.since(asked.1) >= time_limit,
        "{} after the last question",
        host.now.since(asked.1)
    );
}

/// RFC 4821 §7.8: the size of segments was raised after a probe. If later segments of this size are
/// lost, it is withdrawn, even if only timeouts show the losses.
#[test]
fn an_unconfirmed_size_is_withdrawn_at_a_timeout() {
    let mut host = probed(&NEW_RENO);
    host.send(". 1:1(0) ack 1241");
    while host.connection.unacknowledged_bytes() > 0 {
        acknowledge_all(&mut host);
    }
    assert_eq!(host.connection.effective_mss(), 1_360);
    // The size was raised just before the first loss, so this loss is no evidence that the size is
    // too large. A loss after ten more seconds is.
    for (pause, withdrawn) in [(0, 0), (10, 1)] {
        host.pass_time(secs(pause));
        host.write(1_360);
        host.pass_time(secs(1));
        let withdrawals = host.connection.statistics().path_sizes_withdrawn;
        assert_eq!(withdrawals, withdrawn);
        acknowledge_all(&mut host);
    }
    // Two probes have raised the size: to 1,240 bytes, and then to 1,360. No later segments have
    // confirmed either size, so both are withdrawn.
    assert_eq!(host.connection.effective_mss(), 1_000);
}

/// RFC 4821 §7.8: one large segment in a hundred is lost. If the size were too large, all would be
/// lost. The size is therefore not withdrawn.
#[test]
fn a_size_with_few_losses_is_kept() {
    let path = Path::ipv4(1_500);
    let mut pair = Connections::new(&ALWAYS, &ALWAYS, Network::clean(ms(5)), 1).over(&ALWAYS, path);
    let mut large = 0;
    pair.set_filter(move |_, _, segment| {
        large += u32::from(packet(segment, path) > 1_430);
        (packet(segment, path) > 1_430 && large % 100 == 0).then_some(Fate::Lose)
    });
    let mut pair = pair.established();
    for part in 0..20 {
        transfer(&mut pair, part * 100_000, 100_000);
        pair.pass_time(secs(1));
    }
    let counted = pair.client.statistics();
    assert!(counted.fast_retransmissions > 5, "{} losses", counted.fast_retransmissions);
    assert_eq!((counted.path_sizes_withdrawn, pair.client.path_mtu()), (0, 1_500));
}

/// RFC 9768 §3.2.3.2.1: the first data segment with an AccECN option tests whether the path passes
/// the option. If it were also a path MTU probe, the cause of its loss would be unknown. So it has
/// the usual size.
#[test]
fn the_first_data_with_an_accecn_option_is_not_a_probe() {
    let config = Config {
        accurate_ecn: EcnRule::Request,
        path_search: PathSearch::Always,
        path_base: 1_000,
        timestamps: false,
        ..NEW_RENO
    };
    let mut host = Script::connect(&config);
    host.expect("SEWA 0:0(0)");
    host.pass_time(ms(10));
    host.send("SW. 0:0(0) ack 1 win 65535 mss 1460 sackOK ecn0 =1,0,1");
    host.expect("2. 1:1(0) ack 1 ecn0 =1,0,1");
    host.write(20_000);
    host.expect("5. 1:989(988) ack 1 ecn0 =1,0,1");
    host.expect("5. 989:2229(1240) ack 1");
}

/// RFC 4821 §7.4: a probe is sent if it fills the congestion window exactly, but not if it exceeds
/// the window by a byte.
#[test]
fn a_probe_is_sent_if_it_just_fits_the_congestion_window() {
    for (before, fits) in [(2_760, true), (2_761, false)] {
        let mut host = searching(&NEW_RENO);
        for part in [3_000, 3_000, before] {
            host.write(part);
            host.take_sent();
        }
        host.write(20_000);
        assert_eq!(host.connection.information().congestion_window, 10_000);
        if fits {
            host.expect(". 8761:10001(1240) ack 1");
        }
        host.expect_nothing();
    }
}
