//! Tests of reading and writing captures.

mod disk;
mod malformed;

use super::*;
use linerate_stack::{Capabilities, Medium};
use linerate_units::{Duration, Rate};
use std::cell::Cell;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const NOW: Duration = Duration::from_nanos(1_767_225_600_123_456_789);
const ETHERNET: Capabilities = Capabilities::new(Medium::Ethernet, 1_500);

/// An Ethernet frame with a valid ARP request. The constant after it is an Ethernet frame with a
/// valid UDP datagram.
const ARP: [u8; 42] = [
    255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1,
    10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
];
const UDP: [u8; 45] = [
    2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 31, 0, 1, 0, 0, 64, 17, 0x66, 0xCB, 10,
    0, 0, 1, 10, 0, 0, 2, 0x30, 0x39, 0, 9, 0, 11, 0, 0, b'a', b'b', b'c',
];

fn record(
    writer: &mut CaptureWriter<impl Sink>,
    interface: u32,
    nanos: u64,
    direction: Direction,
    bytes: &[u8],
) {
    let time = NOW + Duration::from_nanos(nanos);
    writer.write(&Record { interface, time, direction, bytes });
}

/// Returns a capture with two packets of one interface and one packet of another interface.
fn small_capture() -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = CaptureWriter::new(&mut file);
    let rate = Some(Rate::from_bits_per_second(10_000_000));
    let first = writer.add_interface("left", &Capabilities { rate, ..ETHERNET });
    let second = writer.add_interface("tun", &Capabilities { medium: Medium::Ip, ..ETHERNET });
    record(&mut writer, first, 0, Direction::Received, &ARP);
    record(&mut writer, first, 1, Direction::Sent, &UDP);
    record(&mut writer, second, 2, Direction::Sent, &UDP[14..]);
    assert_eq!(writer.packets(), 3);
    writer.finish().unwrap();
    file
}

/// Reads the capture and returns all its packets, or the first error.
fn read_all(file: &[u8]) -> Result<Vec<Vec<u8>>, CaptureError> {
    let mut reader = CaptureReader::new(file)?;
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet()? {
        packets.push(packet.bytes.to_vec());
    }
    Ok(packets)
}

#[test]
fn written_packets_are_read_unchanged() {
    let file = small_capture();
    let mut reader = CaptureReader::new(&*file).unwrap();
    let expected = [
        (0, LinkType::Ethernet, Direction::Received, &ARP[..]),
        (0, LinkType::Ethernet, Direction::Sent, &UDP),
        (1, LinkType::Ip, Direction::Sent, &UDP[14..]),
    ];
    for (number, (interface, link_type, direction, bytes)) in expected.into_iter().enumerate() {
        let packet = Packet {
            interface,
            link_type,
            time: Some(NOW + Duration::from_nanos(number as u64)),
            direction: Some(direction),
            original_length: u32::try_from(bytes.len()).unwrap(),
            bytes,
        };
        assert_eq!(reader.next_packet().unwrap(), Some(packet));
    }
    assert_eq!(reader.next_packet().unwrap(), None);
}

/// The expected bytes come from the specification and not from the reader of this crate. An error
/// that the writer and the reader have in common would otherwise stay undetected.
#[test]
fn the_written_bytes_follow_the_format() {
    let mut file = Vec::new();
    let mut writer = CaptureWriter::new(&mut file);
    writer.add_interface("ab", &ETHERNET);
    let time = Duration::from_nanos(0x0102_0304_0506_0708);
    writer.write(&Record { interface: 0, time, direction: Direction::Sent, bytes: b"12345" });
    writer.finish().unwrap();
    let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().unwrap());
    let section_length = word(&file[4..8]) as usize;
    assert_eq!(word(&file[..4]), 0x0A0D_0D0A);
    assert_eq!(word(&file[8..12]), 0x1A2B_3C4D);
    let halves = |a: u16, b: u16| [a.to_ne_bytes(), b.to_ne_bytes()].concat();
    let whole = |number: u32| number.to_ne_bytes().to_vec();
    let interface = [
        whole(1),
        whole(40),
        halves(1, 0),
        whole(0),
        [halves(2, 2), b"ab\0\0".to_vec()].concat(),
        [halves(9, 1), vec![9, 0, 0, 0]].concat(),
        halves(0, 0),
        whole(40),
    ];
    let packet = [
        whole(6),
        whole(52),
        whole(0),
        whole(0x0102_0304),
        whole(0x0506_0708),
        whole(5),
        whole(5),
        b"12345\0\0\0".to_vec(),
        [halves(2, 4), whole(2)].concat(),
        halves(0, 0),
        whole(52),
    ];
    assert_eq!(file[section_length..], [interface.concat(), packet.concat()].concat());
}

/// Checks a written file with tshark. Does nothing if tshark is not installed.
#[test]
fn tshark_accepts_the_written_file() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.pcapng");
    fs::write(&path, small_capture()).unwrap();
    let fields = [
        "frame.time_epoch",
        "frame.protocols",
        "frame.packet_flags_direction",
        "_ws.malformed",
        "_ws.expert",
    ];
    let mut tshark = Command::new("tshark");
    tshark
        .args(["-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=,", "-r"])
        .arg(path);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "1767225600.123456789,eth:ethertype:arp,0x00000001,,\n\
                    1767225600.123456790,eth:ethertype:ip:udp:data,0x00000002,,\n\
                    1767225600.123456791,raw:ip:udp:data,0x00000002,,\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn a_truncated_file_yields_its_whole_packets_and_the_offset_of_its_end() {
    let file = small_capture();
    for length in 0..file.len() {
        match read_all(&file[..length]) {
            Ok(packets) => assert!(packets.len() < 3),
            Err(CaptureError::Empty) => assert_eq!(length, 0),
            Err(CaptureError::CutShort { offset }) => assert_eq!(offset, length as u64),
            Err(error) => panic!("cut to {length} bytes: {error}"),
        }
    }
}

#[test]
fn damage_to_any_byte_only_ends_the_reading() {
    let sound = small_capture();
    for at in 0..sound.len() {
        for bit in 0..8 {
            let mut file = sound.clone();
            file[at] ^= 1 << bit;
            match read_all(&file) {
                Ok(packets) => assert!(packets.len() <= 3),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn a_file_of_another_format_is_refused_with_its_first_bytes() {
    let error = read_all(b"\x1f\x8b\x08\0 compressed").unwrap_err().to_string();
    assert_eq!(
        error,
        "the file is neither pcapng nor pcap: it begins with the bytes [1f, 8b, 08, 00]"
    );
    assert!(matches!(read_all(b"\0\0"), Err(CaptureError::CutShort { offset: 2 })));
    assert!(matches!(CaptureReader::open("/there/is/no/such/file"), Err(CaptureError::Open(_))));
}

/// Returns a pcap file with one packet of four bytes, captured 1.5 seconds after 1970 began.
fn old_capture(
    magic: u32,
    fraction: u32,
    number: impl Fn(u32) -> [u8; 4],
    half: impl Fn(u16) -> [u8; 2],
) -> Vec<u8> {
    let mut file = number(magic).to_vec();
    file.extend([half(2), half(4)].concat());
    file.extend([0, 0, 65_535, 1].map(&number).concat());
    file.extend([1, fraction, 4, 60].map(&number).concat());
    file.extend(b"four");
    file
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_both_units_of_time() {
    let files = [
        old_capture(0xA1B2_C3D4, 500_000, u32::to_le_bytes, u16::to_le_bytes),
        old_capture(0xA1B2_C3D4, 500_000, u32::to_be_bytes, u16::to_be_bytes),
        old_capture(0xA1B2_3C4D, 500_000_000, u32::to_le_bytes, u16::to_le_bytes),
        old_capture(0xA1B2_3C4D, 500_000_000, u32::to_be_bytes, u16::to_be_bytes),
    ];
    for file in files {
        let mut reader = CaptureReader::new(&*file).unwrap();
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.bytes, packet.original_length), (&b"four"[..], 60));
        assert_eq!(packet.time, Some(Duration::from_millis(1_500)));
        assert_eq!((packet.link_type, packet.direction), (LinkType::Ethernet, None));
        assert!(reader.next_packet().unwrap().is_none());
        for length in 4..file.len() {
            match read_all(&file[..length]) {
                Ok(packets) => assert_eq!((length, packets.len()), (24, 0)),
                Err(error) => assert!(matches!(error, CaptureError::CutShort { .. }), "{error}"),
            }
        }
    }
}

/// Returns a block in big-endian order. The writer uses the byte order of the machine, so on most
/// machines it cannot produce such a block.
fn big_endian_block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 12).unwrap().to_be_bytes();
    [&kind.to_be_bytes(), &length, body, &length].concat()
}

#[test]
fn big_endian_sections_with_simple_and_unknown_blocks_are_read() {
    let mut file = small_capture();
    let section = [&0x1A2B_3C4D_u32.to_be_bytes()[..], &[0, 1, 0, 0], &[0xFF; 8]].concat();
    file.extend(big_endian_block(0x0A0D_0D0A, &section));
    file.extend(big_endian_block(0x0BAD, &[7; 400]));
    // Describes an interface that captures at most three bytes of each packet. Its time stamps
    // count half seconds, and readers must add an offset of 10 s to them.
    let options =
        [&[0, 9, 0, 1, 0x81, 0, 0, 0][..], &[0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 10]].concat();
    file.extend(big_endian_block(1, &[&[0, 1, 0, 0, 0, 0, 0, 3][..], &options].concat()));
    file.extend(big_endian_block(3, &[0, 0, 0, 60, 1, 2, 3, 0]));
    let packet =
        [&[0; 4][..], &[0, 0, 0, 0], &[0, 0, 0, 3], &[0, 0, 0, 2], &[0, 0, 0, 60], &[8, 9, 0, 0]]
            .concat();
    file.extend(big_endian_block(6, &packet));
    let mut reader = CaptureReader::new(&*file).unwrap();
    for _ in 0..3 {
        reader.next_packet().unwrap().unwrap();
    }
    let simple = reader.next_packet().unwrap().unwrap();
    assert_eq!((simple.bytes, simple.time, simple.original_length), (&[1, 2, 3][..], None, 60));
    let enhanced = reader.next_packet().unwrap().unwrap();
    assert_eq!(enhanced.bytes, [8, 9]);
    assert_eq!((enhanced.time, enhanced.direction), (Some(Duration::from_millis(11_500)), None));
    assert!(reader.next_packet().unwrap().is_none());
}
