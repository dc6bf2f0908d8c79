//! What is between two hosts: time, and accidents drawn from a seed.

use crate::pair::Side;
use linerate_units::{Duration, Instant};
use oorandom::Rand64;
use std::collections::BTreeMap;

/// How often a frame has which accident, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// It is lost.
    pub loss: u64,
    /// It arrives twice.
    pub duplication: u64,
    /// It arrives after frames that were sent later.
    pub reordering: u64,
    /// One of its bits changes.
    pub corruption: u64,
}

/// Frames on their way.
#[derive(Debug)]
pub struct Wire {
    /// How long a frame takes.
    pub latency: Duration,
    /// What happens to frames.
    pub impairment: Impairment,
    random: Rand64,
    /// By the time of arrival, and in the order of sending where that is the same.
    in_flight: BTreeMap<(Instant, u64), (Side, Vec<u8>)>,
    sent: u64,
}

impl Wire {
    /// A wire whose accidents are drawn from `seed`.
    #[must_use]
    pub fn new(latency: Duration, impairment: Impairment, seed: u64) -> Self {
        let random = Rand64::new(u128::from(seed));
        Self { latency, impairment, random, in_flight: BTreeMap::new(), sent: 0 }
    }

    /// Sends a frame towards `to`.
    pub fn send(&mut self, now: Instant, to: Side, mut frame: Vec<u8>) {
        if self.happens(self.impairment.loss) {
            return;
        }
        if self.happens(self.impairment.corruption) && !frame.is_empty() {
            let bit = self.random.rand_range(0..frame.len() as u64 * 8);
            frame[usize::try_from(bit / 8).unwrap_or(0)] ^= 1 << (bit % 8);
        }
        if self.happens(self.impairment.duplication) {
            self.carry(now, to, frame.clone());
        }
        self.carry(now, to, frame);
    }

    /// When the next frame arrives.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.in_flight.first_key_value().map_or(Instant::NEVER, |(&(at, _), _)| at)
    }

    /// Takes the next frame that has arrived by `now`.
    pub fn arrive(&mut self, now: Instant) -> Option<(Instant, Side, Vec<u8>)> {
        let first = self.in_flight.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), (to, frame)) = first.remove_entry();
        Some((at, to, frame))
    }

    fn carry(&mut self, now: Instant, to: Side, frame: Vec<u8>) {
        let mut at = now + self.latency;
        if self.happens(self.impairment.reordering) {
            at += Duration::from_nanos(self.random.rand_range(1..self.latency.as_nanos().max(100_000) * 3));
        }
        self.sent += 1;
        self.in_flight.insert((at, self.sent), (to, frame));
    }

    fn happens(&mut self, thousandths: u64) -> bool {
        thousandths > 0 && self.random.rand_range(0..1_000) < thousandths
    }
}
