//! The data of a transfer that the receiver compares. Each byte depends on its position, so that
//! lost, duplicated or moved bytes are detected. Any part of the data can be generated or checked
//! without the parts before it.

/// An endless sequence of bytes that depends on a seed.
///
/// The bytes are the words w(0), w(1), … in little-endian order. To compute w(n), the sum of n and
/// the seed is multiplied by an odd constant. Then the high half of the product is XORed into the
/// low half. All words differ, and a shift by any distance changes nearly every byte. A word costs
/// a few instructions, which is cheap compared with copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The seed, multiplied by an odd constant so that similar seeds give different sequences.
    seed: u64,
}

/// Number of bytes in a word of the pattern.
const WORD: usize = size_of::<u64>();

impl Pattern {
    /// Creates the pattern of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    /// Fills `into` with the bytes of the pattern from `position` on.
    pub fn fill(self, position: u64, into: &mut [u8]) {
        let (mut index, offset) = split(position);
        let mut rest = into;
        if offset > 0 {
            let (head, tail) = rest.split_at_mut(rest.len().min(WORD - offset));
            head.copy_from_slice(&self.word(index)[offset..offset + head.len()]);
            (rest, index) = (tail, index.wrapping_add(1));
        }
        let mut words = rest.chunks_exact_mut(WORD);
        for word in &mut words {
            word.copy_from_slice(&self.word(index));
            index = index.wrapping_add(1);
        }
        let tail = words.into_remainder();
        tail.copy_from_slice(&self.word(index)[..tail.len()]);
    }

    /// Compares `bytes` with the pattern from `position` on.
    ///
    /// # Errors
    /// The position of the first wrong byte.
    pub fn verify(self, position: u64, bytes: &[u8]) -> Result<(), u64> {
        if self.matches(position, bytes) {
            return Ok(());
        }
        let expected = |at: u64| {
            let (index, offset) = split(at);
            self.word(index)[offset]
        };
        let positions = (0..).map(|distance| position.wrapping_add(distance));
        match bytes.iter().zip(positions).find(|&(&byte, at)| byte != expected(at)) {
            Some((_, at)) => Err(at),
            None => Ok(()),
        }
    }

    /// Does `bytes` equal the pattern from `position` on? This check is faster than
    /// [`Pattern::verify`], because it does not determine where the first difference is.
    fn matches(self, position: u64, bytes: &[u8]) -> bool {
        let (mut index, offset) = split(position);
        let mut rest = bytes;
        let mut wrong = false;
        if offset > 0 {
            let (head, tail) = rest.split_at(rest.len().min(WORD - offset));
            wrong |= head != &self.word(index)[offset..offset + head.len()];
            (rest, index) = (tail, index.wrapping_add(1));
        }
        // A block is compared to its end even after a difference, because the compiler can unroll a
        // loop without an early exit. The differences of a block are combined, and checked after
        // the block.
        for block in rest.chunks(64 * WORD) {
            let mut difference = 0;
            let words = block.chunks_exact(WORD);
            let tail = words.remainder();
            for word in words {
                difference |=
                    u64::from_le_bytes(word.try_into().unwrap_or_default()) ^ self.number(index);
                index = index.wrapping_add(1);
            }
            wrong |= difference != 0 || tail != &self.word(index)[..tail.len()];
            if wrong {
                break;
            }
        }
        !wrong
    }

    fn word(self, index: u64) -> [u8; WORD] {
        self.number(index).to_le_bytes()
    }

    const fn number(self, index: u64) -> u64 {
        let mixed = index.wrapping_add(self.seed).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }
}

/// Returns the number of the word that contains the byte at `position`, and the offset of the byte
/// in the word.
#[allow(clippy::cast_possible_truncation, reason = "a remainder of eight")]
const fn split(position: u64) -> (u64, usize) {
    (position / WORD as u64, (position % WORD as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(pattern: Pattern, position: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        pattern.fill(position, &mut bytes);
        bytes
    }

    #[test]
    fn a_shift_is_detected() {
        let pattern = Pattern::new(1);
        for shift in [1, 2, 8, 1_448, 1_460, 65_536] {
            let wrong = bytes(pattern, shift, 4_096);
            assert!(pattern.verify(0, &wrong).unwrap_err() < 4, "a shift by {shift}");
        }
    }

    #[test]
    fn the_first_wrong_byte_is_reported() {
        let pattern = Pattern::new(2);
        for at in [0, 1, 7, 8, 700, 1_447, 3_999] {
            let mut wrong = bytes(pattern, 13, 4_000);
            wrong[at] ^= 0x10;
            assert_eq!(pattern.verify(13, &wrong), Err(13 + at as u64));
        }
    }

    #[test]
    fn patterns_of_different_seeds_differ() {
        let right = bytes(Pattern::new(3), 0, 64);
        assert!(Pattern::new(4).verify(0, &right).is_err());
        assert!(Pattern::new(0).verify(0, &bytes(Pattern::new(0), 0, 64)).is_ok());
    }

    proptest! {
        #[test]
        fn any_part_can_be_generated_alone(
            seed: u64,
            start in prop_oneof![0..4_096_u64, (u64::MAX / 2)..(u64::MAX - 8_192)],
            cuts in proptest::collection::vec(0..700_usize, 1..12),
        ) {
            let pattern = Pattern::new(seed);
            let total = cuts.iter().sum::<usize>();
            let whole = bytes(pattern, start, total);
            let mut at = 0;
            for cut in cuts {
                let part = &whole[at..at + cut];
                let position = start + at as u64;
                prop_assert_eq!(part, &bytes(pattern, position, cut)[..]);
                prop_assert_eq!(pattern.verify(position, part), Ok(()));
                at += cut;
            }
        }

        #[test]
        fn any_wrong_bit_is_found(
            seed: u64,
            position in 0..1_u64 << 40,
            length in 1..3_000_usize,
            at: prop::sample::Index,
            bit in 0..8_u32,
        ) {
            let pattern = Pattern::new(seed);
            let mut wrong = bytes(pattern, position, length);
            let at = at.index(length);
            wrong[at] ^= 1_u8 << bit;
            prop_assert_eq!(pattern.verify(position, &wrong), Err(position + at as u64));
        }
    }
}
