//! Which shard of a host a frame is for, where several share a link. Each is a [`crate::Stack`] of its own
//! and knows nothing of the others; what belongs together has to meet in one.
//!
//! | what | goes to |
//! |---|---|
//! | a TCP segment | the shard of its flow: a keyed hash of both ends, the same for both directions |
//! | an ICMP error about a segment of ours | the shard of the flow that it quotes |
//! | a fragment | the shard of its packet, by what RFC 791 reassembles by |
//! | ARP | all shards: each keeps its own neighbours, and only the first one answers |
//! | everything else: UDP, echoes, what is broken | the first shard |
//!
//! Fragments come together and no further: their packet has to be steered anew by whoever reassembles it,
//! and this host does not.

use crate::keys::Keys;
use crate::link::Medium;
use core::net::SocketAddrV4;
use core::num::NonZeroU16;
use siphasher::sip::SipHasher13;

/// The number of the shard that takes what belongs to no connection.
pub const FIRST_SHARD: u16 = 0;

const ETHERNET_HEADER: usize = 14;
const ICMP: u8 = 1;
const TCP: u8 = 6;

/// Which of how many shards of a host a stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, less than `count`.
    pub number: u16,
    /// How many there are.
    pub count: NonZeroU16,
}

impl Shard {
    /// The one shard of a host that has no others.
    pub const ONLY: Self = Self { number: FIRST_SHARD, count: NonZeroU16::MIN };

    /// Is this the shard that answers for the host as a whole?
    #[must_use]
    pub const fn is_first(self) -> bool {
        self.number == FIRST_SHARD
    }
}

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// The shard of this number.
    To(u16),
    /// Every shard.
    ToAll,
}

/// Decides for the shards of one host. All of them, and their links, have to be made with the same seed.
#[derive(Clone, Debug)]
pub struct Steering {
    hasher: SipHasher13,
    shards: NonZeroU16,
    /// The flow of the segment before, and its shard: bulk data comes in trains.
    last: ([u8; 12], u16),
}

impl Steering {
    /// The decision among `shards`, under the secrets of a host: who cannot guess them cannot send all
    /// flows to one shard.
    #[must_use]
    pub fn new(seed: [u8; 32], shards: NonZeroU16) -> Self {
        Self::with_keys(&Keys::new(seed), shards)
    }

    pub(crate) fn with_keys(keys: &Keys, shards: NonZeroU16) -> Self {
        let hasher = keys.table("shards");
        let nobody = [0; 12];
        Self { hasher, shards, last: (nobody, shard_of(&hasher, shards, &nobody)) }
    }

    /// Among how many is decided.
    #[must_use]
    pub const fn shards(&self) -> NonZeroU16 {
        self.shards
    }

    /// The shard of the connection between two ends, whichever of them is ours.
    #[inline]
    #[must_use]
    pub fn of_connection(&self, one: SocketAddrV4, other: SocketAddrV4) -> u16 {
        if self.shards == NonZeroU16::MIN { FIRST_SHARD } else { self.of_ends(one, other) }
    }

    fn of_ends(&self, one: SocketAddrV4, other: SocketAddrV4) -> u16 {
        let [one, other] =
            [one, other].map(|end| u64::from(end.ip().to_bits()) << 16 | u64::from(end.port()));
        shard_of(&self.hasher, self.shards, &key(one, other))
    }

    /// Whom a frame that has arrived is for.
    pub fn steer(&mut self, medium: Medium, frame: &[u8]) -> Steered {
        if self.shards == NonZeroU16::MIN {
            return Steered::To(FIRST_SHARD);
        }
        match (medium, frame.get(12..ETHERNET_HEADER)) {
            (Medium::Ip, _) => self.steer_packet(frame),
            (Medium::Ethernet, Some([0x08, 0x00])) => self.steer_packet(&frame[ETHERNET_HEADER..]),
            (Medium::Ethernet, Some([0x08, 0x06])) => Steered::ToAll,
            (Medium::Ethernet, _) => Steered::To(FIRST_SHARD),
        }
    }

    fn steer_packet(&mut self, packet: &[u8]) -> Steered {
        let shard = Head::of(packet).and_then(|head| match head {
            Head { fragment: true, .. } => {
                Some(shard_of(&self.hasher, self.shards, &head.reassembly_key()))
            }
            Head { protocol: TCP, .. } => self.of_segment(&head),
            Head { protocol: ICMP, payload, .. } => self.of_segment(&quoted(payload)?),
            _ => None,
        });
        Steered::To(shard.unwrap_or(FIRST_SHARD))
    }

    fn of_segment(&mut self, head: &Head<'_>) -> Option<u16> {
        let flow = head.flow_key()?;
        if self.last.0 != flow {
            self.last = (flow, shard_of(&self.hasher, self.shards, &flow));
        }
        Some(self.last.1)
    }
}

/// Every shard gets as many of the hashes as any other, whatever their number.
fn shard_of(hasher: &SipHasher13, shards: NonZeroU16, key: &[u8; 12]) -> u16 {
    if shards == NonZeroU16::MIN {
        return FIRST_SHARD;
    }
    #[allow(clippy::cast_possible_truncation, reason = "less than the number of shards")]
    let shard = (((hasher.hash(key) >> 32) * u64::from(shards.get())) >> 32) as u16;
    shard
}

/// Both ends, 48 bits each, in an order that does not depend on the direction.
fn key(one: u64, other: u64) -> [u8; 12] {
    let (less, more) = (one.min(other), one.max(other));
    let mut key = [0; 12];
    key[..6].copy_from_slice(&less.to_be_bytes()[2..]);
    key[6..].copy_from_slice(&more.to_be_bytes()[2..]);
    key
}

/// What is looked at of an IPv4 packet. Whether it is a valid one is for the shard to judge.
#[derive(Clone, Copy, Debug)]
struct Head<'a> {
    addresses: [u8; 8],
    identification: [u8; 2],
    /// Is it a part of a packet, the first one or a later one?
    fragment: bool,
    protocol: u8,
    payload: &'a [u8],
}

impl<'a> Head<'a> {
    pub(crate) fn of(packet: &'a [u8]) -> Option<Self> {
        let &[
            version,
            _,
            _,
            _,
            id_0,
            id_1,
            place_0,
            place_1,
            _,
            protocol,
            _,
            _,
            ref addresses @ ..,
        ] = packet.first_chunk::<20>()?;
        let length = usize::from(version & 15) * 4;
        if version >> 4 != 4 || length < 20 {
            return None;
        }
        Some(Self {
            addresses: *addresses,
            identification: [id_0, id_1],
            // "More fragments", or an offset.
            fragment: u16::from_be_bytes([place_0, place_1]) & 0x3fff != 0,
            protocol,
            payload: packet.get(length..)?,
        })
    }

    /// Both addresses, and the ports behind the header; `None` without ports.
    fn flow_key(&self) -> Option<[u8; 12]> {
        let [a, b, c, d, e, f, g, h] = self.addresses;
        let &[i, j, k, l] = self.payload.first_chunk()?;
        let end = |address: [u8; 4], port: [u8; 2]| {
            u64::from(u32::from_be_bytes(address)) << 16 | u64::from(u16::from_be_bytes(port))
        };
        Some(key(end([a, b, c, d], [i, j]), end([e, f, g, h], [k, l])))
    }

    //= rfc791#3.2
    fn reassembly_key(&self) -> [u8; 12] {
        let mut key = [0; 12];
        key[..8].copy_from_slice(&self.addresses);
        key[8..10].copy_from_slice(&self.identification);
        key[10] = self.protocol;
        key
    }
}

/// The head of the segment that an ICMP error quotes.
fn quoted(message: &[u8]) -> Option<Head<'_>> {
    // Unreachable, source quench, redirect, time exceeded, parameter problem.
    let is_error = matches!(message.first()?, 3 | 4 | 5 | 11 | 12);
    let head = Head::of(message.get(8..)?)?;
    (is_error && head.protocol == TCP && !head.fragment).then_some(head)
}

#[cfg(test)]
mod tests;
