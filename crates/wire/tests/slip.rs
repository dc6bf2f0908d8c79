//! Tests of SLIP (RFC 1055).

use linerate_wire::{SlipDecoder, slip_bytes};
use proptest::prelude::*;

fn decode(bytes: &[u8], room: usize) -> (Vec<Vec<u8>>, u64) {
    let mut decoder = SlipDecoder::new(vec![0; room]);
    let packets = bytes.iter().filter_map(|&byte| decoder.take(byte).map(|packet| packet.to_vec()));
    (packets.collect(), decoder.discarded())
}

#[test]
fn end_and_escape_bytes_are_escaped() {
    let line: Vec<u8> = slip_bytes(&[1, 192, 2, 219, 3]).collect();
    assert_eq!(line, [192, 1, 219, 220, 2, 219, 221, 3, 192]);
}

#[test]
fn noise_before_a_packet_becomes_a_packet_of_its_own() {
    let line: Vec<u8> = [9, 9].into_iter().chain(slip_bytes(&[1, 2])).collect();
    assert_eq!(decode(&line, 10), (vec![vec![9, 9], vec![1, 2]], 0));
}

#[test]
fn long_and_damaged_packets_are_counted_and_the_next_one_is_received() {
    let long = slip_bytes(&[7; 11]);
    let line: Vec<u8> = long.chain([1, 219, 5, 192, 2, 219, 192]).chain(slip_bytes(&[3])).collect();
    assert_eq!(decode(&line, 10), (vec![vec![3]], 3));
}

proptest! {
    #[test]
    fn packets_survive_encoding_and_decoding(packets: Vec<Vec<u8>>) {
        let line: Vec<u8> = packets.iter().flat_map(|packet| slip_bytes(packet)).collect();
        let packets: Vec<_> = packets.into_iter().filter(|packet| !packet.is_empty()).collect();
        prop_assert_eq!(decode(&line, 200), (packets, 0));
    }
}
