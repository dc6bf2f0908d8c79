//! Tests of malformed and unusual captures.

use super::*;

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// Returns a big-endian section that consists of these blocks.
fn section(blocks: &[Vec<u8>]) -> Vec<u8> {
    let header =
        big_endian_block(0x0A0D_0D0A, &words(&[0x1A2B_3C4D, 0x0001_0000, u32::MAX, u32::MAX]));
    [header, blocks.concat()].concat()
}

/// Returns an Interface Description Block with these options.
fn interface(options: &[u8]) -> Vec<u8> {
    big_endian_block(1, &[&words(&[0x0001_0000, 0]), options].concat())
}

/// Returns an Enhanced Packet Block of interface 0 at time 0. Its length fields say that `captured`
/// bytes of packet follow, but only the bytes `after` do.
fn enhanced(captured: u32, after: &[u8]) -> Vec<u8> {
    big_endian_block(6, &[&words(&[0, 0, 0, captured, captured]), after].concat())
}

/// Returns the description of the damage that the reader reports for the file.
fn damage(file: &[u8]) -> &'static str {
    match read_all(file) {
        Err(CaptureError::Damaged { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_impossible_block_length_is_refused_before_reading_the_block() {
    for length in [0, 8, 11, 14, u32::MAX] {
        for kind in [1, 2, 3, 6, 0x0BAD] {
            let what = damage(&section(&[words(&[kind, length])]));
            assert_eq!(what, "a block has an impossible length", "{length}");
        }
    }
    for kind in [1, 2, 3, 6] {
        let what = damage(&section(&[words(&[kind, (2 << 20) + 4])]));
        assert_eq!(what, "a block is said to have more than two million bytes");
        let largest = section(&[words(&[kind, 2 << 20])]);
        assert!(matches!(read_all(&largest), Err(CaptureError::CutShort { .. })));
    }
}

#[test]
fn a_block_with_different_lengths_is_refused() {
    let mut header = section(&[]);
    *header.last_mut().unwrap() += 4;
    assert_eq!(damage(&header), "the two lengths of a block differ");
    for block in [interface(&[]), big_endian_block(0x0BAD, &[])] {
        let mut file = section(&[block]);
        *file.last_mut().unwrap() += 4;
        assert_eq!(damage(&file), "the two lengths of a block differ");
    }
}

#[test]
fn a_malformed_section_header_is_refused() {
    let with = |at: usize, byte: u8| {
        let mut file = section(&[]);
        file[at] = byte;
        file
    };
    for length in [24, 30] {
        assert_eq!(damage(&with(7, length)), "a section's header has an impossible length");
    }
    assert_eq!(damage(&with(8, 0)), "a section has no byte order");
    assert_eq!(damage(&with(13, 2)), "a section's version is not 1");
}

#[test]
fn interfaces_of_a_section_do_not_exist_in_the_next() {
    let packet = || enhanced(0, &[]);
    let file = [section(&[interface(&[]), packet()]), section(&[packet()])].concat();
    assert_eq!(damage(&file), "a packet is of an interface that is not described");
}

#[test]
fn a_malformed_interface_is_refused() {
    let short = big_endian_block(1, &[0; 4]);
    assert_eq!(damage(&section(&[short])), "the description of an interface is too short");
    let counting_by = |power: u8| interface(&[0, 9, 0, 1, power, 0, 0, 0]);
    let what = "an interface counts time in an impossible unit";
    assert_eq!(damage(&section(&[counting_by(39)])), what);
    assert_eq!(read_all(&section(&[counting_by(38), counting_by(0xFF)])).unwrap().len(), 0);
}

#[test]
fn too_many_interfaces_are_refused() {
    let mut file = section(&[interface(&[]).repeat(65_536)]);
    assert!(read_all(&file).unwrap().is_empty());
    file.extend(interface(&[]));
    assert_eq!(damage(&file), "a section has more than 65536 interfaces");
}

#[test]
fn a_packet_beyond_its_block_is_refused() {
    let what = |packet: Vec<u8>| damage(&section(&[interface(&[]), packet]));
    for (kind, header) in [(2, 16), (3, 0), (6, 16)] {
        assert_eq!(
            what(big_endian_block(kind, &vec![0; header])),
            "the block of a packet is too short"
        );
    }
    for captured in [5, (1 << 20) + 1, u32::MAX] {
        assert_eq!(what(enhanced(captured, &[0; 4])), "a packet is longer than its block");
    }
    assert_eq!(what(big_endian_block(3, &words(&[5, 0]))), "a packet is longer than its block");
    let not_described = "a packet is of an interface that is not described";
    assert_eq!(damage(&section(&[big_endian_block(3, &words(&[0]))])), not_described);
    assert_eq!(damage(&section(&[enhanced(0, &[])])), not_described);
}

#[test]
fn the_largest_packet_is_read_and_a_larger_one_is_refused() {
    let bytes = vec![7; (1 << 20) + 4];
    let file = section(&[interface(&[]), enhanced(1 << 20, &bytes)]);
    assert_eq!(read_all(&file).unwrap(), [&bytes[..1 << 20]]);
    let file = section(&[interface(&[]), enhanced((1 << 20) + 1, &bytes)]);
    assert_eq!(damage(&file), "a packet is longer than its block");
}

#[test]
fn an_obsolete_packet_block_is_read() {
    // The fixed part of an obsolete Packet Block begins with a 16-bit interface number (here 1) and
    // a 16-bit drop count. An Enhanced Packet Block has a 32-bit interface number in their place.
    let packet = big_endian_block(2, &words(&[0x0001_FFFF, 0, 5, 2, 60, 0x0809_0000]));
    let file = section(&[interface(&[]), interface(&[]), packet]);
    let mut reader = CaptureReader::new(&*file).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    assert_eq!((packet.interface, packet.bytes, packet.original_length), (1, &[8, 9][..], 60));
    assert_eq!(packet.time, Some(Duration::from_micros(5)), "microseconds by default");
}

#[test]
fn a_simple_packet_is_whole_without_a_snap_length() {
    let file = section(&[interface(&[]), big_endian_block(3, &words(&[3, 0x0102_0300]))]);
    assert_eq!(read_all(&file).unwrap(), [[1, 2, 3]]);
}

#[test]
fn a_time_before_1970_is_read_as_1970() {
    let ten_seconds_less = [&[0, 14, 0, 8][..], &(-10_i64).to_be_bytes()].concat();
    let file = section(&[interface(&ten_seconds_less), enhanced(0, &[])]);
    let mut reader = CaptureReader::new(&*file).unwrap();
    assert_eq!(reader.next_packet().unwrap().unwrap().time, Some(Duration::ZERO));
}

#[test]
fn a_direction_is_read_among_other_options_but_not_after_the_last() {
    let direction = |options: &[u32]| {
        let file =
            section(&[interface(&[]), enhanced(2, &[&[8, 9, 0, 0][..], &words(options)].concat())]);
        CaptureReader::new(&*file).unwrap().next_packet().unwrap().unwrap().direction
    };
    let comment = [0x0001_0005, 0x6162_6364, 0x6500_0000];
    assert_eq!(direction(&[&comment[..], &[0x0002_0004, 1]].concat()), Some(Direction::Received));
    assert_eq!(
        direction(&[&comment[..], &[0x0002_0004, 0xFFFF_FFFE]].concat()),
        Some(Direction::Sent)
    );
    assert_eq!(direction(&[0x0002_0004, 3]), None);
    assert_eq!(direction(&[0, 0x0002_0004, 1]), None, "after the end of the options");
    assert_eq!(direction(&[0x0001_FFFF, 0x0002_0004, 1]), None, "an option longer than the block");
    assert_eq!(direction(&[0x0002_0002, 0x0001_0000]), None, "too short for a direction");
}

#[test]
fn unknown_blocks_of_any_length_are_skipped() {
    let packet = enhanced(4, b"four");
    for length in [0, 4_092, 4_096, 4_100, 3 << 20] {
        let unknown = big_endian_block(0x0BAD, &vec![6; length]);
        let file = section(&[interface(&[]), unknown, packet.clone()]);
        assert_eq!(read_all(&file).unwrap(), [b"four"]);
    }
}

#[test]
fn a_malformed_pcap_file_is_refused() {
    let sound = old_capture(0xA1B2_C3D4, 0, u32::to_be_bytes, u16::to_be_bytes);
    let with = |at: usize, bytes: [u8; 4]| {
        let mut file = sound.clone();
        file[at..at + 4].copy_from_slice(&bytes);
        file
    };
    assert_eq!(damage(&with(4, [0, 3, 0, 4])), "its version is not 2");
    let too_long = (1_u32 << 20) + 1;
    assert_eq!(
        damage(&with(32, too_long.to_be_bytes())),
        "a packet is said to have more than a million bytes"
    );
    let largest = with(32, (too_long - 1).to_be_bytes());
    assert!(matches!(read_all(&largest), Err(CaptureError::CutShort { .. })));
}

#[test]
fn frame_check_bits_of_pcap_are_not_part_of_the_link_type() {
    let mut file = old_capture(0xA1B2_C3D4, 0, u32::to_be_bytes, u16::to_be_bytes);
    file[20..24].copy_from_slice(&[0x24, 0, 0, 101]);
    let mut reader = CaptureReader::new(&*file).unwrap();
    assert_eq!(reader.next_packet().unwrap().unwrap().link_type, LinkType::Ip);
}

/// A source whose reads are interrupted once before each byte.
struct Interrupted<'a>(&'a [u8], bool);

impl io::Read for Interrupted<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(&mut bytes[..1]) }
    }
}

#[test]
fn an_interrupted_source_of_single_bytes_is_read_completely() {
    let file = small_capture();
    let mut reader = CaptureReader::new(Interrupted(&file, false)).unwrap();
    for bytes in [&ARP[..], &UDP, &UDP[14..]] {
        assert_eq!(reader.next_packet().unwrap().unwrap().bytes, bytes);
    }
    assert!(reader.next_packet().unwrap().is_none());
}
