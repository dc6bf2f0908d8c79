//! The way between two ends: how long it takes, and what it does to a packet.

use linerate_units::Duration;

/// What happens to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives after the latency.
    Arrive,
    /// It never arrives.
    Lose,
    /// It arrives twice, the second time so much later.
    Repeat(Duration),
    /// It arrives so much later, behind others.
    Delay(Duration),
}

/// A path with the same properties in both directions. Shares are in thousandths of all packets.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// From one end to the other.
    pub latency: Duration,
    /// Packets lost, of a thousand.
    pub loss: u32,
    /// Packets that arrive twice, of a thousand.
    pub duplication: u32,
    /// Packets that arrive late, of a thousand.
    pub reordering: u32,
    /// The most that a late one is late.
    pub lateness: Duration,
}

impl Network {
    /// A path that only takes `latency`.
    #[must_use]
    pub const fn clean(latency: Duration) -> Self {
        Self { latency, loss: 0, duplication: 0, reordering: 0, lateness: Duration::ZERO }
    }

    /// The fate of the next packet, drawn from `random`.
    pub fn draw(&self, random: &mut oorandom::Rand32) -> Fate {
        let late = |random: &mut oorandom::Rand32| {
            let micros = u32::try_from(self.lateness.as_micros()).unwrap_or(u32::MAX).max(1);
            Duration::from_micros(u64::from(random.rand_range(0..micros)))
        };
        let dice = random.rand_range(0..1_000);
        if dice < self.loss {
            Fate::Lose
        } else if dice < self.loss + self.duplication {
            Fate::Repeat(late(random))
        } else if dice < self.loss + self.duplication + self.reordering {
            Fate::Delay(late(random))
        } else {
            Fate::Arrive
        }
    }
}
