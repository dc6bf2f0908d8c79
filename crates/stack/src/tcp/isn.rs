//! Initial sequence numbers that a third party cannot guess (RFC 6528), and the offset that hides
//! the clock in timestamps (RFC 7323 §5.4).

use crate::demux::Flow;
use crate::keys::Keys;
use core::net::{Ipv4Addr, SocketAddrV4};
use linerate_units::Instant;
use linerate_wire::SeqNum;
use siphasher::sip::SipHasher24;

/// Where the numbers of connections begin.
#[derive(Debug)]
pub(crate) struct InitialNumbers {
    sequence: SipHasher24,
    timestamp: SipHasher24,
    /// The two hosts whose offset was asked for last, and that offset.
    last_offset: Option<([Ipv4Addr; 2], u32)>,
}

impl InitialNumbers {
    /// Numbers under the secrets of a host.
    pub(crate) fn new(keys: &Keys) -> Self {
        Self {
            sequence: keys.visible("initial sequence numbers"),
            timestamp: keys.visible("timestamps"),
            last_offset: None,
        }
    }

    /// ISN = M + F(localip, localport, remoteip, remoteport, secretkey), where M counts every four
    /// microseconds: the numbers of one four-tuple only ever grow, so that a new incarnation of it
    /// does not take old segments for its own, and say nothing about those of another.
    //= rfc6528#3
    pub(crate) fn sequence(&self, now: Instant, flow: Flow) -> SeqNum {
        let (one, other) = self.sequence.keys();
        let hash = flow.hash_by(SipHasher24::new_with_keys(one, other));
        SeqNum::new(low_half(now.as_nanos() / 4_000)) + low_half(hash)
    }

    /// What is added to the clock in timestamps. It is the same for all connections of two hosts,
    /// so that the timestamps of a new incarnation are later than those of the one before it.
    pub(crate) fn timestamp_offset(&mut self, local: SocketAddrV4, remote: SocketAddrV4) -> u32 {
        let hosts = [*local.ip(), *remote.ip()];
        if let Some((_, offset)) = self.last_offset.filter(|last| last.0 == hosts) {
            return offset;
        }
        let mut key = [0; 8];
        key[..4].copy_from_slice(&local.ip().octets());
        key[4..].copy_from_slice(&remote.ip().octets());
        let offset = low_half(self.timestamp.hash(&key));
        self.last_offset = Some((hosts, offset));
        offset
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
const fn low_half(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Duration;

    fn at(address: u8, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, address), port)
    }

    #[test]
    fn the_numbers_of_a_four_tuple_grow_by_one_in_four_microseconds() {
        let numbers = InitialNumbers::new(&Keys::new([1; 32]));
        let begin = Instant::ZERO + Duration::from_secs(9_000);
        let first = numbers.sequence(begin, Flow::new(at(1, 80), at(2, 5_000)));
        let later =
            numbers.sequence(begin + Duration::from_millis(1), Flow::new(at(1, 80), at(2, 5_000)));
        assert_eq!(later - first, 250);
    }

    #[test]
    fn another_four_tuple_or_another_secret_gives_unrelated_numbers() {
        let numbers = InitialNumbers::new(&Keys::new([1; 32]));
        let other = InitialNumbers::new(&Keys::new([2; 32]));
        let number = numbers.sequence(Instant::ZERO, Flow::new(at(1, 80), at(2, 5_000)));
        assert_ne!(number, numbers.sequence(Instant::ZERO, Flow::new(at(1, 80), at(2, 5_001))));
        assert_ne!(number, numbers.sequence(Instant::ZERO, Flow::new(at(2, 5_000), at(1, 80))));
        assert_ne!(number, other.sequence(Instant::ZERO, Flow::new(at(1, 80), at(2, 5_000))));
    }

    #[test]
    fn the_timestamps_of_two_hosts_have_one_offset_whatever_the_ports() {
        let mut numbers = InitialNumbers::new(&Keys::new([1; 32]));
        let offset = numbers.timestamp_offset(at(1, 80), at(2, 5_000));
        assert_eq!(offset, numbers.timestamp_offset(at(1, 81), at(2, 9)));
        assert_ne!(offset, numbers.timestamp_offset(at(1, 80), at(3, 5_000)));
        assert_ne!(
            offset,
            numbers.timestamp_offset(at(4, 80), at(2, 5_000)),
            "of another address of ours"
        );
        assert_eq!(offset, numbers.timestamp_offset(at(1, 80), at(2, 5_000)));
    }
}
