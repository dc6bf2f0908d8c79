//! Prefetching: a hint to the processor to load memory into its cache before the program needs it.

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// The length of a cache line in bytes.
const LINE: usize = 64;

/// Prefetches the cache lines from the first byte of `first` to the last byte of `last`, which must
/// be parts of one object. Does nothing if `last` lies before `first`, or if the processor has no
/// prefetch instruction.
#[inline(always)]
pub fn prefetch_through<A, B>(first: &A, last: &B) {
    let (begin, last_begin) = (core::ptr::from_ref(first).addr(), core::ptr::from_ref(last).addr());
    let length = (last_begin + size_of::<B>()).saturating_sub(begin);
    for line in 0..length.div_ceil(LINE) {
        fetch(core::ptr::from_ref(first).cast::<i8>().wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fetch(address: *const i8) {
    // SAFETY: every x86-64 processor has this instruction. It accesses no memory that a program can
    // observe, and ignores invalid addresses.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
const fn fetch(_address: *const i8) {}

#[cfg(test)]
mod tests {
    use super::prefetch_through;

    #[test]
    fn prefetching_changes_no_memory() {
        prefetch_through(&(), &());
        prefetch_through(&[0_u8; 0], &[0_u8; 0]);
        let bytes = [7; 1_000];
        prefetch_through(&bytes, &bytes);
        prefetch_through(&bytes[0], &bytes[999]);
        prefetch_through(&bytes[999], &bytes[0]);
        assert_eq!(bytes, [7; 1_000]);
    }
}
