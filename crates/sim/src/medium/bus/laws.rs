//! What IEEE 802.3 §4 says of every transmission on a cable or a star, judged over random worlds: who begins when, who
//! meets whom, how long a jam and a backoff last, and what everybody hears of it.

use super::*;
use crate::frame::Frames;
use crate::medium::backoff::ATTEMPT_LIMIT;
use crate::queue::Queue;
use linerate_units::Rate;
use std::collections::VecDeque;

const MICRO: u64 = 1_000_000;
const BIT: Span = Span::from_picos(MICRO / 10);
const GAP: Span = Span::from_picos(96 * MICRO / 10);
const SLOT: Span = Span::from_picos(512 * MICRO / 10);

/// A transmission, from its first bit to its last, or to that of its jam.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    port: Port,
    length: usize,
    to: Audience,
    /// How often its frame had met others before.
    met: u64,
    /// From when on it could have begun: its frame was there, or its backoff was to be drawn.
    wanted: Tick,
    /// Before then its card could not.
    held: Tick,
    start: Tick,
    end: Tick,
    collided: bool,
}

/// What a station is to send.
#[derive(Clone, Copy, Debug)]
struct Want {
    length: usize,
    to: Audience,
    met: u64,
    since: Tick,
    held: Tick,
}

/// A bus, what happens on it, and what has.
struct Wire {
    bus: Bus,
    queue: Queue<MediumEvent>,
    frames: Frames,
    now: Tick,
    actions: Vec<MediumAction>,
    /// By port.
    wants: Vec<Option<Want>>,
    /// By port: whose transmission is under way, and since when.
    sends: Vec<Option<Tick>>,
    done: Vec<Transmission>,
    /// What ports hear, and when.
    heard: Vec<(Tick, MediumAction)>,
    cuts: Stream,
    /// How many frames have left, and how many have been given up.
    sent: u64,
    given_up: u64,
}

impl Wire {
    /// A cable with stations so far from its end, or a star with arms that long.
    fn new(places: &[Span], repeater: Option<Span>, seed: u64) -> Self {
        let (rate, metre) = (Rate::from_bits_per_second(10_000_000), Span::from_picos(4_330));
        let parameters =
            BusParameters { rate, bit: BIT, gap: GAP, metre, collisions: true, repeater };
        Self {
            bus: Bus::new(parameters, places, seed),
            queue: Queue::new(),
            frames: Frames::new(64),
            now: Tick::ZERO,
            actions: Vec::new(),
            wants: vec![None; places.len()],
            sends: vec![None; places.len()],
            done: Vec::new(),
            heard: Vec::new(),
            cuts: Stream::new(seed, 98),
            sent: 0,
            given_up: 0,
        }
    }

    /// A station has a frame of so many bytes on the wire, unless it has one.
    fn request(&mut self, at: Tick, port: Port, length: usize, to: Audience) {
        self.pass_time(at);
        if self.wants[port].is_none() {
            self.wants[port] = Some(Want { length, to, met: 0, since: at, held: Tick::ZERO });
            let frame = self.frames.take();
            self.bus.handle_request(at, port, frame, length, to, &mut self.actions);
            self.act();
        }
    }

    /// Everything until then happens.
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

    /// Who has sent until now does not any more.
    fn note_ends(&mut self) {
        for port in 0..self.sends.len() {
            let Some(start) = self.sends[port].take_if(|_| !self.bus.sending.contains(&port))
            else {
                continue;
            };
            let Some(want) = self.wants[port] else { continue };
            let Want { length, to, met, since: wanted, held } = want;
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
                met,
                wanted,
                held,
                start,
                end,
                collided: !sent,
            });
            self.wants[port] =
                (!sent).then_some(Want { met: met + 1, since: end, held: Tick::ZERO, ..want });
        }
    }

    /// A card that has something to send may not, before then.
    fn hold(&mut self, at: Tick, port: Port, until: Tick) {
        self.pass_time(at);
        if let Some(want) = self.wants[port].as_mut().filter(|_| self.sends[port].is_none()) {
            want.held = want.held.max(until);
        }
        self.bus.handle_hold(port, until, &mut self.actions);
        self.act();
    }

    /// A frame that begins to leave ends early now and then, because its card has no more of it.
    fn cut_now_and_then(&mut self, port: Port) {
        let Some(want) = &mut self.wants[port] else { return };
        if self.cuts.below(4) == 0 {
            want.length = SHORTEST
                + usize::try_from(self.cuts.below((want.length - SHORTEST) as u64 + 1)).unwrap();
            self.bus.handle_cut(port, want.length, &mut self.actions);
        }
    }

    fn act(&mut self) {
        let mut actions = std::mem::take(&mut self.actions).into_iter().collect::<VecDeque<_>>();
        while let Some(action) = actions.pop_front() {
            match action {
                MediumAction::Later { at, event } => self.queue.push(at, event),
                MediumAction::Sending { port, .. } => {
                    self.sends[port] = Some(self.now);
                    self.cut_now_and_then(port);
                    actions.extend(self.actions.drain(..));
                }
                MediumAction::Collided { .. } => {}
                MediumAction::Sent { frame, .. } => {
                    self.sent += 1;
                    self.frames.release(frame);
                }
                MediumAction::GivenUp { port, frame } => {
                    self.given_up += 1;
                    let met = self.wants[port].take().map(|want| want.met);
                    assert_eq!(
                        met,
                        Some(u64::from(ATTEMPT_LIMIT)),
                        "nobody gives up sooner or later"
                    );
                    self.frames.release(frame);
                }
                MediumAction::Arriving { at, .. }
                | MediumAction::Fragment { at, .. }
                | MediumAction::Arrived { at, .. } => self.heard.push((at, action)),
            }
        }
    }

    /// When somebody hears the beginning of a transmission, and its end.
    fn heard_by(&self, port: Port, other: &Transmission) -> (Tick, Tick) {
        let distance = self.bus.distance(other.port, port);
        (other.start + distance, other.end + distance)
    }

    fn others(&self, one: &Transmission) -> impl Iterator<Item = &Transmission> {
        let port = one.port;
        self.done.iter().filter(move |other| other.port != port)
    }

    /// Judges a transmission.
    fn judge(&self, one: &Transmission) {
        self.judge_beginning(one);
        let meets = self.others(one).map(|other| self.heard_by(one.port, other));
        let met = meets
            .filter(|&(begins, ends)| begins < one.end && ends > one.start)
            .map(|(begins, _)| begins)
            .min();
        assert_eq!(one.collided, met.is_some(), "{one:?} meets at {met:?}");
        let preamble = one.start + BIT * PREAMBLE_BITS;
        if let Some(met) = met {
            let jammed = met.max(one.start).max(preamble) + BIT * 32;
            let whole = one.start + time_on_wire(BIT, one.length);
            assert_eq!(
                one.end,
                jammed.min(whole),
                "{one:?}: its preamble, then its jam of 32 bits"
            );
        }
        self.judge_hearing(one);
    }

    /// It begins when it wants to, or a gap after whom it has heard, and never while it hears anybody, or within the gap
    /// behind him; but who waits for a gap does not listen in its last third.
    fn judge_beginning(&self, one: &Transmission) {
        let own = self.done.iter().filter(|other| other.port == one.port && other.end <= one.start);
        let gaps = own.map(|own| own.end + GAP);
        let mut gaps =
            gaps.chain(self.others(one).map(|other| self.heard_by(one.port, other).1 + GAP));
        let waited_for_gap = gaps.any(|gap| gap == one.start);
        let deaf = if waited_for_gap { GAP / 3 } else { Span::ZERO };
        for other in self.others(one) {
            let (begins, ends) = self.heard_by(one.port, other);
            let allowed = one.start < begins + deaf || one.start >= ends + GAP;
            assert!(
                allowed,
                "{one:?} begins although {other:?} is heard from {begins:?} to {ends:?}"
            );
        }
        let waited = one.start.since(one.wanted).as_picos();
        let (slots, rest) = (waited / SLOT.as_picos(), waited % SLOT.as_picos());
        let backed_off = rest == 0 && slots < 1 << one.met.min(10);
        assert!(one.start >= one.held, "{one:?} begins while its card is busy");
        let has_reason = backed_off || waited_for_gap || one.start == one.held;
        assert!(has_reason, "{one:?} begins for no reason");
    }

    /// Who is meant hears it begin behind its preamble, and end, when its signal is there.
    fn judge_hearing(&self, one: &Transmission) {
        let listeners: Vec<Port> = match one.to {
            Audience::Nobody => Vec::new(),
            Audience::One(port) => vec![port],
            Audience::All => (0..self.wants.len()).filter(|&port| port != one.port).collect(),
        };
        for listener in listeners {
            let (begins, ends) = self.heard_by(listener, one);
            let hears = |at: Tick, what: fn(&MediumAction) -> Option<Port>| {
                self.heard
                    .iter()
                    .any(|(when, action)| *when == at && what(action) == Some(listener))
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
            assert!(hears(begins + BIT * PREAMBLE_BITS, begin), "{listener} hears {one:?} begin");
            assert!(
                hears(ends, if one.collided { fragment } else { frame }),
                "{listener} hears {one:?} end"
            );
        }
    }

    /// Judges everything that has happened, and what was counted of it.
    fn judge_all(&self) {
        self.done.iter().for_each(|one| self.judge(one));
        let sum = |of: &dyn Fn(&Transmission) -> u64| self.done.iter().map(of).sum::<u64>();
        let counted = self.bus.statistics();
        assert_eq!(counted.collisions, sum(&|one| one.collided.into()));
        assert_eq!((counted.frames, counted.given_up, counted.late), (self.sent, self.given_up, 0));
        assert_eq!(counted.bytes, sum(&|one| if one.collided { 0 } else { one.length as u64 }));
        assert_eq!(counted.busy.as_picos(), sum(&|one| one.end.since(one.start).as_picos()));
        for (met, &frames) in (0..).zip(&counted.attempts) {
            assert_eq!(
                frames,
                sum(&|one| (!one.collided && one.met == met).into()),
                "{met} collisions before"
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

/// A random world of so many stations, over so long a cable, of which everybody often has a frame.
fn live(seed: u64, stations: u64, length: u64, repeater: Option<Span>) -> Wire {
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
            0 => Audience::Nobody,
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
fn every_transmission_on_a_cable_or_a_star_obeys_the_standard() {
    let (mut collisions, mut sent) = (0, 0);
    for seed in 0..60 {
        for (stations, length, repeater) in
            [(2, 25, None), (3, 3, None), (5, 25, None), (4, 8, Some(BIT * 24))]
        {
            let wire = live(seed, stations, length, repeater);
            wire.judge_all();
            assert_eq!(wire.frames.held(), 0, "whoever had a frame was told what became of it");
            collisions += wire.bus.statistics().collisions;
            sent += wire.sent;
        }
    }
    assert!(collisions > 5_000 && sent > 5_000, "{collisions} collisions, {sent} frames");
}

#[test]
fn a_frame_that_has_met_others_sixteen_times_is_given_up_and_its_station_has_a_new_one_at_once() {
    let places: Vec<Span> = (0..400).map(|place| Span::from_picos(place * 5_000)).collect();
    let mut wire = Wire::new(&places, None, 1);
    for port in 0..places.len() {
        wire.request(Tick::ZERO, port, 1_518, Audience::Nobody);
    }
    wire.pass_time(Tick::NEVER);
    wire.judge_all();
    assert!(wire.given_up > 0 && wire.given_up + wire.sent == 400, "{} of 400", wire.given_up);
    assert_eq!(wire.frames.held(), 0);
}

#[test]
fn who_hears_the_end_of_a_frame_late_keeps_his_gap_behind_it_although_another_has_begun() {
    let at = |micros: u64| Tick::from_picos(micros * MICRO);
    let mut wire = Wire::new(&[Span::ZERO, Span::ZERO, Span::from_picos(20 * MICRO)], None, 1);
    for (begins, port) in [(0, 0), (30, 1), (70, 2)] {
        wire.request(at(begins), port, SHORTEST, Audience::Nobody);
    }
    wire.pass_time(Tick::NEVER);
    wire.judge_all();
    let first =
        |port: Port| wire.done.iter().filter(|one| one.port == port).map(|one| one.start).min();
    // The first frame is over after 57.6 us; the third station hears that after 77.6.
    assert_eq!(
        (first(1), first(2)),
        (Some(Tick::from_picos(67_200_000)), Some(Tick::from_picos(87_200_000)))
    );
}

#[test]
fn on_a_star_a_signal_takes_both_arms_and_the_repeater_and_is_its_senders_own_at_once() {
    let micros = |count: u64| Span::from_picos(count * MICRO);
    let mut wire = Wire::new(&[micros(1), micros(3), micros(2)], Some(micros(2)), 1);
    wire.request(Tick::ZERO, 0, SHORTEST, Audience::All);
    wire.pass_time(Tick::NEVER);
    let over = Tick::ZERO + time_on_wire(BIT, SHORTEST);
    let ends = wire.heard.iter().filter_map(|&(at, action)| match action {
        MediumAction::Arrived { port, .. } => Some((port, at.since(over))),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(1, micros(6)), (2, micros(5))]);
    // A gap behind its own frame it sends again, and not a repeater later.
    wire.request(over, 0, SHORTEST, Audience::Nobody);
    wire.pass_time(Tick::NEVER);
    assert_eq!(wire.done.last().map(|one| one.start), Some(over + GAP));
}

#[test]
fn in_the_control_without_collisions_whoever_is_first_has_the_cable() {
    let places = [0, 1, 2].map(|place| Span::from_picos(place * MICRO));
    let mut wire = Wire::new(&places, None, 1);
    wire.bus.parameters.collisions = false;
    for turn in 0..20 {
        for port in 0..3 {
            wire.request(Tick::from_picos(turn * 5_000 * MICRO), port, 1_000, Audience::Nobody);
        }
    }
    wire.pass_time(Tick::NEVER);
    let mut ends = wire.done.iter().map(|one| (one.start, one.end)).collect::<Vec<_>>();
    ends.sort_unstable();
    assert_eq!((wire.sent, wire.bus.statistics().collisions), (60, 0));
    assert!(
        ends.windows(2).all(|two| two[0].1 + GAP <= two[1].0),
        "one at a time, a gap between them"
    );
}
