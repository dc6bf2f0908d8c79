//! The checksum with AVX2. It takes three instructions for 32 bytes, or four and a quarter if the
//! bytes are also copied.

use super::arithmetic::fold;
use super::portable::sum_short;
use core::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_cvtsi128_si64, _mm_hadd_epi32,
    _mm_shuffle_epi32, _mm_unpackhi_epi64, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256,
    _mm256_avg_epu16, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_hadd_epi32,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi16, _mm256_setzero_si256,
    _mm256_slli_epi32, _mm256_storeu_si256, _mm256_xor_si256,
};

cpufeatures::new!(detected, "avx2");

const BLOCK: usize = 32;

/// A value that exists only if this CPU has AVX2. Functions that use AVX2 require it as an
/// argument, because their behaviour is undefined on other CPUs.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Returns the value if this CPU has AVX2, otherwise `None`. The CPU is queried once per
    /// process.
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        detected::get().then_some(Self(()))
    }

    /// Returns the folded sum over `bytes`, in native byte order.
    #[inline]
    pub(super) fn sum(self, bytes: &[u8]) -> u16 {
        // SAFETY: `self` exists only if the CPU has AVX2.
        unsafe { sum(bytes) }
    }

    /// Copies `from` to the start of `to`, which must not be shorter, and returns the sum over
    /// `from`.
    #[inline]
    pub(super) fn copy_and_sum(self, from: &[u8], to: &mut [u8]) -> u16 {
        // SAFETY: `self` exists only if the CPU has AVX2.
        unsafe { copy_and_sum(from, to) }
    }
}

/// The maximum number of bytes that are added to the same lanes. They are 32,768 words of 16 bits,
/// whose sum has at most 31 bits. A 32-bit lane can therefore not overflow.
pub(super) const PART: usize = 64 << 10;

/// The number of bytes in a step of the copying loop: eight blocks. If a step had only one load and
/// one store, compilers would replace the stores by a call of `memcpy`. Summing would then take a
/// second loop, and copying and summing together 1.5 times as long.
const STEP: usize = 8 * BLOCK;

/// The number of bytes in a small step: two blocks. Small steps handle the bytes after the last
/// whole [`STEP`].
const PAIR: usize = 2 * BLOCK;

#[target_feature(enable = "avx2")]
fn sum(bytes: &[u8]) -> u16 {
    if bytes.len() < BLOCK {
        return fold(sum_short(bytes));
    }
    if bytes.len() <= PART {
        return fold(sum_part(bytes));
    }
    let (parts, rest) = bytes.as_chunks::<PART>();
    let rest = if rest.len() < BLOCK { fold(sum_short(rest)).into() } else { sum_part(rest) };
    fold(parts.iter().map(|part| sum_part(part)).sum::<u64>() + rest)
}

#[target_feature(enable = "avx2")]
fn copy_and_sum(from: &[u8], to: &mut [u8]) -> u16 {
    let to = &mut to[..from.len()];
    if (BLOCK..=PART).contains(&from.len()) {
        return fold(copy_and_sum_part(from, to));
    }
    copy_then_sum(from, to)
}

/// Copies and sums an input that is shorter than a block or longer than [`PART`]. The function is
/// not inlined, so that the common path of the caller contains no calls, for which it would have to
/// save registers.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2")]
fn copy_then_sum(from: &[u8], to: &mut [u8]) -> u16 {
    to.copy_from_slice(from);
    sum(to)
}

/// Returns the sum over `bytes`, whose length is from one block to [`PART`].
#[target_feature(enable = "avx2")]
fn sum_part(bytes: &[u8]) -> u64 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let mut lanes = Lanes::zero();
    for step in steps {
        let (pairs, _) = step.as_chunks();
        for pair in pairs {
            lanes.add_both(load_pair(pair));
        }
    }
    let (pairs, rest) = rest.as_chunks();
    for pair in pairs {
        lanes.add_both(load_pair(pair));
    }
    if let Some(block) = rest.first_chunk() {
        lanes.add(load(block));
    }
    lanes.total(bytes)
}

/// Copies `from`, whose length is from one block to [`PART`], to a buffer of equal length, and
/// returns the sum.
#[target_feature(enable = "avx2")]
fn copy_and_sum_part(from: &[u8], to: &mut [u8]) -> u64 {
    let to = &mut to[..from.len()];
    let end = from.len() - BLOCK;
    if let (Some(last), Some(last_to)) = (from[end..].first_chunk(), to[end..].first_chunk_mut()) {
        // An incomplete block at the end is copied by a store of the last 32 bytes. This store
        // overlaps the block before, which is harmless.
        store(load(last), last_to);
    }
    let (steps, rest) = from.as_chunks::<STEP>();
    let (steps_to, rest_to) = to.as_chunks_mut::<STEP>();
    let mut columns = Columns::zero();
    for (step, step_to) in steps.iter().zip(steps_to) {
        let (blocks, _) = step.as_chunks();
        let (blocks_to, _) = step_to.as_chunks_mut();
        columns.add(core::array::from_fn(|at| copy_block(&blocks[at], &mut blocks_to[at])));
    }
    let mut lanes = Lanes::zero();
    let (pairs, rest) = rest.as_chunks();
    let (pairs_to, rest_to) = rest_to.as_chunks_mut();
    for (pair, pair_to) in pairs.iter().zip(pairs_to) {
        lanes.add_both(copy_pair(pair, pair_to));
    }
    if let (Some(block), Some(block_to)) = (rest.first_chunk(), rest_to.first_chunk_mut()) {
        let words = load(block);
        store(words, block_to);
        lanes.add(words);
    }
    lanes.total_with(&columns, from)
}

/// Sums of 16-bit words in 16-bit columns, which take two and a quarter instructions for 32 bytes.
///
/// A column may overflow. So the averages of its words, which cannot overflow, are added as well.
/// They give an approximate sum, from which it follows how often the column has overflowed.
struct Columns {
    wrapped: __m256i,
    /// The sums of pairs of columns, divided by eight, as the averages give them. As in [`Lanes`],
    /// 32,768 is subtracted from each 16-bit word. Averages are rounded up, so eight times this
    /// value is at least the true sum. It exceeds the true sum by at most 12 for each step and
    /// column, which is 49,152 in [`PART`] bytes. Two sums that wrap to the same value differ by at
    /// least 65,536, so this bound determines which of them is the true one.
    eighths: __m256i,
}

impl Columns {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn zero() -> Self {
        Self { wrapped: _mm256_setzero_si256(), eighths: _mm256_setzero_si256() }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(&mut self, [a, b, c, d, e, f, g, h]: [__m256i; 8]) {
        for words in [a, b, c, d, e, f, g, h] {
            self.wrapped = _mm256_add_epi16(self.wrapped, words);
        }
        let four = [
            _mm256_avg_epu16(a, b),
            _mm256_avg_epu16(c, d),
            _mm256_avg_epu16(e, f),
            _mm256_avg_epu16(g, h),
        ];
        let two = [_mm256_avg_epu16(four[0], four[1]), _mm256_avg_epu16(four[2], four[3])];
        self.eighths = _mm256_add_epi32(self.eighths, in_pairs(_mm256_avg_epu16(two[0], two[1])));
    }
}

/// Sums of 16-bit words in 32-bit lanes. 32,768 is subtracted from each word, because the
/// instruction that adds neighbouring words treats them as signed.
struct Lanes {
    even: __m256i,
    odd: __m256i,
}

/// Masks for a block of which only the last `n` bytes are to be summed. The mask for `n` is the 32
/// bytes at offset `n`, and clears the other bytes of the block.
const MASK: [u8; 2 * BLOCK] = {
    let mut mask = [0; 2 * BLOCK];
    let mut at = BLOCK;
    while at < mask.len() {
        mask[at] = 0xff;
        at += 1;
    }
    mask
};

impl Lanes {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn zero() -> Self {
        Self { even: _mm256_setzero_si256(), odd: _mm256_setzero_si256() }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(&mut self, words: __m256i) {
        self.even = _mm256_add_epi32(self.even, in_pairs(words));
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add_both(&mut self, (even, odd): (__m256i, __m256i)) {
        self.even = _mm256_add_epi32(self.even, in_pairs(even));
        self.odd = _mm256_add_epi32(self.odd, in_pairs(odd));
    }

    /// Returns the sum over the whole input `bytes`. The caller must have added all whole blocks to
    /// these lanes; this function adds the rest.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn total(mut self, bytes: &[u8]) -> u64 {
        let taken_off = self.add_rest(bytes);
        let lanes = _mm256_add_epi32(self.even, self.odd);
        let four =
            _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes));
        let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
        let one = _mm_add_epi32(two, _mm_shuffle_epi32::<1>(two));
        taken_off.wrapping_add_signed(_mm_cvtsi128_si32(one).into())
    }

    /// Returns the sum over the whole input `bytes`. The caller must have added each whole block to
    /// these lanes or to `columns`; this function adds the rest.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn total_with(mut self, columns: &Columns, bytes: &[u8]) -> u64 {
        let taken_off = self.add_rest(bytes);
        let lanes = _mm256_add_epi32(self.even, self.odd);
        // `above` is at least the sum, and exceeds it by less than 2^16 (see [`Columns`]). `left`
        // equals the sum modulo 2^16. So the sum is `above` minus the difference between the two
        // modulo 2^16.
        let above = _mm256_add_epi32(lanes, _mm256_slli_epi32::<3>(columns.eighths));
        let left =
            _mm256_add_epi32(lanes, _mm256_madd_epi16(columns.wrapped, _mm256_set1_epi16(1)));
        let eight = _mm256_hadd_epi32(above, left);
        let four =
            _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
        let both = _mm_cvtsi128_si64(_mm_hadd_epi32(four, four));
        #[allow(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
        let above = both as i32;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the difference modulo 2^16 is wanted"
        )]
        let more = both.wrapping_sub(both >> 32) as u16;
        taken_off.wrapping_add_signed(i64::from(above) - i64::from(more))
    }

    /// Adds the words of the input `bytes` that follow the last whole block. Returns the number
    /// that the caller must add to the sum of these lanes. It compensates for the 32,768 subtracted
    /// from each word, also from those that the mask cleared. If the length is odd, the last byte
    /// is added to this number.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn add_rest(&mut self, bytes: &[u8]) -> u64 {
        let (even, odd) = bytes.split_at(bytes.len() & !1);
        let left = even.len() % BLOCK;
        if left > 0
            && let Some(mask) = MASK[left..].first_chunk()
            && let Some(block) = even[even.len() - BLOCK..].first_chunk()
        {
            // `block` is the last 32 bytes of `even`. It overlaps the last whole block, whose words
            // were already added. The mask clears these words.
            self.add(_mm256_and_si256(load(block), load(mask)));
        }
        let blocks = bytes.len() / BLOCK + usize::from(left > 0);
        32_768 * (blocks * BLOCK / 2) as u64
            + odd.first().map_or(0, |&byte| u64::from(u16::from_ne_bytes([byte, 0])))
    }
}

/// Adds each pair of neighbouring 16-bit words, after subtracting 32,768 from each word.
#[target_feature(enable = "avx2")]
#[inline]
fn in_pairs(words: __m256i) -> __m256i {
    let signed = _mm256_xor_si256(words, _mm256_set1_epi16(i16::MIN));
    _mm256_madd_epi16(signed, _mm256_set1_epi16(1))
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(block: &[u8; BLOCK]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes that are read; this load requires no alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_pair(pair: &[u8; PAIR]) -> (__m256i, __m256i) {
    let (blocks, _) = pair.as_chunks();
    (load(&blocks[0]), load(&blocks[1]))
}

/// Copies a block to `to`, and returns its bytes in a vector.
#[target_feature(enable = "avx2")]
#[inline]
fn copy_block(block: &[u8; BLOCK], to: &mut [u8; BLOCK]) -> __m256i {
    let words = load(block);
    store(words, to);
    words
}

/// Copies two blocks to `to`, and returns their bytes in two vectors.
#[target_feature(enable = "avx2")]
#[inline]
fn copy_pair(pair: &[u8; PAIR], to: &mut [u8; PAIR]) -> (__m256i, __m256i) {
    let (blocks, _) = pair.as_chunks();
    let (blocks_to, _) = to.as_chunks_mut();
    (copy_block(&blocks[0], &mut blocks_to[0]), copy_block(&blocks[1], &mut blocks_to[1]))
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(vector: __m256i, block: &mut [u8; BLOCK]) {
    // SAFETY: the reference covers the 32 bytes that are written; this store requires no alignment.
    unsafe { _mm256_storeu_si256(block.as_mut_ptr().cast(), vector) }
}
