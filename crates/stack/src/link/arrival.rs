//! The metadata of a received frame.

use crate::link::{RxChecksum, RxFrame};
use alloc::sync::Arc;
use core::num::NonZeroU16;
use linerate_units::Instant;
use linerate_wire::MacAddress;

/// Minimum payload of a segment, in bytes, for which one pass both copies the payload into the
/// receive buffer and computes its checksum. For shorter payloads, the checksum is computed first,
/// and the payload is copied in a second pass.
pub(crate) const LONG: usize = 256;

/// The metadata of a received packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// Time of arrival.
    pub(crate) at: Instant,
    /// Whether the host need not verify the transport checksum: it was already verified, or the
    /// packet has never left this machine.
    pub(crate) is_verified: bool,
    /// The payload size of each segment of a GRO frame, in bytes; `None` for other frames.
    pub(crate) segment_size: Option<NonZeroU16>,
    /// The memory that contains the frame, if the link shares this memory with the host. The host
    /// can then keep the frame without a copy of the payload.
    pub(crate) memory: Option<&'a Arc<[u8]>>,
    /// Whether the destination of the frame is a broadcast or multicast MAC address.
    pub(crate) is_link_broadcast: bool,
    /// Whether this host itself has sent the packet.
    pub(crate) is_local: bool,
}

impl<'a> Arrival<'a> {
    /// Creates the metadata of a unicast frame that the link has received.
    #[inline(always)]
    pub(crate) fn of(frame: &RxFrame<'a>, at: Instant) -> Self {
        let is_verified = frame.checksum != RxChecksum::Unverified;
        let (segment_size, memory) = (frame.segment, frame.memory);
        Self { at, is_verified, segment_size, memory, is_link_broadcast: false, is_local: false }
    }
}

impl Arrival<'static> {
    /// Creates the metadata of a packet from a queue of the host. The checksum counts as verified,
    /// because the host verified it before it queued the packet.
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

/// Is `mac` a valid source address of a frame? Multicast addresses and the all-zero address are
/// invalid.
pub(crate) fn is_possible_sender(mac: MacAddress) -> bool {
    !mac.is_multicast() && mac != MacAddress::ZERO
}
