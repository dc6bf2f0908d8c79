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

/// A report that is believed at once, about a segment at `quoted`.
fn believe(path: &mut PathMtu, quoted: u32, size: u32) {
    path.believe((seq(quoted), size), seq(quoted), (0, 1), NOW);
}

/// Something that has left as `order` and ends at `end` has arrived.
fn arrival(order: u64, end: u32) -> Newest {
    let mut send_record = DeliveryAccount::new(NOW).record_sent(NOW, true, false, 0);
    send_record.order = order;
    Newest { send_record, end: seq(end) }
}

/// Searches a path that takes packets of `width`, and returns the sizes tried, until the search ends.
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
fn a_path_that_shows_nothing_odd_is_not_searched() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    assert!(!path.is_awake() && !path.is_asking());
    assert!(!path.watch(NOW + RAISE_AFTER * 10, seq(0)));
    assert_eq!((path.effective(), path.ready()), (1_500, None));
}

#[test]
fn a_search_from_the_beginning_tries_common_sizes_until_the_rest_is_worth_no_probe() {
    let mut narrow = path(PathSearch::Always, ETHERNET);
    assert_eq!(narrow.effective(), 1_064);
    assert_eq!(search(&mut narrow, 1_420, NOW), [1_280, 1_400, 1_420, 1_450, 1_435]);
    assert_eq!(narrow.effective(), 1_420);
    let mut wide = path(PathSearch::Always, ETHERNET);
    assert_eq!(search(&mut wide, 9_000, NOW), COMMON[..7]);
}

#[test]
fn between_common_sizes_halves_are_tried() {
    let mut narrow = path(PathSearch::Always, ETHERNET);
    assert_eq!(search(&mut narrow, 1_347, NOW), [1_280, 1_400, 1_340, 1_370, 1_355]);
    assert_eq!(narrow.effective(), 1_340);
}

#[test]
fn what_the_first_link_takes_is_a_size_that_occurs() {
    let mut path = path(PathSearch::Always, Bounds { limit: 8_192, ..ETHERNET });
    assert_eq!(
        search(&mut path, 8_192, NOW),
        [1_280, 1_400, 1_420, 1_450, 1_480, 1_492, 1_500, 4_352, 8_192]
    );
}

/// RFC 4821 §7.3: no earlier than five minutes.
#[test]
fn a_search_that_has_ended_begins_anew_after_ten_minutes() {
    let mut path = path(PathSearch::Always, ETHERNET);
    search(&mut path, 1_400, NOW);
    let end = NOW + PAUSE * 10;
    assert!(!path.watch(end + Duration::from_secs(300), seq(0)) && path.ready().is_none());
    assert!(!path.is_estimated());
    assert_eq!(search(&mut path, 1_500, end + RAISE_AFTER), [1_420, 1_450, 1_480, 1_492, 1_500]);
    assert!(path.is_widest());
}

/// RFC 4821 §7.6.2.
#[test]
fn after_a_failure_the_next_probe_waits() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_410));
    assert!(path.is_probe(seq(0), seq(1_410)) && !path.is_probe(seq(0), seq(1_411)));
    path.miss_probe(seq(5_000));
    assert!(path.is_asking(), "others that left before may be lost, too");
    assert_eq!(path.judge_probe(seq(5_000), NOW, PAUSE, NOTHING), None);
    assert_eq!(path.judge_probe(seq(5_001), NOW, PAUSE, NOTHING), Some(Outcome::Failed));
    path.watch(NOW + PAUSE - Duration::from_nanos(1), seq(0));
    assert_eq!(path.ready(), None);
    path.watch(NOW + PAUSE, seq(0));
    assert_eq!(path.ready(), Some(1_172), "half of what is left");
}

/// RFC 4821 §7.6.4.
#[test]
fn a_probe_that_others_were_lost_with_is_tried_again_at_its_size() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_410));
    path.miss_probe(seq(5_000));
    path.note_other_loss();
    assert_eq!(path.judge_probe(seq(5_001), NOW, PAUSE, NOTHING), None);
    path.watch(NOW, seq(0));
    assert_eq!(path.ready(), Some(1_280));
}

/// RFC 4821 §7.6.3: the wait is five times as long.
#[test]
fn a_timeout_of_the_probe_is_a_failure_and_of_anything_else_none() {
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
fn a_probe_that_was_only_late_has_passed() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_410));
    path.miss_probe(seq(5_000));
    path.note_duplicate(seq(0), seq(1_024));
    assert_eq!(path.judge_probe(seq(5_000), NOW, PAUSE, NOTHING), Some(Outcome::Passed));
    assert_eq!(path.effective(), 1_280);
}

/// RFC 4821 §7.7: to what is known to pass, to the base, and by halves of the data.
#[test]
fn full_stops_lead_down_to_the_floor() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    let sizes: Vec<_> =
        (0..4).map(|_| (path.on_full_stop(1_460, &ETHERNET, NOW), path.effective())).collect();
    assert_eq!(sizes, [(true, 1_064), (true, 576), (false, 576), (false, 576)]);
    assert!(path.confirm(true) && !path.confirm(true), "once is enough");
    assert_eq!(search(&mut path, 1_492, NOW), [1_500, 1_280, 1_400, 1_420, 1_450, 1_480, 1_492]);
}

/// Then it was an outage, and all is as it was.
#[test]
fn what_a_full_stop_has_made_suspect_is_tried_first() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    assert!(path.on_full_stop(1_460, &ETHERNET, NOW) && path.on_full_stop(1_460, &ETHERNET, NOW));
    assert_eq!(search(&mut path, 1_500, NOW), [1_500]);
}

#[test]
fn what_a_search_has_found_is_where_a_full_stop_begins() {
    let bounds = Bounds { floor: 88, ..ETHERNET };
    let mut path = path(PathSearch::Always, bounds);
    search(&mut path, 1_400, NOW);
    path.first_full = Some(seq(10));
    let sizes: Vec<_> =
        (0..6).map(|_| (path.on_full_stop(1_460, &bounds, NOW), path.effective()).1).collect();
    assert_eq!(sizes, [1_064, 552, 296, 168, 104, 88], "1,024 bytes of data, 512, 256, …");
}

/// What is no larger than what would be tried next says nothing of the path.
#[test]
fn a_full_stop_of_small_segments_skips_what_would_not_make_them_smaller() {
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
fn switched_off_nothing_is_searched_and_no_full_stop_judged() {
    let mut path = path(PathSearch::Off, ETHERNET);
    assert!(!path.on_full_stop(1_460, &ETHERNET, NOW));
    believe(&mut path, 0, 1_300);
    assert!(!path.watch(NOW + RAISE_AFTER * 2, seq(0)));
    assert_eq!((path.effective(), path.ready()), (1_300, None));
}

/// RFC 5927 §7.2.
#[test]
fn a_report_is_believed_at_once_only_while_nothing_of_that_size_has_arrived() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    let judge = |path: &PathMtu, size, una| path.judge_report(seq(una), 9_000, size, seq(una));
    assert_eq!(judge(&path, 1_500, 0), Belief::None);
    assert_eq!(judge(&path, 1_400, 0), Belief::Now);
    path.note_full(seq(1_460), seq(0));
    assert_eq!(judge(&path, 1_400, 0), Belief::Now);
    assert_eq!(judge(&path, 1_400, 1_460), Belief::Later);
    path.note_full(seq(1 << 31), seq(1_460));
    assert_eq!(judge(&path, 1_400, 3 << 30), Belief::Later, "half the circle later, too");
    assert_eq!(path.judge_report(seq(1_460), 1_400, 1_400, seq(1_460)), Belief::None, "it fitted");
    path.hold(seq(1_460), 1_400, 1, seq(2_920));
    assert_eq!(judge(&path, 1_400, 1_460), Belief::None, "one waits at a time");
}

#[test]
fn a_report_that_waits_is_disproved_by_the_quoted_segment_and_by_larger_ones_that_left_later() {
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
        assert_eq!(path.is_awake(), !is_disproved, "a path that shows nothing odd costs nothing");
        assert!(!path.disprove(seq(3_000), None, 0) || !is_disproved, "once");
    }
}

#[test]
fn a_report_that_is_applied_although_more_had_passed_is_asked_about_by_one_probe() {
    for is_true in [true, false] {
        let mut path = path(PathSearch::WhenNarrow, ETHERNET);
        path.note_full(seq(1_460), seq(0));
        path.hold(seq(1_460), 1_300, 1, seq(2_920));
        assert!(path.apply_held(seq(1_460), NOW));
        path.check();
        assert_eq!((path.effective(), path.is_confirmed()), (1_300, false));
        path.watch(NOW, seq(1_460));
        assert_eq!(path.ready(), Some(1_500), "as large as what had passed");
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

/// RFC 5927 §7.2: what a report has brought the size down to is not undercut at once by the next.
#[test]
fn after_a_report_was_applied_a_smaller_one_waits() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    path.note_full(seq(1_460), seq(0));
    path.hold(seq(1_460), 1_400, 1, seq(2_920));
    assert!(path.apply_held(seq(1_460), NOW));
    assert_eq!(path.judge_report(seq(1_460), 9_000, 1_300, seq(1_460)), Belief::Later);
}

#[test]
fn where_no_probe_can_ask_what_a_report_has_made_of_the_size_stays_without_evidence() {
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

/// RFC 3522 §3.2: an echo from before the report answers the original, if nothing before that was open.
#[test]
fn the_echo_tells_whether_a_report_was_true_that_was_believed_at_once() {
    for (stamps, from, echo, finding) in [
        ((10, 20), 0, Some(20), Finding::Confirmed),
        ((10, 20), 0, Some(19), Finding::Disproved),
        ((10, 20), u32::MAX, Some(19), Finding::Open),
        ((20, 20), 0, Some(20), Finding::Open),
        ((10, 20), 0, Some(0), Finding::Open),
        ((10, 20), 0, None, Finding::Open),
    ] {
        let mut path = path(PathSearch::WhenNarrow, ETHERNET);
        path.believe((seq(0), 1_300), seq(0), stamps, NOW);
        assert!(path.is_asking() && !path.is_confirmed());
        assert_eq!(path.judge_believed((seq(from), seq(0)), echo, NOW), None, "not yet");
        assert_eq!(path.judge_believed((seq(from), seq(1)), echo, NOW), Some(finding));
        path.check();
        let size = if finding == Finding::Disproved { 1_500 } else { 1_300 };
        assert_eq!((path.effective(), path.is_confirmed()), (size, finding != Finding::Open));
        path.watch(NOW, seq(1));
        let probe = (finding == Finding::Open).then_some(1_500);
        assert_eq!(path.ready(), probe, "{finding:?}");
    }
}

#[test]
fn after_a_report_larger_packets_are_tried_in_ten_minutes_and_not_before() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    believe(&mut path, 0, 1_400);
    path.watch(NOW + RAISE_AFTER - Duration::from_nanos(1), seq(0));
    assert_eq!((path.ready(), path.is_estimated()), (None, false));
    path.watch(NOW + RAISE_AFTER, seq(0));
    assert_eq!(path.ready(), Some(1_420));
}

/// RFC 5927 §7.2: a report about the probe counts if the probe is lost.
#[test]
fn a_report_about_a_lost_probe_is_where_the_search_goes_on() {
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
fn a_report_about_a_probe_that_arrives_is_forgotten() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(7), seq(1_417));
    path.hold_of_probe(1_200);
    assert_eq!(path.judge_probe(seq(1_417), NOW, PAUSE, NOTHING), Some(Outcome::Passed));
    assert_eq!(search(&mut path, 1_500, NOW), COMMON[1..7]);
}

/// RFC 4821 §7.8.
#[test]
fn a_raised_size_that_brings_many_losses_is_taken_back() {
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
        // What was kept is judged again, by what is lost from then on.
        let later = |lost| Tally { delivered: tally.delivered + 900, lost: tally.lost + lost };
        assert!(!path.verify(NOW + timeout * 8, timeout, later(100)));
        assert!(!path.verify(NOW + timeout * 11, timeout, later(1_000)), "too early again");
        assert_eq!(path.verify(NOW + timeout * 12, timeout, later(1_000)), !is_withdrawn);
        assert_eq!(path.effective(), 1_064);
    }
}

/// RFC 4821 §7.8: probes may pass one after the other before a loss could tell that the first was one too many.
#[test]
fn what_was_raised_several_times_and_is_too_much_becomes_what_it_was_before_the_first() {
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

/// RFC 4821 §7.1: an implicit probe raises search_low.
#[test]
fn what_arrives_by_chance_is_known_to_pass() {
    let mut path = PathMtu::new(1_300, 1_500);
    path.begin(PathSearch::WhenNarrow, &ETHERNET, false, true, NOW);
    assert_eq!(path.search().low, 0);
    path.note_full(seq(1_260), seq(0));
    path.watch(NOW, seq(1_260));
    assert_eq!(path.search().low, 1_300);
}

#[test]
fn who_comes_after_a_search_that_had_not_ended_goes_on_with_it() {
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
    assert_eq!(path.ready(), Some(1_400), "in ten minutes, though");
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
fn what_a_router_has_said_of_the_syn_lets_no_probe_be_larger_than_the_peer_takes() {
    for rule in [PathSearch::Off, PathSearch::WhenNarrow, PathSearch::Always] {
        let mut path = PathMtu::new(1_500, 1_500);
        believe(&mut path, 0, 1_300);
        path.begin(rule, &Bounds { limit: 1_200, ..ETHERNET }, false, true, NOW);
        path.check();
        let tried =
            if rule == PathSearch::Always { search(&mut path, 9_000, NOW) } else { Vec::new() };
        assert!(tried.iter().all(|&size| size <= 1_200), "{rule:?} {tried:?}");
    }
}

#[test]
fn a_path_that_is_known_to_be_narrow_is_not_begun_with_more() {
    let mut path = PathMtu::new(900, 1_500);
    path.begin(PathSearch::Always, &ETHERNET, false, true, NOW);
    assert_eq!(path.effective(), 900);
}

#[test]
fn what_a_search_that_had_not_ended_has_found_is_known_to_pass() {
    let mut path = PathMtu::new(1_280, 1_500);
    path.begin(PathSearch::WhenNarrow, &ETHERNET, true, true, NOW);
    assert_eq!(path.search().low, 1_280);
}

#[test]
fn a_report_that_waits_is_no_search() {
    let mut path = path(PathSearch::WhenNarrow, ETHERNET);
    path.hold(seq(0), 1_400, 1, seq(1_460));
    assert!(path.is_awake() && !path.is_estimated() && !path.is_asking());
}

/// What the question was about is over.
#[test]
fn another_size_forgets_the_probe_and_the_report_that_waited() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.hold(seq(1_460), 1_000, 1, seq(2_920));
    assert_eq!(path.ready(), Some(1_280));
    assert!(path.on_full_stop(1_460, &ETHERNET, NOW));
    assert_eq!((path.ready(), path.held_size()), (None, None));
}

#[test]
fn a_probe_has_passed_when_all_of_it_has_arrived() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_240));
    assert_eq!(path.judge_probe(seq(1_239), NOW, PAUSE, NOTHING), None);
    assert_eq!(path.judge_probe(seq(1_240), NOW, PAUSE, NOTHING), Some(Outcome::Passed));
    assert_eq!(path.search().low, 1_280);
}

#[test]
fn a_probe_that_is_missing_is_not_missed_again() {
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
fn a_duplicate_of_something_else_does_not_find_the_probe() {
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

/// RFC 5927 §7.2: a report counts for the packet that it quotes.
#[test]
fn a_report_is_about_the_probe_if_it_quotes_that_and_names_less_that_may_pass() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(7), seq(1_247));
    let judge = |quoted, size| path.judge_report(seq(quoted), 9_000, size, seq(0));
    assert_eq!([judge(7, 1_064), judge(7, 1_279)], [Belief::OfProbe; 2]);
    assert_eq!(judge(7, 1_063), Belief::None, "less than what passes says nothing of the probe");
    assert_eq!(judge(7, 1_280), Belief::None, "the probe has no more");
    assert_eq!(judge(1_247, 1_200), Belief::None, "what is no probe is smaller");
}

#[test]
fn a_report_leaves_what_is_known_to_pass_and_proves_no_more() {
    let mut path = path(PathSearch::Always, ETHERNET);
    believe(&mut path, 0, 1_000);
    assert_eq!((path.search().low, path.search().high), (0, 1_000));
    path.search().low = 700;
    believe(&mut path, 0, 900);
    assert_eq!((path.search().low, path.search().high), (700, 900));
    path.check();
}

#[test]
fn after_a_full_stop_only_the_smaller_size_is_thought_to_pass_and_the_next_answer_tells() {
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
fn losses_after_a_full_stop_do_not_bring_back_what_was_before_the_probe() {
    let mut path = path(PathSearch::Always, ETHERNET);
    path.watch(NOW, seq(0));
    path.record_sent(seq(0), seq(1_240));
    path.judge_probe(seq(1_240), NOW, PAUSE, NOTHING);
    assert!(path.on_full_stop(1_240, &ETHERNET, NOW) && path.on_full_stop(1_240, &ETHERNET, NOW));
    assert!(!path.verify(NOW + PAUSE * 100, PAUSE, Tally { delivered: 0, lost: 1_000 }));
    assert_eq!(path.effective(), 576);
}

#[test]
fn less_than_eight_bytes_are_worth_no_probe_however_small_packets_are() {
    for (high, size) in [(307, None), (308, Some(304))] {
        assert_eq!(Search::new(high).next_size(300, 1_500), size);
    }
}

#[test]
fn the_base_is_no_less_than_the_floor_and_neither_more_than_the_limit() {
    assert_eq!(Bounds { base: 500, ..ETHERNET }.base(), 576);
    assert_eq!(Bounds { limit: 1_000, ..ETHERNET }.base(), 1_000);
    assert_eq!(Bounds { limit: 300, ..ETHERNET }.next_below(300, 0), 300);
}
