//! A token bucket, which limits the rate of packets that a peer can provoke.

use linerate_units::{Duration, Instant};

/// A limit of the rate at which a host sends packets of one kind, in answer to packets of its
/// peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Maximum number of packets per second in the long run. Zero permits no packets at all,
    /// whatever `burst` is.
    pub per_second: u32,
    /// Maximum number of packets that may be sent at once after an idle time.
    pub burst: u32,
}

/// A token bucket. Each token permits one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    interval: Duration,
    /// Time in which an empty bucket becomes full. Invariant: `full_at` is at most this time after
    /// the `now` of the most recent call of [`TokenBucket::take`].
    depth: Duration,
    /// Time at which the bucket will be full if no further token is taken. Until then, one token is
    /// missing for each `interval` that remains.
    full_at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket, which gains `per_second` tokens per second and holds up to `burst`
    /// tokens. If `per_second` is zero, the bucket never has a token.
    pub(crate) fn new(RateLimit { per_second, burst }: RateLimit) -> Self {
        let interval = Duration::from_secs(1) / u64::from(per_second);
        Self { interval, depth: interval * u64::from(burst), full_at: Instant::ZERO }
    }

    /// Takes a token. Returns false if the bucket has no token.
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
    fn packets_pass_at_the_rate_after_a_burst() {
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
