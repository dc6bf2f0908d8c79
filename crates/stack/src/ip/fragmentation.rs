//! The fragmentation of packets that this host sends (RFC 791 §3.2, RFC 8200 §4.5). An interface
//! fragments one packet at a time, and writes one fragment into each frame.

use crate::ip::is_ipv6;
use alloc::vec::Vec;
use linerate_wire::{
    Ipv4Header, Ipv4Options, Ipv4Packet, Ipv6Fragment, Ipv6Header, Ipv6Packet, MacAddress, Protocol,
};

/// The state of the packet that an interface is sending in fragments, if any.
#[derive(Debug)]
pub(crate) struct Fragmenter {
    /// The whole packet; empty if no packet is being sent. The allocation is reused for later
    /// packets.
    packet: Vec<u8>,
    mac: MacAddress,
    /// The maximum size of a fragment with its headers, in bytes.
    mtu: usize,
    identification: u32,
    /// The offset of the next fragment in the payload, in bytes.
    next: usize,
}

/// The outcome of writing the next fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextFragment {
    /// A fragment of this length in bytes was written, and it is not the final fragment of the
    /// packet.
    Written(usize),
    /// The final fragment of the packet was written. It has this length in bytes.
    Last(usize),
    /// The packet cannot be fragmented.
    Failed,
}

impl Fragmenter {
    pub(crate) const fn new() -> Self {
        Self { packet: Vec::new(), mac: MacAddress::ZERO, mtu: 0, identification: 0, next: 0 }
    }

    /// Is a packet being sent in fragments?
    pub(crate) const fn is_busy(&self) -> bool {
        !self.packet.is_empty()
    }

    /// Returns the packet that is being sent.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Is the next fragment the first fragment of the packet?
    pub(crate) const fn is_at_start(&self) -> bool {
        self.next == 0
    }

    /// Returns the MAC address of the packet's next hop.
    pub(crate) const fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Begins to send `packet` in fragments of at most `mtu` bytes. All fragments of the previous
    /// packet must have been written.
    pub(crate) fn begin(
        &mut self,
        packet: &[u8],
        mac: MacAddress,
        mtu: usize,
        identification: u32,
    ) {
        self.packet.clear();
        self.packet.extend_from_slice(packet);
        (self.mac, self.mtu, self.identification, self.next) = (mac, mtu, identification, 0);
    }

    /// Writes the next fragment to the start of `into`, which must have room for `mtu` bytes.
    pub(crate) fn write_next(&mut self, into: &mut [u8]) -> NextFragment {
        let written =
            if is_ipv6(&self.packet) { self.write_ipv6(into) } else { self.write_ipv4(into) };
        let Some((length, payload, is_last)) = written else {
            self.packet.clear();
            return NextFragment::Failed;
        };
        self.next += payload;
        if is_last {
            self.packet.clear();
            return NextFragment::Last(length);
        }
        NextFragment::Written(length)
    }

    /// Writes the next fragment of an IPv4 packet. Returns the length of the fragment, the length
    /// of its payload, and whether it is the final fragment. Returns `None` if the packet cannot be
    /// fragmented.
    fn write_ipv4(&self, into: &mut [u8]) -> Option<(usize, usize, bool)> {
        let packet = Ipv4Packet::parse(&self.packet).ok()?;
        let mut copied = [0; 40];
        let options = if self.next == 0 {
            packet.options
        } else {
            let length = Ipv4Options::of(packet.options).copied(&mut copied);
            &copied[..length]
        };
        let before = Ipv4Header::LENGTH + options.len();
        let (payload, is_last) = self.part(packet.payload, before)?;
        #[allow(clippy::cast_possible_truncation, reason = "IPv4 has sixteen bits for it")]
        let identification = self.identification as u16;
        let header = Ipv4Header {
            identification,
            dont_fragment: false,
            more_fragments: !is_last,
            fragment_offset: u16::try_from(self.next).ok()?,
            ..packet.header
        };
        let length = before + payload.len();
        let into = into.get_mut(..length)?;
        header.emit_with_options(options, payload.len(), into);
        into[before..].copy_from_slice(payload);
        Some((length, payload.len(), is_last))
    }

    fn write_ipv6(&self, into: &mut [u8]) -> Option<(usize, usize, bool)> {
        let packet = Ipv6Packet::parse_fixed(&self.packet).ok()?;
        let Unfragmentable { length: at, named_at, next } = unfragmentable(&self.packet)?;
        let before = at + Ipv6Fragment::LENGTH;
        let (payload, is_last) = self.part(&self.packet[at..], before)?;
        let offset = u16::try_from(self.next).ok()?;
        let fragment = Ipv6Fragment { offset, more: !is_last, identification: self.identification };
        let length = before + payload.len();
        let into = into.get_mut(..length)?;
        into[..at].copy_from_slice(&self.packet[..at]);
        packet.header.emit(length - Ipv6Header::LENGTH, into);
        into[named_at] = Protocol::FRAGMENT.number();
        fragment.emit(next, &mut into[at..]);
        into[before..].copy_from_slice(payload);
        Some((length, payload.len(), is_last))
    }

    /// Returns the part of `payload` for the next fragment, and whether this part ends the payload.
    /// The fragment has `before` bytes of headers; if these leave no room for payload, returns
    /// `None`.
    fn part<'a>(&self, payload: &'a [u8], before: usize) -> Option<(&'a [u8], bool)> {
        let rest = payload.get(self.next..)?;
        let room = self.mtu.checked_sub(before)?;
        if rest.len() <= room {
            return Some((rest, true));
        }
        let room = room & !7;
        (room > 0).then(|| (&rest[..room], false))
    }
}

/// The unfragmentable part of an IPv6 packet, which every fragment repeats (RFC 8200 §4.5).
struct Unfragmentable {
    length: usize,
    /// The offset of the Next Header field that announces the first header of the fragmentable
    /// part.
    named_at: usize,
    next: Protocol,
}

/// Finds the unfragmentable part of a packet: the headers up to the last header that nodes on the
/// path process. Returns `None` for a packet with a fragment header, which must not be fragmented
/// again.
fn unfragmentable(packet: &[u8]) -> Option<Unfragmentable> {
    let mut found = Unfragmentable {
        length: Ipv6Header::LENGTH,
        named_at: Ipv6Header::NEXT_HEADER_OFFSET,
        next: Protocol::new(*packet.get(Ipv6Header::NEXT_HEADER_OFFSET)?),
    };
    for header in Ipv6Packet::extensions(packet).ok()? {
        let header = header.ok()?;
        match header.kind {
            Protocol::FRAGMENT => return None,
            Protocol::HOP_BY_HOP | Protocol::ROUTING => {
                let next = Protocol::new(header.bytes[0]);
                found = Unfragmentable {
                    length: header.at + header.bytes.len(),
                    named_at: header.at,
                    next,
                };
            }
            _ => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests;
