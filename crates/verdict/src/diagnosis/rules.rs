//! The rules of a diagnosis. Each rule has a limit, conditions on the figures of a run, and the
//! expected effects of interventions, which confirm or refute the limit.

use super::effect::Expectation;
use super::figure::Figure;
use super::limit::Limit;
use linerate_evidence::{Change, RunEvidence};

/// A rule that recognises one limit, by conditions on counters and by effects of interventions.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The limit that the rule recognises.
    pub limit: Limit,
    /// Conditions that must all hold for the rule to apply. The rule does not apply either if the
    /// figure of a condition is absent.
    pub conditions: &'static [Condition],
    /// Groups of alternative expectations. In each group, only the first expectation whose
    /// intervention is possible counts.
    pub expectations: &'static [&'static [Expectation]],
    /// The evidence that is sufficient to name the limit.
    pub proof: Proof,
}

/// The evidence that is sufficient to name the limit of a rule, provided that no expectation is
/// refuted. A refuted expectation always rules the limit out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The conditions hold.
    Counters,
    /// The conditions hold, and the first group of expectations is confirmed.
    First,
    /// The conditions hold, and all groups of expectations are confirmed.
    All,
}

/// A condition of a rule: a figure, and its threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// The figure that is compared with the threshold.
    pub figure: Figure,
    /// The threshold, with a range of values around it in which the condition holds partly.
    pub bound: Bound,
    /// The reason for the threshold, as a verdict shows it.
    pub source: &'static str,
}

/// A threshold with a transition between two values. Between them, the score of a condition changes
/// linearly from 0 to 1, or from 1 to 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The score is 0 up to the first value, and 1 from the second value upwards.
    AtLeast(f64, f64),
    /// The score is 1 up to the first value, and 0 from the second value upwards.
    AtMost(f64, f64),
}

impl Bound {
    /// Returns the score of a figure's value, between 0 and 1.
    #[must_use]
    pub fn score(self, value: f64) -> f64 {
        let (none, full) = match self {
            Self::AtLeast(none, full) => (none, full),
            Self::AtMost(full, none) => (none, full),
        };
        ((value - none) / (full - none)).clamp(0.0, 1.0)
    }

    /// Formats the threshold at which the condition holds fully, as a verdict shows it.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::AtLeast(_, full) => format!("at least {full}"),
            Self::AtMost(full, _) => format!("at most {full}"),
        }
    }
}

impl Rule {
    /// Returns how well the counters of `plain`, a run without intervention, fit the rule: the
    /// lowest score of all its conditions, between 0 and 1. Returns `None` if a figure is absent.
    #[must_use]
    pub fn score(&self, plain: &RunEvidence) -> Option<f64> {
        self.conditions.iter().try_fold(1.0_f64, |least, condition| {
            Some(least.min(condition.bound.score(condition.figure.of(plain)?)))
        })
    }
}

const fn at_least(figure: Figure, none: f64, full: f64, source: &'static str) -> Condition {
    Condition { figure, bound: Bound::AtLeast(none, full), source }
}

const fn at_most(figure: Figure, full: f64, none: f64, source: &'static str) -> Condition {
    Condition { figure, bound: Bound::AtMost(full, none), source }
}

const MAJORITY: &str = "a limit is one that holds most of the time";
const CPU_FREE: &str = "a thread with a tenth of its time left is not held by its CPU";
const CPU_FULL: &str = "a thread that never sleeps is held by its CPU";
const KEEPS_UP: &str = "a reader that keeps up leaves most of the window empty";
const BEHIND: &str = "data waits for the reader, not for the network";
const LOSSY: &str = "one loss in 2,000 halves the window of a long path more than once a second";
const LOSSLESS: &str = "fewer losses than one in 10,000 do not explain a small window";
const LOSS_EXPLAINS: &str = "a loss explains a small window";
const NO_QUEUE: &str = "a full queue at least doubles the round trip; jitter stays below a half";
const NOT_THERE: &str = "the receiver does not drop them";
const REPEATED: &str = "a queue that is too short overflows again and again";
const QUEUE: &str = "packets wait in a queue on the path";
const GROWING: &str = "a receive window that grows, too, limits the transfer part of the time";
const SETTLED: &str = "the windows of a transfer still grow in its first round trips";
const WINDOW_OPEN: &str = "a slow receiver would fill its window";

/// Minimum ratio of the rate with pacing to the rate without it, if the link is the limit. The
/// sender is paced at 90 % of the estimated link rate. On a lossy link, the estimate is the peak
/// delivery rate of a short run, which may be a fifth too low: 0.9 × 0.8 = 0.72.
const PACED_LEAST: f64 = 0.72;

/// Conditions under which a queue on the path may be too short.
const SHORT_QUEUE: &[Condition] = &[
    at_least(Figure::NetworkHolds, 0.3, 0.6, MAJORITY),
    at_least(Figure::Losses, 0.0, 2.0, REPEATED),
    at_most(Figure::RoundTripRatio, 1.5, 2.0, NO_QUEUE),
    at_most(Figure::ReceiveDrops, 0.2, 0.5, NOT_THERE),
];

/// Conditions under which a policer may enforce the rate of the link.
const POLICED: &[Condition] = &[
    at_least(Figure::NetworkHolds, 0.3, 0.6, MAJORITY),
    at_least(Figure::Retransmitted, 0.0001, 0.0005, "a link that polices drops the excess"),
    at_most(Figure::SenderCpu, 0.8, 0.95, CPU_FREE),
    at_most(Figure::ReceiverCpu, 0.8, 0.95, CPU_FREE),
    at_most(Figure::ReceiveDrops, 0.2, 0.5, NOT_THERE),
];

/// Expectations for losses that do not depend on the load of the path: pacing hardly reduces the
/// loss rate.
const LOSSES_STAY: &[&[Expectation]] = &[
    &[Expectation::LossStays(Change::PacedAtHalf, 0.4)],
    &[Expectation::LossStays(Change::Paced, 0.4)],
];

/// All rules of a diagnosis. A limit may have several rules.
pub const RULES: &[Rule] = &[
    Rule {
        limit: Limit::Writer,
        conditions: &[
            at_least(Figure::OutOfData, 0.3, 0.6, MAJORITY),
            at_most(Figure::SenderCpu, 0.8, 0.95, CPU_FREE),
        ],
        expectations: &[&[
            Expectation::Raises(Change::ShorterPauses, 1.15),
            Expectation::Raises(Change::LargerWrites, 1.15),
        ]],
        proof: Proof::First,
    },
    Rule {
        limit: Limit::SendBuffer,
        conditions: &[
            at_least(Figure::BufferFull, 0.3, 0.6, MAJORITY),
            at_most(Figure::WindowFull, 0.3, 0.6, "a full window explains a full buffer"),
            at_most(Figure::SenderCpu, 0.8, 0.95, CPU_FREE),
            at_most(Figure::UnreadShare, 0.4, 0.6, KEEPS_UP),
            at_least(Figure::RoundTrips, 4.0, 10.0, SETTLED),
        ],
        expectations: &[
            &[
                Expectation::Raises(Change::SendBufferLarger, 1.2),
                Expectation::Lowers(Change::SendBufferHalved, 0.75),
            ],
            // On a path with a short round trip, the time in which the reader copies data is a
            // considerable part of the round-trip time. If the reader discards the data without
            // copying, the rate therefore rises even if the send buffer is the limit. A factor of
            // up to 1.7 is allowed.
            &[Expectation::RaisesAtMost(Change::Discard, 1.7)],
        ],
        proof: Proof::First,
    },
    // The Nagle algorithm may hold back the last partial segment of a full send buffer. Linux and
    // linerate then do not count the time as limited by the send buffer. This rule therefore does
    // not require that samples show a full buffer. Its proof is that a larger send buffer raises
    // the rate.
    Rule {
        limit: Limit::SendBuffer,
        conditions: &[
            at_least(Figure::NetworkHolds, 0.3, 0.6, MAJORITY),
            at_most(Figure::Retransmitted, 0.0001, 0.0005, LOSSLESS),
            at_most(Figure::Losses, 0.0, 2.0, LOSS_EXPLAINS),
            at_most(Figure::RoundTripRatio, 1.3, 1.6, NO_QUEUE),
            at_most(Figure::SenderCpu, 0.8, 0.95, CPU_FREE),
            at_most(Figure::UnreadShare, 0.4, 0.6, KEEPS_UP),
            at_least(Figure::RoundTrips, 4.0, 10.0, SETTLED),
        ],
        expectations: &[
            &[Expectation::Raises(Change::SendBufferLarger, 1.4)],
            &[Expectation::RaisesAtMost(Change::Discard, 1.15)],
        ],
        proof: Proof::First,
    },
    Rule {
        limit: Limit::ReceiveBuffer,
        conditions: &[
            at_least(Figure::WindowFull, 0.3, 0.6, MAJORITY),
            at_most(Figure::UnreadShare, 0.3, 0.5, KEEPS_UP),
            at_most(Figure::ReceiverCpu, 0.8, 0.95, CPU_FREE),
            at_least(Figure::RoundTrips, 4.0, 10.0, SETTLED),
        ],
        expectations: &[
            &[
                Expectation::Raises(Change::ReceiveBufferLarger, 1.2),
                Expectation::Lowers(Change::ReceiveBufferHalved, 0.75),
            ],
            // A small receive buffer alone is no proof, because a kernel that tunes its buffers
            // keeps the receive buffer small for a slow reader. If the rate rises when the reader
            // discards the data instead of copying it, the reader is the limit, and not the buffer.
            &[Expectation::RaisesAtMost(Change::Discard, 1.15)],
        ],
        proof: Proof::First,
    },
    // On a path with a short round trip, a read takes about as long as the round trip. A small
    // receive buffer then contains unread data most of the time, even if the reader is fast. This
    // rule therefore has no condition on unread data. To make up for it, all interventions must
    // confirm the limit.
    Rule {
        limit: Limit::ReceiveBuffer,
        conditions: &[
            at_least(Figure::WindowFull, 0.3, 0.6, MAJORITY),
            at_most(Figure::ReceiverCpu, 0.8, 0.95, CPU_FREE),
            at_least(Figure::RoundTrips, 4.0, 10.0, SETTLED),
        ],
        expectations: &[
            &[Expectation::Raises(Change::ReceiveBufferLarger, 1.4)],
            &[Expectation::RaisesAtMost(Change::Discard, 1.45)],
        ],
        proof: Proof::All,
    },
    Rule {
        limit: Limit::RouteWindow,
        conditions: &[
            at_least(Figure::WindowFull, 0.3, 0.6, MAJORITY),
            at_most(Figure::UnreadShare, 0.3, 0.5, KEEPS_UP),
            at_most(Figure::ReceiverCpu, 0.8, 0.95, CPU_FREE),
            at_least(Figure::RoundTrips, 4.0, 10.0, SETTLED),
        ],
        expectations: &[
            &[
                Expectation::Keeps(Change::ReceiveBufferLarger, 0.85, 1.1),
                Expectation::Keeps(Change::ReceiveBufferHalved, 0.85, 1.1),
            ],
            &[Expectation::Raises(Change::TwoConnections, 1.3)],
        ],
        proof: Proof::All,
    },
    Rule {
        limit: Limit::Reader,
        conditions: &[
            at_least(Figure::UnreadShare, 0.15, 0.3, BEHIND),
            at_most(Figure::ReceiverCpu, 0.3, 0.5, "a reader that pauses leaves its CPU idle"),
        ],
        expectations: &[
            &[Expectation::Raises(Change::Discard, 1.2)],
            &[Expectation::RaisesAtMost(Change::ReceiveBufferLarger, 1.3)],
        ],
        proof: Proof::First,
    },
    // Another rule for a slow reader requires that the reading thread leaves its CPU idle. This
    // rule also admits a thread that uses its CPU for half of the time or more. If such a thread
    // discards the data, it saves the time of copying. The rate then rises by a factor of up to
    // 1.45 even if the receive buffer is the limit. Only a factor of 1.5 proves that the reader is
    // the limit. The rule expects nothing of a larger receive buffer, because it also helps a
    // reader that pauses.
    Rule {
        limit: Limit::Reader,
        conditions: &[
            at_least(Figure::UnreadShare, 0.15, 0.3, BEHIND),
            at_most(Figure::ReceiverCpu, 0.8, 0.95, CPU_FREE),
        ],
        expectations: &[&[Expectation::Raises(Change::Discard, 1.5)]],
        proof: Proof::First,
    },
    Rule {
        limit: Limit::SenderCpu,
        conditions: &[
            at_least(Figure::SenderCpu, 0.8, 0.95, CPU_FULL),
            at_most(Figure::ReceiverCpu, 0.85, 0.97, "two full CPUs hold each other"),
        ],
        expectations: &[&[
            Expectation::Raises(Change::SenderCpuFaster, 1.1),
            Expectation::Raises(Change::LargerWrites, 1.1),
            Expectation::Keeps(Change::Discard, 0.85, 1.1),
        ]],
        proof: Proof::First,
    },
    Rule {
        limit: Limit::ReceiverCpu,
        conditions: &[at_least(Figure::ReceiverCpu, 0.8, 0.95, CPU_FULL)],
        expectations: &[&[
            Expectation::Raises(Change::ReceiverCpuFaster, 1.1),
            Expectation::Raises(Change::Discard, 1.1),
        ]],
        proof: Proof::First,
    },
    Rule {
        limit: Limit::LinkRate,
        conditions: &[at_least(
            Figure::LinkShare,
            0.9,
            0.95,
            "acknowledgements and timers leave a few per cent of a link unused",
        )],
        expectations: &[
            &[Expectation::Keeps(Change::TwoConnections, 0.9, 1.1)],
            // Other traffic may fill the link. If a larger send buffer then raises the transfer's
            // share of the link, the limit is the send buffer, not the link.
            &[Expectation::Keeps(Change::SendBufferLarger, 0.85, 1.15)],
        ],
        proof: Proof::Counters,
    },
    // A link that limits the transfer has a standing queue, which lengthens the round-trip time. If
    // the sender slows down below the rate of the link, the queue becomes empty. The rule looks for
    // a longer round trip, and for a queue that becomes empty when the sender slows down.
    Rule {
        limit: Limit::LinkRate,
        conditions: &[
            at_least(Figure::NetworkHolds, 0.3, 0.6, MAJORITY),
            at_least(Figure::RoundTripRatio, 1.05, 1.25, QUEUE),
            at_most(Figure::SenderCpu, 0.8, 0.95, CPU_FREE),
            at_most(Figure::WindowFull, 0.3, 0.6, WINDOW_OPEN),
        ],
        expectations: &[
            &[Expectation::QueueFalls(Change::Paced, 0.5)],
            &[Expectation::Keeps(Change::Paced, PACED_LEAST, 1.02)],
            &[Expectation::Keeps(Change::TwoConnections, 0.9, 1.1)],
            // If a full queue of the link causes the losses, pacing reduces the loss rate. If the
            // loss rate increases nevertheless, the losses have another cause.
            &[Expectation::LossFalls(Change::Paced, 1.0)],
        ],
        proof: Proof::First,
    },
    // A full send buffer may be a consequence of a slow link. If the buffer is larger than the path
    // needs, its data waits in a queue on the path. A larger buffer only makes that queue longer.
    // This rule therefore requires two effects: pacing shortens the queue, and the size of the
    // buffer does not affect the rate.
    Rule {
        limit: Limit::LinkRate,
        conditions: &[
            at_least(Figure::BufferFull, 0.3, 0.6, MAJORITY),
            at_least(Figure::RoundTripRatio, 1.05, 1.25, QUEUE),
            at_most(Figure::SenderCpu, 0.8, 0.95, CPU_FREE),
            at_most(Figure::WindowFull, 0.3, 0.6, WINDOW_OPEN),
        ],
        expectations: &[
            &[Expectation::QueueFalls(Change::Paced, 0.5)],
            &[
                Expectation::Keeps(Change::SendBufferLarger, 0.85, 1.15),
                Expectation::Keeps(Change::SendBufferHalved, 0.85, 1.15),
            ],
        ],
        proof: Proof::All,
    },
    // In a simulated network, the link itself can be made faster. If that raises the rate, the link
    // is the limit, and no other proof is needed.
    Rule {
        limit: Limit::LinkRate,
        conditions: &[
            at_least(Figure::NetworkHolds, 0.3, 0.6, MAJORITY),
            at_least(Figure::RoundTripRatio, 1.05, 1.25, QUEUE),
        ],
        expectations: &[&[Expectation::Raises(Change::LinkFaster, 1.1)]],
        proof: Proof::First,
    },
    // A full receive window may be a consequence of a slow link. If the window is larger than the
    // path needs, its data waits in a queue on the path. A larger window only makes that queue
    // longer. This rule therefore requires two effects: pacing shortens the queue, and the size of
    // the receive buffer does not affect the rate.
    Rule {
        limit: Limit::LinkRate,
        conditions: &[
            at_least(Figure::WindowFull, 0.3, 0.6, MAJORITY),
            at_least(Figure::RoundTripRatio, 1.05, 1.25, QUEUE),
            at_most(Figure::SenderCpu, 0.8, 0.95, CPU_FREE),
            at_most(Figure::ReceiverCpu, 0.8, 0.95, CPU_FREE),
            at_most(Figure::UnreadShare, 0.3, 0.5, KEEPS_UP),
        ],
        expectations: &[
            &[Expectation::QueueFalls(Change::Paced, 0.5)],
            &[Expectation::Keeps(Change::TwoConnections, 0.9, 1.1)],
            &[
                Expectation::Keeps(Change::ReceiveBufferLarger, 0.85, 1.15),
                Expectation::Keeps(Change::ReceiveBufferHalved, 0.85, 1.15),
            ],
        ],
        proof: Proof::All,
    },
    // Losses that pacing avoids come either from a policer at the rate of the link, or from a short
    // queue. Behind a short queue, pacing also raises the rate; behind a policer, it does not. No
    // single effect distinguishes the two causes reliably, so all expectations of this rule must be
    // confirmed.
    Rule {
        limit: Limit::LinkRate,
        conditions: POLICED,
        expectations: &[
            &[Expectation::LossFalls(Change::Paced, 0.2)],
            &[Expectation::Keeps(Change::Paced, PACED_LEAST, 1.02)],
            &[Expectation::Keeps(Change::TwoConnections, 0.9, 1.1)],
            &[Expectation::LossStays(Change::PacedAtTwice, 0.5)],
        ],
        proof: Proof::All,
    },
    // On a path with a short round trip, the policer lets bursts pass, which raise the peak
    // delivery rate far above the policed rate. Pacing at 90 % of that peak then does not avoid the
    // losses. The throughput is close to the policed rate, so pacing at half of the throughput
    // avoids them.
    Rule {
        limit: Limit::LinkRate,
        conditions: POLICED,
        expectations: &[
            &[Expectation::LossFalls(Change::PacedAtHalf, 0.2)],
            &[Expectation::Keeps(Change::TwoConnections, 0.9, 1.1)],
            &[Expectation::LossStays(Change::PacedAtTwice, 0.5)],
        ],
        proof: Proof::All,
    },
    // Pacing at 90 % of the peak delivery rate uses most of the link's rate, but avoids bursts. If
    // the losses then vanish and the rate rises, the queue was too short for bursts.
    Rule {
        limit: Limit::QueueDrop,
        conditions: SHORT_QUEUE,
        expectations: &[
            &[Expectation::LossFalls(Change::Paced, 0.2)],
            &[Expectation::Raises(Change::Paced, 1.1)],
        ],
        proof: Proof::All,
    },
    // A queue that is far too short also keeps the congestion window small. The peak delivery rate
    // is then below the rate of the link, so pacing at 90 % of it proves little. This rule
    // therefore uses pacing at twice the throughput. If the losses become fewer at that rate, they
    // are neither random nor caused by a policer.
    Rule {
        limit: Limit::QueueDrop,
        conditions: SHORT_QUEUE,
        expectations: &[
            &[Expectation::LossFalls(Change::PacedAtTwice, 0.5)],
            &[Expectation::Raises(Change::PacedAtTwice, 1.3)],
            &[Expectation::LossFalls(Change::Paced, 0.5)],
        ],
        proof: Proof::First,
    },
    // In a simulated network, the queues themselves can be made longer. A higher rate alone does
    // not prove that they were too short. It also rises if the transfer takes a larger part of a
    // full link from another transfer. A longer queue must therefore also lower the loss rate.
    Rule {
        limit: Limit::QueueDrop,
        conditions: SHORT_QUEUE,
        expectations: &[
            &[Expectation::Raises(Change::QueueLonger, 1.1)],
            &[Expectation::LossFalls(Change::QueueLonger, 0.9)],
        ],
        proof: Proof::All,
    },
    // At half of the throughput, neither a queue nor a policer drops packets. Losses that continue
    // when the sender is paced at this rate are therefore random.
    Rule {
        limit: Limit::RandomLoss,
        conditions: &[
            at_least(Figure::NetworkHolds, 0.3, 0.6, MAJORITY),
            at_least(Figure::Retransmitted, 0.0001, 0.0005, LOSSY),
            at_most(Figure::RoundTripRatio, 1.5, 2.0, NO_QUEUE),
            at_most(Figure::ReceiveDrops, 0.2, 0.5, NOT_THERE),
        ],
        expectations: LOSSES_STAY,
        proof: Proof::All,
    },
    // On a path with a short round trip, data and acknowledgements wait for processors and for
    // other segments of a batch. These waits also raise the mean round-trip time above the shortest
    // one. The ratio of the two then does not indicate a queue, so this rule has no condition on
    // it.
    Rule {
        limit: Limit::RandomLoss,
        conditions: &[
            at_least(Figure::NetworkHolds, 0.3, 0.6, MAJORITY),
            at_least(Figure::Retransmitted, 0.0001, 0.0005, LOSSY),
            at_most(Figure::RoundTripMillis, 1.0, 2.0, "so short a path has no long queue"),
            at_most(Figure::SenderCpu, 0.8, 0.95, CPU_FREE),
            at_most(Figure::ReceiverCpu, 0.8, 0.95, CPU_FREE),
            at_most(Figure::ReceiveDrops, 0.2, 0.5, NOT_THERE),
        ],
        expectations: LOSSES_STAY,
        proof: Proof::All,
    },
    Rule {
        limit: Limit::ReceiveDrop,
        conditions: &[
            at_least(Figure::Retransmitted, 0.0001, 0.0005, LOSSY),
            at_least(Figure::ReceiveDrops, 0.5, 0.8, "the receiver counts what is missing"),
        ],
        expectations: &[&[Expectation::LossFalls(Change::PacedAtHalf, 0.5)]],
        proof: Proof::Counters,
    },
    Rule {
        limit: Limit::PathMtu,
        conditions: &[
            at_least(Figure::Timeouts, 0.0, 1.0, "a lost full segment times out"),
            at_most(Figure::AcknowledgedSegments, 1.0, 10.0, "every full segment is lost"),
        ],
        expectations: &[&[Expectation::Raises(Change::SmallerPackets, 3.0)]],
        proof: Proof::First,
    },
    Rule {
        limit: Limit::CongestionWindow,
        conditions: &[
            at_least(Figure::CongestionWindowFull, 0.3, 0.6, MAJORITY),
            at_most(Figure::Losses, 0.0, 1.0, LOSS_EXPLAINS),
            at_most(Figure::RoundTripRatio, 1.3, 1.6, NO_QUEUE),
            at_most(Figure::WindowGrowth, 1.15, 1.4, "a window at its limit does not grow"),
            at_most(Figure::SenderCpu, 0.8, 0.95, CPU_FREE),
        ],
        expectations: &[
            &[Expectation::Raises(Change::TwoConnections, 1.5)],
            &[Expectation::Keeps(Change::SendBufferLarger, 0.85, 1.15)],
        ],
        proof: Proof::First,
    },
    Rule {
        limit: Limit::RoundTrip,
        conditions: &[
            at_least(Figure::NetworkHolds, 0.1, 0.4, GROWING),
            at_most(Figure::Retransmitted, 0.0001, 0.0005, LOSSLESS),
            at_least(Figure::SlowStart, 0.0, 1.0, "the window has not met a limit"),
            at_least(Figure::WindowGrowth, 1.15, 1.4, "the window still grows"),
            at_most(Figure::RoundTrips, 20.0, 40.0, "slow start takes this many round trips"),
        ],
        expectations: &[&[Expectation::Raises(Change::TwoConnections, 1.4)]],
        proof: Proof::Counters,
    },
];
