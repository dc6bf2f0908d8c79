//! The interface between a host and its link. A host does not depend on any implementation of a
//! link.

pub(crate) mod arrival;
pub(crate) mod gso;

use alloc::sync::Arc;
use core::num::NonZeroU16;
use linerate_units::{Instant, Rate};
use thiserror::Error;

/// A carrier of frames: an interface of the kernel, a ring in memory, a simulated NIC.
///
/// The link iterates over frames and calls the host for each, so that the host can parse received
/// frames in the memory of the link, and write sent frames into it. No method waits.
pub trait Link {
    /// Passes up to `budget` received frames to `on_frame`, in the order of arrival, and returns
    /// their number. Fewer than `budget` means that no further frame is available at the moment.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot receive. Frames passed before the error are received, and
    /// the call can be repeated.
    fn receive(
        &mut self,
        budget: usize,
        on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError>;

    /// Passes up to `budget` received frames to a host, like [`Link::receive`]. A link that has
    /// several plain frames in memory at once can pass them together, so that the host can process
    /// them as a batch.
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

    /// Passes up to `budget` of the next frames to `look`, in their order, without receiving them.
    /// The frames are only a hint, which lets a host with very many connections prefetch their
    /// memory. The default passes none.
    fn peek(&mut self, _budget: usize, _look: impl FnMut(&[u8])) {}

    /// Offers up to `budget` empty frames to `fill`, one after the other, and returns the number of
    /// frames sent. `fill` writes a frame and returns its length, or returns `None` when no frame
    /// is left to send, after which this call does not call it again. Each offered frame has room
    /// for [`Capabilities::room`] bytes of arbitrary content.
    ///
    /// A link without free space offers nothing: a frame that `fill` has written counts as sent,
    /// and the host does not write it again.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot send. The frames filled before the error may be lost, as on
    /// any network.
    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError>;

    /// Sends the frames of a host, like [`Link::transmit`]. A link with scatter-gather and checksum
    /// offload takes large frames by [`FrameSource::fill_zero_copy`], which saves a copy. The
    /// default calls [`Link::transmit`].
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

    /// Passes a frame to another shard of the host, which receives it like the frames of its own
    /// queue of the link. A link that has one queue, which is the default, drops the frame.
    fn hand_over(&mut self, _shard: u16, _frame: RxFrame<'_>) {}

    /// Returns the capabilities of the link, which never change.
    fn capabilities(&self) -> Capabilities;
}

/// The receiver of a link's frames.
pub trait FrameSink {
    /// Takes a frame.
    fn take(&mut self, frame: RxFrame<'_>);

    /// Takes consecutive [plain](RxFrame::plain) frames.
    fn take_plain<'a>(&mut self, frames: impl Iterator<Item = PlainFrame<'a>>) {
        frames.for_each(|frame| self.take(RxFrame::plain(frame.bytes, frame.arrived)));
    }
}

/// A received frame without metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainFrame<'a> {
    /// See [`RxFrame::bytes`].
    pub bytes: &'a [u8],
    /// See [`RxFrame::arrived`].
    pub arrived: Instant,
}

/// A receiver that handles each frame separately.
impl<F: FnMut(RxFrame<'_>)> FrameSink for F {
    #[inline(always)]
    fn take(&mut self, frame: RxFrame<'_>) {
        self(frame);
    }
}

/// The source of the frames that a link sends.
pub trait FrameSource {
    /// Returns the time of the host's current turn, at which it assumes that its frames leave. A
    /// link can use it as the time stamp of frames, instead of reading a clock.
    fn now(&self) -> Instant;

    /// Can there be a frame to send? An inexpensive check: if it returns false, the link need not
    /// offer a frame.
    fn has_frames(&self) -> bool {
        true
    }

    /// Writes the next frame into the offered one; `None` if nothing is left to send.
    fn fill(&mut self, frame: &mut [u8]) -> Option<TxFrame>;

    /// Writes the next frame like [`FrameSource::fill`], but may leave the data of a large frame in
    /// the memory of the host, until the next call.
    fn fill_zero_copy(&mut self, frame: &mut [u8]) -> Option<ZeroCopyFrame<'_>>;

    /// Writes frames into `slots` until either side is exhausted. A host can write similar frames
    /// in one loop.
    fn fill_all(&mut self, slots: &mut impl FrameSlots) {
        while self.has_frames() && slots.offer(|frame| self.fill(frame)) {}
    }
}

/// The empty frames of a link.
pub trait FrameSlots {
    /// Offers the next empty frame to `fill`, like [`Link::transmit`]. Returns whether there was
    /// one, and `fill` wrote it.
    fn offer(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<TxFrame>) -> bool;
}

/// A frame whose data follow the offered frame in other memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCopyFrame<'a> {
    /// The beginning of the frame, in the offered frame.
    pub frame: TxFrame,
    /// The parts that follow, in this order.
    pub rest: [&'a [u8]; 2],
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The frame from its first header on, without preamble and frame check sequence. Padding of
    /// the medium may follow the packet.
    pub bytes: &'a [u8],
    /// The time of arrival at the link, before any wait for the host.
    pub arrived: Instant,
    /// The result of the link's checksum verification.
    pub checksum: RxChecksum,
    /// For a GRO frame, in which the link has coalesced several TCP segments into one packet of up
    /// to 65,535 bytes: the payload of each segment in bytes. The last may have fewer.
    pub segment: Option<NonZeroU16>,
    /// The memory that contains `bytes`, if the link can share it. A clone of the reference keeps
    /// the frame; the link reuses the memory when no clone is left.
    pub memory: Option<&'a Arc<[u8]>>,
}

impl<'a> RxFrame<'a> {
    /// Creates a frame of one packet with unverified checksums.
    #[must_use]
    pub const fn plain(bytes: &'a [u8], arrived: Instant) -> Self {
        Self { bytes, arrived, checksum: RxChecksum::Unverified, segment: None, memory: None }
    }

    /// Returns the frame as a plain one, if it has no metadata.
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
    /// The host has to verify the checksums.
    Unverified,
    /// The transport checksum was correct, or the frame never left this machine.
    Verified,
    /// The frame comes from a sender on this machine with checksum offload, and never reached the
    /// hardware. The data are intact, but the checksum field is incomplete.
    Partial(PartialChecksum),
}

/// The position of an incomplete transport checksum. Its field contains the sum of the
/// pseudo-header, not inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// The offset of the transport header in the frame. The sum covers all bytes from there to the
    /// end of the packet.
    pub start: u16,
    /// The offset of the checksum field in the transport header.
    pub offset: u16,
}

/// The metadata of a frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxFrame {
    /// The number of bytes written, from the start of the offered frame.
    pub length: usize,
    /// Must the link complete the transport checksum? Only a link with [`Offloads::checksums`] can.
    pub checksum: TxChecksum,
    /// For a GSO frame, which is larger than [`Capabilities::mtu`] and which the link splits into
    /// TCP segments: the payload of each segment in bytes. The last may have fewer. Requires a
    /// partial checksum, and a length within [`Offloads::gso_max_size`].
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
    /// The checksum is correct.
    Complete,
    /// The link has to complete the checksum.
    Partial(PartialChecksum),
}

/// The smallest MTU of a link: the headers of IP and TCP with the maximum of options (20 and 60
/// bytes), and 8 bytes of data, the smallest segment that a small MTU or MSS can cause. RFC 791
/// allows 68, which would leave no data. A host sends nothing over a link with a smaller MTU.
pub const SMALLEST_MTU: usize = 88;

/// The capabilities of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The kind of its frames.
    pub medium: Medium,
    /// The size of the largest IP packet in bytes: at least [`SMALLEST_MTU`].
    pub mtu: usize,
    /// The bit rate, if the link has one and it is known.
    pub rate: Option<Rate>,
    /// The work that the link does for frames to send.
    pub offloads: Offloads,
    /// Bytes by which every frame may be longer, if it has VLAN tags. The offered frames have room
    /// for them.
    pub tag_room: usize,
}

impl Capabilities {
    /// Creates the capabilities of a link without a bit rate, offloads and room for tags.
    #[must_use]
    pub const fn new(medium: Medium, mtu: usize) -> Self {
        Self { medium, mtu, rate: None, offloads: Offloads::NONE, tag_room: 0 }
    }

    /// Returns the size of the largest frame with one packet: the packet and the link header.
    #[must_use]
    pub const fn frame_length(&self) -> usize {
        self.mtu.saturating_add(self.medium.header_length())
    }

    /// Returns the room in bytes of each offered frame, without tags: the size of a GSO frame, if
    /// the link splits them.
    #[must_use]
    pub const fn room(&self) -> usize {
        let gso_frame = self.offloads.gso_max_size.saturating_add(self.medium.header_length());
        if self.offloads.gso_max_size > self.mtu { gso_frame } else { self.frame_length() }
    }
}

/// The work that a link does for frames to send, instead of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// Does the link complete the checksums of TCP and UDP over IPv4?
    pub checksums: bool,
    /// The size of the largest IPv4 packet that the link splits into TCP segments, at most 65,535
    /// bytes; zero if it splits none. A link that splits packets also completes checksums.
    pub gso_max_size: usize,
}

impl Offloads {
    /// No offloads.
    pub const NONE: Self = Self { checksums: false, gso_max_size: 0 };
}

/// The kind of a link's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Frames with an Ethernet header. Neighbours are resolved by ARP.
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

/// The reason why a link cannot carry frames. The cause is the machine or its configuration.
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
