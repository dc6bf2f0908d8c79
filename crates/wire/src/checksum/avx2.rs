//! The sum on x86-64 CPUs with AVX2, 32 bytes a step, with the arithmetic of `portable`.

use super::fold;
use super::portable::{halves, sum_short};
use core::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_srli_epi64,
    _mm256_storeu_si256,
};

cpufeatures::new!(detected, "avx2");

/// Bytes from which on the vector code is faster than the portable one.
pub(super) const WORTHWHILE: usize = 64;

const BLOCK: usize = 32;

/// Proof that this CPU has AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The proof, if it can be had. Asks the CPU once per process.
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        detected::get().then_some(Self(()))
    }

    /// The folded sum over `bytes`, in the machine's byte order.
    #[inline]
    pub(super) fn sum(self, bytes: &[u8]) -> u16 {
        // SAFETY: `self` exists only if the CPU has AVX2.
        unsafe { sum(bytes) }
    }

    /// Copies `from` to the start of `to`, which is no shorter, and returns the sum over it.
    #[inline]
    pub(super) fn copy_and_sum(self, from: &[u8], to: &mut [u8]) -> u16 {
        // SAFETY: `self` exists only if the CPU has AVX2.
        unsafe { copy_and_sum(from, to) }
    }
}

#[target_feature(enable = "avx2")]
fn sum(bytes: &[u8]) -> u16 {
    let (pairs, rest) = bytes.as_chunks::<{ 2 * BLOCK }>();
    let (mut even, mut odd) = (Lanes::zero(), Lanes::zero());
    for pair in pairs {
        let (blocks, _) = pair.as_chunks();
        even.add(load(&blocks[0]));
        odd.add(load(&blocks[1]));
    }
    let (last, rest) = rest.as_chunks();
    if let Some(block) = last.first() {
        even.add(load(block));
    }
    fold(even.total() + odd.total() + sum_short(rest))
}

#[target_feature(enable = "avx2")]
fn copy_and_sum(from: &[u8], to: &mut [u8]) -> u16 {
    let (pairs, rest) = from.as_chunks::<{ 2 * BLOCK }>();
    let (pairs_to, rest_to) = to.as_chunks_mut::<{ 2 * BLOCK }>();
    let (mut even, mut odd) = (Lanes::zero(), Lanes::zero());
    // Two stores a step: compilers replace a loop of one load and one store by a call of memcpy and
    // a loop that reads everything again, which takes half as long again.
    for (pair, pair_to) in pairs.iter().zip(pairs_to) {
        let (blocks, _) = pair.as_chunks();
        let (blocks_to, _) = pair_to.as_chunks_mut();
        let (first, second) = (load(&blocks[0]), load(&blocks[1]));
        store(first, &mut blocks_to[0]);
        store(second, &mut blocks_to[1]);
        even.add(first);
        odd.add(second);
    }
    rest_to.copy_from_slice(rest);
    let (last, rest) = rest.as_chunks();
    if let Some(block) = last.first() {
        even.add(load(block));
    }
    fold(even.total() + odd.total() + sum_short(rest))
}

/// Four columns of 64-bit words, each summed whole and by its upper halves.
struct Lanes {
    whole: __m256i,
    upper: __m256i,
}

impl Lanes {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn zero() -> Self {
        Self { whole: _mm256_setzero_si256(), upper: _mm256_setzero_si256() }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(&mut self, words: __m256i) {
        self.whole = _mm256_add_epi64(self.whole, words);
        self.upper = _mm256_add_epi64(self.upper, _mm256_srli_epi64::<32>(words));
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn total(self) -> u64 {
        let (mut whole, mut upper) = ([0; BLOCK], [0; BLOCK]);
        store(self.whole, &mut whole);
        store(self.upper, &mut upper);
        let word = |bytes: &[u8; BLOCK], lane: usize| u64::from_ne_bytes(bytes.as_chunks().0[lane]);
        (0..4).map(|lane| halves(word(&whole, lane), word(&upper, lane))).sum()
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(block: &[u8; BLOCK]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes that are read; this load asks for no alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(vector: __m256i, block: &mut [u8; BLOCK]) {
    // SAFETY: the reference covers the 32 bytes that are written; this store asks for no alignment.
    unsafe { _mm256_storeu_si256(block.as_mut_ptr().cast(), vector) }
}
