//! The Internet checksum (RFC 1071): the ones'-complement sum of 16-bit words.
//!
//! ```
//! use linerate_wire::{Protocol, Sum, checksum};
//!
//! let (source, destination) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
//! let mut datagram = [0, 19, 0, 9, 0, 12, 0, 0, b'o', b'k', b'!', b'\n'];
//! let pseudo = checksum::pseudo_header_v4(source, destination, Protocol::UDP, datagram.len());
//!
//! let sum = pseudo + Sum::of(&datagram);
//! datagram[6..8].copy_from_slice(&sum.finish().to_be_bytes());
//! assert!((pseudo + Sum::of(&datagram)).is_valid());
//! ```

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector loads, and calls that only a CPU with AVX2 may make")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "as above, of a CPU with AVX-512")]
mod avx512;
mod portable;
mod update;

pub use update::{update, update_u32};

pub(crate) use portable::sum_short;

use crate::Protocol;
use core::net::Ipv4Addr;
use core::ops::{Add, AddAssign};

/// Fewer bytes are not worth vectors.
pub(crate) const SHORT: usize = 64;

/// The sum of some of the bytes that a checksum covers.
///
/// Sums of parts combine to the sum of the whole, whatever the order in which the parts were
/// summed: [`Sum::append`] for a part that follows, `+` for one that begins at an even offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sum(
    /// Folded, in the machine's byte order (RFC 1071 §2 B). Invariant: zero only if every byte
    /// summed was zero; other multiples of 65,535 are 65,535, the "-0" of RFC 1624.
    u16,
);

impl Sum {
    /// The sum over `bytes`; an odd one counts as if a zero followed.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if bytes.len() >= SHORT
            && let Some(avx2) = avx2::Avx2::detect()
        {
            return Self(widest::sum(avx2, bytes));
        }
        Self(portable::sum(bytes))
    }

    /// The sum over the 32-bit fields of a header.
    #[inline]
    pub(crate) fn of_words<const COUNT: usize>(words: [u32; COUNT]) -> Self {
        Self(fold(words.into_iter().map(u64::from).sum()).to_be())
    }

    /// The sum over the bytes of both, where those of `next` follow the `own_length` bytes that
    /// this sum covers.
    #[must_use]
    pub const fn append(self, next: Self, own_length: usize) -> Self {
        let aligned = if own_length.is_multiple_of(2) { next.0 } else { next.0.swap_bytes() };
        Self(add(self.0, aligned))
    }

    /// The sum with one more field, at an even offset.
    #[must_use]
    pub const fn add_u16(self, field: u16) -> Self {
        Self(add(self.0, field.to_be()))
    }

    /// The sum with one more field of 32 bits, at an even offset.
    #[must_use]
    #[inline]
    pub const fn add_u32(self, field: u32) -> Self {
        Self(fold(self.0 as u64 + field.to_be() as u64))
    }

    /// The sum, folded, in the machine's byte order.
    #[inline(always)]
    pub(crate) const fn native(self) -> u16 {
        self.0
    }

    /// The checksum: the value of the header's field that makes the sum over everything
    /// [valid](Sum::is_valid), if the field was zero when it was summed.
    #[must_use]
    pub const fn finish(self) -> u16 {
        !u16::from_be(self.0)
    }

    /// Does a sum over bytes that include their checksum say that they are intact?
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 == u16::MAX
    }
}

/// The sum over both parts, where the second begins at an even offset of the whole.
impl Add for Sum {
    type Output = Self;
    fn add(self, next: Self) -> Self {
        Self(add(self.0, next.0))
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, next: Self) {
        *self = *self + next;
    }
}

/// Copies `from` to `to` and returns the sum over it.
///
/// # Panics
/// If the two differ in length.
#[inline(always)]
pub fn copy_and_sum(from: &[u8], to: &mut [u8]) -> Sum {
    assert_eq!(from.len(), to.len(), "a copy has the length of the original");
    #[cfg(target_arch = "x86_64")]
    if from.len() >= SHORT
        && let Some(avx2) = avx2::Avx2::detect()
    {
        return Sum(widest::copy_and_sum(avx2, from, to));
    }
    Sum(portable::copy_and_sum(from, to))
}

/// The widest vectors of a CPU that has AVX2. Asked here, so that whoever sums has one question drawn in, and one call.
#[cfg(target_arch = "x86_64")]
mod widest {
    use super::{avx2::Avx2, avx512::Avx512};

    #[inline(never)]
    pub(super) fn sum(avx2: Avx2, bytes: &[u8]) -> u16 {
        match Avx512::detect() {
            Some(avx512) => avx512.sum(bytes),
            None => avx2.sum(bytes),
        }
    }

    #[inline(never)]
    pub(super) fn copy_and_sum(avx2: Avx2, from: &[u8], to: &mut [u8]) -> u16 {
        match Avx512::detect() {
            Some(avx512) => avx512.copy_and_sum(from, to),
            None => avx2.copy_and_sum(from, to),
        }
    }
}

/// The sum over the pseudo-header that TCP and UDP put in front of their `length` bytes of header
/// and payload (RFC 9293 §3.1, RFC 768). It covers an even number of bytes.
#[must_use]
#[inline]
pub fn pseudo_header_v4(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: Protocol,
    length: usize,
) -> Sum {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the length field of a packet has sixteen bits"
    )]
    let length = length as u32;
    Sum::of_words([source.to_bits(), destination.to_bits(), protocol.number().into(), length])
}

/// Ones'-complement addition: the carry comes round to the other end.
const fn add(left: u16, right: u16) -> u16 {
    let (sum, carry) = left.overflowing_add(right);
    // Cannot overflow: with a carry the sum is less than either part.
    sum + carry as u16
}

/// The 64-bit number modulo 65,535, where only zero itself becomes zero.
#[allow(clippy::cast_possible_truncation, reason = "the upper halves are all that is wanted")]
const fn fold(number: u64) -> u16 {
    // Both halves added to each other turned round: the carry of the lower ones comes round to the upper ones.
    let word = (number.wrapping_add(number.rotate_left(32)) >> 32) as u32;
    (word.wrapping_add(word.rotate_left(16)) >> 16) as u16
}

#[cfg(test)]
mod tests;
