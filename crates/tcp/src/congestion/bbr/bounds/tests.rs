//! Tests of the bounds in BBR's model: how losses and congestion marks change them, and what a
//! spurious recovery restores.

use super::*;
use crate::congestion::{Acknowledged, Controller, RateSample, Window};
use linerate_units::Duration;
use linerate_wire::SeqNum;

const MSS: u32 = 1_000;
const ROUND: Duration = Duration::from_millis(40);

/// Runs a round trip with 100,000 bytes in flight, of which `bytes` bytes are delivered and `lost`
/// bytes are lost.
fn round(bbr: &mut Bbr, bytes: u32, lost: u64) {
    let sample = RateSample {
        delivered: bbr.delivered + u64::from(bytes),
        prior_delivered: bbr.delivered,
        interval: ROUND,
        application_limited: false,
        in_flight_at_send: 100_000,
        lost,
    };
    bbr.on_every_acknowledgement(&Acknowledged {
        bytes,
        count: 1,
        number: SeqNum::new(0),
        sent: SeqNum::new(0),
        now: bbr.now + ROUND,
        smoothed: Some(ROUND),
        round_trip: Some(ROUND),
        lost: 0,
        in_flight: 100_000,
        sample: Some(sample),
    });
}

/// Returns the report of a lost segment. When it was sent, 100,000 bytes were in flight. From then
/// until its loss was detected, `since_sent` bytes were lost, including the segment.
fn lost(since_sent: u64) -> Lost {
    Lost { bytes: MSS, in_flight_at_send: 100_000, since_sent, application_limited: false }
}

/// Returns a controller in `phase`, after round trips that delivered 100,000 bytes each.
fn steady(phase: Phase) -> Bbr {
    let mut bbr = Bbr::new(Window::new(MSS, 10), 1);
    while !bbr.phase.is_probe_bandwidth() {
        round(&mut bbr, 100_000, 0);
    }
    // The phase must not change in the rounds below. `start_down` puts off the next probe for at
    // least two seconds, so no probe begins in these rounds.
    bbr.start_down();
    for _ in 0..3 {
        round(&mut bbr, 100_000, 0);
    }
    bbr.probe.is_sample = phase == Phase::Up;
    bbr.phase = phase;
    bbr.full_pipe.reached = phase != Phase::Startup;
    assert_eq!((bbr.bounds, bbr.bdp(100)), (Bounds::default(), 100_000));
    bbr
}

/// draft-ietf-ccwg-bbr §5.5.10: each round trip with a loss reduces the short-term bounds by 30 %.
/// The bounds do not fall below the delivery rate and the amount delivered in that round trip.
#[test]
fn each_round_trip_with_losses_moves_the_bounds_towards_the_delivery() {
    let mut bbr = steady(Phase::Cruise);
    round(&mut bbr, 50_000, 0);
    let (best, cwnd) = (bbr.bandwidth.best(), bbr.window.cwnd());
    assert_eq!((best, bbr.bounds), (Rate::from_bits_per_second(20_000_000), Bounds::default()));
    let of = |percent| (best.percent(percent), share(cwnd, percent));
    let half = best.percent(50);
    for expected in
        [of(70), (half, share(share(cwnd, 70), 70)), (half, share(share(share(cwnd, 70), 70), 70))]
    {
        bbr.on_lost(&lost(1_000));
        bbr.on_lost(&lost(2_000));
        round(&mut bbr, 50_000, 2_000);
        assert_eq!(
            (bbr.bounds.bandwidth, bbr.bounds.inflight),
            (Some(expected.0), Some(expected.1.max(50_000)))
        );
        assert_eq!(bbr.pacing_rate(), expected.0.percent(100).percent(99));
        assert!(bbr.window.cwnd() <= expected.1.max(50_000));
        // A round trip without losses does not change the bounds.
        let before = bbr.bounds;
        round(&mut bbr, 50_000, 0);
        assert_eq!(bbr.bounds, before);
    }
    assert_eq!(bbr.bounds.longterm, None, "it was no probe");
    bbr.start_refill();
    assert_eq!(bbr.bounds, Bounds::default(), "a probe begins without bounds");
}

/// draft-ietf-ccwg-bbr §5.5.10.3: a probe for bandwidth is expected to cause losses. During a
/// probe, single losses therefore set no bounds, unless more than 2 % of the data is lost.
#[test]
fn single_losses_set_no_bounds_during_a_probe() {
    for phase in [Phase::Startup, Phase::Refill, Phase::Up] {
        let mut bbr = steady(phase);
        bbr.on_lost(&lost(1_000));
        assert_eq!(bbr.phase, phase);
        round(&mut bbr, 50_000, 1_000);
        assert_eq!(bbr.bounds, Bounds::default(), "{phase:?}");
    }
}

/// draft-ietf-ccwg-bbr §5.5.10.2 (`HandleInflightTooHigh`): a probe continues after a loss of 2 %
/// of the data in flight. A larger loss ends it and sets the long-term bound. A further large loss
/// does not change the bound.
#[test]
fn a_probe_that_loses_too_much_ends_and_sets_the_long_term_bound_once() {
    let mut bbr = steady(Phase::Up);
    bbr.on_lost(&lost(2_000));
    assert_eq!((bbr.phase, bbr.bounds.longterm), (Phase::Up, None), "two of a hundred may be lost");
    bbr.on_lost(&lost(2_001));
    let most = inflight_at_loss(&lost(2_001));
    assert_eq!((bbr.phase, bbr.bounds.longterm), (Phase::Down, Some(most)));
    bbr.on_lost(&Lost { in_flight_at_send: 80_000, ..lost(8_000) });
    assert_eq!(bbr.bounds.longterm, Some(most), "a probe is judged once");
    assert_eq!(bbr.volume_cap(), most);
    bbr.phase = Phase::Cruise;
    assert_eq!(bbr.volume_cap(), most - share(most, 15), "headroom for others");
    bbr.bounds.inflight = Some(30_000);
    assert_eq!(bbr.volume_cap(), 30_000);
    bbr.bounds = Bounds { longterm: Some(4_500), ..Bounds::default() };
    assert_eq!(bbr.volume_cap(), 4 * MSS, "four segments are the minimum");
    bbr.bounds.inflight = Some(1_000);
    assert_eq!(bbr.volume_cap(), 4 * MSS);
    // The lost segment was sent with only 10,000 bytes in flight, which does not show the capacity
    // of the path. The bound is therefore its minimum: 70 % of the target for the data in flight.
    let mut early = steady(Phase::Up);
    early.on_lost(&Lost { in_flight_at_send: 10_000, ..lost(1_000) });
    assert_eq!(early.bounds.longterm, Some(share(early.target_inflight(), BETA)));
    // If the sender was application-limited, too much loss ends the probe, but sets no bound.
    let mut limited = steady(Phase::Up);
    limited.on_lost(&Lost { application_limited: true, ..lost(9_000) });
    assert_eq!((limited.phase, limited.bounds.longterm), (Phase::Down, None));
}

/// draft-ietf-ccwg-bbr §5.6.4.4: when all losses are repaired, the window is restored to its size
/// before the first loss.
#[test]
fn recovery_restores_the_window_from_before_the_first_loss() {
    let mut bbr = steady(Phase::Cruise);
    let before = bbr.window.cwnd();
    bbr.on_timeout(before);
    assert_eq!(bbr.window.cwnd(), MSS);
    bbr.on_recovered();
    assert_eq!(bbr.window.cwnd(), before);
    // A timeout occurs in fast recovery, which has already reduced the window. The window is
    // restored to its size before fast recovery, and not to its size at the timeout.
    bbr.on_loss(before);
    bbr.window.set(10_000);
    bbr.on_timeout(10_000);
    bbr.on_recovered();
    assert_eq!(bbr.window.cwnd(), before);
    // A bound was set after the window was saved. It limits the restored window.
    bbr.on_loss(before);
    bbr.bounds.inflight = Some(50_000);
    bbr.on_recovered();
    assert_eq!(bbr.window.cwnd(), 50_000);
    bbr.window.set(20_000);
    bbr.on_recovered();
    assert_eq!(bbr.window.cwnd(), 20_000, "it is restored once");
}

/// draft-ietf-ccwg-bbr §5.5.11: if segments that were found lost arrive later, the bounds and the
/// window from before the first of these losses are restored. If the losses ended Startup or a
/// probe, that phase is resumed. The test reports the losses one by one, half of them before
/// recovery begins.
#[test]
fn spurious_losses_are_undone() {
    let recover = |bbr: &mut Bbr, ranges| {
        for number in 1..=ranges {
            bbr.on_lost(&lost(number * 3_000));
        }
        round(bbr, 50_000, ranges * 3_000);
        bbr.on_loss(100_000);
        for number in 1..=ranges {
            bbr.on_lost(&lost(number * 3_000));
        }
        round(bbr, 50_000, ranges * 3_000);
    };
    for known in [None, Some(150_000)] {
        let mut probing = steady(Phase::Up);
        probing.bounds.longterm = known;
        recover(&mut probing, 3);
        assert_eq!((probing.phase, probing.bounds.longterm.is_some()), (Phase::Down, true));
        assert!(known.is_none() || probing.bounds.longterm < known);
        probing.on_spurious_loss();
        assert_eq!((probing.phase, probing.bounds.longterm), (Phase::Refill, known));
    }
    let mut cruising = steady(Phase::Cruise);
    let before = cruising.window.cwnd();
    recover(&mut cruising, 3);
    assert!(cruising.bounds.bandwidth.is_some() && cruising.bounds.inflight.is_some());
    cruising.on_spurious_loss();
    assert_eq!((cruising.phase, cruising.bounds), (Phase::Cruise, Bounds::default()));
    assert_eq!(cruising.window.cwnd(), before);
    round(&mut cruising, 50_000, 0);
    assert_eq!(
        cruising.bounds,
        Bounds::default(),
        "the spurious loss sets no bound after the round trip"
    );
    for pauses in [false, true] {
        let mut starting = steady(Phase::Startup);
        recover(&mut starting, 6);
        assert_ne!(starting.phase, Phase::Startup);
        starting.full_pipe.now = true;
        let expected = if pauses { Phase::ProbeRtt } else { Phase::Startup };
        if pauses {
            starting.phase = Phase::ProbeRtt;
        }
        starting.on_spurious_loss();
        assert_eq!(
            (starting.phase, starting.bounds.longterm),
            (expected, None),
            "a pause is not cut short"
        );
        assert!(!starting.full_pipe.reached && !starting.full_pipe.now);
    }
    // Losses are found spurious only after the recovery from them has ended. The bounds that these
    // losses have set are still removed.
    let mut late = steady(Phase::Cruise);
    late.bounds.longterm = Some(150_000);
    recover(&mut late, 3);
    late.on_recovered();
    late.on_spurious_loss();
    assert_eq!(late.bounds, Bounds { longterm: Some(150_000), ..Bounds::default() });
    // After a recovery from genuine losses, a later loss is spurious. Only the response to the
    // later loss is undone. The phase and the bounds that followed from the genuine losses stay.
    let mut again = steady(Phase::Up);
    recover(&mut again, 3);
    again.on_recovered();
    let found = again.bounds;
    again.on_loss(100_000);
    again.on_spurious_loss();
    assert_eq!((again.phase, again.bounds), (Phase::Down, found));
}

/// draft-ietf-ccwg-bbr §5.3.1.3 (`CheckStartupHighLoss`): losses end Startup under three
/// conditions. Recovery is in progress, more than 2 % of the data in flight was lost in the round,
/// and the lost data forms at least six ranges.
#[test]
fn startup_ends_by_many_losses_in_many_ranges_of_a_round_of_recovery() {
    for (recovers, ranges, bytes, ends) in [
        (true, 6, 2_001, true),
        (true, 5, 9_000, false),
        (true, 6, 2_000, false),
        (false, 6, 9_000, false),
    ] {
        let mut bbr = steady(Phase::Startup);
        if recovers {
            bbr.on_loss(100_000);
        }
        for _ in 0..ranges {
            bbr.on_lost(&lost(1_000));
        }
        round(&mut bbr, 100_000, bytes);
        assert_eq!(bbr.phase != Phase::Startup, ends, "{ranges} ranges, {bytes} bytes");
        assert_eq!(bbr.bounds.longterm, ends.then_some(100_000));
        round(&mut bbr, 100_000, 9_000);
        assert_eq!(bbr.phase != Phase::Startup, ends, "ranges count only in their round");
    }
}

#[test]
fn two_per_cent_may_be_lost() {
    assert!(!is_too_much(2_000, 100_000));
    assert!(is_too_much(2_001, 100_000));
}

/// Three of 100 segments are lost together, but the threshold of 2 % permits the loss of about two.
/// The result is the amount of data in flight at which the loss reached the threshold, so it lies
/// within the three segments.
#[test]
fn the_part_of_a_burst_below_the_loss_threshold_counts() {
    let lost = Lost {
        bytes: 3_000,
        in_flight_at_send: 100_000,
        since_sent: 3_000,
        application_limited: false,
    };
    assert_eq!(inflight_at_loss(&lost), 97_000 + 1_979);
    let earlier = Lost { since_sent: 6_000, ..lost };
    assert_eq!(inflight_at_loss(&earlier), 97_000, "too much was lost before");
}

/// The draft leaves the response to a congestion mark open (§3.7). Here a mark during a probe has
/// the same effect as too much loss: the probe ends, and the amount of data in flight becomes the
/// long-term bound.
#[test]
fn a_mark_during_a_probe_ends_it_and_sets_the_long_term_bound() {
    let mut bbr = steady(Phase::Up);
    bbr.on_mark(120_000);
    assert_eq!((bbr.phase, bbr.bounds.longterm), (Phase::Down, Some(120_000)));
    assert!(bbr.probe.too_high);
    bbr.on_mark(90_000);
    assert_eq!(bbr.bounds.longterm, Some(120_000), "a probe is judged once");
}

/// A congestion mark outside a probe is caused by other flows. It sets only the short-term bounds,
/// which the next probe removes. If marks outside a probe changed the long-term bound, each of them
/// would lower it to the present amount of data in flight.
#[test]
fn a_mark_outside_a_probe_leaves_the_long_term_bound_alone() {
    for phase in [Phase::Down, Phase::Cruise, Phase::ProbeRtt] {
        for longterm in [None, Some(150_000)] {
            let mut bbr = steady(phase);
            bbr.bounds.longterm = longterm;
            bbr.on_mark(90_000);
            assert_eq!((bbr.phase, bbr.bounds.longterm), (phase, longterm));
            assert!(!bbr.probe.too_high, "{phase:?}: no probe has found too much");
            round(&mut bbr, 80_000, 0);
            assert!(bbr.bounds.bandwidth.is_some() && bbr.bounds.inflight.is_some());
            assert_eq!(bbr.bounds.longterm, longterm);
        }
    }
}
