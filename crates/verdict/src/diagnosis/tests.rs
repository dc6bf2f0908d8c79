//! Tests of the diagnosis with made-up figures of runs.

use super::*;
use linerate_evidence::{
    Change, ConnectionEvidence, Distribution, EndEvidence, QueueEvidence, RunEvidence,
    SenderStates, ThreadEvidence,
};

/// The figures of a made-up run of one second.
#[derive(Clone, Copy)]
struct Figures {
    /// Throughput in bytes per second.
    rate: f64,
    /// Shares of samples in which the sender was in each state: buffer full, out of data, window
    /// full, congestion window full, and held back by pacing or a local queue.
    states: [f64; 5],
    /// Processor time of the sender and of the receiver, as shares of the duration.
    cpu: [f64; 2],
    /// Mean amount of unread data, as a share of the receive window.
    unread: f64,
    /// Number of retransmitted segments among 100,000 sent segments.
    lost: u64,
    /// Number of expirations of the retransmission timer.
    timeouts: u64,
    /// Ratio of the mean round-trip time to the shortest round-trip time.
    round_trip_ratio: f64,
    /// Ratio of the largest congestion window in the observed part of the run to the largest one
    /// before it.
    growth: f64,
    slow_start: bool,
    /// Duration of the run, in multiples of the mean round-trip time.
    round_trips: f64,
    /// Number of packets that the receiving machine dropped.
    dropped: u64,
    /// Time for which a thread at each end was ready to run but waited for a CPU, as a share of the
    /// duration.
    waited: f64,
}

/// The figures of a run that shows no sign of any limit. Tests change single figures.
const PLAIN: Figures = Figures {
    rate: 1e6,
    states: [0.0; 5],
    cpu: [0.1, 0.1],
    unread: 0.0,
    lost: 0,
    timeouts: 0,
    round_trip_ratio: 1.0,
    growth: 1.0,
    slow_start: false,
    round_trips: 100.0,
    dropped: 0,
    waited: 0.0,
};

/// The states of a sender that mostly waits for room in its send buffer.
const BUFFER: [f64; 5] = [0.9, 0.0, 0.1, 0.0, 0.0];
/// The states of a sender that mostly has no data.
const OUT: [f64; 5] = [0.0, 0.9, 0.0, 0.0, 0.1];
/// The states of a sender that mostly waits for the receiver's window.
const WINDOW: [f64; 5] = [0.0, 0.0, 0.9, 0.1, 0.0];
/// The states of a sender that mostly waits for its congestion window.
const CONGESTION: [f64; 5] = [0.0, 0.0, 0.0, 0.9, 0.1];

impl Figures {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
    fn run(self) -> RunEvidence {
        let nanos = |share: f64| Some((share * 1e9) as u64);
        let distribution = |mean: f64| Some(Distribution { mean, max: mean as u64 });
        let [buffer_full, out_of_data, window_full, congestion_window_full, held_back] =
            self.states;
        let round_trip = 1e6 / self.round_trips;
        let connection = ConnectionEvidence {
            data_segments_sent: Some(100_000),
            retransmitted_segments: Some(self.lost),
            whole_data_segments: Some(200_000),
            whole_retransmitted_segments: Some(2 * self.lost),
            // The run lasts one second, so `rate` bytes are acknowledged. With segments of 1,000
            // bytes, the figure of acknowledged segments is `rate` / 1,000.
            acknowledged_bytes: Some(self.rate as u64),
            segment_bytes: Some(1_000),
            retransmission_timeouts: Some(self.timeouts),
            peer_window: distribution(100_000.0),
            round_trip_micros: distribution(round_trip),
            shortest_round_trip_micros: Some((round_trip / self.round_trip_ratio) as u64),
            earlier_congestion_window: Some(100),
            congestion_window: distribution(100.0 * self.growth),
            slow_start_threshold: Some(if self.slow_start { 1 << 31 } else { 10 }),
            ..ConnectionEvidence::default()
        };
        let end = |cpu: f64| EndEvidence {
            seconds: Some(1.0),
            thread: ThreadEvidence {
                cpu_nanos: nanos(cpu),
                call_nanos: nanos(1.0 - out_of_data),
                queue_wait_nanos: nanos(self.waited),
                ..ThreadEvidence::default()
            },
            ..EndEvidence::default()
        };
        let states = SenderStates {
            samples: 100,
            buffer_full,
            out_of_data,
            window_full,
            congestion_window_full,
            held_back,
        };
        let sender = EndEvidence { connection, states: Some(states), ..end(self.cpu[0]) };
        let unread = distribution(self.unread * 100_000.0);
        let queues = QueueEvidence { unread, ..QueueEvidence::default() };
        let system = [("eth0.rx_dropped".to_owned(), self.dropped)].into();
        let receiver = EndEvidence { queues, system, ..end(self.cpu[1]) };
        RunEvidence { bytes_per_second: self.rate, sender, receiver, ..RunEvidence::default() }
    }
}

/// Returns the verdict on a made-up path. Runs without an intervention have the figures `plain`.
/// Each element of `effects` gives an intervention, the factor by which it multiplies the rate, and
/// the number of segments lost in its runs. Interventions in `impossible` cannot be made. All other
/// interventions have no effect.
fn diagnose(plain: Figures, effects: &[(Change, f64, u64)], impossible: &[Change]) -> Verdict {
    let mut diagnosis = Diagnosis::new();
    let mut runs = 0;
    while let Some(next) = diagnosis.next_run() {
        runs += 1;
        assert!(runs < 40, "the diagnosis does not end");
        let evidence = match next {
            NextRun::First | NextRun::Plain => Some(plain.run()),
            NextRun::Changed(change) if impossible.contains(&change) => None,
            NextRun::Changed(change) => {
                let known = effects.iter().find(|(one, ..)| *one == change);
                let (ratio, lost) =
                    known.map_or((1.0, plain.lost), |&(_, ratio, lost)| (ratio, lost));
                // A sender that is paced below the rate of the path leaves no queue on the path.
                // The mean round-trip time then equals the shortest one. Because it is shorter,
                // more round trips fit into the run.
                let is_slower = change == Change::Paced && ratio < 1.0;
                let changed = Figures { rate: plain.rate * ratio, lost, ..plain };
                let changed = if is_slower {
                    let round_trips = plain.round_trips * plain.round_trip_ratio;
                    Figures { round_trip_ratio: 1.0, round_trips, ..changed }
                } else {
                    changed
                };
                Some(changed.run())
            }
        };
        diagnosis.add(next, evidence);
    }
    diagnosis.verdict()
}

#[test]
fn each_limit_is_named_from_its_numbers() {
    use Change::{
        Discard, LargerWrites, Paced, PacedAtHalf, ReceiveBufferLarger, ReceiverCpuFaster,
        SendBufferLarger, SenderCpuFaster, ShorterPauses, SmallerPackets, TwoConnections,
    };
    let lossy = Figures { states: CONGESTION, lost: 500, ..PLAIN };
    for (limit, plain, effects) in [
        (Limit::SendBuffer, Figures { states: BUFFER, ..PLAIN }, vec![(SendBufferLarger, 1.9, 0)]),
        (
            Limit::SendBuffer,
            Figures { states: CONGESTION, ..PLAIN },
            vec![(SendBufferLarger, 1.8, 0), (TwoConnections, 2.0, 0)],
        ),
        (
            Limit::ReceiveBuffer,
            Figures { states: WINDOW, ..PLAIN },
            vec![(ReceiveBufferLarger, 1.8, 0), (TwoConnections, 2.0, 0)],
        ),
        (
            Limit::ReceiveBuffer,
            Figures { states: WINDOW, unread: 0.7, cpu: [0.4, 0.6], ..PLAIN },
            vec![(ReceiveBufferLarger, 5.0, 0), (Discard, 1.1, 0)],
        ),
        (Limit::RouteWindow, Figures { states: WINDOW, ..PLAIN }, vec![(TwoConnections, 2.0, 0)]),
        (Limit::Reader, Figures { states: WINDOW, unread: 0.9, ..PLAIN }, vec![(Discard, 5.0, 0)]),
        (Limit::Writer, Figures { states: OUT, ..PLAIN }, vec![(ShorterPauses, 9.0, 0)]),
        (Limit::SenderCpu, Figures { cpu: [0.99, 0.6], ..PLAIN }, vec![]),
        (Limit::ReceiverCpu, Figures { cpu: [0.5, 0.99], ..PLAIN }, vec![(Discard, 1.6, 0)]),
        (
            Limit::LinkRate,
            Figures { states: CONGESTION, round_trip_ratio: 4.0, ..PLAIN },
            vec![(Paced, 0.9, 0)],
        ),
        (Limit::LinkRate, lossy, vec![(Paced, 0.9, 5)]),
        (Limit::QueueDrop, lossy, vec![(Paced, 1.3, 0), (TwoConnections, 1.3, 900)]),
        (Limit::RandomLoss, lossy, vec![(Paced, 1.1, 480), (PacedAtHalf, 0.5, 500)]),
        (Limit::ReceiveDrop, Figures { dropped: 490, ..lossy }, vec![(PacedAtHalf, 0.5, 0)]),
        (
            Limit::PathMtu,
            Figures { rate: 0.0, lost: 50_000, timeouts: 3, ..PLAIN },
            vec![(SmallerPackets, 1.0, 0)],
        ),
        (
            Limit::CongestionWindow,
            Figures { states: CONGESTION, ..PLAIN },
            vec![(TwoConnections, 2.0, 0)],
        ),
        (
            Limit::RoundTrip,
            Figures {
                states: CONGESTION,
                slow_start: true,
                growth: 3.0,
                round_trips: 8.0,
                ..PLAIN
            },
            vec![(TwoConnections, 2.0, 0)],
        ),
    ] {
        let verdict = match limit {
            // The effect of smaller packets cannot be given as a factor for `diagnose`, because no
            // data arrives without them. `black_hole` is used for this limit.
            Limit::PathMtu => black_hole(plain),
            _ => diagnose(plain, &effects, &[LargerWrites, SenderCpuFaster, ReceiverCpuFaster]),
        };
        assert_eq!(verdict.limit, limit, "{verdict:#?}");
        assert!(verdict.confidence >= 0.5, "{verdict:#?}");
        assert!(
            !verdict.evidence.is_empty()
                && verdict.evidence.iter().all(|line| { line.threshold.is_some() })
        );
    }
}

// The figures in this test are not made up. They were measured with the kernel's TCP over the
// loopback device, on an idle machine with two CPUs.
#[test]
fn a_busy_thread_is_named_from_measured_figures() {
    const NOT_REAL: [Change; 3] =
        [Change::SenderCpuFaster, Change::ReceiverCpuFaster, Change::LinkFaster];
    let large = [&NOT_REAL[..], &[Change::LargerWrites]].concat();
    let writes_of_64_bytes = Figures {
        rate: 9e7,
        states: [0.877, 0.123, 0.0, 0.0, 0.0],
        cpu: [0.996, 0.211],
        unread: 0.002,
        ..PLAIN
    };
    let reads_of_64_bytes = Figures {
        rate: 1.44e8,
        states: [0.0, 0.0, 0.99, 0.0, 0.01],
        cpu: [0.02, 0.994],
        unread: 1.0,
        ..PLAIN
    };
    let both = Figures { cpu: [0.99, 0.99], ..writes_of_64_bytes };
    for (expected, plain, effects, impossible) in [
        (Limit::SenderCpu, writes_of_64_bytes, &[(Change::LargerWrites, 7.44, 0)], &NOT_REAL[..]),
        (Limit::SenderCpu, writes_of_64_bytes, &[(Change::Discard, 1.02, 0)], &large),
        (Limit::ReceiverCpu, reads_of_64_bytes, &[(Change::Discard, 21.1, 0)], &NOT_REAL),
        // The CPUs of both ends are fully used, so the counters do not tell which one is the limit.
        // Only the intervention that lets the reader discard data shows whether the receiver's CPU
        // is the limit.
        (Limit::ReceiverCpu, both, &[(Change::Discard, 1.5, 0)], &large),
        (Limit::NotIdentified, both, &[(Change::Discard, 1.0, 0)], &large),
    ] {
        let verdict = diagnose(plain, effects, impossible);
        assert_eq!(verdict.limit, expected, "{verdict:?}");
    }
}

/// Returns the verdict on a made-up path that drops all segments except the small ones of the
/// intervention [`Change::SmallerPackets`]. Without this intervention, runs have the figures
/// `plain`.
fn black_hole(plain: Figures) -> Verdict {
    let mut diagnosis = Diagnosis::new();
    while let Some(next) = diagnosis.next_run() {
        let is_small = next == NextRun::Changed(Change::SmallerPackets);
        let changed = Figures { rate: 1e6, lost: 0, timeouts: 0, ..plain };
        diagnosis.add(next, Some(if is_small { changed.run() } else { plain.run() }));
    }
    diagnosis.verdict()
}

#[test]
fn an_intervention_without_the_expected_effect_refutes_a_limit() {
    for plain in [
        Figures { states: BUFFER, ..PLAIN },
        Figures { states: OUT, ..PLAIN },
        Figures { states: WINDOW, unread: 0.9, ..PLAIN },
        Figures { states: CONGESTION, ..PLAIN },
        Figures { cpu: [0.5, 0.99], ..PLAIN },
        PLAIN,
    ] {
        let verdict = diagnose(plain, &[], &[]);
        assert_eq!(verdict.limit, Limit::NotIdentified, "{verdict:#?}");
        assert!(verdict.evidence.len() > 8, "all known figures");
    }
}

#[test]
fn without_a_possible_intervention_nothing_is_named() {
    let plain = Figures { states: BUFFER, ..PLAIN };
    let verdict = diagnose(plain, &[], &Change::ALL);
    assert_eq!((verdict.limit, verdict.interventions.len()), (Limit::NotIdentified, 0));
}

#[test]
fn a_buffer_that_cannot_grow_is_halved() {
    let plain = Figures { states: BUFFER, ..PLAIN };
    let effects = [(Change::SendBufferHalved, 0.5, 0)];
    let verdict = diagnose(plain, &effects, &[Change::SendBufferLarger]);
    assert_eq!(verdict.limit, Limit::SendBuffer, "{verdict:#?}");
}

#[test]
fn a_rule_does_not_apply_if_its_counters_are_absent() {
    let mut diagnosis = Diagnosis::new();
    let run = RunEvidence { bytes_per_second: 5.0, ..RunEvidence::default() };
    diagnosis.add(NextRun::First, Some(run));
    assert_eq!(diagnosis.next_run(), None);
    let verdict = diagnosis.verdict();
    assert_eq!((verdict.limit, verdict.bytes_per_second), (Limit::NotIdentified, 5.0));
}

#[test]
fn a_contended_run_is_repeated_and_concludes_nothing() {
    let busy = Figures { states: BUFFER, waited: 0.5, ..PLAIN };
    let mut diagnosis = Diagnosis::new();
    for _ in 0..3 {
        assert_eq!(diagnosis.next_run(), Some(NextRun::First));
        diagnosis.add(NextRun::First, Some(busy.run()));
    }
    assert_eq!(diagnosis.next_run(), None);
    assert_eq!(diagnosis.verdict().limit, Limit::Contended);

    // The first run is uncontended, and all later runs are contended. The diagnosis then ends with
    // the verdict that the runs were contended.
    let mut diagnosis = Diagnosis::new();
    diagnosis.add(NextRun::First, Some(Figures { waited: 0.0, ..busy }.run()));
    while let Some(next) = diagnosis.next_run() {
        diagnosis.add(next, Some(busy.run()));
    }
    assert_eq!(diagnosis.verdict().limit, Limit::Contended);

    // The first attempt at the first run is contended, and all later runs are uncontended. The
    // diagnosis repeats the first run, so the contended attempt does not affect the verdict.
    let mut diagnosis = Diagnosis::new();
    diagnosis.add(NextRun::First, Some(busy.run()));
    let idle = Figures { waited: 0.0, ..busy };
    while let Some(next) = diagnosis.next_run() {
        let doubled = next == NextRun::Changed(Change::SendBufferLarger);
        let rate = if doubled { 1.9e6 } else { 1e6 };
        diagnosis.add(next, Some(Figures { rate, ..idle }.run()));
    }
    assert_eq!(diagnosis.verdict().limit, Limit::SendBuffer);
}

#[test]
fn a_change_that_is_contended_twice_shows_only_a_higher_rate() {
    let diagnose = |rate: f64| {
        let plain = Figures { states: BUFFER, ..PLAIN };
        let mut diagnosis = Diagnosis::new();
        let mut attempts = 0;
        while let Some(next) = diagnosis.next_run() {
            let run = match next {
                NextRun::Changed(Change::SendBufferLarger) => {
                    attempts += 1;
                    Figures { rate, waited: 0.5, ..plain }
                }
                _ => plain,
            };
            diagnosis.add(next, Some(run.run()));
        }
        let verdict = diagnosis.verdict();
        let is_larger = |line: &&InterventionLine| line.change == Change::SendBufferLarger;
        let line = verdict.interventions.iter().find(is_larger).map(|line| line.is_lower_bound);
        assert_eq!(attempts, 2, "{verdict:#?}");
        (verdict.limit, line)
    };
    assert_eq!(diagnose(1e6), (Limit::NotIdentified, None), "contention may hide a higher rate");
    assert_eq!(diagnose(1.9e6), (Limit::SendBuffer, Some(true)), "contention only lowers a rate");
    assert_eq!(diagnose(1.05e6), (Limit::NotIdentified, Some(true)), "the bound is too low");
}

#[test]
fn a_queue_that_is_far_too_short_is_named_by_losses_that_vanish_at_twice_the_rate() {
    let plain = Figures { states: CONGESTION, lost: 1_000, ..PLAIN };
    let none = [(Change::Paced, 0.9, 0), (Change::PacedAtTwice, 1.9, 0)];
    assert_eq!(diagnose(plain, &none, &[]).limit, Limit::QueueDrop);
    // When paced at twice the throughput, the sender loses more packets, as it would behind a
    // policer. If a far too short queue were the limit, it would lose fewer. So the queue is not
    // the limit.
    let more = [(Change::Paced, 0.9, 0), (Change::PacedAtTwice, 1.0, 2_000)];
    assert_ne!(diagnose(plain, &more, &[]).limit, Limit::QueueDrop);
    // When paced at twice the throughput, the sender loses as many packets as without pacing,
    // because the losses are random. So the queue is not the limit.
    let stay = [(Change::Paced, 1.0, 1_000), (Change::PacedAtTwice, 1.2, 1_000)];
    assert_ne!(diagnose(plain, &stay, &[]).limit, Limit::QueueDrop);
}

#[test]
fn a_receive_window_larger_than_the_path_does_not_hide_the_link() {
    let full = Figures { states: WINDOW, round_trip_ratio: 4.0, ..PLAIN };
    assert_eq!(diagnose(full, &[(Change::Paced, 0.9, 0)], &[]).limit, Limit::LinkRate);
    // A second connection raises the rate, so the link is not full. The window of a single
    // connection is the limit.
    let gains = [(Change::TwoConnections, 1.9, 0), (Change::Paced, 0.9, 0)];
    assert_eq!(diagnose(full, &gains, &[]).limit, Limit::RouteWindow);
}

#[test]
fn a_simulated_link_is_named_by_the_gain_of_a_faster_one() {
    let queued =
        Figures { states: CONGESTION, lost: 1_000, round_trip_ratio: 5.0, timeouts: 2, ..PLAIN };
    // Several interventions can show whether the link is the limit. On this path, only one of them
    // is possible: a faster link.
    let impossible = [
        Change::Paced,
        Change::PacedAtHalf,
        Change::PacedAtTwice,
        Change::TwoConnections,
        Change::SmallerPackets,
    ];
    let named = |ratio| diagnose(queued, &[(Change::LinkFaster, ratio, 1_000)], &impossible).limit;
    assert_eq!(named(1.2), Limit::LinkRate);
    assert_eq!(named(1.0), Limit::NotIdentified);
}

#[test]
fn a_simulated_queue_is_named_by_the_gain_of_a_longer_one() {
    let lossy = Figures { states: CONGESTION, lost: 1_000, ..PLAIN };
    let named = |ratio, lost| {
        let effects = [(Change::QueueLonger, ratio, lost), (Change::Paced, 0.9, 0)];
        diagnose(lossy, &effects, &[Change::TwoConnections]).limit
    };
    assert_eq!(named(1.4, 700), Limit::QueueDrop);
    assert_ne!(named(1.0, 700), Limit::QueueDrop, "the length of the queue does not matter");
    assert_ne!(named(1.4, 2_000), Limit::QueueDrop, "the longer queue drops more packets");
}

#[test]
fn a_full_link_is_named_without_evidence_of_the_far_end() {
    let full = Figures { states: CONGESTION, round_trip_ratio: 4.0, ..PLAIN };
    let mut diagnosis = Diagnosis::new();
    while let Some(next) = diagnosis.next_run() {
        let figures = match next {
            // A sender that is paced below the rate of the link leaves the link's queue empty.
            NextRun::Changed(Change::Paced) => {
                Figures { rate: 0.9e6, round_trip_ratio: 1.0, round_trips: 400.0, ..full }
            }
            _ => full,
        };
        let run = RunEvidence { receiver: EndEvidence::default(), ..figures.run() };
        diagnosis.add(next, Some(run));
    }
    let verdict = diagnosis.verdict();
    assert_eq!(verdict.limit, Limit::LinkRate, "{verdict:#?}");
}

#[test]
fn a_send_buffer_larger_than_the_path_does_not_hide_the_link() {
    let full = Figures { states: BUFFER, round_trip_ratio: 4.0, ..PLAIN };
    let verdict = diagnose(full, &[(Change::Paced, 0.9, 0)], &[]);
    assert_eq!(verdict.limit, Limit::LinkRate, "{verdict:#?}");
    // The figures suggest that the link is the limit, but other traffic may have filled its queue.
    // A larger send buffer raises the rate here, so the send buffer is the limit, and not the link.
    let gains = [(Change::SendBufferLarger, 1.8, 0), (Change::Paced, 0.9, 0)];
    assert_eq!(diagnose(full, &gains, &[]).limit, Limit::SendBuffer);
}

#[test]
fn a_link_that_others_fill_does_not_hide_a_small_send_buffer() {
    let figures = Figures { states: BUFFER, ..PLAIN };
    for (gain, expected) in [(1.6, Limit::SendBuffer), (1.0, Limit::LinkRate)] {
        let mut diagnosis = Diagnosis::new();
        while let Some(next) = diagnosis.next_run() {
            let rate = match next {
                NextRun::Changed(Change::SendBufferLarger) => gain * 1e6,
                NextRun::Changed(_) => {
                    diagnosis.add(next, None);
                    continue;
                }
                NextRun::First | NextRun::Plain => 1e6,
            };
            let run = RunEvidence {
                wire_bits_per_second: Some(19.5e6),
                link_bits_per_second: Some(20e6),
                ..Figures { rate, ..figures }.run()
            };
            diagnosis.add(next, Some(run));
        }
        let verdict = diagnosis.verdict();
        assert_eq!(verdict.limit, expected, "{verdict:#?}");
    }
}

#[test]
fn a_policer_is_named_although_bursts_raise_the_peak_rate_far_above_its_rate() {
    let plain = Figures { states: CONGESTION, lost: 1_000, ..PLAIN };
    let effects = |second| {
        [
            (Change::Paced, 1.0, 1_000),
            (Change::PacedAtHalf, 0.5, 0),
            (Change::TwoConnections, second, 1_500),
            (Change::PacedAtTwice, 1.0, 1_100),
        ]
    };
    assert_eq!(diagnose(plain, &effects(1.03), &[]).limit, Limit::LinkRate);
    // If a second connection raises the rate by half, the first one did not fill the link. The
    // losses then come from a queue that is too short and keeps the link partly idle. The link is
    // not the limit.
    assert_ne!(diagnose(plain, &effects(1.5), &[]).limit, Limit::LinkRate);
}

#[test]
fn losses_at_a_policed_peak_are_not_random() {
    // A policer lets bursts pass faster than its rate, so the peak delivery rate exceeds the
    // policed rate. Pacing at 90 % of the peak is then still faster than the policed rate, and does
    // not avoid the losses. Pacing at half the throughput does, which shows that they are not
    // random.
    let lossy = Figures { states: CONGESTION, lost: 500, ..PLAIN };
    let effects = [(Change::Paced, 1.1, 450), (Change::PacedAtHalf, 0.5, 3)];
    assert_eq!(diagnose(lossy, &effects, &[]).limit, Limit::LinkRate);
}

#[test]
fn one_overflow_of_a_queue_does_not_name_it() {
    let once = Figures { states: CONGESTION, lost: 0, ..PLAIN };
    let effects = [(Change::Paced, 1.3, 0), (Change::TwoConnections, 1.2, 0)];
    assert_ne!(diagnose(once, &effects, &[]).limit, Limit::QueueDrop);
}

#[test]
fn the_spread_of_plain_runs_widens_the_intervals() {
    let mut diagnosis = Diagnosis::new();
    let mut rates = [1e6, 2e6, 0.7e6, 1.6e6].into_iter().cycle();
    while let Some(next) = diagnosis.next_run() {
        let rate = match next {
            NextRun::Changed(_) => 1.5e6,
            _ => rates.next().unwrap(),
        };
        diagnosis.add(next, Some(Figures { rate, states: BUFFER, ..PLAIN }.run()));
    }
    let verdict = diagnosis.verdict();
    assert_eq!(verdict.limit, Limit::NotIdentified, "{verdict:#?}");
    let [low, high] = verdict.interventions[0].interval;
    assert!(low < 1.0 && high > 1.5, "{low} to {high}");
}

#[test]
fn the_documented_fields_are_in_the_json() {
    let plain = Figures { states: BUFFER, ..PLAIN };
    let verdict = diagnose(plain, &[(Change::SendBufferLarger, 1.9, 0)], &[]);
    let json = serde_json::to_value(&verdict).unwrap();
    assert_eq!(json["limit"], "send-buffer");
    assert_eq!(json["bytes_per_second"], 1e6);
    assert_eq!(json["evidence"][0]["counter"], "send_buffer_full_share");
    assert_eq!(json["evidence"][0]["end"], "sender");
    assert_eq!(json["evidence"][0]["value"], 0.9);
    assert_eq!(json["evidence"][0]["threshold"], "at least 0.6");
    assert_eq!(json["interventions"][0]["change"], "send-buffer-larger");
    assert!(json["interventions"][0]["interval"][1].as_f64() > Some(1.9));
    assert!(json["confidence"].is_f64() && json["advice"].is_string());
}

#[test]
fn a_gain_from_discarding_refutes_the_send_buffer() {
    let plain = Figures { states: BUFFER, ..PLAIN };
    let effects = [(Change::SendBufferLarger, 1.9, 0), (Change::Discard, 8.0, 0)];
    assert_eq!(diagnose(plain, &effects, &[]).limit, Limit::NotIdentified);
}

#[test]
fn a_reader_that_pauses_is_told_from_one_that_copies() {
    let slow = |cpu| Figures { states: WINDOW, unread: 0.9, cpu: [0.1, cpu], ..PLAIN };
    for (cpu, gain, limit) in
        [(0.1, 1.3, Limit::Reader), (0.6, 1.3, Limit::NotIdentified), (0.6, 1.9, Limit::Reader)]
    {
        let verdict = diagnose(slow(cpu), &[(Change::Discard, gain, 0)], &[]);
        assert_eq!(verdict.limit, limit, "{cpu}, {gain}: {verdict:#?}");
    }
}

#[test]
fn losses_on_a_short_path_are_random_whatever_the_ratio_of_its_round_trips() {
    let lossy = |round_trips| Figures {
        states: CONGESTION,
        lost: 500,
        round_trip_ratio: 60.0,
        round_trips,
        ..PLAIN
    };
    let effects = [(Change::Paced, 0.09, 480), (Change::PacedAtHalf, 0.08, 500)];
    assert_eq!(diagnose(lossy(4_000.0), &effects, &[]).limit, Limit::RandomLoss);
    assert_ne!(diagnose(lossy(100.0), &effects, &[]).limit, Limit::RandomLoss);
}

#[test]
fn losses_that_increase_under_pacing_refute_the_link_rate() {
    let lossy = Figures { states: CONGESTION, lost: 50, round_trip_ratio: 900.0, ..PLAIN };
    let limit = |lost| diagnose(lossy, &[(Change::Paced, 0.8, lost)], &[]).limit;
    assert_eq!(limit(0), Limit::LinkRate);
    assert_eq!(limit(250), Limit::NotIdentified);
}
