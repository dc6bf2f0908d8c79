//! The forwarding decision of a router (RFC 1812). The router answers ARP requests, neighbour
//! solicitations and echo requests for its own addresses. It forwards other packets and decrements
//! their TTL. If it cannot forward a packet, it reports an ICMP error.
//!
//! Routes and the MAC addresses of neighbours are known from the start, so the router needs neither
//! a routing protocol nor ARP requests of its own. The router never fragments. A packet that
//! exceeds the next MTU is dropped, also without the DF flag, and its sender gets an ICMP error
//! (RFC 1191, RFC 8201).

mod ipv4;
mod ipv6;

use super::{Decision, Reason};
use crate::frame::{FrameId, Frames};
use crate::mac::mac_address;
use linerate_stack::Medium as Framing;
use linerate_wire::{ArpPacket, EtherType, EthernetFrame, EthernetHeader, MacAddress};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Length in bits of an IPv4 network prefix in a simulation with several networks.
pub(crate) const NETWORK_BITS: u8 = 16;
/// Length of a network prefix of IPv6 in bits.
pub(crate) const NETWORK_BITS_IPV6: u8 = 64;

/// The prefix of a network, as a number.
pub(crate) type NetworkNumber = u64;

/// An interface of a router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    /// Number of the interface's NIC, which the MAC address of the interface contains.
    pub(crate) mac: usize,
    pub(crate) address: IpAddr,
    pub(crate) framing: Framing,
    /// Largest IP packet that the interface can send, in bytes.
    pub(crate) mtu: usize,
}

/// A route to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetworkRoute {
    /// Number of the outgoing NIC.
    pub(crate) nic: u16,
    /// Next router, or `None` if the destination is directly reachable.
    pub(crate) gateway: Option<IpAddr>,
}

/// The addresses, routes and neighbours of a router, by which it forwards packets.
#[derive(Debug)]
pub(crate) struct Router {
    interfaces: Vec<Interface>,
    /// Routes by destination network number.
    routes: BTreeMap<NetworkNumber, NetworkRoute>,
    /// Number of the NIC with each IP address. The MAC address of a NIC contains this number.
    neighbours: Arc<BTreeMap<IpAddr, usize>>,
}

/// The fields of a packet that the forwarding decision needs.
#[derive(Clone, Copy, Debug)]
struct Transit {
    destination: IpAddr,
    /// The TTL or hop limit.
    hops: u8,
    /// Offset of the packet in its frame.
    start: usize,
    /// Length of the packet in bytes.
    length: usize,
}

/// The reason why a packet cannot be forwarded. An ICMP error reports it to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Expired,
    NoRoute,
    NoHost,
    TooLong { mtu: usize },
}

impl Problem {
    const fn reason(self) -> Reason {
        match self {
            Self::Expired => Reason::Expired,
            Self::NoRoute | Self::NoHost => Reason::Unreachable,
            Self::TooLong { .. } => Reason::TooLong,
        }
    }
}

impl Router {
    /// Creates a router with an interface for each NIC.
    pub(crate) fn new(
        interfaces: Vec<Interface>,
        routes: BTreeMap<NetworkNumber, NetworkRoute>,
        neighbours: Arc<BTreeMap<IpAddr, usize>>,
    ) -> Self {
        Self { interfaces, routes, neighbours }
    }

    /// Decides what to do with a frame that arrived on NIC `nic`.
    pub(super) fn decide(&self, nic: u16, id: FrameId, frames: &mut Frames) -> Decision {
        let interface = &self.interfaces[usize::from(nic)];
        if interface.framing == Framing::Ip {
            let is_ipv6 = frames[id].bytes().first().is_some_and(|first| first >> 4 == 6);
            return if is_ipv6 {
                self.decide_ipv6(nic, id, frames)
            } else {
                self.decide_ipv4(nic, id, frames)
            };
        }
        match EthernetFrame::parse(frames[id].bytes()) {
            Ok(frame) if frame.header.ether_type == EtherType::IPV4 => {
                self.decide_ipv4(nic, id, frames)
            }
            Ok(frame) if frame.header.ether_type == EtherType::IPV6 => {
                self.decide_ipv6(nic, id, frames)
            }
            Ok(frame) if frame.header.ether_type == EtherType::ARP => {
                match ArpPacket::parse(frame.payload) {
                    Ok(request) => self.answer_arp(nic, &request, frames),
                    Err(_) => Decision::Drop(Reason::Ignored),
                }
            }
            Ok(_) | Err(_) => Decision::Drop(Reason::Ignored),
        }
    }

    /// Is this an address of the router?
    fn is_own(&self, address: IpAddr) -> bool {
        self.interfaces.iter().any(|interface| interface.address == address)
    }

    /// Forwards a packet to another host or router.
    fn forward(
        &self,
        id: FrameId,
        packet: &Transit,
        frames: &mut Frames,
    ) -> Result<Decision, Problem> {
        if packet.hops <= 1 {
            return Err(Problem::Expired);
        }
        let route = self.routes.get(&network_of(packet.destination)).ok_or(Problem::NoRoute)?;
        let mtu = self.interfaces[usize::from(route.nic)].mtu;
        if packet.length > mtu {
            return Err(Problem::TooLong { mtu });
        }
        let next = self.neighbours.get(&route.gateway.unwrap_or(packet.destination));
        let next = *next.ok_or(Problem::NoHost)?;
        let frame = self.prepare_for_next_hop(*route, next, id, packet, frames);
        Ok(Decision::Forward { nic: route.nic, frame })
    }

    /// Prepares a packet for the next hop: decrements its TTL and writes the new link header.
    /// Returns the frame to send. This is the received frame, unless the link headers of the two
    /// media differ in length; in that case the packet is copied to a new frame.
    fn prepare_for_next_hop(
        &self,
        route: NetworkRoute,
        next: usize,
        id: FrameId,
        &Transit { destination, start, length, .. }: &Transit,
        frames: &mut Frames,
    ) -> FrameId {
        let out = &self.interfaces[usize::from(route.nic)];
        let new_start = out.framing.header_length();
        let target = if new_start == start {
            id
        } else {
            let (target, packet) =
                (frames.take(), frames[id].bytes()[start..start + length].to_vec());
            frames[target].room()[new_start..new_start + length].copy_from_slice(&packet);
            frames[target].set_length(new_start + length);
            frames.release(id);
            target
        };
        let bytes = frames[target].written();
        match destination {
            IpAddr::V4(_) => ipv4::decrement_ttl(&mut bytes[new_start..]),
            IpAddr::V6(_) => ipv6::decrement_hop_limit(&mut bytes[new_start..]),
        }
        if out.framing == Framing::Ethernet {
            header_to(next, out.mac, destination).emit(bytes);
        }
        target
    }

    /// Builds a frame with a packet to `to`. `write` fills in the packet's `length` bytes. Returns
    /// the outgoing NIC and the frame. Returns `None` if there is no route to `to`, or the packet
    /// is too large for the outgoing NIC.
    fn frame_to(
        &self,
        to: IpAddr,
        length: usize,
        frames: &mut Frames,
        write: impl FnOnce(&mut [u8]),
    ) -> Option<(u16, FrameId)> {
        let route = self.routes.get(&network_of(to))?;
        let next = *self.neighbours.get(&route.gateway.unwrap_or(to))?;
        let out = &self.interfaces[usize::from(route.nic)];
        let start = out.framing.header_length();
        let id = frames.take();
        if length > out.mtu || start + length > frames[id].room().len() {
            frames.release(id);
            return None;
        }
        let room = frames[id].room();
        if out.framing == Framing::Ethernet {
            header_to(next, out.mac, to).emit(room);
        }
        write(&mut room[start..start + length]);
        frames[id].set_length(start + length);
        Some((route.nic, id))
    }
}

/// Returns the decision to send `frame`, which the router has built in response to a received
/// frame. For `None`, the received frame is only dropped. `reason` is why the received frame is not
/// forwarded.
fn answer(frame: Option<(u16, FrameId)>, reason: Reason) -> Decision {
    frame.map_or(Decision::Drop(reason), |(nic, frame)| Decision::Answer {
        nic,
        frame,
        instead: reason,
    })
}

/// Returns the number of the network that contains an address.
pub(crate) fn network_of(address: IpAddr) -> NetworkNumber {
    match address {
        IpAddr::V4(address) => (address.to_bits() >> (32 - NETWORK_BITS)).into(),
        IpAddr::V6(address) => {
            let prefix = address.to_bits() >> (128 - NETWORK_BITS_IPV6);
            NetworkNumber::try_from(prefix).unwrap_or(NetworkNumber::MAX)
        }
    }
}

/// Returns the Ethernet header of an IP packet to `destination`. The MAC addresses in it are given
/// by the numbers that they contain: `next` for the next hop, and `from` for the sender.
fn header_to(next: usize, from: usize, destination: IpAddr) -> EthernetHeader {
    EthernetHeader {
        destination: MacAddress::new(mac_address(next)),
        source: MacAddress::new(mac_address(from)),
        ether_type: match destination {
            IpAddr::V4(_) => EtherType::IPV4,
            IpAddr::V6(_) => EtherType::IPV6,
        },
        ..EthernetHeader::default()
    }
}
