//! The processing of extension headers by the destination of a packet (RFC 8200 §4): options,
//! routing headers and the fragment header.

use super::extensions::{Ipv6Extension, Ipv6Extensions, Ipv6Fragment};
use super::options::{Ipv6OptionAction, Ipv6Options};
use super::{Ipv6Header, Ipv6Packet};
use crate::{Icmpv6Problem, Malformed, Protocol};

/// The maximum number of options, without padding, in an extension header. A packet that exceeds
/// this limit is discarded (RFC 8504 §5.3).
const MOST_OPTIONS: usize = 8;

/// The offset of the payload length in an IPv6 header, in bytes.
const PAYLOAD_LENGTH: usize = 4;

/// The result of processing the extension headers of a received packet: an unfragmented packet, or
/// a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6Content<'a> {
    /// An unfragmented packet. It may have a fragment header, if the fragment is the whole packet
    /// (an atomic fragment, RFC 6946).
    Whole(Ipv6Packet<'a>),
    /// A fragment. Until reassembly, the headers after its fragment header are not processed. The
    /// destination only checks that the first fragment contains all of them.
    Fragment(Ipv6Piece<'a>),
}

/// A fragment of an IPv6 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Piece<'a> {
    /// The fragment header.
    pub fragment: Ipv6Fragment,
    /// The offset of the fragment header in the packet, in bytes, which is the length of the
    /// headers before it.
    pub at: usize,
    /// The offset in the packet of the Next Header field that announces the fragment header, in
    /// bytes.
    pub named_at: usize,
    /// The Next Header field of the fragment header: the type of the first header that was
    /// fragmented.
    pub next: Protocol,
    /// The bytes after the fragment header.
    pub payload: &'a [u8],
}

/// The reason why the destination discards a packet because of its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6Refusal {
    /// The headers are malformed. The packet is dropped without an error message.
    Malformed(Malformed),
    /// The packet is well-formed, but is dropped without an error message. For example, some
    /// unknown options require this.
    Silent,
    /// The packet is dropped, and its source must be sent an ICMPv6 Parameter Problem.
    Report {
        /// The reason for the error message.
        problem: Icmpv6Problem,
        /// The offset in the packet of the byte that caused the error.
        pointer: u32,
        /// Is the error sent even if the packet's destination was a multicast group (RFC 4443 §2.4
        /// e.3)?
        is_for_groups: bool,
    },
}

impl From<Malformed> for Ipv6Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl<'a> Ipv6Packet<'a> {
    /// Processes the extension headers of the packet at the start of `bytes`, as its destination
    /// does. If the packet is a fragment, the headers after its fragment header are not processed.
    /// They belong to the reassembled packet, which the caller must examine in the same way.
    ///
    /// No type of routing header is supported: a header with segments left is refused, as RFC 5095
    /// requires for type 0. An authentication header is left in the payload, as an unknown
    /// protocol.
    ///
    /// # Errors
    /// [`Ipv6Refusal`] if the destination must discard the packet.
    pub fn examine(bytes: &'a [u8]) -> Result<Ipv6Content<'a>, Ipv6Refusal> {
        let packet = Self::parse_fixed(bytes)?;
        let mut extensions = Self::extensions(bytes)?;
        let mut atomic = None;
        while let Some(header) = extensions.next() {
            let header = header.map_err(|malformed| misplaced(&extensions, malformed))?;
            match header.fragment() {
                Some(fragment) if fragment.is_atomic() => atomic = Some(fragment),
                Some(fragment) => return piece(&header, fragment, extensions),
                None => examine_header(&header)?,
            }
        }
        Ok(Ipv6Content::Whole(Self {
            header: packet.header,
            extensions: extensions.returned(),
            fragment: atomic,
            protocol: extensions.protocol(),
            payload: extensions.payload(),
        }))
    }
}

/// Returns the reason to discard a packet because `extensions` has stopped at a malformed header.
/// If a Hop-by-Hop Options header follows other headers, the reason is an unknown header type,
/// which is reported to the source (RFC 8200 §4.1).
fn misplaced(extensions: &Ipv6Extensions<'_>, malformed: Malformed) -> Ipv6Refusal {
    match (malformed, extensions.protocol()) {
        (Malformed::Field { .. }, Protocol::HOP_BY_HOP) => {
            report(Icmpv6Problem::NextHeader, extensions.named_at())
        }
        _ => Ipv6Refusal::Malformed(malformed),
    }
}

fn report(problem: Icmpv6Problem, at: usize) -> Ipv6Refusal {
    let pointer = u32::try_from(at).unwrap_or(u32::MAX);
    Ipv6Refusal::Report { problem, pointer, is_for_groups: false }
}

/// Processes `header`, if it is a routing header or contains options.
fn examine_header(header: &Ipv6Extension<'_>) -> Result<(), Ipv6Refusal> {
    if header.kind == Protocol::ROUTING {
        let has_segments_left = header.bytes[3] != 0;
        return if has_segments_left {
            Err(report(Icmpv6Problem::HeaderField, header.at + 2))
        } else {
            Ok(())
        };
    }
    for (count, option) in Ipv6Options::of(header).enumerate() {
        let option = option?;
        if count == MOST_OPTIONS {
            return Err(Ipv6Refusal::Silent);
        }
        let is_for_groups = match option.action() {
            Ipv6OptionAction::Skip => continue,
            Ipv6OptionAction::Discard => return Err(Ipv6Refusal::Silent),
            Ipv6OptionAction::Report => true,
            Ipv6OptionAction::ReportIfUnicast => false,
        };
        let pointer = u32::try_from(option.at).unwrap_or(u32::MAX);
        return Err(Ipv6Refusal::Report { problem: Icmpv6Problem::Option, pointer, is_for_groups });
    }
    Ok(())
}

/// Checks a fragment (RFC 8200 §4.5, RFC 7112 §5). `after` iterates over the headers after its
/// fragment header.
fn piece<'a>(
    header: &Ipv6Extension<'a>,
    fragment: Ipv6Fragment,
    mut after: Ipv6Extensions<'a>,
) -> Result<Ipv6Content<'a>, Ipv6Refusal> {
    let (next, payload) = (after.protocol(), after.payload());
    if fragment.more && !payload.len().is_multiple_of(8) {
        return Err(report(Icmpv6Problem::HeaderField, PAYLOAD_LENGTH));
    }
    let before = header.at - Ipv6Header::LENGTH;
    if before + usize::from(fragment.offset) + payload.len() > usize::from(u16::MAX) {
        return Err(report(Icmpv6Problem::HeaderField, header.at + 2));
    }
    if payload.is_empty() {
        return Err(Ipv6Refusal::Silent);
    }
    if fragment.offset == 0 {
        let incomplete = report(Icmpv6Problem::IncompleteHeaderChain, 0);
        for header in &mut after {
            match header {
                Ok(_) => {}
                Err(Malformed::Truncated { .. }) => return Err(incomplete),
                Err(malformed) => return Err(malformed.into()),
            }
        }
        if !after.protocol().has_whole_header(after.payload()) {
            return Err(incomplete);
        }
    }
    let (at, named_at) = (header.at, header.named_at);
    Ok(Ipv6Content::Fragment(Ipv6Piece { fragment, at, named_at, next, payload }))
}

#[cfg(test)]
mod tests;
