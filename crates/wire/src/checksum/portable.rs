//! The sum for any machine, in a form that compilers turn into vector code.

use super::{SHORT, fold};

/// The folded sum over `bytes`, in the machine's byte order.
pub(super) fn sum(bytes: &[u8]) -> u16 {
    if bytes.len() < SHORT {
        return fold(sum_short(bytes));
    }
    let (blocks, rest) = bytes.as_chunks::<{ Lanes::BYTES }>();
    let mut lanes = Lanes::default();
    for block in blocks {
        lanes.add(block);
    }
    fold(add(lanes.total(), sum_short(rest)))
}

/// Copies `from` to `to`, which is as long, and returns the sum over it.
pub(super) fn copy_and_sum(from: &[u8], to: &mut [u8]) -> u16 {
    if from.len() < 8 {
        return fold(copy_and_sum_few(from, to));
    }
    to.copy_from_slice(from);
    sum(from)
}

/// The sum over a few bytes: eight at a time with the carry coming round, which is not worth vectors.
#[inline]
pub(crate) fn sum_short(bytes: &[u8]) -> u64 {
    // A header with timestamps, which nearly all have, is no loop.
    let (front, bytes_behind) = match bytes.split_first_chunk::<32>() {
        Some((front, behind)) => (add_words(0, front.as_chunks().0), behind),
        None => (0, bytes),
    };
    let (words, rest) = bytes_behind.as_chunks::<8>();
    let sum = add_words(front, words);
    match bytes.last_chunk() {
        _ if rest.is_empty() => sum,
        Some(&last) => add(sum, end_of(last, rest.len())),
        None => sum_of_few(rest),
    }
}

/// The sum over these words as well.
#[inline(always)]
fn add_words(sum: u64, words: &[[u8; 8]]) -> u64 {
    words.iter().fold(sum, |sum, &word| add(sum, u64::from_ne_bytes(word)))
}

/// The sum over the last `count` bytes of `last`, without those that were among the words before.
#[inline]
fn end_of(last: [u8; 8], count: usize) -> u64 {
    (u64::from_le_bytes(last) >> (64 - 8 * count)).to_le()
}

/// Copies less than eight bytes to as much room, and sums them; without a call, which takes longer.
#[inline]
fn copy_and_sum_few(from: &[u8], to: &mut [u8]) -> u64 {
    let (words, rest) = from.as_chunks::<4>();
    let (words_to, rest_to) = to.as_chunks_mut::<4>();
    let (halves, odd) = rest.as_chunks::<2>();
    let (halves_to, odd_to) = rest_to.as_chunks_mut::<2>();
    let mut sum = 0;
    if let (Some(&word), Some(word_to)) = (words.first(), words_to.first_mut()) {
        *word_to = word;
        sum += u64::from(u32::from_ne_bytes(word));
    }
    if let (Some(&half), Some(half_to)) = (halves.first(), halves_to.first_mut()) {
        *half_to = half;
        sum += u64::from(u16::from_ne_bytes(half));
    }
    if let (Some(&byte), Some(byte_to)) = (odd.first(), odd_to.first_mut()) {
        *byte_to = byte;
        sum += u64::from(u16::from_ne_bytes([byte, 0]));
    }
    sum
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
