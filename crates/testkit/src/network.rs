//! A simulated path between two endpoints: its latency, its capacity and its faults.

use linerate_units::{Duration, Rate};
use oorandom::Rand64;

/// The effect that the network has on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet arrives after the latency of the path.
    Arrive,
    /// The packet is lost before the bottleneck, so it does not occupy the bottleneck.
    Lose,
    /// A congested router marks the packet if its sender is ECN-capable, and drops it otherwise
    /// (RFC 3168).
    Mark,
    /// The packet arrives twice. The second copy arrives later than the first by this additional
    /// delay.
    Repeat(Duration),
    /// The packet arrives with this additional delay. Packets that were sent later may overtake it.
    Delay(Duration),
    /// The packet arrives with one bit inverted. The field is the number of this bit, taken modulo
    /// the number of bits in the packet.
    Spoil(u64),
}

/// The bottleneck of a path: a line of limited rate with a drop-tail queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Bit rate at which packets leave the queue.
    pub rate: Rate,
    /// Size of the queue in bytes. Packets that arrive at a full queue are lost.
    pub queue: u64,
}

/// A part of the path that drops packets longer than its MTU and sends no ICMP errors (a black
/// hole).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// Size of the longest IP packet that passes this part of the path, in bytes.
    pub most: usize,
    /// Number of the first packet to which the limit applies. Packets are counted from 1 over both
    /// directions, without those whose fate is [`Fate::Lose`].
    pub from: u64,
    /// Number of the first packet to which the limit no longer applies. Packets are counted as for
    /// `from`.
    pub until: u64,
}

/// A path with equal properties in both directions. Each packet suffers at most one of the faults
/// below, whose probabilities are in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Latency in one direction.
    pub latency: Duration,
    /// The bottleneck of the path; `None` if its rate is unlimited.
    pub line: Option<Line>,
    /// A part of the path that silently drops packets above a size; `None` if all packets pass.
    pub narrow: Option<Narrow>,
    /// Probability that a packet is lost, in thousandths.
    pub loss: u32,
    /// Probability that a packet is duplicated, in thousandths.
    pub duplication: u32,
    /// Probability that a packet is delayed, so that later packets can overtake it, in thousandths.
    pub reordering: u32,
    /// Probability that one bit of a packet is inverted, in thousandths.
    pub corruption: u32,
    /// Probability that a congested router marks a packet, in thousandths. A packet that is not
    /// ECN-capable is dropped instead.
    pub marking: u32,
    /// Maximum additional delay of a delayed packet, and of the second copy of a duplicated packet.
    /// The actual delay is random, from zero to this time.
    pub lateness: Duration,
}

impl Network {
    /// Creates a path without faults and without a limit of its rate.
    #[must_use]
    pub const fn clean(latency: Duration) -> Self {
        Self {
            latency,
            line: None,
            narrow: None,
            loss: 0,
            duplication: 0,
            reordering: 0,
            corruption: 0,
            marking: 0,
            lateness: Duration::ZERO,
        }
    }

    /// Draws the fate of the next packet by the random numbers `random`.
    pub fn draw(&self, random: &mut Rand64) -> Fate {
        let dice = random.rand_range(0..1_000);
        let mut shares = 0;
        let mut hit = |share: u32| {
            shares += u64::from(share);
            dice < shares
        };
        if hit(self.loss) {
            Fate::Lose
        } else if hit(self.duplication) {
            Fate::Repeat(self.late(random))
        } else if hit(self.reordering) {
            Fate::Delay(self.late(random))
        } else if hit(self.corruption) {
            Fate::Spoil(random.rand_u64())
        } else if hit(self.marking) {
            Fate::Mark
        } else {
            Fate::Arrive
        }
    }

    fn late(&self, random: &mut Rand64) -> Duration {
        Duration::from_nanos(random.rand_range(0..self.lateness.as_nanos().max(1)))
    }
}
