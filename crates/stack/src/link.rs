//! What a host asks of the thing that carries its frames. It never knows which one it has.

use alloc::sync::Arc;
use core::num::NonZeroU16;
use linerate_units::{Instant, Rate};
use thiserror::Error;

/// Something that carries frames: a kernel's interface, a ring in memory, a simulated NIC.
///
/// Iteration is the link's own, so that a ring can lend its memory: a frame is parsed where the NIC
/// put it, and written where the NIC will read it. Neither method waits.
pub trait Link {
    /// Hands up to `budget` arrived frames to `on_frame`, in the order of arrival, and returns how
    /// many. Fewer than `budget` means that no further frame is there at the moment.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot receive at all; frames already handed over stay so, and the
    /// call can be repeated.
    fn receive(
        &mut self,
        budget: usize,
        on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError>;

    /// As [`Link::receive`], with the host that the frames are for. A link that can lend several plain ones at a time
    /// shows them all at once, so that a host need not ask for each what it has asked for the one before.
    ///
    /// # Errors
    /// As [`Link::receive`].
    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        self.receive(budget, |frame| sink.take(frame))
    }

    /// Shows up to `budget` of the frames that [`Link::receive`] is about to hand over, in their order and where
    /// they lie, as far as the link can without taking them; which is not at all unless it says otherwise. It
    /// promises nothing: who has very many connections sees in good time whose memory will be asked for.
    fn foresee(&mut self, _budget: usize, _look: impl FnMut(&[u8])) {}

    /// Offers up to `budget` empty frames to `fill`, one after the other, and returns how many were
    /// sent. `fill` writes one and says how long it is, or answers `None` when there is no more to
    /// send, after which it is not asked again in this call. Each offered frame has room for
    /// [`Capabilities::room`] bytes; they are arbitrary.
    ///
    /// A link with no room left offers nothing: a frame that `fill` has written is on its way, as far
    /// as the host can know, and is never asked for again.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot send at all; the frames filled before that may be lost, as
    /// any frame may be.
    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError>;

    /// As [`Link::transmit`], with the frames of a host. A link that can gather a frame from several places,
    /// and leaves its checksum to others, takes large ones by [`FrameSource::lend`], and saves a copy; for all
    /// others this is what [`Link::transmit`] does.
    ///
    /// # Errors
    /// As [`Link::transmit`].
    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.transmit(budget, |frame| source.fill(frame))
    }

    /// What the link can do. The answer stays the same as long as the link lives.
    fn capabilities(&self) -> Capabilities;
}

/// A host, as the link sees it that brings it frames.
pub trait FrameSink {
    /// Takes in a frame.
    fn take(&mut self, frame: RxFrame<'_>);

    /// Takes in all of `frames`, which have come one after the other, and are [plain](RxFrame::plain) ones.
    fn take_plain<'a>(&mut self, frames: impl Iterator<Item = PlainFrame<'a>>) {
        frames.for_each(|frame| self.take(RxFrame::plain(frame.bytes, frame.arrived)));
    }
}

/// A frame as it arrived, of which nothing else is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainFrame<'a> {
    /// As [`RxFrame::bytes`].
    pub bytes: &'a [u8],
    /// As [`RxFrame::arrived`].
    pub arrived: Instant,
}

/// Who looks at each by itself.
impl<F: FnMut(RxFrame<'_>)> FrameSink for F {
    #[inline(always)]
    fn take(&mut self, frame: RxFrame<'_>) {
        self(frame);
    }
}

/// A host, as the link sees it that asks it for frames.
pub trait FrameSource {
    /// The time at which it has its turn: for all that it knows, what it writes now leaves then. A link that
    /// stamps frames need ask no clock of its own.
    fn now(&self) -> Instant;

    /// May there be a frame to be sent, as far as is known without looking for it? If not, none need be offered.
    fn has_frames(&self) -> bool {
        true
    }

    /// Writes the next frame into the offered one; `None` if there is no more to send.
    fn fill(&mut self, frame: &mut [u8]) -> Option<TxFrame>;

    /// The same, but the data of a large frame may stay where they are, until the next call.
    fn lend(&mut self, frame: &mut [u8]) -> Option<LentFrame<'_>>;

    /// Writes frames into `slots` as long as there are both. A host does it in one loop where they are like each other.
    fn fill_all(&mut self, slots: &mut impl FrameSlots) {
        while self.has_frames() && slots.offer(|frame| self.fill(frame)) {}
    }
}

/// Empty frames of a link.
pub trait FrameSlots {
    /// Offers the next one to `fill`, if there is one, as [`Link::transmit`] does: has it been filled?
    fn offer(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<TxFrame>) -> bool;
}

/// A frame of which only the beginning is in the offered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LentFrame<'a> {
    /// What was written into the offered frame.
    pub frame: TxFrame,
    /// What follows it, one after the other.
    pub rest: [&'a [u8]; 2],
}

/// A frame as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The frame from its first header on, without preamble and frame check sequence. Padding of
    /// the medium may follow the packet.
    pub bytes: &'a [u8],
    /// When it arrived, stamped where it came in and not where it is processed.
    pub arrived: Instant,
    /// What the link already knows about the checksums inside.
    pub checksum: RxChecksum,
    /// For a super-frame, in which several TCP segments have become one packet of up to 65,535 bytes:
    /// bytes of payload that each of them had but the last, which may have had fewer.
    pub segment: Option<NonZeroU16>,
    /// The memory that `bytes` are a part of, if the link can do without it: whoever shares it keeps the frame.
    /// The link writes into it again when nobody shares it any more.
    pub memory: Option<&'a Arc<[u8]>>,
}

impl<'a> RxFrame<'a> {
    /// A frame of one packet, of whose checksums nothing is known.
    #[must_use]
    pub const fn plain(bytes: &'a [u8], arrived: Instant) -> Self {
        Self { bytes, arrived, checksum: RxChecksum::Unverified, segment: None, memory: None }
    }

    /// It as one of which nothing else is known, unless the link says more of it.
    #[inline(always)]
    pub(crate) fn as_plain(&self) -> Option<PlainFrame<'a>> {
        let is_plain = self.checksum == RxChecksum::Unverified
            && self.segment.is_none()
            && self.memory.is_none();
        is_plain.then_some(PlainFrame { bytes: self.bytes, arrived: self.arrived })
    }
}

/// What a link knows about the checksums in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxChecksum {
    /// Nothing: the host sums.
    Unverified,
    /// The transport checksum was right when the link looked, or the frame never left this machine.
    Verified,
    /// The frame comes from this machine, whose sender has left the transport checksum to hardware that
    /// never saw it. The data is as good as memory is, and the field does not hold its checksum.
    Partial(PartialChecksum),
}

/// Where a transport checksum is still to be completed. Until then its field holds the sum of the
/// pseudo-header, not inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Bytes of the frame in front of the transport's header: the sum begins behind them, and ends
    /// with the packet.
    pub start: u16,
    /// Bytes of the transport's header in front of the field.
    pub offset: u16,
}

/// What was written into an offered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxFrame {
    /// Bytes written, from the start of the offered frame.
    pub length: usize,
    /// Whether the link has to complete the transport checksum: only where
    /// [`Offloads::checksums`] says that it does.
    pub checksum: TxChecksum,
    /// For a super-frame, which holds more than [`Capabilities::mtu`] and which the link cuts into TCP
    /// segments: bytes of payload of each of them but the last, which may have fewer. Only with a
    /// partial checksum, and within [`Offloads::super_packet`].
    pub segment: Option<NonZeroU16>,
}

impl TxFrame {
    /// A frame that is finished: the link sends it as it is.
    #[must_use]
    pub const fn whole(length: usize) -> Self {
        Self { length, checksum: TxChecksum::Complete, segment: None }
    }
}

/// What is still to be done about the transport checksum in a frame that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxChecksum {
    /// Nothing.
    Complete,
    /// The link completes it.
    Partial(PartialChecksum),
}

/// The MTU that a link has at least: headers of IP and of TCP with all options that it can have (20 and 60 bytes), and
/// eight bytes of data, as no segment is made smaller for a narrow link or a small MSS. RFC 791 lets a link have 68, of
/// which nothing would be left; a host sends nothing over one that is narrower than this.
pub const SMALLEST_MTU: usize = 88;

/// What a link can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What its frames begin with.
    pub medium: Medium,
    /// Bytes of the largest IP packet that it carries: at least [`SMALLEST_MTU`].
    pub mtu: usize,
    /// The bit rate of the line, where there is a line and its driver tells.
    pub rate: Option<Rate>,
    /// What it does for the host with the frames that are sent.
    pub offloads: Offloads,
}

impl Capabilities {
    /// A link that carries frames as they are, at no particular rate.
    #[must_use]
    pub const fn new(medium: Medium, mtu: usize) -> Self {
        Self { medium, mtu, rate: None, offloads: Offloads::NONE }
    }

    /// Bytes of the largest frame of one packet: the packet and the medium's header.
    #[must_use]
    pub const fn frame_length(&self) -> usize {
        self.mtu.saturating_add(self.medium.header_length())
    }

    /// Bytes that each offered frame has room for: a super-frame's where the link cuts them.
    #[must_use]
    pub const fn room(&self) -> usize {
        let super_frame = self.offloads.super_packet.saturating_add(self.medium.header_length());
        if self.offloads.super_packet > self.mtu { super_frame } else { self.frame_length() }
    }
}

/// What a link does with the frames that a host sends, so that the host need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// It completes the checksum of TCP and UDP over IPv4.
    pub checksums: bool,
    /// Bytes of the largest IPv4 packet that it cuts into TCP segments, at most 65,535; zero if it cuts
    /// none. A link that cuts completes checksums, too.
    pub super_packet: usize,
}

impl Offloads {
    /// Nothing.
    pub const NONE: Self = Self { checksums: false, super_packet: 0 };
}

/// What the frames of a link begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// An Ethernet header; neighbours are found by ARP.
    Ethernet,
    /// The IP header itself: there are no neighbours to be told apart.
    Ip,
}

impl Medium {
    /// Bytes in front of the IP packet in a frame that a host sends.
    #[must_use]
    pub const fn header_length(self) -> usize {
        match self {
            Self::Ethernet => 14,
            Self::Ip => 0,
        }
    }
}

/// Why a link cannot carry frames. The machine is at fault, or the person who runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The other end is gone, or the interface was taken down: bring it up, or give up on the link.
    #[error("the link is down: bring the interface up, or end")]
    Down,
    /// The operating system refused.
    #[error("the operating system could not {what} (error {errno})")]
    Io {
        /// The error number of the system.
        errno: i32,
        /// What was being tried, as an infinitive: "read a frame".
        what: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_frame_is_the_largest_packet_behind_the_header_of_the_medium() {
        let capabilities = Capabilities::new(Medium::Ethernet, 1_500);
        assert_eq!(capabilities.frame_length(), 1_514);
        assert_eq!(Capabilities { medium: Medium::Ip, ..capabilities }.frame_length(), 1_500);
    }

    #[test]
    fn an_offered_frame_has_room_for_a_super_frame_where_the_link_cuts_them() {
        let plain = Capabilities::new(Medium::Ethernet, 1_500);
        assert_eq!(plain.room(), plain.frame_length());
        let offloads = Offloads { checksums: true, super_packet: 65_535 };
        assert_eq!(Capabilities { offloads, ..plain }.room(), 65_549);
    }
}
