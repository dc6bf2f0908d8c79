//! The metadata of a received frame.

use crate::link::{RxChecksum, RxFrame};
use alloc::sync::Arc;
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::MacAddress;

/// Minimum data of a segment, in bytes, for a combined copy and checksum. Shorter data is summed in
/// a separate pass before the copy.
pub(crate) const LONG: usize = 256;

/// The metadata of a received packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// Time of arrival.
    pub(crate) at: Instant,
    /// Has the link verified the transport checksum?
    pub(crate) is_verified: bool,
    /// For a GRO frame: bytes of payload in each of its segments.
    pub(crate) segment_size: Option<NonZeroU16>,
    /// The memory of the frame, if the host may keep it.
    pub(crate) memory: Option<&'a Arc<[u8]>>,
    /// Was the frame sent to a broadcast or multicast MAC address?
    pub(crate) is_link_broadcast: bool,
    /// Was the packet sent by this host itself?
    pub(crate) is_local: bool,
}

impl<'a> Arrival<'a> {
    /// Creates the metadata of a unicast frame from the link.
    #[inline(always)]
    pub(crate) fn of(frame: &RxFrame<'a>, at: Instant) -> Self {
        let is_verified = frame.checksum != RxChecksum::Unverified;
        let (segment_size, memory) = (frame.segment, frame.memory);
        Self { at, is_verified, segment_size, memory, is_link_broadcast: false, is_local: false }
    }
}

impl Arrival<'static> {
    /// Creates the metadata of a stored packet, which was verified when it arrived.
    pub(crate) const fn of_stored(at: Instant) -> Self {
        Self {
            at,
            is_verified: true,
            segment_size: None,
            memory: None,
            is_link_broadcast: false,
            is_local: false,
        }
    }
}

/// Is this a valid source of a frame? A multicast address and zero are not.
pub(crate) fn is_possible_sender(mac: MacAddress) -> bool {
    !mac.is_multicast() && mac != MacAddress::ZERO
}
