//! The checksum with AVX-512: half as many steps as with AVX2, and masked loads and stores for an
//! incomplete block at the end.

use super::arithmetic::fold;
use super::avx2::PART;
use core::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_madd_epi16, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_reduce_add_epi32, _mm512_set1_epi16, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_xor_si512,
};

// The code does not use `avx512vbmi2`. It is required because only the CPUs since Ice Lake and Zen
// 4 have it. Earlier CPUs reduce their clock rate for 512-bit vectors, so they use AVX2 instead.
cpufeatures::new!(detected, "avx512f", "avx512bw", "avx512vbmi2");

const BLOCK: usize = 64;

/// A value that exists only if this CPU has AVX-512. Functions that use AVX-512 require it as an
/// argument, because their behaviour is undefined on other CPUs.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Returns the value if this CPU has AVX-512, otherwise `None`. The CPU is queried once per
    /// process.
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        detected::get().then_some(Self(()))
    }

    /// Returns the folded sum over `bytes`, in native byte order.
    #[inline]
    pub(super) fn sum(self, bytes: &[u8]) -> u16 {
        // SAFETY: `self` exists only if the CPU has AVX-512.
        unsafe { sum(bytes) }
    }

    /// Copies `from` to the start of `to`, which must not be shorter, and returns the sum over
    /// `from`.
    #[inline]
    pub(super) fn copy_and_sum(self, from: &[u8], to: &mut [u8]) -> u16 {
        // SAFETY: `self` exists only if the CPU has AVX-512.
        unsafe { copy_and_sum(from, to) }
    }
}

/// The number of bytes in a step of the loops: two blocks. If a step copied only one block,
/// compilers would replace the loop by a call of `memcpy`.
const PAIR: usize = 2 * BLOCK;

#[target_feature(enable = "avx512f,avx512bw")]
fn sum(bytes: &[u8]) -> u16 {
    if bytes.len() <= PART {
        return fold(sum_part(bytes));
    }
    fold(bytes.chunks(PART).map(|part| sum_part(part)).sum())
}

#[target_feature(enable = "avx512f,avx512bw")]
fn copy_and_sum(from: &[u8], to: &mut [u8]) -> u16 {
    if from.len() <= PART {
        return fold(copy_and_sum_part(from, to));
    }
    let parts = from.chunks(PART).zip(to.chunks_mut(PART));
    fold(parts.map(|(part, part_to)| copy_and_sum_part(part, part_to)).sum())
}

#[target_feature(enable = "avx512f,avx512bw")]
fn sum_part(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<PAIR>();
    let mut lanes = Lanes::zero();
    for pair in pairs {
        let (blocks, _) = pair.as_chunks();
        lanes.add_both(load(&blocks[0]), load(&blocks[1]));
    }
    for block in rest.chunks(BLOCK) {
        lanes.add(load_some(block));
    }
    lanes.total(bytes.len())
}

#[target_feature(enable = "avx512f,avx512bw")]
fn copy_and_sum_part(from: &[u8], to: &mut [u8]) -> u64 {
    let to = &mut to[..from.len()];
    let (pairs, rest) = from.as_chunks::<PAIR>();
    let (pairs_to, rest_to) = to.as_chunks_mut::<PAIR>();
    let mut lanes = Lanes::zero();
    for (pair, pair_to) in pairs.iter().zip(pairs_to) {
        let (blocks, _) = pair.as_chunks();
        let (blocks_to, _) = pair_to.as_chunks_mut();
        let (even, odd) = (load(&blocks[0]), load(&blocks[1]));
        store(even, &mut blocks_to[0]);
        store(odd, &mut blocks_to[1]);
        lanes.add_both(even, odd);
    }
    for (block, block_to) in rest.chunks(BLOCK).zip(rest_to.chunks_mut(BLOCK)) {
        let words = load_some(block);
        store_some(words, block_to);
        lanes.add(words);
    }
    lanes.total(from.len())
}

/// Sums of 16-bit words in 32-bit lanes. 32,768 is subtracted from each word, because the
/// instruction that adds neighbouring words treats them as signed.
struct Lanes {
    even: __m512i,
    odd: __m512i,
}

impl Lanes {
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn zero() -> Self {
        Self { even: _mm512_setzero_si512(), odd: _mm512_setzero_si512() }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn add(&mut self, words: __m512i) {
        self.even = _mm512_add_epi32(self.even, in_pairs(words));
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn add_both(&mut self, even: __m512i, odd: __m512i) {
        self.even = _mm512_add_epi32(self.even, in_pairs(even));
        self.odd = _mm512_add_epi32(self.odd, in_pairs(odd));
    }

    /// Returns the sum over an input of `length` bytes. All its blocks must have been added to
    /// these lanes, the final one padded with zeros.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn total(self, length: usize) -> u64 {
        // `in_pairs` subtracted 32,768 from each word. This number is the sum of all these
        // subtractions, and is added to the result.
        let taken_off = 32_768 * (length.next_multiple_of(BLOCK) / 2) as u64;
        let sum = _mm512_reduce_add_epi32(_mm512_add_epi32(self.even, self.odd));
        taken_off.wrapping_add_signed(sum.into())
    }
}

/// Adds each pair of neighbouring 16-bit words, after subtracting 32,768 from each word.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn in_pairs(words: __m512i) -> __m512i {
    let signed = _mm512_xor_si512(words, _mm512_set1_epi16(i16::MIN));
    _mm512_madd_epi16(signed, _mm512_set1_epi16(1))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(block: &[u8; BLOCK]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes that are read; this load requires no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(vector: __m512i, block: &mut [u8; BLOCK]) {
    // SAFETY: the reference covers the 64 bytes that are written; this store requires no alignment.
    unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), vector) }
}

/// Returns a mask for the first `count` bytes of a block. `count` is from 1 to 64.
#[inline]
fn first(count: usize) -> u64 {
    assert!((1..=BLOCK).contains(&count), "the mask of a block");
    u64::MAX >> (BLOCK - count)
}

/// Loads `bytes`, at most a block, into a vector whose other bytes are zero.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn load_some(bytes: &[u8]) -> __m512i {
    // SAFETY: only the bytes under the mask are read, and the reference covers them.
    unsafe { _mm512_maskz_loadu_epi8(first(bytes.len()), bytes.as_ptr().cast()) }
}

/// Fills `bytes`, whose length is at most a block, with the first bytes of `vector`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn store_some(vector: __m512i, bytes: &mut [u8]) {
    // SAFETY: only the bytes under the mask are written, and the reference covers them.
    unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), first(bytes.len()), vector) }
}
