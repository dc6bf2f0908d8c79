//! Parts of a line that are common to several protocols.

use crate::Ipv4Header;
use core::fmt;

pub(super) fn write_ends(
    f: &mut fmt::Formatter<'_>,
    ip: &Ipv4Header,
    from: u16,
    to: u16,
) -> fmt::Result {
    write!(f, "{}.{from} > {}.{to}: ", ip.source, ip.destination)
}

pub(super) fn write_verdict(f: &mut fmt::Formatter<'_>, is_valid: bool) -> fmt::Result {
    if is_valid { Ok(()) } else { f.write_str(", wrong checksum") }
}
