//! The header in front of each frame of a device with offloads: what is still to be done about the frame,
//! or was done already (`struct virtio_net_hdr`, Virtual I/O Device 1.2 §5.1.6).
//!
//! Whoever writes it may be wrong, or lie. What cannot be is a frame that is dropped and counted.

use linerate_stack::{Offloads, PartialChecksum, RxChecksum, RxFrame, TxChecksum, TxFrame};
use linerate_units::Instant;
use std::num::NonZeroU16;

/// Bytes of the header.
pub(crate) const LENGTH: usize = 10;
/// Where a frame begins in its memory, behind the place of the header: so that behind Ethernet's the IP header
/// begins at a multiple of 32 bytes.
pub(crate) const FRAME: usize = 18;
/// Where the header begins.
pub(crate) const HEADER: usize = FRAME - LENGTH;
/// Bytes of the largest IP packet.
pub(crate) const LARGEST_PACKET: usize = 65_535;
/// The largest frame that can arrive: that packet behind a tagged Ethernet header.
pub(crate) const LARGEST_FRAME: usize = LARGEST_PACKET + 18;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is to be completed.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_F_DATA_VALID`: somebody has looked at the checksum, and it was right.
const DATA_VALID: u8 = 2;
/// `VIRTIO_NET_HDR_GSO_NONE`: one packet.
const SINGLE: u8 = 0;
/// `VIRTIO_NET_HDR_GSO_TCPV4`: a super-frame of TCP over IPv4.
const TCP_OVER_IPV4: u8 = 1;

/// `VIRTIO_NET_HDR_GSO_ECN`, beside one of these: the first segment has CWR. Packet sockets tell so unasked; it
/// stands in the TCP header, too.
const SIGNALS_CONGESTION: u8 = 0x80;

/// What a header says of a frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    checksum: RxChecksum,
    segment: Option<NonZeroU16>,
}

/// What a device does for us with such headers, if they are wanted.
pub(crate) fn offloads(wanted: bool) -> Offloads {
    if wanted { Offloads { checksums: true, super_packet: LARGEST_PACKET } } else { Offloads::NONE }
}

/// What `length` bytes are that the kernel has written into `memory` from [`HEADER`] on; `None` if they cannot be a
/// frame. When it arrived is for the caller to say.
pub(crate) fn arrived(memory: &[u8], length: usize) -> Option<RxFrame<'_>> {
    let bytes = memory.get(FRAME..HEADER + length)?;
    let said = read(*memory[..FRAME].last_chunk()?, bytes.len())?;
    let plain = RxFrame::plain(bytes, Instant::ZERO);
    Some(RxFrame { checksum: said.checksum, segment: said.segment, ..plain })
}

/// Reads the header of a frame of `length` bytes; `None` if it says what cannot be, or what nobody has asked
/// for. Its hint how long the headers are is not looked at: they say so themselves.
fn read(header: [u8; LENGTH], length: usize) -> Option<Said> {
    let [flags, kind, _, _, size @ .., start_0, start_1, offset_0, offset_1] = header;
    let segment = match kind & !SIGNALS_CONGESTION {
        SINGLE => None,
        TCP_OVER_IPV4 => Some(NonZeroU16::new(u16::from_ne_bytes(size))?),
        _ => return None,
    };
    let place = PartialChecksum {
        start: u16::from_ne_bytes([start_0, start_1]),
        offset: u16::from_ne_bytes([offset_0, offset_1]),
    };
    let checksum = if flags & NEEDS_CHECKSUM != 0 {
        if usize::from(place.start) + usize::from(place.offset) + 2 > length {
            return None;
        }
        RxChecksum::Partial(place)
    } else if flags & DATA_VALID != 0 {
        RxChecksum::Verified
    } else {
        RxChecksum::Unverified
    };
    Some(Said { checksum, segment })
}

/// Writes the header of a frame that is sent, and lies in `memory` from [`FRAME`] on.
pub(crate) fn write_header(frame: &TxFrame, memory: &mut [u8]) {
    let header = header(frame, &memory[FRAME..]);
    memory[HEADER..FRAME].copy_from_slice(&header);
}

/// The header of a frame that is sent, of which these are the `bytes`.
fn header(frame: &TxFrame, bytes: &[u8]) -> [u8; LENGTH] {
    let TxChecksum::Partial(place) = frame.checksum else { return [0; LENGTH] };
    let (kind, size, headers) = match frame.segment {
        Some(size) => {
            (TCP_OVER_IPV4, size.get(), place.start.saturating_add(length_of_tcp(bytes, place)))
        }
        None => (SINGLE, 0, 0),
    };
    let mut header = [0; LENGTH];
    (header[0], header[1]) = (NEEDS_CHECKSUM, kind);
    let (fields, _) = header[2..].as_chunks_mut();
    for (field, value) in fields.iter_mut().zip([headers, size, place.start, place.offset]) {
        *field = value.to_ne_bytes();
    }
    header
}

/// Bytes of the TCP header that begins at `start`.
fn length_of_tcp(bytes: &[u8], place: PartialChecksum) -> u16 {
    let offset = bytes.get(usize::from(place.start) + 12).copied().unwrap_or(0);
    u16::from(offset >> 4) * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: PartialChecksum = PartialChecksum { start: 34, offset: 16 };

    fn header_of(flags: u8, kind: u8, size: u16, start: u16, offset: u16) -> [u8; LENGTH] {
        let mut header = [flags, kind, 0xff, 0xff, 0, 0, 0, 0, 0, 0];
        header[4..6].copy_from_slice(&size.to_ne_bytes());
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..].copy_from_slice(&offset.to_ne_bytes());
        header
    }

    #[test]
    fn a_header_of_zeros_says_nothing() {
        let said = Said { checksum: RxChecksum::Unverified, segment: None };
        assert_eq!(read([0; LENGTH], 60), Some(said));
    }

    #[test]
    fn what_was_looked_at_and_what_is_to_be_completed_are_told_apart() {
        let valid = Said { checksum: RxChecksum::Verified, segment: None };
        assert_eq!(read(header_of(DATA_VALID, SINGLE, 0, 0, 0), 60), Some(valid));
        let partial = Said { checksum: RxChecksum::Partial(PLACE), segment: None };
        assert_eq!(read(header_of(NEEDS_CHECKSUM, SINGLE, 0, 34, 16), 60), Some(partial));
    }

    #[test]
    fn what_is_to_be_completed_was_not_right_already_and_flags_that_nobody_knows_say_nothing() {
        let both = read(header_of(NEEDS_CHECKSUM | DATA_VALID | 4, SINGLE, 0, 34, 16), 60).unwrap();
        assert_eq!(both.checksum, RxChecksum::Partial(PLACE));
        assert_eq!(
            read(header_of(DATA_VALID | 4, SINGLE, 0, 0, 0), 60).unwrap().checksum,
            RxChecksum::Verified
        );
        assert_eq!(
            read(header_of(4, SINGLE, 0, 0, 0), 60).unwrap().checksum,
            RxChecksum::Unverified
        );
    }

    #[test]
    fn a_super_frame_says_how_large_its_segments_were() {
        let said = Said { checksum: RxChecksum::Partial(PLACE), segment: NonZeroU16::new(1_448) };
        assert_eq!(
            read(header_of(NEEDS_CHECKSUM, TCP_OVER_IPV4, 1_448, 34, 16), 60_000),
            Some(said)
        );
    }

    #[test]
    fn a_super_frame_that_signals_congestion_is_one_of_the_same_kind() {
        let kind = SIGNALS_CONGESTION | TCP_OVER_IPV4;
        let said = read(header_of(NEEDS_CHECKSUM, kind, 1_448, 34, 16), 60_000);
        assert_eq!(said.unwrap().segment, NonZeroU16::new(1_448));
    }

    #[test]
    fn segments_of_nothing_cannot_be() {
        assert_eq!(read(header_of(NEEDS_CHECKSUM, TCP_OVER_IPV4, 0, 34, 16), 60_000), None);
    }

    #[test]
    fn a_checksum_beyond_the_frame_cannot_be() {
        for (start, offset) in [
            (34, 17),
            (50, 1),
            (52, 0),
            (u16::MAX, 0),
            (0, u16::MAX),
            (u16::MAX, u16::MAX),
            (u16::MAX, 3),
        ] {
            assert_eq!(read(header_of(NEEDS_CHECKSUM, SINGLE, 0, start, offset), 52), None);
        }
        assert!(read(header_of(NEEDS_CHECKSUM, SINGLE, 0, 34, 16), 52).is_some());
        assert!(
            read(header_of(0, SINGLE, 0, u16::MAX, u16::MAX), 52).is_some(),
            "nobody asks for it"
        );
    }

    #[test]
    fn super_frames_of_other_kinds_were_not_asked_for() {
        // UDP as fragments, TCP over IPv6, UDP.
        for kind in [3, 4, 5, 0xff] {
            assert_eq!(
                read(header_of(NEEDS_CHECKSUM, kind, 1_448, 34, 16), 60_000),
                None,
                "{kind}"
            );
        }
    }

    #[test]
    fn what_is_sent_says_what_is_left_to_be_done() {
        let mut bytes = [0; 100];
        bytes[34 + 12] = 8 << 4;
        assert_eq!(header(&TxFrame::whole(100), &bytes), [0; LENGTH]);
        let partial = TxFrame { checksum: TxChecksum::Partial(PLACE), ..TxFrame::whole(100) };
        let mut expected = header_of(NEEDS_CHECKSUM, SINGLE, 0, 34, 16);
        expected[2..4].fill(0);
        assert_eq!(header(&partial, &bytes), expected);
        let super_frame = TxFrame { segment: NonZeroU16::new(10), ..partial };
        let mut expected = header_of(NEEDS_CHECKSUM, TCP_OVER_IPV4, 10, 34, 16);
        expected[2..4].copy_from_slice(&66_u16.to_ne_bytes());
        assert_eq!(header(&super_frame, &bytes), expected);
    }
}
