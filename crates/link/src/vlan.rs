//! A wrapper that puts a host into one VLAN (IEEE 802.1Q) of a link with tagged frames.

use crate::wait::{Readiness, forward_readiness};
use linerate_stack::{
    Capabilities, FrameSource, Link, LinkError, Offloads, PartialChecksum, RxChecksum, RxFrame,
    TxChecksum, TxFrame, ZeroCopyFrame,
};
use linerate_units::Instant;
use linerate_wire::{EtherType, VlanTag};

/// Length of the two MAC addresses in bytes. The tag is inserted behind them.
const ADDRESSES: usize = 12;
const TAG: usize = VlanTag::LENGTH;

/// A link to one VLAN of another link, the inner link, whose medium is Ethernet. Each sent frame
/// gets the tag of this VLAN with its priority. From received frames, the tag is removed. Received
/// frames that are untagged or belong to another VLAN are dropped and counted.
///
/// If the inner link has room for a tag in addition to its MTU ([`Capabilities`]), this link has
/// the same MTU. Otherwise its MTU is four bytes less. The offloads of the inner link remain
/// available. Each received frame is copied to remove its tag.
///
/// ```
/// use linerate_link::memory::{MemoryConfig, pair};
/// use linerate_link::Vlan;
/// use linerate_stack::{Link, TxFrame};
///
/// let (near, mut far) = pair(MemoryConfig::default())?;
/// let mut near = Vlan::new(near, "100:5".parse()?);
/// near.transmit(1, |frame| {
///     frame[..60].fill(7);
///     Some(TxFrame::whole(60))
/// })?;
/// far.receive(1, |frame| assert_eq!(frame.bytes[10..18], [7, 7, 0x81, 0, 0xa0, 100, 7, 7]))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Vlan<L> {
    link: L,
    tag: VlanTag,
    capabilities: Capabilities,
    /// Whether the inner link already drops the frames of other VLANs and removes the tags.
    removes_tags: bool,
    /// Buffer for a received frame without its tag.
    untagged: Vec<u8>,
    others: u64,
}

impl<L: Link> Vlan<L> {
    /// Creates the link of a host that is in the VLAN of `tag`. `link` carries the tagged frames.
    pub fn new(link: L, tag: VlanTag) -> Self {
        let whole = link.capabilities();
        let missing = TAG.saturating_sub(whole.tag_room);
        let shorter = |length: usize| length.saturating_sub(missing);
        let offloads =
            Offloads { gso_max_size: shorter(whole.offloads.gso_max_size), ..whole.offloads };
        let tag_room = whole.tag_room.saturating_sub(TAG);
        let capabilities = Capabilities { mtu: shorter(whole.mtu), offloads, tag_room, ..whole };
        Self { link, tag, capabilities, removes_tags: false, untagged: Vec::new(), others: 0 }
    }

    /// Creates the link of a host that is in the VLAN of `tag`. `link` receives only frames of this
    /// VLAN, and has already removed their tags. Sent frames still get the tag here.
    pub(crate) fn over_filter(link: L, tag: VlanTag) -> Self {
        Self { removes_tags: true, ..Self::new(link, tag) }
    }

    /// Returns the inner link, which carries the tagged frames.
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// Returns the number of received frames that were dropped because they were untagged or of
    /// another VLAN. Frames that a filter of the kernel has dropped are not counted.
    pub const fn other_frames(&self) -> u64 {
        self.others
    }
}

/// Returns a copy of the frame without its tag, if the frame belongs to VLAN `id`. Otherwise
/// returns `None`.
fn untagged<'a>(frame: &RxFrame<'_>, id: u16, room: &'a mut Vec<u8>) -> Option<RxFrame<'a>> {
    let (addresses, rest) = frame.bytes.split_at_checked(ADDRESSES)?;
    let (&[kind_0, kind_1, high, low], rest) = rest.split_first_chunk()?;
    let kind = EtherType::new(u16::from_be_bytes([kind_0, kind_1]));
    if kind != EtherType::VLAN || u16::from_be_bytes([high, low]) & VlanTag::MAX_ID != id {
        return None;
    }
    let checksum = match frame.checksum {
        RxChecksum::Partial(PartialChecksum { start, offset }) => {
            let start = start.checked_sub(u16::try_from(TAG).ok()?)?;
            RxChecksum::Partial(PartialChecksum { start, offset })
        }
        checksum => checksum,
    };
    room.clear();
    room.extend_from_slice(addresses);
    room.extend_from_slice(rest);
    let plain = RxFrame::plain(room, frame.arrived);
    Some(RxFrame { checksum, segment: frame.segment, ..plain })
}

/// Inserts the tag into a frame. The host has written the frame from byte four of `bytes` on, so
/// that the MAC addresses can move to the start of `bytes`. The tag is written behind them.
fn tagged(bytes: &mut [u8], frame: TxFrame, tag: VlanTag) -> TxFrame {
    bytes.copy_within(TAG..TAG + ADDRESSES, 0);
    bytes[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag.bytes());
    let checksum = match frame.checksum {
        TxChecksum::Partial(PartialChecksum { start, offset }) => {
            // The sum cannot overflow, because the checksummed bytes begin behind a few short
            // headers.
            #[allow(clippy::cast_possible_truncation, reason = "four")]
            let start = start + TAG as u16;
            TxChecksum::Partial(PartialChecksum { start, offset })
        }
        TxChecksum::Complete => TxChecksum::Complete,
    };
    TxFrame { length: frame.length + TAG, checksum, ..frame }
}

/// A source of the host's frames that inserts the tag into each frame.
struct TaggedFrames<'a, S> {
    source: &'a mut S,
    tag: VlanTag,
}

impl<S: FrameSource> FrameSource for TaggedFrames<'_, S> {
    fn now(&self) -> Instant {
        self.source.now()
    }

    fn has_frames(&self) -> bool {
        self.source.has_frames()
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Option<TxFrame> {
        let frame = self.source.fill(&mut bytes[TAG..])?;
        Some(tagged(bytes, frame, self.tag))
    }

    fn fill_zero_copy(&mut self, bytes: &mut [u8]) -> Option<ZeroCopyFrame<'_>> {
        let ZeroCopyFrame { frame, rest } = self.source.fill_zero_copy(&mut bytes[TAG..])?;
        Some(ZeroCopyFrame { frame: tagged(bytes, frame, self.tag), rest })
    }
}

impl<L: Link> Link for Vlan<L> {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let Self { link, tag, untagged: room, others, .. } = self;
        if self.removes_tags {
            return link.receive(budget, on_frame);
        }
        link.receive(budget, |frame| match untagged(&frame, tag.id(), room) {
            Some(frame) => on_frame(frame),
            None => *others += 1,
        })
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let tag = self.tag;
        self.link.transmit(budget, |bytes| {
            let frame = fill(&mut bytes[TAG..])?;
            Some(tagged(bytes, frame, tag))
        })
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.link.transmit_from(budget, &mut TaggedFrames { source, tag: self.tag })
    }

    fn hold_new_flows(&mut self, hold: bool) {
        self.link.hold_new_flows(hold);
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

impl<L: Readiness> Readiness for Vlan<L> {
    forward_readiness!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryConfig, MemoryLink, pair};
    use crate::testing::{check_readiness_is_passed_on, send};
    use std::num::NonZeroU16;

    fn tag(text: &str) -> VlanTag {
        text.parse().unwrap()
    }

    fn links(text: &str) -> (Vlan<MemoryLink>, MemoryLink) {
        let (near, far) = pair(MemoryConfig::default()).unwrap();
        (Vlan::new(near, tag(text)), far)
    }

    fn received(link: &mut impl Link) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        link.receive(100, |frame| frames.push(frame.bytes.to_vec())).unwrap();
        frames
    }

    #[test]
    fn frames_of_other_vlans_are_dropped_and_counted() {
        let (mut near, mut far) = links("100");
        let frame = |after_addresses: &[u8]| [&[2; 12], after_addresses, &[7; 46]].concat();
        let frames = [
            frame(&[0x08, 0x00]),
            frame(&[0x81, 0, 0, 101, 8, 0]),
            frame(&[0x81, 0, 0x10, 100, 8, 0]),
            frame(&[0x88, 0xa8, 0, 100, 8, 0]),
            frame(&[0x81, 0, 0, 0, 8, 0]),
            vec![2; 13],
        ];
        assert_eq!(send(&mut far, &frames), Ok(6));
        assert_eq!(received(&mut near), [frame(&[8, 0])], "with another bit, but the same ID");
        assert_eq!(near.other_frames(), 5);
    }

    #[test]
    fn two_hosts_in_a_vlan_see_untagged_frames() {
        let (near, far) = pair(MemoryConfig::default()).unwrap();
        let (mut near, mut far) = (Vlan::new(near, tag("7:3")), Vlan::new(far, tag("7")));
        let frame: Vec<u8> = (0..60).collect();
        send(&mut near, [&frame]).unwrap();
        assert_eq!(received(&mut far), [frame]);
    }

    #[test]
    fn the_mtu_shrinks_unless_the_link_has_room_for_tags() {
        let (near, _far) = links("1");
        assert_eq!(near.capabilities().mtu, near.link().capabilities().mtu - 4);
        let (link, _far) = pair(MemoryConfig::default()).unwrap();
        let roomy =
            Vlan { capabilities: Capabilities { tag_room: 4, ..link.capabilities() }, ..near };
        assert_eq!(Vlan::new(roomy, tag("2")).capabilities().mtu, link.capabilities().mtu);
    }

    #[test]
    fn offloads_are_described_relative_to_the_frame_of_the_host() {
        let mut bytes = [0; 100];
        bytes[TAG..TAG + ADDRESSES].fill(9);
        let place = PartialChecksum { start: 34, offset: 16 };
        let segment = NonZeroU16::new(30);
        let frame = TxFrame { checksum: TxChecksum::Partial(place), segment, ..TxFrame::whole(96) };
        let sent = tagged(&mut bytes, frame, tag("5"));
        let moved = PartialChecksum { start: 38, ..place };
        let expected =
            TxFrame { checksum: TxChecksum::Partial(moved), segment, ..TxFrame::whole(100) };
        assert_eq!(sent, expected);
        let checksum = RxChecksum::Partial(moved);
        let arrived = RxFrame { checksum, segment, ..RxFrame::plain(&bytes, Instant::ZERO) };
        let mut room = Vec::new();
        let frame = untagged(&arrived, 5, &mut room).unwrap();
        assert_eq!((frame.checksum, frame.segment), (RxChecksum::Partial(place), segment));
        assert_eq!(frame.bytes.len(), 96);
        let before = PartialChecksum { start: 3, offset: 0 };
        let impossible = RxFrame { checksum: RxChecksum::Partial(before), ..arrived };
        assert!(untagged(&impossible, 5, &mut Vec::new()).is_none());
    }

    #[test]
    fn readiness_is_passed_on() {
        let (link, _far) = pair(MemoryConfig::default()).unwrap();
        let capabilities = link.capabilities();
        check_readiness_is_passed_on(|link| Vlan {
            link,
            tag: tag("1"),
            capabilities,
            removes_tags: false,
            untagged: Vec::new(),
            others: 0,
        });
    }
}
