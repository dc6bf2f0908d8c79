//! Parts of a packet's line of text that are common to several protocols.

use crate::{Protocol, SeqNum, Sum, checksum};
use core::fmt;
use core::net::IpAddr;

/// The payload of an IP packet of either version, with the addresses of the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried<'a> {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: Protocol,
    pub(super) payload: &'a [u8],
}

impl Carried<'_> {
    /// Returns the sum over the pseudo-header of a transport segment that has `length` bytes,
    /// counted from the start of the payload.
    pub(super) fn pseudo_header(&self, length: usize) -> Sum {
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                checksum::pseudo_header_v4(source, destination, self.protocol, length)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                checksum::pseudo_header_v6(source, destination, self.protocol, length)
            }
            _ => Sum::default(),
        }
    }

    /// Writes the source and destination addresses of the packet.
    pub(super) fn write_hosts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}: ", self.source, self.destination)
    }

    /// Writes the source and destination addresses, each with its port: `from` or `to`.
    pub(super) fn write_ends(&self, f: &mut fmt::Formatter<'_>, from: u16, to: u16) -> fmt::Result {
        write!(f, "{}.{from} > {}.{to}: ", self.source, self.destination)
    }
}

pub(super) fn write_verdict(f: &mut fmt::Formatter<'_>, is_valid: bool) -> fmt::Result {
    if is_valid { Ok(()) } else { f.write_str(", wrong checksum") }
}

/// A fragment of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) identification: u32,
    /// The position of this fragment's payload in the payload of the whole packet, in bytes.
    pub(super) offset: u16,
    /// Do further fragments follow?
    pub(super) more: bool,
}

impl Piece {
    /// Writes the text for this fragment. `carried` has its addresses and its payload. Only the
    /// byte range of the payload is printed: the payload is not parsed, because only the first
    /// fragment has the transport header.
    pub(super) fn write(self, f: &mut fmt::Formatter<'_>, carried: &Carried<'_>) -> fmt::Result {
        let Self { identification, offset, more } = self;
        let end = usize::from(offset) + carried.payload.len();
        let more = if more { "+" } else { "" };
        carried.write_hosts(f)?;
        let protocol = carried.protocol;
        write!(f, "{protocol} fragment, id {identification}, bytes {offset}:{end}{more}")
    }
}

/// Writes the packet that caused an error: its addresses, its ports and SEG.SEQ if they are quoted.
pub(super) fn write_quoted(
    f: &mut fmt::Formatter<'_>,
    quoted: &Carried<'_>,
    ports: Option<(u16, u16)>,
    seq: Option<SeqNum>,
) -> fmt::Result {
    let Carried { source, destination, protocol, .. } = quoted;
    match ports {
        Some((from, to)) => write!(f, ", for {protocol} {source}.{from} > {destination}.{to}")?,
        None => write!(f, ", for {protocol} {source} > {destination}")?,
    }
    match seq {
        Some(seq) => write!(f, " seq {seq}"),
        None => Ok(()),
    }
}
