use super::*;
use linerate_stack::Capabilities;
use linerate_units::{Duration, Rate};
use std::cell::Cell;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const NOW: Duration = Duration::from_nanos(1_767_225_600_123_456_789);
const ETHERNET: Capabilities = Capabilities::new(Medium::Ethernet, 1_500);

/// An ARP request and a UDP datagram, both sound.
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

/// Two packets of one interface and one of another.
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

/// All packets, or the error behind which there are no more.
fn read_all(file: &[u8]) -> Result<Vec<Vec<u8>>, CaptureError> {
    let mut reader = CaptureReader::new(file)?;
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet()? {
        packets.push(packet.bytes.to_vec());
    }
    Ok(packets)
}

#[test]
fn what_was_written_is_read_back() {
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

/// By hand from the document that describes the format, so that reading and writing cannot err alike.
#[test]
fn what_is_written_is_what_the_format_says() {
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

/// Where tshark is installed, it has to be content.
#[test]
fn tshark_finds_nothing_malformed() {
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
fn a_file_cut_anywhere_gives_its_whole_packets_and_then_says_where_it_ends() {
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
fn no_damage_to_any_byte_does_more_than_end_the_reading() {
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
fn what_is_no_capture_is_told_with_what_it_begins_with() {
    let error = read_all(b"\x1f\x8b\x08\0 compressed").unwrap_err().to_string();
    assert_eq!(
        error,
        "the file is neither pcapng nor pcap: it begins with the bytes [1f, 8b, 08, 00]"
    );
    assert!(matches!(read_all(b"\0\0"), Err(CaptureError::CutShort { offset: 2 })));
    assert!(matches!(CaptureReader::open("/there/is/no/such/file"), Err(CaptureError::Open(_))));
}

/// A pcap file with one packet of four bytes, 1.5 seconds after 1970.
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
fn the_older_format_is_read_in_both_byte_orders_and_both_units_of_time() {
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

/// A block of the other byte order than this machine is likely to write.
fn big_endian_block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 12).unwrap().to_be_bytes();
    [&kind.to_be_bytes(), &length, body, &length].concat()
}

#[test]
fn sections_of_the_other_byte_order_with_simple_and_unknown_blocks_are_read() {
    let mut file = small_capture();
    let section = [&0x1A2B_3C4D_u32.to_be_bytes()[..], &[0, 1, 0, 0], &[0xFF; 8]].concat();
    file.extend(big_endian_block(0x0A0D_0D0A, &section));
    file.extend(big_endian_block(0x0BAD, &[7; 400]));
    // An interface that captures three bytes of a packet and counts half seconds from 10 s on.
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

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// A section of the other byte order, and these blocks behind its header.
fn section(blocks: &[Vec<u8>]) -> Vec<u8> {
    let header =
        big_endian_block(0x0A0D_0D0A, &words(&[0x1A2B_3C4D, 0x0001_0000, u32::MAX, u32::MAX]));
    [header, blocks.concat()].concat()
}

/// The description of an interface with these options.
fn interface(options: &[u8]) -> Vec<u8> {
    big_endian_block(1, &[&words(&[0x0001_0000, 0]), options].concat())
}

/// A packet of interface 0 at time 0 that is said to have so many bytes, and is followed by these.
fn enhanced(captured: u32, behind: &[u8]) -> Vec<u8> {
    big_endian_block(6, &[&words(&[0, 0, 0, captured, captured]), behind].concat())
}

/// Why the file is not read further.
fn damage(file: &[u8]) -> &'static str {
    match read_all(file) {
        Err(CaptureError::Damaged { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_block_of_a_length_that_cannot_be_ends_the_reading_before_anything_is_read_for_it() {
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
fn a_block_whose_two_lengths_differ_ends_the_reading() {
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
fn a_section_that_contradicts_the_format_ends_the_reading() {
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
fn what_a_section_has_said_of_interfaces_does_not_hold_for_the_next_one() {
    let packet = || enhanced(0, &[]);
    let file = [section(&[interface(&[]), packet()]), section(&[packet()])].concat();
    assert_eq!(damage(&file), "a packet is of an interface that is not described");
}

#[test]
fn an_interface_that_cannot_be_ends_the_reading() {
    let short = big_endian_block(1, &[0; 4]);
    assert_eq!(damage(&section(&[short])), "the description of an interface is too short");
    let counting_by = |power: u8| interface(&[0, 9, 0, 1, power, 0, 0, 0]);
    let what = "an interface counts time in an impossible unit";
    assert_eq!(damage(&section(&[counting_by(39)])), what);
    assert_eq!(read_all(&section(&[counting_by(38), counting_by(0xFF)])).unwrap().len(), 0);
}

#[test]
fn no_file_has_more_interfaces_remembered_than_there_can_be() {
    let mut file = section(&[interface(&[]).repeat(65_536)]);
    assert!(read_all(&file).unwrap().is_empty());
    file.extend(interface(&[]));
    assert_eq!(damage(&file), "a section has more than 65536 interfaces");
}

#[test]
fn a_packet_that_is_not_in_its_block_ends_the_reading() {
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
fn a_packet_of_the_largest_size_is_read_and_one_byte_more_is_not_believed() {
    let bytes = vec![7; (1 << 20) + 4];
    let file = section(&[interface(&[]), enhanced(1 << 20, &bytes)]);
    assert_eq!(read_all(&file).unwrap(), [&bytes[..1 << 20]]);
    let file = section(&[interface(&[]), enhanced((1 << 20) + 1, &bytes)]);
    assert_eq!(damage(&file), "a packet is longer than its block");
}

#[test]
fn a_packet_of_the_obsolete_kind_is_read() {
    // Its interface is a half word, behind which a count of drops stands.
    let packet = big_endian_block(2, &words(&[0x0001_FFFF, 0, 5, 2, 60, 0x0809_0000]));
    let file = section(&[interface(&[]), interface(&[]), packet]);
    let mut reader = CaptureReader::new(&*file).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    assert_eq!((packet.interface, packet.bytes, packet.original_length), (1, &[8, 9][..], 60));
    assert_eq!(
        packet.time,
        Some(Duration::from_micros(5)),
        "microseconds unless it says otherwise"
    );
}

#[test]
fn a_simple_packet_is_whole_where_nothing_limits_what_is_captured() {
    let file = section(&[interface(&[]), big_endian_block(3, &words(&[3, 0x0102_0300]))]);
    assert_eq!(read_all(&file).unwrap(), [[1, 2, 3]]);
}

#[test]
fn a_time_before_1970_is_told_as_1970() {
    let ten_seconds_less = [&[0, 14, 0, 8][..], &(-10_i64).to_be_bytes()].concat();
    let file = section(&[interface(&ten_seconds_less), enhanced(0, &[])]);
    let mut reader = CaptureReader::new(&*file).unwrap();
    assert_eq!(reader.next_packet().unwrap().unwrap().time, Some(Duration::ZERO));
}

#[test]
fn a_direction_is_read_among_other_options_and_what_is_behind_the_last_is_none() {
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
    assert_eq!(direction(&[0, 0x0002_0004, 1]), None, "behind the end of the options");
    assert_eq!(direction(&[0x0001_FFFF, 0x0002_0004, 1]), None, "an option longer than the block");
    assert_eq!(direction(&[0x0002_0002, 0x0001_0000]), None, "too short for a direction");
}

#[test]
fn a_block_of_an_unknown_kind_is_passed_over_however_long_it_is() {
    let packet = enhanced(4, b"four");
    for length in [0, 4_092, 4_096, 4_100, 3 << 20] {
        let unknown = big_endian_block(0x0BAD, &vec![6; length]);
        let file = section(&[interface(&[]), unknown, packet.clone()]);
        assert_eq!(read_all(&file).unwrap(), [b"four"]);
    }
}

#[test]
fn a_file_of_the_older_format_that_contradicts_it_ends_the_reading() {
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
fn what_a_file_of_the_older_format_says_of_check_sequences_is_no_part_of_the_link_type() {
    let mut file = old_capture(0xA1B2_C3D4, 0, u32::to_be_bytes, u16::to_be_bytes);
    file[20..24].copy_from_slice(&[0x24, 0, 0, 101]);
    let mut reader = CaptureReader::new(&*file).unwrap();
    assert_eq!(reader.next_packet().unwrap().unwrap().link_type, LinkType::Ip);
}

/// A source that is interrupted before each byte.
struct Interrupted<'a>(&'a [u8], bool);

impl io::Read for Interrupted<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(&mut bytes[..1]) }
    }
}

#[test]
fn a_source_that_is_interrupted_and_gives_single_bytes_is_read_to_its_end() {
    let file = small_capture();
    let mut reader = CaptureReader::new(Interrupted(&file, false)).unwrap();
    for bytes in [&ARP[..], &UDP, &UDP[14..]] {
        assert_eq!(reader.next_packet().unwrap().unwrap().bytes, bytes);
    }
    assert!(reader.next_packet().unwrap().is_none());
}

/// A sink that takes so many bytes and then is full.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.limit - self.bytes.len();
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len().min(room))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Limited {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.bytes.cut(length)
    }
}

#[test]
fn what_a_full_disk_leaves_behind_can_be_read_to_its_end() {
    let mut disk = Limited { bytes: Vec::new(), limit: 200_000 };
    let mut writer = CaptureWriter::new(&mut disk);
    let interface = writer.add_interface("left", &ETHERNET);
    for _ in 0..1_000 {
        record(&mut writer, interface, 0, Direction::Sent, &[5; 1_514]);
    }
    assert!(writer.error().is_some());
    let kept = writer.packets();
    assert_eq!(kept + writer.missing(), 1_000);
    drop(writer);
    assert_eq!(read_all(&disk.bytes).unwrap().len() as u64, kept);
    assert!(kept > 80, "{kept}");
}

#[test]
fn a_capture_names_its_program_and_the_rate_of_its_interfaces() {
    let has =
        |file: &[u8], option: &[u8]| file.windows(option.len()).any(|window| window == option);
    let file = small_capture();
    let rate =
        [&8_u16.to_ne_bytes()[..], &8_u16.to_ne_bytes(), &10_000_000_u64.to_ne_bytes()].concat();
    assert!(has(&file, b"linerate ") && has(&file, &rate));
}

/// Counts what it is given: writes and bytes.
struct Counting<'a>(&'a Cell<(usize, usize)>);

impl Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (writes, written) = self.0.get();
        self.0.set((writes + 1, written + bytes.len()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Counting<'_> {
    fn cut(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn packets_are_gathered_and_written_before_they_are_too_many() {
    let counted = Cell::new((0, 0));
    let mut writer = CaptureWriter::new(Counting(&counted));
    let interface = writer.add_interface("left", &ETHERNET);
    for number in 1..=1_000 {
        record(&mut writer, interface, 0, Direction::Sent, &[5; 1_514]);
        let (writes, written) = counted.get();
        assert!(number * 1_514 <= written + 65_536);
        assert!(writes * 65_536 <= written);
    }
    drop(writer);
    assert!(counted.get().1 > 1_000 * 1_514);
}

#[test]
fn a_disk_that_is_full_at_the_end_is_told_by_the_end() {
    let mut disk = Limited { bytes: Vec::new(), limit: 10 };
    let mut writer = CaptureWriter::new(&mut disk);
    writer.add_interface("left", &ETHERNET);
    assert!(writer.error().is_none());
    assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(disk.bytes.is_empty(), "what was written in part is taken back");
}

/// Asks for a capture in `path` and is refused before there is a packet.
fn give_up(path: &Path) {
    let mut writer = CaptureWriter::create(path).unwrap();
    writer.add_interface("left", &ETHERNET);
}

#[test]
fn who_gives_up_before_the_first_packet_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let [new, kept, link] = ["new", "kept", "link"].map(|name| folder.path().join(name));
    fs::write(&kept, "of great worth").unwrap();
    symlink("new", &link).unwrap();
    for path in [&new, &kept, &link] {
        give_up(path);
        assert!(!new.exists(), "{}", path.display());
    }
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("new"));
    assert_eq!(fs::read_to_string(&kept).unwrap(), "of great worth");
}

#[test]
fn a_capture_follows_a_link_to_where_no_file_is_yet() {
    let folder = tempfile::tempdir().unwrap();
    let [new, link, astray] = ["new", "link", "astray"].map(|name| folder.path().join(name));
    symlink("new", &link).unwrap();
    CaptureWriter::create(&link).unwrap().finish().unwrap();
    assert!(new.exists() && link.is_symlink());
    symlink("nowhere/x", &astray).unwrap();
    assert_eq!(CaptureWriter::create(&astray).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_capture_overwrites_the_whole_of_a_file_that_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let [new, longer] = ["new", "longer"].map(|name| folder.path().join(name));
    fs::write(&longer, [0; 100_000]).unwrap();
    for path in [&new, &longer] {
        let mut writer = CaptureWriter::create(path).unwrap();
        let interface = writer.add_interface("left", &ETHERNET);
        record(&mut writer, interface, 0, Direction::Sent, &[5; 60]);
    }
    assert_eq!(fs::read(&new).unwrap(), fs::read(&longer).unwrap());
}

#[test]
fn a_capture_that_is_finished_is_one_without_a_packet_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    CaptureWriter::create(&path).unwrap().finish().unwrap();
    assert_eq!(read_all(&fs::read(&path).unwrap()).unwrap(), Vec::<Vec<u8>>::new());
}
