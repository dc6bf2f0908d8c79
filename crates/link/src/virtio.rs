//! The virtio-net header, which precedes each frame of a device with offloads (`struct
//! virtio_net_hdr`, Virtual I/O Device 1.2 §5.1.6). It says whether the receiver of the frame must
//! still complete its checksum, and whether it must still segment the frame.
//!
//! The header is untrusted input. A frame with an invalid header is dropped and counted.

use linerate_stack::{Offloads, PartialChecksum, RxChecksum, RxFrame, TxChecksum, TxFrame};
use linerate_units::Instant;
use linerate_wire::{Ipv6Header, Protocol};
use std::num::NonZeroU16;

/// The length of the virtio-net header in bytes.
pub(crate) const LENGTH: usize = 10;
/// The offset of a frame in its buffer; the virtio-net header is directly before it. With this
/// offset, an IP header behind an Ethernet header is aligned to 32 bytes.
pub(crate) const FRAME_OFFSET: usize = 18;
/// The offset of the virtio-net header in the buffer.
pub(crate) const HEADER_OFFSET: usize = FRAME_OFFSET - LENGTH;
/// The length of the largest IP packet, in bytes.
pub(crate) const LARGEST_PACKET: usize = 65_535;
/// The length of the largest frame that can arrive, in bytes: the largest packet behind a tagged
/// Ethernet header.
pub(crate) const LARGEST_FRAME: usize = LARGEST_PACKET + 18;

/// Flag `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is partial and must be completed.
const NEEDS_CHECKSUM: u8 = 1;
/// Flag `VIRTIO_NET_HDR_F_DATA_VALID`: the checksum has been verified.
const DATA_VALID: u8 = 2;
/// GSO type `VIRTIO_NET_HDR_GSO_NONE`: a single packet.
const SINGLE: u8 = 0;
/// GSO type `VIRTIO_NET_HDR_GSO_TCPV4`: a GSO or GRO frame of TCP over IPv4.
const TCP_OVER_IPV4: u8 = 1;
/// GSO type `VIRTIO_NET_HDR_GSO_TCPV6`: a GSO or GRO frame of TCP over IPv6.
const TCP_OVER_IPV6: u8 = 4;

/// Bit `VIRTIO_NET_HDR_GSO_ECN` of the GSO type: the first segment has CWR. This crate ignores the
/// bit, because the TCP header contains CWR as well. It does not treat the bit as invalid: packet
/// sockets may set it although no program has requested it.
const SIGNALS_CONGESTION: u8 = 0x80;

/// The offload information of a received frame, from its virtio-net header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offload {
    checksum: RxChecksum,
    segment: Option<NonZeroU16>,
}

/// Returns all offloads that the virtio-net header can describe, or none if `wanted` is false.
pub(crate) fn offloads(wanted: bool) -> Offloads {
    if wanted { Offloads { checksums: true, gso_max_size: LARGEST_PACKET } } else { Offloads::NONE }
}

/// Returns the frame in `memory`. The kernel has written `length` bytes there, from
/// [`HEADER_OFFSET`] on: the virtio-net header and the frame. Returns `None` if the header is
/// invalid. The caller must set the frame's time of arrival.
pub(crate) fn arrived(memory: &[u8], length: usize) -> Option<RxFrame<'_>> {
    let bytes = memory.get(FRAME_OFFSET..HEADER_OFFSET + length)?;
    let offload = read(*memory[..FRAME_OFFSET].last_chunk()?, bytes.len())?;
    let plain = RxFrame::plain(bytes, Instant::ZERO);
    Some(RxFrame { checksum: offload.checksum, segment: offload.segment, ..plain })
}

/// Parses the virtio-net header of a frame of `length` bytes. Returns `None` if a field is out of
/// range, or describes an offload that this crate has not requested. The field `hdr_len`, which is
/// a hint at the length of the frame's headers, is ignored. These headers contain their own
/// lengths.
fn read(header: [u8; LENGTH], length: usize) -> Option<Offload> {
    let [flags, kind, _, _, size @ .., start_0, start_1, offset_0, offset_1] = header;
    let segment = match kind & !SIGNALS_CONGESTION {
        SINGLE => None,
        TCP_OVER_IPV4 | TCP_OVER_IPV6 => Some(NonZeroU16::new(u16::from_ne_bytes(size))?),
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
    Some(Offload { checksum, segment })
}

/// Writes the virtio-net header for a frame to send. The frame is in `memory` from [`FRAME_OFFSET`]
/// on, and the header is written directly before it.
pub(crate) fn write_header(frame: &TxFrame, memory: &mut [u8]) {
    let header = header(frame, &memory[FRAME_OFFSET..]);
    memory[HEADER_OFFSET..FRAME_OFFSET].copy_from_slice(&header);
}

/// Returns the virtio-net header of a frame to send, whose contents are `bytes`.
fn header(frame: &TxFrame, bytes: &[u8]) -> [u8; LENGTH] {
    let TxChecksum::Partial(place) = frame.checksum else { return [0; LENGTH] };
    let (kind, size, headers) = match frame.segment {
        Some(size) => {
            let kind = if is_ipv6(bytes, place) { TCP_OVER_IPV6 } else { TCP_OVER_IPV4 };
            (kind, size.get(), place.start.saturating_add(length_of_tcp(bytes, place)))
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

/// Returns the length of the TCP header in bytes. The header is at `place.start`, where the
/// checksummed bytes begin.
fn length_of_tcp(bytes: &[u8], place: PartialChecksum) -> u16 {
    let offset = bytes.get(usize::from(place.start) + 12).copied().unwrap_or(0);
    u16::from(offset >> 4) * 4
}

/// Returns whether an IPv6 header with TCP as its next header precedes `place.start`, where the
/// checksummed bytes begin.
fn is_ipv6(bytes: &[u8], place: PartialChecksum) -> bool {
    let header = usize::from(place.start).checked_sub(Ipv6Header::LENGTH);
    let header = header.and_then(|at| bytes.get(at..));
    header.is_some_and(|header| header[0] >> 4 == 6 && header[6] == Protocol::TCP.number())
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
    fn a_zero_header_means_no_offloads() {
        let offload = Offload { checksum: RxChecksum::Unverified, segment: None };
        assert_eq!(read([0; LENGTH], 60), Some(offload));
    }

    #[test]
    fn verified_and_partial_checksums_are_distinguished() {
        let valid = Offload { checksum: RxChecksum::Verified, segment: None };
        assert_eq!(read(header_of(DATA_VALID, SINGLE, 0, 0, 0), 60), Some(valid));
        let partial = Offload { checksum: RxChecksum::Partial(PLACE), segment: None };
        assert_eq!(read(header_of(NEEDS_CHECKSUM, SINGLE, 0, 34, 16), 60), Some(partial));
    }

    #[test]
    fn a_partial_checksum_takes_precedence_and_unknown_flags_are_ignored() {
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
    fn a_gro_frame_has_the_size_of_its_segments() {
        let offload =
            Offload { checksum: RxChecksum::Partial(PLACE), segment: NonZeroU16::new(1_448) };
        assert_eq!(
            read(header_of(NEEDS_CHECKSUM, TCP_OVER_IPV4, 1_448, 34, 16), 60_000),
            Some(offload)
        );
    }

    #[test]
    fn the_ecn_flag_of_a_gro_frame_is_ignored() {
        let kind = SIGNALS_CONGESTION | TCP_OVER_IPV4;
        let offload = read(header_of(NEEDS_CHECKSUM, kind, 1_448, 34, 16), 60_000);
        assert_eq!(offload.unwrap().segment, NonZeroU16::new(1_448));
    }

    #[test]
    fn empty_segments_are_refused() {
        assert_eq!(read(header_of(NEEDS_CHECKSUM, TCP_OVER_IPV4, 0, 34, 16), 60_000), None);
    }

    #[test]
    fn a_checksum_beyond_the_frame_is_refused() {
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
            "the fields are ignored without the flag"
        );
    }

    #[test]
    fn gro_frames_of_other_protocols_are_refused() {
        // GSO types that this crate does not request: UDP fragments, UDP segments, and unknown
        // types.
        for kind in [2, 3, 5, 0xff] {
            assert_eq!(
                read(header_of(NEEDS_CHECKSUM, kind, 1_448, 34, 16), 60_000),
                None,
                "{kind}"
            );
        }
    }

    #[test]
    fn the_header_of_a_sent_frame_describes_its_offloads() {
        let mut bytes = [0; 100];
        bytes[34 + 12] = 8 << 4;
        assert_eq!(header(&TxFrame::whole(100), &bytes), [0; LENGTH]);
        let partial = TxFrame { checksum: TxChecksum::Partial(PLACE), ..TxFrame::whole(100) };
        let mut expected = header_of(NEEDS_CHECKSUM, SINGLE, 0, 34, 16);
        expected[2..4].fill(0);
        assert_eq!(header(&partial, &bytes), expected);
        let gso_frame = TxFrame { segment: NonZeroU16::new(10), ..partial };
        let mut expected = header_of(NEEDS_CHECKSUM, TCP_OVER_IPV4, 10, 34, 16);
        expected[2..4].copy_from_slice(&66_u16.to_ne_bytes());
        assert_eq!(header(&gso_frame, &bytes), expected);
        // An Ethernet header and an IPv6 header have 54 bytes together, so the TCP header begins
        // there.
        let place = PartialChecksum { start: 54, offset: 16 };
        (bytes[14], bytes[20], bytes[54 + 12]) = (6 << 4, 6, 8 << 4);
        let checksum = TxChecksum::Partial(place);
        let mut expected = header_of(NEEDS_CHECKSUM, TCP_OVER_IPV6, 10, 54, 16);
        expected[2..4].copy_from_slice(&86_u16.to_ne_bytes());
        assert_eq!(header(&TxFrame { checksum, ..gso_frame }, &bytes), expected);
    }
}
