//! A model of NFS over UDP, limited to its load on a wire and on a NIC. A client reads blocks of a
//! file; a server answers each request with a fragmented datagram, and the loss of one fragment
//! loses the datagram. linerate's host neither sends nor reassembles fragments, so both ends are
//! raw-frame generators.

mod client;
mod server;

pub(crate) use client::{NfsClient, NfsClientParameters};
pub(crate) use server::{NfsServer, NfsServerParameters};

use super::Header;

/// IEEE 802 local experimental EtherType 2: requests, and fragments of answers.
const KIND: u16 = 0x88b6;
/// Bytes of the UDP, RPC and NFS headers in front of the data of an answer: 8 + 100.
const ANSWER_HEADERS: usize = 108;
/// Bytes of a request, as a frame without its check sequence: 14 + 20 + 8 + 100.
const REQUEST: usize = 142;
/// Payload bytes of a fragment: a multiple of eight, at most the 1,500 bytes of Ethernet without
/// the IPv4 header.
const FRAGMENT: usize = 1_480;
/// Bytes of the Ethernet and IPv4 headers of a fragment.
const FRAGMENT_HEADERS: usize = 14 + 20;

/// Bytes of the longest frame of either end.
pub(crate) const LONGEST: usize = FRAGMENT_HEADERS + FRAGMENT;

/// Returns the fragments of an answer with this much data.
const fn fragments(data: usize) -> usize {
    (data + ANSWER_HEADERS).div_ceil(FRAGMENT)
}

/// Returns the bytes of the frame of one fragment.
fn fragment_length(data: usize, index: usize) -> usize {
    let left = (data + ANSWER_HEADERS).saturating_sub(index * FRAGMENT);
    FRAGMENT_HEADERS + left.min(FRAGMENT)
}

/// Returns whether a frame belongs to this protocol and is addressed to this MAC address.
fn is_for(frame: &[u8], number: usize) -> bool {
    Header::read(frame).is_some_and(|header| header.kind == KIND && header.to == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_one_to_six_fragments() {
        assert_eq!([1_024, 2_048, 4_096, 8_192].map(fragments), [1, 2, 3, 6]);
        let bytes: usize = (0..3).map(|index| fragment_length(4_096, index)).sum();
        assert_eq!(bytes, 4_096 + ANSWER_HEADERS + 3 * FRAGMENT_HEADERS);
    }
}
