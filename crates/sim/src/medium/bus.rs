//! A coaxial cable that all stations share (IEEE 802.3 §4): carrier sense, collisions, jam and
//! backoff.
//!
//! A station is polled only when it can act: at the end of its backoff, or when the cable becomes
//! idle while the station defers. The computing time for a frame thus grows with the number of
//! deferring stations, not with the number of all stations.
//!
//! The capture effect needs no code of its own, because it follows from the rules of backoff. After
//! its frame, a station begins the next one with an attempt counter of zero. The other stations
//! have collided, so they choose from larger backoff ranges and usually lose against it.

use super::backoff::slots;
use super::{
    Audience, BusParameters, MediumAction, MediumEvent, MediumStatistics, PREAMBLE_BITS, Port,
    SHORTEST, time_on_wire,
};
use crate::frame::FrameId;
use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// Length of the jam in bits. It makes every station sense the collision.
const JAM_BITS: u64 = 32;

/// A coaxial cable, and the access of each station to it.
#[derive(Debug)]
pub(crate) struct Bus {
    parameters: BusParameters,
    /// Longest propagation time between any two stations.
    longest: Span,
    stations: Vec<Station>,
    /// Ports whose stations are transmitting.
    sending: Vec<Port>,
    /// Ports whose stations wait until the cable is idle.
    deferring: Vec<Port>,
    /// Past transmissions, each with its port and end time. They are recorded until all stations
    /// have sensed the end, and the inter-frame gap after it has passed at each station.
    ended: Vec<(Port, Tick)>,
    counted: MediumStatistics,
}

/// A station's access to the cable.
#[derive(Debug)]
struct Station {
    /// Position of the station: the propagation time from one end of the cable.
    place: Span,
    random: Stream,
    state: State,
    /// Version of the station's next scheduled event. An event with an older version is stale.
    plan: u32,
    /// Number of collisions of the frame that is being sent.
    collisions: u8,
    outgoing: Option<Outgoing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The station has no frame to send.
    Idle,
    /// The station waits to transmit. It begins at `planned`, unless the cable is busy then. While
    /// the station defers, `planned` is `NEVER`. In any case it does not begin before `not_before`.
    Waiting { planned: Tick, not_before: Tick },
    /// The station transmits until `end`: its frame, or the jam if the frame has `collided`.
    Sending { start: Tick, end: Tick, collided: bool },
}

/// The frame that a station is sending or waits to send.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    frame: FrameId,
    length: usize,
    to: Audience,
}

impl Bus {
    /// Creates a cable with stations at `places`, given as propagation times from one end of the
    /// cable.
    pub(crate) fn new(parameters: BusParameters, places: &[Span], seed: u64) -> Self {
        let stations = (0..).zip(places).map(|(number, &place)| Station {
            place,
            random: Stream::new(seed, number),
            state: State::Idle,
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

    /// Handles a NIC's request to send a frame, see [`super::Medium::handle_request`].
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
        assert_eq!(station.state, State::Idle, "a station sends one frame at a time");
        station.outgoing = Some(Outgoing { frame, length, to });
        station.collisions = 0;
        self.plan(port, now, actions);
    }

    /// Delays a requested frame, see [`super::Medium::handle_hold`].
    pub(crate) fn handle_hold(&mut self, port: Port, until: Tick, actions: &mut Vec<MediumAction>) {
        let State::Waiting { planned, not_before } = &mut self.stations[port].state else { return };
        *not_before = (*not_before).max(until);
        if *planned != Tick::NEVER {
            let not_before = *not_before;
            self.plan(port, not_before, actions);
        }
    }

    /// Changes the length of a frame being sent, see [`super::Medium::handle_truncation`].
    pub(crate) fn handle_truncation(
        &mut self,
        port: Port,
        length: usize,
        actions: &mut Vec<MediumAction>,
    ) {
        let Some(outgoing) = &mut self.stations[port].outgoing else { return };
        outgoing.length = length;
        // The new length determines when the transmission ends, unless it has already collided.
        // After a collision it ends with the jam, at a time that does not depend on the frame's
        // length.
        if let State::Sending { start, collided: false, .. } = self.stations[port].state {
            let end = start + time_on_wire(self.parameters.bit, length);
            self.begin_until(port, start, end, false, actions);
        }
    }

    /// Handles an expired timer, see [`super::Medium::handle_event`].
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

    /// Returns the propagation time between two stations.
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

    /// Returns the time at which a station has sensed the end of every recorded past transmission;
    /// `None` if none is recorded.
    fn idle_from(&self, port: Port) -> Option<Tick> {
        self.ended.iter().map(|&(other, end)| end + self.distance(other, port)).max()
    }

    /// Schedules the transmission of a station that may begin at `not_before`. The start is at that
    /// time, or at the end of the inter-frame gap if that is later. If the station senses another
    /// transmission before the start, it defers instead. [`Bus::start`] checks the cable once more
    /// at the planned time.
    fn plan(&mut self, port: Port, not_before: Tick, actions: &mut Vec<MediumAction>) {
        let after_gap = self.idle_from(port).map(|idle| idle + self.parameters.gap);
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

    /// Makes a station wait until the cable is idle, and then until `not_before`.
    fn defer(&mut self, port: Port, not_before: Tick) {
        self.stations[port].state = State::Waiting { planned: Tick::NEVER, not_before };
        self.deferring.push(port);
    }

    /// Returns whether a station that is to transmit at `start` defers, because it has sensed the
    /// transmission of `other` by then. If the station has waited for an inter-frame gap, it
    /// ignores a carrier that begins in the last third of that gap (§4.2.3.2.1). Without this rule,
    /// a station that is slightly early could always seize the cable.
    fn defers(&self, port: Port, other: Port, start: Tick, after_gap: bool) -> bool {
        let State::Sending { start: began, .. } = self.stations[other].state else { return false };
        let sensed = began + self.distance(other, port);
        let ignored = if after_gap { self.parameters.gap / 3 } else { Span::ZERO };
        sensed + ignored <= start
    }

    fn start(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        let Some(outgoing) = self.stations[port].outgoing else { return };
        let State::Waiting { planned, not_before } = self.stations[port].state else { return };
        let is_busy =
            self.sending.iter().any(|&other| self.defers(port, other, now, planned > not_before));
        // An experiment can switch collisions off, which no real cable permits. In that case, each
        // station senses every transmission immediately, without a propagation time, and defers.
        if is_busy || (!self.parameters.collisions && !self.sending.is_empty()) {
            return self.defer(port, not_before);
        }
        if self.idle_from(port).is_some_and(|idle| idle + self.parameters.gap > now) {
            // The cable was idle when this start was planned, but another station has used it since
            // then. The gap after that transmission has not passed yet, so the start is planned
            // again.
            return self.plan(port, not_before, actions);
        }
        // Forget past transmissions whose inter-frame gap is over for all stations. The station
        // that is farthest away senses the end of a transmission later than all others, by
        // `self.longest`.
        let kept_for = self.longest + self.parameters.gap;
        self.ended.retain(|&(_, end)| end + kept_for > now);
        let end = now + time_on_wire(self.parameters.bit, outgoing.length);
        self.sending.push(port);
        actions.push(MediumAction::Sending { port, frame: outgoing.frame });
        self.begin_until(port, now, end, false, actions);
        self.collide_with_others(now, port, actions);
        self.signal(
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

    /// Notes the collisions between this station's transmission, which begins now, and all
    /// transmissions in progress. The station has not sensed these, or ignores them as
    /// [`Bus::defers`] permits.
    fn collide_with_others(&mut self, now: Tick, port: Port, actions: &mut Vec<MediumAction>) {
        for index in 0..self.sending.len() {
            let other = self.sending[index];
            if other != port {
                let sensed = now + self.distance(port, other);
                self.collide(other, sensed, actions);
                if let State::Sending { start, .. } = self.stations[other].state {
                    self.collide(port, (start + self.distance(port, other)).max(now), actions);
                }
            }
        }
    }

    /// Makes a transmitting station react to a collision that it senses at `sensed`. It sends the
    /// rest of its preamble if that is not complete, then the jam, and stops (§4.2.3.2.4).
    fn collide(&mut self, port: Port, sensed: Tick, actions: &mut Vec<MediumAction>) {
        let State::Sending { start, end, collided } = self.stations[port].state else { return };
        let Some(Outgoing { frame, .. }) = self.stations[port].outgoing else { return };
        let jammed = sensed.max(start + self.bits(PREAMBLE_BITS)) + self.bits(JAM_BITS);
        if !collided {
            self.counted.collisions += 1;
            self.counted.late += u64::from(sensed.since(start) > self.slot());
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
            self.signal(
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
            self.release_deferring(actions);
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
            (station.state, station.outgoing) = (State::Idle, None);
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
        (station.state, station.outgoing) = (State::Idle, None);
        self.counted.frames += 1;
        self.counted.bytes += outgoing.length as u64;
        self.counted.attempts[usize::from(station.collisions) % 16] += 1;
        let frame = outgoing.frame;
        let arrived = |port| MediumAction::Arrived { port, at: now, frame, intact: true };
        self.signal(outgoing.to, port, arrived, Span::ZERO, actions);
        actions.push(MediumAction::Sent { port, frame });
    }

    /// Delivers a signal to each receiver of a frame. `what` returns the signal for a receiver's
    /// port. It arrives after the time `after`, plus the propagation time to this receiver.
    fn signal(
        &self,
        to: Audience,
        from: Port,
        what: impl Fn(Port) -> MediumAction,
        after: Span,
        actions: &mut Vec<MediumAction>,
    ) {
        let mut deliver = |port: Port| {
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
            Audience::None => {}
            Audience::One(port) => deliver(port),
            Audience::All => {
                (0..self.stations.len()).filter(|&port| port != from).for_each(deliver);
            }
        }
    }

    /// Schedules the transmissions of all deferring stations, after the cable has become idle.
    fn release_deferring(&mut self, actions: &mut Vec<MediumAction>) {
        let mut deferring = std::mem::take(&mut self.deferring);
        for port in deferring.drain(..) {
            if let State::Waiting { not_before, .. } = self.stations[port].state {
                self.plan(port, not_before, actions);
            }
        }
        // `plan` lets a station defer only while another one transmits. No station transmits now,
        // so `self.deferring` is still empty. The drained vector is put back only to keep its
        // allocation.
        self.deferring = deferring;
    }

    fn slot(&self) -> Span {
        self.bits(8 * SHORTEST as u64)
    }

    /// Checks the invariants.
    pub(crate) fn check(&self) {
        let sends = |port: &Port| matches!(self.stations[*port].state, State::Sending { .. });
        assert!(self.sending.iter().all(sends), "a port in `sending` transmits");
        let collided = |port: &Port| {
            matches!(self.stations[*port].state, State::Sending { collided: true, .. })
        };
        let torn = self.sending.len() < 2 || self.sending.iter().all(collided);
        assert!(torn, "simultaneous transmissions have all collided");
        let waits = |port: &Port| {
            matches!(self.stations[*port].state, State::Waiting { planned: Tick::NEVER, .. })
        };
        assert!(self.deferring.iter().all(waits), "a port in `deferring` waits");
        assert!(
            !self.sending.is_empty() || self.deferring.is_empty(),
            "no station defers to an idle cable"
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

    /// Simulates two stations that both have a frame to send after a first frame.
    ///
    /// Station 0 sends the first frame, and requests to send a second one within the inter-frame
    /// gap after it. Station 1 requests to send during the first frame. Its NIC delays that request
    /// until the time `held` after the first frame; with `None`, it does not delay it. Returns the
    /// number of collisions, and the ports in the order of their successful frames.
    fn contend_after_frame(held: Option<Span>) -> (u64, Vec<Port>) {
        let (rate, bit) = (Rate::from_bits_per_second(10_000_000), Span::from_picos(100_000));
        let metre = Span::from_picos(4_330);
        let parameters =
            BusParameters { rate, bit, gap: bit * 96, metre, collisions: true, repeater: None };
        let mut bus = Bus::new(parameters, &[Span::ZERO, Span::from_picos(MICRO / 2)], 1);
        let (mut frames, mut queue, mut actions, mut sent) =
            (Frames::new(64), Vec::new(), Vec::new(), Vec::new());
        let [first, second, other] = [(); 3].map(|()| frames.take());
        let to = Audience::None;
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

    /// IEEE 802.3 §4.2.3.2.4: a station must sense a collision within its slot time. If the cable
    /// is so long that it senses the collision later, the collision counts as late.
    #[test]
    fn a_collision_sensed_after_the_slot_time_is_late() {
        let (rate, bit) = (Rate::from_bits_per_second(10_000_000), Span::from_picos(100_000));
        let metre = Span::from_picos(4_330);
        let parameters =
            BusParameters { rate, bit, gap: bit * 96, metre, collisions: true, repeater: None };
        // The two stations are `distance` us apart. Station 1 begins 1 us before the signal of
        // station 0 would reach it. Its own signal takes `distance` us to station 0, which then
        // senses the collision. This is 49, 59 or 89 us after station 0 began. The slot time is
        // 51.2 us, so the collisions after 59 and 89 us are late.
        for (distance, late) in [(25, 0), (30, 1), (45, 1)] {
            let mut bus =
                Bus::new(parameters.clone(), &[Span::ZERO, Span::from_picos(distance * MICRO)], 1);
            let (mut frames, mut actions) = (Frames::new(64), Vec::new());
            let (start, later) = (Tick::ZERO, Tick::from_picos((distance - 1) * MICRO));
            for (port, now) in [(0, start), (1, later)] {
                bus.handle_request(now, port, frames.take(), 1_000, Audience::None, &mut actions);
                let begin = actions.iter().find_map(|action| match *action {
                    MediumAction::Later { at, event: event @ MediumEvent::Start { .. } } => {
                        Some((at, event))
                    }
                    _ => None,
                });
                let (at, event) = begin.expect("it senses an idle cable");
                actions.clear();
                bus.handle_event(at, event, &mut actions);
            }
            let counted = bus.statistics();
            assert_eq!((counted.collisions, counted.late), (2, late), "{distance} us apart");
        }
    }

    #[test]
    fn a_station_held_longer_than_the_gap_defers_to_the_next_frame() {
        let (collisions, _) = contend_after_frame(None);
        assert!(collisions >= 2, "two stations that defer to one frame collide after it");
        assert_eq!(contend_after_frame(Some(Span::from_picos(16 * MICRO))), (0, vec![0, 0, 1]));
    }
}
