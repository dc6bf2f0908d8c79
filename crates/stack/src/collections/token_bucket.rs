//! How often something may happen that a peer can provoke.

use linerate_units::{Duration, Instant};

/// So many a second, and a few more after a quiet time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    interval: Duration,
    /// How far `full_at` may be ahead of the present.
    depth: Duration,
    /// When the bucket will be full again if nothing more is taken.
    full_at: Instant,
}

impl TokenBucket {
    /// `per_second` tokens a second, of which `burst` can be saved up. Nothing flows at a rate of
    /// zero.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / u64::from(per_second);
        Self { interval, depth: interval * u64::from(burst), full_at: Instant::ZERO }
    }

    /// Takes a token, if one is there.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.interval;
        let there = self.interval != Duration::MAX && full_at.since(now) <= self.depth;
        if there {
            self.full_at = full_at;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut bucket = TokenBucket::new(10, 3);
        let taken = |bucket: &mut TokenBucket, ms: u64| {
            let now = Instant::ZERO + Duration::from_millis(ms);
            (0..100).filter(|_| bucket.take(now)).count()
        };
        assert_eq!(taken(&mut bucket, 0), 3);
        assert_eq!(taken(&mut bucket, 99), 0);
        assert_eq!(taken(&mut bucket, 100), 1);
        assert_eq!(taken(&mut bucket, 10_000), 3);
    }

    #[test]
    fn nothing_passes_at_a_rate_of_zero() {
        assert!(!TokenBucket::new(0, 5).take(Instant::ZERO));
    }
}
