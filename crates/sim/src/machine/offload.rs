//! TCP offloads of a NIC: it segments GSO frames (TSO) and merges consecutive received frames
//! (LRO).

use crate::frame::{Frame, FrameId, Frames};
use linerate_stack::{Medium, RxChecksum, RxFrame, segment_gso_frame};
use linerate_units::Instant;
use linerate_wire::{EthernetHeader, Ipv4Header, Ipv6Header, TcpFlags, TcpHeader, checksum};
use std::num::NonZeroU16;

/// Offset of the IP header in bytes, in a frame without VLAN tags.
const IP: usize = EthernetHeader::LENGTH;
/// TCP flags of a frame after which LRO appends nothing more.
const LAST: TcpFlags = TcpFlags::PSH.union(TcpFlags::FIN);

/// Segments a GSO frame into frames of at most the MTU, appends them to `segments` and releases the
/// GSO frame.
pub(super) fn segment(
    frames: &mut Frames,
    gso_frame: FrameId,
    medium: Medium,
    segments: &mut Vec<FrameId>,
) {
    let (bytes, segment) = (frames[gso_frame].bytes().to_vec(), frames[gso_frame].segment());
    let frame = RxFrame {
        segment,
        checksum: RxChecksum::Verified,
        ..RxFrame::plain(&bytes, Instant::ZERO)
    };
    segment_gso_frame(frame, medium, |part| {
        let id = frames.take();
        frames[id].room()[..part.bytes.len()].copy_from_slice(part.bytes);
        frames[id].set_length(part.bytes.len());
        segments.push(id);
    });
    frames.release(gso_frame);
}

/// Merges two received frames: appends the data of frame `next` to frame `last`, and returns the
/// merged frame. Its IP packet has at most `max` bytes. Returns `None` if the frames cannot be
/// merged (see `continues`).
pub(super) fn merge(
    frames: &mut Frames,
    last: FrameId,
    next: FrameId,
    max: usize,
) -> Option<FrameId> {
    let segment = continues(&frames[last], &frames[next], max)?;
    let layout = Layout::of(frames[next].bytes())?;
    let data = frames[next].bytes()[layout.data..].to_vec();
    let ends = frames[next].bytes()[layout.tcp + 13] & LAST.bits().to_be_bytes()[1];
    let length = frames[last].length();
    let merged = if frames[last].segment().is_some() { last } else { move_to_large(frames, last) };
    let frame = &mut frames[merged];
    frame.room()[length..length + data.len()].copy_from_slice(&data);
    frame.set_length(length + data.len());
    frame.set_segment(Some(segment));
    let bytes = frame.written();
    bytes[layout.tcp + 13] |= ends;
    set_length(bytes, layout.is_ipv6);
    frames.release(next);
    Some(merged)
}

/// Writes the length of the packet into its IP header, after data have been appended.
fn set_length(bytes: &mut [u8], is_ipv6: bool) {
    let (place, before) = if is_ipv6 { (4, Ipv6Header::LENGTH) } else { (2, 0) };
    let length = u16::try_from(bytes.len() - IP - before).unwrap_or(u16::MAX);
    if !is_ipv6 {
        let sum = checksum::update(half(bytes, IP + 10), half(bytes, IP + place), length);
        bytes[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    }
    bytes[IP + place..IP + place + 2].copy_from_slice(&length.to_be_bytes());
}

/// Moves a frame into a buffer that has room for a GSO frame. Returns the new frame.
fn move_to_large(frames: &mut Frames, frame: FrameId) -> FrameId {
    let wide = frames.take_large();
    let bytes = frames[frame].bytes().to_vec();
    frames[wide].room()[..bytes.len()].copy_from_slice(&bytes);
    frames[wide].set_length(bytes.len());
    frames.release(frame);
    wide
}

/// Returns the segment size of the merged frame if frame `next` can be appended to frame `last`;
/// otherwise `None`. The data must be contiguous in the stream of one connection, and the merged IP
/// packet may have at most `max` bytes. Header fields must be equal, except those that differ from
/// segment to segment.
fn continues(last: &Frame, next: &Frame, max: usize) -> Option<NonZeroU16> {
    let (one, other) = (last.bytes(), next.bytes());
    let layout = Layout::of(one)?;
    if Layout::of(other) != Some(layout) {
        return None;
    }
    let Layout { is_ipv6, tcp, data: headers } = layout;
    let (had, data) = (one.len() - headers, other.len() - headers);
    let segment = last.segment().map_or(had, |segment| usize::from(segment.get()));
    let same = |from: usize, to: usize| one[from..to] == other[from..to];
    let number = |bytes: &[u8]| {
        u32::from_be_bytes([bytes[tcp + 4], bytes[tcp + 5], bytes[tcp + 6], bytes[tcp + 7]])
    };
    let follows = number(one).wrapping_add(u32::try_from(had).ok()?) == number(other);
    let flags = |bytes: &[u8]| TcpFlags::from_bits_retain(half(bytes, tcp + 12) & 0xfff);
    // Compares all fields of the IP headers except those in which mergeable segments may differ:
    // the packet length and, over IPv4, the identification and the header checksum.
    let is_same_ip = if is_ipv6 {
        same(0, IP + 4) && same(IP + 6, tcp + 4)
    } else {
        same(0, IP + 2) && same(IP + 6, IP + 10) && same(IP + 12, tcp + 4)
    };
    let alike = is_same_ip
        && same(tcp + 8, tcp + 12)
        && same(tcp + 14, tcp + 16)
        && same(tcp + 18, headers);
    let whole = had > 0 && had.is_multiple_of(segment.max(1)) && (1..=segment).contains(&data);
    let open = flags(one) == TcpFlags::ACK && flags(other).difference(LAST) == TcpFlags::ACK;
    let fits = one.len() + data - IP <= max;
    (alike && follows && whole && open && fits)
        .then(|| u16::try_from(segment).ok().and_then(NonZeroU16::new))?
}

/// The offsets of the headers in a frame with a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    is_ipv6: bool,
    /// Offset of the TCP header.
    tcp: usize,
    /// Offset of the data.
    data: usize,
}

impl Layout {
    /// Returns the layout of an unfragmented TCP segment without IP options, extension headers and
    /// padding; `None` for other frames.
    fn of(bytes: &[u8]) -> Option<Self> {
        let packet = bytes.get(IP..)?;
        let is_ipv6 = match bytes[12..IP] {
            [0x08, 0x00] => false,
            [0x86, 0xdd] => true,
            _ => return None,
        };
        let header = if is_ipv6 { Ipv6Header::LENGTH } else { Ipv4Header::LENGTH };
        let tcp = IP + header;
        if packet.len() < header + TcpHeader::LENGTH {
            return None;
        }
        let is_plain = if is_ipv6 {
            packet[0] >> 4 == 6
                && packet[6] == 6
                && header + usize::from(half(packet, 4)) == packet.len()
        } else {
            packet[0] == 0x45
                && packet[9] == 6
                && half(packet, 6) & 0x3fff == 0
                && usize::from(half(packet, 2)) == packet.len()
        };
        let data = tcp + usize::from(bytes[tcp + 12] >> 4) * 4;
        let is_whole = (tcp + TcpHeader::LENGTH..=bytes.len()).contains(&data);
        (is_plain && is_whole).then_some(Self { is_ipv6, tcp, data })
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_wire::{EtherType, MacAddress, Protocol, SeqNum, VlanTags};
    use std::net::{Ipv4Addr, Ipv6Addr};

    const ROOM: usize = 1_514;
    /// Offset of the TCP header over IPv4.
    const TCP: usize = IP + Ipv4Header::LENGTH;

    /// Creates a frame over IPv4 with `data` bytes of data, from sequence number `seq` on.
    fn frame(frames: &mut Frames, seq: u32, data: usize, flags: TcpFlags) -> FrameId {
        let id = frames.take();
        let room = frames[id].room();
        let (source, destination) = (MacAddress::new([2; 6]), MacAddress::new([4; 6]));
        EthernetHeader { destination, source, tags: VlanTags::NONE, ether_type: EtherType::IPV4 }
            .emit(room);
        let header =
            Ipv4Header::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), Protocol::TCP);
        header.emit(TcpHeader::LENGTH + data, &mut room[IP..]);
        TcpHeader { seq: SeqNum::new(seq), flags, ..TcpHeader::default() }
            .emit(0, &mut room[TCP..]);
        room[TCP + TcpHeader::LENGTH..].fill(u8::try_from(seq % 251).unwrap_or(0));
        frames[id].set_length(TCP + TcpHeader::LENGTH + data);
        id
    }

    /// Creates a frame over IPv6 with `data` bytes of data, from sequence number `seq` on.
    fn ipv6_frame(frames: &mut Frames, seq: u32, data: usize) -> FrameId {
        const TCP: usize = IP + Ipv6Header::LENGTH;
        let id = frames.take();
        let room = frames[id].room();
        let (source, destination) = (MacAddress::new([2; 6]), MacAddress::new([4; 6]));
        EthernetHeader { destination, source, tags: VlanTags::NONE, ether_type: EtherType::IPV6 }
            .emit(room);
        Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, Protocol::TCP)
            .emit(TcpHeader::LENGTH + data, &mut room[IP..]);
        TcpHeader { seq: SeqNum::new(seq), flags: TcpFlags::ACK, ..TcpHeader::default() }
            .emit(0, &mut room[TCP..]);
        room[TCP + TcpHeader::LENGTH..].fill(u8::try_from(seq % 251).unwrap_or(0));
        frames[id].set_length(TCP + TcpHeader::LENGTH + data);
        id
    }

    #[test]
    fn frames_over_ipv6_are_merged_and_segmented_into_the_originals() {
        let mut frames = Frames::new(ROOM);
        let [one, two] =
            [(0, 1_000), (1_000, 300)].map(|(seq, data)| ipv6_frame(&mut frames, seq, data));
        let before = [one, two].map(|id| frames[id].bytes()[74..].to_vec());
        let merged = merge(&mut frames, one, two, 65_535).expect("they follow one another");
        let parsed = linerate_wire::Ipv6Packet::parse(&frames[merged].bytes()[IP..]).unwrap();
        assert_eq!(parsed.payload.len(), 20 + 1_300);
        let mut segments = Vec::new();
        segment(&mut frames, merged, Medium::Ethernet, &mut segments);
        let after: Vec<_> = segments.iter().map(|&id| frames[id].bytes()[74..].to_vec()).collect();
        assert_eq!(before, after[..]);
        let ipv4 = frame(&mut frames, 1_300, 1_000, TcpFlags::ACK);
        let ipv6 = ipv6_frame(&mut frames, 300, 1_000);
        assert_eq!(merge(&mut frames, ipv6, ipv4, 65_535), None);
    }

    #[test]
    fn merged_frames_are_segmented_into_the_originals() {
        let mut frames = Frames::new(ROOM);
        let ack = TcpFlags::ACK;
        let numbers =
            [(u32::MAX - 99, 1_000, ack), (900, 1_000, ack), (1_900, 300, ack | TcpFlags::PSH)];
        let [one, two, three] =
            numbers.map(|(seq, data, flags)| frame(&mut frames, seq, data, flags));
        let before: Vec<Vec<u8>> =
            [one, two, three].map(|id| frames[id].bytes()[TCP + 20..].to_vec()).to_vec();
        let merged = merge(&mut frames, one, two, 65_535)
            .and_then(|both| merge(&mut frames, both, three, 65_535));
        let merged = merged.expect("they follow one another");
        assert_eq!(
            (frames[merged].length(), frames[merged].segment()),
            (TCP + 20 + 2_300, NonZeroU16::new(1_000))
        );
        let late = frame(&mut frames, 2_200, 1_000, ack);
        assert_eq!(
            merge(&mut frames, merged, late, 65_535),
            None,
            "a frame with PSH ends the merged frame"
        );
        let mut segments = Vec::new();
        segment(&mut frames, merged, Medium::Ethernet, &mut segments);
        let after: Vec<Vec<u8>> =
            segments.iter().map(|&id| frames[id].bytes()[TCP + 20..].to_vec()).collect();
        assert_eq!(before, after);
        assert_eq!(frames.held(), 4, "the segments and the late frame");
    }

    #[test]
    fn frames_with_a_gap_or_other_headers_are_not_merged() {
        let mut frames = Frames::new(ROOM);
        let ack = TcpFlags::ACK;
        let first = frame(&mut frames, 0, 1_000, ack);
        let (hole, longer) =
            (frame(&mut frames, 1_001, 1_000, ack), frame(&mut frames, 1_000, 1_001, ack));
        let (empty, urgent) = (
            frame(&mut frames, 1_000, 0, ack),
            frame(&mut frames, 1_000, 1_000, ack | TcpFlags::URG),
        );
        let next = frame(&mut frames, 1_000, 1_000, ack);
        for other in [hole, longer, empty, urgent] {
            assert_eq!(merge(&mut frames, first, other, 65_535), None);
        }
        assert_eq!(
            merge(&mut frames, first, next, 2_039),
            None,
            "a packet of 2,040 bytes is too large"
        );
        assert!(merge(&mut frames, first, next, 2_040).is_some());
        for length in 0..60 {
            let short = frames.take();
            frames[short].set_length(length);
            assert_eq!(
                merge(&mut frames, short, hole, 65_535),
                None,
                "a malformed frame is not merged"
            );
        }
    }
}
