//! The checksum on any CPU. Compilers vectorise its loops.

use super::arithmetic::{SHORT, fold};

/// Returns the folded sum over `bytes`, in native byte order.
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

/// Copies `from` to `to`, which must have the same length, and returns the sum over `from`.
pub(super) fn copy_and_sum(from: &[u8], to: &mut [u8]) -> u16 {
    if from.len() < 8 {
        return fold(copy_and_sum_few(from, to));
    }
    to.copy_from_slice(from);
    sum(from)
}

/// Returns the sum over a short input, added in words of eight bytes with carry. Vector
/// instructions would need more time for their setup.
#[inline]
pub(crate) fn sum_short(bytes: &[u8]) -> u64 {
    // A common input, the TCP header with timestamps, has exactly 32 bytes. It is summed by the
    // first arm, without a loop.
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

/// Adds `words` to `sum` in ones' complement.
#[inline(always)]
fn add_words(sum: u64, words: &[[u8; 8]]) -> u64 {
    words.iter().fold(sum, |sum, &word| add(sum, u64::from_ne_bytes(word)))
}

/// Returns the sum over the final `count` bytes of an input. `last` are its final eight bytes, of
/// which the others have already been summed.
#[inline]
fn end_of(last: [u8; 8], count: usize) -> u64 {
    (u64::from_le_bytes(last) >> (64 - 8 * count)).to_le()
}

/// Copies and sums fewer than eight bytes. Inline stores are faster than a call of `memcpy` here.
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

/// Returns the sum over fewer than eight bytes.
#[inline]
fn sum_of_few(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let (halves, odd) = rest.as_chunks::<2>();
    let word = words.first().map_or(0, |&word| u64::from(u32::from_ne_bytes(word)));
    let half = halves.first().map_or(0, |&half| u64::from(u16::from_ne_bytes(half)));
    let odd = odd.first().map_or(0, |&byte| u64::from(u16::from_ne_bytes([byte, 0])));
    word + half + odd
}

/// Adds two numbers in 64-bit ones' complement. The result equals the true sum modulo 65,535, and
/// is zero only if both numbers are zero.
#[inline]
const fn add(left: u64, right: u64) -> u64 {
    let (sum, carry) = left.overflowing_add(right);
    sum + carry as u64
}

/// Sums of 64-bit words in four lanes. For each lane, `whole` has the sum of its words modulo 2^64,
/// and `upper` the sum of the upper halves. The sum of the lower halves follows from the two, so
/// carries out of 64 bits need not be counted.
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

/// Returns the sum over the 32-bit halves of 64-bit words. `whole` is the sum of the words modulo
/// 2^64, and `upper` the sum of their upper halves. The sum of the halves equals the sum of the
/// words modulo 65,535, since 2^32 ≡ 1 (mod 65,535).
const fn halves(whole: u64, upper: u64) -> u64 {
    whole.wrapping_sub(upper << 32) + upper
}
