//! What the host knows of a frame that has arrived, apart from its bytes.

use crate::link::{RxChecksum, RxFrame};
use alloc::sync::Arc;
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::MacAddress;

/// Data of segments that are shorter are summed before they are copied.
pub(crate) const LONG: usize = 256;

/// How a packet came to us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// When.
    pub(crate) at: Instant,
    /// Does the link vouch for the checksum inside?
    pub(crate) verified: bool,
    /// If it is a super-frame: bytes of payload in each of its segments.
    pub(crate) joined: Option<NonZeroU16>,
    /// The memory that it lies in, if it may be kept there.
    pub(crate) memory: Option<&'a Arc<[u8]>>,
    /// Was the frame for all stations?
    pub(crate) to_all_stations: bool,
    /// Did it come from this host itself?
    pub(crate) local: bool,
}

impl<'a> Arrival<'a> {
    /// That of a packet in `frame`, which has come at this time from a link, and to this station alone.
    #[inline(always)]
    pub(crate) fn of(frame: &RxFrame<'a>, at: Instant) -> Self {
        let verified = frame.checksum != RxChecksum::Unverified;
        let (joined, memory) = (frame.segment, frame.memory);
        Self { at, verified, joined, memory, to_all_stations: false, local: false }
    }
}

/// Can a frame come from this station? Not from a group, and not from nobody.
pub(crate) fn is_possible_sender(station: MacAddress) -> bool {
    !station.is_multicast() && station != MacAddress::ZERO
}
