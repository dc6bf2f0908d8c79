//! The layout of a frame in the ring between two shards: first its offload information, then its
//! bytes.

use crate::sys::ring::Producer;
use linerate_stack::{PartialChecksum, RxChecksum, RxFrame};
use linerate_units::Instant;
use std::num::NonZeroU16;

/// The length of the offload information in front of a frame, in bytes.
pub(super) const PREFIX: usize = 8;

/// Copies the frame and its offload information into the ring. Returns `None` if the ring is full,
/// or the frame is too long for a slot.
pub(super) fn put(ring: &mut Producer, frame: &RxFrame<'_>) -> Option<()> {
    let length = PREFIX + frame.bytes.len();
    let mut slot = ring.offer()?;
    write(frame, slot.frame().get_mut(..length)?);
    slot.commit(length, frame.arrived.as_nanos());
    Some(())
}

const VERIFIED: u16 = 1;
const PARTIAL: u16 = 2;

/// Writes a frame's offload information as four 16-bit numbers, and behind it the frame.
pub(super) fn write(frame: &RxFrame<'_>, into: &mut [u8]) {
    let (kind, place) = match frame.checksum {
        RxChecksum::Unverified => (0, PartialChecksum { start: 0, offset: 0 }),
        RxChecksum::Verified => (VERIFIED, PartialChecksum { start: 0, offset: 0 }),
        RxChecksum::Partial(place) => (PARTIAL, place),
    };
    let segment = frame.segment.map_or(0, NonZeroU16::get);
    let (prefix, bytes) = into.split_at_mut(PREFIX);
    let (fields, _) = prefix.as_chunks_mut();
    for (field, value) in fields.iter_mut().zip([kind, place.start, place.offset, segment]) {
        *field = value.to_ne_bytes();
    }
    bytes.copy_from_slice(frame.bytes);
}

/// Parses a slot of the ring, into which `write` has written the offload information and the frame.
pub(super) fn read(prefixed: &[u8], arrived: Instant) -> RxFrame<'_> {
    let (prefix, bytes) = prefixed.split_at_checked(PREFIX).unwrap_or_default();
    let field = |at: usize| {
        prefix.get(at..at + 2).map_or(0, |field| u16::from_ne_bytes([field[0], field[1]]))
    };
    let checksum = match field(0) {
        VERIFIED => RxChecksum::Verified,
        PARTIAL => RxChecksum::Partial(PartialChecksum { start: field(2), offset: field(4) }),
        _ => RxChecksum::Unverified,
    };
    RxFrame { checksum, segment: NonZeroU16::new(field(6)), ..RxFrame::plain(bytes, arrived) }
}
