//! Asks the processor for memory that is going to be needed: it is fetched while other work is done, where a load would
//! have to be waited for sooner or later.

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Bytes that are fetched together.
const LINE: usize = 64;

/// Fetches what lies from the begin of `first` to the end of `last`, line by line, if the processor knows how. Nothing
/// else comes of it. They are parts of one thing, and `first` is not behind `last`, or nothing is fetched.
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
    // SAFETY: each x86-64 processor has the instruction, and it touches nothing: from an address that is not to be
    // read it fetches nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
const fn fetch(_address: *const i8) {}

#[cfg(test)]
mod tests {
    use super::prefetch_through;

    #[test]
    fn anything_can_be_asked_for_and_stays_as_it_is() {
        prefetch_through(&(), &());
        prefetch_through(&[0_u8; 0], &[0_u8; 0]);
        let bytes = [7; 1_000];
        prefetch_through(&bytes, &bytes);
        prefetch_through(&bytes[0], &bytes[999]);
        prefetch_through(&bytes[999], &bytes[0]);
        assert_eq!(bytes, [7; 1_000]);
    }
}
