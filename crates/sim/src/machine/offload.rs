//! TCP offloads of a NIC: it segments GSO frames (TSO) and merges consecutive received frames
//! (LRO).

use crate::frame::{Frame, FrameId, Frames};
use linerate_stack::{Medium, RxChecksum, RxFrame, segment_gso_frame};
use linerate_units::Instant;
use linerate_wire::{EthernetHeader, Ipv4Header, TcpFlags, TcpHeader, checksum};
use std::num::NonZeroU16;

/// Offset of the IPv4 header in bytes, in a frame without VLAN tags.
const IP: usize = EthernetHeader::LENGTH;
/// Offset of the TCP header in bytes, in a frame without IPv4 options.
const TCP: usize = IP + Ipv4Header::LENGTH;
/// TCP flags after which LRO merges nothing into a frame.
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

/// Appends the data of `next` to `last` if it follows directly and the merged packet has at most
/// `max` bytes. Returns the merged frame.
pub(super) fn merge(
    frames: &mut Frames,
    last: FrameId,
    next: FrameId,
    max: usize,
) -> Option<FrameId> {
    let segment = continues(&frames[last], &frames[next], max)?;
    let data = frames[next].bytes()[headers(frames[next].bytes())..].to_vec();
    let ends = frames[next].bytes()[TCP + 13] & LAST.bits().to_be_bytes()[1];
    let length = frames[last].length();
    let merged = if frames[last].segment().is_some() { last } else { move_to_large(frames, last) };
    let frame = &mut frames[merged];
    frame.room()[length..length + data.len()].copy_from_slice(&data);
    frame.set_length(length + data.len());
    frame.set_segment(Some(segment));
    let bytes = frame.written();
    bytes[TCP + 13] |= ends;
    let total = u16::try_from(bytes.len() - IP).unwrap_or(u16::MAX);
    let sum = checksum::update(half(bytes, IP + 10), half(bytes, IP + 2), total);
    bytes[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
    bytes[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    frames.release(next);
    Some(merged)
}

/// Moves a frame into a buffer with room for a GSO frame.
fn move_to_large(frames: &mut Frames, frame: FrameId) -> FrameId {
    let wide = frames.take_large();
    let bytes = frames[frame].bytes().to_vec();
    frames[wide].room()[..bytes.len()].copy_from_slice(&bytes);
    frames[wide].set_length(bytes.len());
    frames.release(frame);
    wide
}

/// Returns the segment size of a merged frame if the data of `next` follow those of `last` in the
/// same connection with equal headers.
fn continues(last: &Frame, next: &Frame, max: usize) -> Option<NonZeroU16> {
    let (one, other) = (last.bytes(), next.bytes());
    if !is_plain(one) || !is_plain(other) || headers(one) != headers(other) {
        return None;
    }
    let (had, data) = (one.len() - headers(one), other.len() - headers(other));
    let segment = last.segment().map_or(had, |segment| usize::from(segment.get()));
    let same = |from: usize, to: usize| one[from..to] == other[from..to];
    let number = |bytes: &[u8]| {
        u32::from_be_bytes([bytes[TCP + 4], bytes[TCP + 5], bytes[TCP + 6], bytes[TCP + 7]])
    };
    let follows = number(one).wrapping_add(u32::try_from(had).ok()?) == number(other);
    let flags = |bytes: &[u8]| TcpFlags::from_bits_retain(half(bytes, TCP + 12) & 0xfff);
    let alike = same(0, IP + 2)
        && same(IP + 6, IP + 10)
        && same(IP + 12, TCP + 4)
        && same(TCP + 8, TCP + 12)
        && same(TCP + 14, TCP + 16)
        && same(TCP + 18, headers(one));
    let whole = had > 0 && had.is_multiple_of(segment.max(1)) && (1..=segment).contains(&data);
    let open = flags(one) == TcpFlags::ACK && flags(other).difference(LAST) == TcpFlags::ACK;
    let fits = one.len() + data - IP <= max;
    (alike && follows && whole && open && fits)
        .then(|| u16::try_from(segment).ok().and_then(NonZeroU16::new))?
}

/// Returns whether a frame can be merged: a TCP segment over IPv4 without fragmentation, IP options
/// and padding.
fn is_plain(bytes: &[u8]) -> bool {
    bytes.len() >= TCP + TcpHeader::LENGTH
        && bytes[12..15] == [8, 0, 0x45]
        && bytes[IP + 9] == 6
        && half(bytes, IP + 6) & 0x3fff == 0
        && usize::from(half(bytes, IP + 2)) == bytes.len() - IP
        && (TCP + TcpHeader::LENGTH..=bytes.len()).contains(&headers(bytes))
}

/// Returns the length of the Ethernet, IPv4 and TCP headers together. The frame must contain the
/// fixed part of a TCP header.
fn headers(bytes: &[u8]) -> usize {
    TCP + usize::from(bytes[TCP + 12] >> 4) * 4
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_wire::{EtherType, MacAddress, Protocol, SeqNum, VlanTags};
    use std::net::Ipv4Addr;

    const ROOM: usize = 1_514;

    /// Creates a frame with `data` bytes from `seq` on.
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
