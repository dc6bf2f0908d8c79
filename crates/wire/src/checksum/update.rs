//! A checksum brought up to date when a field that it covers changes (RFC 1624).

use super::fold;

/// The checksum after a 16-bit field at an even offset went from `old` to `new`: equation 3 of RFC
/// 1624, HC' = ~(~HC + ~m + m').
///
/// This is what summing everything again gives, but for one case: where every byte covered is zero
/// after the change. Then it is 0 here and 65,535 from scratch, and only the latter
/// [is valid](super::Sum::is_valid). No header of IPv4, and no pseudo-header, is all zero; an ICMP echo
/// reply can be, and is therefore summed and not updated.
#[must_use]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    // Widening casts; `From` is no const function.
    !fold(!checksum as u64 + !old as u64 + new as u64)
}

/// The checksum after a 32-bit field at an even offset went from `old` to `new`; as [`update`].
#[must_use]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}
