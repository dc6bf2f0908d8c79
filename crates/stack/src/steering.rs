//! Steering: selects the shard of a host that receives a frame. Each shard is a separate
//! [`crate::Stack`], and shards share no state, so all frames of a connection must reach the same
//! shard.
//!
//! | frame | shard |
//! |---|---|
//! | a TCP segment | selected by a keyed hash of the flow, equal for both directions |
//! | an ICMP error about a TCP segment of this host | the shard of the quoted flow |
//! | ARP, Neighbour Discovery | all shards, each with a neighbour cache; only the first answers |
//! | any other frame: UDP, echo, fragment, invalid packet | the first shard |
//!
//! Only the first fragment of a segment contains the ports, so the shard of the other fragments is
//! unknown. Therefore the first shard reassembles the fragmented segments of all connections. It
//! passes each reassembled segment to the shard of its connection ([`crate::Link::hand_over`]).

use crate::ip::is_ipv6;
use crate::keys::Keys;
use crate::link::Medium;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::num::NonZeroU16;
use linerate_wire::{Ipv6Packet, Ipv6Quote, Protocol};
use siphasher::sip::SipHasher13;

/// The number of the shard that handles all packets which belong to no TCP connection.
pub const FIRST_SHARD: u16 = 0;

const ETHERNET_HEADER: usize = 14;
const ICMP: u8 = 1;
const TCP: u8 = 6;
/// The range of ICMPv6 types that Neighbour Discovery uses (RFC 4861 §4).
const NEIGHBOR_DISCOVERY_FIRST: u8 = 133;
const NEIGHBOR_DISCOVERY_LAST: u8 = 137;

/// The position of a shard among the shards of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of the shard, less than `count`.
    pub number: u16,
    /// The number of shards.
    pub count: NonZeroU16,
}

impl Shard {
    /// The only shard of a host.
    pub const ONLY: Self = Self { number: FIRST_SHARD, count: NonZeroU16::MIN };

    /// Is this the shard that handles all packets which belong to no TCP connection?
    #[must_use]
    pub const fn is_first(self) -> bool {
        self.number == FIRST_SHARD
    }
}

/// The shard, or the shards, that must receive a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// The shard with this number.
    To(u16),
    /// Every shard.
    ToAll,
}

/// A selector of shards: it selects the shard that receives a frame. All shards of a host and all
/// its links must use selectors with equal seeds.
#[derive(Clone, Debug)]
pub struct Steering {
    hasher: SipHasher13,
    shards: NonZeroU16,
    /// The flow of the most recent IPv4 segment, and its shard. The next segment mostly belongs to
    /// this flow, and then needs no hash computation.
    last: ([u8; 12], u16),
    /// The flow of the most recent IPv6 segment, and its shard.
    last_ipv6: ([u8; 36], u16),
}

impl Steering {
    /// Creates a selector among `shards` shards. A peer that does not know `seed` cannot direct all
    /// flows to one shard.
    #[must_use]
    pub fn new(seed: [u8; 32], shards: NonZeroU16) -> Self {
        Self::with_keys(&Keys::new(seed), shards)
    }

    pub(crate) fn with_keys(keys: &Keys, shards: NonZeroU16) -> Self {
        let hasher = keys.table("shards");
        let (none, none_ipv6) = ([0; 12], [0; 36]);
        let last = (none, shard_of(&hasher, shards, &none));
        let last_ipv6 = (none_ipv6, shard_of(&hasher, shards, &none_ipv6));
        Self { hasher, shards, last, last_ipv6 }
    }

    /// Returns the number of shards.
    #[must_use]
    pub const fn shards(&self) -> NonZeroU16 {
        self.shards
    }

    /// Returns the number of the shard of a connection between two addresses and ports, whose order
    /// does not matter.
    #[must_use]
    pub fn of_connection(&self, one: impl Into<SocketAddr>, other: impl Into<SocketAddr>) -> u16 {
        if self.shards == NonZeroU16::MIN {
            FIRST_SHARD
        } else {
            self.of_ends(one.into(), other.into())
        }
    }

    fn of_ends(&self, one: SocketAddr, other: SocketAddr) -> u16 {
        match (one.ip(), other.ip()) {
            (IpAddr::V4(ip), IpAddr::V4(other_ip)) => {
                let end = |bits: u32, port: u16| u64::from(bits) << 16 | u64::from(port);
                let (one, other) =
                    (end(ip.to_bits(), one.port()), end(other_ip.to_bits(), other.port()));
                shard_of(&self.hasher, self.shards, &key(one, other))
            }
            (IpAddr::V6(ip), IpAddr::V6(other_ip)) => {
                let key = ipv6_key((ip, one.port()), (other_ip, other.port()));
                shard_of(&self.hasher, self.shards, &key)
            }
            // No packet has addresses of both IP versions, so any shard would do.
            _ => FIRST_SHARD,
        }
    }

    /// Selects the shard for a received frame.
    pub fn steer(&mut self, medium: Medium, frame: &[u8]) -> Steered {
        if self.shards == NonZeroU16::MIN {
            return Steered::To(FIRST_SHARD);
        }
        match (medium, frame.get(12..ETHERNET_HEADER)) {
            (Medium::Ip, _) if is_ipv6(frame) => self.steer_ipv6(frame),
            (Medium::Ip, _) => self.steer_packet(frame),
            (Medium::Ethernet, Some([0x08, 0x00])) => self.steer_packet(&frame[ETHERNET_HEADER..]),
            (Medium::Ethernet, Some([0x86, 0xdd])) => self.steer_ipv6(&frame[ETHERNET_HEADER..]),
            (Medium::Ethernet, Some([0x08, 0x06])) => Steered::ToAll,
            (Medium::Ethernet, _) => Steered::To(FIRST_SHARD),
        }
    }

    fn steer_packet(&mut self, packet: &[u8]) -> Steered {
        let shard = Head::of(packet).and_then(|head| match head {
            Head { is_fragment: true, .. } => None,
            Head { protocol: TCP, .. } => self.of_segment(&head),
            Head { protocol: ICMP, payload, .. } => self.of_segment(&quoted(payload)?),
            _ => None,
        });
        Steered::To(shard.unwrap_or(FIRST_SHARD))
    }

    fn steer_ipv6(&mut self, packet: &[u8]) -> Steered {
        let Ok(packet) = Ipv6Packet::parse(packet) else { return Steered::To(FIRST_SHARD) };
        let (source, destination) = (packet.header.source, packet.header.destination);
        let ends = match (packet.protocol, packet.payload) {
            _ if packet.fragment.is_some() => None,
            (Protocol::TCP, &[a, b, c, d, ..]) => {
                let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                Some(((source, from), (destination, to)))
            }
            (Protocol::ICMPV6, [NEIGHBOR_DISCOVERY_FIRST..=NEIGHBOR_DISCOVERY_LAST, ..]) => {
                return Steered::ToAll;
            }
            (Protocol::ICMPV6, [0..=127, _, _, _, _, _, _, _, quote @ ..]) => {
                let quote = Ipv6Quote::parse(quote).ok();
                quote.filter(|quote| quote.tcp_seq().is_some()).and_then(|quote| {
                    let (from, to) = quote.ports()?;
                    Some(((quote.header.source, from), (quote.header.destination, to)))
                })
            }
            _ => None,
        };
        let Some((one, other)) = ends else { return Steered::To(FIRST_SHARD) };
        let key = ipv6_key(one, other);
        if self.last_ipv6.0 != key {
            self.last_ipv6 = (key, shard_of(&self.hasher, self.shards, &key));
        }
        Steered::To(self.last_ipv6.1)
    }

    fn of_segment(&mut self, head: &Head<'_>) -> Option<u16> {
        let flow = head.flow_key()?;
        if self.last.0 != flow {
            self.last = (flow, shard_of(&self.hasher, self.shards, &flow));
        }
        Some(self.last.1)
    }
}

/// Returns the number of the shard for a flow key. The keys are distributed evenly over any number
/// of shards.
fn shard_of(hasher: &SipHasher13, shards: NonZeroU16, key: &[u8]) -> u16 {
    if shards == NonZeroU16::MIN {
        return FIRST_SHARD;
    }
    #[allow(clippy::cast_possible_truncation, reason = "less than the number of shards")]
    let shard = (((hasher.hash(key) >> 32) * u64::from(shards.get())) >> 32) as u16;
    shard
}

/// Returns the key of an IPv4 flow: both addresses with their ports, 48 bits each, the lesser
/// first. Packets of both directions thus have equal keys.
fn key(one: u64, other: u64) -> [u8; 12] {
    let (less, more) = (one.min(other), one.max(other));
    let mut key = [0; 12];
    key[..6].copy_from_slice(&less.to_be_bytes()[2..]);
    key[6..].copy_from_slice(&more.to_be_bytes()[2..]);
    key
}

/// Returns the key of an IPv6 flow: both addresses with their ports, the lesser first. Packets of
/// both directions thus have equal keys.
fn ipv6_key(one: (Ipv6Addr, u16), other: (Ipv6Addr, u16)) -> [u8; 36] {
    let (less, more) = (one.min(other), one.max(other));
    let mut key = [0; 36];
    for (place, (address, port)) in key.as_chunks_mut::<18>().0.iter_mut().zip([less, more]) {
        place[..16].copy_from_slice(&address.octets());
        place[16..].copy_from_slice(&port.to_be_bytes());
    }
    key
}

/// The fields of an IPv4 packet that determine the shard. They are not validated here, because the
/// selected shard validates the whole packet.
#[derive(Clone, Copy, Debug)]
struct Head<'a> {
    addresses: [u8; 8],
    /// Whether the packet is a fragment of a datagram.
    is_fragment: bool,
    protocol: u8,
    payload: &'a [u8],
}

impl<'a> Head<'a> {
    pub(crate) fn of(packet: &'a [u8]) -> Option<Self> {
        let &[version, _, _, _, _, _, place_0, place_1, _, protocol, _, _, ref addresses @ ..] =
            packet.first_chunk::<20>()?;
        let length = usize::from(version & 15) * 4;
        if version >> 4 != 4 || length < 20 {
            return None;
        }
        Some(Self {
            addresses: *addresses,
            // The mask selects the flag "more fragments" and the fragment offset. If both are zero,
            // the packet is not a fragment.
            is_fragment: u16::from_be_bytes([place_0, place_1]) & 0x3fff != 0,
            protocol,
            payload: packet.get(length..)?,
        })
    }

    /// Returns the key of the packet's flow, or `None` if the packet is too short to contain the
    /// ports.
    fn flow_key(&self) -> Option<[u8; 12]> {
        let [a, b, c, d, e, f, g, h] = self.addresses;
        let &[i, j, k, l] = self.payload.first_chunk()?;
        let end = |address: [u8; 4], port: [u8; 2]| {
            u64::from(u32::from_be_bytes(address)) << 16 | u64::from(u16::from_be_bytes(port))
        };
        Some(key(end([a, b, c, d], [i, j]), end([e, f, g, h], [k, l])))
    }
}

/// Parses the TCP packet that an ICMP error quotes. Returns `None` if the message is no error, or
/// quotes no TCP packet.
fn quoted(message: &[u8]) -> Option<Head<'_>> {
    // These types of ICMP messages are errors: destination unreachable, source quench, redirect,
    // time exceeded, and parameter problem.
    let is_error = matches!(message.first()?, 3 | 4 | 5 | 11 | 12);
    let head = Head::of(message.get(8..)?)?;
    (is_error && head.protocol == TCP && !head.is_fragment).then_some(head)
}

#[cfg(test)]
mod tests;
