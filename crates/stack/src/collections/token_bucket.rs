//! A token bucket, which limits the rate of what a peer can provoke.

use linerate_units::{Duration, Instant};

/// The rate at which a host sends packets of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The number of packets per second in the long run; 0 for none at all.
    pub per_second: u32,
    /// The number of packets that may follow immediately after a quiet time.
    pub burst: u32,
}

/// A rate limit with an allowance for bursts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    interval: Duration,
    /// The maximum by which `full_at` may be in the future: the time to fill an empty bucket.
    depth: Duration,
    /// The time at which the bucket is full again, if no further token is taken.
    full_at: Instant,
}

impl TokenBucket {
    /// Creates a bucket that gains `per_second` tokens a second and holds up to `burst`. A rate of
    /// zero allows nothing.
    pub(crate) fn new(RateLimit { per_second, burst }: RateLimit) -> Self {
        let interval = Duration::from_secs(1) / u64::from(per_second);
        Self { interval, depth: interval * u64::from(burst), full_at: Instant::ZERO }
    }

    /// Takes a token, if there is one. Returns whether there was.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.interval;
        let is_available = self.interval != Duration::MAX && full_at.since(now) <= self.depth;
        if is_available {
            self.full_at = full_at;
        }
        is_available
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut bucket = TokenBucket::new(RateLimit { per_second: 10, burst: 3 });
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
        assert!(!TokenBucket::new(RateLimit { per_second: 0, burst: 5 }).take(Instant::ZERO));
    }
}
