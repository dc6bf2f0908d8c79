//! NFS over UDP, as far as a wire and a card see it: a client asks for pieces of a file, a server answers each with a
//! datagram in fragments, and of a datagram with a hole nothing is left. linerate's host neither makes nor takes
//! fragments, so both ends speak in frames here.

mod client;
mod server;

pub(crate) use client::{NfsClient, NfsClientParameters};
pub(crate) use server::{NfsServer, NfsServerParameters};

use super::Header;

/// An EtherType for tests (IEEE 802 local experimental): requests, and fragments of answers.
const KIND: u16 = 0x88b6;
/// Bytes of IPv4 and UDP headers, RPC and NFS in front of the data of an answer: 20 + 8 + 100.
const ANSWER_HEADERS: usize = 108;
/// Bytes of a request, as a frame without its check sequence: 14 + 20 + 8 + 100.
const REQUEST: usize = 142;
/// What a fragment carries: a multiple of eight, and no more than an Ethernet's 1,500 less the header of IPv4.
const FRAGMENT: usize = 1_480;
/// Ethernet and IPv4 in front of a fragment.
const FRAGMENT_HEADERS: usize = 14 + 20;

/// Bytes of the longest frame of either end.
pub(crate) const LONGEST: usize = FRAGMENT_HEADERS + FRAGMENT;

/// How many fragments an answer with so much data has.
const fn fragments(data: usize) -> usize {
    (data + ANSWER_HEADERS).div_ceil(FRAGMENT)
}

/// How long the frame of one of them is.
fn fragment_length(data: usize, index: usize) -> usize {
    let left = (data + ANSWER_HEADERS).saturating_sub(index * FRAGMENT);
    FRAGMENT_HEADERS + left.min(FRAGMENT)
}

/// Is a frame one of these, for this station?
fn is_for(frame: &[u8], number: usize) -> bool {
    Header::read(frame).is_some_and(|header| header.kind == KIND && header.to == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_two_kilobytes_has_two_fragments_and_one_of_eight_has_six() {
        assert_eq!([1_024, 2_048, 4_096, 8_192].map(fragments), [1, 2, 3, 6]);
        let bytes: usize = (0..3).map(|index| fragment_length(4_096, index)).sum();
        assert_eq!(bytes, 4_096 + ANSWER_HEADERS + 3 * FRAGMENT_HEADERS);
    }
}
