//! Asks the processor for memory that is going to be needed: it is fetched while other work is done, where a load would
//! have to be waited for sooner or later.

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Bytes that are fetched together.
const LINE: usize = 64;

/// Fetches what `thing` consists of, line by line, if the processor knows how. Nothing else comes of it.
#[inline(always)]
pub fn prefetch<T>(thing: &T) {
    for line in 0..size_of::<T>().div_ceil(LINE) {
        fetch(core::ptr::from_ref(thing).cast::<i8>().wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fetch(address: *const i8) {
    // SAFETY: each x86-64 processor has the instruction, and it touches nothing: from an address that is not to be
    // read it fetches nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
const fn fetch(_address: *const i8) {}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn anything_can_be_asked_for_and_stays_as_it_is() {
        prefetch(&());
        prefetch(&[0_u8; 0]);
        let bytes = [7; 1_000];
        prefetch(&bytes);
        prefetch(&bytes[999]);
        assert_eq!(bytes, [7; 1_000]);
    }
}
