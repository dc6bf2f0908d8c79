//! Incremental checksum updates (RFC 1624).

use super::arithmetic::fold;

/// Returns the checksum after a 16-bit field at an even offset has changed from `old` to `new`:
/// equation 3 of RFC 1624, HC' = ~(~HC + ~m + m').
///
/// The result equals the checksum computed from all bytes, with one exception: all covered bytes
/// are zero after the change. The result is then 0, but the computed checksum is 65,535, and only
/// the latter is [valid](super::Sum::is_valid). IPv4 headers and pseudo-headers are never all zero.
/// An ICMP echo reply can be all zero, so its checksum is computed from all bytes.
#[must_use]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    // `From` is not `const`, so the numbers are widened by casts.
    !fold(!checksum as u64 + !old as u64 + new as u64)
}

/// Returns the checksum after a 32-bit field at an even offset has changed from `old` to `new`. The
/// exception described at [`update`] applies.
#[must_use]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}
