//! Generation of unpredictable initial sequence numbers (RFC 6528) and timestamp offsets (RFC 7323
//! §5.4).

use crate::demux::Flow;
use crate::demux::flow::Hosts;
use crate::keys::Keys;
use linerate_units::Instant;
use linerate_wire::SeqNum;
use siphasher::sip::SipHasher24;

/// The generator of initial sequence numbers and timestamp offsets.
#[derive(Debug)]
pub(crate) struct IsnGenerator {
    sequence: SipHasher24,
    timestamp: SipHasher24,
}

impl IsnGenerator {
    /// Creates the generator with the keys of a host.
    pub(crate) fn new(keys: &Keys) -> Self {
        Self {
            sequence: keys.visible("initial sequence numbers"),
            timestamp: keys.visible("timestamps"),
        }
    }

    /// Returns the initial sequence number of a connection: M + F(localip, localport, remoteip,
    /// remoteport, secretkey), where M is a clock with a tick of 4 µs. The numbers of one
    /// four-tuple increase with time, so that a new incarnation of the connection does not accept
    /// old segments. These numbers reveal nothing about the numbers of other four-tuples.
    //= rfc6528#3
    pub(crate) fn sequence(&self, now: Instant, flow: &Flow) -> SeqNum {
        let (one, other) = self.sequence.keys();
        let hash = flow.hash_by(SipHasher24::new_with_keys(one, other));
        SeqNum::new(low_half(now.as_nanos() / 4_000)) + low_half(hash)
    }

    /// Returns the offset of the timestamp clock between two hosts. It does not depend on ports or
    /// on time. So a new incarnation of a connection has later timestamps than the previous
    /// incarnation.
    pub(crate) fn timestamp_offset(&self, hosts: &Hosts) -> u32 {
        let (remote, local) = hosts.bytes().split_at(hosts.bytes().len() / 2);
        let mut key = [0; 32];
        key[..local.len()].copy_from_slice(local);
        key[local.len()..][..remote.len()].copy_from_slice(remote);
        low_half(self.timestamp.hash(&key[..hosts.bytes().len()]))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
const fn low_half(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, SocketAddr};
    use linerate_units::Duration;

    fn at(address: u8, port: u16) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::new(192, 0, 2, address).into(), port)
    }

    fn offset_of(isn: &IsnGenerator, local: SocketAddr, remote: SocketAddr) -> u32 {
        isn.timestamp_offset(&Flow::new(local, remote).hosts)
    }

    #[test]
    fn the_isn_of_a_four_tuple_grows_by_one_in_four_microseconds() {
        let isn = IsnGenerator::new(&Keys::new([1; 32]));
        let begin = Instant::ZERO + Duration::from_secs(9_000);
        let first = isn.sequence(begin, &Flow::new(at(1, 80), at(2, 5_000)));
        let later =
            isn.sequence(begin + Duration::from_millis(1), &Flow::new(at(1, 80), at(2, 5_000)));
        assert_eq!(later - first, 250);
    }

    #[test]
    fn another_four_tuple_or_seed_gives_unrelated_numbers() {
        let isn = IsnGenerator::new(&Keys::new([1; 32]));
        let other = IsnGenerator::new(&Keys::new([2; 32]));
        let number = isn.sequence(Instant::ZERO, &Flow::new(at(1, 80), at(2, 5_000)));
        assert_ne!(number, isn.sequence(Instant::ZERO, &Flow::new(at(1, 80), at(2, 5_001))));
        assert_ne!(number, isn.sequence(Instant::ZERO, &Flow::new(at(2, 5_000), at(1, 80))));
        assert_ne!(number, other.sequence(Instant::ZERO, &Flow::new(at(1, 80), at(2, 5_000))));
    }

    #[test]
    fn two_hosts_have_one_timestamp_offset_for_all_ports() {
        let isn = IsnGenerator::new(&Keys::new([1; 32]));
        let offset = offset_of(&isn, at(1, 80), at(2, 5_000));
        assert_eq!(offset, offset_of(&isn, at(1, 81), at(2, 9)));
        assert_ne!(offset, offset_of(&isn, at(1, 80), at(3, 5_000)));
        assert_ne!(offset, offset_of(&isn, at(4, 80), at(2, 5_000)), "another local address");
        assert_eq!(offset, offset_of(&isn, at(1, 80), at(2, 5_000)));
    }
}
