//! The way between two ends: how long it takes, how much it carries, and what it does to a packet.

use linerate_units::{Duration, Rate};
use oorandom::Rand64;

/// What happens to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives after the latency.
    Arrive,
    /// It never arrives, and takes no room on the way.
    Lose,
    /// A congested router marks it, if its sender allows that, and drops it otherwise (RFC 3168).
    Mark,
    /// It arrives twice, the second time so much later.
    Repeat(Duration),
    /// It arrives so much later, behind others.
    Delay(Duration),
    /// It arrives with one of its bits turned over; counted from the first, around the end if need be.
    Spoil(u64),
}

/// The narrowest part of a path: packets leave it one after the other, and wait in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// How fast packets leave it.
    pub rate: Rate,
    /// Bytes of packets that may wait for it; those that come while as many do are lost.
    pub queue: u64,
}

/// A part of the path that takes short packets only, and says nothing about the others: they vanish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// Bytes of the longest packet that passes, as the wire carries it.
    pub most: usize,
    /// The path leads there from the packet with this number on, of those that either end sends.
    pub from: u64,
    /// From this one on it does not any more.
    pub until: u64,
}

/// A path with the same properties in both directions. Shares are in thousandths of all packets; each
/// packet has one accident at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// From one end to the other.
    pub latency: Duration,
    /// What a packet has to pass first, if the path is not of any width.
    pub line: Option<Line>,
    /// What swallows long packets, if anything does.
    pub narrow: Option<Narrow>,
    /// Packets lost, of a thousand.
    pub loss: u32,
    /// Packets that arrive twice, of a thousand.
    pub duplication: u32,
    /// Packets that arrive late, of a thousand.
    pub reordering: u32,
    /// Packets that arrive with a wrong bit, of a thousand.
    pub corruption: u32,
    /// Packets that a congested router marks or drops, of a thousand.
    pub marking: u32,
    /// The most that a late one, or the second of two, is late.
    pub lateness: Duration,
}

impl Network {
    /// A path that only takes `latency`.
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

    /// The fate of the next packet, drawn from `random`.
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
