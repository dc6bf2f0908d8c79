//! The sum for any machine, in a form that compilers turn into vector code.

use super::fold;

/// The folded sum over `bytes`, in the machine's byte order.
pub(super) fn sum(bytes: &[u8]) -> u16 {
    if bytes.len() < 2 * Lanes::BYTES {
        return fold(sum_short(bytes));
    }
    let (blocks, rest) = bytes.as_chunks::<{ Lanes::BYTES }>();
    let mut lanes = Lanes::default();
    for block in blocks {
        lanes.add(block);
    }
    fold(add(lanes.total(), sum_short(rest)))
}

/// The sum over a few bytes: eight at a time with the carry coming round, which is not worth vectors.
#[inline]
pub(super) fn sum_short(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0, |sum, &word| add(sum, u64::from_ne_bytes(word)));
    match bytes.last_chunk() {
        _ if rest.is_empty() => sum,
        // The last eight, without those that were among the words before.
        Some(&last) => add(sum, (u64::from_le_bytes(last) >> (64 - 8 * rest.len())).to_le()),
        None => sum_of_few(rest),
    }
}

/// The sum over less than eight bytes.
#[inline]
fn sum_of_few(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let (halves, odd) = rest.as_chunks::<2>();
    let word = words.first().map_or(0, |&word| u64::from(u32::from_ne_bytes(word)));
    let half = halves.first().map_or(0, |&half| u64::from(u16::from_ne_bytes(half)));
    let odd = odd.first().map_or(0, |&byte| u64::from(u16::from_ne_bytes([byte, 0])));
    word + half + odd
}

/// Ones'-complement addition of 64 bits, of which 65,535 is a divisor; zero only for two zeros.
#[inline]
const fn add(left: u64, right: u64) -> u64 {
    let (sum, carry) = left.overflowing_add(right);
    sum + carry as u64
}

/// Four columns of 64-bit words, each summed twice: whole and modulo 2^64, and its upper halves
/// alone. The difference is the sum of the lower halves, so no carry is ever lost or looked at.
#[derive(Default)]
struct Lanes {
    whole: [u64; 4],
    upper: [u64; 4],
}

impl Lanes {
    const BYTES: usize = 32;

    fn add(&mut self, block: &[u8; Self::BYTES]) {
        let (words, _) = block.as_chunks::<8>();
        for ((whole, upper), &word) in self.whole.iter_mut().zip(&mut self.upper).zip(words) {
            let word = u64::from_ne_bytes(word);
            *whole = whole.wrapping_add(word);
            *upper += word >> 32;
        }
    }

    fn total(&self) -> u64 {
        self.whole.iter().zip(self.upper).map(|(&whole, upper)| halves(whole, upper)).sum()
    }
}

/// The sum of all halves of the 64-bit words that add up to `whole` modulo 2^64 and whose upper
/// halves add up to `upper`. As 2^32 is 1 modulo 65,535, it is what a checksum wants.
const fn halves(whole: u64, upper: u64) -> u64 {
    whole.wrapping_sub(upper << 32) + upper
}
