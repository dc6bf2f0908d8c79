//! The trait [`Link`], through which a host receives and sends frames. A host does not depend on a
//! particular implementation of the trait.

pub(crate) mod arrival;
pub(crate) mod gso;

use alloc::sync::Arc;
use core::num::NonZeroU16;
use linerate_units::{Instant, Rate};
use thiserror::Error;

/// A link that carries the frames of a host: a network interface of the kernel, a ring in memory,
/// or a simulated NIC.
///
/// The link iterates over frames and calls the host for each frame. The host can thus parse
/// received frames in the memory of the link, and write the frames to send into this memory. No
/// method blocks.
pub trait Link {
    /// Passes up to `budget` received frames to `on_frame`, in the order of arrival, and returns
    /// their number. A number below `budget` means that no further frame is available at the
    /// moment.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot receive. Frames passed to `on_frame` before the error count
    /// as received, and the caller can repeat the call.
    fn receive(
        &mut self,
        budget: usize,
        on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError>;

    /// Passes up to `budget` received frames to `sink`, like [`Link::receive`]. If consecutive
    /// frames are [plain](RxFrame::plain), a link can pass them together, so that the host can
    /// process them as a batch.
    ///
    /// # Errors
    /// The errors of [`Link::receive`].
    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        self.receive(budget, |frame| sink.take(frame))
    }

    /// Passes up to `budget` of the next frames to `look`, in the order of arrival, and leaves
    /// these frames in the receive queue. A host with very many connections thus learns which
    /// connections it will need soon, and prefetches their memory. The default implementation
    /// passes no frames.
    fn peek(&mut self, _budget: usize, _look: impl FnMut(&[u8])) {}

    /// Offers up to `budget` empty frames to `fill`, one after the other, and returns the number of
    /// frames sent. `fill` writes a frame and returns its metadata, or returns `None` if no frame
    /// is left to send. After a `None`, `transmit` returns without calling `fill` again. Each
    /// offered frame has room for [`Capabilities::room`] bytes, and its content is arbitrary.
    ///
    /// A link without free space must not call `fill`: a frame that `fill` has written counts as
    /// sent, and the host does not write this frame again.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot send. The frames that `fill` wrote before the error may be
    /// lost, as on any network.
    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError>;

    /// Sends up to `budget` frames of `source`, like [`Link::transmit`]. A link with scatter-gather
    /// and checksum offload can take large frames by [`FrameSource::fill_zero_copy`], which saves a
    /// copy. The default implementation calls [`Link::transmit`].
    ///
    /// # Errors
    /// The errors of [`Link::transmit`].
    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.transmit(budget, |frame| source.fill(frame))
    }

    /// Stops or continues the reception of new flows: flows on which this host has sent no reply
    /// yet. While `hold` is true, frames of new flows wait in the link's queues, where they are
    /// lost if a queue is full. A host thus limits its work during a flood of SYNs or other first
    /// packets. The default implementation, for a link that cannot tell new flows from others, does
    /// nothing.
    fn hold_new_flows(&mut self, _hold: bool) {}

    /// Passes a frame to another shard of the host. That shard receives the frame like a frame from
    /// its own receive queue of the link. The default implementation, for a link with one queue,
    /// drops the frame.
    fn hand_over(&mut self, _shard: u16, _frame: RxFrame<'_>) {}

    /// Returns the capabilities of the link. The capabilities must never change.
    fn capabilities(&self) -> Capabilities;
}

/// A receiver of frames, to which a link passes the frames that arrive.
pub trait FrameSink {
    /// Handles a received frame.
    fn take(&mut self, frame: RxFrame<'_>);

    /// Handles consecutive [plain](RxFrame::plain) frames.
    fn take_plain<'a>(&mut self, frames: impl Iterator<Item = PlainFrame<'a>>) {
        frames.for_each(|frame| self.take(RxFrame::plain(frame.bytes, frame.arrived)));
    }
}

/// A received frame whose only metadata is its time of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainFrame<'a> {
    /// The bytes of the frame; see [`RxFrame::bytes`].
    pub bytes: &'a [u8],
    /// The time at which the frame arrived at the link; see [`RxFrame::arrived`].
    pub arrived: Instant,
}

/// Makes a function a receiver of frames. The function is called once for each frame.
impl<F: FnMut(RxFrame<'_>)> FrameSink for F {
    #[inline(always)]
    fn take(&mut self, frame: RxFrame<'_>) {
        self(frame);
    }
}

/// A source of frames, from which a link takes the frames to send.
pub trait FrameSource {
    /// Returns the time of the host's current turn. For the host, this is the time at which its
    /// frames leave. A link can use it to timestamp frames, without reading a clock.
    fn now(&self) -> Instant;

    /// Returns whether there may be a frame to send. If there is none, the link need not provide a
    /// buffer for [`FrameSource::fill`]. This call costs less than a call of [`FrameSource::fill`]
    /// that returns `None`.
    fn has_frames(&self) -> bool {
        true
    }

    /// Writes the next frame to send into `frame`, and returns its metadata. Returns `None` if no
    /// frame is left to send.
    fn fill(&mut self, frame: &mut [u8]) -> Option<TxFrame>;

    /// Writes the next frame like [`FrameSource::fill`], but may leave the data of a large frame in
    /// the memory of the host. The returned slices of this memory are valid until the next call.
    fn fill_zero_copy(&mut self, frame: &mut [u8]) -> Option<ZeroCopyFrame<'_>>;

    /// Writes frames into `slots` until no frame is left to send, or no empty frame is left in
    /// `slots`. A host can override this method, to write frames that differ only in a few header
    /// fields in a faster loop.
    fn fill_all(&mut self, slots: &mut impl FrameSlots) {
        while self.has_frames() && slots.offer(|frame| self.fill(frame)) {}
    }
}

/// A sequence of empty frames, into which a host writes frames to send.
pub trait FrameSlots {
    /// Offers the next empty frame to `fill`, like [`Link::transmit`]. Returns true if there was an
    /// empty frame and `fill` wrote a frame into it.
    fn offer(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<TxFrame>) -> bool;
}

/// A frame to send from several memory areas: its beginning is in the offered frame, and the rest
/// of its data is in the memory of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCopyFrame<'a> {
    /// The metadata of the frame. Its `length` counts only the bytes in the offered frame.
    pub frame: TxFrame,
    /// The data behind the bytes in the offered frame: the first slice, and then the second. Either
    /// may be empty.
    pub rest: [&'a [u8]; 2],
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The frame from its first header on, without preamble and frame check sequence. Padding may
    /// follow the packet if the medium has a minimum frame size.
    pub bytes: &'a [u8],
    /// The time at which the frame arrived at the link. It can be earlier than the time at which
    /// the link passes the frame to the host.
    pub arrived: Instant,
    /// The result of the link's checksum verification.
    pub checksum: RxChecksum,
    /// The payload size of each TCP segment in bytes, if this is a GRO frame: several TCP segments
    /// that the link has coalesced into one packet of up to 65,535 bytes. The last segment may have
    /// less payload. `None` for a frame that the link has not coalesced.
    pub segment: Option<NonZeroU16>,
    /// The memory that contains `bytes`, if the link can share this memory with the host. To keep
    /// the data without a copy, the host clones the `Arc`. The link does not reuse the memory until
    /// all clones were dropped.
    pub memory: Option<&'a Arc<[u8]>>,
}

impl<'a> RxFrame<'a> {
    /// Creates a plain frame: one packet with unverified checksums, in memory that is not shared.
    #[must_use]
    pub const fn plain(bytes: &'a [u8], arrived: Instant) -> Self {
        Self { bytes, arrived, checksum: RxChecksum::Unverified, segment: None, memory: None }
    }

    /// Returns the frame as a plain frame, if its only metadata is the time of arrival.
    #[inline(always)]
    pub(crate) fn as_plain(&self) -> Option<PlainFrame<'a>> {
        let is_plain = self.checksum == RxChecksum::Unverified
            && self.segment.is_none()
            && self.memory.is_none();
        is_plain.then_some(PlainFrame { bytes: self.bytes, arrived: self.arrived })
    }
}

/// The result of a link's checksum verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxChecksum {
    /// The link has not verified the transport checksum, so the host must verify it.
    Unverified,
    /// The transport checksum is correct, or need not be checked because the frame never left this
    /// machine.
    Verified,
    /// The checksum field is incomplete, because the sender is on this machine and left the
    /// checksum to hardware that the frame never reached. The data are intact.
    Partial(PartialChecksum),
}

/// The position of an incomplete transport checksum. The checksum field contains only the sum of
/// the pseudo-header, without the final complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// The offset of the transport header in the frame, in bytes. The checksum covers all bytes
    /// from this offset to the end of the packet.
    pub start: u16,
    /// The offset of the checksum field in the transport header, in bytes.
    pub offset: u16,
}

/// The metadata of a frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxFrame {
    /// The number of bytes written, from the start of the offered frame.
    pub length: usize,
    /// The state of the transport checksum. It is partial only on a link with
    /// [`Offloads::checksums`].
    pub checksum: TxChecksum,
    /// The payload size of each TCP segment in bytes, if this is a GSO frame: a frame larger than
    /// [`Capabilities::mtu`], which the link splits into TCP segments. The last segment may have
    /// less payload. A GSO frame has a partial checksum, and its packet has at most
    /// [`Offloads::gso_max_size`] bytes. `None` for a frame that the link sends as it is.
    pub segment: Option<NonZeroU16>,
}

impl TxFrame {
    /// Creates the metadata of a complete frame, which the link sends unchanged.
    #[must_use]
    pub const fn whole(length: usize) -> Self {
        Self { length, checksum: TxChecksum::Complete, segment: None }
    }
}

/// The state of the transport checksum in a frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxChecksum {
    /// The checksum is complete and correct.
    Complete,
    /// The checksum is incomplete, and the link has to complete it.
    Partial(PartialChecksum),
}

/// The smallest MTU of a link over which a host sends, in bytes. It has room for an IPv4 header
/// without options (20 bytes), the longest TCP header (60 bytes), and 8 bytes of data. Segments
/// thus always have room for at least 8 bytes of data, whatever the MTU and MSS are. RFC 791 allows
/// an MTU of 68 bytes, which would leave no room for data.
pub const SMALLEST_MTU: usize = 88;

/// The capabilities of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The kind of the link's frames.
    pub medium: Medium,
    /// The size of the largest IP packet that the link carries, in bytes; at least
    /// [`SMALLEST_MTU`].
    pub mtu: usize,
    /// The bit rate of the link; `None` if it is unknown, or if the link has no fixed rate.
    pub rate: Option<Rate>,
    /// The work on frames to send that the link does instead of the host.
    pub offloads: Offloads,
    /// The number of bytes by which VLAN tags can lengthen a frame. Each offered frame has room for
    /// [`Capabilities::room`] bytes and for these bytes.
    pub tag_room: usize,
}

impl Capabilities {
    /// Creates the capabilities of a link without a known bit rate, without offloads, and without
    /// room for VLAN tags.
    #[must_use]
    pub const fn new(medium: Medium, mtu: usize) -> Self {
        Self { medium, mtu, rate: None, offloads: Offloads::NONE, tag_room: 0 }
    }

    /// Returns the size of the largest frame that is not a GSO frame, in bytes: a packet as large
    /// as the MTU, and the link header.
    #[must_use]
    pub const fn frame_length(&self) -> usize {
        self.mtu.saturating_add(self.medium.header_length())
    }

    /// Returns the number of bytes of each offered frame that the host may fill, without the room
    /// for VLAN tags. If the link splits GSO frames, this is the size of the largest GSO frame.
    /// Otherwise, it is the size of the largest packet with its link header.
    #[must_use]
    pub const fn room(&self) -> usize {
        let gso_frame = self.offloads.gso_max_size.saturating_add(self.medium.header_length());
        if self.offloads.gso_max_size > self.mtu { gso_frame } else { self.frame_length() }
    }
}

/// The work on frames to send that a link does instead of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// Whether the link completes the checksums of TCP segments over IPv4 and IPv6.
    pub checksums: bool,
    /// The size of the largest IPv4 or IPv6 packet that the link splits into TCP segments, in
    /// bytes; at most 65,535, and zero if the link splits no packets. A link that splits packets
    /// must also complete checksums.
    pub gso_max_size: usize,
}

impl Offloads {
    /// No offloads.
    pub const NONE: Self = Self { checksums: false, gso_max_size: 0 };
}

/// The kind of a link's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Frames with an Ethernet header. The host finds the MAC addresses of neighbours by ARP and
    /// Neighbour Discovery.
    Ethernet,
    /// IP packets without a link header, on a link with a single peer.
    Ip,
}

impl Medium {
    /// Returns the length of the link header in bytes.
    #[must_use]
    pub const fn header_length(self) -> usize {
        match self {
            Self::Ethernet => 14,
            Self::Ip => 0,
        }
    }
}

/// The reason why a link cannot receive or send frames. The cause is the machine or its
/// configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The peer of the link is closed, or the interface is down.
    #[error("the link is down: bring the interface up")]
    Down,
    /// A system call failed.
    #[error("the operating system could not {what} (error {errno})")]
    Io {
        /// The error number of the system.
        errno: i32,
        /// The attempted operation, as an infinitive: "read a frame".
        what: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_frame_is_the_largest_packet_and_a_link_header() {
        let capabilities = Capabilities::new(Medium::Ethernet, 1_500);
        assert_eq!(capabilities.frame_length(), 1_514);
        assert_eq!(Capabilities { medium: Medium::Ip, ..capabilities }.frame_length(), 1_500);
    }

    #[test]
    fn an_offered_frame_has_room_for_a_gso_frame() {
        let plain = Capabilities::new(Medium::Ethernet, 1_500);
        assert_eq!(plain.room(), plain.frame_length());
        let offloads = Offloads { checksums: true, gso_max_size: 65_535 };
        assert_eq!(Capabilities { offloads, ..plain }.room(), 65_549);
    }
}
