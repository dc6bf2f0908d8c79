//! Access to the fields of a header whose length is known at compile time.

use crate::Malformed;

/// Splits the `LENGTH` bytes of a header's fixed part from the rest of `bytes`.
pub(crate) fn split_fixed<'a, const LENGTH: usize>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<(&'a [u8; LENGTH], &'a [u8]), Malformed> {
    bytes.split_first_chunk().ok_or(Malformed::Truncated { what, needed: LENGTH, had: bytes.len() })
}

/// Returns the big-endian 16-bit field at offset `at`.
pub(crate) const fn half<const LENGTH: usize>(fixed: &[u8; LENGTH], at: usize) -> u16 {
    u16::from_be_bytes([fixed[at], fixed[at + 1]])
}

/// Returns the big-endian 32-bit field at offset `at`.
pub(crate) const fn word<const LENGTH: usize>(fixed: &[u8; LENGTH], at: usize) -> u32 {
    u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
}

/// Returns the `SIZE` bytes of the address at offset `at`.
pub(crate) fn octets<const SIZE: usize, const LENGTH: usize>(
    fixed: &[u8; LENGTH],
    at: usize,
) -> [u8; SIZE] {
    core::array::from_fn(|octet| fixed[at + octet])
}

/// Returns the first `LENGTH` bytes of `bytes`, a buffer for output.
///
/// # Panics
/// If `bytes` is shorter than `LENGTH`.
#[inline]
pub(crate) fn room<const LENGTH: usize>(bytes: &mut [u8]) -> &mut [u8; LENGTH] {
    let had = bytes.len();
    match bytes.first_chunk_mut() {
        Some(fixed) => fixed,
        None => panic!("room for a header of {LENGTH} bytes, not {had}"),
    }
}
