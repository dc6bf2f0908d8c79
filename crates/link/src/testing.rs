//! Frames, links and checks that are shared by the tests of several links.

use crate::sys::socket_option;
use crate::virtio;
use crate::{MonotonicClock, NoLink, Readiness, Waiter};
use linerate_stack::{
    Capabilities, FrameSource, Link, LinkError, Medium, Offloads, PartialChecksum, RxChecksum,
    RxFrame, TxChecksum, TxFrame, ZeroCopyFrame,
};
use linerate_units::{Clock, Instant};
use std::net::Ipv4Addr;
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sends these frames on `link`. Returns how many of them the link has taken.
pub(crate) fn send(
    link: &mut impl Link,
    frames: impl IntoIterator<Item: AsRef<[u8]>>,
) -> Result<usize, LinkError> {
    let mut frames = frames.into_iter();
    link.transmit(usize::MAX, |bytes| {
        let frame = frames.next()?;
        let frame = frame.as_ref();
        bytes[..frame.len()].copy_from_slice(frame);
        Some(TxFrame::whole(frame.len()))
    })
}

/// Waits until `link` receives a frame, and returns the frame.
pub(crate) fn next(link: &mut (impl Link + Readiness)) -> Vec<u8> {
    let (mut waiter, mut frame) = (Waiter::new().unwrap(), None);
    while frame.is_none() {
        waiter.wait(link, Instant::NEVER).unwrap();
        link.receive(1, |arrived| frame = Some(arrived.bytes.to_vec())).unwrap();
    }
    frame.unwrap()
}

/// Returns the reply to the ARP request `request`. It says that the address `ours` belongs to
/// `mac`.
pub(crate) fn arp_reply(request: &[u8], ours: Ipv4Addr, mac: [u8; 6]) -> Vec<u8> {
    assert_eq!((&request[12..14], &request[38..42]), (&[8, 6][..], &ours.octets()[..]));
    let mut reply = request.to_vec();
    reply[..6].copy_from_slice(&request[6..12]);
    reply[6..12].copy_from_slice(&mac);
    reply[21] = 2;
    reply[22..28].copy_from_slice(&mac);
    reply[28..32].copy_from_slice(&ours.octets());
    reply[32..42].copy_from_slice(&request[22..32]);
    reply
}

/// Returns the datagram in `frame` with MAC addresses, IP addresses and ports exchanged, as its
/// receiver would send it back. All checksums stay right, because the exchange does not change the
/// sums.
pub(crate) fn sent_back(frame: &[u8]) -> Vec<u8> {
    let (ethernet, packet) = frame.split_at(14);
    [&ethernet[6..12], &ethernet[..6], &ethernet[12..], &packet_sent_back(packet)].concat()
}

/// Returns a packet, which has no Ethernet header, with IP addresses and ports exchanged.
pub(crate) fn packet_sent_back(packet: &[u8]) -> Vec<u8> {
    let mut back = packet.to_vec();
    for (from, to, length) in [(12, 16, 4), (16, 12, 4), (20, 22, 2), (22, 20, 2)] {
        back[to..to + length].copy_from_slice(&packet[from..from + length]);
    }
    back
}

/// A source of numbered frames. Each frame begins with eight bytes that are written into the link's
/// buffer: four bytes of the number, and four bytes of padding. In two of three frames, borrowed
/// data follows: the bytes of `rest`, divided into two slices.
struct BorrowingSource {
    next: u32,
    rest: Vec<u8>,
}

impl BorrowingSource {
    const fn has_rest(number: u32) -> bool {
        number % 3 != 2
    }
}

impl FrameSource for BorrowingSource {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn fill(&mut self, _: &mut [u8]) -> Option<TxFrame> {
        panic!("the link gathers");
    }

    fn fill_zero_copy(&mut self, frame: &mut [u8]) -> Option<ZeroCopyFrame<'_>> {
        frame[..4].copy_from_slice(&self.next.to_be_bytes());
        frame[4..8].fill(7);
        let rest = if Self::has_rest(self.next) { &self.rest[..] } else { &[] };
        self.next += 1;
        let (first, second) = rest.split_at(rest.len().min(1_000));
        Some(ZeroCopyFrame { frame: TxFrame::whole(8), rest: [first, second] })
    }
}

/// Checks that a link with virtio-net headers sends frames with borrowed data whole, once and in
/// order. Some of the frames must wait until the kernel has room. `over` creates the link over one
/// end of a socket pair, and the test reads the frames at the other end.
pub(crate) fn check_borrowed_data_is_sent_whole<L: Link + Readiness>(
    over: impl FnOnce(OwnedFd) -> L,
) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut link = over(ours.into());
    let mut source =
        BorrowingSource { next: 0, rest: (0..3_000_u16).map(|at| (at % 251) as u8).collect() };
    let expected = source.rest.clone();
    let mut seen = 0;
    let mut drain = |most: usize| {
        let mut bytes = [0; 4_000];
        for _ in 0..most {
            let Ok(length) = theirs.recv(&mut bytes) else { break };
            let (header, frame) = bytes[..length].split_at(virtio::LENGTH);
            assert_eq!(
                (header, &frame[..4]),
                (&[0; virtio::LENGTH][..], &u32::to_be_bytes(seen)[..])
            );
            let rest = if BorrowingSource::has_rest(seen) { &expected[..] } else { &[] };
            assert!(frame[4..8] == [7; 4] && frame[8..] == *rest, "frame {seen}");
            seen += 1;
        }
        seen
    };
    let mut sent = link.transmit_from(100_000, &mut source).unwrap();
    assert!(sent < 100_000 && link.wants_room());
    assert_eq!(link.transmit_from(100, &mut source), Ok(0), "frames are waiting already");
    for taken in 1..40 {
        // Reading some frames at the other end makes room for some of the frames that wait in the
        // link.
        drain(taken % 5);
        sent += link.transmit_from(4, &mut source).unwrap();
    }
    while link.wants_room() {
        drain(usize::MAX);
        link.transmit_from(0, &mut source).unwrap();
    }
    assert_eq!(drain(usize::MAX) as usize, sent);
    assert_eq!(source.next as usize, sent);
}

/// A source of frames with the given lengths. The data of long frames is borrowed.
pub(crate) struct FramesOfLength<'a>(pub(crate) &'a [usize]);

impl FrameSource for FramesOfLength<'_> {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn fill(&mut self, frame: &mut [u8]) -> Option<TxFrame> {
        let (&length, left) = self.0.split_first()?;
        self.0 = left;
        frame[..length].fill(3);
        Some(TxFrame::whole(length))
    }

    fn fill_zero_copy(&mut self, frame: &mut [u8]) -> Option<ZeroCopyFrame<'_>> {
        let TxFrame { length, .. } = self.fill(frame)?;
        // A frame shorter than 100 bytes is complete in the link's buffer. Of a longer frame, only
        // the first eight bytes are in the buffer, and the other bytes are borrowed.
        let kept = if length < 100 { length } else { 8 };
        Some(ZeroCopyFrame { frame: TxFrame::whole(kept), rest: [&[3; 8_000][kept..length], &[]] })
    }
}

/// Checks that a frame that is too long for the kernel is dropped and counted, and that the frames
/// before and after it are sent. `over` creates the link, which has virtio-net headers, over one
/// end of a socket pair.
pub(crate) fn check_too_long_frames_are_counted<L: Link + Readiness>(
    over: impl FnOnce(OwnedFd) -> L,
    refused: impl Fn(&L) -> u64,
) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    // The kernel replaces 1 by the smallest possible size, some 4,600 bytes, for which a frame of
    // 8,000 bytes is too long.
    socket_option::set_integer(&ours, libc::SOL_SOCKET, libc::SO_SNDBUF, 1).unwrap();
    let mut link = over(ours.into());
    let mut check = |borrowed: bool| {
        let mut lengths = FramesOfLength(&[60, 8_000, 61]);
        let sent = if borrowed {
            link.transmit_from(9, &mut lengths)
        } else {
            link.transmit(9, |frame| lengths.fill(frame))
        };
        assert_eq!((sent, link.wants_room()), (Ok(3), false));
        let mut bytes = [0; 100];
        for length in [60, 61] {
            assert_eq!(theirs.recv(&mut bytes).unwrap(), virtio::LENGTH + length);
        }
        assert!(theirs.recv(&mut bytes).is_err());
        refused(&link)
    };
    assert_eq!([check(false), check(true)], [1, 2]);
}

/// Checks the time stamps of received frames: each must be a time between the start and the end of
/// the call that received the frame. `over` creates the link over one end of a socket pair.
pub(crate) fn check_frames_are_stamped_on_arrival<L: Link>(over: impl FnOnce(OwnedFd) -> L) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut link = over(ours.into());
    for _ in 0..4 {
        (0..9).for_each(|_| assert_eq!(theirs.send(&[0; 70]).unwrap(), 70));
        let before = MonotonicClock.now();
        let mut stamps = Vec::new();
        assert_eq!(link.receive(9, |frame| stamps.push(frame.arrived)), Ok(9));
        let after = MonotonicClock.now();
        assert_eq!(stamps.len(), 9);
        assert!(
            stamps.is_sorted() && before <= stamps[0] && stamps[8] <= after,
            "{before:?} {stamps:?} {after:?}"
        );
    }
}

/// A source of one GSO frame. The field is true until the frame has been taken. A link that
/// supports borrowed data gets the data of the frame as borrowed slices.
struct OneGsoFrame(bool);

impl OneGsoFrame {
    const HEADERS: usize = 34 + 20;
    const FRAME: TxFrame = TxFrame {
        length: Self::HEADERS,
        checksum: TxChecksum::Partial(PartialChecksum { start: 34, offset: 16 }),
        segment: NonZeroU16::new(5),
    };
}

impl FrameSource for OneGsoFrame {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn fill(&mut self, frame: &mut [u8]) -> Option<TxFrame> {
        frame[..70].fill(0);
        // The TCP data offset is five words of four bytes: a header without options.
        frame[34 + 12] = 0x50;
        core::mem::take(&mut self.0).then_some(TxFrame { length: 70, ..Self::FRAME })
    }

    fn fill_zero_copy(&mut self, frame: &mut [u8]) -> Option<ZeroCopyFrame<'_>> {
        self.fill(frame)?;
        Some(ZeroCopyFrame { frame: Self::FRAME, rest: [&[0; 6], &[0; 10]] })
    }
}

/// Checks that a link describes the offloads of a frame in its virtio-net header, for frames with
/// borrowed data and for others. `over` creates the link over one end of a socket pair.
pub(crate) fn check_offloads_are_described<L: Link>(over: impl FnOnce(OwnedFd) -> L) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let mut link = over(ours.into());
    assert_eq!(link.transmit(1, |frame| OneGsoFrame(true).fill(frame)), Ok(1));
    // The frame before this one was a GSO frame, and its virtio-net header is still in the link's
    // buffer. This frame has no offloads, so the link must overwrite the header.
    assert_eq!(link.transmit(1, |_| Some(TxFrame::whole(60))), Ok(1));
    assert_eq!(link.transmit_from(9, &mut OneGsoFrame(true)), Ok(1));
    let [size, headers, start, offset] = [5, 34 + 20, 34, 16].map(u16::to_ne_bytes);
    let mut expected = [&[1, 1][..], &headers, &size, &start, &offset, &[0; 70]].concat();
    expected[virtio::LENGTH + 34 + 12] = 0x50;
    for finished in [false, true, false] {
        let mut bytes = [0; 100];
        let length = theirs.recv(&mut bytes).unwrap();
        let header = if finished { &[0; virtio::LENGTH] } else { &expected[..virtio::LENGTH] };
        assert_eq!(bytes[..virtio::LENGTH], *header);
        assert!(finished || bytes[..length] == expected);
    }
}

/// Checks that a link with virtio-net headers receives a frame of the largest length completely.
/// `over` creates the link over one end of a socket pair.
pub(crate) fn check_the_largest_frame_is_received<L: Link>(over: impl FnOnce(OwnedFd) -> L) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut link = over(ours.into());
    let bytes = [&[0; virtio::LENGTH][..], &[4; virtio::LARGEST_FRAME]].concat();
    theirs.send(&bytes).unwrap();
    let mut seen = Vec::new();
    assert_eq!(link.receive(9, |frame| seen.extend_from_slice(frame.bytes)), Ok(1));
    assert!(seen == bytes[virtio::LENGTH..]);
}

/// A source that offers the given frame once, if there is one. The first field is what
/// [`FrameSource::now`] returns.
pub(crate) struct SingleFrame(pub(crate) Instant, pub(crate) Option<&'static [u8]>);

impl FrameSource for SingleFrame {
    fn now(&self) -> Instant {
        self.0
    }

    fn has_frames(&self) -> bool {
        self.1.is_some()
    }

    fn fill(&mut self, frame: &mut [u8]) -> Option<TxFrame> {
        let bytes = self.1.take()?;
        frame[..bytes.len()].copy_from_slice(bytes);
        Some(TxFrame::whole(bytes.len()))
    }

    fn fill_zero_copy(&mut self, frame: &mut [u8]) -> Option<ZeroCopyFrame<'_>> {
        Some(ZeroCopyFrame { frame: self.fill(frame)?, rest: [&[]; 2] })
    }
}

/// A link that receives the given frames one by one, even those that exceed its MTU. If `segment`
/// is set, each frame is a GRO frame whose segments have this size.
pub(crate) struct ReceivesFrames {
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) segment: Option<NonZeroU16>,
}

impl Link for ReceivesFrames {
    fn receive(
        &mut self,
        _: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let Some(bytes) = self.frames.pop() else { return Ok(0) };
        let plain = RxFrame::plain(&bytes, Instant::from_nanos(7));
        on_frame(RxFrame { checksum: RxChecksum::Verified, segment: self.segment, ..plain });
        Ok(1)
    }

    fn transmit(
        &mut self,
        _: usize,
        _: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        Ok(0)
    }

    fn capabilities(&self) -> Capabilities {
        let joined = Offloads { checksums: true, gso_max_size: 65_535 };
        let usual = Capabilities::new(Medium::Ip, 1_500);
        Capabilities {
            offloads: if self.segment.is_some() { joined } else { usual.offloads },
            ..usual
        }
    }
}

/// A link whose methods of [`Readiness`] return known values, with which a test compares the
/// results of a wrapper.
#[derive(Debug)]
pub(crate) struct FixedAnswers {
    silent: [NoLink; 2],
    answer: bool,
    woken: Arc<AtomicUsize>,
}

impl FixedAnswers {
    pub(crate) fn new(answer: bool) -> Self {
        Self { silent: [(); 2].map(|()| NoLink::new().unwrap()), answer, woken: Arc::default() }
    }
}

impl Link for FixedAnswers {
    fn receive(&mut self, _: usize, _: impl FnMut(RxFrame<'_>)) -> Result<usize, LinkError> {
        Ok(0)
    }

    fn transmit(
        &mut self,
        _: usize,
        _: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        Ok(0)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Medium::Ip, 1_500)
    }
}

impl Readiness for FixedAnswers {
    fn fd(&self) -> BorrowedFd<'_> {
        self.silent[0].fd()
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.silent[1].fd())
    }

    fn wants_room(&self) -> bool {
        self.answer
    }

    fn is_ready(&mut self) -> bool {
        self.answer
    }

    fn prepare_to_sleep(&mut self) -> bool {
        self.answer
    }

    fn awake(&mut self, signalled: bool) {
        self.woken.fetch_add(if signalled { 10 } else { 1 }, Ordering::Relaxed);
    }

    fn next_deadline(&self) -> Instant {
        Instant::from_nanos(77)
    }
}

/// Checks that all methods of [`Readiness`] of a wrapper call those of its inner link. `around`
/// creates the wrapper.
pub(crate) fn check_readiness_is_passed_on<L: Readiness>(around: impl Fn(FixedAnswers) -> L) {
    for answer in [false, true] {
        let inside = FixedAnswers::new(answer);
        let expected = inside.silent.each_ref().map(|silent| silent.fd().as_raw_fd());
        let woken = Arc::clone(&inside.woken);
        let mut link = around(inside);
        assert_eq!([link.fd(), link.wakeup_fd().unwrap()].map(|fd| fd.as_raw_fd()), expected);
        assert_eq!([link.wants_room(), link.is_ready(), link.prepare_to_sleep()], [answer; 3]);
        assert_eq!(link.next_deadline(), Instant::from_nanos(77));
        link.awake(false);
        link.awake(true);
        assert_eq!(woken.load(Ordering::Relaxed), 11);
    }
}
