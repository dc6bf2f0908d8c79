//! What a card of today does with TCP's frames in place of the host: it cuts super-frames that leave (TSO), and joins
//! frames that have come in one behind the other (LRO).

use crate::frame::{Frame, FrameId, Frames};
use linerate_stack::{Medium, RxChecksum, RxFrame, cut_super_frame};
use linerate_units::Instant;
use linerate_wire::{EthernetHeader, Ipv4Header, TcpFlags, TcpHeader, checksum};
use std::num::NonZeroU16;

/// Where IPv4 and TCP begin, in a frame without tags and options of IPv4.
const IP: usize = EthernetHeader::LENGTH;
const TCP: usize = IP + Ipv4Header::LENGTH;
/// Flags that end what is joined.
const LAST: TcpFlags = TcpFlags::PSH.union(TcpFlags::FIN);

/// Cuts a super-frame into frames of a wire, which go to `pieces`, and lets go of it.
pub(super) fn cut(
    frames: &mut Frames,
    super_frame: FrameId,
    medium: Medium,
    pieces: &mut Vec<FrameId>,
) {
    let (bytes, segment) = (frames[super_frame].bytes().to_vec(), frames[super_frame].segment());
    let frame = RxFrame {
        segment,
        checksum: RxChecksum::Verified,
        ..RxFrame::plain(&bytes, Instant::ZERO)
    };
    cut_super_frame(frame, medium, |piece| {
        let id = frames.take();
        frames[id].room()[..piece.bytes.len()].copy_from_slice(piece.bytes);
        frames[id].set_length(piece.bytes.len());
        pieces.push(id);
    });
    frames.release(super_frame);
}

/// Joins `next` to `last` if it goes on where that ends, and no packet of more than `most` bytes comes of it: what
/// both have become.
pub(super) fn join(
    frames: &mut Frames,
    last: FrameId,
    next: FrameId,
    most: usize,
) -> Option<FrameId> {
    let segment = goes_on(&frames[last], &frames[next], most)?;
    let data = frames[next].bytes()[headers(frames[next].bytes())..].to_vec();
    let ends = frames[next].bytes()[TCP + 13] & LAST.bits().to_be_bytes()[1];
    let length = frames[last].length();
    let joined = if frames[last].segment().is_some() { last } else { widened(frames, last) };
    let frame = &mut frames[joined];
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
    Some(joined)
}

/// The same frame with room for a super-frame.
fn widened(frames: &mut Frames, frame: FrameId) -> FrameId {
    let wide = frames.take_large();
    let bytes = frames[frame].bytes().to_vec();
    frames[wide].room()[..bytes.len()].copy_from_slice(&bytes);
    frames[wide].set_length(bytes.len());
    frames.release(frame);
    wide
}

/// Does `next` go on where `last` ends, of the same connection and with the same headers? Then how much data each
/// piece has but the last.
fn goes_on(last: &Frame, next: &Frame, most: usize) -> Option<NonZeroU16> {
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
    let fits = one.len() + data - IP <= most;
    (alike && follows && whole && open && fits)
        .then(|| u16::try_from(segment).ok().and_then(NonZeroU16::new))?
}

/// Is it TCP over IPv4 in an Ethernet frame, without options of IPv4, whole, and without padding?
fn is_plain(bytes: &[u8]) -> bool {
    bytes.len() >= TCP + TcpHeader::LENGTH
        && bytes[12..15] == [8, 0, 0x45]
        && bytes[IP + 9] == 6
        && half(bytes, IP + 6) & 0x3fff == 0
        && usize::from(half(bytes, IP + 2)) == bytes.len() - IP
        && (TCP + TcpHeader::LENGTH..=bytes.len()).contains(&headers(bytes))
}

/// Bytes of all headers of a frame that is long enough for those of TCP.
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

    /// A frame with `data` bytes from `seq` on.
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
    fn frames_one_behind_the_other_become_one_and_are_cut_into_the_same_again() {
        let mut frames = Frames::new(ROOM);
        let ack = TcpFlags::ACK;
        let numbers =
            [(u32::MAX - 99, 1_000, ack), (900, 1_000, ack), (1_900, 300, ack | TcpFlags::PSH)];
        let [one, two, three] =
            numbers.map(|(seq, data, flags)| frame(&mut frames, seq, data, flags));
        let before: Vec<Vec<u8>> =
            [one, two, three].map(|id| frames[id].bytes()[TCP + 20..].to_vec()).to_vec();
        let joined = join(&mut frames, one, two, 65_535)
            .and_then(|both| join(&mut frames, both, three, 65_535));
        let joined = joined.expect("they follow one another");
        assert_eq!(
            (frames[joined].length(), frames[joined].segment()),
            (TCP + 20 + 2_300, NonZeroU16::new(1_000))
        );
        let late = frame(&mut frames, 2_200, 1_000, ack);
        assert_eq!(join(&mut frames, joined, late, 65_535), None, "nothing goes on behind a push");
        let mut pieces = Vec::new();
        cut(&mut frames, joined, Medium::Ethernet, &mut pieces);
        let after: Vec<Vec<u8>> =
            pieces.iter().map(|&id| frames[id].bytes()[TCP + 20..].to_vec()).collect();
        assert_eq!(before, after);
        assert_eq!(frames.held(), 4, "the pieces, and the one that came late");
    }

    #[test]
    fn what_does_not_follow_or_is_not_alike_stays_by_itself() {
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
            assert_eq!(join(&mut frames, first, other, 65_535), None);
        }
        assert_eq!(
            join(&mut frames, first, next, 2_039),
            None,
            "a packet of 2,040 bytes is too large"
        );
        assert!(join(&mut frames, first, next, 2_040).is_some());
        for length in 0..60 {
            let short = frames.take();
            frames[short].set_length(length);
            assert_eq!(join(&mut frames, short, hole, 65_535), None, "of noise nothing comes");
        }
    }
}
