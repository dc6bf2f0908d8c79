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

mod arithmetic;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector loads, and calls that require a CPU with AVX2")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector loads, and calls that require a CPU with AVX-512")]
mod avx512;
mod portable;
mod update;

pub use update::{update, update_u32};

pub(crate) use arithmetic::SHORT;
pub(crate) use portable::sum_short;

use crate::Protocol;
use arithmetic::{add, fold};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::{Add, AddAssign};

/// The ones'-complement sum over some of the bytes that a checksum covers.
///
/// Sums of parts can be combined: by [`Sum::append`] for a part at any offset, and by `+` for a
/// part at an even offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sum(
    /// The folded sum, in native byte order (RFC 1071 §2 B). Invariant: zero only if every byte was
    /// zero; other multiples of 65,535 are stored as 65,535, the "-0" of RFC 1624.
    u16,
);

impl Sum {
    /// Returns the sum over `bytes`, padded with a zero byte to an even length.
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

    /// Returns the sum over the 32-bit fields of a header.
    #[inline]
    pub(crate) fn of_words<const COUNT: usize>(words: [u32; COUNT]) -> Self {
        Self(fold(words.into_iter().map(u64::from).sum()).to_be())
    }

    /// Returns the sum over the `own_length` bytes that `self` covers, followed by the bytes that
    /// `next` covers.
    #[must_use]
    pub const fn append(self, next: Self, own_length: usize) -> Self {
        let aligned = if own_length.is_multiple_of(2) { next.0 } else { next.0.swap_bytes() };
        Self(add(self.0, aligned))
    }

    /// Adds a 16-bit field at an even offset.
    #[must_use]
    pub const fn add_u16(self, field: u16) -> Self {
        Self(add(self.0, field.to_be()))
    }

    /// Adds a 32-bit field at an even offset.
    #[must_use]
    #[inline]
    pub const fn add_u32(self, field: u32) -> Self {
        Self(fold(self.0 as u64 + field.to_be() as u64))
    }

    /// Returns the folded sum in native byte order.
    #[inline(always)]
    pub(crate) const fn native(self) -> u16 {
        self.0
    }

    /// Returns the checksum: the value for the checksum field that makes the sum over all covered
    /// bytes [valid](Sum::is_valid). The field must have been zero when it was summed.
    #[must_use]
    pub const fn finish(self) -> u16 {
        !u16::from_be(self.0)
    }

    /// Do the summed bytes, which include their checksum, have the correct checksum?
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 == u16::MAX
    }
}

/// Adds the sum over another part of the covered bytes. This part must begin at an even offset.
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

/// Copies `from` to `to`, and returns the sum over the copied bytes.
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

/// Functions for CPUs with at least AVX2, which use the widest vector extension of the CPU. They
/// are not inlined, so each caller only contains a test for AVX2 and a call.
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

/// Returns the sum over the IPv4 pseudo-header of a TCP segment or UDP datagram of `length` bytes
/// (RFC 9293 §3.1, RFC 768).
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

/// Returns the sum over the IPv6 pseudo-header of `length` bytes of `protocol` (RFC 8200 §8.1).
#[must_use]
#[inline]
pub fn pseudo_header_v6(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: Protocol,
    length: usize,
) -> Sum {
    #[allow(clippy::cast_possible_truncation, reason = "no packet has 4 GiB")]
    let length = length as u32;
    let addresses = Sum::of(&source.octets()) + Sum::of(&destination.octets());
    addresses.add_u32(length).add_u32(protocol.number().into())
}

#[cfg(test)]
mod tests;
