//! Truncated binary exponential backoff (IEEE 802.3 §4.2.3.2.5).

use crate::rng::Stream;

/// Maximum number of attempts to send a frame.
pub(crate) const ATTEMPT_LIMIT: u8 = 16;
/// Number of collisions after which further collisions no longer double the range of the backoff.
const BACKOFF_LIMIT: u8 = 10;

/// Draws the number of slot times that a station waits after collision number `n` of a frame. The
/// number is random between 0 and 2^min(n, 10) − 1. Returns `None` if `n` has reached the limit of
/// attempts, so that the frame is abandoned.
pub(super) fn slots(random: &mut Stream, collision: u8) -> Option<u64> {
    (collision < ATTEMPT_LIMIT).then(|| random.below(1 << collision.min(BACKOFF_LIMIT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_doubles_with_each_collision_up_to_1024_slots() {
        let mut random = Stream::new(1, 1);
        for (collision, range) in [(1, 2), (2, 4), (10, 1_024), (15, 1_024)] {
            let drawn: Vec<u64> =
                (0..20_000).filter_map(|_| slots(&mut random, collision)).collect();
            assert_eq!(
                (drawn.len(), drawn.iter().min(), drawn.iter().max()),
                (20_000, Some(&0), Some(&(range - 1)))
            );
        }
        assert_eq!(slots(&mut random, 16), None);
    }
}
