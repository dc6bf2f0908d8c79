//! The path between two ends: its latency, its capacity and its faults.

use linerate_units::{Duration, Rate};
use oorandom::Rand64;

/// The treatment of one packet by the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet arrives after the latency.
    Arrive,
    /// The packet never arrives, and takes no capacity.
    Lose,
    /// A congested router marks the packet if its sender is ECN-capable, and drops it otherwise
    /// (RFC 3168).
    Mark,
    /// The packet arrives twice, the second time so much later.
    Repeat(Duration),
    /// The packet arrives so much later, behind packets that were sent after it.
    Delay(Duration),
    /// The packet arrives with one bit inverted: the bit of this number, modulo the length.
    Spoil(u64),
}

/// The bottleneck of a path: a line of limited rate with a drop-tail queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Rate at which packets leave the queue.
    pub rate: Rate,
    /// Bytes that the queue holds; packets that arrive at a full queue are lost.
    pub queue: u64,
}

/// A part of the path with a small MTU that drops longer packets silently (a black hole).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// Bytes of the longest IP packet that passes.
    pub most: usize,
    /// Number of the first packet that takes this part of the path, counted over both directions.
    pub from: u64,
    /// Number of the first packet that no longer takes it.
    pub until: u64,
}

/// A path with equal properties in both directions. Probabilities are in thousandths. A packet
/// suffers one fault at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// One-way latency.
    pub latency: Duration,
    /// The bottleneck, if the rate of the path is limited.
    pub line: Option<Line>,
    /// The black hole for long packets, if there is one.
    pub narrow: Option<Narrow>,
    /// Packets lost, in thousandths.
    pub loss: u32,
    /// Packets duplicated, in thousandths.
    pub duplication: u32,
    /// Packets delayed behind later ones, in thousandths.
    pub reordering: u32,
    /// Packets with an inverted bit, in thousandths.
    pub corruption: u32,
    /// Packets that a congested router marks or drops, in thousandths.
    pub marking: u32,
    /// Greatest extra delay of a late packet, or of the second copy of a duplicated one.
    pub lateness: Duration,
}

impl Network {
    /// Creates a path without faults that has only this one-way latency.
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

    /// Draws the fate of the next packet from `random`.
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
