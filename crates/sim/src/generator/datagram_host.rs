//! The UDP/IP stack of a raw-frame generator: an instance of linerate's host that is separate from
//! the machine's host. It has one UDP socket, and fragments and reassembles datagrams. The
//! machine's host cannot be used for that, because its frames cost the processor times of TCP
//! segments.
//!
//! The MAC addresses of all neighbours are known from the start, so this host sends no ARP
//! requests.

use crate::mac::mac_address;
use linerate_stack::{
    Budget, Capabilities, Link, LinkError, Medium, RxFrame, Stack, StackConfig, TxFrame, UdpHandle,
    UdpOptions,
};
use linerate_units::Tick;
use linerate_wire::{EtherType, EthernetHeader, IpCidr, MacAddress, Protocol};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Size of the largest IP packet on an Ethernet (IEEE 802.3), in bytes.
const MTU: usize = 1_500;
/// Length of the longest frame in bytes, without its check sequence.
pub(crate) const LONGEST: usize = EthernetHeader::LENGTH + MTU;
/// Size in bytes of the largest datagram payload that both IPv4 and IPv6 can carry.
pub(super) const LARGEST_DATAGRAM: usize = 65_507;

/// The addresses of a host and of its neighbours, and the seed of its random numbers.
#[derive(Clone, Debug)]
pub(crate) struct DatagramPlace {
    /// Number of the host's NIC, which its MAC address contains.
    pub(crate) mac: usize,
    pub(crate) address: IpCidr,
    /// Number of the NIC with each IP address. The MAC address of a NIC contains this number.
    pub(crate) neighbours: Arc<BTreeMap<IpAddr, usize>>,
    /// The seed of all random numbers of the host.
    pub(crate) secret: [u8; 32],
}

/// A host with one UDP socket.
#[derive(Debug)]
pub(super) struct DatagramHost {
    place: DatagramPlace,
    stack: Stack,
    socket: Option<UdpHandle>,
    /// Ethernet frames of the host that wait to be sent, in order.
    to_send: VecDeque<Vec<u8>>,
    /// Buffer for the most recently received datagram.
    received: Vec<u8>,
}

impl DatagramHost {
    /// Creates a host with a socket at `port`.
    pub(super) fn new(place: DatagramPlace, port: u16) -> Self {
        let config = StackConfig::new(MacAddress::new(mac_address(place.mac)), place.address);
        let mut stack = Stack::new(config, place.secret);
        stack.attach(capabilities());
        let local = SocketAddr::new(place.address.address(), port);
        // This cannot fail: a new host has room for a socket, and all of its ports are free.
        let socket = stack.udp_bind(local, &UdpOptions::default()).ok();
        let received = vec![0; LARGEST_DATAGRAM];
        Self { place, stack, socket, to_send: VecDeque::new(), received }
    }

    /// Returns whether a frame is addressed to this host and carries UDP or, over IPv6, a fragment.
    pub(super) fn wants(&self, frame: &[u8]) -> bool {
        let packet = frame.get(EthernetHeader::LENGTH..).unwrap_or(&[]);
        let protocols: &[Protocol] = match frame.get(12..EthernetHeader::LENGTH) {
            Some([0x08, 0x00]) => &[Protocol::UDP],
            Some([0x86, 0xdd]) => &[Protocol::UDP, Protocol::FRAGMENT],
            _ => return false,
        };
        let field = if frame[12] == 0x08 { 9 } else { 6 };
        let protocol = packet.get(field).map(|&number| Protocol::new(number));
        frame[..6] == mac_address(self.place.mac)
            && protocol.is_some_and(|protocol| protocols.contains(&protocol))
    }

    /// Handles a received frame.
    pub(super) fn handle_frame(&mut self, now: Tick, frame: &[u8]) {
        self.turn(now, frame.get(EthernetHeader::LENGTH..));
    }

    /// Returns the next received datagram and its sender; `None` if there is none.
    pub(super) fn receive(&mut self) -> Option<(&[u8], SocketAddr)> {
        let received = self.stack.udp_receive_from(self.socket?, &mut self.received);
        let (length, from) = received.ok()?;
        Some((&self.received[..length], from))
    }

    /// Sends a datagram. Its frames are queued behind all frames that already wait to be sent.
    pub(super) fn send(&mut self, now: Tick, to: SocketAddr, data: &[u8]) {
        let Some(socket) = self.socket else { return };
        // The error is ignored: a datagram for which the host has no room is lost, just as the wire
        // could lose it.
        let _ = self.stack.udp_send_to(now.to_instant(), socket, to, data);
        self.turn(now, None);
    }

    /// Returns whether frames wait to be sent.
    pub(super) fn has_frames(&self) -> bool {
        !self.to_send.is_empty()
    }

    /// Writes the next frame into `room` and returns its length; `None` if there is nothing to
    /// send.
    pub(super) fn poll_transmit(&mut self, room: &mut [u8]) -> Option<usize> {
        let frame = self.to_send.pop_front()?;
        room[..frame.len()].copy_from_slice(&frame);
        Some(frame.len())
    }

    fn turn(&mut self, now: Tick, mut arrived: Option<&[u8]>) {
        loop {
            let mut wire =
                Wire { place: &self.place, arrived: arrived.take(), to_send: &mut self.to_send };
            let turn = self.stack.turn(&mut wire, Budget::default(), now.to_instant());
            // A turn fails only if its link fails, which this link never does. So the loop goes on
            // until the host has no more work.
            if !turn.is_ok_and(|turn| turn.more) {
                return;
            }
        }
    }
}

/// The link of the host during a turn.
#[derive(Debug)]
struct Wire<'a> {
    place: &'a DatagramPlace,
    /// The received packet, if there is one.
    arrived: Option<&'a [u8]>,
    to_send: &'a mut VecDeque<Vec<u8>>,
}

impl Link for Wire<'_> {
    fn receive(
        &mut self,
        _budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let Some(packet) = self.arrived.take() else { return Ok(0) };
        on_frame(RxFrame::plain(packet, linerate_units::Instant::ZERO));
        Ok(1)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let mut frame = [0; LONGEST];
        let mut sent = 0;
        while sent < budget
            && let Some(made) = fill(&mut frame[EthernetHeader::LENGTH..])
        {
            let packet = &frame[EthernetHeader::LENGTH..][..made.length];
            // `header_of` returns `None` if no host has the destination address. The packet is then
            // lost, because no station would receive it from the wire.
            if let Some(header) = self.header_of(packet) {
                header.emit(&mut frame);
                self.to_send.push_back(frame[..EthernetHeader::LENGTH + made.length].to_vec());
            }
            sent += 1;
        }
        Ok(sent)
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }
}

impl Wire<'_> {
    /// Returns the Ethernet header for an IP packet, or `None` if no host has its destination
    /// address.
    fn header_of(&self, packet: &[u8]) -> Option<EthernetHeader> {
        let (destination, ether_type): (IpAddr, _) = match packet.first()? >> 4 {
            4 => (Ipv4Addr::from(*packet.get(16..)?.first_chunk::<4>()?).into(), EtherType::IPV4),
            _ => (Ipv6Addr::from(*packet.get(24..)?.first_chunk::<16>()?).into(), EtherType::IPV6),
        };
        let next = *self.place.neighbours.get(&destination)?;
        Some(EthernetHeader {
            destination: MacAddress::new(mac_address(next)),
            source: MacAddress::new(mac_address(self.place.mac)),
            ether_type,
            ..EthernetHeader::default()
        })
    }
}

/// Returns the capabilities of the link. The link carries IP packets without Ethernet headers, so
/// the host resolves no addresses.
const fn capabilities() -> Capabilities {
    Capabilities::new(Medium::Ip, MTU)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(addresses: [&str; 2]) -> [DatagramHost; 2] {
        let cidrs = addresses.map(|address| address.parse::<IpCidr>().unwrap());
        let neighbours = cidrs.iter().enumerate().map(|(mac, cidr)| (cidr.address(), mac));
        let neighbours: Arc<BTreeMap<IpAddr, usize>> = Arc::new(neighbours.collect());
        [0, 1].map(|mac| {
            let neighbours = Arc::clone(&neighbours);
            let place = DatagramPlace { mac, address: cidrs[mac], neighbours, secret: [1; 32] };
            DatagramHost::new(place, 2_049)
        })
    }

    /// Sends a datagram from the first host to the second. If `lost` is a number, the frame with
    /// this number does not arrive. Returns the lengths of all frames.
    fn carry(hosts: &mut [DatagramHost; 2], data: &[u8], lost: Option<usize>) -> Vec<usize> {
        let [sender, receiver] = hosts;
        let to = SocketAddr::new(receiver.place.address.address(), 2_049);
        sender.send(Tick::ZERO, to, data);
        let mut lengths = Vec::new();
        let mut room = [0; LONGEST];
        while let Some(length) = sender.poll_transmit(&mut room) {
            assert!(receiver.wants(&room[..length]) && !sender.wants(&room[..length]));
            if lost != Some(lengths.len()) {
                receiver.handle_frame(Tick::ZERO, &room[..length]);
            }
            lengths.push(length);
        }
        lengths
    }

    #[test]
    fn datagrams_are_fragmented_and_reassembled_over_both_ip_versions() {
        // The payload of a full fragment is a multiple of eight bytes: 1,480 bytes over IPv4, and
        // 1,448 bytes over IPv6, where a fragment header precedes it.
        for (addresses, whole, last) in [
            (["10.0.0.1/24", "10.0.0.2/24"], 14 + 20 + 1_480, 14 + 20 + 900),
            (["fd00::1/64", "fd00::2/64"], 14 + 48 + 1_448, 14 + 48 + 1_060),
        ] {
            let mut hosts = hosts(addresses);
            let data: Vec<u8> = (0..=255).cycle().take(8_292).collect();
            let expected = [whole, whole, whole, whole, whole, last];
            assert_eq!(carry(&mut hosts, &data, None), expected);
            let [sender, receiver] = &mut hosts;
            let from = SocketAddr::new(sender.place.address.address(), 2_049);
            assert_eq!(receiver.receive(), Some((&data[..], from)));
            assert_eq!(carry(&mut hosts, &data, Some(3)), expected);
            assert_eq!(carry(&mut hosts, &data[..100], None).len(), 1);
            let [_, receiver] = &mut hosts;
            assert_eq!(receiver.receive(), Some((&data[..100], from)), "the other one is lost");
            assert_eq!(receiver.receive(), None);
        }
    }

    #[test]
    fn other_frames_are_not_wanted() {
        let [host, _] = hosts(["10.0.0.1/24", "10.0.0.2/24"]);
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&mac_address(0));
        for (ether_type, protocol) in [([0x08, 0x00], 6), ([0x88, 0xb6], 17), ([0x08, 0x06], 17)] {
            frame[12..14].copy_from_slice(&ether_type);
            frame[14 + 9] = protocol;
            assert!(!host.wants(&frame));
        }
        assert!((0..60).all(|length| !host.wants(&frame[..length])));
    }
}
