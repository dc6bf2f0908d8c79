//! A coaxial cable that all stations share, after IEEE 802.3 §4: carrier sense, collisions, jam and backoff.
//!
//! Nothing is told twice: a station with nothing to send is asked nothing, and one that waits for its backoff looks at
//! the cable when that is over and not before, so that a frame costs as much on a bus with two stations as on one with
//! a hundred, but for those who wait for its very end. The capture effect (whoever wins
//! starts its next frame with a fresh counter, against a loser whose range has grown) is no rule here; it follows.

use super::backoff::slots;
use super::{
    Audience, BusParameters, MediumAction, MediumEvent, MediumStatistics, PREAMBLE_BITS, Port,
    SHORTEST, time_on_wire,
};
use crate::frame::FrameId;
use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// Bits of the jam that makes sure that everybody hears a collision.
const JAM_BITS: u64 = 32;

/// The cable and the stations' access to it.
#[derive(Debug)]
pub(crate) struct Bus {
    parameters: BusParameters,
    /// How long a signal takes at most.
    longest: Span,
    stations: Vec<Station>,
    /// Ports that send now.
    sending: Vec<Port>,
    /// Ports that wait for the cable to be free.
    deferring: Vec<Port>,
    /// When those have ended that somebody may hear, or keep a gap behind.
    ended: Vec<(Port, Tick)>,
    counted: MediumStatistics,
}

/// A station's access to the cable.
#[derive(Debug)]
struct Station {
    /// How long a signal takes from the end of the cable to it.
    place: Span,
    random: Stream,
    state: State,
    /// Changes with every new plan, so that what was planned before is known to be void.
    plan: u32,
    /// Collisions of the present frame.
    collisions: u8,
    outgoing: Option<Outgoing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing to send.
    Silent,
    /// Will send at this time if the cable lets it; NEVER until the cable is free again.
    Waiting { planned: Tick, not_before: Tick },
    /// Sends until `end`.
    Sending { start: Tick, end: Tick, collided: bool },
}

/// What a station has to send.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    frame: FrameId,
    length: usize,
    to: Audience,
}

impl Bus {
    /// A cable with stations at these distances from its end, in signal time.
    pub(crate) fn new(parameters: BusParameters, places: &[Span], seed: u64) -> Self {
        let stations = (0..).zip(places).map(|(number, &place)| Station {
            place,
            random: Stream::new(seed, number),
            state: State::Silent,
            plan: 0,
            collisions: 0,
            outgoing: None,
        });
        let stations = stations.collect::<Vec<_>>();
        let furthest = places.iter().max().copied().unwrap_or_default();
        Self {
            longest: parameters.longest(furthest),
            parameters,
            sending: Vec::with_capacity(stations.len()),
            deferring: Vec::with_capacity(stations.len()),
            ended: Vec::with_capacity(stations.len()),
            stations,
            counted: MediumStatistics::default(),
        }
    }

    pub(crate) const fn statistics(&self) -> &MediumStatistics {
        &self.counted
    }

    /// See [`super::Medium::handle_request`].
    pub(crate) fn handle_request(
        &mut self,
        now: Tick,
        port: Port,
        frame: FrameId,
        length: usize,
        to: Audience,
        actions: &mut Vec<MediumAction>,
    ) {
        let station = &mut self.stations[port];
        assert_eq!(station.state, State::Silent, "a station sends one frame at a time");
        station.outgoing = Some(Outgoing { frame, length, to });
        station.collisions = 0;
        self.plan(port, now, actions);
    }

    /// See [`super::Medium::handle_hold`].
    pub(crate) fn handle_hold(&mut self, port: Port, until: Tick, actions: &mut Vec<MediumAction>) {
        let State::Waiting { planned, not_before } = &mut self.stations[port].state else { return };
        *not_before = (*not_before).max(until);
        if *planned != Tick::NEVER {
            let not_before = *not_before;
            self.plan(port, not_before, actions);
        }
    }

    /// See [`super::Medium::handle_cut`].
    pub(crate) fn handle_cut(
        &mut self,
        port: Port,
        length: usize,
        actions: &mut Vec<MediumAction>,
    ) {
        let Some(outgoing) = &mut self.stations[port].outgoing else { return };
        outgoing.length = length;
        // A collision has an end of its own.
        if let State::Sending { start, collided: false, .. } = self.stations[port].state {
            let end = start + time_on_wire(self.parameters.bit, length);
            self.begin_until(port, start, end, false, actions);
        }
    }

    /// See [`super::Medium::handle_event`].
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: MediumEvent,
        actions: &mut Vec<MediumAction>,
    ) {
        match event {
            MediumEvent::Start { port, plan } if self.stations[port].plan == plan => {
                self.start(now, port, actions);
            }
            MediumEvent::End { port, plan } if self.stations[port].plan == plan => {
                self.end(now, port, actions);
            }
            MediumEvent::Start { .. }
            | MediumEvent::End { .. }
            | MediumEvent::Reached { .. }
            | MediumEvent::Passed { .. } => {}
        }
    }

    /// How long a signal takes between two stations.
    fn distance(&self, from: Port, to: Port) -> Span {
        let (one, other) = (self.stations[from].place, self.stations[to].place);
        match self.parameters.repeater {
            Some(repeater) if from != to => one + repeater + other,
            Some(_) | None => {
                if one > other {
                    one - other
                } else {
                    other - one
                }
            }
        }
    }

    fn bits(&self, count: u64) -> Span {
        self.parameters.bit * count
    }

    /// When a station hears the cable fall silent, as far as it is known now.
    fn silent_from(&self, port: Port) -> Option<Tick> {
        self.ended.iter().map(|&(other, end)| end + self.distance(other, port)).max()
    }

    /// A station that wants to send from `not_before` on decides when: after the gap, if it hears nobody. It looks again
    /// when that time has come ([`Bus::start`]).
    fn plan(&mut self, port: Port, not_before: Tick, actions: &mut Vec<MediumAction>) {
        let after_gap = self.silent_from(port).map(|silent| silent + self.parameters.gap);
        let start = not_before.max(after_gap.unwrap_or_default());
        let waits = start > not_before;
        let is_free = self.sending.iter().all(|&other| !self.defers(port, other, start, waits));
        let station = &mut self.stations[port];
        station.plan = station.plan.wrapping_add(1);
        if is_free {
            station.state = State::Waiting { planned: start, not_before };
            let event = MediumEvent::Start { port, plan: station.plan };
            actions.push(MediumAction::Later { at: start, event });
        } else {
            self.defer(port, not_before);
        }
    }

    /// A station waits until the cable is free.
    fn defer(&mut self, port: Port, not_before: Tick) {
        self.stations[port].state = State::Waiting { planned: Tick::NEVER, not_before };
        self.deferring.push(port);
    }

    /// Does a station that would send at `start` hear `other` early enough to wait for it? In the last third of
    /// the gap it does not listen any more (§4.2.3.2.1), so that nobody can take the cable by being a little early.
    fn defers(&self, port: Port, other: Port, start: Tick, after_gap: bool) -> bool {
        let State::Sending { start: began, .. } = self.stations[other].state else { return false };
        let heard = began + self.distance(other, port);
        let deaf = if after_gap { self.parameters.gap / 3 } else { Span::ZERO };
        heard + deaf <= start
    }

    fn start(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        let Some(outgoing) = self.stations[port].outgoing else { return };
        let State::Waiting { planned, not_before } = self.stations[port].state else { return };
        let hears =
            self.sending.iter().any(|&other| self.defers(port, other, now, planned > not_before));
        // In the control without collisions whoever is first has the cable, without a word.
        if hears || (!self.parameters.collisions && !self.sending.is_empty()) {
            return self.defer(port, not_before);
        }
        if self.silent_from(port).is_some_and(|silent| silent + self.parameters.gap > now) {
            // The cable has been used since it made its plan.
            return self.plan(port, not_before, actions);
        }
        // Whoever hears of the last ones later than this station does keeps his gap, too.
        let heard_for = self.longest + self.parameters.gap;
        self.ended.retain(|&(_, end)| end + heard_for > now);
        let end = now + time_on_wire(self.parameters.bit, outgoing.length);
        self.sending.push(port);
        actions.push(MediumAction::Sending { port, frame: outgoing.frame });
        self.begin_until(port, now, end, false, actions);
        self.meet_others(now, port, actions);
        self.tell(
            outgoing.to,
            port,
            |port| MediumAction::Arriving { port, at: now },
            self.bits(PREAMBLE_BITS),
            actions,
        );
    }

    fn begin_until(
        &mut self,
        port: Port,
        start: Tick,
        end: Tick,
        collided: bool,
        actions: &mut Vec<MediumAction>,
    ) {
        let station = &mut self.stations[port];
        station.plan = station.plan.wrapping_add(1);
        station.state = State::Sending { start, end, collided };
        actions.push(MediumAction::Later {
            at: end,
            event: MediumEvent::End { port, plan: station.plan },
        });
    }

    /// Whoever sends already has not been heard here: both meet.
    fn meet_others(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        for index in 0..self.sending.len() {
            let other = self.sending[index];
            if other != port {
                let hears_it = now + self.distance(port, other);
                self.collide(other, hears_it, actions);
                if let State::Sending { start, .. } = self.stations[other].state {
                    self.collide(port, (start + self.distance(port, other)).max(now), actions);
                }
            }
        }
    }

    /// A station that sends hears another one: it finishes its preamble, sends the jam and ends (§4.2.3.2.4).
    fn collide(&mut self, port: Port, hears_it: Tick, actions: &mut Vec<MediumAction>) {
        let State::Sending { start, end, collided } = self.stations[port].state else { return };
        let Some(Outgoing { frame, .. }) = self.stations[port].outgoing else { return };
        let jammed = hears_it.max(start + self.bits(PREAMBLE_BITS)) + self.bits(JAM_BITS);
        if !collided {
            self.counted.collisions += 1;
            self.counted.late += u64::from(hears_it.since(start) > self.slot());
            actions.push(MediumAction::Collided { port, frame });
        }
        if jammed < end || !collided {
            self.begin_until(port, start, jammed.min(end), true, actions);
        }
    }

    fn end(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        let State::Sending { start, collided, .. } = self.stations[port].state else { return };
        let Some(outgoing) = self.stations[port].outgoing else { return };
        self.counted.busy += now.since(start);
        self.sending.retain(|&other| other != port);
        self.ended.push((port, now));
        if collided {
            self.tell(
                outgoing.to,
                port,
                |port| MediumAction::Fragment { port, at: now },
                Span::ZERO,
                actions,
            );
            self.back_off(now, port, outgoing.frame, actions);
        } else {
            self.deliver(now, port, outgoing, actions);
        }
        if self.sending.is_empty() {
            self.let_others_go(actions);
        }
    }

    fn back_off(&mut self, now: Tick, port: Port, frame: FrameId, actions: &mut Vec<MediumAction>) {
        let slot = self.slot();
        let station = &mut self.stations[port];
        station.collisions += 1;
        if let Some(slots) = slots(&mut station.random, station.collisions) {
            self.counted.backoff += slot * slots;
            self.counted.backoffs[slots.checked_ilog2().map_or(0, |log| log as usize + 1)] += 1;
            self.plan(port, now + slot * slots, actions);
        } else {
            (station.state, station.outgoing) = (State::Silent, None);
            self.counted.given_up += 1;
            actions.push(MediumAction::GivenUp { port, frame });
        }
    }

    fn deliver(
        &mut self,
        now: Tick,
        port: Port,
        outgoing: Outgoing,
        actions: &mut Vec<MediumAction>,
    ) {
        let station = &mut self.stations[port];
        (station.state, station.outgoing) = (State::Silent, None);
        self.counted.frames += 1;
        self.counted.bytes += outgoing.length as u64;
        self.counted.attempts[usize::from(station.collisions) % 16] += 1;
        let frame = outgoing.frame;
        let arrived = |port| MediumAction::Arrived { port, at: now, frame, intact: true };
        self.tell(outgoing.to, port, arrived, Span::ZERO, actions);
        actions.push(MediumAction::Sent { port, frame });
    }

    /// Tells those whom a frame is for what they hear, each at its own time.
    fn tell(
        &self,
        to: Audience,
        from: Port,
        what: impl Fn(Port) -> MediumAction,
        after: Span,
        actions: &mut Vec<MediumAction>,
    ) {
        let mut tell = |port: Port| {
            let later = self.distance(from, port) + after;
            actions.push(match what(port) {
                MediumAction::Arriving { port, at } => {
                    MediumAction::Arriving { port, at: at + later }
                }
                MediumAction::Fragment { port, at } => {
                    MediumAction::Fragment { port, at: at + later }
                }
                MediumAction::Arrived { port, at, frame, intact } => {
                    MediumAction::Arrived { port, at: at + later, frame, intact }
                }
                other @ (MediumAction::Later { .. }
                | MediumAction::Sending { .. }
                | MediumAction::Collided { .. }
                | MediumAction::Sent { .. }
                | MediumAction::GivenUp { .. }) => other,
            });
        };
        match to {
            Audience::Nobody => {}
            Audience::One(port) => tell(port),
            Audience::All => (0..self.stations.len()).filter(|&port| port != from).for_each(tell),
        }
    }

    /// The cable is free: whoever waited for that makes a new plan.
    fn let_others_go(&mut self, actions: &mut Vec<MediumAction>) {
        let mut deferring = std::mem::take(&mut self.deferring);
        for port in deferring.drain(..) {
            if let State::Waiting { not_before, .. } = self.stations[port].state {
                self.plan(port, not_before, actions);
            }
        }
        // Nobody sends, so nobody waits again, and the room is kept.
        self.deferring = deferring;
    }

    fn slot(&self) -> Span {
        self.bits(8 * SHORTEST as u64)
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        let sends = |port: &Port| matches!(self.stations[*port].state, State::Sending { .. });
        assert!(self.sending.iter().all(sends), "who is said to send sends");
        let collided = |port: &Port| {
            matches!(self.stations[*port].state, State::Sending { collided: true, .. })
        };
        let torn = self.sending.len() < 2 || self.sending.iter().all(collided);
        assert!(torn, "of two who send at one time neither gets its frame through");
        let waits = |port: &Port| {
            matches!(self.stations[*port].state, State::Waiting { planned: Tick::NEVER, .. })
        };
        assert!(self.deferring.iter().all(waits), "who is said to wait waits");
        assert!(
            !self.sending.is_empty() || self.deferring.is_empty(),
            "nobody waits for a cable that is free"
        );
    }
}

#[cfg(test)]
mod laws;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use linerate_units::Rate;

    const MICRO: u64 = 1_000_000;

    /// What happens on a cable where station 0 has sent a frame and has another ready within the gap, and station 1
    /// wants to send since the middle of the first one, but is held for so long after its end: collisions, and who has
    /// sent when everybody has.
    fn after_a_frame(held: Option<Span>) -> (u64, Vec<Port>) {
        let (rate, bit) = (Rate::from_bits_per_second(10_000_000), Span::from_picos(100_000));
        let metre = Span::from_picos(4_330);
        let parameters =
            BusParameters { rate, bit, gap: bit * 96, metre, collisions: true, repeater: None };
        let mut bus = Bus::new(parameters, &[Span::ZERO, Span::from_picos(MICRO / 2)], 1);
        let (mut frames, mut queue, mut actions, mut sent) =
            (Frames::new(64), Vec::new(), Vec::new(), Vec::new());
        let [first, second, other] = [(); 3].map(|()| frames.take());
        let to = Audience::Nobody;
        bus.handle_request(Tick::ZERO, 0, first, 1_000, to, &mut actions);
        bus.handle_request(Tick::from_picos(400 * MICRO), 1, other, 64, to, &mut actions);
        loop {
            for action in std::mem::take(&mut actions) {
                match action {
                    MediumAction::Later { at, event } => queue.push((at, event)),
                    MediumAction::Sent { port, .. } => sent.push(port),
                    _ => {}
                }
            }
            let Some(next) = (0..queue.len()).min_by_key(|&index| queue[index].0) else { break };
            let (now, event) = queue.remove(next);
            let before = sent.len();
            bus.handle_event(now, event, &mut actions);
            let has_sent =
                actions.iter().any(|action| matches!(action, MediumAction::Sent { port: 0, .. }));
            if has_sent && before == 0 {
                bus.handle_request(now + bit * 50, 0, second, 1_000, to, &mut actions);
                if let Some(held) = held {
                    bus.handle_hold(1, now + held, &mut actions);
                }
            }
            bus.check();
        }
        (bus.statistics().collisions, sent)
    }

    #[test]
    fn who_is_held_longer_than_the_gap_hears_the_next_frame_and_waits_without_a_collision() {
        let (met, _) = after_a_frame(None);
        assert!(met >= 2, "two who wait for the same frame to end meet for certain");
        assert_eq!(after_a_frame(Some(Span::from_picos(16 * MICRO))), (0, vec![0, 0, 1]));
    }
}
