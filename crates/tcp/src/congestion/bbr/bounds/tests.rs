//! The bounds of BBR's model: what losses and congestion marks change, and what a spurious recovery
//! restores.

use super::*;
use crate::congestion::{Acknowledged, Controller, RateSample, Window};
use linerate_units::Duration;
use linerate_wire::SeqNum;

const MSS: u32 = 1_000;
const ROUND: Duration = Duration::from_millis(40);

/// A round trip in which so many bytes were delivered of 100,000 that had left, and so many lost.
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

/// A thousandth of 100,000 bytes in flight for each of `since_sent`.
fn lost(since_sent: u64) -> Lost {
    Lost { bytes: MSS, in_flight_at_send: 100_000, since_sent, application_limited: false }
}

/// One that delivers 100,000 bytes in each round trip, in this phase.
fn steady(phase: Phase) -> Bbr {
    let mut bbr = Bbr::new(Window::new(MSS, 10), 1);
    while !bbr.phase.is_probe_bandwidth() {
        round(&mut bbr, 100_000, 0);
    }
    // It is not time to probe for the next two seconds.
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

/// §5.5.10: with each round trip that has lost something the bounds come closer to what is delivered, and no closer.
#[test]
fn losses_draw_the_bounds_towards_what_is_delivered_once_a_round_trip() {
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
        // One without losses changes nothing.
        let before = bbr.bounds;
        round(&mut bbr, 50_000, 0);
        assert_eq!(bbr.bounds, before);
    }
    assert_eq!(bbr.bounds.longterm, None, "it was no probe");
    bbr.start_refill();
    assert_eq!(bbr.bounds, Bounds::default(), "a probe begins without them");
}

/// §5.5.10.3: who looks for more bandwidth finds losses, which are judged by their share.
#[test]
fn who_probes_is_not_bound_by_single_losses() {
    for phase in [Phase::Startup, Phase::Refill, Phase::Up] {
        let mut bbr = steady(phase);
        bbr.on_lost(&lost(1_000));
        assert_eq!(bbr.phase, phase);
        round(&mut bbr, 50_000, 1_000);
        assert_eq!(bbr.bounds, Bounds::default(), "{phase:?}");
    }
}

/// §5.5.10.2: `HandleInflightTooHigh`.
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
    assert_eq!(bbr.volume_cap(), 4 * MSS, "and never less than keeps acknowledgements coming");
    bbr.bounds.inflight = Some(1_000);
    assert_eq!(bbr.volume_cap(), 4 * MSS);
    // What left while little was in flight says little of the path.
    let mut early = steady(Phase::Up);
    early.on_lost(&Lost { in_flight_at_send: 10_000, ..lost(1_000) });
    assert_eq!(early.bounds.longterm, Some(share(early.target_inflight(), BETA)));
    // And nothing, if it was the application that let no more leave.
    let mut limited = steady(Phase::Up);
    limited.on_lost(&Lost { application_limited: true, ..lost(9_000) });
    assert_eq!((limited.phase, limited.bounds.longterm), (Phase::Down, None));
}

/// §5.6.4.4: what the window was before is found again when all is repaired.
#[test]
fn after_recovery_the_window_is_what_it_was_before_the_first_loss() {
    let mut bbr = steady(Phase::Cruise);
    let before = bbr.window.cwnd();
    bbr.on_timeout(before);
    assert_eq!(bbr.window.cwnd(), MSS);
    bbr.on_recovered();
    assert_eq!(bbr.window.cwnd(), before);
    // A timeout in fast recovery finds a window that is smaller already.
    bbr.on_loss(before);
    bbr.window.set(10_000);
    bbr.on_timeout(10_000);
    bbr.on_recovered();
    assert_eq!(bbr.window.cwnd(), before);
    // What the model has found since holds.
    bbr.on_loss(before);
    bbr.bounds.inflight = Some(50_000);
    bbr.on_recovered();
    assert_eq!(bbr.window.cwnd(), 50_000);
    bbr.window.set(20_000);
    bbr.on_recovered();
    assert_eq!(bbr.window.cwnd(), 20_000, "it is restored once");
}

/// §5.5.11: what was found lost may arrive after all. The losses are told one by one, and only then does recovery begin.
#[test]
fn losses_that_prove_to_be_none_leave_no_trace() {
    let recover = |bbr: &mut Bbr, stretches| {
        for number in 1..=stretches {
            bbr.on_lost(&lost(number * 3_000));
        }
        round(bbr, 50_000, stretches * 3_000);
        bbr.on_loss(100_000);
        for number in 1..=stretches {
            bbr.on_lost(&lost(number * 3_000));
        }
        round(bbr, 50_000, stretches * 3_000);
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
    assert_eq!(cruising.bounds, Bounds::default(), "nor is the round trip one of losses");
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
    // They may prove to be none when they have been made up for.
    let mut late = steady(Phase::Cruise);
    late.bounds.longterm = Some(150_000);
    recover(&mut late, 3);
    late.on_recovered();
    late.on_spurious_loss();
    assert_eq!(late.bounds, Bounds { longterm: Some(150_000), ..Bounds::default() });
    // What is lost afterwards is another matter.
    let mut again = steady(Phase::Up);
    recover(&mut again, 3);
    again.on_recovered();
    let found = again.bounds;
    again.on_loss(100_000);
    again.on_spurious_loss();
    assert_eq!((again.phase, again.bounds), (Phase::Down, found));
}

/// §5.3.1.3: `CheckStartupHighLoss`.
#[test]
fn startup_ends_by_losses_if_they_are_many_in_many_places_of_a_round_of_recovery() {
    for (recovers, stretches, bytes, ends) in [
        (true, 6, 2_001, true),
        (true, 5, 9_000, false),
        (true, 6, 2_000, false),
        (false, 6, 9_000, false),
    ] {
        let mut bbr = steady(Phase::Startup);
        if recovers {
            bbr.on_loss(100_000);
        }
        for _ in 0..stretches {
            bbr.on_lost(&lost(1_000));
        }
        round(&mut bbr, 100_000, bytes);
        assert_eq!(bbr.phase != Phase::Startup, ends, "{stretches} stretches, {bytes} bytes");
        assert_eq!(bbr.bounds.longterm, ends.then_some(100_000));
        round(&mut bbr, 100_000, 9_000);
        assert_eq!(bbr.phase != Phase::Startup, ends, "places count in their round");
    }
}

#[test]
fn two_per_cent_may_be_lost() {
    assert!(!is_too_much(2_000, 100_000));
    assert!(is_too_much(2_001, 100_000));
}

/// 100 segments in flight, of which the last three were lost: two of a hundred would have been fine.
#[test]
fn the_part_of_a_burst_that_did_no_harm_counts() {
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

/// The draft leaves the response to a mark open (§3.7). Here a mark during a probe means what too much
/// loss means: the probe ends, and what was in flight becomes the long-term bound.
#[test]
fn a_mark_during_a_probe_ends_it_and_sets_the_long_term_bound() {
    let mut bbr = steady(Phase::Up);
    bbr.on_mark(120_000);
    assert_eq!((bbr.phase, bbr.bounds.longterm), (Phase::Down, Some(120_000)));
    assert!(bbr.probe.too_high);
    bbr.on_mark(90_000);
    assert_eq!(bbr.bounds.longterm, Some(120_000), "a probe is judged once");
}

/// A mark outside a probe comes from other flows. It bounds the model until the next probe only, or
/// each mark would lower the long-term bound to what happens to be in flight.
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
