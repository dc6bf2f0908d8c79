//! What tests of links do with frames.

use crate::virtio;
use crate::{Readiness, Waiter};
use linerate_stack::{FrameSource, LentFrame, Link, LinkError, TxFrame};
use linerate_units::Instant;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

/// Sends frames: how many have left.
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

/// Waits for the next frame.
pub(crate) fn next(link: &mut (impl Link + Readiness)) -> Vec<u8> {
    let (mut waiter, mut frame) = (Waiter::new().unwrap(), None);
    while frame.is_none() {
        waiter.wait(link, Instant::NEVER).unwrap();
        link.receive(1, |arrived| frame = Some(arrived.bytes.to_vec())).unwrap();
    }
    frame.unwrap()
}

/// The answer of the station `mac` to an ARP request for the address `ours`.
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

/// The same datagram sent back in the same frame: with stations, addresses and ports exchanged, all checksums stay
/// right.
pub(crate) fn sent_back(frame: &[u8]) -> Vec<u8> {
    let (stations, packet) = frame.split_at(14);
    [&stations[6..12], &stations[..6], &stations[12..], &packet_sent_back(packet)].concat()
}

/// The same for a packet without a frame around it.
pub(crate) fn packet_sent_back(packet: &[u8]) -> Vec<u8> {
    let mut back = packet.to_vec();
    for (from, to, length) in [(12, 16, 4), (16, 12, 4), (20, 22, 2), (22, 20, 2)] {
        back[to..to + length].copy_from_slice(&packet[from..from + length]);
    }
    back
}

/// Frames of a number, four bytes of filling, and a rest, which is lent in two parts; every third has none.
struct Lender {
    next: u32,
    rest: Vec<u8>,
}

impl Lender {
    const fn has_rest(number: u32) -> bool {
        number % 3 != 2
    }
}

impl FrameSource for Lender {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn fill(&mut self, _: &mut [u8]) -> Option<TxFrame> {
        panic!("the link gathers");
    }

    fn lend(&mut self, frame: &mut [u8]) -> Option<LentFrame<'_>> {
        frame[..4].copy_from_slice(&self.next.to_be_bytes());
        frame[4..8].fill(7);
        let rest = if Self::has_rest(self.next) { &self.rest[..] } else { &[] };
        self.next += 1;
        let (first, second) = rest.split_at(rest.len().min(1_000));
        Some(LentFrame { frame: TxFrame::whole(8), rest: [first, second] })
    }
}

/// A link with the virtio-net header, over one end of a pair of sockets, gathers what it is lent: every frame leaves
/// whole, once and in its order, also if it had to wait.
pub(crate) fn lent_frames_leave_whole<L: Link + Readiness>(over: impl FnOnce(OwnedFd) -> L) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut link = over(ours.into());
    let mut lender = Lender { next: 0, rest: (0..3_000_u16).map(|at| (at % 251) as u8).collect() };
    let expected = lender.rest.clone();
    let mut seen = 0;
    let mut drain = |most: usize| {
        let mut bytes = [0; 4_000];
        for _ in 0..most {
            let Ok(length) = theirs.recv(&mut bytes) else { break };
            let (header, frame) = bytes[..length].split_at(virtio::LENGTH);
            assert_eq!((header, &frame[..4]), (&[0; virtio::LENGTH][..], &u32::to_be_bytes(seen)[..]));
            let rest = if Lender::has_rest(seen) { &expected[..] } else { &[] };
            assert!(frame[4..8] == [7; 4] && frame[8..] == *rest, "frame {seen}");
            seen += 1;
        }
        seen
    };
    let mut sent = link.transmit_from(100_000, &mut lender).unwrap();
    assert!(sent < 100_000 && link.wants_room());
    assert_eq!(link.transmit_from(100, &mut lender), Ok(0), "some wait already");
    for taken in 1..40 {
        // So much room that what waits leaves in parts.
        drain(taken % 5);
        sent += link.transmit_from(4, &mut lender).unwrap();
    }
    while link.wants_room() {
        drain(usize::MAX);
        link.transmit_from(0, &mut lender).unwrap();
    }
    assert_eq!(drain(usize::MAX) as usize, sent);
    assert_eq!(lender.next as usize, sent);
}
