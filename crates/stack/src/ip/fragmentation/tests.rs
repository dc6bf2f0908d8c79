use super::*;
use alloc::vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use linerate_wire::Ipv6Content;

const LOCALHOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

/// Returns the fragments of a packet. Returns an empty vector if the packet cannot be fragmented.
fn fragments(packet: &[u8], mtu: usize) -> Vec<Vec<u8>> {
    let mut fragmenter = Fragmenter::new();
    fragmenter.begin(packet, MacAddress::ZERO, mtu, 0x12_3456);
    let mut fragments = Vec::new();
    while fragmenter.is_busy() {
        let mut frame = vec![0; mtu];
        match fragmenter.write_next(&mut frame) {
            NextFragment::Written(length) | NextFragment::Last(length) => {
                frame.truncate(length);
                fragments.push(frame);
            }
            NextFragment::Failed => return Vec::new(),
        }
    }
    fragments
}

#[test]
fn ipv4_packets_are_split_at_multiples_of_eight_bytes() {
    let header =
        Ipv4Header { dont_fragment: false, ..Ipv4Header::new(LOCALHOST, LOCALHOST, Protocol::UDP) };
    for (length, mtu, count) in
        [(8_000, 1_500, 6), (1_480, 1_500, 1), (1_481, 1_500, 2), (60_008, 576, 109)]
    {
        let mut packet = vec![0; 20];
        header.emit(length, &mut packet);
        packet.extend(payload(length));
        let fragments = fragments(&packet, mtu);
        assert_eq!(fragments.len(), count);
        let mut whole = Vec::new();
        for (index, bytes) in fragments.iter().enumerate() {
            let part = Ipv4Packet::parse(bytes).unwrap();
            assert_eq!(usize::from(part.header.fragment_offset), whole.len());
            assert_eq!(part.header.more_fragments, index + 1 < count);
            assert_eq!(part.header.identification, 0x3456);
            whole.extend_from_slice(part.payload);
        }
        assert_eq!(whole, payload(length));
    }
}

#[test]
fn later_ipv4_fragments_have_the_options_that_are_copied() {
    let mut packet = vec![0; 32];
    let options = [7, 7, 4, 0, 0, 0, 0, 0x94, 4, 0, 0, 0];
    let header = Ipv4Header::new(LOCALHOST, LOCALHOST, Protocol::UDP);
    header.emit_with_options(&options, 100, &mut packet);
    packet.extend(payload(100));
    let fragments = fragments(&packet, 80);
    let options_of = |index: usize| Ipv4Packet::parse(&fragments[index]).unwrap().options.to_vec();
    assert_eq!((options_of(0), options_of(1)), (options.to_vec(), vec![0x94, 4, 0, 0]));
    let whole: Vec<u8> = fragments
        .iter()
        .flat_map(|bytes| Ipv4Packet::parse(bytes).unwrap().payload.to_vec())
        .collect();
    assert_eq!(whole, payload(100));
}

#[test]
fn ipv6_packets_repeat_the_headers_for_the_path() {
    // A Hop-by-Hop Options header, which every fragment repeats, and a Destination Options header,
    // which is fragmented like the payload.
    let before = [60, 0, 1, 4, 0, 0, 0, 0];
    let behind = [17, 0, 1, 4, 0, 0, 0, 0];
    let header = Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, Protocol::HOP_BY_HOP);
    let mut packet = vec![0; 40];
    header.emit(16 + 3_000, &mut packet);
    packet.extend([before, behind].concat());
    packet.extend(payload(3_000));
    let fragments = fragments(&packet, 1_280);
    assert_eq!(fragments.len(), 3);
    let mut whole = Vec::new();
    for bytes in &fragments {
        assert_eq!(bytes[40], 44);
        assert_eq!(bytes[41..48], before[1..]);
        let Ok(Ipv6Content::Fragment(part)) = Ipv6Packet::examine(bytes) else { panic!() };
        assert_eq!((part.at, usize::from(part.fragment.offset)), (48, whole.len()));
        assert_eq!((part.next, part.fragment.identification), (Protocol::new(60), 0x12_3456));
        whole.extend_from_slice(part.payload);
    }
    assert_eq!(whole, [&behind[..], &payload(3_000)].concat());
}

#[test]
fn a_packet_with_headers_beyond_the_mtu_cannot_be_fragmented() {
    let mut packet = vec![0; 40];
    let header = Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, Protocol::UDP);
    header.emit(100, &mut packet);
    packet.extend(payload(100));
    assert!(fragments(&packet, 55).is_empty());
    assert_eq!(fragments(&packet, 56).len(), 13);
}
