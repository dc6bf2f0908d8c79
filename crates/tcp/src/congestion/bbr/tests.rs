//! Tests of BBR on a simulated path: a link with a fixed rate, and a queue in front of it.

use super::*;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use linerate_wire::SeqNum;

const MSS: u32 = 1_000;
const MEGABITS_20: Rate = Rate::from_bits_per_second(20_000_000);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A segment that was sent and has not been acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    flow: usize,
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    in_flight: u32,
    lost: u64,
}

enum Event {
    Acknowledged(Sent),
    Lost(Sent),
    Due(usize),
}

/// A sender that always has data to send.
struct Flow {
    bbr: Bbr,
    begins: Instant,
    in_flight: u32,
    next: Instant,
    due: bool,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    recovers_until: Option<Instant>,
    round_trips: VecDeque<(Instant, Duration)>,
    history: Vec<(Instant, u64)>,
}

struct Path {
    now: Instant,
    rate: Rate,
    delay: Duration,
    /// The maximum time that a segment waits in the queue. A segment that would wait longer is
    /// dropped.
    queue: Duration,
    /// The probability of a random loss, in thousandths. `random` decides for each segment whether
    /// it is lost.
    loss: u64,
    random: Random,
    busy: Instant,
    flows: Vec<Flow>,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
}

impl Path {
    fn new(delay: Duration, queue: Duration, loss: u64) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1);
        Self {
            now,
            rate: MEGABITS_20,
            delay,
            queue,
            loss,
            random: Random::new(1),
            busy: now,
            flows: Vec::new(),
            events: BTreeMap::new(),
            count: 0,
        }
    }

    fn add(&mut self, begins: Duration) {
        let begins = Instant::ZERO + Duration::from_secs(1) + begins;
        let flow = self.flows.len();
        self.flows.push(Flow {
            bbr: Bbr::new(Window::new(MSS, 10), flow as u64),
            begins,
            in_flight: 0,
            next: begins,
            due: true,
            delivered: 0,
            delivered_at: begins,
            first_sent: begins,
            lost: 0,
            recovers_until: None,
            round_trips: VecDeque::new(),
            history: Vec::new(),
        });
        self.at(begins, Event::Due(flow));
    }

    fn at(&mut self, time: Instant, event: Event) {
        self.count += 1;
        self.events.insert((time, self.count), event);
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((now, _), event) = entry.remove_entry();
            self.now = now;
            let flow = match event {
                Event::Acknowledged(sent) => self.acknowledge(sent),
                Event::Lost(sent) => self.lose(sent),
                Event::Due(flow) => {
                    self.flows[flow].due = false;
                    flow
                }
            };
            self.send(flow);
        }
        self.now = end;
    }

    fn send(&mut self, index: usize) {
        let now = self.now;
        loop {
            let flow = &mut self.flows[index];
            if now < flow.begins || flow.in_flight + MSS > flow.bbr.window.cwnd() {
                return;
            }
            if flow.next > now {
                let (next, was_due) = (flow.next, core::mem::replace(&mut flow.due, true));
                if !was_due {
                    self.at(next, Event::Due(index));
                }
                return;
            }
            flow.next = now + flow.bbr.pacing_rate().time_for(Bytes::new(u64::from(MSS)));
            if flow.in_flight == 0 {
                (flow.first_sent, flow.delivered_at) = (now, now);
            }
            flow.in_flight += MSS;
            let sent = Sent {
                flow: index,
                at: now,
                delivered: flow.delivered,
                delivered_at: flow.delivered_at,
                first_sent: flow.first_sent,
                in_flight: flow.in_flight,
                lost: flow.lost,
            };
            self.pass(sent);
        }
    }

    /// Sends a segment through the queue and the link. The loss of a segment is detected at the
    /// time when the segment would have arrived.
    fn pass(&mut self, sent: Sent) {
        let free = self.busy.max(self.now);
        let is_full = free.since(self.now) > self.queue;
        let is_lost = self.random.below(1_000) < self.loss;
        let leaves = free + self.rate.time_for(Bytes::new(u64::from(MSS)));
        if !is_full {
            self.busy = leaves;
        }
        let event = if is_full || is_lost { Event::Lost(sent) } else { Event::Acknowledged(sent) };
        self.at(leaves + self.delay, event);
    }

    fn acknowledge(&mut self, sent: Sent) -> usize {
        let now = self.now;
        let flow = &mut self.flows[sent.flow];
        flow.delivered += u64::from(MSS);
        flow.delivered_at = now;
        flow.first_sent = sent.at;
        flow.in_flight -= MSS;
        let interval = sent.at.since(sent.first_sent).max(now.since(sent.delivered_at));
        let round_trip = now.since(sent.at);
        let ack = Acknowledged {
            bytes: MSS,
            count: 1,
            number: SeqNum::new(0),
            sent: SeqNum::new(0),
            now,
            smoothed: Some(round_trip),
            round_trip: Some(round_trip),
            lost: 0,
            in_flight: flow.in_flight,
            sample: Some(RateSample {
                delivered: flow.delivered,
                prior_delivered: sent.delivered,
                interval,
                application_limited: false,
                in_flight_at_send: sent.in_flight,
                lost: flow.lost - sent.lost,
            }),
        };
        flow.bbr.on_every_acknowledgement(&ack);
        if flow.recovers_until.is_some_and(|until| sent.at > until) {
            flow.recovers_until = None;
            flow.bbr.on_recovered();
        }
        flow.round_trips.push_back((now, round_trip));
        flow.history.push((now, flow.delivered));
        sent.flow
    }

    fn lose(&mut self, sent: Sent) -> usize {
        let flow = &mut self.flows[sent.flow];
        flow.in_flight -= MSS;
        flow.lost += u64::from(MSS);
        flow.bbr.on_lost(&Lost {
            bytes: MSS,
            in_flight_at_send: sent.in_flight,
            since_sent: flow.lost - sent.lost,
            application_limited: false,
        });
        if flow.recovers_until.is_none() {
            flow.recovers_until = Some(self.now);
            flow.bbr.on_loss(flow.in_flight);
        }
        sent.flow
    }

    /// Returns the delivery rate of `flow` in the last `span` of the simulation, in per cent of the
    /// link's rate.
    fn share(&self, flow: usize, span: Duration) -> u64 {
        let since = self.now - span;
        let flow = &self.flows[flow];
        let before =
            flow.history.iter().rev().find(|(at, _)| *at < since).map_or(0, |(_, bytes)| *bytes);
        (flow.delivered - before) * 100 / self.rate.bytes_in(span).count()
    }

    /// Returns the median round-trip time of `flow` in the last `span` of the simulation.
    fn median_round_trip(&self, flow: usize, span: Duration) -> Duration {
        let since = self.now - span;
        let recent = self.flows[flow].round_trips.iter().filter(|(at, _)| *at >= since);
        let mut times: Vec<_> = recent.map(|(_, round_trip)| *round_trip).collect();
        times.sort_unstable();
        times[times.len() / 2]
    }
}

#[test]
fn one_flow_finds_the_rate_and_keeps_the_queue_short() {
    for delay in [5, 40, 200] {
        // The queue has room for the data that the link sends in eight round trips.
        let mut path = Path::new(ms(delay), ms(delay * 8), 0);
        path.add(Duration::ZERO);
        path.run(Duration::from_secs(20));
        let span = Duration::from_secs(10);
        let (share, round_trip) = (path.share(0, span), path.median_round_trip(0, span));
        assert!(share >= 90, "{delay} ms: {share} %");
        assert!(round_trip < ms(delay * 3 / 2 + 2), "{delay} ms: {round_trip}");
        assert_eq!(path.flows[0].lost, 0, "{delay} ms");
    }
}

#[test]
fn the_pipe_is_full_after_a_logarithm_of_round_trips() {
    let mut path = Path::new(ms(100), ms(1_000), 0);
    path.add(Duration::ZERO);
    path.run(ms(2_200));
    assert!(path.flows[0].bbr.full_pipe.reached, "{:?}", path.flows[0].bbr.phase);
    assert!(path.flows[0].bbr.phase.is_probe_bandwidth(), "{:?}", path.flows[0].bbr.phase);
}

#[test]
fn a_shallow_queue_costs_little() {
    let mut path = Path::new(ms(40), ms(4), 0);
    path.add(Duration::ZERO);
    path.run(Duration::from_secs(30));
    let share = path.share(0, Duration::from_secs(20));
    assert!(share >= 75, "{share} %");
    let flow = &path.flows[0];
    let lost = flow.lost * 1_000 / (flow.delivered + flow.lost);
    assert!(lost <= 30, "{lost} ‰ lost");
}

/// With random losses of 1 % and 2 %, BBR must use at least 75 % and 40 % of the link. With these
/// losses, Reno would use only 12 % and 9 %: its window in segments is 1.22 divided by the square
/// root of the loss rate.
#[test]
fn random_losses_do_not_stop_the_flow() {
    for (loss, least) in [(10, 75), (20, 40)] {
        let mut path = Path::new(ms(40), ms(80), loss);
        path.add(Duration::ZERO);
        path.run(Duration::from_secs(40));
        let share = path.share(0, Duration::from_secs(30));
        assert!(share >= least, "{loss} ‰: {share} %");
    }
}

#[test]
fn a_path_that_becomes_wider_or_narrower_is_found_again() {
    let mut path = Path::new(ms(40), ms(200), 0);
    path.add(Duration::ZERO);
    path.run(Duration::from_secs(10));
    path.rate = Rate::from_bits_per_second(60_000_000);
    path.run(Duration::from_secs(30));
    let wider = path.share(0, Duration::from_secs(10));
    assert!(wider >= 85, "wider: {wider} %");
    path.rate = Rate::from_bits_per_second(10_000_000);
    path.run(Duration::from_secs(30));
    let (narrower, round_trip) = (
        path.share(0, Duration::from_secs(10)),
        path.median_round_trip(0, Duration::from_secs(10)),
    );
    assert!(narrower >= 85, "narrower: {narrower} %");
    assert!(round_trip < ms(100), "{round_trip}");
}

#[test]
fn the_queue_is_drained_every_five_seconds_to_measure_the_round_trip() {
    let mut path = Path::new(ms(40), ms(400), 0);
    path.add(Duration::ZERO);
    let mut pauses = 0;
    let mut was_paused = false;
    for _ in 0..6_000 {
        path.run(ms(5));
        let is_paused = path.flows[0].bbr.phase == Phase::ProbeRtt;
        pauses += u32::from(is_paused && !was_paused);
        was_paused = is_paused;
    }
    assert!((1..=6).contains(&pauses), "{pauses} in 30 s");
    let found = path.flows[0].bbr.round_trip.shortest().unwrap();
    assert!(found < ms(41), "{found}");
}

#[test]
fn two_flows_share_and_a_late_one_gets_its_part() {
    let mut path = Path::new(ms(40), ms(160), 0);
    path.add(Duration::ZERO);
    path.add(Duration::from_secs(10));
    path.run(Duration::from_secs(60));
    let span = Duration::from_secs(20);
    let shares = [path.share(0, span), path.share(1, span)];
    assert!(shares.iter().all(|&share| share >= 25), "{shares:?}");
    assert!(shares.iter().sum::<u64>() >= 85, "{shares:?}");
}
