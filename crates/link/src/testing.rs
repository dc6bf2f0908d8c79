//! What tests of links do with frames.

use crate::{Readiness, Waiter};
use linerate_stack::{Link, LinkError, TxFrame};
use linerate_units::Instant;
use std::net::Ipv4Addr;

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
