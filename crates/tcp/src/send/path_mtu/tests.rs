use super::report::Finding;
use super::*;
use crate::send::delivery::{DeliveryAccount, Newest};

const NOW: Instant = Instant::ZERO;
const PAUSE: Duration = Duration::from_secs(1);
const NOTHING: Tally = Tally { delivered: 0, lost: 0 };
const ETHERNET: Bounds = Bounds { limit: 1_500, base: 1_064, floor: 576, headers: 40 };

fn seq(number: u32) -> SeqNum {
    SeqNum::new(number)
}

fn path(rule: PathSearch, bounds: Bounds) -> PathMtu {
    let mut path = PathMtu::new(bounds.limit, bounds.limit);
    path.begin(rule, &bounds, false, true, NOW);
    path.check();
    path
}

/// Applies a report at once, without a test of its truth. It quotes the segment at `quoted` and
/// allows packets of `size` bytes.
fn apply_report(path: &mut PathMtu, quoted: u32, size: u32) {
    path.apply_at_once((seq(quoted), size), seq(quoted), (0, 1), NOW);
}

/// Returns a segment that has arrived. Its transmission number is `order`, and its data ends at
/// `end`.
fn arrival(order: u64, end: u32) -> Newest {
    let mut send_record = DeliveryAccount::new(NOW).record_sent(NOW, true, false, 0);
    send_record.order = order;
    Newest { send_record, end: seq(end) }
}

/// Runs a search until it ends, on a path that carries packets of up to `width` bytes. Returns the
/// sizes of the probes.
fn search(path: &mut PathMtu, width: u32, mut now: Instant) -> Vec<u32> {
    let mut tried = Vec::new();
    while !path.watch(now, seq(0)) {
        let size = path.ready().expect("a size to try");
        tried.push(size);
        path.record_sent(seq(100), seq(200));
        if size > width {
            path.miss_probe(seq(300));
        }
        assert!(path.judge_probe(seq(301), now, PAUSE, NOTHING).is_some());
        path.check();
        now += PAUSE;
    }
    tried
}

extern crate std;
use std::vec::Vec;

#[test]
fn a_path_without_evidence_of_a_narrow_link_is_not_searched() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    assert!(!path.is_awake() && !path.is_asking());
    assert!(!path.watch(NOW + RAISE_AFTER * 10, seq(0)));
    assert_eq!((path.effective(), path.ready()), (1_500, None));
}

#[test]
fn a_search_from_the_base_tries_common_sizes_until_no_gain_is_worth_a_probe() {
    let mut narrow = path(PathSearch::Always, ETHERNET);
    assert_eq!(narrow.effective(), 1_064);
    assert_eq!(search(&mut narrow, 1_420, NOW), [1_280, 1_400, 1_420, 1_450, 1_435]);
    assert_eq!(narrow.effective(), 1_420);
    let mut wide = path(PathSearch::Always, ETHERNET);
    assert_eq!(search(&mut wide, 9_000, NOW), COMMON[..7]);
}

#[test]
fn a_search_bisects_between_common_sizes() {
    let mut narrow = path(PathSearch::Always, ETHERNET);
    assert_eq!(search(&mut narrow, 1_347, NOW), [1_280, 1_400, 1_340, 1_370, 1_355]);
    assert_eq!(narrow.effective(), 1_340);
}

#[test]
fn a_search_tries_the_mtu_of_the_first_link() {
    let mut path = path(PathSearch::Always, Bounds { limit: 8_192, ..ETHERNET });
    assert_eq!(
        search(&mut path, 8_192, NOW),
        [1_280, 1_400, 1_420, 1_450, 1_480, 1_492, 1_500, 4_352, 8_192]
    );
}

/// RFC 4821 §7.3: a larger packet is tried again ten minutes after the end of a search. Five
/// minutes are not enough.
#[test]
fn an_ended_search_restarts_after_ten_minutes() {
    let mut path = path(PathSearch::Always, ETHERNET);
    search(&mut path, 1_400, NOW);
    let end = NOW + PAUSE * 10;
    assert!(!path.watch(end + Duration::from_secs(300), seq(0)) && path.ready().is_none());
    assert!(!path.is_estimated());
    assert_eq!(search(&mut path, 1_500, end + RAISE_AFTER), [1_420, 1_450, 1_480, 1_492, 1_500]);
    assert!(path.is_widest());
}

/// RFC 4821 §7.6.2: after a failure, the next probe waits for the pause that the caller passes.
#[test]
fn the_next_probe_waits_after_a_failure() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_410));
    assert!(path.is_probe(seq(0), seq(1_410)) && !path.is_probe(seq(0), seq(1_411)));
    path.miss_probe(seq(5_000));
    assert!(path.is_asking(), "earlier segments may be lost, too");
    assert_eq!(path.judge_probe(seq(5_000), NOW, PAUSE, NOTHING), None);
    assert_eq!(path.judge_probe(seq(5_001), NOW, PAUSE, NOTHING), Some(Outcome::Failed));
    path.watch(NOW + PAUSE - Duration::from_nanos(1), seq(0));
    assert_eq!(path.ready(), None);
    path.watch(NOW + PAUSE, seq(0));
    assert_eq!(path.ready(), Some(1_172), "the middle of the remaining sizes");
}

/// RFC 4821 §7.6.4: if other segments were lost together with a probe, the size of the probe need
/// not be the cause. A probe of the same size follows.
#[test]
fn a_probe_lost_with_other_segments_is_repeated_at_its_size() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_410));
    path.miss_probe(seq(5_000));
    path.note_other_loss();
    assert_eq!(path.judge_probe(seq(5_001), NOW, PAUSE, NOTHING), None);
    path.watch(NOW, seq(0));
    assert_eq!(path.ready(), Some(1_280));
}

/// RFC 4821 §7.6.3: a timeout shows that a probe has failed only if the probe itself has timed out.
/// After any timeout, the pause before the next probe is five times as long as usual.
#[test]
fn only_a_timeout_of_the_probe_itself_is_a_failure() {
    for (una, is_failure, next) in [(0, true, 1_172), (1, false, 1_280)] {
        let mut path = path(PathSearch::Always, ETHERNET);
        path.watch(NOW, seq(0));
        path.record_sent(seq(0), seq(1_410));
        assert_eq!(path.on_timeout(seq(una), NOW, PAUSE), is_failure);
        path.watch(NOW + PAUSE * 5 - Duration::from_nanos(1), seq(0));
        assert_eq!(path.ready(), None);
        path.watch(NOW + PAUSE * 5, seq(0));
        assert_eq!(path.ready(), Some(next));
    }
}

#[test]
fn a_late_probe_has_passed() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_410));
    path.miss_probe(seq(5_000));
    path.note_duplicate(seq(0), seq(1_024));
    assert_eq!(path.judge_probe(seq(5_000), NOW, PAUSE, NOTHING), Some(Outcome::Passed));
    assert_eq!(path.effective(), 1_280);
}

/// RFC 4821 §7.7: repeated timeouts (full stops) first reduce the packet size to one that is known
/// to pass, then to the base. Below the base, each further full stop halves the data in a packet,
/// down to the floor.
#[test]
fn repeated_full_stops_reduce_the_size_to_the_floor() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    let sizes: Vec<_> =
        (0..4).map(|_| (path.on_full_stop(1_460, &ETHERNET, NOW), path.effective())).collect();
    assert_eq!(sizes, [(true, 1_064), (true, 576), (false, 576), (false, 576)]);
    assert!(path.confirm(true) && !path.confirm(true), "the size is confirmed once");
    assert_eq!(search(&mut path, 1_492, NOW), [1_500, 1_280, 1_400, 1_420, 1_450, 1_480, 1_492]);
}

/// After repeated timeouts have reduced the packet size, the earlier size is probed first. If this
/// probe arrives, the timeouts had another cause, such as an outage, and the earlier size is used
/// again.
#[test]
fn a_search_after_a_full_stop_tries_the_suspect_size_first() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    assert!(path.on_full_stop(1_460, &ETHERNET, NOW) && path.on_full_stop(1_460, &ETHERNET, NOW));
    assert_eq!(search(&mut path, 1_500, NOW), [1_500]);
}

#[test]
fn a_full_stop_reduces_the_size_from_the_one_that_a_search_has_found() {
    let bounds = Bounds { floor: 88, ..ETHERNET };
    let mut path = path(PathSearch::Always, bounds);
    search(&mut path, 1_400, NOW);
    path.first_full = Some(seq(10));
    let sizes: Vec<_> =
        (0..6).map(|_| (path.on_full_stop(1_460, &bounds, NOW), path.effective()).1).collect();
    assert_eq!(sizes, [1_064, 552, 296, 168, 104, 88], "1,024 bytes of data, 512, 256, …");
}

/// A full stop skips sizes at which the timed-out segment would still fit one packet. Packets of
/// such a size would carry the segment unchanged, and would be lost as well.
#[test]
fn a_full_stop_skips_sizes_that_would_not_split_the_segment() {
    for (data, size) in [(1_025, Some(1_064)), (1_024, Some(576)), (537, Some(576)), (536, None)] {
        let mut path = path(PathSearch::WhenNarrow, ETHERNET);
        assert_eq!(
            path.on_full_stop(data, &ETHERNET, NOW).then_some(path.effective()),
            size,
            "{data}"
        );
    }
}

#[test]
fn without_a_search_reports_apply_and_full_stops_do_not() {
    let mut path = path(PathSearch::Off, ETHERNET);
    assert!(!path.on_full_stop(1_460, &ETHERNET, NOW));
    apply_report(&mut path, 0, 1_300);
    assert!(!path.watch(NOW + RAISE_AFTER * 2, seq(0)));
    assert_eq!((path.effective(), path.ready()), (1_300, None));
}

/// RFC 5927 §7.2: a report is applied at once only if no packet larger than the reported size has
/// arrived before. Otherwise it is held.
#[test]
fn a_report_is_applied_at_once_only_if_no_larger_packet_has_arrived() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    let judge = |path: &PathMtu, size, una| path.judge_report(seq(una), 9_000, size, seq(una));
    assert_eq!(judge(&path, 1_500, 0), ReportVerdict::Ignore);
    assert_eq!(judge(&path, 1_400, 0), ReportVerdict::Apply);
    path.note_full(seq(1_460), seq(0));
    assert_eq!(judge(&path, 1_400, 0), ReportVerdict::Apply);
    assert_eq!(judge(&path, 1_400, 1_460), ReportVerdict::Hold);
    path.note_full(seq(1 << 31), seq(1_460));
    assert_eq!(
        judge(&path, 1_400, 3 << 30),
        ReportVerdict::Hold,
        "also half the sequence space later"
    );
    assert_eq!(
        path.judge_report(seq(1_460), 1_400, 1_400, seq(1_460)),
        ReportVerdict::Ignore,
        "it fitted"
    );
    path.hold(seq(1_460), 1_400, 1, seq(2_920));
    assert_eq!(
        judge(&path, 1_400, 1_460),
        ReportVerdict::Ignore,
        "only one report is held at a time"
    );
}

#[test]
fn a_held_report_is_disproved_by_the_quoted_segment_or_by_later_larger_ones() {
    for (una, newest, bytes, is_disproved) in [
        (1_460, None, 0, false),
        (1_461, None, 0, true),
        (1_460, Some((7, 2_920)), 1_460, false),
        (1_460, Some((7, 4_380)), 1_460, true),
        (1_460, Some((8, 4_380)), 1_460, true),
        (1_460, Some((8, 4_380)), 1_400, false),
        (1_460, Some((6, 4_380)), 1_460, false),
    ] {
        let mut path = path(PathSearch::WhenNarrow, ETHERNET);
        path.hold(seq(1_460), 1_400, 7, seq(2_920));
        let newest = newest.map(|(order, end)| arrival(order, end));
        assert_eq!(path.disprove(seq(una), newest.as_ref(), bytes), is_disproved, "{newest:?}");
        assert_eq!(path.held_size(), (!is_disproved).then_some(1_400));
        assert_eq!(path.is_awake(), !is_disproved, "an unused search is freed");
        assert!(!path.disprove(seq(3_000), None, 0) || !is_disproved, "once");
    }
}

#[test]
fn one_probe_tests_an_applied_report_that_contradicts_earlier_arrivals() {
    for is_true in [true, false] {
        let mut path = path(PathSearch::WhenNarrow, ETHERNET);
        path.note_full(seq(1_460), seq(0));
        path.hold(seq(1_460), 1_300, 1, seq(2_920));
        assert!(path.apply_held(seq(1_460), NOW));
        path.check();
        assert_eq!((path.effective(), path.is_confirmed()), (1_300, false));
        path.watch(NOW, seq(1_460));
        assert_eq!(path.ready(), Some(1_500), "the size that has arrived before");
        path.record_sent(seq(100), seq(200));
        if is_true {
            path.miss_probe(seq(300));
        }
        assert!(path.judge_probe(seq(301), NOW, PAUSE, NOTHING).is_some());
        path.check();
        assert!(path.is_confirmed());
        assert_eq!(path.effective(), if is_true { 1_300 } else { 1_500 });
        path.watch(NOW + RAISE_AFTER - Duration::from_nanos(1), seq(1_460));
        assert_eq!(path.ready(), None);
    }
}

/// RFC 5927 §7.2: after a report has been applied, packets of the reported size count as having
/// reached the peer. A second report with a smaller size contradicts this, so it is held and not
/// applied at once.
#[test]
fn a_smaller_report_after_an_applied_one_is_held() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    path.note_full(seq(1_460), seq(0));
    path.hold(seq(1_460), 1_400, 1, seq(2_920));
    assert!(path.apply_held(seq(1_460), NOW));
    assert_eq!(path.judge_report(seq(1_460), 9_000, 1_300, seq(1_460)), ReportVerdict::Hold);
}

#[test]
fn without_probes_the_size_by_a_report_stays_unconfirmed() {
    for (rule, can_probe) in [(PathSearch::Off, true), (PathSearch::WhenNarrow, false)] {
        let mut path = PathMtu::new(1_500, 1_500);
        path.begin(rule, &ETHERNET, false, can_probe, NOW);
        path.note_full(seq(1_460), seq(0));
        path.hold(seq(1_460), 1_300, 1, seq(2_920));
        assert!(path.apply_held(seq(1_460), NOW));
        path.watch(NOW + Duration::from_secs(300), seq(1_460));
        assert_eq!((path.ready(), path.is_confirmed()), (None, false));
        path.check();
    }
}

/// RFC 3522 §3.2: an echo of a timestamp from before the report shows that the original segment has
/// arrived, so the report is false. The conclusion requires that no data before the quoted segment
/// was unacknowledged, since the echo could otherwise belong to that data.
#[test]
fn a_timestamp_echo_tests_a_report_that_was_applied_at_once() {
    for (stamps, from, echo, finding) in [
        ((10, 20), 0, Some(20), Finding::Confirmed),
        ((10, 20), 0, Some(19), Finding::Disproved),
        ((10, 20), u32::MAX, Some(19), Finding::Open),
        ((20, 20), 0, Some(20), Finding::Open),
        ((10, 20), 0, Some(0), Finding::Open),
        ((10, 20), 0, None, Finding::Open),
    ] {
        let mut path = path(PathSearch::WhenNarrow, ETHERNET);
        path.apply_at_once((seq(0), 1_300), seq(0), stamps, NOW);
        assert!(path.is_asking() && !path.is_confirmed());
        assert_eq!(path.judge_applied((seq(from), seq(0)), echo, NOW), None, "not yet");
        assert_eq!(path.judge_applied((seq(from), seq(1)), echo, NOW), Some(finding));
        path.check();
        let size = if finding == Finding::Disproved { 1_500 } else { 1_300 };
        assert_eq!((path.effective(), path.is_confirmed()), (size, finding != Finding::Open));
        path.watch(NOW, seq(1));
        let probe = (finding == Finding::Open).then_some(1_500);
        assert_eq!(path.ready(), probe, "{finding:?}");
    }
}

#[test]
fn larger_packets_are_tried_ten_minutes_after_a_report() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    apply_report(&mut path, 0, 1_400);
    path.watch(NOW + RAISE_AFTER - Duration::from_nanos(1), seq(0));
    assert_eq!((path.ready(), path.is_estimated()), (None, false));
    path.watch(NOW + RAISE_AFTER, seq(0));
    assert_eq!(path.ready(), Some(1_420));
}

/// RFC 5927 §7.2: a report that quotes a probe is used if the probe is lost.
#[test]
fn a_search_goes_on_at_the_size_of_a_report_about_a_lost_probe() {
    for is_lost_by_timeout in [false, true] {
        let mut path = path(PathSearch::Always, ETHERNET);
        path.watch(NOW, seq(0));
        path.record_sent(seq(7), seq(1_417));
        path.hold_of_probe(1_200);
        if is_lost_by_timeout {
            assert!(path.on_timeout(seq(7), NOW, Duration::ZERO));
        } else {
            path.miss_probe(seq(3_000));
            path.judge_probe(seq(3_001), NOW, Duration::ZERO, NOTHING);
        }
        assert_eq!(path.search().high, 1_200);
        assert_eq!(search(&mut path, 1_200, NOW), [1_200]);
    }
}

#[test]
fn a_report_about_a_probe_that_arrives_is_discarded() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(7), seq(1_417));
    path.hold_of_probe(1_200);
    assert_eq!(path.judge_probe(seq(1_417), NOW, PAUSE, NOTHING), Some(Outcome::Passed));
    assert_eq!(search(&mut path, 1_500, NOW), COMMON[1..7]);
}

/// RFC 4821 §7.8: if more than a tenth of the data is lost after the packet size was raised, some
/// of the parallel paths may be narrower. The size from before the raise is then restored.
#[test]
fn a_raised_size_that_causes_many_losses_is_withdrawn() {
    let timeout = Duration::from_millis(200);
    for (lost, delivered, is_withdrawn) in [(9, 91, false), (10, 95, false), (11, 89, true)] {
        let mut path = path(PathSearch::Always, ETHERNET);
        path.watch(NOW, seq(0));
        path.record_sent(seq(0), seq(1_410));
        let before = Tally { delivered: 5_000, lost: 50 };
        path.judge_probe(seq(1_410), NOW, PAUSE, before);
        let tally = Tally { delivered: before.delivered + delivered, lost: before.lost + lost };
        assert!(!path.verify(NOW + timeout * 3, timeout, tally), "too early to tell");
        assert_eq!(path.verify(NOW + timeout * 4, timeout, tally), is_withdrawn);
        assert_eq!(path.effective(), if is_withdrawn { 1_064 } else { 1_280 });
        path.check();
        path.watch(NOW + timeout * 4, seq(0));
        assert_eq!(
            path.ready(),
            Some(if is_withdrawn { 1_172 } else { 1_400 }),
            "it is not tried again"
        );
        // If the raised size was not withdrawn, it is verified a second time later. This
        // verification considers only losses since the first.
        let later = |lost| Tally { delivered: tally.delivered + 900, lost: tally.lost + lost };
        assert!(!path.verify(NOW + timeout * 8, timeout, later(100)));
        assert!(!path.verify(NOW + timeout * 11, timeout, later(1_000)), "too early again");
        assert_eq!(path.verify(NOW + timeout * 12, timeout, later(1_000)), !is_withdrawn);
        assert_eq!(path.effective(), 1_064);
    }
}

/// RFC 4821 §7.8: several probes may pass before losses reveal that a size is too large. Even the
/// first of their sizes may be too large, so the size from before it is restored.
#[test]
fn withdrawing_several_unverified_raises_restores_the_size_before_the_first() {
    let timeout = Duration::from_millis(200);
    let none = Tally { delivered: 0, lost: 0 };
    for (lost_between, after) in [(None, 1_064), (Some(11), 1_064), (Some(9), 1_280)] {
        let mut path = path(PathSearch::Always, ETHERNET);
        let mut now = NOW;
        let mut tally = none;
        for (passed, end) in [(1_280, 1_410), (1_400, 2_810)] {
            path.watch(now, seq(0));
            assert_eq!(path.ready(), Some(passed));
            path.record_sent(seq(end - 1_410), seq(end));
            path.judge_probe(seq(end), now, PAUSE, tally);
            if let Some(lost) = lost_between.filter(|_| passed == 1_280) {
                now += timeout * 4;
                tally = Tally { delivered: 100 - lost, lost };
                if path.verify(now, timeout, tally) {
                    break;
                }
            }
        }
        let much = Tally { lost: tally.lost + 1_000, ..tally };
        path.verify(now + timeout * 4, timeout, much);
        assert_eq!(path.effective(), after, "{lost_between:?}");
        path.check();
    }
}

/// RFC 4821 §7.1: the arrival of a full segment raises search_low, as the arrival of a probe of its
/// size does.
#[test]
fn a_full_segment_that_arrives_raises_search_low() {
    let mut path = PathMtu::new(1_300, 1_500);
    path.begin(PathSearch::WhenNarrow, &ETHERNET, false, true, NOW);
    assert_eq!(path.search().low, 0);
    path.note_full(seq(1_260), seq(0));
    path.watch(NOW, seq(1_260));
    assert_eq!(path.search().low, 1_300);
}

#[test]
fn a_connection_continues_the_unfinished_search_of_an_earlier_one() {
    let mut path = PathMtu::new(1_280, 1_500);
    path.begin(PathSearch::WhenNarrow, &ETHERNET, true, true, NOW);
    assert!(path.is_estimated());
    assert_eq!(search(&mut path, 1_480, NOW), [1_400, 1_420, 1_450, 1_480, 1_492]);
    let mut path = PathMtu::new(1_280, 1_500);
    path.begin(PathSearch::WhenNarrow, &ETHERNET, false, true, NOW);
    assert!(!path.is_estimated());
    path.watch(NOW, seq(0));
    assert_eq!(path.ready(), None);
    path.watch(NOW + RAISE_AFTER, seq(0));
    assert_eq!(path.ready(), Some(1_400), "a larger size after ten minutes");
}

#[test]
fn a_small_peer_bounds_the_search_from_above_and_below() {
    let mut path = PathMtu::new(1_500, 1_500);
    let bounds = Bounds { limit: 576, ..ETHERNET };
    path.begin(PathSearch::Always, &bounds, false, true, NOW);
    path.check();
    assert!(path.is_widest());
    assert!(path.watch(NOW, seq(0)), "there is nothing to search");
    assert!(!path.on_full_stop(1_460, &bounds, NOW));
}

#[test]
fn no_probe_exceeds_the_mss_of_the_peer_after_a_report_about_the_syn() {
    for rule in [PathSearch::Off, PathSearch::WhenNarrow, PathSearch::Always] {
        let mut path = PathMtu::new(1_500, 1_500);
        apply_report(&mut path, 0, 1_300);
        path.begin(rule, &Bounds { limit: 1_200, ..ETHERNET }, false, true, NOW);
        path.check();
        let tried =
            if rule == PathSearch::Always { search(&mut path, 9_000, NOW) } else { Vec::new() };
        assert!(tried.iter().all(|&size| size <= 1_200), "{rule:?} {tried:?}");
    }
}

#[test]
fn a_known_narrow_path_mtu_is_not_raised_at_the_start() {
    let mut path = PathMtu::new(900, 1_500);
    path.begin(PathSearch::Always, &ETHERNET, false, true, NOW);
    assert_eq!(path.effective(), 900);
}

#[test]
fn the_size_found_by_an_unfinished_search_is_known_to_pass() {
    let mut path = PathMtu::new(1_280, 1_500);
    path.begin(PathSearch::WhenNarrow, &ETHERNET, true, true, NOW);
    assert_eq!(path.search().low, 1_280);
}

#[test]
fn a_held_report_starts_no_search() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    path.hold(seq(0), 1_400, 1, seq(1_460));
    assert!(path.is_awake() && !path.is_estimated() && !path.is_asking());
}

/// A planned probe and a held report were decided for the packet size of that time. A change of the
/// size therefore discards both.
#[test]
fn a_change_of_the_size_discards_the_probe_and_the_held_report() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.hold(seq(1_460), 1_000, 1, seq(2_920));
    assert_eq!(path.ready(), Some(1_280));
    assert!(path.on_full_stop(1_460, &ETHERNET, NOW));
    assert_eq!((path.ready(), path.held_size()), (None, None));
}

#[test]
fn a_probe_passes_only_when_it_is_acknowledged_completely() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_240));
    assert_eq!(path.judge_probe(seq(1_239), NOW, PAUSE, NOTHING), None);
    assert_eq!(path.judge_probe(seq(1_240), NOW, PAUSE, NOTHING), Some(Outcome::Passed));
    assert_eq!(path.search().low, 1_280);
}

#[test]
fn a_probe_is_not_found_lost_twice() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(100), seq(1_340));
    path.miss_probe(seq(5_000));
    assert!(!path.is_probe(seq(100), seq(1_340)));
    assert!(
        !path.on_timeout(seq(100), NOW, PAUSE),
        "its loss says nothing while others may be lost"
    );
}

#[test]
fn a_duplicate_of_other_data_does_not_clear_the_loss_of_the_probe() {
    for (left, right) in [(0, 100), (1_340, 2_340), (0, 1_340), (100, 2_340)] {
        let mut path = path(PathSearch::Always, ETHERNET);
        path.watch(NOW, seq(0));
        path.record_sent(seq(100), seq(1_340));
        path.miss_probe(seq(5_000));
        path.note_duplicate(seq(left), seq(right));
        let outcome = path.judge_probe(seq(5_001), NOW, PAUSE, NOTHING);
        assert_eq!(outcome, Some(Outcome::Failed), "{left} to {right}");
    }
}

/// RFC 5927 §7.2: a report is about the probe if it quotes the probe. The reported size must lie
/// between the present size and that of the probe; otherwise the report is ignored.
#[test]
fn a_report_is_about_the_probe_if_it_quotes_it_and_its_size_is_plausible() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(7), seq(1_247));
    let judge = |quoted, size| path.judge_report(seq(quoted), 9_000, size, seq(0));
    assert_eq!([judge(7, 1_064), judge(7, 1_279)], [ReportVerdict::HoldForProbe; 2]);
    assert_eq!(
        judge(7, 1_063),
        ReportVerdict::Ignore,
        "smaller packets than the probe are known to pass"
    );
    assert_eq!(judge(7, 1_280), ReportVerdict::Ignore, "the probe is no larger");
    assert_eq!(judge(1_247, 1_200), ReportVerdict::Ignore, "an ordinary segment is smaller");
}

#[test]
fn a_report_limits_search_high_and_does_not_raise_search_low() {
    let mut path = path(PathSearch::Always, ETHERNET);
    apply_report(&mut path, 0, 1_000);
    assert_eq!((path.search().low, path.search().high), (0, 1_000));
    path.search().low = 700;
    apply_report(&mut path, 0, 900);
    assert_eq!((path.search().low, path.search().high), (700, 900));
    path.check();
}

#[test]
fn the_next_acknowledgement_confirms_the_size_after_a_full_stop() {
    let mut path = path(PathSearch::Always, ETHERNET);
    search(&mut path, 1_400, NOW);
    assert!(!path.is_asking());
    for size in [1_064, 576] {
        assert!(path.on_full_stop(1_460, &ETHERNET, NOW));
        assert_eq!((path.effective(), path.search().low), (size, size));
        path.check();
    }
    assert!(path.is_asking());
    assert!(!path.confirm(false) && path.confirm(true), "not before something is acknowledged");
    assert!(!path.is_asking());
}

#[test]
fn losses_after_a_full_stop_do_not_restore_the_size_before_the_probe() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_240));
    path.judge_probe(seq(1_240), NOW, PAUSE, NOTHING);
    assert!(path.on_full_stop(1_240, &ETHERNET, NOW) && path.on_full_stop(1_240, &ETHERNET, NOW));
    assert!(!path.verify(NOW + PAUSE * 100, PAUSE, Tally { delivered: 0, lost: 1_000 }));
    assert_eq!(path.effective(), 576);
}

#[test]
fn a_gain_below_eight_bytes_is_not_worth_a_probe() {
    for (high, size) in [(307, None), (308, Some(304))] {
        assert_eq!(Search::new(high).next_size(300, 1_500), size);
    }
}

#[test]
fn the_base_lies_between_the_floor_and_the_limit() {
    assert_eq!(Bounds { base: 500, ..ETHERNET }.base(), 576);
    assert_eq!(Bounds { limit: 1_000, ..ETHERNET }.base(), 1_000);
    assert_eq!(Bounds { limit: 300, ..ETHERNET }.next_below(300, 0), 300);
}
