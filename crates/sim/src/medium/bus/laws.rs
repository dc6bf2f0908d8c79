//! Random traffic on a bus or a star, with checks that every transmission obeys IEEE 802.3 §4. The
//! checks cover the times at which transmissions begin, collisions, the durations of jams and
//! backoffs, and the signals that each port receives.

use super::*;
use crate::event_queue::EventQueue;
use crate::frame::Frames;
use crate::medium::backoff::ATTEMPT_LIMIT;
use linerate_units::Rate;
use std::collections::VecDeque;

const MICRO: u64 = 1_000_000;
const BIT: Span = Span::from_picos(MICRO / 10);
const GAP: Span = Span::from_picos(96 * MICRO / 10);
const SLOT: Span = Span::from_picos(512 * MICRO / 10);

/// A transmission, from its first bit to the final bit of the frame, or of the jam after a
/// collision.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    port: Port,
    length: usize,
    to: Audience,
    /// Number of collisions of this frame before this transmission.
    collisions: u64,
    /// Time at which the frame was requested. For a repetition, the end of the transmission that
    /// collided, from which the backoff counts.
    wanted: Tick,
    /// Time until which the station's NIC delayed the frame; zero if it did not.
    held: Tick,
    start: Tick,
    end: Tick,
    collided: bool,
}

/// A requested frame that has not been sent yet.
#[derive(Clone, Copy, Debug)]
struct Want {
    length: usize,
    to: Audience,
    collisions: u64,
    since: Tick,
    held: Tick,
}

/// A bus under test, with its event queue and a record of all transmissions.
struct Wire {
    bus: Bus,
    queue: EventQueue<MediumEvent>,
    frames: Frames,
    now: Tick,
    actions: Vec<MediumAction>,
    /// The requested frame of each port, if there is one.
    wanted_frames: Vec<Option<Want>>,
    /// Start of the current transmission of each port; `None` for a port that is not transmitting.
    transmitting: Vec<Option<Tick>>,
    done: Vec<Transmission>,
    /// Signals that ports receive, each with its time of arrival.
    signals: Vec<(Tick, MediumAction)>,
    cuts: Stream,
    /// Number of frames that were sent or abandoned.
    sent: u64,
    given_up: u64,
}

impl Wire {
    /// Creates a bus with stations at these positions. With `repeater`, creates a star instead, and
    /// `places` has the lengths of the cables to its repeater.
    fn new(places: &[Span], repeater: Option<Span>, seed: u64) -> Self {
        let (rate, metre) = (Rate::from_bits_per_second(10_000_000), Span::from_picos(4_330));
        let parameters =
            BusParameters { rate, bit: BIT, gap: GAP, metre, collisions: true, repeater };
        Self {
            bus: Bus::new(parameters, places, seed),
            queue: EventQueue::new(),
            frames: Frames::new(64),
            now: Tick::ZERO,
            actions: Vec::new(),
            wanted_frames: vec![None; places.len()],
            transmitting: vec![None; places.len()],
            done: Vec::new(),
            signals: Vec::new(),
            cuts: Stream::new(seed, 98),
            sent: 0,
            given_up: 0,
        }
    }

    /// Requests to send a frame of this length, unless the port has requested one already.
    fn request(&mut self, at: Tick, port: Port, length: usize, to: Audience) {
        self.pass_time(at);
        if self.wanted_frames[port].is_none() {
            self.wanted_frames[port] =
                Some(Want { length, to, collisions: 0, since: at, held: Tick::ZERO });
            let frame = self.frames.take();
            self.bus.handle_request(at, port, frame, length, to, &mut self.actions);
            self.act();
        }
    }

    /// Processes all events up to `until`.
    fn pass_time(&mut self, until: Tick) {
        while let Some((at, event)) = self.queue.pop() {
            if at > until {
                self.queue.push(at, event);
                break;
            }
            self.now = at;
            self.bus.handle_event(at, event, &mut self.actions);
            self.bus.check();
            self.note_ends();
            self.act();
        }
        self.now = self.now.max(until);
    }

    /// Records the transmissions that have ended since the previous call.
    fn note_ends(&mut self) {
        for port in 0..self.transmitting.len() {
            let Some(start) =
                self.transmitting[port].take_if(|_| !self.bus.sending.contains(&port))
            else {
                continue;
            };
            let Some(want) = self.wanted_frames[port] else { continue };
            let Want { length, to, collisions, since: wanted, held } = want;
            let whole = start + time_on_wire(BIT, length);
            let sent = self.actions.iter().any(
                |action| matches!(action, MediumAction::Sent { port: which, .. } if *which == port),
            );
            assert!(!sent || self.now == whole, "a frame takes its time");
            let end = self.now;
            self.done.push(Transmission {
                port,
                length,
                to,
                collisions,
                wanted,
                held,
                start,
                end,
                collided: !sent,
            });
            self.wanted_frames[port] = (!sent).then_some(Want {
                collisions: collisions + 1,
                since: end,
                held: Tick::ZERO,
                ..want
            });
        }
    }

    /// Delays the requested frame of a port until `until`, as its NIC would.
    fn hold(&mut self, at: Tick, port: Port, until: Tick) {
        self.pass_time(at);
        if let Some(want) =
            self.wanted_frames[port].as_mut().filter(|_| self.transmitting[port].is_none())
        {
            want.held = want.held.max(until);
        }
        self.bus.handle_hold(port, until, &mut self.actions);
        self.act();
    }

    /// Truncates one in four of the frames that begin to leave, at random, as a FIFO underrun
    /// would.
    fn truncate_some(&mut self, port: Port) {
        let Some(want) = &mut self.wanted_frames[port] else { return };
        if self.cuts.below(4) == 0 {
            want.length = SHORTEST
                + usize::try_from(self.cuts.below((want.length - SHORTEST) as u64 + 1)).unwrap();
            self.bus.handle_truncation(port, want.length, &mut self.actions);
        }
    }

    fn act(&mut self) {
        let mut actions = std::mem::take(&mut self.actions).into_iter().collect::<VecDeque<_>>();
        while let Some(action) = actions.pop_front() {
            match action {
                MediumAction::Later { at, event } => self.queue.push(at, event),
                MediumAction::Sending { port, .. } => {
                    self.transmitting[port] = Some(self.now);
                    self.truncate_some(port);
                    actions.extend(self.actions.drain(..));
                }
                MediumAction::Collided { .. } => {}
                MediumAction::Sent { frame, .. } => {
                    self.sent += 1;
                    self.frames.release(frame);
                }
                MediumAction::GivenUp { port, frame } => {
                    self.given_up += 1;
                    let collisions = self.wanted_frames[port].take().map(|want| want.collisions);
                    assert_eq!(
                        collisions,
                        Some(u64::from(ATTEMPT_LIMIT)),
                        "a frame is abandoned after exactly this many collisions"
                    );
                    self.frames.release(frame);
                }
                MediumAction::Arriving { at, .. }
                | MediumAction::Fragment { at, .. }
                | MediumAction::Arrived { at, .. } => self.signals.push((at, action)),
            }
        }
    }

    /// Returns the times at which a port senses the start and the end of a transmission.
    fn sensed_by(&self, port: Port, other: &Transmission) -> (Tick, Tick) {
        let distance = self.bus.distance(other.port, port);
        (other.start + distance, other.end + distance)
    }

    fn others(&self, one: &Transmission) -> impl Iterator<Item = &Transmission> {
        let port = one.port;
        self.done.iter().filter(move |other| other.port != port)
    }

    /// Checks all properties of one transmission.
    fn check(&self, one: &Transmission) {
        self.check_beginning(one);
        let meets = self.others(one).map(|other| self.sensed_by(one.port, other));
        let collisions = meets
            .filter(|&(begins, ends)| begins < one.end && ends > one.start)
            .map(|(begins, _)| begins)
            .min();
        assert_eq!(one.collided, collisions.is_some(), "{one:?} meets at {collisions:?}");
        let preamble = one.start + BIT * PREAMBLE_BITS;
        if let Some(collisions) = collisions {
            let jammed = collisions.max(one.start).max(preamble) + BIT * 32;
            let whole = one.start + time_on_wire(BIT, one.length);
            assert_eq!(
                one.end,
                jammed.min(whole),
                "{one:?}: its preamble, then its jam of 32 bits"
            );
        }
        self.check_receivers(one);
    }

    /// Checks the start of a transmission. The station may not start while it senses another
    /// transmission, or in the gap after one. If it has waited for a gap, it may ignore a
    /// transmission whose start it senses in the last third of that gap (§4.2.3.2.1). The start
    /// must also have a reason: the request, the end of a backoff, the end of a gap, or the end of
    /// a delay by the NIC.
    fn check_beginning(&self, one: &Transmission) {
        let own = self.done.iter().filter(|other| other.port == one.port && other.end <= one.start);
        let gaps = own.map(|own| own.end + GAP);
        let mut gaps =
            gaps.chain(self.others(one).map(|other| self.sensed_by(one.port, other).1 + GAP));
        let waited_for_gap = gaps.any(|gap| gap == one.start);
        let ignored = if waited_for_gap { GAP / 3 } else { Span::ZERO };
        for other in self.others(one) {
            let (begins, ends) = self.sensed_by(one.port, other);
            let allowed = one.start < begins + ignored || one.start >= ends + GAP;
            assert!(
                allowed,
                "{one:?} begins although {other:?} is signals from {begins:?} to {ends:?}"
            );
        }
        let waited = one.start.since(one.wanted).as_picos();
        let (slots, rest) = (waited / SLOT.as_picos(), waited % SLOT.as_picos());
        let backed_off = rest == 0 && slots < 1 << one.collisions.min(10);
        assert!(one.start >= one.held, "{one:?} begins while its NIC is busy");
        let has_reason = backed_off || waited_for_gap || one.start == one.held;
        assert!(has_reason, "{one:?} begins for no reason");
    }

    /// Checks the times at which the receivers sense the start of a frame (after its preamble) and
    /// its end.
    fn check_receivers(&self, one: &Transmission) {
        let receivers: Vec<Port> = match one.to {
            Audience::None => Vec::new(),
            Audience::One(port) => vec![port],
            Audience::All => {
                (0..self.wanted_frames.len()).filter(|&port| port != one.port).collect()
            }
        };
        for receiver in receivers {
            let (begins, ends) = self.sensed_by(receiver, one);
            let receives = |at: Tick, what: fn(&MediumAction) -> Option<Port>| {
                self.signals
                    .iter()
                    .any(|(when, action)| *when == at && what(action) == Some(receiver))
            };
            let begin: fn(&MediumAction) -> Option<Port> = |action| {
                if let MediumAction::Arriving { port, .. } = action { Some(*port) } else { None }
            };
            let fragment: fn(&MediumAction) -> Option<Port> = |action| {
                if let MediumAction::Fragment { port, .. } = action { Some(*port) } else { None }
            };
            let frame: fn(&MediumAction) -> Option<Port> = |action| match action {
                MediumAction::Arrived { port, intact: true, .. } => Some(*port),
                _ => None,
            };
            assert!(
                receives(begins + BIT * PREAMBLE_BITS, begin),
                "{receiver} senses {one:?} begin"
            );
            assert!(
                receives(ends, if one.collided { fragment } else { frame }),
                "{receiver} senses {one:?} end"
            );
        }
    }

    /// Checks the properties of all transmissions, and the counters.
    fn check_all(&self) {
        self.done.iter().for_each(|one| self.check(one));
        let sum = |of: &dyn Fn(&Transmission) -> u64| self.done.iter().map(of).sum::<u64>();
        let counted = self.bus.statistics();
        assert_eq!(counted.collisions, sum(&|one| one.collided.into()));
        assert_eq!((counted.frames, counted.given_up, counted.late), (self.sent, self.given_up, 0));
        assert_eq!(counted.bytes, sum(&|one| if one.collided { 0 } else { one.length as u64 }));
        assert_eq!(counted.busy.as_picos(), sum(&|one| one.end.since(one.start).as_picos()));
        for (collisions, &frames) in (0..).zip(&counted.attempts) {
            assert_eq!(
                frames,
                sum(&|one| (!one.collided && one.collisions == collisions).into()),
                "{collisions} collisions before"
            );
        }
        assert_eq!(counted.backoffs.iter().sum::<u64>(), counted.collisions - counted.given_up);
        let bounds = (0..).zip(&counted.backoffs).fold((0, 0), |(least, most), (class, &count)| {
            let (from, to) =
                if class == 0 { (0, 0) } else { (1_u64 << (class - 1), (1 << class) - 1) };
            (least + from * count, most + to * count)
        });
        let slots = counted.backoff.as_picos() / SLOT.as_picos();
        assert!(
            (bounds.0..=bounds.1).contains(&slots),
            "{slots} slots of backoff are not within {bounds:?}"
        );
    }
}

/// Generates random traffic of stations that often have a frame to send.
fn random_traffic(seed: u64, stations: u64, length: u64, repeater: Option<Span>) -> Wire {
    let mut random = Stream::new(seed, 99);
    let places: Vec<Span> =
        (0..stations).map(|_| Span::from_picos(random.below(length * MICRO))).collect();
    let mut wire = Wire::new(&places, repeater, seed);
    let mut now = Tick::ZERO;
    for turn in 0..150 {
        let pause = [3, 30, 400][usize::try_from(random.below(3)).unwrap()];
        now = now + Span::from_picos(random.below(pause * MICRO));
        let port = usize::try_from(random.below(stations)).unwrap();
        let other = usize::try_from(random.below(stations)).unwrap();
        let to = match random.below(3) {
            0 => Audience::None,
            1 if other != port => Audience::One(other),
            _ => Audience::All,
        };
        let length = if random.below(2) == 0 {
            SHORTEST
        } else {
            64 + usize::try_from(random.below(1_455)).unwrap()
        };
        wire.request(now, port, length, to);
        if turn % 5 == 0 {
            let held = usize::try_from(random.below(stations)).unwrap();
            wire.hold(now, held, now + Span::from_picos(random.below(100 * MICRO)));
        }
    }
    wire.pass_time(Tick::NEVER);
    wire
}

#[test]
fn every_transmission_on_a_bus_or_a_star_obeys_the_standard() {
    let (mut collisions, mut sent) = (0, 0);
    for seed in 0..60 {
        for (stations, length, repeater) in
            [(2, 25, None), (3, 3, None), (5, 25, None), (4, 8, Some(BIT * 24))]
        {
            let wire = random_traffic(seed, stations, length, repeater);
            wire.check_all();
            assert_eq!(wire.frames.held(), 0, "every frame was sent or abandoned");
            collisions += wire.bus.statistics().collisions;
            sent += wire.sent;
        }
    }
    assert!(collisions > 5_000 && sent > 5_000, "{collisions} collisions, {sent} frames");
}

#[test]
fn a_frame_is_abandoned_after_sixteen_collisions() {
    let places: Vec<Span> = (0..400).map(|place| Span::from_picos(place * 5_000)).collect();
    let mut wire = Wire::new(&places, None, 1);
    for port in 0..places.len() {
        wire.request(Tick::ZERO, port, 1_518, Audience::None);
    }
    wire.pass_time(Tick::NEVER);
    wire.check_all();
    assert!(wire.given_up > 0 && wire.given_up + wire.sent == 400, "{} of 400", wire.given_up);
    assert_eq!(wire.frames.held(), 0);
}

#[test]
fn the_gap_is_kept_after_a_late_end_of_carrier() {
    let at = |micros: u64| Tick::from_picos(micros * MICRO);
    let mut wire = Wire::new(&[Span::ZERO, Span::ZERO, Span::from_picos(20 * MICRO)], None, 1);
    for (begins, port) in [(0, 0), (30, 1), (70, 2)] {
        wire.request(at(begins), port, SHORTEST, Audience::None);
    }
    wire.pass_time(Tick::NEVER);
    wire.check_all();
    let first =
        |port: Port| wire.done.iter().filter(|one| one.port == port).map(|one| one.start).min();
    // The frame of station 0 ends at 57.6 us. Station 1 is at the place of station 0, and senses
    // this end immediately. Station 2 is 20 us away, and senses it at 77.6 us. Each then waits for
    // the gap of 9.6 us.
    assert_eq!(
        (first(1), first(2)),
        (Some(Tick::from_picos(67_200_000)), Some(Tick::from_picos(87_200_000)))
    );
}

#[test]
fn on_a_star_a_signal_passes_both_arms_and_the_repeater() {
    let micros = |count: u64| Span::from_picos(count * MICRO);
    let mut wire = Wire::new(&[micros(1), micros(3), micros(2)], Some(micros(2)), 1);
    wire.request(Tick::ZERO, 0, SHORTEST, Audience::All);
    wire.pass_time(Tick::NEVER);
    let over = Tick::ZERO + time_on_wire(BIT, SHORTEST);
    let ends = wire.signals.iter().filter_map(|&(at, action)| match action {
        MediumAction::Arrived { port, .. } => Some((port, at.since(over))),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(1, micros(6)), (2, micros(5))]);
    // A station knows without delay when its own frame ends, because the signal need not pass the
    // repeater first. So it waits only for the gap before its next frame.
    wire.request(over, 0, SHORTEST, Audience::None);
    wire.pass_time(Tick::NEVER);
    assert_eq!(wire.done.last().map(|one| one.start), Some(over + GAP));
}

#[test]
fn the_control_without_collisions_serializes_transmissions() {
    let places = [0, 1, 2].map(|place| Span::from_picos(place * MICRO));
    let mut wire = Wire::new(&places, None, 1);
    wire.bus.parameters.collisions = false;
    for turn in 0..20 {
        for port in 0..3 {
            wire.request(Tick::from_picos(turn * 5_000 * MICRO), port, 1_000, Audience::None);
        }
    }
    wire.pass_time(Tick::NEVER);
    let mut ends = wire.done.iter().map(|one| (one.start, one.end)).collect::<Vec<_>>();
    ends.sort_unstable();
    assert_eq!((wire.sent, wire.bus.statistics().collisions), (60, 0));
    assert!(
        ends.windows(2).all(|two| two[0].1 + GAP <= two[1].0),
        "one at a time, with a gap between them"
    );
}
