//! Recognition of an ACK that follows another ACK of the same flow in a batch.
//!
//! The ACKs for a bulk transfer differ in the acknowledgement number, the window, the checksums,
//! and with IPv4 the identification. The other fields are not parsed again, but compared with those
//! of the previous ACK, several at a time. [`NextPacket`](crate::NextPacket) recognises data
//! packets in this way.

use crate::next_packet::is_timestamped;
use crate::plain_packet::{PlainPacket, add, is_valid};
use crate::version::{IpVersion, TIMESTAMPED, V4, word_at};
use crate::{Segment, SeqNum};

/// The offset in the TCP header of the sequence number. The sixteen bytes from there on contain all
/// fields of this header in which two ACKs may differ.
const SEQ: usize = 4;

/// The headers of the previous ACK, with which the next ACK is compared.
#[derive(Clone, Copy, Debug)]
pub struct NextAck<V: IpVersion = V4> {
    /// The IP and TCP headers of the previous ACK. The IP header is all zeros if the previous ACK
    /// must not be compared with the next one. No packet matches a header of zeros.
    headers: V::Headers,
    /// The length of the TCP header in bytes.
    length: usize,
}

/// A valid ACK that differs from the previous ACK only in the permitted fields, such as the
/// acknowledgement number. [`NextAck::take`] makes it the previous ACK.
#[derive(Clone, Copy, Debug)]
pub struct LaterAck {
    /// Bytes 4 to 19 of the TCP header, from the sequence number to the urgent pointer, in native
    /// byte order.
    words: [u64; 2],
}

impl<V: IpVersion> NextAck<V> {
    /// Stores the headers of the valid ACK in `packet`, to recognise the next ACK. Only a TCP
    /// header with timestamps and no other option is recognised; with other options or none, no ACK
    /// will match. Returns `None` if the TCP header is longer than one with timestamps only.
    #[inline(always)]
    #[must_use]
    pub fn after(packet: &PlainPacket<'_, V>) -> Option<Self> {
        // Most ACKs have no options but timestamps. For these, the length is constant, which makes
        // the copy fast.
        if let Some((&headers, [])) = V::split(packet.bytes())
            && is_timestamped::<V>(&headers)
        {
            return Some(Self { headers, length: TIMESTAMPED });
        }
        Self::after_segment(packet.segment())
    }

    /// Stores the TCP header that fills `bytes`, for [`last_segment`](Self::last_segment). The next
    /// ACK will not match, because the IP header is not available. Returns `None` if the TCP header
    /// is longer than one with timestamps only.
    #[inline]
    #[must_use]
    pub fn after_segment(bytes: &[u8]) -> Option<Self> {
        let mut headers = V::NO_HEADERS;
        headers.as_mut()[V::HEADER..].get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { headers, length: bytes.len() })
    }

    /// Returns the previous ACK, parsed from its stored TCP header.
    #[inline]
    #[must_use]
    pub fn last_segment(&self) -> Option<Segment<'_>> {
        Segment::parse(self.headers.as_ref()[V::HEADER..].get(..self.length)?).ok()
    }

    /// Parses the packet at the start of `bytes`. Returns `None` unless it is a valid ACK, and
    /// differs from the previous ACK only in the permitted fields.
    #[inline(always)]
    #[must_use]
    pub fn read(&self, bytes: &[u8]) -> Option<LaterAck> {
        let (headers, _) = V::split(bytes)?;
        if !V::is_later_ack(&self.headers, headers) {
            return None;
        }
        let (known, found) = (varying::<V>(&self.headers), varying::<V>(headers));
        // The previous ACK had a valid checksum. This ACK differs from it at most in the two words
        // of `found`. Its checksum is therefore valid if the sum of these words equals that of the
        // words in `known`.
        if !is_valid(add(!add(known[0], known[1]), add(found[0], found[1]))) {
            return None;
        }
        Some(LaterAck { words: found })
    }

    /// Makes `later` the previous ACK, with which the next ACK will be compared.
    #[inline(always)]
    pub fn take(&mut self, later: LaterAck) {
        let places = self.headers.as_mut()[V::HEADER + SEQ..].as_chunks_mut::<8>().0;
        for (place, word) in places.iter_mut().zip(later.words) {
            *place = word.to_ne_bytes();
        }
    }
}

/// Returns the two words that contain all TCP header fields in which two ACKs may differ.
#[inline(always)]
fn varying<V: IpVersion>(headers: &V::Headers) -> [u64; 2] {
    let headers = headers.as_ref();
    [SEQ, SEQ + 8].map(|at| word_at(headers, V::HEADER + at))
}

impl LaterAck {
    /// Returns SEG.ACK.
    #[inline(always)]
    #[must_use]
    pub fn ack(&self) -> SeqNum {
        let [_, _, _, _, a, b, c, d] = self.words[0].to_ne_bytes();
        SeqNum::new(u32::from_be_bytes([a, b, c, d]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{TIMESTAMPED_V4 as HEADERS, V6};
    use crate::{
        Ipv4Header, Ipv4Packet, Ipv6Header, Protocol, Sum, TcpFlags, TcpHeader, Timestamps,
    };
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;

    /// Returns a packet with an ACK, and six bytes of padding after it.
    fn packet(ack: u32, window: u16, identification: u16) -> [u8; HEADERS + 6] {
        let [source, destination] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 2)];
        let header =
            Ipv4Header { identification, ..Ipv4Header::new(source, destination, Protocol::TCP) };
        let mut bytes = [0xee; HEADERS + 6];
        header.emit(HEADERS - Ipv4Header::LENGTH, &mut bytes);
        let header = TcpHeader {
            source_port: 40_001,
            destination_port: 80,
            seq: SeqNum::new(5),
            ack: SeqNum::new(ack),
            flags: TcpFlags::ACK,
            window,
            urgent: 0,
        };
        header.emit_timestamped(Timestamps { value: 3, echo: 4 }, &mut bytes[Ipv4Header::LENGTH..]);
        mend(&mut bytes, true, true);
        bytes
    }

    fn mend(bytes: &mut [u8; HEADERS + 6], packet: bool, segment: bool) {
        if packet {
            bytes[10..12].fill(0);
            let checksum = Sum::of(&bytes[..Ipv4Header::LENGTH]).finish();
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        let Ok(Ipv4Packet { header, payload, .. }) = Ipv4Packet::parse(&*bytes) else { return };
        if segment && payload.len() >= TcpHeader::LENGTH {
            let (pseudo, length) = (header.pseudo_header(payload.len()), payload.len());
            let segment = &mut bytes[Ipv4Header::LENGTH..][..length];
            segment[16..18].fill(0);
            let sum = Sum::of(segment);
            TcpHeader::fill_checksum(segment, pseudo, sum);
        }
    }

    fn after(bytes: &[u8]) -> NextAck {
        NextAck::after(&PlainPacket::<V4>::read(bytes).unwrap()).unwrap()
    }

    #[test]
    fn later_acknowledgements_are_read_and_the_last_is_known() {
        let mut next = after(&packet(u32::MAX - 5, 900, 0));
        for (ack, window, identification) in
            [(7, 901, 0), (7 + 2 * 1_448, 3, 77), (9_000, 0, u16::MAX)]
        {
            let later = next.read(&packet(ack, window, identification)).unwrap();
            assert_eq!(later.ack(), SeqNum::new(ack));
            next.take(later);
            let last = next.last_segment().unwrap();
            assert_eq!(
                (last.ack, last.window, last.seq),
                (SeqNum::new(ack), window, SeqNum::new(5))
            );
            assert_eq!((last.flags(), last.payload), (TcpFlags::ACK, &[][..]));
        }
    }

    #[test]
    fn packets_with_other_differences_are_left_to_the_full_parser() {
        let next = after(&packet(60, 900, 0));
        assert!(next.read(&packet(61, 900, 0)[..HEADERS - 1]).is_none());
        for at in 0..HEADERS {
            let mut bytes = packet(60, 900, 0);
            bytes[at] ^= 0x40;
            assert!(next.read(&bytes).is_none(), "byte {at}, checksums not updated");
            mend(&mut bytes, true, true);
            let may_differ = matches!(at, 4 | 5 | 10 | 11 | 28..=31 | 34..=37);
            assert_eq!(next.read(&bytes).is_some(), may_differ, "byte {at}");
        }
    }

    #[test]
    fn no_packet_matches_without_timestamps_or_without_the_ip_header() {
        let bytes = packet(60, 900, 0);
        let unknown = NextAck::<V4>::after_segment(&bytes[Ipv4Header::LENGTH..HEADERS]).unwrap();
        assert!(unknown.read(&bytes).is_none());
        assert_eq!(unknown.last_segment().map(|last| last.ack), Some(SeqNum::new(60)));
        assert!(NextAck::<V4>::after_segment(&bytes[Ipv4Header::LENGTH..HEADERS + 1]).is_none());
        let mut bare = bytes;
        bare[2..4].copy_from_slice(&40_u16.to_be_bytes());
        bare[Ipv4Header::LENGTH + 12] = 5 << 4;
        mend(&mut bare, true, true);
        let next = after(&bare);
        assert!(next.read(&bare).is_none());
        assert_eq!(next.last_segment().map(|last| last.options.len()), Some(0));
    }

    /// Returns an IPv6 packet with an ACK, and padding after it.
    fn ipv6_packet(ack: u32, window: u16) -> [u8; HEADERS + 20] {
        let [source, destination] = [Ipv6Addr::from_bits(7 << 90), Ipv6Addr::from_bits(9 << 80)];
        let header = Ipv6Header::new(source, destination, Protocol::TCP);
        let mut bytes = [0; HEADERS + 20];
        header.emit(TIMESTAMPED, &mut bytes);
        let segment = &mut bytes[Ipv6Header::LENGTH..];
        let tcp = TcpHeader {
            seq: SeqNum::new(5),
            ack: SeqNum::new(ack),
            flags: TcpFlags::ACK,
            window,
            ..TcpHeader::default()
        };
        tcp.emit_timestamped(Timestamps { value: 3, echo: 4 }, segment);
        let sum = Sum::of(segment);
        TcpHeader::fill_checksum(segment, header.pseudo_header(Protocol::TCP, TIMESTAMPED), sum);
        bytes
    }

    #[test]
    fn ipv6_acknowledgements_are_read_and_every_other_bit_is_refused() {
        let first = ipv6_packet(60, 900);
        let mut next = NextAck::after(&PlainPacket::<V6>::read(&first).unwrap()).unwrap();
        for (at, bit) in (0..HEADERS + 20).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bytes = ipv6_packet(61, 900);
            bytes[at] ^= 1 << bit;
            assert!(next.read(&bytes).is_none(), "bit {bit} of byte {at}");
        }
        for (ack, window) in [(61, 900), (7_000, 3)] {
            let later = next.read(&ipv6_packet(ack, window)).unwrap();
            next.take(later);
            let last = next.last_segment().unwrap();
            assert_eq!((last.ack, last.window), (SeqNum::new(ack), window));
        }
    }

    proptest! {
        /// If `NextAck::read` accepts a changed packet, the full parser accepts it, too, and it
        /// differs from the previous packet only in the permitted bits.
        #[test]
        fn accepted_packets_are_valid_for_the_full_parser(
            spoilt in prop::collection::vec((0..HEADERS, any::<u8>()), 0..4),
            ack: u32,
            window: u16,
            identification: u16,
            mends: [bool; 2],
            cut in 0..12_usize,
        ) {
            let next = after(&packet(60, 900, 1));
            let mut bytes = packet(ack, window, identification);
            for &(at, value) in &spoilt {
                bytes[at] = value;
            }
            mend(&mut bytes, mends[0], mends[1]);
            let bytes = &bytes[..bytes.len() - cut];
            if let Some(later) = next.read(bytes) {
                let found = Ipv4Packet::parse(bytes).unwrap();
                let sum = found.header.pseudo_header(found.payload.len()) + Sum::of(found.payload);
                prop_assert!(sum.is_valid());
                let segment = Segment::parse(found.payload).unwrap();
                let last = next.last_segment().unwrap();
                prop_assert_eq!(segment.ack, later.ack());
                let ports = |it: &Segment<'_>| [it.source_port, it.destination_port];
                prop_assert_eq!(ports(&segment), ports(&last));
                let fields = |it: &Segment<'_>| (it.seq, it.offset_and_flags, it.urgent);
                prop_assert_eq!(fields(&segment), fields(&last));
                prop_assert_eq!((segment.options, segment.payload), (last.options, last.payload));
                let mut next = next;
                next.take(later);
                let last = next.last_segment().unwrap();
                prop_assert_eq!((last.ack, last.window), (segment.ack, segment.window));
            } else if spoilt.is_empty() {
                prop_assert!(bytes.len() < HEADERS, "a valid packet was rejected");
            }
        }
    }
}
