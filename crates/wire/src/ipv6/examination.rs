//! The examination of extension headers by the destination of a packet (RFC 8200 §4): options,
//! routing headers, and the fragment header.

use super::extensions::{Ipv6Extension, Ipv6Extensions, Ipv6Fragment};
use super::options::{Ipv6OptionAction, Ipv6Options};
use super::{Ipv6Header, Ipv6Packet};
use crate::{Icmpv6Problem, Malformed, Protocol};

/// The most options, without padding, in one header (RFC 8504 §5.3). More are discarded.
const MOST_OPTIONS: usize = 8;

/// The offset of the payload length in an IPv6 header.
const PAYLOAD_LENGTH: usize = 4;

/// The content of a packet whose extension headers were examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6Content<'a> {
    /// A whole packet. Its fragment header, if it has one, is that of an atomic fragment (RFC
    /// 6946).
    Whole(Ipv6Packet<'a>),
    /// A fragment. The headers after its fragment header were not examined, apart from whether
    /// they are all in the first fragment.
    Fragment(Ipv6Piece<'a>),
}

/// A fragment of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Piece<'a> {
    /// The fragment header.
    pub fragment: Ipv6Fragment,
    /// The offset of the fragment header in the packet: the length of the headers before it.
    pub at: usize,
    /// The offset in the packet of the field that names the fragment header.
    pub named_at: usize,
    /// The number of the header at the beginning of the fragmentable part.
    pub next: Protocol,
    /// The bytes after the fragment header.
    pub payload: &'a [u8],
}

/// The reason why a destination discards a packet for its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6Refusal {
    /// The headers are malformed. There is no answer.
    Malformed(Malformed),
    /// An unknown option asks to be discarded without an answer.
    Silent,
    /// The source is to be told by an ICMPv6 Parameter Problem.
    Report {
        /// The problem.
        problem: Icmpv6Problem,
        /// The offset in the packet of the byte that caused it.
        pointer: u32,
        /// Also if the packet was sent to a multicast group (RFC 4443 §2.4 e.3)?
        is_for_groups: bool,
    },
}

impl From<Malformed> for Ipv6Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl<'a> Ipv6Packet<'a> {
    /// Examines the extension headers of the packet at the start of `bytes`, in their order, as its
    /// destination does. Headers after the fragment header of a fragment belong to the reassembled
    /// packet, which is to be examined again.
    ///
    /// No routing header is supported: with segments left, every type is refused, and type 0 most
    /// of all (RFC 5095). An authentication header is left as an unknown protocol of the payload.
    ///
    /// # Errors
    /// [`Ipv6Refusal`], with the answer to the source.
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

/// Returns the refusal of a packet for a malformed header: a Hop-by-Hop Options header is known
/// only after the fixed header (RFC 8200 §4.1).
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

/// Examines the routing header or the options of `header`.
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

/// Examines a fragment (RFC 8200 §4.5, RFC 7112 §5). `after` continues behind its header.
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
